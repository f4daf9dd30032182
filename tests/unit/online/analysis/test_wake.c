/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

enum { WORKER = 1, MAIN, OTHER_WORKER, OTHER_MAIN };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "chan receive" },
  .stack = { [WORKER] = { { 100, 7, "main.recv", "c.go" }, { 200, 9, "main.worker", "main.go" } },
             [MAIN] = { { 300, 8, "main.send", "c.go" }, { 400, 3, "main.main", "main.go" } },
             [OTHER_WORKER] = { { 101, 7, "main.r2", "c.go" },
                                { 200, 9, "main.worker", "main.go" } },
             [OTHER_MAIN] = { { 301, 8, "main.s2", "c.go" }, { 400, 3, "main.main", "main.go" } } },
};

static uint32_t slot(int64_t g) {
  return (uint32_t)g + 1;
}

static void open_stream(struct tt_analyses *t) {
  tt_analyses_open(t, SECOND, 100);
  TT_FEED(t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
  for (int64_t g = 1; g <= 3; g++)
    TT_FEED(t, &gen1, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
}

static void block(struct tt_analyses *t, to_ns time, int64_t g, uint64_t stack) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { 1, stack });
}

static void wake(struct tt_analyses *t, to_ns time, int64_t by, int64_t g, uint64_t stack) {
  TT_FEED(t, &gen1, .time = time, .m = by, .p = by, .g = by, .slot = slot(g),
          .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2, stack });
}

static void start(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static bool text_is(const struct to_report *r, size_t row, const char *column, const char *text) {
  return strcmp(tt_cell(r, "by_pair", row, column)->text.data, text) == 0;
}

Test(an_wake, pairs_are_of_entry_functions_whatever_the_stacks) {
  struct tt_analyses t;

  open_stream(&t);
  block(&t, 100, 2, WORKER);
  wake(&t, 150, 1, 2, MAIN);
  start(&t, 180, 2);
  block(&t, 200, 2, OTHER_WORKER);
  wake(&t, 260, 1, 2, OTHER_MAIN);
  start(&t, 300, 2);
  block(&t, 400, 1, MAIN);
  wake(&t, 470, 2, 1, WORKER);
  start(&t, 475, 1);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_WAKE, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "pairs")->number, 2);
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 30 + 40 + 5);
  cr_assert_eq(tt_distribution(r, "waits")->sum.total_ns, 50 + 60 + 70);
  cr_assert_eq(tt_table(r, "by_pair")->rows, 2);
  cr_assert(text_is(r, 0, "waker", "main.main"));
  cr_assert(text_is(r, 0, "woken", "main.worker"));
  cr_assert_eq(tt_cell(r, "by_pair", 0, "latency")->distribution->sum.count, 2);
  cr_assert_eq(tt_cell(r, "by_pair", 0, "latency")->distribution->p999_ns, 40);
  cr_assert_eq(tt_cell(r, "by_pair", 0, "waits")->distribution->sum.total_ns, 110);
  cr_assert(text_is(r, 1, "waker", "main.worker"));
  cr_assert(text_is(r, 1, "woken", "main.main"));
  cr_assert_eq(tt_cell(r, "by_pair", 1, "latency")->distribution->sum.total_ns, 5);
  cr_assert_eq(tt_cell(r, "by_pair", 1, "waits")->distribution->sum.total_ns, 70);
  tt_analyses_close(&t);
}

Test(an_wake, the_runtime_has_no_name_and_creation_is_no_wake) {
  struct tt_analyses t;

  open_stream(&t);
  block(&t, 100, 2, WORKER);
  wake(&t, 150, 3, 2, 0);
  start(&t, 180, 2);
  TT_FEED(&t, &gen1, .time = 200, .m = 1, .p = 1, .g = 1, .slot = slot(7), .type = TW_EV_GO_CREATE,
          .args = { 7, WORKER, MAIN });
  start(&t, 220, 7);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_WAKE, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_pair")->rows, 1);
  cr_assert(text_is(r, 0, "waker", ""));
  cr_assert_eq(tt_cell(r, "by_pair", 0, "latency")->distribution->sum.total_ns, 30);
  tt_analyses_close(&t);
}

Test(an_wake, combinations_beyond_the_limit_are_in_the_row_of_the_rest) {
  struct tt_analyses t;

  tt_analyses_open(&t, SECOND, 1);
  TT_FEED(&t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
  for (int64_t g = 1; g <= 2; g++)
    TT_FEED(&t, &gen1, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
  for (to_ns i = 1; i <= 3; i++) {
    block(&t, 1000 * i, 2, WORKER);
    wake(&t, 1000 * i + 10, 1, 2, MAIN);
    start(&t, 1000 * i + 15, 2);
  }
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_WAKE, TO_WINDOW_ALL);
  size_t rows = tt_table(r, "by_pair")->rows;
  cr_assert(tt_table(r, "by_pair")->has_other);
  cr_assert_eq(tt_cell(r, "by_pair", rows - 1, "waits")->distribution->sum.total_ns, 30);
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 15);
  tt_analyses_close(&t);
}
