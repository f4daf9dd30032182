/* SPDX-License-Identifier: Apache-2.0 */
/* Average number of runnable goroutines in a stretch of time.
 *
 * Memory from mem: 32 bytes a span of a runnable goroutine.
 * Threads use each object from one thread at a time.
 * Errors TB_BUDGET, TB_NOMEM. */
#ifndef TO_EXPLAIN_CROWD_H
#define TO_EXPLAIN_CROWD_H

#include "online/explain/timeline.h"

struct to_crowd {
  struct tb_mem *mem;
  struct to_crowd_edge { /* sorted; before: sum of earlier edges' distances from the first */
    to_ns at;
    uint64_t before;
  } * begin, *end;
  size_t n, room;
};

TB_MUST tb_rc to_crowd_new(struct to_crowd *c, const struct to_timeline *t, struct tb_mem *mem);
void to_crowd_fini(struct to_crowd *c); /* accepts a zeroed one */
/* Returns the sum over goroutines of the time that they were runnable in from..until. */
uint64_t to_crowd_time(const struct to_crowd *c, to_ns from, to_ns until);

#endif
