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

static const struct to_report *report(struct tt_analyses *t) {
  return tt_report(t, TO_ANALYSIS_LEAK, TO_WINDOW_ALL);
}

static void take_words(void *self, const struct to_finding *finding) {
  if (finding->kind == TO_FINDING_LEAK)
    snprintf(self, 400, "%.*s", (int)finding->words.len, finding->words.data);
}

/* Starts one goroutine every 5 s, up to this time; none of them ends. */
static void leak_until(struct tt_analyses *t, to_ns until, uint64_t begins, uint64_t site) {
  for (int64_t i = 1; 5 * i * SECOND <= until; i++) {
    create_at(t, 5 * i * SECOND, i + 1, begins, site);
    block(t, 5 * i * SECOND + 10, i + 1);
  }
}

static void wake(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 1, .g = 1, .slot = (uint32_t)g,
          .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2 });
  TT_FEED(t, &gen1, .time = time + 1, .m = 2, .p = 2, .g = TO_NONE, .slot = (uint32_t)g,
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 3 });
}

static void tick(struct tt_analyses *t, to_ns time) {
  TT_FEED(t, &gen1, .time = time, .m = 9, .type = TW_EV_HEAP_ALLOC);
}

Test(an_leak, a_pile_up_that_grows_in_six_periods_is_a_suspect) {
  struct tt_analyses t;

  open_stream(&t);
  leak_until(&t, 65 * SECOND, BEGIN, SITE);
  cr_assert_eq(tt_figure(report(&t), "suspects")->number, 0, "the first reading is that of 10 s");
  cr_assert_eq(report(&t)->notes, 1);
  cr_assert_str_eq(
      report(&t)->note[0],
      "A leak is found by 7 counts of the waiting goroutines, one each 10 s: that needs "
      "70 s of this trace, and there are 65 s.");
  create(&t, 70 * SECOND, 15);
  block(&t, 70 * SECOND + 10, 15);
  const struct to_report *r = report(&t);
  cr_assert_eq(r->notes, 0);
  cr_assert_eq(tt_figure(r, "periods")->number, 6);
  cr_assert_eq(tt_figure(r, "suspects")->number, 12, "those that waited for 10 s");
  cr_assert_eq(tt_table(r, "suspects")->rows, 1);
  cr_assert_eq(tt_cell(r, "suspects", 0, "count")->number, 12);
  cr_assert_eq(tt_cell(r, "suspects", 0, "oldest_wait_ns")->number, 65 * SECOND);
  cr_assert_eq(tt_cell(r, "suspects", 0, "alive")->number, 14);
  cr_assert_eq(tt_cell(r, "suspects", 0, "rise")->number, 12);
  cr_assert(tt_cell(r, "suspects", 0, "median_life_ns")->none);
  cr_assert_eq(tt_cell(r, "suspects", 0, "creation_stack")->stack->frames[0]->pc, 300);
  cr_assert_eq(tt_cell(r, "suspects", 0, "stack")->stack->frames[0]->pc, 100);
  tt_analyses_close(&t);
}

static void expect_leak(uint64_t begins, uint64_t site_pc, const char *words) {
  struct tt_analyses t;
  char found[400] = "";

  open_stream(&t);
  leak_until(&t, 70 * SECOND, begins, 0);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_figure(r, "suspects")->number, 12);
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
              "created by the runtime, they begin in main.worker, they wait at main.worker, the "
              "longest for 65 s; 12 more wait there than 60 s before");
}

Test(an_leak, goroutines_of_which_nothing_is_known_are_a_group_too) {
  expect_leak(0, 0, "created at an unknown place, they wait at main.worker");
}

/* All but the goroutine that left are still there, and the pile-up is larger in each period. */
static void expect_left(to_ns waited, int64_t suspects) {
  struct tt_analyses t;

  open_stream(&t);
  leak_until(&t, 55 * SECOND, BEGIN, SITE);
  wake(&t, 50 * SECOND + waited, 11);
  for (int64_t i = 12; i <= 16; i++) {
    create(&t, 5 * i * SECOND, i + 1);
    block(&t, 5 * i * SECOND + 10, i + 1);
  }
  cr_assert_eq(tt_figure(report(&t), "suspects")->number, suspects);
  tt_analyses_close(&t);
}

