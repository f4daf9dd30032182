/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "unit/online/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

static const struct to_generation gen1 = { .number = 1 };

static void open_stream(struct tt_analyses *t) {
  tt_analyses_open(t, 1, 100);
  TT_FEED(t, &gen1, .time = 0, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

static void status(struct tt_analyses *t, to_ns time, uint64_t p, enum tw_proc_status state) {
  TT_FEED(t, &gen1, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
          .type = TW_EV_PROC_STATUS, .args = { p, state, TO_PROC_UNDETERMINED });
}

static void turn(struct tt_analyses *t, to_ns time, uint64_t p, enum tw_event type) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = type == TW_EV_PROC_STOP ? (int64_t)p : TO_NONE,
          .g = TO_NONE, .type = (uint8_t)type, .args = { p, 1, 9, TW_PROC_SYSCALL });
}

static void procs(struct tt_analyses *t, to_ns time, uint64_t n) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 0, .g = 1, .type = TW_EV_PROCS_CHANGE,
          .args = { n });
}

Test(procs, each_P_and_how_many_at_once) {
  struct tt_analyses t;

  open_stream(&t);
  procs(&t, 1, 2);
  status(&t, 100, 0, TW_PROC_RUNNING);
  status(&t, 100, 1, TW_PROC_IDLE);
  turn(&t, 200, 1, TW_EV_PROC_START);
  turn(&t, 260, 1, TW_EV_PROC_STEAL);
  turn(&t, 400, 0, TW_EV_PROC_STOP);
  procs(&t, 450, 3);
  procs(&t, 460, 3);
  procs(&t, 500, 4);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL);
  cr_assert_eq(tt_figure(r, "procs")->number, 4);
  cr_assert_eq(tt_figure(r, "changes")->number, 2);
  cr_assert_float_eq(tt_figure(r, "busy_share")->share, 360.0 / 800, 1e-12);
  cr_assert_eq(tt_table(r, "by_proc")->rows, 2);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "proc")->number, 0);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "running_ns")->number, 300);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "idle_ns")->number, 100);
  cr_assert_float_eq(tt_cell(r, "by_proc", 0, "busy_share")->share, 0.75, 1e-12);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "stolen")->number, 0);
  cr_assert_eq(tt_cell(r, "by_proc", 1, "running_ns")->number, 60);
  cr_assert_eq(tt_cell(r, "by_proc", 1, "idle_ns")->number, 340);
  cr_assert_eq(tt_cell(r, "by_proc", 1, "stolen")->number, 1);
  cr_assert_eq(tt_table(r, "by_busy")->rows, 3);
  cr_assert_eq(tt_cell(r, "by_busy", 0, "busy")->number, 0);
  cr_assert_eq(tt_cell(r, "by_busy", 0, "time_ns")->number, 100);
  cr_assert_eq(tt_cell(r, "by_busy", 1, "time_ns")->number, 240);
  cr_assert_eq(tt_cell(r, "by_busy", 2, "time_ns")->number, 60);
  cr_assert_float_eq(tt_cell(r, "by_busy", 2, "time_share")->share, 0.15, 1e-12);
  cr_assert_eq(tt_table(r, "gomaxprocs")->rows, 2);
  cr_assert_eq(tt_cell(r, "gomaxprocs", 0, "time_ns")->number, 500);
  cr_assert_eq(tt_cell(r, "gomaxprocs", 0, "before")->number, 3);
  cr_assert_eq(tt_cell(r, "gomaxprocs", 1, "procs")->number, 3);
  tt_analyses_close(&t);
}

Test(procs, a_P_that_runs_for_a_minute_fills_each_window) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 0, 0, TW_PROC_RUNNING);
  for (to_ns i = 1; i <= 60; i++) procs(&t, i * SECOND, 2);
  turn(&t, 60 * SECOND + 5, 0, TW_EV_PROC_STOP);
  procs(&t, 62 * SECOND, 2);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_10S);
  cr_assert_eq(r->from, 52 * SECOND);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "running_ns")->number, 8 * SECOND + 5);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "idle_ns")->number, 2 * SECOND - 5);
  cr_assert_eq(tt_cell(r, "by_busy", 0, "time_ns")->number, 2 * SECOND - 5);
  r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "running_ns")->number, 60 * SECOND + 5);
  tt_analyses_close(&t);
}

Test(procs, a_hole_is_no_time_of_a_P) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 100, 0, TW_PROC_RUNNING);
  procs(&t, 200, 2);
  to_analyses_epoch(t.a);
  procs(&t, 1000, 2);
  status(&t, 1100, 0, TW_PROC_RUNNING);
  procs(&t, 1150, 2);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL);
  cr_assert_eq(tt_cell(r, "by_proc", 0, "running_ns")->number, 150);
  cr_assert_eq(tt_cell(r, "by_busy", 0, "time_ns")->number, 150);
  tt_analyses_close(&t);
}

