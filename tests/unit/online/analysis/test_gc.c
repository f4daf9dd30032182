/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/analysis/mutator.h"
#include "unit/online/analysis/fake_generation.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

enum { SWEEP = 1, MARK = 2, WORKER = 3, IDLE = 4 };
static const struct to_generation gen1 = {
  .number = 1,
  .string = { [SWEEP] = "GC sweep termination",
              [MARK] = "GC mark termination",
              [WORKER] = "GC (fractional)",
              [IDLE] = "GC (idle)" },
  .stack = { [1] = { { 100, 7, "runtime.mallocgc", "malloc.go" },
                     { 200, 9, "main.worker", "main.go" } } },
};

static void event(struct tt_analyses *t, to_ns time, int64_t p, int64_t g, enum tw_event type,
                  uint64_t first, uint64_t second) {
  TT_FEED(t, &gen1, .time = time, .m = p, .p = p, .g = g, .slot = (uint32_t)first + 1,
          .type = (uint8_t)type, .args = { first, second });
}

static void procs(struct tt_analyses *t, to_ns time, uint64_t n) {
  event(t, time, 0, 1, TW_EV_PROCS_CHANGE, n, 0);
}

static void begin_stream(struct tt_analyses *t, uint64_t n) {
  TT_FEED(t, &gen1, .time = 0, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
  for (uint64_t g = 1; g <= 9; g++)
    TT_FEED(t, &gen1, .time = 0, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .slot = (uint32_t)g + 1,
            .type = TW_EV_GO_STATUS, .args = { g, TO_NONE, TW_GO_WAITING });
  procs(t, 0, n);
}

static void open_stream(struct tt_analyses *t, uint64_t n) {
  tt_analyses_open(t, 10 * MS, 100);
  begin_stream(t, n);
}

static void open_file(struct tt_analyses *t, uint64_t n) {
  const struct to_analysis_config config = { .stacks_max = 100, .every_curve = true };

  tb_mem_init(&t->mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_analyses_new(&t->mem, &config, &t->a), TB_OK);
  begin_stream(t, n);
}

/* Runs a GC worker on the P. */
static void work(struct tt_analyses *t, to_ns from, to_ns until, int64_t p, uint64_t g,
                 uint64_t label) {
  event(t, from - 1, p, TO_NONE, TW_EV_GO_START, g, 1);
  event(t, from, p, (int64_t)g, TW_EV_GO_LABEL, label, 0);
  event(t, until, p, (int64_t)g, TW_EV_GO_BLOCK, 0, 1);
}

static const struct to_report *report(struct tt_analyses *t, enum to_window window) {
  return tt_report(t, TO_ANALYSIS_GC, window);
}

static double utilization(struct tt_analyses *t, enum to_window window, size_t row,
                          const char *column) {
  return tt_cell(report(t, window), "mmu", row, column)->share;
}

Test(gc, a_cycle_has_its_stops_workers_assists_and_heap) {
  struct tt_analyses t;

  open_stream(&t, 4);
  event(&t, 10, 0, 5, TW_EV_HEAP_ALLOC, 900, 0);
  event(&t, 11, 0, 5, TW_EV_HEAP_GOAL, 1000, 0);
  event(&t, 100, 0, 5, TW_EV_GC_BEGIN, 1, 1);
  event(&t, 110, 0, 5, TW_EV_STW_BEGIN, SWEEP, 1);
  event(&t, 130, 0, 5, TW_EV_STW_END, SWEEP, 0);
  work(&t, 200, 300, 1, 7, WORKER);
  work(&t, 210, 250, 2, 8, IDLE);
  event(&t, 400, 0, 5, TW_EV_GC_MARK_ASSIST_BEGIN, 1, 0);
  event(&t, 470, 0, 5, TW_EV_GC_MARK_ASSIST_END, 0, 0);
  event(&t, 500, 0, 5, TW_EV_STW_BEGIN, MARK, 1);
  event(&t, 510, 0, 5, TW_EV_HEAP_ALLOC, 300, 0);
  event(&t, 520, 0, 5, TW_EV_GC_END, 2, 0);
  event(&t, 540, 0, 5, TW_EV_STW_END, MARK, 0);
  event(&t, 550, 0, 5, TW_EV_HEAP_GOAL, 600, 0);
  event(&t, 1000, 0, 5, TW_EV_GC_BEGIN, 3, 1);
  event(&t, 1100, 0, 5, TW_EV_HEAP_ALLOC, 500, 0);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_distribution(r, "cycles")->sum.count, 1);
  cr_assert_eq(tt_distribution(r, "cycles")->sum.total_ns, 420);
  cr_assert_float_eq(tt_figure(r, "wall_share")->share, 520.0 / 1100, 1e-9, "the open one counts");
  cr_assert_eq(tt_figure(r, "background_ns")->number, 100);
  cr_assert_eq(tt_figure(r, "idle_ns")->number, 40);
  cr_assert_eq(tt_figure(r, "heap_bytes")->number, 500);
  cr_assert_eq(tt_figure(r, "heap_goal_bytes")->number, 600);
  cr_assert_eq(tt_distribution(r, "assist")->sum.total_ns, 70);
  cr_assert_eq(tt_table(r, "by_entry")->rows, 1);
  cr_assert_str_eq(tt_cell(r, "by_entry", 0, "entry")->text.data, "main.worker");
  cr_assert_eq(tt_table(r, "cycles")->rows, 2);
  cr_assert_eq(tt_cell(r, "cycles", 0, "open")->number, 1);
  cr_assert_eq(tt_cell(r, "cycles", 0, "duration_ns")->number, 100);
  cr_assert(tt_cell(r, "cycles", 0, "heap_after_bytes")->none);
  cr_assert_eq(tt_cell(r, "cycles", 1, "start_ns")->number, 100);
  cr_assert_eq(tt_cell(r, "cycles", 1, "duration_ns")->number, 420);
  cr_assert_eq(tt_cell(r, "cycles", 1, "sweep_termination_ns")->number, 20);
  cr_assert_eq(tt_cell(r, "cycles", 1, "mark_termination_ns")->number, 40);
  cr_assert_eq(tt_cell(r, "cycles", 1, "background_ns")->number, 100);
  cr_assert_eq(tt_cell(r, "cycles", 1, "idle_ns")->number, 40);
  cr_assert_eq(tt_cell(r, "cycles", 1, "assist_ns")->number, 70);
  cr_assert_eq(tt_cell(r, "cycles", 1, "heap_before_bytes")->number, 900);
  cr_assert_eq(tt_cell(r, "cycles", 1, "heap_after_bytes")->number, 300);
  cr_assert_eq(tt_cell(r, "cycles", 1, "heap_goal_bytes")->number, 1000);
  tt_analyses_close(&t);
}

