/* SPDX-License-Identifier: Apache-2.0 */
/* Threads whose creator writes their goroutine: as in Go's trace, the creator of the goroutine and its stack.
 *
 *   struct ta_spawned birth = ta_spawned_begin(name, call, from);   -- before pthread_create(), which hands it on
 *   ...
 *   ta_spawned_is_mine(birth);                                    -- the new thread, before anything else
 *
 * The goroutine is there, ready to run, until its thread comes in; in as many generations as that takes. A
 * thread that comes into another session, or that has no traced creator, makes its own goroutine; so does one
 * whose signal handler ran before it said which goroutine is its own, and the creator's goroutine ends. A
 * goroutine whose thread found no place until it ended is ended by the next thread that makes one: of 16 at a time,
 * the rest are ready to run to the session's end.
 *
 * Memory    none.
 * Threads   any; is_mine, is_over and take on the thread that is born.
 */
#ifndef TA_EMIT_EVENTS_SPAWN_H
#define TA_EMIT_EVENTS_SPAWN_H

#include "agent/emit/core/emit.h"
#include "traceagent.h"

/* go NULL: its creator wrote none. */
struct ta_spawned {
  struct ta_go *go;
  uint64_t id;
  uint32_t session;
};

/* call: the event's stack where the session has none. from: as for ta_wake(). A thread in the middle of a
 * wait or a call makes another without writing it. */
struct ta_spawned ta_spawned_begin(ta_name name, ta_name call, const void *from);
/* There will be no thread: it ends at once. By a thread that runs a goroutine, or nothing is said. */
void ta_spawned_fail(struct ta_spawned birth);

void ta_spawned_is_mine(struct ta_spawned birth);
/* The thread ends. */
void ta_spawned_is_over(void);
/* For enter.c: the goroutine that this thread's creator made in this session, taken once; NULL: nothing. */
struct ta_go *ta_spawned_take(void);

#endif
