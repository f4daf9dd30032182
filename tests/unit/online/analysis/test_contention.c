/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutine 1 wakes the others. Each other goroutine g blocks on P g and thread g. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/spans/lock_waits.h"
#include "unit/online/analysis/fake_generation.h"
#include "wire/locks.h"

#define SECOND INT64_C(1000000000)

enum { SYNC = 1, RECEIVE, SLEEP, SEND };
enum { LOCK = 1, UNLOCK, QUEUE, AGENT };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [SYNC] = "sync",
              [RECEIVE] = "chan receive",
              [SLEEP] = "sleep",
              [SEND] = "chan send" },
  .stack = { [LOCK] = { { 100, 7, "sync.Lock", "m.go" }, { 200, 9, "main.worker", "main.go" } },
             [UNLOCK] = { { 300, 8, "sync.Unlock", "m.go" }, { 400, 3, "main.main", "main.go" } },
             [QUEUE] = { { 500, 8, "main.take", "q.go" }, { 200, 9, "main.worker", "main.go" } },
             [AGENT] = { { 600, 1, "runtime.chanrecv1", "chan.go" },
                         { 610, 1, "tracecollect.invalid/traceagent.(*link).send", "send.go" } } },
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

/* Our agent's goroutines, and those that a list names, have nothing to do. */
Test(an_contention, an_idle_wait_is_in_no_row_and_in_no_queue) {
  struct tt_analyses t;

  open_stream(&t, 6);
  for (int64_t g = 2; g <= 4; g++) block(&t, 100 * g, g, RECEIVE, AGENT);
  for (int64_t g = 5; g <= 6; g++) block(&t, 100 * g, g, RECEIVE, QUEUE);
  wake(&t, 1000, 2);
  wake(&t, 1000, 5);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "waits")->sum.total_ns, 500);
  cr_assert_eq(tt_distribution(r, "idle")->sum.total_ns, 800);
  cr_assert_eq(tt_figure(r, "waiting")->number, 1);
  cr_assert_eq(tt_figure(r, "longest_queue")->number, 2);
  cr_assert_eq(tt_table(r, "by_pair")->rows, 1);
  cr_assert_eq(tt_cell(r, "by_pair", 0, "stack")->stack->frames[0]->pc, 500);
  cr_assert_eq(tt_table(r, "queues")->rows, 1);
  cr_assert_eq(tt_cell(r, "queues", 0, "stack")->stack->frames[0]->pc, 500);
  cr_assert_eq(to_analyses_idle(t.a, "!*"), TB_OK);
  wake(&t, 2000, 3);
  r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "waits")->sum.total_ns, 500 + 1700);
  cr_assert_eq(tt_figure(r, "waiting")->number, 2);
  cr_assert_eq(tt_table(r, "queues")->rows, 2);
  tt_analyses_close(&t);
}

/* Idle ones would be a convoy in three generations. */
Test(an_contention, idle_goroutines_are_no_convoy) {
  struct tt_analyses t;

  open_stream(&t, 4);
  cr_assert_eq(to_analyses_idle(t.a, "main.take"), TB_OK);
  for (int64_t g = 2; g <= 4; g++) block(&t, 100 * g, g, SEND, QUEUE);
  for (to_ns at = 1; at <= 4; at++) {
    next_generation(&t, at * SECOND);
    wake(&t, at * SECOND + 100, 2);
    block(&t, at * SECOND + 200, 2, SEND, QUEUE);
  }
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_ALL), "convoys")->number, 0);
  cr_assert_eq(to_analyses_idle(t.a, "!*"), TB_OK);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_ALL), "convoys")->number, 1);
  tt_analyses_close(&t);
}

/* Four goroutines wait in the first second, two of them until second 20. No event of the queue is in the last ten seconds. */
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

/* There is room for one stack only, so the second one is not separate. */
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

/* Between the two queues of the stack no goroutine waits, while generations end and slots begin. */
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

/* ---- locks ---- */

