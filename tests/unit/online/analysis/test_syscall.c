/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define MS INT64_C(1000000)

static const struct to_generation gen1 = {
  .number = 1,
  .stack = { [1] = { { 100, 7, "read", "io.c" }, { 200, 9, "main", "main.c" } },
             [2] = { { 300, 8, "write", "io.c" }, { 200, 9, "main", "main.c" } },
             [3] = { { 400, 1, "os/signal.signal_recv", "sig.go" } } },
};
/* The same stacks under other ids. */
static const struct to_generation gen2 = {
  .number = 2,
  .stack = { [5] = { { 100, 7, "read", "io.c" }, { 200, 9, "main", "main.c" } },
             [1] = { { 300, 8, "write", "io.c" }, { 200, 9, "main", "main.c" } } },
};

enum { GOROUTINES_MAX = 1 << 16 };

/* Slots as the orderer numbers them. */
static uint32_t slot(int64_t g) {
  return (uint32_t)g + 1;
}

static int64_t proc_of(int64_t thread) {
  return thread % 200;
}

/* A goroutine that occurs for the first time gets a status in the trace: it runs. */
static void runs(struct tt_analyses *t, const struct to_generation *gen, to_ns time, int64_t m,
                 int64_t g) {
  static bool is_known[GOROUTINES_MAX];

  if (is_known[g]) return;
  is_known[g] = true;
  TT_FEED(t, gen, .time = time, .m = m, .p = proc_of(m), .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)m, TW_GO_RUNNING });
}

static void begin(struct tt_analyses *t, const struct to_generation *gen, to_ns time, int64_t m,
                  int64_t g, uint64_t stack) {
  runs(t, gen, time, m, g);
  TT_FEED(t, gen, .time = time, .m = m, .p = proc_of(m), .g = g, .type = TW_EV_GO_SYSCALL_BEGIN,
          .args = { 1, stack });
}

static void end(struct tt_analyses *t, const struct to_generation *gen, to_ns time, int64_t m,
                int64_t g, bool blocked) {
  TT_FEED(t, gen, .time = time, .m = m, .p = blocked ? TO_NONE : proc_of(m), .g = g,
          .type = blocked ? TW_EV_GO_SYSCALL_END_BLOCKED : TW_EV_GO_SYSCALL_END);
}

static void steal(struct tt_analyses *t, to_ns time, int64_t thief, int64_t victim,
                  enum tw_proc_status from) {
  TT_FEED(t, &gen1, .time = time, .m = thief, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_STEAL,
          .args = { (uint64_t)proc_of(victim), 2, (uint64_t)victim, from });
}

static void sync_event(struct tt_analyses *t, const struct to_generation *gen, to_ns time) {
  TT_FEED(t, gen, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { gen->number });
}

static void status(struct tt_analyses *t, const struct to_generation *gen, to_ns time, int64_t m,
                   int64_t g) {
  TT_FEED(t, gen, .time = time, .m = m, .p = TO_NONE, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)m, TW_GO_SYSCALL });
}

static const struct to_report *report(struct tt_analyses *t, enum to_window window) {
  return tt_report(t, TO_ANALYSIS_SYSCALL, window);
}

Test(an_syscall, a_call_counts_where_it_ends_with_the_stack_it_began_with) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10 * MS, 100);
  sync_event(&t, &gen1, 1);
  begin(&t, &gen1, 100, 1, 10, 1);
  begin(&t, &gen1, 150, 2, 20, 2);
  end(&t, &gen1, 400, 1, 10, false);
  end(&t, &gen1, 1150, 2, 20, true);
  begin(&t, &gen1, 2000, 1, 10, 1);
  end(&t, &gen1, 2100, 1, 10, false);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "calls")->sum.count, 3);
  cr_assert_eq(tt_distribution(r, "calls")->sum.total_ns, 300 + 1000 + 100);
  tt_median_is(tt_distribution(r, "calls"), 300);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.count, 1);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 1000);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 2);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "blocked")->distribution->sum.total_ns, 1000,
               "most blocked time first");
  cr_assert_eq(tt_cell(r, "by_stack", 1, "calls")->distribution->sum.count, 2);
  cr_assert_eq(tt_cell(r, "by_stack", 1, "calls")->distribution->sum.max_ns, 300);
  cr_assert_eq(tt_cell(r, "by_stack", 1, "stack")->stack->len, 2);
  cr_assert_eq(tt_cell(r, "by_stack", 1, "stack")->stack->frames[0]->pc, 100);
  cr_assert_eq(
      memcmp(tt_cell(r, "by_stack", 1, "stack")->stack->frames[1]->function.data, "main", 4), 0);
  tt_analyses_close(&t);
}

