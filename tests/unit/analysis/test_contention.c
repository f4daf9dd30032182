/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutine 1 wakes the others; each of those blocks on the P and thread of its own number. */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

enum { SYNC = 1, RECEIVE, SLEEP, SEND };
enum { LOCK = 1, UNLOCK, QUEUE };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [SYNC] = "sync",
              [RECEIVE] = "chan receive",
              [SLEEP] = "sleep",
              [SEND] = "chan send" },
  .stack = { [LOCK] = { { 100, 7, "sync.Lock", "m.go" }, { 200, 9, "main.worker", "main.go" } },
             [UNLOCK] = { { 300, 8, "sync.Unlock", "m.go" }, { 400, 3, "main.main", "main.go" } },
             [QUEUE] = { { 500, 8, "main.take", "q.go" }, { 200, 9, "main.worker", "main.go" } } },
};

static uint32_t slot(int64_t g) {
  return (uint32_t)g + 1;
}

static void sync_event(struct tt_analyses *t, to_ns time) {
  TT_FEED(t, &gen1, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
}

static void open_stream(struct tt_analyses *t, int64_t goroutines) {
  tt_analyses_open(t, SECOND, 100);
  sync_event(t, 1);
  for (int64_t g = 1; g <= goroutines; g++)
    TT_FEED(t, &gen1, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
}

static void next_generation(struct tt_analyses *t, to_ns time) {
  cr_assert_eq(to_analyses_generation_ends(t->a, &gen1), TB_OK);
  sync_event(t, time);
}

static void block(struct tt_analyses *t, to_ns time, int64_t g, uint64_t reason, uint64_t stack) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { reason, stack });
}

static void wake(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 1, .g = 1, .slot = slot(g), .type = TW_EV_GO_UNBLOCK,
          .args = { (uint64_t)g, 2, UNLOCK });
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static const struct to_report *report(struct tt_analyses *t, enum to_window window) {
  return tt_report(t, TO_ANALYSIS_CONTENTION, window);
}

Test(an_contention, a_wait_counts_by_where_it_blocked_and_where_it_was_woken) {
  struct tt_analyses t;

  open_stream(&t, 5);
  block(&t, 100, 2, SYNC, LOCK);
  block(&t, 110, 3, SYNC, LOCK);
  wake(&t, 200, 2);
  wake(&t, 310, 3);
  block(&t, 400, 2, SLEEP, QUEUE);
  block(&t, 400, 3, SYNC, LOCK);
  block(&t, 410, 4, RECEIVE, QUEUE);
  wake(&t, 450, 2);
  wake(&t, 470, 4);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "waits")->sum.count, 3);
  cr_assert_eq(tt_distribution(r, "waits")->sum.total_ns, 100 + 200 + 60);
  cr_assert_eq(tt_figure(r, "waiting")->number, 1);
  cr_assert_eq(tt_figure(r, "longest_queue")->number, 2);
  cr_assert_eq(tt_figure(r, "convoys")->number, 0);
  cr_assert_eq(tt_table(r, "by_pair")->rows, 2);
  cr_assert_eq(tt_cell(r, "by_pair", 0, "stack")->stack->frames[0]->pc, 100);
  cr_assert_eq(tt_cell(r, "by_pair", 0, "waker_stack")->stack->frames[0]->pc, 300);
  cr_assert_str_eq(tt_cell(r, "by_pair", 0, "reason")->text.data, "sync");
  cr_assert_str_eq(tt_cell(r, "by_pair", 0, "holder")->text.data, "inferred");
  cr_assert_eq(tt_cell(r, "by_pair", 0, "waits")->distribution->sum.count, 2);
  cr_assert_eq(tt_cell(r, "by_pair", 0, "waits")->distribution->sum.max_ns, 200);
  cr_assert_str_eq(tt_cell(r, "by_pair", 1, "reason")->text.data, "channel receive");
  cr_assert_eq(tt_table(r, "queues")->rows, 1);
  cr_assert_eq(tt_cell(r, "queues", 0, "stack")->stack->frames[0]->pc, 100);
  cr_assert_eq(tt_cell(r, "queues", 0, "longest_queue")->number, 2);
  cr_assert_eq(tt_cell(r, "queues", 0, "waiting")->number, 1);
  tt_analyses_close(&t);
}