enum {
  TABLE = 5,
  CONFIG,
  TABLE_NAME,
  CONFIG_HELD,
  TABLE_HELD
}; /* strings: two locks, the first lock's name, and each lock with its holder */
enum { TABLE_AT = 0xa0, CONFIG_AT = 0xb0, HOLDER = 3 };

static struct to_experimental locks;
static struct to_generation with_locks;

/* Makes the generation name two locks. missed: waits that name no lock. */
static void name_locks(struct tt_analyses *t, to_ns time, uint64_t missed) {
  static unsigned char room[TW_WRITE_ROOM];
  struct tw_batch head = { .gen = 1, .experiment = TW_EXPERIMENT_ALLOC_FREE }, read;
  struct tb_diag diag = { 0 };
  struct tw_write w;
  size_t used;

  tw_write_open(&w, room, sizeof room, 26, &head);
  cr_assert_eq(tw_write_locks(&w, missed), TB_OK);
  const struct tw_lock lock[] = { { TABLE, TABLE_AT, 0, TABLE_NAME },
                                  { CONFIG, CONFIG_AT, 0, 0 },
                                  { CONFIG_HELD, CONFIG_AT, HOLDER, 0 },
                                  { TABLE_HELD, TABLE_AT, HOLDER, TABLE_NAME } };
  for (int i = 0; i < 4; i++) cr_assert_eq(tw_write_lock(&w, &lock[i]), TB_OK);
  size_t n = tw_write_close(&w);
  cr_assert_eq(tw_batch_read(room, n, &diag, &read, &used), TB_OK);
  locks = (struct to_experimental){ read.experiment, -1, read.data, read.len, 0 };
  with_locks = gen1;
  with_locks.string[TABLE] = with_locks.string[CONFIG] = with_locks.string[CONFIG_HELD] =
      with_locks.string[TABLE_HELD] = "sync";
  with_locks.string[TABLE_NAME] = "table_lock";
  with_locks.experimental = &locks;
  with_locks.experimentals = 1;
  TT_FEED(t, &with_locks, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
          .type = TW_EV_SYNC);
}

static void lock_blocks(struct tt_analyses *t, to_ns time, int64_t g, uint64_t string,
                        uint64_t stack) {
  TT_FEED(t, &with_locks, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { string, stack });
}

/* by: the goroutine that releases the lock; TO_NONE: not known. */
static void lets_go(struct tt_analyses *t, to_ns time, int64_t by, int64_t g, uint64_t stack) {
  TT_FEED(t, &with_locks, .time = time, .m = by == TO_NONE ? g : by, .p = by, .g = by,
          .slot = slot(g), .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2, stack });
  TT_FEED(t, &with_locks, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static void open_with_locks(struct tt_analyses *t, int64_t goroutines) {
  open_stream(t, 0);
  name_locks(t, 1, 0);
  for (int64_t g = 1; g <= goroutines; g++)
    TT_FEED(t, &with_locks, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS_STACK,
            .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING, g == 1 ? UNLOCK : LOCK });
}

static const char *text(const struct to_report *r, const char *name, size_t row,
                        const char *column) {
  return tt_cell(r, name, row, column)->text.data;
}

static void expect_waits(const struct to_report *r, const char *name, size_t row, uint64_t count,
                         uint64_t total) {
  const struct to_sum *sum = &tt_cell(r, name, row, "waits")->distribution->sum;

  cr_assert_eq(sum->count, count, "%s %zu: %lu", name, row, (unsigned long)sum->count);
  cr_assert_eq(sum->total_ns, total, "%s %zu: %lu", name, row, (unsigned long)sum->total_ns);
}