Test(an_syscall, equal_stacks_of_two_generations_are_one_row) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10 * MS, 100);
  sync_event(&t, &gen1, 1);
  begin(&t, &gen1, 100, 1, 10, 1);
  end(&t, &gen1, 200, 1, 10, false);
  begin(&t, &gen1, 300, 1, 10, 2);
  cr_assert_eq(to_analyses_generation_ends(t.a, &gen1), TB_OK);
  sync_event(&t, &gen2, 400);
  status(&t, &gen2, 450, 1, 10); /* restates the open call: no new call begins */
  end(&t, &gen2, 500, 1, 10, false);
  begin(&t, &gen2, 600, 1, 10, 5);
  end(&t, &gen2, 700, 1, 10, false);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 2);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "calls")->distribution->sum.count +
                   tt_cell(r, "by_stack", 1, "calls")->distribution->sum.count,
               3);
  cr_assert_eq(tt_distribution(r, "calls")->sum.total_ns, 400);
  cr_assert_eq(tt_distribution(r, "calls")->sum.lower_bounds, 0);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "stack")->stack->frames[1],
               tt_cell(r, "by_stack", 1, "stack")->stack->frames[1], "one frame, kept once");
  tt_analyses_close(&t);
}

Test(an_syscall, a_call_is_blocked_now_once_its_P_is_gone_or_it_lasts) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10 * MS, 100);
  sync_event(&t, &gen1, 1);
  begin(&t, &gen1, 100, 1, 10, 1);
  begin(&t, &gen1, 200, 2, 20, 2);
  begin(&t, &gen1, 300, 3, 30, 2);
  cr_assert_eq(tt_table(report(&t, TO_WINDOW_10S), "blocked_now")->rows, 0);
  steal(&t, 400, 9, 2, TW_PROC_SYSCALL);
  steal(&t, 410, 9, 3, TW_PROC_SYSCALL_ABANDONED); /* does not concern the thread's call */
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(tt_figure(r, "open")->number, 3);
  cr_assert_eq(tt_table(r, "blocked_now")->rows, 1);
  cr_assert_eq(tt_cell(r, "blocked_now", 0, "goroutine")->number, 20);
  cr_assert_eq(tt_cell(r, "blocked_now", 0, "thread")->number, 2);
  cr_assert_eq(tt_cell(r, "blocked_now", 0, "start_ns")->number, 200);
  cr_assert_eq(tt_cell(r, "blocked_now", 0, "age_ns")->number, 210);
  cr_assert(tt_cell(r, "blocked_now", 0, "lost_proc")->number);
  cr_assert_eq(tt_cell(r, "blocked_now", 0, "stack")->stack->frames[0]->pc, 300);

  TT_FEED(&t, &gen1, .time = 500, .m = 3, .p = 3, .g = 30, .type = TW_EV_PROC_STOP);
  cr_assert_eq(tt_table(report(&t, TO_WINDOW_10S), "blocked_now")->rows, 2,
               "a ProcStop inside the call");
  end(&t, &gen1, 600, 3, 30, true);
  TT_FEED(&t, &gen1, .time = 100 + 10 * MS, .m = 7, .type = TW_EV_HEAP_ALLOC);
  r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(tt_table(r, "blocked_now")->rows, 2);
  cr_assert_eq(tt_cell(r, "blocked_now", 0, "goroutine")->number, 10, "oldest first");
  cr_assert_not(tt_cell(r, "blocked_now", 0, "lost_proc")->number);
  tt_analyses_close(&t);
}