Test(gc, a_worker_that_starts_twice_counts_for_ever_as_in_go_and_not_in_fact) {
  struct tt_analyses t;

  open_stream(&t, 2);
  event(&t, MS, 0, 5, TW_EV_GC_BEGIN, 1, 1);
  work(&t, 10 * MS, 11 * MS, 1, 7, WORKER);
  work(&t, 20 * MS, 21 * MS, 1, 7, WORKER);
  event(&t, 22 * MS, 0, 5, TW_EV_GC_END, 2, 0);
  procs(&t, 40 * MS, 2);
  /* 1 ms: a worker runs on one of two Ps all the time */
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 0, "utilization"), 0.5, 1e-12);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 0, "exact_utilization"), 0.5, 1e-12);
  /* 10 ms: for Go the P is gone from 20 ms - 1 ns on */
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 3, "utilization"), 0.5, 1e-12);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 3, "exact_utilization"), 0.95, 1e-12);
  /* longer than the stream: the mean of the whole stream */
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 9, "exact_utilization"), 39.0 / 40, 1e-12);
  tt_analyses_close(&t);
}

Test(gc, stops_and_assists_take_from_the_program_and_other_stops_do_not) {
  struct tt_analyses t;
  static const struct to_generation other = { .number = 1, .string = { [1] = "read mem stats" } };

  open_stream(&t, 4);
  TT_FEED(&t, &other, .time = MS, .m = 1, .p = 0, .g = 5, .type = TW_EV_STW_BEGIN,
          .args = { 1, 0 });
  TT_FEED(&t, &other, .time = 2 * MS, .m = 1, .p = 0, .g = 5, .type = TW_EV_STW_END, .args = { 1 });
  procs(&t, 5 * MS, 4);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 0, "utilization"), 1, 1e-12);
  event(&t, 10 * MS, 0, 5, TW_EV_GC_BEGIN, 1, 1);
  event(&t, 11 * MS, 0, 5, TW_EV_GC_MARK_ASSIST_BEGIN, 1, 0);
  event(&t, 12 * MS, 0, 5, TW_EV_GO_BLOCK, 0, 1); /* while it waits, its P runs the program */
  event(&t, 15 * MS, 1, TO_NONE, TW_EV_GO_START, 5, 2);
  event(&t, 16 * MS, 1, 5, TW_EV_GC_MARK_ASSIST_END, 0, 0);
  procs(&t, 30 * MS, 4);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 0, "utilization"), 0.75, 1e-12);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 2, "utilization"), 1 - 0.5 / 5, 1e-12,
                     "5 ms hold both parts of it");
  event(&t, 40 * MS, 1, 5, TW_EV_STW_BEGIN, MARK, 0);
  event(&t, 40 * MS + MS / 2, 1, 5, TW_EV_STW_END, MARK, 0);
  procs(&t, 60 * MS, 4);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 0, "utilization"), 0.5, 1e-12);
  cr_assert_eq(tt_table(report(&t, TO_WINDOW_ALL), "mmu")->rows, 10);
  cr_assert_eq(tt_cell(report(&t, TO_WINDOW_ALL), "mmu", 9, "window_ns")->number, SECOND);
  tt_analyses_close(&t);
}