Test(an_contention, a_known_lock_has_its_name_and_its_holder) {
  struct tt_analyses t;

  open_with_locks(&t, 4);
  lock_blocks(&t, 100, 2, TABLE, LOCK);
  lock_blocks(&t, 110, 3, TABLE, LOCK);
  lets_go(&t, 200, 1, 2, UNLOCK);
  lets_go(&t, 310, 4, 3, UNLOCK);
  lock_blocks(&t, 400, 2, CONFIG, LOCK);
  lets_go(&t, 410, 1, 2, QUEUE);
  lock_blocks(&t, 500, 2, SYNC, LOCK);
  lets_go(&t, 520, 1, 2, UNLOCK);
  lock_blocks(&t, 600, 2, CONFIG, QUEUE);
  lets_go(&t, 630, TO_NONE, 2, 0);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "waits")->sum.count, 5);
  cr_assert_eq(tt_distribution(r, "waits")->sum.total_ns, 100 + 200 + 10 + 20 + 30);
  cr_assert_eq(tt_figure(r, "locks")->number, 2);

  cr_assert_eq(tt_table(r, "by_lock")->rows, 2);
  cr_assert_str_eq(text(r, "by_lock", 0, "object"), "table_lock");
  expect_waits(r, "by_lock", 0, 2, 300);
  cr_assert_eq(tt_cell(r, "by_lock", 0, "longest_queue")->number, 2);
  cr_assert_eq(tt_cell(r, "by_lock", 0, "waiting")->number, 0);
  cr_assert_str_eq(text(r, "by_lock", 1, "object"), "0xb0");
  expect_waits(r, "by_lock", 1, 2, 40);

  cr_assert_eq(tt_table(r, "by_holder")->rows, 4);
  cr_assert_str_eq(text(r, "by_holder", 0, "object"), "table_lock");
  cr_assert_str_eq(text(r, "by_holder", 0, "holder"), "main.worker");
  expect_waits(r, "by_holder", 0, 1, 200);
  cr_assert_str_eq(text(r, "by_holder", 1, "holder"), "main.main");
  cr_assert_str_eq(text(r, "by_holder", 1, "reason"), "sync");
  cr_assert_eq(tt_cell(r, "by_holder", 1, "stack")->stack->frames[0]->pc, 100);
  cr_assert_eq(tt_cell(r, "by_holder", 1, "holder_stack")->stack->frames[0]->pc, 300);
  expect_waits(r, "by_holder", 1, 1, 100);
  cr_assert_str_eq(text(r, "by_holder", 2, "object"), "0xb0");
  cr_assert_str_eq(text(r, "by_holder", 2, "holder"), "", "no release was seen");
  expect_waits(r, "by_holder", 2, 1, 30);
  cr_assert_str_eq(text(r, "by_holder", 3, "holder"), "main.main");
  expect_waits(r, "by_holder", 3, 1, 10);

  cr_assert_eq(tt_table(r, "by_pair")->rows, 4);
  static const struct {
    const char *how, *object;
    uint64_t count, total;
  } pair[] = { { "exact", "table_lock", 2, 300 },
               { "unseen", "0xb0", 1, 30 },
               { "inferred", NULL, 1, 20 },
               { "exact", "0xb0", 1, 10 } };
  for (size_t i = 0; i < 4; i++) {
    const struct to_value *object = tt_cell(r, "by_pair", i, "object");
    cr_assert_str_eq(text(r, "by_pair", i, "holder"), pair[i].how);
    cr_assert_eq(object->none || object->text.len == 0, pair[i].object == NULL);
    if (pair[i].object != NULL) cr_assert_str_eq(object->text.data, pair[i].object);
    expect_waits(r, "by_pair", i, pair[i].count, pair[i].total);
  }
  tt_analyses_close(&t);
}

Test(an_contention, a_pair_of_several_locks_says_so) {
  struct tt_analyses t;

  open_with_locks(&t, 2);
  lock_blocks(&t, 100, 2, TABLE, LOCK);
  lets_go(&t, 200, 1, 2, UNLOCK);
  lock_blocks(&t, 300, 2, CONFIG, LOCK);
  lets_go(&t, 320, 1, 2, UNLOCK);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_pair")->rows, 1);
  cr_assert_str_eq(text(r, "by_pair", 0, "object"), "several");
  expect_waits(r, "by_pair", 0, 2, 120);
  tt_analyses_close(&t);
}

