/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of many series over one stretch of time.
 *
 * A series is a number whose meaning the user chooses: one stack's blocked calls, one reason to stop
 * the world. The sums are an array while counting, and are packed into one block without zeros.
 *
 * Memory    from mem: 40 bytes a series, 4 more for those in use.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; the sums have not changed then.
 */
#ifndef TO_WINDOW_COUNTERS_H
#define TO_WINDOW_COUNTERS_H

#include "base/mem.h"
#include "online/event/event.h"

struct to_count {
  uint64_t count, total_ns, max_ns;
  to_ns since;           /* the earliest begin of a span counted here */
  uint32_t tag;          /* of the longest span */
  uint32_t lower_bounds; /* how many of count are lower bounds */
};

struct to_counters {
  struct tb_mem *mem;
  struct to_count *cell; /* by series; if count is 0 the rest is undefined */
  uint32_t *used;        /* series whose count is not 0 */
  size_t capacity, used_len;
};

void to_counters_init(struct to_counters *counters, struct tb_mem *mem);
void to_counters_fini(struct to_counters *counters);  /* accepts a zeroed one */
void to_counters_clear(struct to_counters *counters); /* keeps the memory */
void to_counters_empty(struct to_counters *counters); /* releases the memory */
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

/* Adds a length to a series without tag and lower bounds whose earliest begin does not matter. since: any time near
 * the begin. */
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

/* into must have room for from's series. */
void to_counters_merge(struct to_counters *into, const struct to_counters *from);

/* Adds the sums of series to into and clears them. */
void to_counters_move(struct to_counters *counters, uint32_t series, uint32_t into);

/* Packed sums in one block. */
struct to_packed {
  size_t bytes; /* of the block */
  size_t cells;
  to_ns base; /* begins are relative to base */
  /* varints */
};
TB_MUST tb_rc to_counters_pack(const struct to_counters *counters, struct to_packed **out);
void to_counters_merge_packed(struct to_counters *into, const struct to_packed *from);
void to_packed_free(struct to_packed *packed, struct tb_mem *mem); /* accepts NULL */

#endif
