/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

enum { OWN = 1, WAKER = 2 };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "sleep", [2] = "preempted" },
  .stack = { [OWN] = { { 100, 7, "chan.recv", "chan.go" }, { 200, 9, "main.worker", "main.go" } },
             [WAKER] = { { 300, 8, "chan.send", "chan.go" }, { 400, 3, "main.main", "main.go" } } },
};

static uint32_t slot(int64_t g) {
  return (uint32_t)g + 1;
}

static void open_stream(struct tt_analyses *t, size_t stacks_max) {
  tt_analyses_open(t, 10 * MS, stacks_max);
  TT_FEED(t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

static void status(struct tt_analyses *t, to_ns time, int64_t g, enum tw_go_status state) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, state });
}

static void start(struct tt_analyses *t, to_ns time, int64_t p, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = p, .p = p, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static void block(struct tt_analyses *t, to_ns time, int64_t p, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = p, .p = p, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { 1, OWN });
}

static void unblock(struct tt_analyses *t, to_ns time, int64_t p, int64_t by, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = p, .p = p, .g = by, .slot = slot(g),
          .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2, WAKER });
}

static void proc(struct tt_analyses *t, to_ns time, int64_t p, enum tw_proc_status state) {
  TT_FEED(t, &gen1, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
          .type = TW_EV_PROC_STATUS, .args = { (uint64_t)p, state, TO_PROC_UNDETERMINED });
}

static const struct to_report *report(struct tt_analyses *t, enum to_window window) {
  return tt_report(t, TO_ANALYSIS_SCHED, window);
}

static bool text_is(const struct to_value *value, const char *text) {
  return !value->none && strcmp(value->text.data, text) == 0;
}

Test(an_sched, a_wait_counts_by_cause_entry_stack_and_waker) {
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 10, 1, TW_GO_RUNNING);
  status(&t, 20, 2, TW_GO_RUNNING);
  block(&t, 100, 2, 2);
  unblock(&t, 200, 1, 1, 2);
  start(&t, 500, 2, 2);
  block(&t, 600, 2, 2);
  unblock(&t, 700, 1, 1, 2);
  start(&t, 800, 2, 2);
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, 2);
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 400);
  cr_assert_eq(tt_distribution(r, "latency")->p999_ns, 300);
  cr_assert_eq(tt_table(r, "by_cause")->rows, 1);
  cr_assert(text_is(tt_cell(r, "by_cause", 0, "cause"), "unblocked"));
  cr_assert(text_is(tt_cell(r, "by_entry", 0, "entry"), "main.worker"));
  cr_assert_eq(tt_cell(r, "by_stack", 0, "stack")->stack->frames[0]->pc, 100);
  cr_assert_eq(tt_cell(r, "by_waker", 0, "waker_stack")->stack->frames[0]->pc, 300);
  cr_assert_eq(tt_cell(r, "by_waker", 0, "latency")->distribution->sum.total_ns, 400);
  cr_assert_eq(tt_table(r, "longest")->rows, 2);
  cr_assert_eq(tt_cell(r, "longest", 0, "latency_ns")->number, 300);
  cr_assert_eq(tt_cell(r, "longest", 0, "goroutine")->number, 2);
  cr_assert_eq(tt_cell(r, "longest", 0, "waker")->number, 1);
  cr_assert_eq(tt_cell(r, "longest", 0, "start_ns")->number, 200);
  cr_assert_eq(tt_table(r, "waiting_now")->rows, 0);
  tt_analyses_close(&t);
}

Test(an_sched, what_waits_now_is_in_no_sum_and_listed_with_its_waker) {
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 10, 1, TW_GO_RUNNING);
  status(&t, 20, 2, TW_GO_RUNNING);
  status(&t, 30, 3, TW_GO_RUNNABLE);
  block(&t, 100, 2, 2);
  unblock(&t, 200, 1, 1, 2);
  TT_FEED(&t, &gen1, .time = 900, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, 0);
  cr_assert_eq(tt_figure(r, "waiting")->number, 2);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "goroutine")->number, 3, "oldest first");
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "lower_bound")->number, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 1, "age_ns")->number, 700);
  cr_assert_eq(tt_cell(r, "waiting_now", 1, "waker")->number, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 1, "stack")->stack->frames[1]->pc, 200);
  to_analyses_epoch(t.a);
  r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "waiting")->number, 0);
  cr_assert_eq(tt_figure(r, "cut")->number, 2);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, 0);
  tt_analyses_close(&t);
}