/* Four wait in the first second, two of them until second 20: no event of the queue is in the last ten seconds. */
Test(an_contention, the_longest_queue_is_that_of_the_window) {
  struct tt_analyses t;

  open_stream(&t, 5);
  for (int64_t g = 2; g <= 5; g++) block(&t, 100 * g, g, SYNC, LOCK);
  wake(&t, 1000, 2);
  wake(&t, 1001, 3);
  for (to_ns i = 1; i <= 40; i++) {
    TT_FEED(&t, &gen1, .time = i * SECOND / 2, .m = 9, .type = TW_EV_HEAP_ALLOC);
    if (i == 1) cr_assert_eq(tt_figure(report(&t, TO_WINDOW_10S), "longest_queue")->number, 4);
  }
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_10S), "longest_queue")->number, 2);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_1MIN), "longest_queue")->number, 4);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_10S), "waiting")->number, 2);
  wake(&t, 20 * SECOND, 4);
  wake(&t, 20 * SECOND + 1, 5);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_10S), "waiting")->number, 0);
  to_analyses_epoch(t.a);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_ALL), "longest_queue")->number, 4);
  tt_analyses_close(&t);
}

Test(an_contention, three_that_wait_for_a_lock_in_three_generations_are_a_convoy) {
  struct tt_analyses t;

  open_stream(&t, 7);
  for (int64_t g = 2; g <= 4; g++) block(&t, 100 * g, g, SYNC, LOCK);
  for (int64_t g = 5; g <= 7; g++) block(&t, 100 * g, g, RECEIVE, QUEUE);
  next_generation(&t, 1000);
  wake(&t, 1100, 2);
  block(&t, 1200, 2, SYNC, LOCK);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_ALL), "convoys")->number, 0, "two generations");
  next_generation(&t, 2000);
  TT_FEED(&t, &gen1, .time = 2500, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "convoys")->number, 1, "the third one is under way");
  cr_assert_eq(tt_cell(r, "convoys", 0, "stack")->stack->frames[0]->pc, 100);
  cr_assert_eq(tt_cell(r, "convoys", 0, "since_ns")->number, 1);
  cr_assert_eq(tt_cell(r, "convoys", 0, "lasted_ns")->number, 2499);
  cr_assert_eq(tt_cell(r, "convoys", 0, "now")->number, 1);
  next_generation(&t, 3000);
  for (int64_t g = 2; g <= 4; g++) wake(&t, 3000 + g, g);
  next_generation(&t, 4000);
  block(&t, 4100, 2, SYNC, LOCK);
  next_generation(&t, 5000);
  r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "convoys")->number, 1);
  cr_assert_eq(tt_cell(r, "convoys", 0, "now")->number, 0);
  cr_assert_eq(tt_cell(r, "convoys", 0, "since_ns")->number, 1);
  cr_assert_eq(tt_cell(r, "convoys", 0, "lasted_ns")->number, 3999, "up to 4000");
  cr_assert_eq(tt_cell(r, "convoys", 0, "longest_queue")->number, 3);
  tt_analyses_close(&t);
}

Test(an_contention, after_a_hole_no_goroutine_waits) {
  struct tt_analyses t;

  open_stream(&t, 4);
  for (int64_t g = 2; g <= 4; g++) block(&t, 100 * g, g, SYNC, LOCK);
  to_analyses_epoch(t.a);
  sync_event(&t, 1000);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "waiting")->number, 0);
  cr_assert_eq(tt_figure(r, "longest_queue")->number, 3);
  cr_assert_eq(tt_distribution(r, "waits")->sum.count, 0);
  tt_analyses_close(&t);
}

/* The second stack is one too many. */
Test(an_contention, stacks_that_are_not_told_apart_have_no_queue) {
  struct tt_analyses t;

  tt_analyses_open(&t, SECOND, 1);
  sync_event(&t, 1);
  for (int64_t g = 1; g <= 4; g++)
    TT_FEED(&t, &gen1, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
  block(&t, 100, 2, SYNC, LOCK);
  block(&t, 110, 3, SYNC, QUEUE);
  block(&t, 120, 4, SYNC, QUEUE);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "waiting")->number, 3);
  cr_assert_eq(tt_figure(r, "longest_queue")->number, 0);
  tt_analyses_close(&t);
}

/* Between its two queues no goroutine waits, generations end, and slots begin. */
Test(an_contention, a_stack_that_was_empty_for_long_has_a_queue_again) {
  struct tt_analyses t;

  open_stream(&t, 4);
  for (int64_t g = 2; g <= 4; g++) block(&t, 100 * g, g, SYNC, LOCK);
  for (int64_t g = 2; g <= 4; g++) wake(&t, 1000 + g, g);
  next_generation(&t, 2000);
  next_generation(&t, 30 * SECOND);
  block(&t, 30 * SECOND + 1, 2, SYNC, LOCK);
  block(&t, 30 * SECOND + 2, 3, SYNC, LOCK);
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(tt_figure(r, "longest_queue")->number, 2);
  cr_assert_eq(tt_figure(r, "waiting")->number, 2);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_1MIN), "longest_queue")->number, 3);
  tt_analyses_close(&t);
}
