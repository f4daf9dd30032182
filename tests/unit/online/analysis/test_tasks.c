/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/event/view.h"
#include "support/caller.h"
#include "unit/online/analysis/fake_generation.h"

#define MS INT64_C(1000000)

enum { OWN = 1, BEGIN = 2, WORK = 3, REQUEST = 4, LONG = 5, LONG_TOO = 6 };
enum { HANDLER = 3, TRACEHTTP };

#define TEN(text) text text text text text text text text text text
#define LONG_NAME TEN(TEN("abc")) /* 300 bytes */

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "sync",
              [2] = "network",
              [WORK] = "work",
              [REQUEST] = "request",
              [LONG] = LONG_NAME "1",
              [LONG_TOO] = LONG_NAME "2" },
  .stack = { [OWN] = { { 100, 7, "sync.Lock", "s.go" } },
             [BEGIN] = { { 200, 9, "main.serve", "main.go" } },
             [HANDLER] = { { 300, 7, "sync.Lock", "s.go" }, { 310, 9, "main.slow", "main.go" } },
             [TRACEHTTP] = { { 400, 7, "tracecollect.invalid/traceagent.NewTask", "guard.go" },
                             { 410, 9, "net/http.(*conn).serve", "server.go" } } },
};

static void open_stream(struct tt_analyses *t) {
  tt_analyses_open(t, 10 * MS, 100);
  TT_FEED(t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

/* Goroutine g runs on P g and thread g. */
static void status(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = (uint32_t)g + 1,
          .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
}

static void task(struct tt_analyses *t, to_ns time, int64_t g, uint64_t id, uint64_t parent) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_USER_TASK_BEGIN,
          .args = { id, parent, REQUEST, BEGIN });
}

static void task_end(struct tt_analyses *t, to_ns time, int64_t g, uint64_t id) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_USER_TASK_END,
          .args = { id, OWN, TO_NO_TASK, REQUEST });
}

static void region(struct tt_analyses *t, to_ns time, int64_t g, uint64_t task, bool begins) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g,
          .type = begins ? TW_EV_USER_REGION_BEGIN : TW_EV_USER_REGION_END,
          .args = { task, WORK, BEGIN });
}

static void wait(struct tt_analyses *t, to_ns time, int64_t g, uint64_t why) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { why, OWN });
}

static void wake(struct tt_analyses *t, to_ns time, int64_t by, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = by, .p = by, .g = by, .slot = (uint32_t)g + 1,
          .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 1, OWN });
}

static void start(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = (uint32_t)g + 1,
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

static const struct to_report *report(struct tt_analyses *t, enum to_analysis_kind kind) {
  return tt_report(t, kind, TO_WINDOW_ALL);
}

static int64_t number(const struct to_report *r, const char *table, size_t row,
                      const char *column) {
  const struct to_value *value = tt_cell(r, table, row, column);

  cr_assert_not(value->none, "line %d: %s", tt_caller, column);
  return value->number;
}
#define number(...) TT_CALL(number(__VA_ARGS__))

static void find(void *self, const struct to_finding *finding) {
  if (finding->kind != TO_FINDING_MISNESTED) return;
  snprintf(self, 400, "%.*s", (int)finding->words.len, finding->words.data);
}

static void find_misnested(struct tt_analyses *t, char words[400]) {
  words[0] = '\0';
  cr_assert_eq(to_analyses_findings(t->a, &(struct to_finding_sink){ words, find }), TB_OK);
}

Test(an_tasks, regions_that_are_not_nested_are_cut_and_found) {
  struct tt_analyses t;
  char words[400];

  open_stream(&t);
  status(&t, 10, 1);
  status(&t, 20, 2);
  region(&t, 100, 1, 7, true);
  region(&t, 110, 1, 8, true);
  region(&t, 120, 2, 9, true);
  TT_FEED(&t, &gen1, .time = 200, .m = 1, .p = 1, .g = 1, .type = TW_EV_USER_REGION_END,
          .args = { 7, WORK, OWN, TO_MISNESTED });
  TT_FEED(&t, &gen1, .time = 210, .m = 1, .p = 1, .g = 1, .type = TW_EV_USER_REGION_END,
          .args = { 8, WORK, OWN, TO_NESTING_LOST });
  region(&t, 220, 2, 9, false);
  region(&t, 230, 1, 7, true);
  region(&t, 260, 1, 7, false);
  find_misnested(&t, words);
  cr_assert_str_eq(words,
                   "at sync.Lock goroutine 1 ends region \"work\" of task 7, but its innermost is "
                   "\"work\" of task 8, begun at main.serve; its regions are cut there, and Go's "
                   "tools refuse the trace");
  const struct to_report *r = report(&t, TO_ANALYSIS_REGIONS);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, 2, "goroutine 2's, and the one after");
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 130);
  cr_assert_eq(tt_figure(r, "cut")->number, 2);
  cr_assert_eq(tt_figure(r, "misnested")->number, 1);
  cr_assert_eq(tt_figure(r, "begin_unknown")->number, 0);
  cr_assert_eq(tt_figure(r, "open")->number, 0);
  cr_assert_eq(number(r, "misnested", 0, "task"), 7);
  cr_assert_eq(number(r, "misnested", 0, "open_task"), 8);
  cr_assert_eq(number(r, "misnested", 0, "goroutine"), 1);
  cr_assert_eq(tt_cell(r, "misnested", 0, "stack")->stack->frames[0]->pc, 100);
  cr_assert_eq(tt_cell(r, "misnested", 0, "open_stack")->stack->frames[0]->pc, 200);
  TT_FEED(&t, &gen1, .time = 300, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 2 });
  find_misnested(&t, words);
  cr_assert_str_eq(words, "", "a generation without one ends it");
  tt_analyses_close(&t);
}