Test(an_sched, time_is_wasted_while_a_goroutine_waits_and_a_P_is_idle) {
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 1, 1, TW_GO_RUNNING);
  status(&t, 1, 2, TW_GO_RUNNING);
  proc(&t, 1, 1, TW_PROC_RUNNING);
  proc(&t, 1, 7, TW_PROC_IDLE);
  block(&t, 100, 2, 2);
  unblock(&t, 201, 1, 1, 2);
  TT_FEED(&t, &gen1, .time = 301, .m = 9, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_START,
          .args = { 7, 1 });
  start(&t, 401, 2, 2);
  TT_FEED(&t, &gen1, .time = 1001, .m = 9, .type = TW_EV_HEAP_ALLOC);
  cr_assert_float_eq(tt_figure(report(&t, TO_WINDOW_ALL), "wasted_share")->share, 0.1, 1e-9);
  tt_analyses_close(&t);
}

/* A wait each second, each of a different length: every window lists the longest waits of its
 * own stretch. */
Test(an_sched, the_longest_waits_are_those_of_the_window) {
  enum { SECONDS = 400 };
  static to_ns length[SECONDS + 1];
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 1, 1, TW_GO_RUNNING);
  status(&t, 1, 2, TW_GO_RUNNING);
  for (int64_t i = 1; i <= SECONDS; i++) {
    length[i] = 1000 + (i * 7919) % 10007;
    block(&t, i * SECOND, 2, 2);
    unblock(&t, i * SECOND + 1, 1, 1, 2);
    start(&t, i * SECOND + 1 + length[i], 2, 2);
  }
  for (unsigned w = 0; w < TO_WINDOWS; w++) {
    const struct to_report *r = report(&t, (enum to_window)w);
    to_ns left = INT64_MAX;
    cr_assert_eq(tt_table(r, "longest")->rows, w == TO_WINDOW_10S ? 11 : 16);
    for (size_t row = 0; row < tt_table(r, "longest")->rows; row++) {
      to_ns longest = 0;
      for (int64_t i = 1; i <= SECONDS; i++)
        if (i * SECOND >= r->from && length[i] > longest && length[i] < left) longest = length[i];
      cr_assert_eq(tt_cell(r, "longest", row, "latency_ns")->number, longest, "window %u", w);
      left = longest;
    }
  }
  tt_analyses_close(&t);
}

/* No wait is longer than the first ones, of which there are more than are kept. */
Test(an_sched, the_longest_waits_are_known_where_waits_get_ever_shorter) {
  enum { SECONDS = 1000 };
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 1, 1, TW_GO_RUNNING);
  status(&t, 1, 2, TW_GO_RUNNING);
  for (int64_t i = 1; i <= SECONDS; i++) {
    block(&t, i * SECOND, 2, 2);
    unblock(&t, i * SECOND + 1, 1, 1, 2);
    start(&t, i * SECOND + 1 + 5000 - i, 2, 2);
  }
  for (unsigned w = 0; w < TO_WINDOWS; w++) {
    const struct to_report *r = report(&t, (enum to_window)w);
    int64_t first = r->from / SECOND > 0 ? r->from / SECOND : 1;
    cr_assert_eq(tt_table(r, "longest")->rows, w == TO_WINDOW_10S ? 11 : 16);
    for (int64_t row = 0; row < (int64_t)tt_table(r, "longest")->rows; row++)
      cr_assert_eq(tt_cell(r, "longest", (size_t)row, "latency_ns")->number, 5000 - first - row,
                   "window %u", w);
  }
  tt_analyses_close(&t);
}

/* The clock falls by five seconds: earlier waits are only in the window that covers everything,
 * whatever their times are. */
