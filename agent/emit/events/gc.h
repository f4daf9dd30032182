/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage collection: what a program with a heap of its own says of it.
 *
 * A collection is the whole program's: it begins on one thread and may end on another. Its events are numbered, by
 * one each, over all generations, and in a generation that begins in the middle of one the first event says so. That
 * event has a number, too, even if no event was written in that generation. So the flusher writes it, and the first
 * thread that touches the state in the generation sets its number aside; at the latest the flusher does at the
 * generation's end.
 *
 * A sweep is a proc's, and a mark assist a goroutine's: they are written again with the status of the proc
 * and of the goroutine, wherever that is written (put.c, generation.c).
 *
 * Threads   any, in a section; the state is under the session's lock.
 */
#ifndef TA_EMIT_EVENTS_GC_H
#define TA_EMIT_EVENTS_GC_H

#include "agent/emit/events/put.h"

void ta_gc_reset(uint32_t first_gen); /* a session begins; what was under way is not known to it */
/* The flusher's, at the generation's end: the number of the event that says that a collection was under way as the
 * generation began; 0: none was. */
uint64_t ta_gc_active(uint32_t gen);

/* A collection begins (runs) or ends, and the event of it has that number and that time. TA_UNFIT: it has already. */
struct ta_gc_event {
  uint64_t seq, ticks;
};
enum ta_change ta_gc_change(const struct ta_thread *t, bool runs, struct ta_gc_event *out);

#endif
