/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "online/analysis/analysis.h"
#include "online/window/window.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

struct fixture {
  struct tb_mem mem;
  struct to_windows w;
  uint32_t plain;
};

static void setup_windows(struct fixture *f) {
  tb_mem_init(&f->mem, tb_mem_libc, NULL, SIZE_MAX);
  to_windows_init(&f->w, &f->mem);
  cr_assert_eq(to_windows_series(&f->w, TO_NO_SERIES, &f->plain), TB_OK);
}

static void add_span(struct fixture *f, to_ns end, to_ns length) {
  cr_assert_eq(to_windows_move(&f->w, end), TB_OK);
  to_windows_note(&f->w, 1, 1 + (uint64_t)(end / SECOND), end);
  cr_assert_eq(to_windows_add(&f->w, f->plain, end - length, end, 0, false), TB_OK);
}

/* With quantiles. */
static struct to_distribution distribution(const struct to_view *v, uint32_t series) {
  struct to_distribution d = { .sum = to_view_sum(v, series) };

  cr_assert_eq(to_view_quantiles(v, &(struct to_view_part){ .series = series }, 1, &d), TB_OK);
  return d;
}

static void close_windows(struct fixture *f) {
  to_windows_fini(&f->w);
  cr_assert_eq(f->mem.bytes, 0);
}

/* Spans every 100 ms for 1000 s, of 1, 2, 3... us: the sums show which spans are in a view. */
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
      struct to_distribution d = distribution(&v, f.plain);
      cr_assert_eq(d.sum.count, count, "window %u at %d: %lu, not %lu", k, i, d.sum.count, count);
      cr_assert_eq(d.sum.total_ns, total);
      cr_assert_eq(d.sum.max_ns, (uint64_t)(i + 1) * 1000);
      cr_assert_eq(v.stretch.events, count);
      cr_assert_eq(v.stretch.last_gen, (uint64_t)(i / 10) + 1);
      cr_assert_eq(v.until, i * 100 * MS);
      cr_assert(d.has_quantiles, "every length is in a bucket");
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
  struct to_series_set retired = { 0 };
  uint32_t rest;

  setup_windows(&f);
  cr_assert_eq(to_windows_series(&f.w, TO_NO_SERIES, &rest), TB_OK);
  to_windows_reuse(&f.w, f.plain, rest);
  add_span(&f, SECOND, MS);
  add_span(&f, 2 * SECOND, MS);
  cr_assert_not(to_windows_retire(&f.w, f.plain, rest, SECOND, &retired));
  cr_assert_eq(to_windows_move(&f.w, 1000 * SECOND), TB_OK);
  to_windows_note(&f.w, 1, 9, 1000 * SECOND);
  cr_assert_eq(to_windows_move(&f.w, 1001 * SECOND), TB_OK);
  cr_assert(to_windows_retire(&f.w, f.plain, rest, 2 * SECOND, &retired));
  cr_assert_eq(to_windows_retired(&f.w, &retired), TB_OK);
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
    if (to_windows_series(&f.w, TO_NO_SERIES, &f.plain) == TB_OK) {
      for (int i = 0; i < 400; i++) {
        to_ns end = i * 300 * MS;
        if (to_windows_move(&f.w, end) != TB_OK) break;
        to_windows_note(&f.w, 1, 1, end);
        if (to_windows_add(&f.w, f.plain, end - i * i * 1000, end, 0, false) != TB_OK) break;
        counted++;
      }
      f.mem.bytes_max = SIZE_MAX;
      cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
      cr_assert_eq(to_view_sum(&v, f.plain).count, counted);
      cr_assert(distribution(&v, f.plain).has_quantiles);
    }
    close_windows(&f);
  }
}

/* Two parts of one series, 100 values a second, with hardly any two alike: more lengths than a
 * quiet stream keeps. The part with fewer values loses its quantiles, the whole series never. */
static size_t fill_sparing(struct fixture *f, bool sparing, uint32_t part[2]) {
  enum { SECONDS = 400, A_SECOND = 100 };

  setup_windows(f);
  f->w.sparing = sparing;
  for (unsigned i = 0; i < 2; i++)
    cr_assert_eq(to_windows_series(&f->w, f->plain, &part[i]), TB_OK);
  for (int i = 0; i < SECONDS * A_SECOND; i++) {
    to_ns end = i * (SECOND / A_SECOND), length = MS + (i * INT64_C(7919) % 999983) * 100;
    cr_assert_eq(to_windows_move(&f->w, end), TB_OK);
    to_windows_note(&f->w, 1, 1, end);
    cr_assert_eq(to_windows_add(&f->w, part[i % 10 == 0], end - length, end, 0, false), TB_OK);
  }
  return f->mem.bytes;
}

