/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

enum { START = 1, MARK = 2, ODD = 3 };
static const struct to_generation gen1 = {
  .number = 1,
  .string = { [START] = "start trace",
              [MARK] = "GC mark termination",
              [ODD] = "Swap the Moon (v2)" },
  .stack = { [1] = { { 100, 7, "gcStart", "mgc.go" } } },
  .clock = { .trace_ns = 1000, .wall_s = 2, .wall_ns = 500 },
};

static void sync_event(struct tt_analyses *t, to_ns time) {
  TT_FEED(t, &gen1, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

static void stop(struct tt_analyses *t, to_ns time, int64_t p, int64_t g, uint64_t reason) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = p, .g = g, .type = TW_EV_STW_BEGIN,
          .args = { reason, 1 });
}

static void go_on(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = 1, .p = 0, .g = g, .type = TW_EV_STW_END);
}

static void proc(struct tt_analyses *t, to_ns time, uint64_t p, enum tw_event type) {
  TT_FEED(t, &gen1, .time = time, .m = 2 + (int64_t)p, .p = (int64_t)p, .g = TO_NONE, .type = type,
          .args = { p, 1, 99, TW_PROC_SYSCALL });
}

static const struct to_report *report(struct tt_analyses *t, enum to_window window) {
  return tt_report(t, TO_ANALYSIS_STW, window);
}

static bool text_is(struct to_string text, const char *other) {
  return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

/* I6 */
Test(an_stw, stops_are_summed_by_reason_and_by_who_did_it) {
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, 1);
  stop(&t, 100, 0, 5, MARK), go_on(&t, 150, 5);
  stop(&t, 200, 0, 5, MARK), go_on(&t, 300, 5);
  stop(&t, 400, 0, 6, ODD), go_on(&t, 420, 6);
  stop(&t, 500, 0, 6, ODD);
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(tt_distribution(r, "stopped")->sum.count, 3);
  cr_assert_eq(tt_distribution(r, "stopped")->sum.total_ns, 170);
  cr_assert_eq(tt_distribution(r, "stopped")->sum.max_ns, 100);
  cr_assert_eq(tt_distribution(r, "stopped")->p50_ns, 50);
  cr_assert_eq(tt_table(r, "by_reason")->rows, 2);
  cr_assert(text_is(tt_cell(r, "by_reason", 0, "reason")->text, "GC mark termination"));
  cr_assert_str_eq(tt_cell(r, "by_reason", 0, "id")->text.data, "/stw/gc/mark-termination");
  cr_assert_eq(tt_cell(r, "by_reason", 0, "stopped")->distribution->sum.total_ns, 150);
  cr_assert_eq(tt_cell(r, "by_reason", 0, "stopped")->distribution->p99_ns, 100);
  cr_assert_str_eq(tt_cell(r, "by_reason", 1, "id")->text.data, "/stw/other/swap-the-moon-v2");
  cr_assert_eq(tt_cell(r, "by_reason", 1, "open")->number, 1);
  cr_assert_eq(tt_table(r, "by_goroutine")->rows, 2);
  cr_assert_eq(tt_cell(r, "by_goroutine", 0, "goroutine")->number, 5);
  cr_assert_eq(tt_cell(r, "by_goroutine", 0, "stopped")->distribution->sum.count, 2);
  cr_assert_eq(tt_cell(r, "by_goroutine", 0, "stack")->stack->frames[0]->line, 7);
  struct to_stop_total total[2];
  cr_assert_eq(to_analyses_stops(t.a, 1, total), 1);
  cr_assert_eq(to_analyses_stops(t.a, 2, total), 2);
  cr_assert_str_eq(total[0].id, "/stw/gc/mark-termination");
  cr_assert_eq(total[0].total_ns, 150);
  cr_assert_eq(total[1].total_ns, 20);
  tt_analyses_close(&t);
}