Test(procs, Ps_beyond_the_bound_are_passed_over) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 100, UINT64_C(1) << 40, TW_PROC_RUNNING);
  status(&t, 100, 1024, TW_PROC_RUNNING);
  procs(&t, 200, 2);
  cr_assert_eq(tt_table(tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL), "by_proc")->rows, 0);
  tt_analyses_close(&t);
}

static void go(struct tt_analyses *t, to_ns time, int64_t m, int64_t p, int64_t g,
               enum tw_event type) {
  TT_FEED(t, &gen1, .time = time, .m = m, .p = p, .g = g, .type = (uint8_t)type);
}

/* Takes the P from a call of thread 9. */
static void steal(struct tt_analyses *t, to_ns time, uint64_t p, int64_t m, int64_t own_p,
                  int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = m, .p = own_p, .g = g, .type = TW_EV_PROC_STEAL,
          .args = { p, 1, 9, TW_PROC_SYSCALL });
}

static void run(struct tt_analyses *t, to_ns time, int64_t m, int64_t p, uint64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = m, .p = p, .g = TO_NONE, .slot = (uint32_t)g + 1,
          .type = TW_EV_GO_STATUS, .args = { g, (uint64_t)m, TW_GO_RUNNING });
}

static int64_t number(const struct to_report *r, size_t row, const char *column) {
  return tt_cell(r, "by_proc", row, column)->number;
}

Test(procs, a_call_holds_its_P_until_it_ends_or_the_P_is_taken) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 100, 0, TW_PROC_RUNNING);
  status(&t, 100, 1, TW_PROC_RUNNING);
  run(&t, 100, 8, 0, 1);
  TT_FEED(&t, &gen1, .time = 110, .m = 9, .p = 1, .g = TO_NONE, .slot = 3, .type = TW_EV_GO_STATUS,
          .args = { 2, 9, TW_GO_SYSCALL }); /* in a call that began before the trace */
  go(&t, 200, 8, 0, 1, TW_EV_GO_SYSCALL_BEGIN);
  go(&t, 230, 8, 0, 1, TW_EV_GO_SYSCALL_END);
  steal(&t, 300, 1, 8, 0, 1);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL);
  cr_expect_eq(number(r, 0, "syscall_ns"), 30);
  cr_expect_eq(number(r, 0, "running_ns"), 200);
  cr_expect_eq(number(r, 1, "syscall_ns"), 190, "since it is known");
  cr_expect_eq(number(r, 1, "running_ns"), 200);
  cr_expect_eq(number(r, 1, "stopped"), 1);
  go(&t, 400, 8, 0, 1, TW_EV_GO_SYSCALL_BEGIN);
  procs(&t, 2 * SECOND + 10, 2);
  r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL);
  cr_expect_eq(number(r, 0, "syscall_ns"), 30 + 2 * SECOND - 390, "it goes on");
  for (to_ns i = 3; i <= 20; i++) procs(&t, i * SECOND, 2);
  r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_10S);
  cr_expect_eq(number(r, 0, "syscall_ns"), 10 * SECOND, "%lld",
               (long long)number(r, 0, "syscall_ns"));
  to_analyses_epoch(t.a);
  procs(&t, 22 * SECOND, 2);
  r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL);
  cr_expect_eq(number(r, 0, "syscall_ns"), 20 * SECOND - 400 + 30, "a hole ends it");
  tt_analyses_close(&t);
}

Test(procs, a_loss_in_a_call_counts_by_what_took_the_P) {
  struct tt_analyses t;

  open_stream(&t);
  status(&t, 100, 0, TW_PROC_RUNNING);
  status(&t, 100, 1, TW_PROC_RUNNING);
  run(&t, 100, 9, 1, 2);
  for (int i = 0; i < 5; i++) {
    steal(&t, 200, 1, 7, TO_NONE, TO_NONE);      /* the monitor */
    if (i < 4) steal(&t, 200, 1, 8, TO_NONE, 3); /* a goroutine in a call */
    if (i < 3) steal(&t, 200, 1, 6, 0, 4);       /* a running goroutine */
    if (i < 2) go(&t, 200, 9, 1, 2, TW_EV_PROC_STOP);
  }
  steal(&t, 200, 1, 9, 1,
        2); /* the thread in the call steals its own P: its goroutine ends there */
  TT_FEED(&t, &gen1, .time = 200, .m = 7, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_STEAL,
          .args = { 1, 1, 9, TW_PROC_SYSCALL_ABANDONED }); /* the P's thread no longer exists */
  turn(&t, 300, 0, TW_EV_PROC_STOP);                       /* stops for lack of work */
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_PROCS, TO_WINDOW_ALL);
  cr_assert_eq(number(r, 1, "proc"), 1);
  cr_expect_eq(number(r, 1, "stolen"), 5 + 4 + 3 + 1 + 1);
  cr_expect_eq(number(r, 1, "retaken"), 5);
  cr_expect_eq(number(r, 1, "claimed"), 4);
  cr_expect_eq(number(r, 1, "stopped"), 3);
  cr_expect_eq(number(r, 1, "handed_off"), 2);
  cr_expect_eq(number(r, 0, "handed_off"), 0);
  tt_analyses_close(&t);
}