static void take_words(void *self, const struct to_finding *finding) {
  snprintf(self, 200, "%.*s", (int)finding->words.len, finding->words.data);
}

/* Returns the finding after three generations of 1 s, in which one goroutine computes and
 * another assists for 800 ms. */
static void find(to_ns runs_ns, char out[200]) {
  struct tt_analyses t;

  out[0] = '\0';
  open_stream(&t, 2);
  event(&t, 1, 1, TO_NONE, TW_EV_GO_START, 6, 1);
  event(&t, 1, 0, TO_NONE, TW_EV_GO_START, 5, 1);
  event(&t, 2, 0, 5, TW_EV_GC_BEGIN, 1, 1);
  for (int i = 0; i < 3; i++) {
    to_ns begin = i * SECOND + 100 * MS;
    event(&t, begin, 0, 5, TW_EV_GC_MARK_ASSIST_BEGIN, 1, 0);
    event(&t, begin + runs_ns, 0, 5, TW_EV_GO_BLOCK, 0, 1);
    event(&t, begin + 800 * MS, 1, 6, TW_EV_GO_UNBLOCK, 5, 2);
    event(&t, begin + 800 * MS, 0, TO_NONE, TW_EV_GO_START, 5, 3);
    event(&t, begin + 800 * MS, 0, 5, TW_EV_GC_MARK_ASSIST_END, 0, 0);
    procs(&t, (i + 1) * SECOND, 2);
    cr_assert_eq(to_analyses_findings(t.a, &(struct to_finding_sink){ out, take_words }), TB_OK);
  }
  tt_analyses_close(&t);
}

Test(gc, an_assist_that_waits_takes_no_running_time) {
  char words[200];

  find(10 * MS, words);
  cr_assert_str_eq(words, "");
  find(400 * MS, words); /* of its 600 ms, and of the other's 1,000 ms */
  cr_assert_str_eq(words, "25 % of the time that goroutines ran went into helping the garbage "
                          "collector, most of it in goroutines of main.worker");
}

Test(gc, an_assist_that_the_first_generation_meets_was_there_from_its_begin) {
  struct tt_analyses t;

  open_stream(&t, 2);
  procs(&t, 3 * MS, 2);
  event(&t, 4 * MS, 0, 5, TW_EV_GC_MARK_ASSIST_ACTIVE, 5, 0);
  event(&t, 5 * MS, 0, 5, TW_EV_GC_MARK_ASSIST_END, 0, 0);
  procs(&t, 10 * MS, 2);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 2, "utilization"), 0.5, 1e-12);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 3, "utilization"), 0.75, 1e-12);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 3, "exact_utilization"), 0.75, 1e-12);
  tt_analyses_close(&t);
}

