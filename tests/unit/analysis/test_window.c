/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/window.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

struct fixture {
  struct tb_mem mem;
  struct to_windows w;
  uint32_t plain;
  unsigned hist;
};

static void setup_windows(struct fixture *f) {
  tb_mem_init(&f->mem, tb_mem_libc, NULL, SIZE_MAX);
  to_windows_init(&f->w, &f->mem);
  cr_assert_eq(to_windows_series(&f->w, &f->plain), TB_OK);
  f->hist = to_windows_hist(&f->w);
}

static void add_span(struct fixture *f, to_ns end, to_ns length) {
  cr_assert_eq(to_windows_move(&f->w, end), TB_OK);
  to_windows_note(&f->w, 1, 1 + (uint64_t)(end / SECOND), end);
  cr_assert_eq(to_windows_record(&f->w, f->hist, end - length, end), TB_OK);
  to_windows_add(&f->w, f->plain, end - length, end, 0, false);
}

static void close_windows(struct fixture *f) {
  to_windows_fini(&f->w);
  cr_assert_eq(f->mem.bytes, 0);
}

/* Spans every 100 ms for 1000 s, of 1, 2, 3... us: their sums say which of them a view holds. */
Test(window, a_view_is_exact_for_the_stretch_it_names) {
  static const struct {
    to_ns length, slot;
  } want[] = { { 10 * SECOND, SECOND },
               { 60 * SECOND, 5 * SECOND },
               { 300 * SECOND, 30 * SECOND } };
  enum { SPANS = 10000 };
  struct fixture f;

  setup_windows(&f);
  for (int i = 0; i < SPANS; i++) {
    add_span(&f, i * 100 * MS, (i + 1) * 1000);
    if (i % 97 != 0 && i != SPANS - 1) continue;
    for (unsigned k = 0; k <= TO_WINDOW_ALL; k++) {
      struct to_view v;
      uint64_t count = 0, total = 0;

      cr_assert_eq(to_windows_view(&f.w, (enum to_window)k, &v), TB_OK);
      for (int j = 0; j <= i; j++)
        if (j * 100 * MS >= v.from) count++, total += (uint64_t)(j + 1) * 1000;
      struct to_distribution d = to_view_distribution(&v, f.hist, to_view_sum(&v, f.plain));
      cr_assert_eq(d.sum.count, count, "window %u at %d: %lu, not %lu", k, i, d.sum.count, count);
      cr_assert_eq(d.sum.total_ns, total);
      cr_assert_eq(d.sum.max_ns, (uint64_t)(i + 1) * 1000);
      cr_assert_eq(v.stretch.events, count);
      cr_assert_eq(v.stretch.last_gen, (uint64_t)(i / 10) + 1);
      cr_assert_eq(v.until, i * 100 * MS);
      cr_assert_eq(f.w.scratch.hist[0].count, count);
      if (k == TO_WINDOW_ALL) {
        cr_assert_eq(v.from, 0);
      } else if (v.from > 0) {
        cr_assert_geq(v.until - v.from, want[k].length);
        cr_assert_lt(v.until - v.from, want[k].length + want[k].slot);
      }
    }
  }
  cr_assert_lt(f.w.slots, 45);
  close_windows(&f);
}

Test(window, a_long_silence_empties_the_windows_and_not_the_total) {
  struct fixture f;
  struct to_view v;

  setup_windows(&f);
  for (int i = 0; i < 100; i++) add_span(&f, i * SECOND, MS);
  add_span(&f, 5000 * SECOND, 2 * MS);
  for (unsigned k = 0; k < TO_WINDOW_ALL; k++) {
    cr_assert_eq(to_windows_view(&f.w, (enum to_window)k, &v), TB_OK);
    cr_assert_eq(to_view_sum(&v, f.plain).count, 1);
  }
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_eq(to_view_sum(&v, f.plain).count, 101);
  close_windows(&f);
}

Test(window, a_clock_that_falls_begins_the_windows_anew) {
  struct fixture f;
  struct to_view v;

  setup_windows(&f);
  add_span(&f, INT64_MAX - 5, MS);
  add_span(&f, 3 * SECOND, MS);
  add_span(&f, 7 * SECOND, MS);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_10S, &v), TB_OK);
  cr_assert_eq(to_view_sum(&v, f.plain).count, 2);
  cr_assert_eq(v.from, 3 * SECOND);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_eq(to_view_sum(&v, f.plain).count, 3);
  close_windows(&f);
}

Test(window, a_series_can_be_retired_once_no_window_shows_it) {
  struct fixture f;
  struct to_view v;
  uint32_t rest;

  setup_windows(&f);
  cr_assert_eq(to_windows_series(&f.w, &rest), TB_OK);
  add_span(&f, SECOND, MS);
  add_span(&f, 2 * SECOND, MS);
  cr_assert_not(to_windows_retire(&f.w, f.plain, rest, SECOND));
  cr_assert_eq(to_windows_move(&f.w, 1000 * SECOND), TB_OK);
  to_windows_note(&f.w, 1, 9, 1000 * SECOND);
  cr_assert_eq(to_windows_move(&f.w, 1001 * SECOND), TB_OK);
  cr_assert(to_windows_retire(&f.w, f.plain, rest, 2 * SECOND));
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_null(to_view_cell(&v, f.plain));
  cr_assert_eq(to_view_sum(&v, rest).count, 2);
  close_windows(&f);
}

/* Every allocation fails once: nothing leaks, nothing is counted twice. */
Test(window, a_budget_that_runs_out_loses_no_count) {
  for (size_t budget = 0; budget < 80000; budget += 512) {
    struct fixture f;
    uint64_t counted = 0;
    struct to_view v;

    tb_mem_init(&f.mem, tb_mem_libc, NULL, budget);
    to_windows_init(&f.w, &f.mem);
    f.hist = to_windows_hist(&f.w);
    if (to_windows_series(&f.w, &f.plain) == TB_OK) {
      for (int i = 0; i < 400; i++) {
        to_ns end = i * 300 * MS;
        if (to_windows_move(&f.w, end) != TB_OK) break;
        to_windows_note(&f.w, 1, 1, end);
        if (to_windows_record(&f.w, f.hist, end - i * i * 1000, end) != TB_OK) break;
        to_windows_add(&f.w, f.plain, end - i * i * 1000, end, 0, false);
        counted++;
      }
      f.mem.bytes_max = SIZE_MAX;
      cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
      cr_assert_eq(to_view_sum(&v, f.plain).count, counted);
      cr_assert_eq(f.w.scratch.hist[0].count, counted);
    }
    close_windows(&f);
  }
}

Test(window, windows_and_analyses_are_found_by_the_names_they_go_by) {
  enum to_analysis_kind kind;
  enum to_window window;

  for (unsigned w = 0; w < TO_WINDOWS; w++)
    cr_assert(to_window_find(to_window_name((enum to_window)w), &window) && window == w);
  cr_assert_not(to_window_find("10", &window));
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    cr_assert(to_analysis_find(to_analysis_name((enum to_analysis_kind)k), &kind) && kind == k);
    cr_assert(strchr(to_analysis_about((enum to_analysis_kind)k), '.'), "a sentence");
  }
  cr_assert_not(to_analysis_find("", &kind));
}
