/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage collection: what a program with a heap of its own says of it.
 *
 * A collection is the whole program's: it begins on one thread and may end on another. Its events are numbered, by one each,
 * over all generations, and in a generation that begins in the middle of one the first event says so. That event has a
 * number, too, though nobody may have written anything in that turn. So the turner writes it, and its number is set aside
 * by whoever is first to touch the state in the turn, the turner at its end at the latest.
 *
 * A sweep is a proc's, and a mark assist a goroutine's: they are told anew with the status of the proc and of the goroutine,
 * wherever that is written (put.c, turn.c).
 *
 * Threads   any, in a section; the state is under the session's lock.
 */
#ifndef TA_EMIT_EVENTS_GC_H
#define TA_EMIT_EVENTS_GC_H

#include "agent/emit/events/put.h"

void ta_gc_reset(uint32_t first_turn); /* a session begins; what was under way is not known to it */
/* The turner's, at the turn's end: the number of the event that says that a collection was under way as the turn began; 0:
 * none was. */
uint64_t ta_gc_active(uint32_t turn);

/* A collection begins (runs) or ends, and the event of it has that number and that time. TA_UNFIT: it has already. */
struct ta_gc_event {
  uint64_t seq, ticks;
};
enum ta_change ta_gc_change(const struct ta_thread *t, bool runs, struct ta_gc_event *out);

#endif