Test(gc, a_window_forgets_what_is_older_and_all_does_not) {
  struct tt_analyses t;

  open_stream(&t, 2);
  TT_FEED(&t, &gen1, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 2 });
  event(&t, SECOND, 0, 5, TW_EV_STW_BEGIN, MARK, 0);
  event(&t, SECOND + 5 * MS, 0, 5, TW_EV_STW_END, MARK, 0);
  for (to_ns i = 2; i <= 9; i++) procs(&t, i * SECOND, 2);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_10S, 3, "exact_utilization"), 0.5, 1e-12);
  for (to_ns i = 10; i <= 30; i++) procs(&t, i * SECOND, 2);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_10S, 3, "exact_utilization"), 1, 1e-12);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_1MIN, 3, "exact_utilization"), 0.5, 1e-12);
  for (to_ns i = 31; i <= 500; i++) procs(&t, i * SECOND, 2);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_5MIN, 3, "exact_utilization"), 1, 1e-12);
  cr_assert_float_eq(utilization(&t, TO_WINDOW_ALL, 3, "exact_utilization"), 0.5, 1e-12);
  tt_analyses_close(&t);
}

Test(gc, steps_are_bounded_and_what_is_joined_is_a_lower_bound) {
  struct tt_analyses t;

  open_stream(&t, 2);
  for (to_ns i = 1; i <= 40000; i++) { /* the program stands still in 10 us of each 20 us */
    event(&t, i * 20000, 0, 5, TW_EV_STW_BEGIN, MARK, 0);
    event(&t, i * 20000 + 10000, 0, 5, TW_EV_STW_END, MARK, 0);
  }
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_gt(tt_figure(r, "joined_steps")->number, 0);
  double lowest = tt_cell(r, "mmu", 0, "exact_utilization")->share;
  cr_assert(lowest >= 0 && lowest <= 0.5);
  cr_assert_lt(t.mem.bytes, 4 << 20);
  tt_analyses_close(&t);
}

Test(gc, a_hole_ends_what_goes_on) {
  struct tt_analyses t;

  open_stream(&t, 2);
  event(&t, MS, 0, 5, TW_EV_GC_BEGIN, 1, 1);
  event(&t, 2 * MS, 0, 5, TW_EV_STW_BEGIN, MARK, 0);
  to_analyses_epoch(t.a);
  procs(&t, 100 * MS, 2);
  procs(&t, 120 * MS, 2);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(tt_table(r, "cycles")->rows, 0);
  cr_assert_eq(tt_distribution(r, "cycles")->sum.count, 0);
  cr_assert_float_eq(tt_cell(r, "mmu", 3, "utilization")->share, 1, 1e-12);
  tt_analyses_close(&t);
}

/* Lengths of 1 ms, 2 ms and 10 ms. */
enum { OF_1MS = 0, OF_2MS = 1, OF_10MS = 3, OF_1S = 9 };

static double of_table(struct tt_analyses *t, const char *table, size_t row, const char *column) {
  return tt_cell(report(t, TO_WINDOW_ALL), table, row, column)->share;
}

Test(gc, sweeps_take_from_the_program_where_they_count) {
  struct tt_analyses t;

  open_file(&t, 2);
  event(&t, 20 * MS, 1, 5, TW_EV_GC_SWEEP_BEGIN, 1, 0);
  event(&t, 21 * MS, 1, 5, TW_EV_GC_SWEEP_END, 0, 0);
  procs(&t, 40 * MS, 2);
  cr_assert_float_eq(of_table(&t, "mmu", OF_1MS, "utilization"), 1, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_with_sweep", OF_1MS, "utilization"), 0.5, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_with_sweep", OF_2MS, "exact_utilization"), 0.75, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_with_sweep", OF_1S, "utilization"), 39.5 / 40, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_1MS, "utilization"), 1, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_1MS, "with_sweep_utilization"), 0, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_10MS, "with_sweep_exact_utilization"), 0.9,
                     1e-12);
  tt_analyses_close(&t);
}

