/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage collection of a program with its own heap.
 *
 * A collection belongs to the whole program: it begins on one thread and may end on another. Its events are numbered
 * consecutively over all generations. A generation that begins during a collection starts with an event that says so,
 * which is numbered, too, even if no other follows. The flusher writes that event; its number is reserved by the first
 * thread that uses the state in the generation, or by the flusher at the generation's end.
 *
 * A sweep belongs to a proc, a mark assist to a goroutine: both are written again whenever the status of the proc or
 * goroutine is written (put.c, generation.c).
 *
 * Threads   any, in a section; the state is under the session's lock.
 */
#ifndef TA_EMIT_EVENTS_GC_H
#define TA_EMIT_EVENTS_GC_H

#include "agent/emit/events/put.h"

void ta_gc_reset(uint32_t first_gen); /* a session begins, without any earlier collection */
/* Called by the flusher at the generation's end: the number of the event that reports a collection in progress at the
 * generation's begin; 0: there was none. */
uint64_t ta_gc_active(uint32_t gen);

/* Begins (runs) or ends a collection and returns number and time of its event. TA_UNFIT: already begun or ended. */
struct ta_gc_event {
  uint64_t seq, ticks;
};
enum ta_change ta_gc_change(const struct ta_thread *t, bool runs, struct ta_gc_event *out);

#endif
