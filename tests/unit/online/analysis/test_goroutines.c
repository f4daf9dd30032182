/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "online/spans/sums.h"
#include "unit/online/analysis/fake_generation.h"

/* SITE and FAR share a place among the most recent sites. */
enum { WAITS = 1, SITE = 2, BEGIN = 3, NAMELESS = 4, FAR = SITE + TO_SUMS_RECENT_BIRTHS };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "chan receive", [2] = "forever" },
  .stack = { [WAITS] = { { 100, 7, "main.wait", "main.go" }, { 201, 9, "main.worker", "main.go" } },
             [SITE] = { { 300, 8, "main.main", "main.go" } },
             [BEGIN] = { { 200, 9, "main.worker", "main.go" } },
             [NAMELESS] = { { 400, 0, "", "" } },
             [FAR] = { { 500, 8, "main.far", "far.go" } } },
};

static void feed(struct tt_analyses *t, to_ns time, int64_t g, uint8_t type, uint64_t a,
                 uint64_t b) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = type, .args = { a, b });
}

static void open_stream(struct tt_analyses *t) {
  tt_analyses_open(t, 10000000, 100);
  TT_FEED(t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
  TT_FEED(t, &gen1, .time = 11, .m = 1, .p = 1, .g = TO_NONE, .slot = 1, .type = TW_EV_GO_STATUS,
          .args = { 1, 1, TW_GO_RUNNING });
}

static void create_at(struct tt_analyses *t, to_ns time, int64_t g, uint64_t site) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 1, .g = 1, .slot = (uint32_t)g,
          .type = TW_EV_GO_CREATE, .args = { (uint64_t)g, BEGIN, site });
}

static void create(struct tt_analyses *t, to_ns time, int64_t g) {
  create_at(t, time, g, SITE);
}

static void start(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = (uint32_t)g,
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static void unblock(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 1, .g = 1, .slot = (uint32_t)g,
          .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2, SITE });
}

static const struct to_report *report(struct tt_analyses *t, enum to_window window) {
  return tt_report(t, TO_ANALYSIS_GOROUTINES, window);
}

static size_t row_of(const struct to_report *r, const char *entry) {
  for (size_t row = 0; row < tt_table(r, "by_entry")->rows; row++)
    if (strcmp(tt_cell(r, "by_entry", row, "entry")->text.data, entry) == 0) return row;
  cr_assert_fail("no %s", entry);
  return 0;
}

static void expect(const struct to_report *r, const char *entry, const char *column, int64_t n) {
  cr_expect_eq(tt_cell(r, "by_entry", row_of(r, entry), column)->number, n, "%s.%s is %lld", entry,
               column, (long long)tt_cell(r, "by_entry", row_of(r, entry), column)->number);
}

