/* SPDX-License-Identifier: Apache-2.0 */
/* Times in which something was so, and how much of another time they cover: stretches that do not touch, rising.
 *
 * Memory    from mem: 16 bytes a stretch.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the stretch is missing.
 */
#ifndef TO_EXPLAIN_STRETCHES_H
#define TO_EXPLAIN_STRETCHES_H

#include "base/mem.h"
#include "online/event/event.h"

struct to_stretches {
  struct to_stretch {
    to_ns from, until;
  } * one;
  size_t n, room;
};

/* Ends rise from call to call. What it touches becomes one with it. */
TB_MUST tb_rc to_stretches_add(struct to_stretches *s, struct tb_mem *mem, to_ns from, to_ns until);
void to_stretches_fini(struct to_stretches *s, struct tb_mem *mem);

/* How much of from..until they cover. */
uint64_t to_stretches_cover(const struct to_stretches *s, to_ns from, to_ns until);
/* How much of it they cover and others do not. */
uint64_t to_stretches_cover_without(const struct to_stretches *s, const struct to_stretches *others,
                                    to_ns from, to_ns until);

#endif