Test(an_tasks, long_names_that_begin_alike_are_told_apart) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 10, 1);
  for (uint64_t i = 0; i < 4; i++) {
    TT_FEED(&t, &gen1, .time = 100 + 10 * (to_ns)i, .m = 1, .p = 1, .g = 1,
            .type = TW_EV_USER_TASK_BEGIN, .args = { 7 + i, TO_NO_TASK, LONG + i % 2, BEGIN });
    if (i < 2) task_end(&t, 105 + 10 * (to_ns)i, 1, 7 + i);
  }
  const struct to_report *r = report(&t, TO_ANALYSIS_TASKS);
  cr_assert_eq(tt_table(r, "by_type")->rows, 2);
  for (size_t row = 0; row < 2; row++) {
    cr_assert_eq(tt_cell(r, "by_type", row, "type")->text.len, sizeof LONG_NAME);
    cr_assert_eq(tt_cell(r, "by_type", row, "latency")->distribution->sum.count, 1);
    cr_assert_eq(number(r, "by_type", row, "open"), 1);
  }
  tt_analyses_close(&t);
}

Test(an_tasks, a_task_counts_from_begin_to_end_and_what_is_open_is_listed) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 10, 1);
  status(&t, 20, 2);
  task(&t, 100, 1, 7, TO_NO_TASK);
  task(&t, 200, 1, 8, 7);
  task_end(&t, 350, 2, 8);
  task_end(&t, 400, 2, 5);
  TT_FEED(&t, &gen1, .time = 900, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_ANALYSIS_TASKS);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, 1);
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 150);
  cr_assert_eq(tt_distribution(r, "latency")->p50_ns, 150);
  cr_assert_eq(tt_figure(r, "open")->number, 1);
  cr_assert_eq(tt_figure(r, "begin_unknown")->number, 1, "task 5");
  cr_assert_eq(tt_table(r, "by_type")->rows, 1);
  cr_assert_str_eq(tt_cell(r, "by_type", 0, "type")->text.data, "request");
  cr_assert_eq(tt_cell(r, "by_type", 0, "latency")->distribution->sum.max_ns, 150);
  cr_assert_eq(number(r, "by_type", 0, "open"), 1);
  cr_assert(tt_cell(r, "by_type", 0, "execution_ns")->none, "it had no region");
  cr_assert_eq(tt_table(r, "open_now")->rows, 1);
  cr_assert_eq(number(r, "open_now", 0, "task"), 7);
  cr_assert_eq(number(r, "open_now", 0, "age_ns"), 800);
  cr_assert_eq(number(r, "open_now", 0, "goroutine"), 1);
  cr_assert(tt_cell(r, "open_now", 0, "parent")->none);
  cr_assert_eq(tt_cell(r, "open_now", 0, "stack")->stack->frames[0]->pc, 200);
  cr_assert_eq(tt_table(r, "slowest")->rows, 1);
  cr_assert_eq(number(r, "slowest", 0, "task"), 8);
  cr_assert_eq(number(r, "slowest", 0, "latency_ns"), 150);
  cr_assert_eq(number(r, "slowest", 0, "start_ns"), 200);
  cr_assert_eq(number(r, "slowest", 0, "goroutine"), 1, "that began it");
  to_analyses_epoch(t.a);
  r = report(&t, TO_ANALYSIS_TASKS);
  cr_assert_eq(tt_figure(r, "open")->number, 0);
  cr_assert_eq(tt_figure(r, "cut")->number, 1);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, 1);
  tt_analyses_close(&t);
}

