/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the waiters for an address (a mutex, a semaphore, a thread that is joined), so that the thread that ends a wait can
 * write the wakeup.
 *
 *   ta_wait_begin_in(call, TA_WAIT_MUTEX, what);   -- one thread; then it waits
 *   ...
 *   if (ta_is_waited_for(mutex)) ta_wake(mutex, TA_WAKE_ONE, call, TA_CALLER);   -- another, before it unlocks
 *
 * A waiter stores in its place the address and its goroutine's word, which identifies the wait. An unlock removes one waiter
 * from its place and writes the event that wakes the waiter's goroutine. Neither thread waits for the other: a waiter whose wait
 * ends writes its own wakeup if no other thread was faster, and a waker that is too late writes nothing. Of several waiters, the
 * one that has waited longest is woken, as in the kernel. Races that are not detected here (another thread gets the lock first,
 * a wake comes before its wait) make a trace incomplete or a wakeup early, but never invalid.
 *
 * A waker must not wake a later wait of the same thread. It reads the waiter's word in a section, in which at most the next
 * generation can begin. The word of a later wait differs: in the same generation its sequence number is higher; in the
 * next one ta_change() returns TA_LATE. Then the waker enters that generation and reads the word again, and the waiter's place
 * shows whether the wait is still the same. If a goroutine ends while another thread wakes, its place stays taken until its
 * generation is over, so that no new goroutine is mistaken for it.
 *
 * Memory    static, 33 KiB.
 * Threads   any; wake also in a signal handler.
 * Cost      without a waiter: a load from a cache line that is written only when a thread waits. To wake: 8 bytes read for each
 *           thread, and the event.
 */
#ifndef TA_EMIT_EVENTS_WAITERS_H
#define TA_EMIT_EVENTS_WAITERS_H

#include "agent/emit/core/emit.h"
#include "traceagent.h"

enum { TA_WAITED_BITS = 8 };
extern _Atomic uint32_t
    ta_waited[1 << TA_WAITED_BITS]; /* number of waiters, by hash of the address */

static inline unsigned ta_waited_at(uintptr_t what) {
  return (unsigned)((uint64_t)what * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TA_WAITED_BITS));
}

/* Returns false if no thread waits for the address; true may be a collision of hashes. */
static inline bool ta_is_waited_for(const void *what) {
  return atomic_load_explicit(&ta_waited[ta_waited_at((uintptr_t)what)], memory_order_relaxed) != 0;
}

struct ta_waited_for {
  const void *at;   /* address that wakers search for; NULL: none */
  uintptr_t object; /* identity in the trace (locks.h); 0: not in the trace */
  uint32_t holder;  /* system id of the thread that holds it now; 0: not known */
};
/* As ta_wait_begin() and ta_syscall_begin() (waits.c). call: a name, used as the event's stack if the session has no
 * stacks. */
void ta_wait_begin_in(ta_name call, ta_name reason, struct ta_waited_for what);
void ta_syscall_begin_in(ta_name call);

enum ta_wake { TA_WAKE_ONE, TA_WAKE_ALL };
/* Writes the wakeup of waiters; does nothing if what is NULL. from: return address of the function that ends the wait. */
void ta_wake(const void *what, enum ta_wake how, ta_name call, const void *from);

/* For waits.c, in t's section: after a wait has begun; before it ends (does nothing if t does not wait). */
void ta_waiters_add(const struct ta_thread *t, const void *what);
void ta_waiters_remove(const struct ta_thread *t);
/* Returns true while a goroutine's place must not be freed. */
bool ta_waiters_are_being_woken(void);
/* Removes all waiters: between two sessions, and in a forked child. */
void ta_waiters_reset(void);

#endif
