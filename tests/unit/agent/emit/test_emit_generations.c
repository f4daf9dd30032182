/* SPDX-License-Identifier: Apache-2.0 */
/* Behaviour while a generation ends: one thread is still in the old generation, others are already in the next. The
 * test is the thread that stays, so the order is the same each time. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>

#include "agent/emit/events/act.h"
#include "agent/emit/events/gc.h"
#include "support/order_text.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "traceexperiment.h"

static void *end_generation(void *arg) {
  emit_end_generation();
  return arg;
}

/* The calling thread is in a section of this generation. The next section of every other thread is in the following generation. */
struct overlap {
  struct ta_thread *self;
  uint32_t gen;
  pthread_t asker;
};

static struct overlap stay_behind(void) {
  struct overlap o = { .self = ta_enter() };

  cr_assert_not_null(o.self);
  o.gen = ta_gen(o.self);
  pthread_create(&o.asker, NULL, end_generation, NULL);
  while (ta_gen_now() == o.gen) poll(NULL, 0, 1);
  return o;
}

static void in_the_next_generation(void *(*body)(void *), void *arg) {
  pthread_t thread;

  pthread_create(&thread, NULL, body, arg);
  pthread_join(thread, NULL);
}

static size_t count(const struct tt_run *run, uint8_t type) {
  size_t n = 0;

  for (size_t i = 0; i < run->count; i++) n += run->events[i].type == type;
  return n;
}

static struct tt_run read_trace(const struct emitted *e, unsigned trace) {
  struct tt_run run = { 0 };

  tt_order_bytes(&run, e->trace[trace].bytes, e->trace[trace].n);
  TT_OK(run);
  return run;
}

static void *wake(void *fiber) {
  ta_fiber_unblock(*(ta_fiber *)fiber);
  return NULL;
}

Test(emit_generations, a_waiter_woken_in_the_next_generation_goes_on_there) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber self = ta_fiber_self();
  ta_wait_begin(TA_WAIT_COND);
  struct overlap o = stay_behind();
  in_the_next_generation(wake, &self);
  cr_assert_eq(ta_act_wait_end(o.self), TA_LATE);
  cr_assert_eq(ta_again(o.self), o.self);
  cr_assert_eq(ta_gen(o.self), o.gen + 1);
  cr_assert_eq(ta_act_wait_end(o.self), TA_CHANGED);
  ta_leave(o.self);
  pthread_join(o.asker, NULL);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(count(&run, TW_EV_GO_UNBLOCK), 1);
  tt_run_fini(&run);
  emit_free(&e);
}

Test(emit_generations, a_thread_that_was_woken_there_leaves_its_fiber_there) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber self = ta_fiber_self();
  ta_fiber_switch(ta_fiber_create(ta_name_of("fiber"), 0));
  struct overlap o = stay_behind();
  in_the_next_generation(wake, &self);
  cr_assert_eq(ta_act_leave_fiber(o.self, TA_WAITS, TA_NAME_FIBER, NULL), TA_LATE);
  ta_leave(o.self);
  ta_fiber_end();
  pthread_join(o.asker, NULL);
  ta_heap_alloc(1);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(count(&run, TW_EV_GO_DESTROY), 2); /* of the fiber, and of the waking thread */
  tt_run_fini(&run);
  emit_free(&e);
}

static uint64_t generations_ended(void) {
  struct ta_emit_status status = { .size = sizeof status };

  ta_emit_status(&status);
  return status.generations;
}

static void *write_in_the_next(void *arg) {
  ta_heap_alloc(2);
  ta_log(0, ta_name_of("said in both"), "by another thread");
  return arg;
}

/* Returns the number, from 1, of the generation with the first event that has this argument; 0: there is no such event. */
static unsigned generation_of(const struct tt_run *run, uint8_t type, uint64_t arg) {
  unsigned syncs = 0;

  for (size_t i = 0; i < run->count; i++) {
    syncs += run->events[i].type == TW_EV_SYNC;
    if (run->events[i].type == type && run->events[i].args[0] == arg) return syncs;
  }
  return 0;
}