/* The region lasts from 1000 to 2000: 100 running, 300 in a mutex, 50 runnable, 550 in a call, of them 150 without its P. */
static void feed_region(struct tt_analyses *t) {
  status(t, 10, 1);
  status(t, 20, 2);
  task(t, 500, 2, 7, TO_NO_TASK);
  region(t, 1000, 1, 7, true);
  wait(t, 1040, 1, 1);
  wake(t, 1340, 2, 1);
  start(t, 1390, 1);
  TT_FEED(t, &gen1, .time = 1400, .m = 1, .p = 1, .g = 1, .type = TW_EV_GO_SYSCALL_BEGIN,
          .args = { 1, OWN });
  TT_FEED(t, &gen1, .time = 1800, .m = 2, .p = 2, .g = 2, .type = TW_EV_PROC_STEAL,
          .args = { 1, 1, 1, TW_PROC_SYSCALL });
  TT_FEED(t, &gen1, .time = 1950, .m = 1, .p = TO_NONE, .g = 1,
          .type = TW_EV_GO_SYSCALL_END_BLOCKED);
  start(t, 1950, 1);
  region(t, 2000, 1, 7, false);
}

static void expect_times(const struct to_report *r, int64_t regions) {
  cr_assert_eq(number(r, "by_type", 0, "execution_ns"), 100);
  cr_assert_eq(number(r, "by_type", 0, "sched_wait_ns"), 50);
  cr_assert_eq(number(r, "by_type", 0, "sync_ns"), 300);
  cr_assert_eq(number(r, "by_type", 0, "net_ns"), 0);
  cr_assert_eq(number(r, "by_type", 0, "syscall_ns"), 400);
  cr_assert_eq(number(r, "by_type", 0, "syscall_block_ns"), 150);
  cr_assert_eq(number(r, "by_type", 0, "regions"), regions);
}

/* The handler of a request is called after tracehttp began its task. */
Test(an_tasks, a_task_that_a_library_began_is_where_the_program_waited_in_it) {
  struct tt_analyses t;

  open_stream(&t);
  for (int64_t g = 1; g <= 3; g++) status(&t, 1 + g, g);
  for (int64_t g = 2; g <= 3; g++)
    TT_FEED(&t, &gen1, .time = 9 + g, .m = g, .p = g, .g = g, .type = TW_EV_USER_TASK_BEGIN,
            .args = { (uint64_t)g, 0, REQUEST, TRACEHTTP });
  task(&t, 12, 1, 1, 0);
  TT_FEED(&t, &gen1, .time = 20, .m = 2, .p = 2, .g = 2, .type = TW_EV_GO_BLOCK,
          .args = { 1, HANDLER });
  wake(&t, 30, 1, 2);
  start(&t, 31, 2);
  task_end(&t, 40, 1, 1);
  task_end(&t, 50, 3, 3);
  task_end(&t, 60, 2, 2);
  const struct to_report *r = report(&t, TO_ANALYSIS_TASKS);
  static const uint64_t begins_at[] = { 300, 400, 200 };
  for (size_t i = 0; i < 3; i++)
    cr_assert_eq(tt_cell(r, "slowest", i, "stack")->stack->frames[0]->pc, begins_at[i], "%zu", i);
  tt_analyses_close(&t);
}

Test(an_tasks, a_type_has_what_goroutines_did_in_regions_of_its_tasks) {
  struct tt_analyses t;

  open_stream(&t);
  feed_region(&t);
  task_end(&t, 3500, 2, 7);
  const struct to_report *r = report(&t, TO_ANALYSIS_TASKS);
  expect_times(r, 1);
  cr_assert_eq(tt_cell(r, "by_type", 0, "latency")->distribution->sum.total_ns, 3000);
  r = report(&t, TO_ANALYSIS_REGIONS);
  expect_times(r, 1);
  cr_assert_str_eq(tt_cell(r, "by_type", 0, "type")->text.data, "work");
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 1000);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "latency")->distribution->sum.total_ns, 1000);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "stack")->stack->frames[0]->pc, 200);
  tt_analyses_close(&t);
}