Test(an_goroutines, time_adds_up_by_entry_function_with_what_goes_on) {
  struct tt_analyses t;

  open_stream(&t);
  create(&t, 101, 2);
  start(&t, 121, 2);
  feed(&t, 151, 2, TW_EV_GO_BLOCK, 1, WAITS);
  unblock(&t, 191, 2);
  start(&t, 241, 2);
  feed(&t, 301, 2, TW_EV_GO_DESTROY, 0, 0);
  create(&t, 401, 3);
  start(&t, 411, 3);
  feed(&t, 421, 3, TW_EV_GO_SYSCALL_BEGIN, 0, WAITS);
  feed(&t, 501, 3, TW_EV_GO_SYSCALL_END, 0, 0);
  feed(&t, 511, 3, TW_EV_GO_BLOCK, 1, WAITS);
  TT_FEED(&t, &gen1, .time = 1001, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  expect(r, "main.worker", "count", 2);
  expect(r, "main.worker", "total_ns", 200 + 600);
  expect(r, "main.worker", "execution_ns", 30 + 60 + 10 + 10);
  expect(r, "main.worker", "sched_wait_ns", 20 + 50 + 10);
  expect(r, "main.worker", "block_ns", 40 + 490);
  expect(r, "main.worker", "syscall_ns", 80);
  expect(r, "main.worker", "syscall_block_ns", 0);
  expect(r, "main.worker", "unknown_ns", 0);
  expect(r, "main.worker", "alive", 1);
  expect(r, "main.worker", "oldest_ns", 600);
  expect(r, "", "count", 1);
  expect(r, "", "execution_ns", 1000);
  cr_expect_eq(tt_cell(r, "by_entry_reason", 0, "block_ns")->number, 530);
  cr_expect_eq(tt_cell(r, "by_entry_reason", 0, "wait")->distribution->sum.total_ns, 40);
  r = report(&t, TO_WINDOW_10S);
  expect(r, "main.worker", "count", 1);
  expect(r, "main.worker", "total_ns", 200);
  expect(r, "main.worker", "block_ns", 40);
  expect(r, "main.worker", "alive", 1);
  tt_analyses_close(&t);
}

/* At an interruption Go 1.22 to 1.26 may record one frame without a name: Go's summary then
 * takes the next stack. */
Test(an_goroutines, a_frame_without_a_name_names_no_goroutine) {
  struct tt_analyses t;

  open_stream(&t);
  TT_FEED(&t, &gen1, .time = 20, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .slot = 2,
          .type = TW_EV_GO_STATUS_STACK,
          .args = { 2, (uint64_t)TO_NONE, TW_GO_RUNNABLE, NAMELESS });
  start(&t, 100, 2);
  feed(&t, 300, 2, TW_EV_GO_STOP, 2, NAMELESS);
  start(&t, 350, 2);
  feed(&t, 500, 2, TW_EV_GO_BLOCK, 1, WAITS);
  unblock(&t, 900, 2);
  start(&t, 950, 2);
  feed(&t, 1000, 2, TW_EV_GO_STOP, 2, NAMELESS);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_entry")->rows, 2, "goroutine 1 has shown no stack");
  expect(r, "main.worker", "count", 1);
  expect(r, "main.worker", "execution_ns", 200 + 150 + 50);
  expect(r, "main.worker", "sched_wait_ns", 99 + 50 + 50);
  tt_analyses_close(&t);
}

Test(an_goroutines, places_of_creation_and_states_over_time) {
  struct tt_analyses t;

  open_stream(&t);
  create(&t, 101, 2);
  create(&t, 101, 3);
  start(&t, 201, 2);
  feed(&t, 301, 2, TW_EV_GO_DESTROY, 0, 0);
  TT_FEED(&t, &gen1, .time = 1001, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_expect_eq(tt_figure(r, "alive")->number, 2);
  cr_expect_eq(tt_figure(r, "created")->number, 2);
  cr_expect_eq(tt_distribution(r, "life")->sum.total_ns, 200);
  cr_expect_eq(tt_cell(r, "by_site", 1, "alive")->number, 1);
  cr_expect_eq(tt_cell(r, "by_site", 1, "created")->number, 2);
  cr_expect_eq(tt_cell(r, "by_site", 1, "oldest_ns")->number, 900);
  cr_expect_eq(tt_cell(r, "by_site", 1, "creation_stack")->stack->frames[0]->pc, 300);
  cr_expect_str_eq(tt_cell(r, "states", 0, "state")->text.data, "Running");
  cr_expect_eq(tt_cell(r, "states", 0, "now")->number, 1);
  cr_expect_eq(tt_cell(r, "states", 0, "max")->number, 2);
  cr_expect_eq(tt_cell(r, "states", 0, "time_ns")->number, 1000 + 100);
  cr_expect_str_eq(tt_cell(r, "states", 1, "state")->text.data, "Runnable");
  cr_expect_eq(tt_cell(r, "states", 1, "max")->number, 2);
  cr_expect_eq(tt_cell(r, "states", 1, "time_ns")->number, 100 + 900);
  cr_expect_eq(tt_cell(r, "states", 1, "mean")->number, 1);
  to_analyses_epoch(t.a);
  r = report(&t, TO_WINDOW_ALL);
  cr_expect_eq(tt_figure(r, "alive")->number, 0);
  tt_analyses_close(&t);
}

Test(an_goroutines, a_place_of_creation_is_not_taken_for_the_one_met_before) {
  struct tt_analyses t;
  unsigned found = 0;

  open_stream(&t);
  create_at(&t, 101, 2, SITE);
  create_at(&t, 111, 3, FAR);
  create_at(&t, 121, 4, FAR);
  create_at(&t, 131, 5, SITE);
  create_at(&t, 141, 6, FAR);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  for (size_t row = 0; row < tt_table(r, "by_site")->rows; row++) {
    const struct to_value *stack = tt_cell(r, "by_site", row, "creation_stack");

    if (stack->stack == NULL || stack->stack->len == 0) continue;
    found++;
    cr_expect_eq(tt_cell(r, "by_site", row, "created")->number,
                 stack->stack->frames[0]->pc == 500 ? 3 : 2);
  }
  cr_expect_eq(found, 2);
  tt_analyses_close(&t);
}

/* In Go's summaries a goroutine that can never be woken has ended. */
Test(an_goroutines, one_that_waits_forever_has_ended) {
  struct tt_analyses t;

  open_stream(&t);
  create(&t, 101, 2);
  start(&t, 201, 2);
  feed(&t, 301, 2, TW_EV_GO_BLOCK, 2, WAITS);
  TT_FEED(&t, &gen1, .time = 1001, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  expect(r, "main.worker", "total_ns", 200);
  expect(r, "main.worker", "block_ns", 0);
  expect(r, "main.worker", "alive", 1);
  tt_analyses_close(&t);
}

/* Eight places of creation with lives of 0 ns to 0.1 ms: a row has too few buckets for all of them. */
Test(an_goroutines, all_lives_have_quantiles_within_a_percent_where_those_of_places_are_coarser) {
  enum { LENGTHS = 8192 };
  static struct to_generation many = { .number = 1 };
  struct tt_analyses t;
  size_t coarser = 0;
  to_ns now = 1000;

  for (uint64_t i = 1; i <= TT_FAKE_STACKS; i++)
    many.stack[i][0] = (struct tt_fake_frame){ 1000 + i, i, "f", "f.c" };
  open_stream(&t);
  for (to_ns i = 0; i < LENGTHS; i++) {
    to_ns length = i < 2048 ? i : (1024 + i % 1024) << (i / 1024 - 1);
    for (uint64_t g = 1; g <= TT_FAKE_STACKS; g++) {
      TT_FEED(&t, &many, .time = now, .m = 1, .p = 1, .g = 1, .slot = (uint32_t)g + 1,
              .type = TW_EV_GO_CREATE, .args = { g + 1, 1, g });
      start(&t, now, (int64_t)g + 1);
    }
    now += length;
    for (int64_t g = 2; g <= TT_FAKE_STACKS + 1; g++) feed(&t, now, g, TW_EV_GO_DESTROY, 0, 0);
  }
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "life")->sum.count, LENGTHS * TT_FAKE_STACKS);
  cr_assert(tt_distribution(r, "life")->has_quantiles);
  cr_assert_geq(tt_distribution(r, "life")->histogram.scale, 5);
  for (size_t row = 0; row < tt_table(r, "by_site")->rows; row++)
    coarser += tt_cell(r, "by_site", row, "life")->distribution->histogram.scale < 5;
  cr_assert_gt(coarser, 0);
  tt_analyses_close(&t);
}

static void range(struct tt_analyses *t, to_ns time, int64_t g, uint8_t type) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = type, .args = { 2, SITE });
}

