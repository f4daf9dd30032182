/* SPDX-License-Identifier: Apache-2.0 */
/* What happens while a turn ends: a thread is still in the old one, others are in the next already. The test is the thread
 * that stays, so the order is the same each time. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>

#include "agent/emit/act.h"
#include "support/order_text.h"
#include "tests/unit/emit_scene.h"

static void *end_turn(void *arg) {
  emit_turn();
  return arg;
}

/* The caller's section goes on in its turn; everybody else's next one is in the turn behind it. */
struct overlap {
  struct ta_thread *self;
  uint32_t turn;
  pthread_t asker;
};

static struct overlap stay_behind(void) {
  struct overlap o = { .self = ta_enter() };

  cr_assert_not_null(o.self);
  o.turn = ta_turn(o.self);
  pthread_create(&o.asker, NULL, end_turn, NULL);
  while (ta_turn_now() == o.turn) poll(NULL, 0, 1);
  return o;
}

static void in_the_next_turn(void *(*body)(void *), void *arg) {
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

Test(emit_turns, who_is_woken_in_the_next_turn_goes_on_there) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber self = ta_fiber_self();
  ta_wait_begin(TA_WAIT_COND);
  struct overlap o = stay_behind();
  in_the_next_turn(wake, &self);
  cr_assert_eq(ta_act_wait_end(o.self), TA_LATE);
  cr_assert_eq(ta_again(o.self), o.self);
  cr_assert_eq(ta_turn(o.self), o.turn + 1);
  cr_assert_eq(ta_act_wait_end(o.self), TA_CHANGED);
  ta_leave(o.self);
  pthread_join(o.asker, NULL);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(count(&run, TW_EV_GO_UNBLOCK), 1);
  tt_run_fini(&run);
  emit_free(&e);
}

Test(emit_turns, a_thread_that_was_woken_there_leaves_its_fiber_there) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber self = ta_fiber_self();
  ta_fiber_switch(ta_fiber_create(ta_name_of("fiber"), 0));
  struct overlap o = stay_behind();
  in_the_next_turn(wake, &self);
  cr_assert_eq(ta_act_leave_fiber(o.self, TA_NAME_FIBER, NULL), TA_LATE);
  ta_leave(o.self);
  ta_fiber_end();
  pthread_join(o.asker, NULL);
  ta_heap_alloc(1);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(count(&run, TW_EV_GO_DESTROY), 2); /* the fiber, and the thread that woke us */
  tt_run_fini(&run);
  emit_free(&e);
}

static void *drop_one(void *arg) {
  ta_heap_alloc(1);
  return arg;
}

Test(emit_turns, two_that_run_out_of_memory_at_once_are_both_lost) {
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 2 * 80 << 10), 0);
  struct overlap o = stay_behind(); /* the turner waits for us: no batch comes back */
  while (!ta_given_up(o.turn)) ta_put(o.self, TW_EV_HEAP_ALLOC, 1, UINT64_MAX, 0, 0, 0);
  in_the_next_turn(drop_one, NULL);
  cr_assert(ta_given_up(o.turn + 1));
  ta_leave(o.self);
  pthread_join(o.asker, NULL);
  emit_turn();
  ta_heap_alloc(1);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 2);
  cr_assert_eq(e.traces, 1);
  struct tt_run run = read_trace(&e, 0);
  cr_assert_eq(count(&run, TW_EV_HEAP_ALLOC), 1);
  tt_run_fini(&run);
  emit_free(&e);
}
