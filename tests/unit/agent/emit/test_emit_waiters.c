/* SPDX-License-Identifier: Apache-2.0 */
/* The waker of a wait is the thread that released the lock, if it did so in time. A waker that is late, in another
 * generation, or that means another wait than the current one must not make the trace invalid. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "agent/emit/events/act.h"
#include "agent/emit/events/waiters.h"
#include "support/order_text.h"
#include "tests/unit/agent/emit/emit_scene.h"

static char lock, other_lock; /* addresses that are waited for */

static struct tt_run read_trace(const struct emitted *e, unsigned trace) {
  struct tt_run run = { 0 };

  tt_order_bytes(&run, e->trace[trace].bytes, e->trace[trace].n);
  TT_OK(run);
  return run;
}

/* Counts the goroutines of the session that were woken by another goroutine, and those that woke by themselves. */
struct woken {
  size_t by_others, by_themselves;
};

static struct woken end_and_count(struct emitted *e) {
  struct woken woken = { 0 };

  cr_assert_eq(emit_end(e), 0);
  for (unsigned i = 0; i < e->traces; i++) {
    struct tt_run run = read_trace(e, i);
    for (size_t j = 0; j < run.count; j++) {
      if (run.events[j].type != TW_EV_GO_UNBLOCK) continue;
      if (run.events[j].g >= 0)
        woken.by_others++;
      else
        woken.by_themselves++;
    }
    tt_run_fini(&run);
  }
  emit_free(e);
  return woken;
}

/* A thread that waits for a signal before each step, so that the steps come one after another. */
struct waiter {
  pthread_t thread;
  atomic_int waits, go_on;
  const void *what;
  struct ta_go *go; /* its goroutine, once it waits */
};

static void *wait_for(void *arg) {
  struct waiter *w = arg;

  ta_wait_begin_for(TA_WAIT_MUTEX, w->what);
  w->go = ta_self->go;
  w->waits = 1;
  while (w->go_on == 0) poll(NULL, 0, 1);
  ta_wait_end();
  return NULL;
}

static void start(struct waiter *w, const void *what) {
  w->waits = w->go_on = 0;
  w->what = what;
  pthread_create(&w->thread, NULL, wait_for, w);
  while (w->waits == 0) poll(NULL, 0, 1);
}

static void finish(struct waiter *w) {
  w->go_on = 1;
  pthread_join(w->thread, NULL);
}

static void expect(struct emitted *e, size_t by_others, size_t by_themselves) {
  struct woken woken = end_and_count(e);

  cr_assert_eq(woken.by_others, by_others, "%zu", woken.by_others);
  cr_assert_eq(woken.by_themselves, by_themselves, "%zu", woken.by_themselves);
}

Test(emit_waiters, who_lets_go_wakes_one_and_who_tells_all_wakes_all) {
  struct waiter waiter[4];
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  cr_assert_not(ta_is_waited_for(&lock));
  for (int i = 0; i < 4; i++) start(&waiter[i], &lock);
  cr_assert(ta_is_waited_for(&lock));
  ta_wake(&lock, TA_WAKE_ONE, 0, NULL);
  finish(&waiter[0]); /* the first in the line was woken already */
  ta_wake(&lock, TA_WAKE_ALL, 0, NULL);
  cr_assert_not(ta_is_waited_for(&lock));
  ta_wake(&lock, TA_WAKE_ALL, 0, NULL);
  for (int i = 1; i < 4; i++) finish(&waiter[i]);
  expect(&e, 4, 0);
}

Test(emit_waiters, who_is_not_woken_wakes_itself_and_is_waited_for_no_more) {
  struct waiter waiter;
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  start(&waiter, &lock);
  ta_wake(&other_lock, TA_WAKE_ONE, 0, NULL);
  ta_wake(NULL, TA_WAKE_ALL, 0, NULL);
  finish(&waiter);
  cr_assert_not(ta_is_waited_for(&lock));
  ta_wake(&lock, TA_WAKE_ONE, 0, NULL);
  expect(&e, 0, 1);
}

Test(emit_waiters, a_wait_over_three_generations_is_woken_in_the_last) {
  struct waiter waiter;
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  start(&waiter, &lock);
  emit_end_generation();
  emit_end_generation();
  emit_end_generation();
  ta_wake(&lock, TA_WAKE_ONE, 0, NULL);
  finish(&waiter);
  expect(&e, 1, 0);
}

Test(emit_waiters, the_event_names_the_call_where_there_are_no_stacks) {
  struct waiter waiter;
  struct emitted e;
  bool named = false;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_name call = ta_name_of("unlock");
  start(&waiter, &lock);
  ta_wake(&lock, TA_WAKE_ONE, call, NULL);
  finish(&waiter);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0);
  for (size_t i = 0; i < run.count; i++)
    named = named || (run.events[i].type == TW_EV_GO_UNBLOCK && run.events[i].args[2] == call);
  cr_assert(named);
  tt_run_fini(&run);
  emit_free(&e);
}

/* A late wake for a wait that is over, while another wait goes on. */

static uint64_t word_of(const struct ta_go *go) {
  return atomic_load(&go->word);
}

