/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of many series over one stretch of time.
 *
 * A series is a number that its user gives a meaning: one stack's blocked calls, one reason to stop
 * the world. A tally is dense while it is counted into, and packs into one block of what is not zero.
 *
 * Memory    from mem: 40 bytes a series, 4 more for those in use.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; sums then are as they were.
 */
#ifndef TO_WINDOW_COUNTERS_H
#define TO_WINDOW_COUNTERS_H

#include "base/mem.h"
#include "online/event/event.h"

struct to_count {
  uint64_t count, total_ns, max_ns;
  to_ns since;           /* the earliest begin of a span counted here */
  uint32_t tag;          /* of the longest span */
  uint32_t lower_bounds; /* of count */
};

struct to_counters {
  struct tb_mem *mem;
  struct to_count *cell; /* by series; count 0: the rest means nothing */
  uint32_t *used;        /* series whose count is not 0 */
  size_t capacity, used_len;
};

void to_counters_init(struct to_counters *counters, struct tb_mem *mem);
void to_counters_fini(struct to_counters *counters);  /* accepts a zeroed one */
void to_counters_clear(struct to_counters *counters); /* keeps the memory */
void to_counters_empty(struct to_counters *counters); /* gives it back */
/* Makes room for series 0 to n-1. */
TB_MUST tb_rc to_counters_reserve(struct to_counters *counters, size_t n);

static inline void to_counters_add(struct to_counters *counters, uint32_t series, to_ns begin,
                                   to_ns end, uint32_t tag, bool lower_bound) {
  struct to_count *cell = &counters->cell[series];
  uint64_t ns = (uint64_t)end - (uint64_t)begin;

  if (cell->count++ == 0) {
    counters->used[counters->used_len++] = series;
    *cell = (struct to_count){ .count = 1, .since = begin, .tag = tag };
  }
  cell->total_ns += ns;
  cell->lower_bounds += lower_bound;
  if (begin < cell->since) cell->since = begin;
  if (ns > cell->max_ns) {
    cell->max_ns = ns;
    cell->tag = tag;
  }
}

/* Where neither the earliest begin nor a tag is looked at, and ns is no lower bound. since: any time of about then. */
static inline void to_counters_add_length(struct to_counters *counters, uint32_t series,
                                          to_ns since, uint64_t ns) {
  struct to_count *cell = &counters->cell[series];

  if (TB_UNLIKELY(cell->count == 0)) {
    counters->used[counters->used_len++] = series;
    *cell = (struct to_count){ .since = since };
  }
  cell->count++;
  cell->total_ns += ns;
  if (ns > cell->max_ns) cell->max_ns = ns;
}

/* into has room for from's series. */
void to_counters_merge(struct to_counters *into, const struct to_counters *from);

/* Counts what was series as part of into from now on. */
void to_counters_move(struct to_counters *counters, uint32_t series, uint32_t into);

/* One block: what it takes is in bytes. */
struct to_packed {
  size_t bytes;
  size_t cells;
  to_ns base; /* begins are counted from it */
  /* varints */
};
TB_MUST tb_rc to_counters_pack(const struct to_counters *counters, struct to_packed **out);
void to_counters_merge_packed(struct to_counters *into, const struct to_packed *from);
void to_packed_free(struct to_packed *packed, struct tb_mem *mem); /* accepts NULL */

#endif