Test(an_syscall, what_began_before_the_first_sync_is_a_lower_bound) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10, 100);
  sync_event(&t, &gen1, 1);
  status(&t, &gen1, 100, 4, 40);
  status(&t, &gen1, 200, 5, 50);
  end(&t, &gen1, 350, 4, 40, true);
  const struct to_report *r = report(&t, TO_WINDOW_1MIN);
  cr_assert_eq(tt_distribution(r, "calls")->sum.lower_bounds, 1);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.lower_bounds, 1);
  cr_assert_eq(tt_distribution(r, "calls")->sum.total_ns, 250);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 1);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "stack")->stack->len, 0);
  cr_assert_eq(tt_table(r, "blocked_now")->rows, 1);
  cr_assert(tt_cell(r, "blocked_now", 0, "lower_bound")->number);
  tt_analyses_close(&t);
}

Test(an_syscall, goroutines_may_be_born_and_die_in_a_call) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10 * MS, 100);
  sync_event(&t, &gen1, 1);
  TT_FEED(&t, &gen1, .time = 100, .m = 1, .g = TO_NONE, .slot = slot(77),
          .type = TW_EV_GO_CREATE_SYSCALL, .args = { 77 });
  end(&t, &gen1, 130, 1, 77, true);
  begin(&t, &gen1, 200, 1, 77, 1);
  /* The orderer inserts this before the end of a thread that has a P. */
  TT_FEED(&t, &gen1, .time = 299, .m = 1, .p = 0, .g = 77, .type = TW_EV_PROC_STEAL,
          .args = { 0, 0, 0, TW_PROC_SYSCALL });
  TT_FEED(&t, &gen1, .time = 300, .m = 1, .g = 77, .type = TW_EV_GO_DESTROY_SYSCALL);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "born")->number, 1);
  cr_assert_eq(tt_figure(r, "died")->number, 1);
  cr_assert_eq(tt_distribution(r, "calls")->sum.count, 2);
  cr_assert_eq(tt_distribution(r, "calls")->sum.total_ns, 130);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.count, 1,
               "the callback's begin had no P, its end was not blocked");
  cr_assert_eq(tt_figure(r, "open")->number, 0);
  tt_analyses_close(&t);
}

Test(an_syscall, an_epoch_drops_open_calls_and_keeps_totals) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10, 100);
  sync_event(&t, &gen1, 1);
  begin(&t, &gen1, 100, 1, 10, 1);
  end(&t, &gen1, 200, 1, 10, false);
  begin(&t, &gen1, 300, 1, 10, 1);
  to_analyses_epoch(t.a);
  sync_event(&t, &gen2, 1000);
  end(&t, &gen2, 1100, 1, 10, false); /* ends the call that was dropped */
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_SYSCALL, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "calls")->sum.count, 1);
  cr_assert_eq(tt_figure(r, "open")->number, 0);
  cr_assert_eq(r->epochs, 2);
  cr_assert_eq(r->first_gen, 1);
  cr_assert_eq(r->last_gen, 2);
  cr_assert_eq(r->events, 7);
  tt_analyses_close(&t);
}

Test(an_syscall, stacks_beyond_the_limit_share_the_row_other) {
  static struct to_generation many = { .number = 1 };
  struct tt_analyses t;
  const struct to_report *report_out;

  for (uint64_t i = 1; i <= TT_FAKE_STACKS; i++)
    many.stack[i][0] = (struct tt_fake_frame){ 1000 + i, i, "f", "f.c" };
  tt_analyses_open(&t, 10 * MS, 3);
  sync_event(&t, &many, 1);
  for (to_ns i = 1; i <= TT_FAKE_STACKS; i++) {
    begin(&t, &many, i * 1000, 1, 10, (uint64_t)i);
    end(&t, &many, i * 1000 + i, 1, 10, false);
  }
  cr_assert_eq(to_analyses_report(t.a, TO_ANALYSIS_SYSCALL, TO_WINDOW_ALL, 2, &report_out), TB_OK);
  const struct to_report *r = report_out;
  cr_assert_eq(tt_table(r, "by_stack")->rows_total, 4);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 3, "two listed, and the rest");
  cr_assert_eq(tt_cell(r, "by_stack", 0, "calls")->distribution->sum.total_ns, 3);
  cr_assert(tt_cell(r, "by_stack", 2, "stack")->none);
  cr_assert(tt_table(r, "by_stack")->has_other);
  cr_assert_eq(tt_cell(r, "by_stack", 2, "calls")->distribution->sum.total_ns,
               1 + 4 + 5 + 6 + 7 + 8);
  tt_analyses_close(&t);
}