Test(an_contention, a_lock_that_is_waited_for_now_has_its_holder) {
  struct tt_analyses t;

  open_with_locks(&t, 5);
  lock_blocks(&t, 100, 2, CONFIG, LOCK);
  lock_blocks(&t, 150, 4, CONFIG_HELD, LOCK);
  lock_blocks(&t, 160, 5, TABLE, LOCK);
  lock_blocks(&t, 170, HOLDER, TABLE, QUEUE);
  TT_FEED(&t, &with_locks, .time = 1100, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "held")->rows, 2);
  cr_assert_str_eq(text(r, "held", 0, "object"), "0xb0");
  cr_assert_eq(tt_cell(r, "held", 0, "waiting")->number, 2);
  cr_assert_eq(tt_cell(r, "held", 0, "age_ns")->number, 1000);
  cr_assert_eq(tt_cell(r, "held", 0, "thread")->number, HOLDER);
  cr_assert_eq(tt_cell(r, "held", 0, "goroutine")->number, HOLDER);
  cr_assert_str_eq(text(r, "held", 0, "holder"), "main.worker");
  cr_assert_str_eq(text(r, "held", 0, "state"), "Waiting");
  cr_assert_eq(tt_cell(r, "held", 0, "holder_stack")->stack->frames[0]->pc, 500);
  cr_assert_str_eq(text(r, "held", 1, "object"), "table_lock");
  cr_assert_eq(tt_cell(r, "held", 1, "waiting")->number, 2);
  cr_assert(tt_cell(r, "held", 1, "thread")->none);
  lets_go(&t, 1200, 1, HOLDER, UNLOCK);
  r = report(&t, TO_WINDOW_ALL);
  cr_assert_str_eq(text(r, "held", 0, "state"), "Running");
  cr_assert(tt_cell(r, "held", 0, "holder_stack")->none, "where it is now is not known");
  to_analyses_epoch(t.a);
  cr_assert_eq(tt_table(report(&t, TO_WINDOW_ALL), "held")->rows, 0);
  tt_analyses_close(&t);
}

Test(an_contention, a_thread_that_holds_several_locks_is_the_holder_of_each) {
  struct tt_analyses t;

  open_with_locks(&t, 5);
  lock_blocks(&t, 100, 2, CONFIG_HELD, LOCK);
  lock_blocks(&t, 110, 4, TABLE_HELD, LOCK);
  lock_blocks(&t, 120, 5, TABLE_HELD, LOCK);
  TT_FEED(&t, &with_locks, .time = 1100, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "held")->rows, 2);
  for (size_t row = 0; row < 2; row++) {
    cr_assert_str_eq(text(r, "held", row, "object"), row == 0 ? "0xb0" : "table_lock");
    cr_assert_eq(tt_cell(r, "held", row, "waiting")->number, (int64_t)row + 1);
    cr_assert_eq(tt_cell(r, "held", row, "thread")->number, HOLDER);
    cr_assert_eq(tt_cell(r, "held", row, "goroutine")->number, HOLDER);
    cr_assert_str_eq(text(r, "held", row, "state"), "Running");
  }
  tt_analyses_close(&t);
}

/* The names of a C program are looked up while it runs. A stack, and the entry function of a living goroutine, have their names
 * from the first generation that knows them. Without a name, they keep module and offset. */
