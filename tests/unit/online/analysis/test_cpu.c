/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

enum { BURN = 1, READ = 2, BARE = 3 };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "sync", [2] = "GC (dedicated)" },
  .stack = { [BURN] = { { 100, 7, "main.burn", "m.go" },
                        { 200, 9, "main.worker", "m.go" },
                        { 300, 1, "runtime.goexit", "asm.s" } },
             [READ] = { { 400, 7, "syscall.read", "s.go" }, { 200, 9, "main.worker", "m.go" } },
             [BARE] = { { 300, 1, "runtime.goexit", "asm.s" } } },
};

static void open_stream(struct tt_analyses *t, size_t stacks_max) {
  tt_analyses_open(t, 10 * MS, stacks_max);
  TT_FEED(t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

/* Goroutine g runs on P g and thread g. */
static void status(struct tt_analyses *t, int64_t g, enum tw_go_status status) {
  TT_FEED(t, &gen1, .time = 2, .m = g, .p = g, .g = TO_NONE, .slot = (uint32_t)g + 1,
          .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, status });
}

static void sample(struct tt_analyses *t, to_ns time, int64_t g, uint64_t stack) {
  TT_FEED(t, &gen1, .time = time, .m = 7, .p = g, .g = g, .type = TW_EV_CPU_SAMPLE,
          .args = { stack });
}

static int64_t samples(const struct to_report *r, const char *table, size_t row, const char *key) {
  const char *column = r->schema->table[to_schema_table(r->schema, table)].column[0].name;

  cr_assert_str_eq(tt_cell(r, table, row, column)->text.data, key);
  return tt_cell(r, table, row, "samples")->number;
}

Test(an_cpu, samples_count_by_stack_entry_label_and_state) {
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 1, TW_GO_RUNNING);
  status(&t, 2, TW_GO_SYSCALL);
  TT_FEED(&t, &gen1, .time = 5, .m = 1, .p = 1, .g = 1, .type = TW_EV_GO_LABEL, .args = { 2 });
  sample(&t, 10, 1, BURN);
  sample(&t, 20, 1, BURN);
  sample(&t, 30, 1, READ);
  sample(&t, 40, 2, READ);
  sample(&t, 50, TO_NONE, BARE);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_CPU, TO_WINDOW_10S);
  cr_assert_eq(tt_figure(r, "samples")->number, 5);
  cr_assert_eq(tt_figure(r, "has_samples")->number, 1);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 3);
  cr_assert_eq(tt_cell(r, "by_stack", 2, "stack")->stack->frames[0]->pc, 300);
  cr_assert_eq(tt_cell(r, "by_stack", 2, "samples")->number, 1);
  cr_assert_eq(samples(r, "by_entry", 0, "main.worker"), 4);
  cr_assert_float_eq(tt_cell(r, "by_entry", 0, "samples_share")->share, 0.8, 1e-9);
  cr_assert_eq(samples(r, "by_entry", 1, "runtime.goexit"), 1);
  cr_assert_eq(samples(r, "by_label", 0, "GC (dedicated)"), 3);
  cr_assert_eq(samples(r, "by_label", 1, "(no label)"), 2);
  cr_assert_eq(samples(r, "by_state", 0, "running"), 3);
  cr_assert_eq(tt_table(r, "by_state")->rows, 3);
  tt_analyses_close(&t);
}

Test(an_cpu, a_sample_of_a_goroutine_that_waits_says_so) {
  struct tt_analyses t;

  open_stream(&t, 100);
  status(&t, 1, TW_GO_RUNNING);
  TT_FEED(&t, &gen1, .time = 5, .m = 1, .p = 1, .g = 1, .type = TW_EV_GO_BLOCK,
          .args = { 1, BURN });
  sample(&t, 10, 1, BURN);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_CPU, TO_WINDOW_10S);
  cr_assert_eq(samples(r, "by_state", 0, "not running"), 1);
  tt_analyses_close(&t);
}

Test(an_cpu, a_window_has_its_own_samples) {
  struct tt_analyses t;

  open_stream(&t, 100);
  cr_assert_eq(tt_figure(tt_report(&t, TO_ANALYSIS_CPU, TO_WINDOW_ALL), "has_samples")->number, 0);
  sample(&t, SECOND, TO_NONE, BURN);
  sample(&t, 100 * SECOND, TO_NONE, READ);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_CPU, TO_WINDOW_10S);
  cr_assert_eq(tt_figure(r, "samples")->number, 1);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 1);
  r = tt_report(&t, TO_ANALYSIS_CPU, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "samples")->number, 2);
  tt_analyses_close(&t);
}

Test(an_cpu, combinations_beyond_the_limit_are_summed_by_state) {
  struct tt_analyses t;

  open_stream(&t, 1);
  sample(&t, 10, TO_NONE, BURN);
  sample(&t, 20, TO_NONE, READ);
  sample(&t, 30, TO_NONE, BARE);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_CPU, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 2);
  cr_assert(tt_table(r, "by_stack")->has_other);
  cr_assert_eq(tt_cell(r, "by_stack", 1, "samples")->number, 2);
  cr_assert_eq(samples(r, "by_state", 0, "no goroutine"), 3);
  tt_analyses_close(&t);
}