/* E16: each generation has its own events and strings, although threads write to the newer one before the older one has ended. */
Test(emit_generations, two_generations_are_open_and_the_older_waits_for_the_thread_that_is_in_it) {
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 4 << 20), 0);
  ta_log(0, ta_name_of("said in both"), "by this thread");
  ta_heap_alloc(1);
  uint64_t ended = generations_ended();
  struct overlap o = stay_behind();
  in_the_next_generation(write_in_the_next, NULL);
  ta_put(o.self, TW_EV_HEAP_ALLOC, 1, 3, 0, 0, 0);
  cr_assert_eq(generations_ended(), ended, "a thread is in the older one");
  ta_leave(o.self);
  pthread_join(o.asker, NULL);
  cr_assert_eq(generations_ended(), ended + 1, "it has left");
  ta_heap_alloc(4);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert(e.lost == 0 && e.traces == 1);
  struct tt_run run = read_trace(&e, 0);
  unsigned older = generation_of(&run, TW_EV_HEAP_ALLOC, 1);
  cr_assert_gt(older, 0);
  cr_expect_eq(generation_of(&run, TW_EV_HEAP_ALLOC, 3), older);
  cr_expect_eq(generation_of(&run, TW_EV_HEAP_ALLOC, 2), older + 1);
  cr_expect_eq(generation_of(&run, TW_EV_HEAP_ALLOC, 4), older + 1);
  cr_expect_eq(count(&run, TW_EV_USER_LOG), 2,
               "a string that a table lacks would have broken the trace");
  tt_run_fini(&run);
  emit_free(&e);
}

/* E2 */
enum { RACERS = 4, PRIZES = 16, RACES = 25 };
static ta_fiber prize[PRIZES];
static pthread_barrier_t starts, over;

static void *race(void *arg) {
  uintptr_t first = (uintptr_t)arg;

  for (int i = 0; i < RACES; i++) {
    pthread_barrier_wait(&starts);
    for (uintptr_t k = 0; k < PRIZES; k++) ta_fiber_unblock(prize[(first + k) % PRIZES]);
    pthread_barrier_wait(&over);
  }
  return NULL;
}

/* Runs every fiber until it waits again. */
static void run_prizes(void) {
  for (int k = 0; k < PRIZES; k++) {
    ta_fiber_switch(prize[k]);
    ta_fiber_block(TA_WAIT_POLL);
  }
}

/* Counts how often each goroutine of a generation has a status, and how often it is woken. */
static void expect_one_status(const struct to_event *ev, size_t n) {
  struct {
    uint64_t g;
    unsigned stated, woken;
  } seen[64] = { 0 };
  size_t known = 0, at;

  for (; n > 0; ev++, n--) {
    bool status = ev->type == TW_EV_GO_STATUS || ev->type == TW_EV_GO_STATUS_STACK;
    if (!status && ev->type != TW_EV_GO_UNBLOCK) continue;
    for (at = 0; at < known && seen[at].g != ev->args[0]; at++) continue;
    if (at == known) cr_assert_lt(++known, 64);
    seen[at].g = ev->args[0];
    seen[at].stated += status;
    seen[at].woken += !status;
  }
  size_t prizes = 0;
  for (at = 0; at < known; at++) {
    cr_expect_eq(seen[at].stated, 1, "goroutine %lu", (unsigned long)seen[at].g);
    prizes += seen[at].woken == 1;
  }
  cr_expect_eq(prizes, PRIZES);
}

/* In each generation several threads compete to write the first event about the same goroutines. */
Test(emit_generations, one_of_several_threads_states_a_goroutine_in_a_generation) {
  pthread_t racer[RACERS];
  struct emitted e;

  pthread_barrier_init(&starts, NULL, RACERS + 1);
  pthread_barrier_init(&over, NULL, RACERS + 1);
  cr_assert_eq(emit_begin_version(&e, 26), 0);
  for (int k = 0; k < PRIZES; k++) prize[k] = ta_fiber_create(ta_name_of("prize"), 1);
  for (uintptr_t i = 0; i < RACERS; i++)
    pthread_create(&racer[i], NULL, race, (void *)(i * PRIZES / RACERS));
  for (int i = 0; i < RACES; i++) {
    emit_end_generation(); /* goroutines created in the first generation have no status there */
    pthread_barrier_wait(&starts);
    pthread_barrier_wait(&over);
    run_prizes();
  }
  for (int i = 0; i < RACERS; i++) pthread_join(racer[i], NULL);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert(e.lost == 0 && e.traces == 1);
  struct tt_run run = read_trace(&e, 0);
  size_t begin = 0, generation = 0;
  for (size_t i = 1; i < run.count; i++) {
    if (run.events[i].type != TW_EV_SYNC) continue;
    if (++generation > 1 && generation <= RACES + 1)
      expect_one_status(run.events + begin, i - begin);
    begin = i;
  }
  cr_assert_geq(generation, RACES + 1);
  tt_run_fini(&run);
  emit_free(&e);
}

static void *ask_in_vain(void *answer) {
  *(int *)answer = ta_emit_sync(20);
  return NULL;
}

/* E17: all that a thread writes between the begin and end of its section belongs to one generation, even if another thread asks
 * for the next generation. */