Test(an_tasks, a_region_within_one_of_its_task_counts_once_for_the_task) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 10, 1);
  status(&t, 20, 2);
  task(&t, 500, 2, 7, TO_NO_TASK);
  region(&t, 1000, 1, 7, true);
  region(&t, 1100, 1, 7, true);
  wait(&t, 1150, 1, 2);
  wake(&t, 1750, 2, 1);
  start(&t, 1760, 1);
  region(&t, 1800, 1, 7, false);
  region(&t, 1900, 1, 7, false);
  const struct to_report *r = report(&t, TO_ANALYSIS_TASKS);
  cr_assert_eq(number(r, "by_type", 0, "regions"), 1);
  cr_assert_eq(number(r, "by_type", 0, "execution_ns"), 290);
  cr_assert_eq(number(r, "by_type", 0, "net_ns"), 600);
  cr_assert_eq(number(r, "by_type", 0, "sched_wait_ns"), 10);
  cr_assert_eq(number(r, "by_type", 0, "open"), 1);
  r = report(&t, TO_ANALYSIS_REGIONS);
  cr_assert_eq(number(r, "by_type", 0, "regions"), 2);
  cr_assert_eq(number(r, "by_type", 0, "net_ns"), 1200, "in both");
  cr_assert_eq(tt_distribution(r, "latency")->sum.total_ns, 900 + 700);
  tt_analyses_close(&t);
}

Test(an_tasks, mark_assists_in_a_region_are_a_part_of_it) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 10, 1);
  region(&t, 1000, 1, 0, true);
  TT_FEED(&t, &gen1, .time = 1100, .m = 1, .p = 1, .g = 1, .type = TW_EV_GC_MARK_ASSIST_BEGIN,
          .args = { OWN });
  TT_FEED(&t, &gen1, .time = 1150, .m = 1, .p = 1, .g = 1, .type = TW_EV_GC_MARK_ASSIST_END);
  region(&t, 1200, 1, 0, false);
  const struct to_report *r = report(&t, TO_ANALYSIS_REGIONS);
  cr_assert_eq(number(r, "by_type", 0, "gc_assist_ns"), 50);
  cr_assert_eq(number(r, "by_type", 0, "execution_ns"), 200);
  cr_assert_eq(tt_table(report(&t, TO_ANALYSIS_TASKS), "by_type")->rows, 0, "it is of no task");
  tt_analyses_close(&t);
}

/* The time of every reason is in the column of the reason's class, which only reasons.def defines. */
Test(an_tasks, a_wait_in_a_region_is_time_of_its_reasons_class) {
  static const char *const column[TO_WAIT_CLASSES] = {
    [TO_WAIT_OTHER] = "block_other_ns", [TO_WAIT_SYNC] = "sync_ns",
    [TO_WAIT_CHAN] = "chan_ns",         [TO_WAIT_NET] = "net_ns",
    [TO_WAIT_SLEEP] = "sleep_ns",       [TO_WAIT_GC] = "block_other_ns",
  };

  for (unsigned reason = TO_REASON_OTHER + 1; reason < TO_REASONS; reason++) {
    const struct to_reason_info *info = to_reason_info((enum to_reason)reason);
    struct to_generation gen = gen1;
    struct tt_analyses t;
    gen.string[1] = info->text;
    open_stream(&t);
    status(&t, 10, 1);
    status(&t, 20, 2);
    region(&t, 1000, 1, 0, true);
    TT_FEED(&t, &gen, .time = 1100, .m = 1, .p = 1, .g = 1, .type = TW_EV_GO_BLOCK,
            .args = { 1, OWN });
    wake(&t, 1400, 2, 1);
    start(&t, 1400, 1);
    region(&t, 1500, 1, 0, false);
    const struct to_report *r = report(&t, TO_ANALYSIS_REGIONS);
    cr_expect_eq(number(r, "by_type", 0, column[info->wait_class]), 300, "%s", info->text);
    cr_expect_eq(number(r, "by_type", 0, "execution_ns"), 200, "%s", info->text);
    tt_analyses_close(&t);
  }
}