Test(an_sched, the_longest_waits_before_the_clock_fell_are_in_no_window) {
  struct tt_analyses t;

  for (to_ns before = 0; before < 2; before++) {
    open_stream(&t, 100);
    status(&t, 1, 1, TW_GO_RUNNING);
    status(&t, 1, 2, TW_GO_RUNNING);
    block(&t, 100 * SECOND, 2, 2);
    unblock(&t, 100 * SECOND + 1, 1, 1, 2);
    start(&t, 100 * SECOND + 7001, 2, 2);
    if (before == 1) TT_FEED(&t, &gen1, .time = 102 * SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
    to_analyses_epoch(t.a);
    TT_FEED(&t, &gen1, .time = 97 * SECOND, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
            .type = TW_EV_SYNC);
    cr_assert_eq(tt_table(report(&t, TO_WINDOW_1MIN), "longest")->rows, 0);
    status(&t, 97 * SECOND + 1, 1, TW_GO_RUNNING);
    status(&t, 97 * SECOND + 2, 2, TW_GO_RUNNING);
    block(&t, 101 * SECOND, 2, 2);
    unblock(&t, 101 * SECOND + 1, 1, 1, 2);
    start(&t, 101 * SECOND + 4001, 2, 2);
    const struct to_report *r = report(&t, TO_WINDOW_10S);
    cr_assert_eq(tt_table(r, "longest")->rows, 1);
    cr_assert_eq(tt_cell(r, "longest", 0, "latency_ns")->number, 4000);
    cr_assert_eq(tt_table(report(&t, TO_WINDOW_ALL), "longest")->rows, 2);
    tt_analyses_close(&t);
  }
}

Test(an_sched, combinations_beyond_the_limit_are_summed_by_cause) {
  static struct to_generation many = { .number = 1 };
  struct tt_analyses t;

  for (uint64_t i = 1; i <= TT_FAKE_STACKS; i++)
    many.stack[i][0] = (struct tt_fake_frame){ 1000 + i, i, "f", "f.c" };
  tt_analyses_open(&t, 10 * MS, 3);
  TT_FEED(&t, &many, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
  status(&t, 1, 1, TW_GO_RUNNING);
  status(&t, 1, 2, TW_GO_RUNNING);
  for (to_ns i = 1; i <= TT_FAKE_STACKS; i++) {
    TT_FEED(&t, &many, .time = i * 1000, .m = 2, .p = 2, .g = 2, .type = TW_EV_GO_BLOCK,
            .args = { 1, (uint64_t)i });
    TT_FEED(&t, &many, .time = i * 1000, .m = 1, .p = 1, .g = 1, .slot = slot(2),
            .type = TW_EV_GO_UNBLOCK, .args = { 2, 2, 0 });
    TT_FEED(&t, &many, .time = i * 1000 + i, .m = 2, .p = 2, .g = TO_NONE, .slot = slot(2),
            .type = TW_EV_GO_START, .args = { 2, 1 });
  }
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  size_t rows = tt_table(r, "by_stack")->rows;
  cr_assert(tt_table(r, "by_stack")->has_other);
  cr_assert_eq(rows, 4);
  cr_assert_eq(tt_cell(r, "by_stack", rows - 1, "latency")->distribution->sum.total_ns,
               4 + 5 + 6 + 7 + 8);
  cr_assert_eq(tt_cell(r, "by_cause", 0, "latency")->distribution->sum.count, 8);
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 36);
  tt_analyses_close(&t);
}

/* Eight stacks, each woken from eight, with two thousand lengths each. */
Test(an_sched, tables_of_few_rows_are_within_a_percent_where_stacks_are_coarser) {
  enum { LENGTHS = 2048 };
  static struct to_generation many = { .number = 1 };
  struct tt_analyses t;
  size_t coarser = 0;
  to_ns now = 1000;

  for (uint64_t i = 1; i <= TT_FAKE_STACKS; i++)
    many.stack[i][0] = (struct tt_fake_frame){ 1000 + i, i, "f", "f.c" };
  tt_analyses_open(&t, 10 * MS, 100);
  TT_FEED(&t, &many, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
  status(&t, 1, 1, TW_GO_RUNNING);
  status(&t, 1, 2, TW_GO_RUNNING);
  for (to_ns i = 0; i < TT_FAKE_STACKS * TT_FAKE_STACKS * LENGTHS; i++) {
    uint64_t pair = (uint64_t)(i / LENGTHS);
    TT_FEED(&t, &many, .time = now, .m = 2, .p = 2, .g = 2, .type = TW_EV_GO_BLOCK,
            .args = { 1, 1 + pair % TT_FAKE_STACKS });
    TT_FEED(&t, &many, .time = now, .m = 1, .p = 1, .g = 1, .slot = slot(2),
            .type = TW_EV_GO_UNBLOCK, .args = { 2, 2, 1 + pair / TT_FAKE_STACKS });
    now += i % LENGTHS;
    TT_FEED(&t, &many, .time = now, .m = 2, .p = 2, .g = TO_NONE, .slot = slot(2),
            .type = TW_EV_GO_START, .args = { 2, 1 });
  }
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_geq(tt_distribution(r, "latency")->histogram.scale, 5);
  cr_assert(tt_distribution(r, "latency")->has_quantiles);
  cr_assert(tt_cell(r, "by_cause", 0, "latency")->distribution->has_quantiles);
  cr_assert(tt_cell(r, "by_entry", 0, "latency")->distribution->has_quantiles);
  cr_assert_eq(tt_cell(r, "by_entry", 0, "latency")->distribution->p99_ns,
               tt_distribution(r, "latency")->p99_ns);
  for (size_t row = 0; row < tt_table(r, "by_stack")->rows; row++)
    coarser += tt_cell(r, "by_stack", row, "latency")->distribution->histogram.scale < 5;
  cr_assert_gt(coarser, 0);
  tt_analyses_close(&t);
}

static void stop(struct tt_analyses *t, to_ns time, int64_t g, bool begins) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g,
          .type = begins ? TW_EV_STW_BEGIN : TW_EV_STW_END, .args = { 2, OWN });
}