Test(an_leak, a_pile_up_that_a_goroutine_left_after_a_whole_period_is_none) {
  expect_left(10 * SECOND + 10, 0);
}

Test(an_leak, goroutines_that_leave_sooner_do_not_count) {
  expect_left(9 * SECOND, 13);
}

Test(an_leak, a_period_without_growth_begins_the_row_anew) {
  struct tt_analyses t;

  open_stream(&t);
  leak_until(&t, 40 * SECOND, BEGIN, SITE);
  for (to_ns s = 41; s < 65; s++) tick(&t, s * SECOND);
  for (int64_t i = 13; i <= 23; i++) {
    create(&t, 5 * i * SECOND, i);
    block(&t, 5 * i * SECOND + 10, i);
    cr_assert_eq(tt_figure(report(&t), "suspects")->number, 0, "at %d s", (int)(5 * i));
  }
  create(&t, 120 * SECOND, 24);
  cr_assert_gt(tt_figure(report(&t), "suspects")->number, 0);
  tt_analyses_close(&t);
}

Test(an_leak, a_leak_lasts_until_a_goroutine_leaves_it) {
  struct tt_analyses t;

  open_stream(&t);
  leak_until(&t, 70 * SECOND, BEGIN, SITE);
  for (to_ns s = 71; s < 130; s++) tick(&t, s * SECOND);
  cr_assert_eq(tt_figure(report(&t), "suspects")->number, 14, "it does not grow any more");
  wake(&t, 131 * SECOND, 2);
  tick(&t, 141 * SECOND);
  cr_assert_eq(tt_figure(report(&t), "suspects")->number, 0);
  tt_analyses_close(&t);
}

static bool knows(void *self, const struct to_callstack *stack) {
  unsigned *asked = self;

  ++*asked;
  return stack->frames[0]->pc == 100;
}

/* The collector was restarted: the trace states goroutines that wait, and the pile-up does not grow any more. */
Test(an_leak, a_leak_that_was_known_before_goes_on_at_the_first_reading) {
  for (int64_t goroutines = 9; goroutines <= 10; goroutines++) {
    unsigned asked = 0;
    const struct to_analysis_config config = { .stacks_max = 100,
                                               .was_leak = knows,
                                               .self = &asked };
    struct tt_analyses t;
    char found[400] = "";

    tb_mem_init(&t.mem, tb_mem_libc, NULL, SIZE_MAX);
    cr_assert_eq(to_analyses_new(&t.mem, &config, &t.a), TB_OK);
    TT_FEED(&t, &gen1, .time = 9 * SECOND, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
            .type = TW_EV_SYNC, .args = { 1 });
    for (int64_t g = 2; g < 2 + goroutines; g++) {
      TT_FEED(&t, &gen1, .time = 9 * SECOND, .m = 1, .p = 1, .g = TO_NONE, .slot = (uint32_t)g,
              .type = TW_EV_GO_STATUS_STACK,
              .args = { (uint64_t)g, UINT64_MAX, TW_GO_WAITING, WAITS });
    }
    for (to_ns s = 10; s < 40; s++) tick(&t, s * SECOND);
    cr_assert_eq(tt_figure(report(&t), "suspects")->number, goroutines == 10 ? 10 : 0);
    bool is_short = false;
    for (size_t i = 0; i < report(&t)->notes; i++)
      is_short |=
          strstr(report(&t)->note[i], "that needs 61 s of this trace, and there are 30 s") != NULL;
    cr_assert_eq(is_short, goroutines == 9, "never together with suspects");
    cr_assert_eq(asked, goroutines == 10 ? 1 : 0, "a few are no pile-up");
    cr_assert_eq(to_analyses_generation_ends(t.a, &gen1), TB_OK);
    cr_assert_eq(to_analyses_findings(t.a, &(struct to_finding_sink){ found, take_words }), TB_OK);
    cr_assert_str_eq(found, goroutines < 10 ? ""
                                            : "created at an unknown place, they wait at "
                                              "main.worker, the longest for at least 30 s");
    tt_analyses_close(&t);
  }
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
