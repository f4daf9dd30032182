/* SPDX-License-Identifier: Apache-2.0 */
/* How long that lasted which an event ends.
 *
 * These have a duration, known at this event:
 *   a goroutine's state        the transition that leaves it: runnable (GoStart), running (GoStop, GoBlock,
 *                              GoDestroy, GoSyscallBegin), waiting (GoUnblock, GoSwitch), in a system
 *                              call (GoSyscallEnd, GoSyscallEndBlocked, GoDestroySyscall)
 *   stop of the world, GC,     its end event
 *   sweep, mark assist
 *   task, region               its end event
 * All other events have none. A state that was under way when it was first heard of (a status, an Active
 * event) has lasted since the first event seen here or since the epoch's first, for the trace names all there
 * is before any of it changes: it is measured from there, and a lower bound. A state that was not heard of has no
 * duration.
 *
 * Memory    two maps from mem, some 20 bytes a live goroutine, task or open region.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this span will have no duration.
 */
#ifndef TO_ANALYSIS_DURATIONS_H
#define TO_ANALYSIS_DURATIONS_H

#include "base/map.h"
#include "event/view.h"

struct to_durations {
  bool heard;            /* an event, since the epoch began */
  to_ns began;           /* the first one */
  struct tb_map begun;   /* by kind and id */
  struct tb_map regions; /* by goroutine and depth */
};

struct to_duration {
  bool known, lower_bound;
  uint64_t ns;
};

void to_durations_init(struct to_durations *d, struct tb_mem *mem);
void to_durations_fini(struct to_durations *d); /* accepts a zeroed one */
/* A hole or a broken generation: nothing that is open can be trusted. */
void to_durations_epoch(struct to_durations *d);

/* Every event of the stream, in order. */
TB_MUST tb_rc to_durations_event(struct to_durations *d, const struct to_event *ev,
                                 struct to_duration *out);

/* The states and ranges under way now, and since when. False: it is not, or the trace has not said so. range: not
 * SYSCALL, which is a state, nor REGION, of which a goroutine may have many. id: of the range's scope. */
bool to_durations_state(const struct to_durations *d, int64_t goroutine, to_ns *out_since,
                        bool *out_lower_bound);
bool to_durations_range(const struct to_durations *d, enum to_range_kind range, int64_t id,
                        to_ns *out_since, bool *out_lower_bound);

#endif