Test(an_sched, waits_while_the_world_stands_still_are_set_apart) {
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 10, 1, TW_GO_RUNNING);
  status(&t, 20, 2, TW_GO_RUNNABLE);
  status(&t, 20, 3, TW_GO_WAITING);
  stop(&t, 100, 1, true);
  stop(&t, 150, 1, true); /* one goroutine, two reasons: the world is stopped once */
  unblock(&t, 180, 1, 1, 3);
  stop(&t, 200, 1, false);
  status(&t, 290, 4, TW_GO_RUNNABLE); /* not known before */
  stop(&t, 300, 1, false);
  start(&t, 400, 2, 2);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "stopped_ns")->number, 200 + 120 + 10);
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 399, "it is a part of the waits");
  stop(&t, 500, 1, true);
  start(&t, 510, 4, 4);
  start(&t, 520, 3, 3);
  TT_FEED(&t, &gen1, .time = 600, .m = 9, .type = TW_EV_HEAP_ALLOC);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_ALL), "stopped_ns")->number, 360, "it goes on");
  to_analyses_epoch(t.a);
  status(&t, 1000, 2, TW_GO_RUNNABLE);
  status(&t, 1100, 1, TW_GO_RUNNING);
  cr_assert_eq(tt_figure(report(&t, TO_WINDOW_ALL), "stopped_ns")->number, 360, "a hole");
  tt_analyses_close(&t);
}

Test(an_sched, of_very_many_that_wait_the_oldest_are_listed_and_all_counted) {
  enum { GOROUTINES = 5000 };
  struct tt_analyses t;
  const struct to_report *r;

  open_stream(&t, 100);
  status(&t, 10, 1, TW_GO_RUNNING);
  for (int64_t i = GOROUTINES; i > 0; i--)
    TT_FEED(&t, &gen1, .time = 20 + 10 * (GOROUTINES - i), .m = 1, .p = 1, .g = 1,
            .slot = slot(i + 1), .type = TW_EV_GO_CREATE, .args = { (uint64_t)i + 1, OWN, WAKER });
  cr_assert_eq(to_analyses_report(t.a, TO_ANALYSIS_SCHED, TO_WINDOW_ALL, 2 * GOROUTINES, &r),
               TB_OK);
  cr_assert_eq(tt_figure(r, "waiting")->number, GOROUTINES);
  cr_assert_eq(tt_table(r, "waiting_now")->rows, 1024);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "goroutine")->number, GOROUTINES + 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "age_ns")->number, 10 * (GOROUTINES - 1));
  cr_assert_eq(tt_cell(r, "waiting_now", 0, "waker")->number, 1);
  cr_assert_eq(tt_cell(r, "waiting_now", 1023, "goroutine")->number, GOROUTINES + 1 - 1023);
  tt_analyses_close(&t);
}