Test(an_syscall, many_threads_come_and_go) {
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, &gen1, 1);
  for (int64_t m = 0; m < 50000; m++) {
    begin(&t, &gen1, 10 + m * 10, 1000 + m * 7, m % 600, 1);
    if (m >= 500) end(&t, &gen1, 15 + m * 10, 1000 + (m - 500) * 7, (m - 500) % 600, false);
  }
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "calls")->sum.count, 49500);
  cr_assert_eq(tt_distribution(r, "calls")->sum.total_ns, 49500u * 5005u);
  cr_assert_eq(tt_figure(r, "open")->number, 500);
  cr_assert_eq(tt_table(r, "blocked_now")->rows_total, 500);
  cr_assert_eq(tt_table(r, "blocked_now")->rows, 100);
  cr_assert_lt(t.mem.bytes, 1 << 20, "threads that ended take no memory: %zu", t.mem.bytes);
  tt_analyses_close(&t);
}

/* --- the watch --- */

static struct to_watched seen[16];
static size_t seen_count;

static void on_span(void *self, const struct to_watched *span) {
  (void)self;
  seen[seen_count++] = *span;
}

static void watch(struct tt_analyses *t, to_ns syscall_ns) {
  struct to_watch watch = { .span = on_span, .syscall_ns = syscall_ns };

  tt_analyses_open(t, 10 * MS, 100);
  to_analyses_watch(t->a, &watch);
  sync_event(t, &gen1, 1);
}

Test(an_syscall, a_watch_hears_when_a_call_loses_its_P_and_when_it_ends) {
  struct tt_analyses t;

  watch(&t, INT64_MAX);
  begin(&t, &gen1, 100, 1, 10, 1);
  steal(&t, 400, 2, 1, TW_PROC_SYSCALL);
  end(&t, &gen1, 900, 1, 10, true);
  begin(&t, &gen1, 1000, 1, 10, 1);
  end(&t, &gen1, 1000 + 50 * MS, 1, 10, false); /* kept its P, and long calls were not asked for */
  cr_assert_eq(seen_count, 2);
  cr_assert_eq(seen[0].what, TO_SYSCALL_BLOCKED);
  cr_assert_eq(seen[0].end - seen[0].begin, 300);
  cr_assert_eq(seen[0].stack->len, 2);
  cr_assert_eq(seen[1].what, TO_SYSCALL_ENDED);
  cr_assert_eq(seen[1].end - seen[1].begin, 800);
  cr_assert_eq(seen[1].goroutine, 10);
  cr_assert_eq(seen[1].thread, 1);
  cr_assert(seen[1].blocked);
  tt_analyses_close(&t);
}

Test(an_syscall, an_overdue_call_is_told_once_and_known_when_it_ends) {
  struct tt_analyses t;

  watch(&t, 20 * MS);
  begin(&t, &gen1, 100, 1, 10, 1);
  begin(&t, &gen1, 200, 2, 20, 2);
  sync_event(&t, &gen1, 15 * MS);
  to_analyses_overdue(t.a, 20 * MS);
  cr_assert_eq(seen_count, 0);
  end(&t, &gen1, 15 * MS + 1, 2, 20, false);
  sync_event(&t, &gen1, 30 * MS);
  to_analyses_overdue(t.a, 20 * MS);
  to_analyses_overdue(t.a, 20 * MS);
  cr_assert_eq(seen_count, 1);
  cr_assert_eq(seen[0].what, TO_SYSCALL_LONG);
  cr_assert_eq(seen[0].goroutine, 10);
  end(&t, &gen1, 40 * MS, 1, 10, false);
  cr_assert_eq(seen_count, 2);
  cr_assert(seen[1].reported);
  begin(&t, &gen1, 50 * MS, 1, 10, 1); /* the thread's next call, a different one */
  end(&t, &gen1, 90 * MS, 1, 10, false);
  cr_assert_not(seen[2].reported);
  tt_analyses_close(&t);
}

