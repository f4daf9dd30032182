/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

enum { WAITS = 1, SITE = 2, BEGIN = 3 };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "chan receive" },
  .stack = { [WAITS] = { { 100, 7, "main.worker", "main.go" } },
             [SITE] = { { 300, 8, "main.main", "main.go" } },
             [BEGIN] = { { 200, 9, "main.worker", "main.go" } } },
};

static void open_stream(struct tt_analyses *t) {
  tt_analyses_open(t, 10000000, 100);
  TT_FEED(t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
  TT_FEED(t, &gen1, .time = 1, .m = 1, .p = 1, .g = TO_NONE, .slot = 1, .type = TW_EV_GO_STATUS,
          .args = { 1, 1, TW_GO_RUNNING });
}

static void create_at(struct tt_analyses *t, to_ns time, int64_t g, uint64_t begins,
                      uint64_t site) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 1, .g = 1, .slot = (uint32_t)g,
          .type = TW_EV_GO_CREATE, .args = { (uint64_t)g, begins, site });
  TT_FEED(t, &gen1, .time = time + 1, .m = 2, .p = 2, .g = TO_NONE, .slot = (uint32_t)g,
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static void create(struct tt_analyses *t, to_ns time, int64_t g) {
  create_at(t, time, g, BEGIN, SITE);
}

static void block(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = 2, .p = 2, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { 1, WAITS });
}

static void end(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = 2, .p = 2, .g = g, .type = TW_EV_GO_DESTROY);
}

static const struct to_report *report(struct tt_analyses *t) {
  return tt_report(t, TO_ANALYSIS_LEAK, TO_WINDOW_ALL);
}

static void take_words(void *self, const struct to_finding *finding) {
  if (finding->kind == TO_FINDING_LEAK)
    snprintf(self, 400, "%.*s", (int)finding->words.len, finding->words.data);
}

/* Starts one goroutine every 5 s, for 65 s; none of them ends. */
Test(an_leak, ever_more_that_wait_are_suspects) {
  struct tt_analyses t;

  open_stream(&t);
  for (int64_t i = 1; i <= 13; i++) {
    create(&t, 5 * i * SECOND, i + 1);
    block(&t, 5 * i * SECOND + 10, i + 1);
  }
  const struct to_report *r = report(&t);
  cr_assert_eq(r->notes, 0);
  cr_assert_eq(tt_figure(r, "suspects")->number, 6, "those of the first 30 s wait for over 30 s");
  cr_assert_eq(tt_table(r, "suspects")->rows, 1);
  cr_assert_eq(tt_cell(r, "suspects", 0, "count")->number, 6);
  cr_assert_eq(tt_cell(r, "suspects", 0, "oldest_wait_ns")->number, 60 * SECOND);
  cr_assert_eq(tt_cell(r, "suspects", 0, "alive")->number, 13);
  cr_assert_eq(tt_cell(r, "suspects", 0, "rise")->number, 10);
  cr_assert(tt_cell(r, "suspects", 0, "median_life_ns")->none);
  cr_assert_eq(tt_cell(r, "suspects", 0, "creation_stack")->stack->frames[0]->pc, 300);
  cr_assert_eq(tt_cell(r, "suspects", 0, "stack")->stack->frames[0]->pc, 100);
  tt_analyses_close(&t);
}

static void expect_leak(uint64_t begins, uint64_t site_pc, const char *words) {
  struct tt_analyses t;
  char found[400] = "";

  open_stream(&t);
  for (int64_t i = 1; i <= 13; i++) {
    create_at(&t, 5 * i * SECOND, i + 1, begins, 0);
    block(&t, 5 * i * SECOND + 10, i + 1);
  }
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_figure(r, "suspects")->number, 6);
  const struct to_callstack *site = tt_cell(r, "suspects", 0, "creation_stack")->stack;
  cr_assert_eq(site->len > 0 ? site->frames[0]->pc : 0, site_pc);
  cr_assert_eq(to_analyses_generation_ends(t.a, &gen1), TB_OK);
  cr_assert_eq(to_analyses_findings(t.a, &(struct to_finding_sink){ found, take_words }), TB_OK);
  cr_assert_not_null(strstr(found, words), "said: %s", found);
  tt_analyses_close(&t);
}

/* The runtime creates the goroutines of time.AfterFunc: the trace has no stack of their creation. */
Test(an_leak, goroutines_that_no_goroutine_created_count_by_where_they_begin) {
  expect_leak(BEGIN, 200,
              "created by the runtime, they begin in main.worker, they wait at main.worker");
}

Test(an_leak, goroutines_of_which_nothing_is_known_are_a_group_too) {
  expect_leak(0, 0, "created at an unknown place, they wait at main.worker");
}

/* The same, but one goroutine in each period ends, so the number of living goroutines does not grow. */
Test(an_leak, a_place_that_does_not_grow_is_no_suspect) {
  struct tt_analyses t;

  open_stream(&t);
  for (int64_t i = 1; i <= 13; i++) {
    create(&t, 5 * i * SECOND, i + 1);
    if (i % 2 == 0 || i > 8)
      end(&t, 5 * i * SECOND + 10, i + 1);
    else
      block(&t, 5 * i * SECOND + 10, i + 1);
  }
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_figure(r, "suspects")->number, 0);
  cr_assert_eq(tt_table(r, "suspects")->rows, 0);
  tt_analyses_close(&t);
}

/* The goroutines that end live for 10 ns, so the limit is 100 ns. */
Test(an_leak, the_limit_is_ten_times_the_median_life) {
  struct tt_analyses t;

  open_stream(&t);
  for (int64_t i = 1; i <= 13; i++) {
    create(&t, 5 * i * SECOND, i + 1);
    if (i % 2 == 0)
      end(&t, 5 * i * SECOND + 10, i + 1);
    else
      block(&t, 5 * i * SECOND + 10, i + 1);
  }
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_cell(r, "suspects", 0, "count")->number, 6, "all but the newest");
  cr_assert_eq(tt_cell(r, "suspects", 0, "median_life_ns")->number, 10);
  tt_analyses_close(&t);
}

Test(an_leak, a_short_trace_says_that_it_is_too_short) {
  struct tt_analyses t;

  open_stream(&t);
  create(&t, 5 * SECOND, 2);
  const struct to_report *r = report(&t);
  cr_assert_eq(r->notes, 1);
  cr_assert_eq(tt_figure(r, "periods")->number, 0);
  tt_analyses_close(&t);
}