Test(an_stw, time_to_stop_ends_with_the_last_other_P) {
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, 1);
  TT_FEED(&t, &gen1, .time = 2, .m = 1, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_STATUS,
          .args = { 0, TW_PROC_RUNNING, TO_PROC_UNDETERMINED });
  stop(&t, 10, 0, 5, START), go_on(&t, 20, 5);
  cr_assert_eq(tt_distribution(report(&t, TO_WINDOW_ALL), "time_to_stop")->sum.count, 0,
               "the trace starts in a stopped world");
  proc(&t, 30, 1, TW_EV_PROC_START);
  proc(&t, 31, 2, TW_EV_PROC_START);
  stop(&t, 100, 0, 5, MARK);
  proc(&t, 130, 1, TW_EV_PROC_STOP);
  cr_assert_eq(tt_distribution(report(&t, TO_WINDOW_ALL), "time_to_stop")->sum.count, 0);
  proc(&t, 170, 2, TW_EV_PROC_STEAL);
  proc(&t, 180, 2, TW_EV_PROC_START); /* starts the world again; no stop of this test */
  proc(&t, 190, 2, TW_EV_PROC_STOP);
  go_on(&t, 200, 5);
  stop(&t, 300, 0, 5, MARK), go_on(&t, 310, 5); /* no other goroutine runs */
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "time_to_stop")->sum.count, 2);
  cr_assert_eq(tt_distribution(r, "time_to_stop")->sum.total_ns, 70);
  cr_assert_eq(tt_distribution(r, "time_to_stop")->sum.max_ns, 70);
  tt_analyses_close(&t);
}

Test(an_stw, no_time_to_stop_where_Ps_may_be_unknown) {
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, 1);
  stop(&t, 100, 0, 5, MARK), go_on(&t, 150, 5);
  cr_assert_eq(tt_distribution(report(&t, TO_WINDOW_ALL), "time_to_stop")->sum.count, 0);
  sync_event(&t, 200); /* the generation that ends has named every P */
  stop(&t, 300, 0, 5, MARK), go_on(&t, 350, 5);
  cr_assert_eq(tt_distribution(report(&t, TO_WINDOW_ALL), "time_to_stop")->sum.count, 1);
  to_analyses_epoch(t.a);
  sync_event(&t, 400);
  stop(&t, 500, 0, 5, MARK), go_on(&t, 550, 5);
  cr_assert_eq(tt_distribution(report(&t, TO_WINDOW_ALL), "time_to_stop")->sum.count, 1);
  tt_analyses_close(&t);
}

Test(an_stw, the_share_of_wall_counts_what_lies_in_the_window) {
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, 0);
  stop(&t, 2 * SECOND, 0, 5, MARK), go_on(&t, 4 * SECOND, 5);
  cr_assert_float_eq(tt_figure(report(&t, TO_WINDOW_10S), "wall_share")->share, 0.5, 1e-9);
  stop(&t, 6 * SECOND, 0, 5, MARK);
  TT_FEED(&t, &gen1, .time = 8 * SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
  cr_assert_float_eq(tt_figure(report(&t, TO_WINDOW_10S), "wall_share")->share, 0.5, 1e-9,
                     "the open stop counts");
  go_on(&t, 9 * SECOND, 5);
  TT_FEED(&t, &gen1, .time = 18 * SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_STW, TO_WINDOW_10S);
  cr_assert_eq(r->from, 8 * SECOND);
  cr_assert_float_eq(tt_figure(r, "wall_share")->share, 0.1, 1e-9,
                     "one second of three lies in it");
  cr_assert_eq(tt_distribution(r, "stopped")->sum.total_ns, (uint64_t)(3 * SECOND),
               "with its whole length");
  cr_assert_eq(r->from_wall_ns, (uint64_t)(2 * SECOND + 500 + 8 * SECOND - 1000));
  tt_analyses_close(&t);
}

Test(an_stw, stoppers_that_no_window_shows_make_room_and_stay_counted) {
  struct tt_analyses t;
  uint64_t listed = 0;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, 0);
  for (int64_t i = 1; i <= 3000; i++)
    stop(&t, i * SECOND, 0, 1000 + i, MARK), go_on(&t, i * SECOND + 10, 1000 + i);
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(tt_table(r, "by_goroutine")->rows, 11, "all of the last seconds have their row");
  cr_assert_eq(tt_cell(r, "by_goroutine", 10, "goroutine")->number, 4000);
  r = report(&t, TO_WINDOW_ALL);
  for (size_t i = 0; i < tt_table(r, "by_goroutine")->rows; i++)
    listed += tt_cell(r, "by_goroutine", i, "stopped")->distribution->sum.count;
  cr_assert_eq(listed, 3000);
  cr_assert(tt_table(r, "by_goroutine")->has_other);
  tt_analyses_close(&t);
}