Test(an_syscall, a_call_counts_once_whether_its_span_comes_out_or_not) {
  struct to_watch long_ones = { .span = on_span, .syscall_ns = 500 };
  struct tt_analyses t;

  tt_analyses_open(&t, 10 * MS, 100);
  sync_event(&t, &gen1, 1);
  begin(&t, &gen1, 100, 1, 10, 1); /* the first call with this stack */
  end(&t, &gen1, 101, 1, 10, false);
  begin(&t, &gen1, 200, 1, 10, 1);
  end(&t, &gen1, 210, 1, 10, false);
  to_analyses_watch(t.a, &long_ones);
  begin(&t, &gen1, 1000, 1, 10, 1);
  end(&t, &gen1, 1499, 1, 10, false);
  cr_assert_eq(seen_count, 0);
  begin(&t, &gen1, 2000, 1, 10, 1);
  end(&t, &gen1, 2500, 1, 10, false);
  cr_assert_eq(seen_count, 1);
  to_analyses_watch(t.a, NULL);
  begin(&t, &gen1, 3000, 1, 10, 1);
  end(&t, &gen1, 4000, 1, 10, false);
  begin(&t, &gen1, 5000, 1, 10, 1);
  end(&t, &gen1, 7000, 1, 10, true);
  cr_assert_eq(seen_count, 1);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 1);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "calls")->distribution->sum.count, 6);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "calls")->distribution->sum.total_ns,
               1 + 10 + 499 + 500 + 1000 + 2000);
  tt_median_is(tt_cell(r, "by_stack", 0, "calls")->distribution, 499);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "blocked")->distribution->sum.total_ns, 2000);
  tt_analyses_close(&t);
}

/* Eight stacks with lengths of 0 ns to 0.1 ms: a row has too few buckets for all of them. */
Test(an_syscall, all_calls_have_quantiles_within_a_percent_where_those_of_stacks_are_coarser) {
  enum { LENGTHS = 8192, THREADS = TT_FAKE_STACKS };
  static struct to_generation many = { .number = 1 };
  struct tt_analyses t;
  size_t coarser = 0;
  to_ns now = 1000;

  for (uint64_t i = 1; i <= TT_FAKE_STACKS; i++)
    many.stack[i][0] = (struct tt_fake_frame){ 1000 + i, i, "f", "f.c" };
  tt_analyses_open(&t, 10 * MS, 100);
  sync_event(&t, &many, 1);
  for (to_ns i = 0; i < LENGTHS; i++) {
    to_ns length = i < 2048 ? i : (1024 + i % 1024) << (i / 1024 - 1);
    for (int64_t m = 1; m <= THREADS; m++) begin(&t, &many, now, m, m, (uint64_t)m);
    now += length;
    for (int64_t m = 1; m <= THREADS; m++) end(&t, &many, now, m, m, false);
  }
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "calls")->sum.count, LENGTHS * THREADS);
  cr_assert(tt_distribution(r, "calls")->has_quantiles);
  cr_assert_geq(tt_distribution(r, "calls")->histogram.scale, 5);
  for (size_t row = 0; row < tt_table(r, "by_stack")->rows; row++)
    coarser += tt_cell(r, "by_stack", row, "calls")->distribution->histogram.scale < 5;
  cr_assert_gt(coarser, 0);
  tt_analyses_close(&t);
}

Test(an_syscall, calls_that_wait_for_work_are_apart) {
  struct tt_analyses t;

  tt_analyses_open(&t, 10 * MS, 100);
  sync_event(&t, &gen1, 1);
  begin(&t, &gen1, 100, 1, 901, 3);
  begin(&t, &gen1, 100, 2, 902, 1);
  end(&t, &gen1, 900, 1, 901, true);
  end(&t, &gen1, 300, 2, 902, true);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "calls")->sum.total_ns, 200);
  cr_assert_eq(tt_distribution(r, "blocked")->sum.total_ns, 200);
  cr_assert_eq(tt_distribution(r, "idle")->sum.total_ns, 800);
  cr_assert_eq(tt_table(r, "by_stack")->rows, 2);
  cr_assert_eq(tt_cell(r, "by_stack", 0, "idle")->number, 0, "the longer one is idle");
  cr_assert_eq(tt_cell(r, "by_stack", 1, "blocked")->distribution->sum.total_ns, 800);
  tt_analyses_close(&t);
}