Test(an_contention, names_that_a_later_generation_knows_are_taken) {
  struct to_generation early = gen1, late = gen1;
  struct tt_analyses t;

  early.stack[LOCK][0] = (struct tt_fake_frame){ 100, 0, "libc.so.6+0x100", "" };
  early.stack[LOCK][1] = (struct tt_fake_frame){ 200, 0, "shop+0x200", "" };
  late.stack[LOCK][0] = early.stack[LOCK][0];
  late.number = 2;
  tt_analyses_open(&t, SECOND, 100);
  for (int i = 0; i < 2; i++) {
    const struct to_generation *gen = i == 0 ? &early : &late;
    TT_FEED(&t, gen, .time = 1 + 1000 * i, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
            .type = TW_EV_SYNC);
    for (int64_t g = 1; i == 0 && g <= 3; g++)
      TT_FEED(&t, gen, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
              .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
    for (int64_t g = 2; g <= 3; g++)
      TT_FEED(&t, gen, .time = 100 * g + 1000 * i, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
              .args = { SYNC, LOCK });
    const struct to_report *r = report(&t, TO_WINDOW_ALL);
    const struct to_callstack *stack = tt_cell(r, "queues", 0, "stack")->stack;
    cr_assert_str_eq(stack->frames[0]->function.data, "libc.so.6+0x100");
    cr_assert_str_eq(stack->frames[1]->function.data, i == 0 ? "shop+0x200" : "main.worker");
    cr_assert_eq(stack->frames[1]->line, i == 0 ? 0 : 9);
    cr_assert_eq(tt_table(r, "queues")->rows, 1);
    for (int64_t g = 2; g <= 3; g++) {
      TT_FEED(&t, gen, .time = 500 + 1000 * i, .m = 1, .p = 1, .g = 1, .slot = slot(g),
              .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2, UNLOCK });
      TT_FEED(&t, gen, .time = 500 + 1000 * i, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
              .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
    }
    cr_assert_eq(to_analyses_generation_ends(t.a, gen), TB_OK);
  }
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_BLOCK, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_entry")->rows, 1);
  cr_assert_str_eq(text(r, "by_entry", 0, "entry"), "main.worker");
  tt_analyses_close(&t);
}

/* Goroutine 3 has both locks that the others wait for, and waits for one of them itself. No earlier wait is needed to know
 * this. */
Test(an_contention, a_thread_that_waits_for_its_own_lock_is_a_deadlock_at_once) {
  struct tt_analyses t;

  open_with_locks(&t, 4);
  lock_blocks(&t, 100, 2, TABLE_HELD, LOCK);
  lock_blocks(&t, 110, HOLDER, CONFIG_HELD, QUEUE);
  for (to_ns time = 2 * SECOND; time <= 4 * SECOND; time += 2 * SECOND) {
    TT_FEED(&t, &with_locks, .time = time - 1, .m = 9, .type = TW_EV_HEAP_ALLOC);
    cr_assert_eq(to_analyses_generation_ends(t.a, &with_locks), TB_OK);
    name_locks(&t, time, 0);
  }
  TT_FEED(&t, &with_locks, .time = 6 * SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
  cr_assert_eq(to_analyses_generation_ends(t.a, &with_locks), TB_OK);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "deadlocks")->number, 1);
  cr_assert_eq(tt_cell(r, "cycles", 0, "goroutine")->number, HOLDER);
  cr_assert_eq(tt_cell(r, "cycles", 0, "length")->number, 1);
  cr_assert_eq(tt_table(r, "chains")->rows, 2);
  cr_assert_str_eq(text(r, "chains", 0, "link"), "exact");
  cr_assert_str_eq(text(r, "chains", 0, "end"), "cycle");
  cr_assert_eq(tt_cell(r, "chains", 0, "length")->number, 2);
  tt_analyses_close(&t);
}

Test(an_contention, three_that_wait_for_one_lock_are_a_convoy_wherever_they_wait) {
  struct tt_analyses t;

  open_with_locks(&t, 5);
  lock_blocks(&t, 100, 2, TABLE, LOCK);
  lock_blocks(&t, 110, 3, TABLE, QUEUE);
  lock_blocks(&t, 120, 4, TABLE, UNLOCK);
  lock_blocks(&t, 130, 5, TABLE, LOCK);
  wake(&t, 140, 5);
  for (to_ns time = 1000; time <= 2000; time += 1000) {
    cr_assert_eq(to_analyses_generation_ends(t.a, &with_locks), TB_OK);
    name_locks(&t, time, 0);
  }
  TT_FEED(&t, &with_locks, .time = 2500, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "convoys")->number, 0, "no stack has one");
  cr_assert_eq(tt_table(r, "convoys")->rows, 1);
  cr_assert(tt_cell(r, "convoys", 0, "stack")->none);
  cr_assert_str_eq(text(r, "convoys", 0, "object"), "table_lock");
  cr_assert_eq(tt_cell(r, "convoys", 0, "longest_queue")->number, 4);
  cr_assert_eq(tt_cell(r, "convoys", 0, "since_ns")->number, 1);
  cr_assert_eq(tt_cell(r, "convoys", 0, "now")->number, 1);
  tt_analyses_close(&t);
}

