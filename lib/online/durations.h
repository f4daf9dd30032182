/* SPDX-License-Identifier: Apache-2.0 */
/* How long that lasted which an event ends.
 *
 * What has a duration, and at which event it is known:
 *   a goroutine's state        the transition that leaves it: runnable (GoStart), running (GoStop, GoBlock,
 *                              GoDestroy, GoSyscallBegin), waiting (GoUnblock, GoSwitch), in a system
 *                              call (GoSyscallEnd, GoSyscallEndBlocked, GoDestroySyscall)
 *   stop of the world, GC,     its end event
 *   sweep, mark assist
 *   task, region               its end event
 * All other events have none. What began before the first event seen here, or before an epoch, is
 * measured from where it was first heard of (a status, an Active event) and is a lower bound; where
 * it was not heard of, there is no duration.
 *
 * Memory    two maps from mem, some 20 bytes a live goroutine, task or open region.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this span will have no duration.
 */
#ifndef TO_DURATIONS_H
#define TO_DURATIONS_H

#include "base/map.h"
#include "online/event.h"

struct to_durations {
  struct tb_map begun;   /* by kind and id */
  struct tb_map regions; /* by goroutine and depth */
};

struct to_duration {
  bool known, lower_bound;
  uint64_t ns;
};

void to_durations_init(struct to_durations *d, struct tb_mem *mem, uint64_t seed);
void to_durations_fini(struct to_durations *d); /* accepts a zeroed one */
/* A hole or a broken generation: nothing that is open can be trusted. */
void to_durations_epoch(struct to_durations *d);

/* Every event of the stream, in order. */
TB_MUST tb_rc to_durations_event(struct to_durations *d, const struct to_event *ev,
                                 struct to_duration *out);

#endif
