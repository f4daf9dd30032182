/* SPDX-License-Identifier: Apache-2.0 */
/* Durations of the states, ranges, tasks and regions that events end.
 *
 * These have a duration, known at this event:
 *   a goroutine's state        the transition that leaves it: runnable (GoStart), running (GoStop, GoBlock,
 *                              GoDestroy, GoSyscallBegin), waiting (GoUnblock, GoSwitch), in a system
 *                              call (GoSyscallEnd, GoSyscallEndBlocked, GoDestroySyscall)
 *   stop of the world, GC,     its end event
 *   sweep, mark assist
 *   task, region               its end event
 * All other events have none. A state that was under way when the trace first named it (a status, an Active
 * event) is a lower bound, measured from the first event of the epoch: the trace names every state before
 * it changes. A state that was never named has no duration.
 *
 * Made of spans (online/spans/spans.h) without names and stacks, which cost a fraction of full ones.
 *
 * Memory    from mem: 30 KiB, and what spans of all that is listed here take.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds.
 * Errors    TB_BUDGET, TB_NOMEM: the durations that this event begins or ends are unknown until to_durations_epoch().
 */
#ifndef TO_ANALYSIS_DURATIONS_H
#define TO_ANALYSIS_DURATIONS_H

#include "online/spans/spans.h"

struct to_durations;

struct to_duration {
  bool known, lower_bound;
  uint64_t ns;
};

TB_MUST tb_rc to_durations_new(struct tb_mem *mem, struct to_durations **out);
void to_durations_free(struct to_durations *durations); /* accepts NULL */
/* Forgets all open states, after a hole or a broken generation. */
void to_durations_epoch(struct to_durations *durations);

/* Takes every event of the stream, in order, in slices; gen as the sink got it. out has room for n. Continues after
 * an error and returns the first one, so that few durations are unknown. */
TB_MUST tb_rc to_durations_events(struct to_durations *durations, const struct to_generation *gen,
                                  const struct to_event *events, size_t n, struct to_duration *out);

#endif
