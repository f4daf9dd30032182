/* SPDX-License-Identifier: Apache-2.0 */
/* Makes traces from a seed: generation n of a seed always has the same bytes, so the seed alone tells what an archive
 * must hold. Valid for Go's reader: a clock, and tables of strings as the bulk.
 *
 * Memory    the caller's, tt_seeded_room() bytes for a generation.
 */
#ifndef TT_SEEDED_TRACE_H
#define TT_SEEDED_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct tt_seeded {
  uint64_t seed;
  unsigned generation_bytes; /* maximum; each has at least half of it */
};

size_t tt_seeded_room(const struct tt_seeded *trace);
/* The trace's header; out has 16 bytes. */
size_t tt_seeded_header(unsigned char *out);
/* Writes generation gen, its end mark included; returns its size. *out_batches counts the end mark too, as agents
 * do. */
size_t tt_seeded_generation(const struct tt_seeded *trace, uint64_t gen, unsigned char *out,
                            uint64_t *out_batches);

#endif
