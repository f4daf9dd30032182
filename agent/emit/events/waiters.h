/* SPDX-License-Identifier: Apache-2.0 */
/* The waiters by what they wait for, so that the thread that ends a wait can write the wakeup: a mutex, a semaphore,
 * a thread that is joined, any address.
 *
 *   ta_wait_begin_in(call, TA_WAIT_MUTEX, what);   -- one thread; then it waits
 *   ...
 *   if (ta_is_waited_for(mutex)) ta_wake(mutex, TA_WAKE_ONE, call, TA_CALLER);   -- another, before it lets go
 *
 * A waiter says in its place what it waits for and which of its waits that is; an unlock takes one waiter out
 * of its place and writes the event that wakes it. Neither waits for the other: a waiter that goes on wakes
 * itself if no other thread was quicker, and a waker that comes too late has written nothing. Of several that wait,
 * the one that has waited longest is woken, which is the one that the kernel wakes. Races that are not seen here
 * (another thread takes the lock first, a wake comes before its wait) make a trace say less or say it early, and
 * never make it invalid.
 *
 * Why a wait is known again: a waker reads a waiter's word inside its section, in which at most the next generation can
 * begin. The word of a later wait differs: in the same generation it has a higher sequence number, in the generation
 * after that the waker comes too late by ta_change()'s own rule. It enters that generation then and reads the word
 * there, and the waiter's place says whether the wait is still the same. A goroutine that ends while another wakes
 * keeps its place until its generation is over, so that no new goroutine is taken for it.
 *
 * Memory    static, 33 KiB.
 * Threads   any; wake also in a signal handler. Cost to find that there is no waiter: a load of a line that is
 *           written only where a thread waits. To wake: 8 bytes read a thread that there is, and the event.
 */
#ifndef TA_EMIT_EVENTS_WAITERS_H
#define TA_EMIT_EVENTS_WAITERS_H

#include "agent/emit/core/emit.h"
#include "traceagent.h"

enum { TA_WAITED_BITS = 8 };
extern _Atomic uint32_t ta_waited[1 << TA_WAITED_BITS]; /* how many wait, by what they wait for */

static inline unsigned ta_waited_at(uintptr_t what) {
  return (unsigned)((uint64_t)what * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TA_WAITED_BITS));
}

/* False: there is none. */
static inline bool ta_is_waited_for(const void *what) {
  return atomic_load_explicit(&ta_waited[ta_waited_at((uintptr_t)what)], memory_order_relaxed) != 0;
}

struct ta_waited_for {
  const void *at;   /* what wakers look for; NULL: nothing */
  uintptr_t object; /* as the trace names it (locks.h); 0: it does not */
  uint32_t holder;  /* the thread that has it now, by its system id; 0: not known */
};
/* As ta_wait_begin() and ta_syscall_begin() (waits.c). call: a name that is their event's stack where the session
 * has no stacks. */
void ta_wait_begin_in(ta_name call, ta_name reason, struct ta_waited_for what);
void ta_syscall_begin_in(ta_name call);

enum ta_wake { TA_WAKE_ONE, TA_WAKE_ALL };
/* what: No thread waits for NULL. from: where the function that lets go returns to. */
void ta_wake(const void *what, enum ta_wake how, ta_name call, const void *from);

/* For waits.c: t is in a section and has just begun a wait; is about to end one, if it is in one. */
void ta_waiters_add(const struct ta_thread *t, const void *what);
void ta_waiters_remove(const struct ta_thread *t);
/* For code that gives a goroutine's place back. */
bool ta_waiters_are_being_woken(void);
/* No waiter: between two sessions, in a forked child. */
void ta_waiters_reset(void);

#endif
