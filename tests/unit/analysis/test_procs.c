/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "unit/analysis/fake_generation.h"

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