Test(an_contention, a_wait_keeps_its_lock_over_generations) {
  struct tt_analyses t;

  open_with_locks(&t, 2);
  lock_blocks(&t, 100, 2, TABLE, LOCK);
  cr_assert_eq(to_analyses_generation_ends(t.a, &with_locks), TB_OK);
  sync_event(&t, 1000); /* a generation that names no locks */
  wake(&t, 1100, 2);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_lock")->rows, 1);
  cr_assert_str_eq(text(r, "by_lock", 0, "object"), "table_lock");
  expect_waits(r, "by_lock", 0, 1, 1000);
  tt_analyses_close(&t);
}

Test(an_contention, waits_that_could_not_name_their_lock_are_said) {
  struct tt_analyses t;

  open_with_locks(&t, 2);
  cr_assert_eq(report(&t, TO_WINDOW_ALL)->notes, 0);
  name_locks(&t, 10, 7);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(r->notes, 1);
  cr_assert_str_eq(r->note[0],
                   "7 waits since the stream began name no lock: more locks were waited "
                   "for in one generation than the agent can name.");
  tt_analyses_close(&t);
}

/* More pairs than have their own rows: the rest is in one row, and no wait is missing. */
Test(an_contention, sums_beyond_so_many_are_others) {
  enum { TIMES = TO_LOCK_SUMS_MAX + 10 };
  struct tt_analyses t;
  uint64_t waits = 0, rows;

  tt_analyses_open(&t, SECOND, 2 * TO_LOCK_SUMS_MAX);
  name_locks(&t, 1, 0);
  for (int64_t g = 1; g <= 2; g++)
    TT_FEED(&t, &with_locks, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
  for (int64_t g = 0; g < TIMES; g++) { /* each holder has its own entry function */
    static struct to_generation one;
    char function[32];
    snprintf(function, sizeof function, "main.holder%d", (int)g);
    one = with_locks;
    one.stack[QUEUE][0] = (struct tt_fake_frame){ (uint64_t)g + 1000, 1, function, "m.go" };
    one.stack[QUEUE][1] = (struct tt_fake_frame){ 0 };
    TT_FEED(&t, &one, .time = 10 * g + 10, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
            .type = TW_EV_SYNC);
    TT_FEED(&t, &one, .time = 10 * g + 11, .m = 2, .p = 2, .g = 2, .type = TW_EV_GO_BLOCK,
            .args = { g & 1 ? TABLE : CONFIG, LOCK });
    TT_FEED(&t, &one, .time = 10 * g + 15, .m = 1, .p = 1, .g = 1, .slot = slot(2),
            .type = TW_EV_GO_UNBLOCK, .args = { 2, 2, QUEUE });
    TT_FEED(&t, &one, .time = 10 * g + 15, .m = 2, .p = 2, .g = TO_NONE, .slot = slot(2),
            .type = TW_EV_GO_START, .args = { 2, 1 });
    cr_assert_eq(to_analyses_generation_ends(t.a, &one), TB_OK);
  }
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  rows = tt_table(r, "by_lock")->rows;
  for (size_t i = 0; i < rows; i++)
    waits += tt_cell(r, "by_lock", i, "waits")->distribution->sum.count;
  cr_assert_eq(waits, TIMES);
  cr_assert_eq(rows, 3);
  cr_assert(tt_table(r, "by_lock")->has_other);
  expect_waits(r, "by_lock", 2, 10, 40);
  tt_analyses_close(&t);
}