Test(emit_generations, no_generation_ends_while_a_thread_writes_into_it) {
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e;
  int answer = 0;

  cr_assert_eq(emit_begin(&e, &config, 4 << 20), 0);
  ta_heap_alloc(1);
  uint64_t ended = generations_ended();
  struct ta_thread *self = ta_enter();
  cr_assert_not_null(self);
  for (uint64_t i = 10; i < 13; i++) {
    ta_put(self, TW_EV_HEAP_ALLOC, 1, i, 0, 0, 0);
    in_the_next_generation(ask_in_vain, &answer);
    cr_assert_eq(answer, TA_E_TIMEOUT);
    cr_assert_eq(generations_ended(), ended);
  }
  ta_leave(self);
  emit_end_generation();
  cr_assert_gt(generations_ended(), ended);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert(e.lost == 0 && e.traces == 1);
  struct tt_run run = read_trace(&e, 0);
  unsigned generation = generation_of(&run, TW_EV_HEAP_ALLOC, 1);
  cr_assert_gt(generation, 0);
  for (uint64_t i = 10; i < 13; i++)
    cr_expect_eq(generation_of(&run, TW_EV_HEAP_ALLOC, i), generation, "event %lu",
                 (unsigned long)i);
  tt_run_fini(&run);
  emit_free(&e);
}

static void *end_collection(void *arg) {
  ta_gc_end();
  ta_gc_begin();
  return arg;
}

/* E5: no thread has written yet, in the old generation, that a collection runs. The sequence number for that event is kept. */
Test(emit_generations, a_collection_that_ended_in_the_next_generation_is_in_both) {
  struct ta_gc_event event;
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_gc_begin();
  emit_end_generation();
  struct overlap o = stay_behind();
  in_the_next_generation(end_collection, NULL);
  cr_assert_eq(ta_gc_change(o.self, false, &event), TA_LATE);
  ta_leave(o.self);
  ta_gc_end();
  pthread_join(o.asker, NULL);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(run.generations, 3);
  cr_assert_eq(count(&run, TW_EV_GC_BEGIN), 2);
  cr_assert_eq(count(&run, TW_EV_GC_ACTIVE), 2);
  cr_assert_eq(count(&run, TW_EV_GC_END), 2);
  tt_run_fini(&run);
  emit_free(&e);
}

/* E5: after a lost generation a new trace begins. It must state again all that is open. No goroutine runs in its first
 * generation. */
Test(emit_generations, what_is_open_over_a_lost_generation_is_told_behind_it) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber_switch(ta_fiber_create(ta_name_of("mutator"), 0));
  ta_gc_begin();
  ta_gc_sweep_begin();
  ta_gc_assist_begin();
  emit_end_generation();
  ta_give_up(ta_gen_now(), TA_LOST_NO_BATCH);
  ta_heap_alloc(1);
  emit_end_generation();
  ta_wait_begin(TA_WAIT_MUTEX);
  emit_end_generation();
  emit_end_generation();
  ta_wait_end();
  ta_gc_assist_end();
  ta_gc_sweep_end(1, 1);
  ta_gc_end();
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 1);
  cr_assert_eq(e.traces, 2);
  for (unsigned trace = 0; trace < 2; trace++) {
    struct tt_run run = read_trace(&e, trace);
    cr_assert_eq(count(&run, TW_EV_GC_BEGIN), trace == 0);
    cr_assert_eq(count(&run, TW_EV_GC_ACTIVE), trace == 0 ? 0 : run.generations);
    cr_assert_eq(count(&run, TW_EV_GC_SWEEP_ACTIVE), trace == 0 ? 0 : run.generations);
    cr_assert_eq(count(&run, TW_EV_GC_MARK_ASSIST_ACTIVE), trace == 0 ? 0 : run.generations);
    cr_assert_eq(count(&run, TW_EV_GC_END), trace == 1);
    tt_run_fini(&run);
  }
  emit_free(&e);
}

static void *drop_one(void *arg) {
  ta_heap_alloc(1);
  return arg;
}

Test(emit_generations, two_that_run_out_of_memory_at_once_are_both_lost) {
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 2 * 80 << 10), 0);
  struct overlap o = stay_behind(); /* the flusher waits for this thread, so no batch is freed */
  while (!ta_given_up(o.gen)) ta_put(o.self, TW_EV_HEAP_ALLOC, 1, UINT64_MAX, 0, 0, 0);
  in_the_next_generation(drop_one, NULL);
  cr_assert(ta_given_up(o.gen + 1));
  ta_leave(o.self);
  pthread_join(o.asker, NULL);
  emit_end_generation();
  ta_heap_alloc(1);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 2);
  cr_assert_eq(e.traces, 1);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(count(&run, TW_EV_HEAP_ALLOC), 1);
  tt_run_fini(&run);
  emit_free(&e);
}

/* A thread that never leaves its section. */

static const struct ta_emit_config brief = { .generation_ms = 50 };

/* A generation with a section that is never left ends nevertheless, and the following generations arrive. */
static void pass_by(struct emitted *e, uint64_t lost) {
  while (e->lost < lost) emit_end_generation();
  emit_end_generation();
}