/* The goroutines' first stack comes after their ranges. */
Test(an_goroutines, assists_sweeps_and_stops_are_summed_by_entry_function) {
  struct tt_analyses t;

  open_stream(&t);
  for (to_ns at = 101; at < 301; at += 2) { /* more than can be kept individually */
    range(&t, at, 1, TW_EV_GC_SWEEP_BEGIN);
    range(&t, at + 1, 1, TW_EV_GC_SWEEP_END);
  }
  range(&t, 301, 1, TW_EV_GC_MARK_ASSIST_BEGIN);
  range(&t, 341, 1, TW_EV_GC_MARK_ASSIST_END);
  feed(&t, 351, 1, TW_EV_GO_STOP, 1, WAITS);
  start(&t, 351, 1);
  create(&t, 401, 2);
  start(&t, 401, 2);
  range(&t, 411, 2, TW_EV_GC_MARK_ASSIST_BEGIN);
  range(&t, 421, 2, TW_EV_STW_BEGIN);
  range(&t, 428, 2, TW_EV_STW_END);
  feed(&t, 431, 2, TW_EV_GO_DESTROY, 0, 0); /* ends with an open assist */
  range(&t, 501, 1, TW_EV_GC_SWEEP_BEGIN);
  TT_FEED(&t, &gen1, .time = 601, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  expect(r, "main.worker", "gc_assist_ns", 40 + 20);
  expect(r, "main.worker", "gc_sweep_ns", 100);
  expect(r, "main.worker", "stw_ns", 7);
  r = report(&t, TO_WINDOW_ALL);
  expect(r, "main.worker", "gc_sweep_ns", 100 + 100);
  expect(r, "main.worker", "gc_assist_ns", 40 + 20);
  tt_analyses_close(&t);
}

/* An assist that the first generation reports as active on another thread, and one that a lost
 * generation cuts. */
Test(an_goroutines, ranges_that_the_trace_meets_count_from_its_begin_and_those_cut_do_not) {
  struct tt_analyses t;

  open_stream(&t);
  TT_FEED(&t, &gen1, .time = 21, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .slot = 2,
          .type = TW_EV_GO_STATUS_STACK, .args = { 2, TO_NONE, TW_GO_WAITING, BEGIN });
  TT_FEED(&t, &gen1, .time = 21, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
          .type = TW_EV_GC_MARK_ASSIST_ACTIVE, .args = { 2 });
  TT_FEED(&t, &gen1, .time = 101, .m = 9, .type = TW_EV_HEAP_ALLOC);
  expect(report(&t, TO_WINDOW_ALL), "main.worker", "gc_assist_ns", 100);
  unblock(&t, 201, 2);
  start(&t, 201, 2);
  range(&t, 301, 2, TW_EV_GC_MARK_ASSIST_END);
  expect(report(&t, TO_WINDOW_ALL), "main.worker", "gc_assist_ns", 300);
  range(&t, 401, 2, TW_EV_GC_MARK_ASSIST_BEGIN);
  to_analyses_epoch(t.a);
  expect(report(&t, TO_WINDOW_ALL), "main.worker", "gc_assist_ns", 300);
  tt_analyses_close(&t);
}

Test(an_goroutines, rates_are_those_of_the_window) {
  struct tt_analyses t;

  open_stream(&t);
  for (int64_t g = 2; g < 27; g++) create(&t, 101, g);
  start(&t, 201, 2);
  feed(&t, 301, 2, TW_EV_GO_DESTROY, 0, 0);
  TT_FEED(&t, &gen1, .time = 2000000001, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_expect_eq(tt_figure(r, "created_per_s")->number, 13, "25 in 2 s");
  cr_expect_eq(tt_figure(r, "ended_per_s")->number, 1, "1 in 2 s");
  TT_FEED(&t, &gen1, .time = 60000000001, .m = 9, .type = TW_EV_HEAP_ALLOC);
  cr_expect_eq(tt_figure(report(&t, TO_WINDOW_10S), "created_per_s")->number, 0);
  tt_analyses_close(&t);
}
