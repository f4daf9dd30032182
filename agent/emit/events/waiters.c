/* SPDX-License-Identifier: Apache-2.0 */
/* The addresses waited for are in an array of their own, eight to a cache line, because a waker reads all of them. */
#include "agent/emit/events/waiters.h"

#include "agent/emit/events/put.h"

enum { TRIES = 4 }; /* to find a waiter that no other thread wakes at the same time */

static const uint32_t none = UINT32_MAX;

struct waiter {
  _Atomic(struct ta_go *) go;
  _Atomic uint64_t word;  /* the goroutine's word when the wait began; 0: the wait is over */
  _Atomic uint64_t since; /* ticks */
};

_Atomic uint32_t ta_waited[1 << TA_WAITED_BITS];
static _Atomic uintptr_t waited_for[TA_THREADS_MAX]; /* by the thread's place; 0: nothing */
static struct waiter waiters[TA_THREADS_MAX];
static atomic_uint wakers; /* number of threads in ta_wake() */

void ta_waiters_add(const struct ta_thread *t, const void *what) {
  struct waiter *w = &waiters[t->place];

  atomic_store_explicit(&w->go, t->go, memory_order_relaxed);
  atomic_store_explicit(&w->word, atomic_load_explicit(&t->go->word, memory_order_relaxed),
                        memory_order_relaxed);
  atomic_store_explicit(&w->since, t->time, memory_order_relaxed);
  atomic_fetch_add(&ta_waited[ta_waited_at((uintptr_t)what)], 1);
  atomic_store(&waited_for[t->place], (uintptr_t)what);
}

void ta_waiters_remove(const struct ta_thread *t) {
  struct waiter *w = &waiters[t->place];

  if (atomic_load_explicit(&w->word, memory_order_relaxed) == 0) return;
  atomic_store_explicit(&w->word, 0,
                        memory_order_relaxed); /* before the goroutine's word changes */
  uintptr_t what = atomic_exchange(&waited_for[t->place], 0);
  if (what != 0) atomic_fetch_sub(&ta_waited[ta_waited_at(what)], 1);
}

bool ta_waiters_are_being_woken(void) {
  return atomic_load(&wakers) != 0;
}

void ta_waiters_reset(void) {
  for (uint32_t i = 0; i < ta_threads_end(); i++) atomic_store(&waited_for[i], 0);
  for (size_t i = 0; i < sizeof ta_waited / sizeof *ta_waited; i++) atomic_store(&ta_waited[i], 0);
  atomic_store(&wakers, 0);
}

static struct ta_thread *enter(void) {
  bool before = ta_in_hook;
  ta_in_hook = true;
  struct ta_thread *t = ta_enter();
  ta_in_hook = before;
  return t;
}

/* Wakes a place's waiter, unless another thread does. If the wait is in a newer generation, *t enters that; NULL: session over. */
static bool wake_at(struct ta_thread **t, uint32_t place, uintptr_t what, ta_name call,
                    const void *from) {
  struct waiter *w = &waiters[place];
  enum ta_change change;
  uint64_t seq;

  if (atomic_load(&waited_for[place]) != what) return false;
  struct ta_go *go = atomic_load_explicit(&w->go, memory_order_relaxed);
  uint64_t begun = atomic_load_explicit(&w->word, memory_order_relaxed), word = begun;
  if (begun == 0 || !atomic_compare_exchange_strong(&waited_for[place], &what, 0)) return false;
  atomic_fetch_sub(&ta_waited[ta_waited_at(what)], 1);
  while ((change = ta_change_wait(*t, go, word, &seq)) == TA_LATE) {
    ta_leave(*t);
    *t = enter();
    if (*t == NULL) return false;
    word = atomic_load_explicit(&go->word, memory_order_acquire);
    if (atomic_load_explicit(&w->word, memory_order_relaxed) != begun) return false;
  }
  if (change != TA_CHANGED) return false; /* the waiter has written its own wakeup */
  ta_put_called(*t, TW_EV_GO_UNBLOCK, 2, ta_go_id(go), seq, call, from);
  return true;
}

static uint32_t longest(uintptr_t what) {
  uint32_t found = none;
  uint64_t first = UINT64_MAX;

  for (uint32_t i = 0; i < ta_threads_end(); i++) {
    if (atomic_load_explicit(&waited_for[i], memory_order_relaxed) != what) continue;
    uint64_t since = atomic_load_explicit(&waiters[i].since, memory_order_relaxed);
    if (since < first) first = since, found = i;
  }
  return found;
}

static void wake_one(struct ta_thread **t, uintptr_t what, ta_name call, const void *from) {
  for (int i = 0; i < TRIES && *t != NULL; i++) {
    uint32_t place = longest(what);
    if (place == none || wake_at(t, place, what, call, from)) return;
  }
}

static void wake_all(struct ta_thread **t, uintptr_t what, ta_name call, const void *from) {
  for (uint32_t i = 0; i < ta_threads_end() && *t != NULL; i++)
    if (atomic_load_explicit(&waited_for[i], memory_order_relaxed) == what)
      wake_at(t, i, what, call, from);
}

void ta_wake(const void *what, enum ta_wake how, ta_name call, const void *from) {
  if (what == NULL || ta_is_off()) return;
  struct ta_thread *t = enter();
  if (t == NULL) return;
  atomic_fetch_add(&wakers, 1);
  if (how == TA_WAKE_ONE)
    wake_one(&t, (uintptr_t)what, call, from);
  else
    wake_all(&t, (uintptr_t)what, call, from);
  atomic_fetch_sub(&wakers, 1);
  if (t != NULL) ta_leave(t);
}