Test(window, one_that_is_sparing_keeps_fewer_lengths_of_a_quiet_stream) {
  struct fixture full, sparing;
  uint32_t part[2];
  struct to_view v;

  size_t bytes = fill_sparing(&full, false, part);
  cr_assert_lt(fill_sparing(&sparing, true, part), bytes);
  cr_assert_eq(to_windows_view(&full.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert(distribution(&v, part[1]).has_quantiles);
  struct to_view_part both[] = { { .series = part[0], .next = 2 }, { .series = part[1] } };
  struct to_distribution d[2];
  for (unsigned i = 0; i < 2; i++) {
    cr_assert_eq(to_windows_view(i == 0 ? &full.w : &sparing.w, TO_WINDOW_ALL, &v), TB_OK);
    d[i] = (struct to_distribution){ .sum = { .count = 40000, .max_ns = UINT64_MAX } };
    cr_assert_eq(to_view_sum(&v, part[0]).count, 36000);
    cr_assert_eq(to_view_quantiles(&v, both, 1, &d[i]), TB_OK);
    cr_assert(d[i].has_quantiles);
  }
  cr_assert_eq(d[0].p50_ns, d[1].p50_ns);
  cr_assert_eq(d[0].p999_ns, d[1].p999_ns);
  cr_assert_not(distribution(&v, part[1]).has_quantiles);
  close_windows(&full);
  close_windows(&sparing);
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

static int by_length(const void *a, const void *b) {
  to_ns x = *(const to_ns *)a, y = *(const to_ns *)b;

  return (x > y) - (x < y);
}

/* More series and lengths than the pool holds: the small series pass theirs to the series they
 * are part of, which has every length. */
Test(window, series_beyond_the_pool_keep_their_sum_and_the_whole_keeps_its_quantiles) {
  enum { SERIES = 2000, LENGTHS = 60, SECONDS = 90 };
  static uint32_t series[SERIES];
  static struct to_view_part part[SERIES + 2];
  static to_ns length[SECONDS * (SERIES + 22 * 10 * LENGTHS)];
  size_t lengths = 0;
  struct to_distribution d = { 0 };
  uint32_t parts = 0;
  struct fixture f;
  struct to_view v;
  size_t with = 0;

  setup_windows(&f);
  for (int i = 0; i < SERIES; i++)
    cr_assert_eq(to_windows_series(&f.w, f.plain, &series[i]), TB_OK);
  for (int second = 0; second < SECONDS; second++)
    for (int i = 0; i < SERIES; i++) {
      to_ns now = second * SECOND + i * 100000;
      cr_assert_eq(to_windows_move(&f.w, now), TB_OK);
      to_windows_note(&f.w, 1, 1, now);
      for (int k = 0; k < (i == 7 ? 10 * LENGTHS : i % 97 == 0 ? LENGTHS : 1); k++) {
        length[lengths] = 1000 + k * 37 + i + second * 5000;
        cr_assert_eq(to_windows_add(&f.w, series[i], now - length[lengths++], now, 0, false),
                     TB_OK);
      }
    }
  for (unsigned k = 0; k <= TO_WINDOW_ALL; k++) {
    cr_assert_eq(to_windows_view(&f.w, (enum to_window)k, &v), TB_OK);
    struct to_distribution large = distribution(&v, series[7]);
    cr_assert(large.has_quantiles, "the series with the most lengths stays");
    d = (struct to_distribution){ 0 };
    parts = 0;
    with = 0;
    for (int i = 0; i < SERIES; i++) {
      struct to_sum sum = to_view_sum(&v, series[i]);
      d.sum.count += sum.count;
      d.sum.max_ns = sum.max_ns > d.sum.max_ns ? sum.max_ns : d.sum.max_ns;
      with += distribution(&v, series[i]).has_quantiles;
      part[parts++] = (struct to_view_part){ .series = series[i], .next = parts + 1 };
    }
    part[parts - 1].next = 0;
    cr_assert_eq(to_view_quantiles(&v, part, 1, &d), TB_OK);
    cr_assert(d.has_quantiles, "the whole has every length: those that parts gave away, too");
  }
  qsort(length, lengths, sizeof *length, by_length);
  to_ns p99 = length[(lengths * 99 + 99) / 100 - 1];
  cr_assert(d.p99_ns >= (uint64_t)p99 && d.p99_ns - (uint64_t)p99 <= (uint64_t)p99 / 1000);
  cr_assert_lt(with, SERIES, "the pool was too small for all");
  cr_assert_gt(with, 0);
  cr_assert_lt(f.mem.bytes, 4 << 20);
  close_windows(&f);
}

/* A sum of so many lengths that its own buckets are more than a slot keeps of the sum's parts. */
Test(window, the_parts_with_the_most_lengths_keep_them_in_every_slot) {
  enum { PARTS = 40, SECONDS = 60, LENGTHS = 60000, QUIET = 31 };
  uint32_t part[PARTS];
  struct fixture f;
  struct to_view v;

  setup_windows(&f);
  for (int i = 0; i < PARTS; i++) cr_assert_eq(to_windows_series(&f.w, f.plain, &part[i]), TB_OK);
  for (int second = 0; second < SECONDS; second++) {
    to_ns now = second * SECOND;
    cr_assert_eq(to_windows_move(&f.w, now), TB_OK);
    to_windows_note(&f.w, 1, 1, now);
    /* a tenth belongs to the first part */
    for (int k = 0; k < (second == QUIET ? 20 : LENGTHS); k++) {
      to_ns length = k % 10 == 0 ? k % 500 : (to_ns)(1024 + k % 1024) << (k / 4096 + second % 16);
      uint32_t of = part[k % 10 == 0 ? 0 : 1 + k % (PARTS - 1)];
      cr_assert_eq(to_windows_add(&f.w, of, now - length, now, 0, false), TB_OK);
    }
  }
  for (unsigned k = 0; k <= TO_WINDOW_ALL; k++) {
    cr_assert_eq(to_windows_view(&f.w, (enum to_window)k, &v), TB_OK);
    struct to_distribution d = distribution(&v, part[0]);
    cr_assert(d.has_quantiles, "window %u", k);
    cr_assert_eq(d.p50_ns, 240);
    cr_assert_not(distribution(&v, part[PARTS - 1]).has_quantiles, "too many for the pool");
  }
  close_windows(&f);
}