Test(an_tasks, regions_that_are_open_have_an_age_and_those_of_a_goroutine_that_ended_are_cut) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 10, 1);
  status(&t, 20, 2);
  region(&t, 100, 1, 0, true);
  region(&t, 200, 2, 7, true);
  TT_FEED(&t, &gen1, .time = 300, .m = 1, .p = 1, .g = 1, .type = TW_EV_GO_DESTROY);
  region(&t, 400, 2, 9, true);
  TT_FEED(&t, &gen1, .time = 1000, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = report(&t, TO_ANALYSIS_REGIONS);
  cr_assert_eq(tt_figure(r, "cut")->number, 1);
  cr_assert_eq(tt_figure(r, "open")->number, 2);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, 0);
  cr_assert_eq(number(r, "by_type", 0, "open"), 2);
  cr_assert_eq(number(r, "open_now", 0, "age_ns"), 800, "oldest first");
  cr_assert_eq(number(r, "open_now", 0, "task"), 7);
  cr_assert_eq(number(r, "open_now", 1, "age_ns"), 600);
  cr_assert_str_eq(tt_cell(r, "open_now", 1, "type")->text.data, "work");
  tt_analyses_close(&t);
}

/* There are 600 types; 512 have their own rows. */
Test(an_tasks, types_beyond_the_limit_are_summed) {
  static char name[8];
  static struct to_generation many = { .number = 1, .string = { [WORK] = name } };
  enum { TYPES = 600, LIMIT = 512 };
  const struct to_report *r;
  struct tt_analyses t;

  tt_analyses_open(&t, 10 * MS, 100);
  TT_FEED(&t, &many, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
  for (unsigned i = 0; i < TYPES; i++) {
    name[0] = (char)('a' + i % 26);
    name[1] = (char)('a' + i / 26);
    TT_FEED(&t, &many, .time = 1000 + i * 10, .type = TW_EV_USER_TASK_BEGIN,
            .args = { i + 1, TO_NO_TASK, WORK, 0 });
    TT_FEED(&t, &many, .time = 1000 + i * 10 + 1, .type = TW_EV_USER_TASK_END,
            .args = { i + 1, 0, TO_NO_TASK, WORK });
  }
  cr_assert_eq(to_analyses_report(t.a, TO_ANALYSIS_TASKS, TO_WINDOW_ALL, TYPES, &r), TB_OK);
  cr_assert_eq(tt_table(r, "by_type")->rows, LIMIT + 1);
  cr_assert(tt_table(r, "by_type")->has_other);
  cr_assert_eq(tt_cell(r, "by_type", LIMIT, "latency")->distribution->sum.count, TYPES - LIMIT);
  cr_assert_eq(tt_distribution(r, "latency")->sum.count, TYPES);
  tt_analyses_close(&t);
}

/* A report without tasks says how a program makes them. As soon as there is one open task, it needs no such advice. */
Test(an_tasks, a_trace_without_any_says_how_to_have_them) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 10, 1);
  cr_assert_eq(report(&t, TO_ANALYSIS_TASKS)->notes, 1);
  cr_assert_str_eq(report(&t, TO_ANALYSIS_TASKS)->note[0],
                   "This trace has no tasks. A Go program makes them with trace.NewTask "
                   "(runtime/trace), a C program with ta_task_begin().");
  cr_assert_eq(report(&t, TO_ANALYSIS_REGIONS)->notes, 1);
  cr_assert_str_eq(report(&t, TO_ANALYSIS_REGIONS)->note[0],
                   "This trace has no regions. A Go program makes them with trace.WithRegion "
                   "(runtime/trace), a C program with ta_region_begin().");
  task(&t, 100, 1, 7, TO_NO_TASK);
  region(&t, 200, 1, 7, true);
  cr_assert_eq(report(&t, TO_ANALYSIS_TASKS)->notes, 0);
  cr_assert_eq(report(&t, TO_ANALYSIS_REGIONS)->notes, 0);
  region(&t, 300, 1, 7, false);
  task_end(&t, 400, 1, 7);
  cr_assert_eq(report(&t, TO_ANALYSIS_TASKS)->notes, 0);
  cr_assert_eq(report(&t, TO_ANALYSIS_REGIONS)->notes, 0);
  tt_analyses_close(&t);
}