Test(gc, of_a_P_alone_a_stop_takes_all_and_a_dedicated_worker_nothing) {
  static const struct to_generation labels = { .number = 1, .string = { [1] = "GC (dedicated)" } };
  struct tt_analyses t;

  open_file(&t, 2);
  event(&t, MS, 0, 5, TW_EV_GC_BEGIN, 1, 1);
  event(&t, 5 * MS, 0, TO_NONE, TW_EV_GO_START, 6, 1);
  TT_FEED(&t, &labels, .time = 5 * MS, .m = 0, .p = 0, .g = 6, .type = TW_EV_GO_LABEL,
          .args = { 1 });
  event(&t, 9 * MS, 0, 6, TW_EV_GO_BLOCK, 0, 1);
  procs(&t, 15 * MS, 2);
  cr_assert_float_eq(of_table(&t, "mmu", OF_2MS, "utilization"), 0.5, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_2MS, "utilization"), 1, 1e-12);
  work(&t, 20 * MS, 21 * MS, 1, 7, WORKER); /* a fractional worker counts */
  procs(&t, 50 * MS, 2);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_2MS, "utilization"), 0.5, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_2MS, "exact_utilization"), 0.5, 1e-12);
  event(&t, 60 * MS, 0, 5, TW_EV_STW_BEGIN, MARK, 0);
  event(&t, 62 * MS, 0, 5, TW_EV_STW_END, MARK, 0);
  procs(&t, 80 * MS, 2);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_2MS, "exact_utilization"), 0, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_10MS, "exact_utilization"), 0.8, 1e-12);
  tt_analyses_close(&t);
}

/* The figures of a P end when it is taken away. A later P with the same number is another one. */
Test(gc, a_P_that_is_taken_away_counts_for_the_time_that_it_was_there) {
  struct tt_analyses t;

  open_file(&t, 2);
  event(&t, 2 * MS, 1, 5, TW_EV_GC_MARK_ASSIST_BEGIN, 1, 0);
  event(&t, 3 * MS, 1, 5, TW_EV_GC_MARK_ASSIST_END, 0, 0);
  procs(&t, 4 * MS, 1);
  procs(&t, 20 * MS, 2);
  procs(&t, 40 * MS, 2);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_2MS, "utilization"), 0.5, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_per_proc", OF_10MS, "utilization"), 0.75, 1e-12,
                     "all of its 4 ms");
  tt_analyses_close(&t);
}

Test(gc, what_the_first_generation_meets_was_there_for_the_whole_and_a_hole_ends_it) {
  struct tt_analyses t;

  open_file(&t, 2);
  procs(&t, 3 * MS, 2);
  event(&t, 4 * MS, 1, TO_NONE, TW_EV_GC_SWEEP_ACTIVE, 1, 0);
  event(&t, 5 * MS, 1, 5, TW_EV_GC_SWEEP_END, 0, 0);
  procs(&t, 10 * MS, 2);
  cr_assert_float_eq(of_table(&t, "mmu_with_sweep", OF_10MS, "utilization"), 0.75, 1e-12);
  event(&t, 11 * MS, 1, 5, TW_EV_GC_SWEEP_BEGIN, 1, 0);
  to_analyses_epoch(t.a);
  begin_stream(&t, 2);
  procs(&t, 40 * MS, 2);
  cr_assert_float_eq(of_table(&t, "mmu_with_sweep", OF_10MS, "utilization"), 0.75, 1e-12);
  cr_assert_float_eq(of_table(&t, "mmu_with_sweep", OF_1S, "utilization"), 1, 1e-12,
                     "of the stretch since");
  tt_analyses_close(&t);
}

Test(gc, without_every_curve_there_is_a_note_for_these_tables) {
  struct tt_analyses t;

  open_stream(&t, 2);
  procs(&t, 40 * MS, 2);
  cr_assert_eq(tt_table(report(&t, TO_WINDOW_ALL), "mmu")->rows, 10);
  cr_assert_eq(tt_table(report(&t, TO_WINDOW_ALL), "mmu_with_sweep")->rows, 0);
  cr_assert_eq(tt_table(report(&t, TO_WINDOW_ALL), "mmu_per_proc")->rows, 0);
  cr_assert_eq(report(&t, TO_WINDOW_ALL)->notes, 1);
  tt_analyses_close(&t);
  open_file(&t, 2);
  procs(&t, 40 * MS, 2);
  cr_assert_eq(report(&t, TO_WINDOW_ALL)->notes, 0);
  tt_analyses_close(&t);
}