/* Rows from before the clock fell seem to be in the future. */
Test(an_stw, stoppers_make_room_after_the_clock_fell) {
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  for (int64_t begin = 100000; begin >= 0; begin -= 100000) {
    sync_event(&t, begin * SECOND);
    for (int64_t i = begin + 1; i <= begin + 2000; i++)
      stop(&t, i * SECOND, 0, 1000 + i, MARK), go_on(&t, i * SECOND + 10, 1000 + i);
    cr_assert_eq(tt_table(report(&t, TO_WINDOW_10S), "by_goroutine")->rows, 11);
    to_analyses_epoch(t.a);
  }
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(tt_cell(r, "by_goroutine", 10, "goroutine")->number, 3000);
  cr_assert_eq(tt_distribution(report(&t, TO_WINDOW_ALL), "stopped")->sum.count, 4000);
  tt_analyses_close(&t);
}

Test(an_stw, reasons_beyond_the_limit_share_a_row) {
  static char names[60][16];
  struct to_generation gen = { .number = 1 };
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  for (int i = 0; i < 60; i++) {
    snprintf(names[i], sizeof(names[i]), "reason %d", i);
    gen.string[1] = names[i];
    TT_FEED(&t, &gen, .time = 10 + i * 10, .m = 1, .g = 5, .type = TW_EV_STW_BEGIN,
            .args = { 1, 0 });
    go_on(&t, 13 + i * 10, 5);
  }
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "by_reason")->rows, 49);
  cr_assert_str_eq(tt_cell(r, "by_reason", 0, "id")->text.data, "/stw/other/other-reasons");
  cr_assert_eq(tt_cell(r, "by_reason", 0, "stopped")->distribution->sum.count, 12);
  cr_assert_eq(tt_distribution(r, "stopped")->sum.total_ns, 180);
  tt_analyses_close(&t);
}

static struct to_watched restarted;

static void on_span(void *self, const struct to_watched *span) {
  (void)self;
  restarted = *span;
}

Test(an_stw, a_watch_hears_of_each_stop_when_it_ends) {
  struct to_watch watch = { .span = on_span, .syscall_ns = INT64_MAX };
  struct tt_analyses t;

  tt_analyses_open(&t, 10000000, 100);
  to_analyses_watch(t.a, &watch);
  sync_event(&t, 1);
  stop(&t, 100, 0, 7, MARK);
  cr_assert_null(restarted.id);
  go_on(&t, 350, 7);
  cr_assert_eq(restarted.what, TO_WORLD_RESTARTED);
  cr_assert_eq(restarted.end - restarted.begin, 250);
  cr_assert_eq(restarted.goroutine, 7);
  cr_assert_eq(restarted.thread, 1);
  cr_assert_str_eq(restarted.id, "/stw/gc/mark-termination");
  tt_analyses_close(&t);
}

Test(an_stw, stops_that_never_end_are_kept_up_to_a_limit) {
  enum { OPEN = 40, KEPT = 16 };
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, 1);
  for (int g = 0; g < OPEN; g++) stop(&t, 100 + g, 0, g, MARK);
  cr_assert_eq(tt_cell(report(&t, TO_WINDOW_ALL), "by_reason", 0, "open")->number, KEPT);
  for (int g = 0; g < OPEN; g++) go_on(&t, 1000 + g, g);
  cr_assert_eq(tt_distribution(report(&t, TO_WINDOW_ALL), "stopped")->sum.count, KEPT,
               "the first ones are forgotten");
  cr_assert_eq(tt_cell(report(&t, TO_WINDOW_ALL), "by_reason", 0, "open")->number, 0);
  cr_assert_eq(to_analyses_last_report(t.a)->kind, TO_ANALYSIS_STW);
  tt_analyses_close(&t);
}

Test(an_stw, a_reason_that_its_generation_does_not_have_is_an_empty_one) {
  struct tt_analyses t;

  tt_analyses_open(&t, 1, 100);
  sync_event(&t, 1);
  stop(&t, 100, 0, 5, 4), go_on(&t, 150, 5);
  cr_assert_eq(tt_cell(report(&t, TO_WINDOW_ALL), "by_reason", 0, "reason")->text.len, 0);
  cr_assert_eq(
      tt_cell(report(&t, TO_WINDOW_ALL), "by_reason", 0, "stopped")->distribution->sum.total_ns,
      50);
  tt_analyses_close(&t);
}
