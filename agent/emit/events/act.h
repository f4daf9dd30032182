/* SPDX-License-Identifier: Apache-2.0 */
/* Steps inside a section that several public calls need. `from` is the public call's return address: the stacks of its
 * events begin there. */
#ifndef TA_EMIT_EVENTS_ACT_H
#define TA_EMIT_EVENTS_ACT_H

#include "agent/emit/events/put.h"
#include "traceagent.h"

static inline ta_fiber ta_fiber_of(const struct ta_go *go) {
  return ta_go_id(go) << TA_GOES_LOG2 | (uint64_t)(go - ta_goes);
}

/* Leaves and enters again, in the newest generation. Required after TA_LATE from a call below: another thread, in a newer
 * generation than t's, has woken the goroutine that t continues. Nothing was written then. */
static inline struct ta_thread *ta_again(struct ta_thread *t) {
  ta_leave(t);
  return ta_enter();
}

/* Waits and system calls (waits.c): t holds a running goroutine before begin and after end. */
enum ta_change ta_act_wait_end(struct ta_thread *t);
void ta_act_call_end(struct ta_thread *t, uint64_t now); /* ticks */

/* Creates a goroutine that does not run yet (fibers.c), with its creator's stack, or the name of a call if stacks are
 * off; 0: none. Returns NULL, counted, if there is no place for it. */
struct ta_go *ta_act_create(struct ta_thread *t, uint32_t name, bool waits, uint32_t call,
                            const void *from);
/* The running fiber waits, or is ready to run again, for that reason; the thread itself runs (fibers.c). */
enum ta_leaving { TA_WAITS, TA_YIELDS };
enum ta_change ta_act_leave_fiber(struct ta_thread *t, enum ta_leaving how, uint32_t reason,
                                  const void *from);
/* Ends the goroutine that t runs and frees its place; t then holds no goroutine. type: GoDestroy or
 * GoSwitchDestroy, with two arguments or none. */
void ta_act_destroy(struct ta_thread *t, uint8_t type, unsigned n, uint64_t a, uint64_t b);

/* Marks (marks.c). */
void ta_act_close_ranges(struct ta_thread *t,
                         const void *from); /* closes those of the running goroutine */
void ta_act_pause_end(struct ta_thread *t);
/* Writes the number of workers, in a generation's first section with a goroutine. */
void ta_act_workers(struct ta_thread *t);

/* Ends the sweep of t's proc, if there is one (gc.c). */
void ta_act_sweep_end(struct ta_thread *t, uint64_t swept_bytes, uint64_t reclaimed_bytes);
/* Ends the mark assist of the running goroutine, if there is one (gc.c). */
void ta_act_assist_end(struct ta_thread *t);

#endif
