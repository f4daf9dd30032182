/* SPDX-License-Identifier: Apache-2.0 */
/* How long ranges were active: stops of the world, mark phases, sweeps, mark assists.
 *
 * A trace says that a range begins, that it ends, and at the begin of each generation that it is active: "since the
 * last Sync", or for longer. Sums over these three have to count a range once that is restated many times, measure
 * one that nothing saw begin from the first event, and look at those that still go on. This object does it.
 *
 *   TB_TRY(to_range_times_event(times, ev));                        -- every event of the stream, in order
 *   to_range_times_find(times, TO_RANGE_GC_MARK, 0, &gc);           -- at any time
 *   share = gc.since_sync_ns / (now - to_range_times_sync(times));  -- of this generation, up to now
 *
 * Ask before a Sync is handed over for what the generation that ends had, in all.
 *
 * Memory    from mem, about 100 bytes for each goroutine and P that ever had a range; to_range_times_clear() gives
 *           those back that have none now.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds. An active range counts up to the last event that was handed over.
 * Errors    TB_BUDGET, TB_NOMEM: this range is missing from the sums.
 */
#ifndef TO_ANALYSIS_RANGE_TIME_H
#define TO_ANALYSIS_RANGE_TIME_H

#include "base/mem.h"
#include "event/view.h"

struct to_range_times;

TB_MUST tb_rc to_range_times_new(struct tb_mem *mem, struct to_range_times **out);
void to_range_times_free(struct to_range_times *times); /* accepts NULL */
/* A hole or a broken generation: what is active is not known any more. Sums stay. */
void to_range_times_epoch(struct to_range_times *times);
/* Sums start again; what is active goes on, and counts from here on. */
void to_range_times_clear(struct to_range_times *times);

TB_MUST tb_rc to_range_times_event(struct to_range_times *times, const struct to_event *ev);
/* When the last Sync was; the first event's time before there was one. */
to_ns to_range_times_sync(const struct to_range_times *times);

struct to_range_time {
  enum to_range_kind kind; /* not SYSCALL, which is a state, nor REGION */
  int64_t id;              /* of its scope's goroutine or proc; 0 for the process */
  uint64_t ended;          /* ranges */
  uint64_t total_ns;       /* all of them, and what is active up to now */
  uint64_t since_sync_ns;  /* of that, what lies after the last Sync */
  bool active;
  bool lower_bound; /* one of them began before the first event */
};
/* False: there was none, and *out is all zeros. */
bool to_range_times_find(const struct to_range_times *times, enum to_range_kind kind, int64_t id,
                         struct to_range_time *out);
/* for (size_t pos = 0; to_range_times_next(times, &pos, &row);) in no order; no event meanwhile. */
bool to_range_times_next(const struct to_range_times *times, size_t *pos,
                         struct to_range_time *out);

#endif