Test(emit_waiters, a_later_wait_is_not_taken_for_the_one_that_was_meant) {
  struct emitted e;
  uint64_t seq;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_heap_alloc(1);
  struct ta_thread *t = ta_self;
  for (int gens = 0; gens < 3; gens++) {
    ta_wait_begin_for(TA_WAIT_MUTEX, &lock);
    uint64_t begun = word_of(t->go);
    ta_wait_end();
    for (int i = 0; i < gens; i++) {
      emit_end_generation();
      ta_heap_alloc(1);
    }
    ta_wait_begin_for(TA_WAIT_MUTEX, &other_lock);
    cr_assert_eq(ta_enter(), t);
    cr_assert_eq(ta_change_wait(t, t->go, begun, &seq), TA_UNFIT, "%d generations later", gens);
    ta_leave(t);
    ta_wait_end();
  }
  expect(&e, 0, 6);
}

static void *end_generation(void *arg) {
  emit_end_generation();
  return arg;
}

/* A thread in the generation that ends may not write about a wait that began in the next. */
Test(emit_waiters, a_wait_of_the_next_generation_is_not_ended_in_this_one) {
  struct waiter waiter;
  pthread_t generation;
  struct emitted e;
  uint64_t seq;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  struct ta_thread *t = ta_enter();
  cr_assert_not_null(t);
  uint32_t gen = ta_gen(t);
  pthread_create(&generation, NULL, end_generation, NULL);
  while (ta_gen_now() == gen) poll(NULL, 0, 1);
  start(&waiter, &lock);
  cr_assert_eq(ta_change_wait(t, waiter.go, word_of(waiter.go), &seq), TA_LATE);
  ta_leave(t);
  pthread_join(generation, NULL);
  finish(&waiter);
  expect(&e, 0, 1);
}

/* Everything at once: threads wait, with and without a time-out, wake one or all, begin and end,
 * while generations end as fast as they can. Whichever thread comes first, the trace is valid. */

enum { CROWD = 4, LIVES = 5, ROUNDS = 50, THINGS = 3, PAIRED = 500 };

static char things[THINGS], paired;
static atomic_int alive, waited, woken_up;

static unsigned next(unsigned *seed) {
  *seed = *seed * 1103515245u + 12345u;
  return *seed >> 16;
}

static void *live(void *arg) {
  unsigned seed = (unsigned)(uintptr_t)arg;

  for (int i = 0; i < ROUNDS; i++) {
    const void *what = &things[next(&seed) % THINGS];
    if (next(&seed) % 2 == 0) {
      ta_wait_begin_for(TA_WAIT_COND, what);
      for (volatile unsigned n = next(&seed) % 2000; n > 0;) n = n - 1;
      ta_wait_end();
    } else {
      ta_wake(what, next(&seed) % 4 == 0 ? TA_WAKE_ALL : TA_WAKE_ONE, 0, NULL);
    }
  }
  return NULL;
}

static void *live_on(void *arg) {
  unsigned seed = (unsigned)(uintptr_t)arg;

  for (int i = 0; i < LIVES; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, live, (void *)(uintptr_t)next(&seed));
    live((void *)(uintptr_t)next(&seed));
    pthread_join(thread, NULL);
  }
  alive--;
  return NULL;
}

static void *wait_in_pair(void *arg) {
  for (int i = 0; i < PAIRED; i++) {
    ta_wait_begin_for(TA_WAIT_COND, &paired);
    waited++;
    while (woken_up <= i) sched_yield();
    ta_wait_end();
  }
  alive--;
  return arg;
}

static void *wake_in_pair(void *arg) {
  for (int i = 0; i < PAIRED; i++) {
    while (waited <= i) sched_yield();
    ta_wake(&paired, i % 2 == 0 ? TA_WAKE_ALL : TA_WAKE_ONE, 0, NULL);
    woken_up++;
  }
  alive--;
  return arg;
}

/* Runs the threads while generations end, and counts what arrives. */
static struct woken among_generations(unsigned n, void *(*const run[])(void *)) {
  struct ta_emit_config config = { .version = 26, .generation_ms = 60000 };
  pthread_t threads[CROWD];
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 16 << 20), 0); /* no generation is lost */
  alive = (int)n;
  for (unsigned i = 0; i < n; i++)
    pthread_create(&threads[i], NULL, run[i], (void *)(uintptr_t)(i + 1));
  while (alive > 0) emit_end_generation();
  for (unsigned i = 0; i < n; i++) pthread_join(threads[i], NULL);
  struct woken woken = end_and_count(&e);
  cr_assert_eq(e.lost, 0);
  return woken;
}

Test(emit_waiters, whichever_thread_is_first_it_is_a_trace) {
  among_generations(CROWD, (void *(*const[])(void *)){ live_on, live_on, live_on, live_on });
  for (unsigned i = 0; i < THINGS; i++) cr_assert_not(ta_is_waited_for(&things[i]));
}

/* The flusher may have carried the wait over to a generation that the waker has not entered, and
 * may do so while either thread looks at the wait. */
Test(emit_waiters, a_wake_in_time_is_written_whatever_generation_the_wait_has_come_to) {
  struct woken woken =
      among_generations(2, (void *(*const[])(void *)){ wait_in_pair, wake_in_pair });

  cr_assert_eq(woken.by_others, PAIRED, "%zu", woken.by_others);
  cr_assert_eq(woken.by_themselves, 0, "%zu", woken.by_themselves);
}
