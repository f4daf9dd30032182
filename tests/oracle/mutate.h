/* SPDX-License-Identifier: Apache-2.0 */
/* Makes broken traces out of whole ones, the same from the same seed.
 *
 * Knows the trace's frame (header, batches, end marks), so that the headers of most mutants are valid, and their tables and the
 * ordering rules are tested.
 *
 * Memory    the seeds are borrowed; a mutant is written into the caller's buffer.
 * Threads   one at a time in a process.
 */
#ifndef TT_MUTATE_H
#define TT_MUTATE_H

#include <stddef.h>
#include <stdint.h>

enum { TT_MUTANT_BYTES_MAX = 128 << 10 };

struct tt_seed {
  const char *name;
  const unsigned char *data;
  size_t len;
};

struct tt_rng {
  uint64_t state;
};

uint64_t tt_random(struct tt_rng *rng);
uint64_t tt_below(struct tt_rng *rng, uint64_t limit); /* 0..limit-1; 0 for limit 0 */

/* Writes a mutant of one of the seeds (sometimes spliced from two) and returns its length. */
size_t tt_mutate(struct tt_rng *rng, const struct tt_seed *seeds, size_t nseeds,
                 unsigned char out[TT_MUTANT_BYTES_MAX]);

#endif
