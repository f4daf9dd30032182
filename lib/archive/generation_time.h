/* SPDX-License-Identifier: Apache-2.0 */
/* When a generation was traced, on the wall clock of the traced host.
 *
 * From Go 1.25 on each generation has a clock snapshot in its Sync batch. For older versions the agent reports the end,
 * the start is the end minus the generation's duration, and both are marked as estimated. Each generation has a clock of
 * its own: if the wall clock was set between two generations, their times show the step.
 *
 * Memory    plain values.
 * Time      wall clock in nanoseconds since 1970. An impossible time from a peer is replaced by an estimate.
 */
#ifndef TC_ARCHIVE_GENERATION_TIME_H
#define TC_ARCHIVE_GENERATION_TIME_H

#include "archive/meta.h"

/* The clocks of one generation's batches, in ticks. */
struct tc_clock_ticks {
  uint64_t first, last; /* times in batch headers: start of the earliest and the latest batch */
  uint64_t frequency;   /* ticks per second; 0: not seen */
  uint64_t snapshot, snapshot_wall_ns; /* the same instant on both clocks; wall 0: not seen */
  bool any;
};

/* version: a result of tc_go_version(). Ignores a batch that cannot be read. */
void tc_clock_ticks_take(struct tc_clock_ticks *ticks, unsigned version, const void *batch,
                         size_t len);
/* Stores the times in the generation's meta. */
void tc_clock_ticks_put(const struct tc_clock_ticks *ticks,
                        Tracecollect__V1__GenerationMeta *generation);

struct tc_wall {
  uint64_t first_ns, last_ns; /* 0: unknown */
  bool estimated;
};

/* arrived_ns: arrival of the last record, used if the agent reported no end. */
struct tc_wall tc_generation_wall(const Tracecollect__V1__GenerationMeta *generation,
                                  uint64_t arrived_ns);
/* Spans all of a segment's generations, from the earliest start to the latest end. */
struct tc_wall tc_meta_wall(const tc_meta *meta);

#endif
