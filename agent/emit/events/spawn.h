/* SPDX-License-Identifier: Apache-2.0 */
/* Threads whose goroutine is written by their creator, as in Go's trace, with the creator's stack.
 *
 *   struct ta_spawned birth = ta_spawned_begin(name, call, from);   -- before pthread_create(), which hands it on
 *   ...
 *   ta_spawned_is_mine(birth);                                    -- the new thread, before anything else
 *
 * The goroutine is ready to run until its thread enters its first section, however many generations that takes. A
 * thread that first enters in another session, or has no traced creator, makes its own goroutine. So does a thread
 * whose signal handler emits before ta_spawned_is_mine(); then the creator's goroutine ends. If a thread ended without
 * ever getting a place, the next thread that creates one ends its goroutine: 16 such goroutines are remembered, others
 * stay ready to run to the session's end.
 *
 * Memory    none.
 * Threads   any; is_mine, is_over and take on the thread that is born.
 */
#ifndef TA_EMIT_EVENTS_SPAWN_H
#define TA_EMIT_EVENTS_SPAWN_H

#include "agent/emit/core/emit.h"
#include "traceagent.h"

/* go NULL: the creator wrote no goroutine. */
struct ta_spawned {
  struct ta_go *go;
  uint64_t id;
  uint32_t session;
};

/* call: the event's stack if the session has none. from: as for ta_wake(). In a wait or a system call nothing is
 * written. */
struct ta_spawned ta_spawned_begin(ta_name name, ta_name call, const void *from);
/* The thread could not be created: ends the goroutine. Needs a thread that runs a goroutine, else nothing is written. */
void ta_spawned_fail(struct ta_spawned birth);

void ta_spawned_is_mine(struct ta_spawned birth);
/* The thread ends. */
void ta_spawned_is_over(void);
/* For enter.c: returns, once, the goroutine that this thread's creator made in this session, or NULL. */
struct ta_go *ta_spawned_take(void);

#endif
