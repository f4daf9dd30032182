/* SPDX-License-Identifier: Apache-2.0 */
/* When a generation was traced, on the wall clock of the traced host.
 *
 * From Go 1.25 on each generation says it itself (a clock snapshot in its Sync batch). An older one does not:
 * its end is the agent's word, its start is that minus the generation's duration, and both are marked estimated.
 * Each generation has its own clock, so a wall clock that was set in between shows as the trace has it.
 *
 * Memory    plain values.
 * Time      wall clock in nanoseconds since 1970. Numbers of a peer may be anything: a time that cannot be is estimated.
 */
#ifndef TC_ARCHIVE_GENERATION_TIME_H
#define TC_ARCHIVE_GENERATION_TIME_H

#include "archive/meta.h"

/* The clocks of one generation's batches, in ticks. */
struct tc_clock_ticks {
  uint64_t first, last; /* headers' times: when the earliest and the latest batch were begun */
  uint64_t frequency;   /* ticks a second; 0: not seen */
  uint64_t snapshot, snapshot_wall_ns; /* one instant on both clocks; wall 0: not seen */
  bool any;
};

/* version: as tc_go_version() has it. A batch that cannot be read says nothing. */
void tc_clock_ticks_take(struct tc_clock_ticks *ticks, unsigned version, const void *batch,
                         size_t len);
/* Into the generation's meta. */
void tc_clock_ticks_put(const struct tc_clock_ticks *ticks,
                        Tracecollect__V1__GenerationMeta *generation);

struct tc_wall {
  uint64_t first_ns, last_ns; /* 0: unknown */
  bool estimated;
};

/* arrived_ns: the last record's arrival, for an end of which the agent said nothing. */
struct tc_wall tc_generation_wall(const Tracecollect__V1__GenerationMeta *generation,
                                  uint64_t arrived_ns);
/* Of all of a segment's generations: from the earliest start to the latest end. */
struct tc_wall tc_meta_wall(const tc_meta *meta);

#endif
