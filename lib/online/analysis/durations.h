/* SPDX-License-Identifier: Apache-2.0 */
/* How long what an event ends has lasted.
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
 * They are made of spans (online/spans/spans.h), and cost a fraction of spans with names and stacks.
 *
 * Memory    from mem: 30 KiB, and what spans of all that is listed here take.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds.
 * Errors    TB_BUDGET, TB_NOMEM: of what the event begins or ends nothing is known; to_durations_epoch() starts again.
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
/* A hole or a broken generation: nothing is known any more. */
void to_durations_epoch(struct to_durations *durations);

/* Every event of the stream, in order, in slices; gen as the sink got it. out has room for n. Goes on after an error, so that the
 * durations of few are unknown; answers the first one. */
TB_MUST tb_rc to_durations_events(struct to_durations *durations, const struct to_generation *gen,
                                  const struct to_event *events, size_t n, struct to_duration *out);

#endif