/* As when a function returns from within TA_ATOMIC: the hold never ends. */
static void leave_a_hold_open(void) {
  ta_hold_begin();
  ta_heap_alloc(1);
}

/* As when a signal handler leaves a section with longjmp(): the section never ends. */
static void jump_out(void) {
  struct ta_thread *t = ta_enter();

  cr_assert_not_null(t);
  ta_put(t, TW_EV_HEAP_ALLOC, 1, 1, 0, 0, 0);
}

static void *live_on(void *arg) {
  for (int i = 0; i < 3; i++) {
    ta_wait_begin(TA_WAIT_SLEEP);
    ta_wait_end();
  }
  return arg;
}

static void expect_delivery_after(void (*get_stuck)(void)) {
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &brief, 4 << 20), 0);
  ta_heap_alloc(1);
  get_stuck();
  in_the_next_generation(live_on, NULL);
  pass_by(&e, 1);
  in_the_next_generation(live_on, NULL);
  emit_end_generation();
  /* The thread enters again, as a new goroutine. */
  ta_heap_alloc(2);
  ta_region_begin(TA_WAIT_POLL, 0);
  emit_end_generation();
  ta_region_end();
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 1);
  cr_assert_eq(e.lost_why, TA_LOST_STUCK);
  struct tt_run run = read_trace(&e, e.traces - 1);
  cr_assert_eq(count(&run, TW_EV_GO_BLOCK), 3, "the other thread's, in a later generation");
  cr_assert_eq(count(&run, TW_EV_HEAP_ALLOC), 1, "what the lost generation held is not in another");
  cr_assert_eq(count(&run, TW_EV_USER_REGION_BEGIN), 1);
  tt_run_fini(&run);
  emit_free(&e);
}

Test(emit_generations, a_hold_that_is_left_open_costs_one_generation) {
  expect_delivery_after(leave_a_hold_open);
}

Test(emit_generations, a_section_that_a_jump_left_costs_one_generation) {
  expect_delivery_after(jump_out);
}

static void *get_stuck_and_end(void *get_stuck) {
  ((void (*)(void))get_stuck)();
  return NULL;
}

static void *get_stuck_and_stay(void *barrier) {
  leave_a_hold_open();
  pthread_barrier_wait(barrier);
  pthread_barrier_wait(barrier);
  return NULL;
}

Test(emit_generations, a_thread_that_ends_in_the_middle_of_an_event_costs_nothing) {
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &brief, 4 << 20), 0);
  in_the_next_generation(get_stuck_and_end, (void *)leave_a_hold_open);
  in_the_next_generation(get_stuck_and_end, (void *)jump_out);
  emit_end_generation();
  ta_heap_alloc(1);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 0);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(count(&run, TW_EV_GO_DESTROY), 2);
  tt_run_fini(&run);
  emit_free(&e);
}

/* A thread that was left behind ends: in a later generation, or in a later session, to which its batch does not belong. */
static void expect_a_quiet_end(bool session_ends_first) {
  pthread_t thread;
  pthread_barrier_t met;
  struct emitted e, next;

  pthread_barrier_init(&met, NULL, 2);
  cr_assert_eq(emit_begin(&e, &brief, 4 << 20), 0);
  pthread_create(&thread, NULL, get_stuck_and_stay, &met);
  pthread_barrier_wait(&met);
  pass_by(&e, 1);
  if (session_ends_first) {
    cr_assert_eq(emit_end(&e), 0);
    cr_assert_eq(emit_begin(&next, &brief, 4 << 20), 0);
  }
  pthread_barrier_wait(&met);
  pthread_join(thread, NULL);
  live_on(NULL);
  emit_end_generation();
  struct emitted *last = session_ends_first ? &next : &e;
  cr_assert_eq(emit_end(last), 0);
  struct tt_run run = read_trace(last, last->traces - 1);
  cr_assert_eq(count(&run, TW_EV_GO_BLOCK), 3);
  tt_run_fini(&run);
  emit_free(&e);
  if (session_ends_first) emit_free(&next);
}

Test(emit_generations, a_thread_left_behind_ends_quietly) {
  expect_a_quiet_end(false);
}

Test(emit_generations, a_thread_left_behind_ends_quietly_in_a_later_session) {
  expect_a_quiet_end(true);
}

Test(emit_generations, a_session_ends_though_a_thread_never_leaves_its_event) {
  pthread_t thread;
  pthread_barrier_t met;
  struct emitted e;

  pthread_barrier_init(&met, NULL, 2);
  cr_assert_eq(emit_begin(&e, &brief, 4 << 20), 0);
  pthread_create(&thread, NULL, get_stuck_and_stay, &met);
  pthread_barrier_wait(&met);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 1);
  pthread_barrier_wait(&met);
  pthread_join(thread, NULL);
  emit_free(&e);
}