/* ---- against all windows, one by one ---- */

enum { STOPS = 400 };

struct stops {
  to_ns at[2 * STOPS]; /* begins and ends in turn */
  size_t n;
};

static double stood_until(const struct stops *s, to_ns time) {
  double ns = 0;

  for (size_t i = 0; i + 1 < s->n && s->at[i] < time; i += 2)
    ns += (double)((s->at[i + 1] < time ? s->at[i + 1] : time) - s->at[i]);
  return ns;
}

static void look_at(const struct stops *s, to_ns end, to_ns length, to_ns from, to_ns until,
                    double *lowest) {
  if (end < from || end > until || end < length) return;
  double mean = 1 - (stood_until(s, end) - stood_until(s, end - length)) / (double)length;
  if (mean < *lowest) *lowest = mean;
}

static double lowest(const struct stops *s, to_ns length, to_ns from, to_ns until) {
  double mean = 2;

  for (size_t i = 0; i < s->n; i++) {
    look_at(s, s->at[i], length, from, until, &mean);
    look_at(s, s->at[i] + length, length, from, until, &mean);
  }
  look_at(s, from, length, from, until, &mean);
  look_at(s, until, length, from, until, &mean);
  return mean;
}

Test(gc, the_worst_stretch_is_that_of_all_there_are) {
  static struct stops s;
  struct tt_analyses t;
  uint64_t chance = 1;
  to_ns now = 0;

  open_stream(&t, 2);
  while (s.n < 2 * STOPS) {
    chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407;
    now += 1 + (to_ns)(chance >> 40) * (chance >> 39 & 1 ? 10 : 1);
    event(&t, now, 0, 5, s.n % 2 == 0 ? TW_EV_STW_BEGIN : TW_EV_STW_END, MARK, 0);
    s.at[s.n++] = now;
  }
  cr_assert_gt(now, 15 * SECOND);
  procs(&t, now + 3 * MS, 2);
  for (unsigned w = TO_WINDOW_10S; w <= TO_WINDOW_ALL; w++) {
    const struct to_report *r = report(&t, (enum to_window)w);
    for (size_t row = 0; row < 10; row++) {
      to_ns length = tt_cell(r, "mmu", row, "window_ns")->number;
      double share = tt_cell(r, "mmu", row, "exact_utilization")->share;
      cr_assert_float_eq(share, lowest(&s, length, r->from, now + 3 * MS), 1e-9, "%u, %zu", w, row);
    }
  }
  tt_analyses_close(&t);
}

static void take(struct to_mutator *m, to_ns time, int64_t g, enum tw_event type, uint64_t first) {
  struct to_event ev = { .time = time, .p = 0, .g = g, .type = (uint8_t)type, .args = { first } };
  cr_assert_eq(to_mutator_event(m, &gen1, &ev), TB_OK);
}

Test(gc, goroutines_that_helped_in_a_cycle_are_not_followed_after_it) {
  struct to_mutator m;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_mutator_init(&m, &mem, false), TB_OK);
  take(&m, 1, TO_NONE, TW_EV_SYNC, 1);
  take(&m, 2, 1, TW_EV_PROCS_CHANGE, 2);
  take(&m, 3, 1, TW_EV_GC_BEGIN, 1);
  take(&m, 4, 77, TW_EV_GO_LABEL, WORKER);
  for (int64_t g = 1000; g < 2000; g++) {
    take(&m, 2 * g, g, TW_EV_GC_MARK_ASSIST_BEGIN, 1);
    cr_assert(to_followed_has(&m.follows, g));
    take(&m, 2 * g + 1, g, TW_EV_GC_MARK_ASSIST_END, 0);
  }
  take(&m, 5000, 1, TW_EV_GC_END, 2);
  cr_assert(to_followed_has(&m.follows, 77), "a worker is");
  for (int64_t g = 1000; g < 2000; g++) cr_assert(!to_followed_has(&m.follows, g), "%ld", (long)g);
  to_mutator_fini(&m);
  cr_assert_eq(mem.bytes, 0);
}
