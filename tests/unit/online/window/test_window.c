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
  struct to_tally tally;
  struct to_windows w;
  uint32_t plain;
};

static void setup_windows(struct fixture *f) {
  tb_mem_init(&f->mem, tb_mem_libc, NULL, SIZE_MAX);
  to_tally_init(&f->tally, &f->mem);
  to_windows_init(&f->w, &f->mem, &f->tally);
  f->w.has_stretches = true;
  cr_assert_eq(to_windows_attach(&f->w), TB_OK);
  cr_assert_eq(to_windows_series(&f->w, TO_NO_SERIES, &f->plain), TB_OK);
}

static void add_span(struct fixture *f, to_ns end, to_ns length) {
  cr_assert_eq(to_windows_move(&f->w, end), TB_OK);
  to_windows_note(&f->w, 1, 1 + (uint64_t)(end / SECOND), end);
  cr_assert_eq(to_windows_add(&f->w, f->plain, end - length, end, 0, false), TB_OK);
}

/* With quantiles. Its buckets are valid until the next call. */
static struct to_distribution distribution(const struct to_view *v, uint32_t series) {
  static uint64_t bucket[TO_BUCKETS_MAX];
  struct to_distribution d = { .sum = to_view_sum(v, series) };

  cr_assert_eq(to_view_quantiles(v, &(struct to_view_part){ .series = series }, 1, bucket, &d),
               TB_OK);
  return d;
}

static void close_windows(struct fixture *f) {
  to_windows_fini(&f->w);
  to_tally_fini(&f->tally);
  cr_assert_eq(f->mem.bytes, 0);
}

/* Spans every 100 ms for 1000 s, of 1, 2, 3... us: the sums show which spans are in a view. */
Test(window, a_view_is_exact_for_the_stretch_it_names) {
  static const struct {
    to_ns length, slot;
  } want[] = { { 10 * SECOND, 2 * SECOND },
               { 60 * SECOND, 10 * SECOND },
               { 300 * SECOND, 60 * SECOND } };
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
  cr_assert_lt(f.w.slots, 28);
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

/* The last second before the silence is closed after older ones of its half minute have been added up. */
Test(window, a_silence_of_some_minutes_loses_nothing_of_the_total) {
  struct fixture f;
  struct to_view v;

  setup_windows(&f);
  for (unsigned i = 0; i < 30; i++) add_span(&f, i * SECOND, MS);
  for (unsigned i = 0; i < 30; i++) add_span(&f, (229 + i) * SECOND, MS);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_eq(to_view_sum(&v, f.plain).count, 60);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_5MIN, &v), TB_OK);
  cr_assert_eq(to_view_sum(&v, f.plain).count, 60);
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
  cr_assert_eq(to_windows_series(&f.w, TO_NO_SERIES, &rest), TB_OK);
  cr_assert_eq(to_windows_move(&f.w, 0), TB_OK);
  cr_assert_eq(to_windows_add(&f.w, rest, -5 * MS, 0, 0, false), TB_OK);
  add_span(&f, SECOND, MS);
  add_span(&f, 2 * SECOND, MS);
  cr_assert(to_windows_show(&f.w, SECOND));
  cr_assert_eq(to_windows_move(&f.w, 1000 * SECOND), TB_OK);
  to_windows_note(&f.w, 1, 9, 1000 * SECOND);
  cr_assert_eq(to_windows_move(&f.w, 1002 * SECOND), TB_OK);
  cr_assert_not(to_windows_show(&f.w, 2 * SECOND));
  cr_assert_eq(to_windows_retire(&f.w, &f.plain, 1, rest), TB_OK);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_null(to_view_cell(&v, f.plain));
  struct to_distribution d = distribution(&v, rest);
  cr_assert(d.sum.count == 3 && d.has_quantiles);
  close_windows(&f);
}

/* ---- stretches ---- */

struct added_up {
  uint64_t count, total_ns, events, bucket[TO_PLACES];
};

static void add_stretch(struct fixture *f, to_ns *from, struct added_up *sum) {
  struct to_view v;

  cr_assert_eq(to_windows_view(&f->w, TO_WINDOW_STRETCH, &v), TB_OK);
  cr_assert_geq(v.from, *from);
  *from = v.until + 1;
  struct to_distribution d = distribution(&v, f->plain);
  cr_assert(d.has_quantiles || d.sum.count == 0);
  sum->count += d.sum.count;
  sum->total_ns += d.sum.total_ns;
  sum->events += v.stretch.events;
  for (uint32_t i = 0; i < d.histogram.n; i++)
    sum->bucket[to_index_place(d.histogram.first + (int32_t)i, d.histogram.scale)] +=
        d.histogram.bucket[i];
  cr_assert_eq(to_windows_mark(&f->w), TB_OK);
  cr_assert_eq(to_windows_view(&f->w, TO_WINDOW_STRETCH, &v), TB_OK);
  cr_assert_eq(to_view_sum(&v, f->plain).count, 0, "nothing since");
  cr_assert_eq(v.from, v.until);
}

static void expect_same_views(struct fixture *marked, struct fixture *other) {
  for (unsigned window = 0; window < TO_WINDOWS; window++) {
    struct to_view a, b;

    cr_assert_eq(to_windows_view(&marked->w, (enum to_window)window, &a), TB_OK);
    cr_assert_eq(to_windows_view(&other->w, (enum to_window)window, &b), TB_OK);
    struct to_sum x = to_view_sum(&a, marked->plain), y = to_view_sum(&b, other->plain);
    cr_assert_eq(memcmp(&x, &y, sizeof x), 0, "%s", to_window_name((enum to_window)window));
    cr_assert(a.from == b.from && a.until == b.until);
    cr_assert_eq(a.stretch.events, b.stretch.events);
    struct to_distribution d = distribution(&a, marked->plain);
    uint64_t p99 = d.p99_ns;
    cr_assert_eq(distribution(&b, other->plain).p99_ns, p99);
  }
}

/* Marks are some ms, some seconds or some minutes apart. */
Test(window, stretches_add_up_to_all_and_change_no_other_window) {
  static const to_ns pauses[] = { MS, 150 * MS, SECOND, 7 * SECOND, 40 * SECOND, 400 * SECOND };
  struct added_up sum = { 0 };
  struct fixture marked, other;
  struct to_view all;
  to_ns now = 3 * SECOND, from = INT64_MIN;

  setup_windows(&marked);
  setup_windows(&other);
  srand(7);
  for (int i = 0; i < 3000; i++) {
    now += 1 + (to_ns)rand() * 1000 % pauses[rand() % 6] / (1 + rand() % 50);
    to_ns length = 1 + rand() % (1 << rand() % 25);
    add_span(&marked, now, length);
    add_span(&other, now, length);
    if (rand() % 5 == 0) add_stretch(&marked, &from, &sum);
    if (i % 100 == 0) expect_same_views(&marked, &other);
  }
  add_stretch(&marked, &from, &sum);
  expect_same_views(&marked, &other);
  cr_assert_eq(to_windows_view(&other.w, TO_WINDOW_ALL, &all), TB_OK);
  struct to_distribution d = distribution(&all, other.plain);
  cr_expect_eq(sum.count, d.sum.count);
  cr_expect_eq(sum.total_ns, d.sum.total_ns);
  cr_expect_eq(sum.events, all.stretch.events);
  cr_assert_eq(d.histogram.scale, TO_SCALE_MAX);
  for (uint32_t i = 0; i < d.histogram.n; i++)
    cr_assert_eq(sum.bucket[to_index_place(d.histogram.first + (int32_t)i, TO_SCALE_MAX)],
                 d.histogram.bucket[i], "bucket %u", i);
  close_windows(&marked);
  close_windows(&other);
}

Test(window, a_stretch_outlasts_the_windows_and_a_clock_that_falls) {
  struct fixture f;
  struct to_view v;
  uint32_t rest;

  setup_windows(&f);
  cr_assert_eq(to_windows_series(&f.w, TO_NO_SERIES, &rest), TB_OK);
  add_span(&f, SECOND, MS);
  cr_assert_eq(to_windows_mark(&f.w), TB_OK);
  add_span(&f, 2 * SECOND, 2 * MS);
  add_span(&f, 1000 * SECOND, 4 * MS);
  add_span(&f, 5 * SECOND, 8 * MS); /* its clock fell */
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_STRETCH, &v), TB_OK);
  struct to_distribution d = distribution(&v, f.plain);
  cr_expect_eq(d.sum.total_ns, 14 * MS);
  cr_expect(d.has_quantiles);
  cr_expect_eq(v.from, SECOND + 1);
  cr_expect_eq(v.stretch.events, 3);
  cr_assert_eq(to_windows_move(&f.w, 2000 * SECOND), TB_OK);
  to_windows_note(&f.w, 1, 9, 2000 * SECOND);
  cr_assert_eq(to_windows_move(&f.w, 2002 * SECOND), TB_OK);
  cr_assert_not(to_windows_show(&f.w, 5 * SECOND));
  cr_assert_eq(to_windows_retire(&f.w, &f.plain, 1, rest), TB_OK);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_STRETCH, &v), TB_OK);
  cr_expect_null(to_view_cell(&v, f.plain));
  cr_expect_eq(to_view_sum(&v, rest).total_ns, 14 * MS);
  close_windows(&f);
}

/* Every allocation fails once: nothing leaks, nothing is counted twice. */
Test(window, a_budget_that_runs_out_loses_no_count) {
  for (size_t budget = 0; budget < 200000; budget += 512) {
    struct fixture f;
    uint64_t counted = 0;
    struct to_view v;

    tb_mem_init(&f.mem, tb_mem_libc, NULL, budget);
    to_tally_init(&f.tally, &f.mem);
    to_windows_init(&f.w, &f.mem, &f.tally);
    f.w.has_stretches = true;
    if (to_windows_attach(&f.w) == TB_OK &&
        to_windows_series(&f.w, TO_NO_SERIES, &f.plain) == TB_OK) {
      for (int i = 0; i < 400; i++) {
        to_ns end = i * 300 * MS;
        if (to_windows_move(&f.w, end) != TB_OK) break;
        to_windows_note(&f.w, 1, 1, end);
        if (to_windows_add(&f.w, f.plain, end - i * i * 1000, end, 0, false) != TB_OK) break;
        counted++;
        if (i % 7 == 0 && to_windows_mark(&f.w) != TB_OK) break;
      }
      f.mem.bytes_max = SIZE_MAX;
      cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
      cr_assert_eq(to_view_sum(&v, f.plain).count, counted);
      cr_assert(distribution(&v, f.plain).has_quantiles);
    }
    close_windows(&f);
  }
}

/* Two streams take turns within one second, and one is freed while it owns the tally. */
Test(window, streams_that_share_a_tally_keep_their_own_counts) {
  struct to_windows other;
  struct fixture f;
  struct to_view v;
  uint32_t series;

  setup_windows(&f);
  to_windows_init(&other, &f.mem, &f.tally);
  cr_assert_eq(to_windows_series(&other, TO_NO_SERIES, &series), TB_OK);
  for (int i = 0; i < 50; i++) {
    cr_assert_eq(to_windows_attach(&f.w), TB_OK);
    add_span(&f, SECOND + i * 50 * MS, (i + 1) * 1000);
    cr_assert_eq(to_windows_attach(&other), TB_OK);
    cr_assert_eq(to_windows_move(&other, i * 100 * MS), TB_OK);
    to_windows_note(&other, 1, 1, i * 100 * MS);
    cr_assert_eq(to_windows_add(&other, series, i * 100 * MS - 5 * MS, i * 100 * MS, 0, false),
                 TB_OK);
  }
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_eq(distribution(&v, f.plain).sum.total_ns, 50 * 51 / 2 * 1000);
  cr_assert_eq(to_windows_view(&other, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_eq(distribution(&v, series).sum.total_ns, 50 * 5 * MS);
  cr_assert_eq(to_windows_add(&other, series, 0, 5 * MS, 0, false), TB_OK);
  to_windows_fini(&other);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert_eq(to_view_sum(&v, f.plain).count, 50);
  close_windows(&f);
}

/* A row of lengths from 0 ns to 300 years has the lowest scale; the whole has a bucket for each at one of 5 or more. */
Test(window, a_row_lowers_its_scale_and_the_whole_stays_within_a_percent) {
  enum { LENGTHS = 6000 };
  struct fixture f;
  struct to_view v;
  uint32_t row;

  setup_windows(&f);
  cr_assert_eq(to_windows_series(&f.w, f.plain, &row), TB_OK);
  for (int i = 0; i < LENGTHS; i++) {
    uint64_t ns = i == 0 ? 0 : UINT64_C(1) << i % 63;
    if (i == 1) ns = UINT64_C(300) * 365 * 86400 * SECOND;
    cr_assert_eq(to_windows_move(&f.w, i * 20 * MS), TB_OK);
    to_windows_note(&f.w, 1, 1, i * 20 * MS);
    cr_assert_eq(
        to_windows_add(&f.w, row, (to_ns)((uint64_t)i * 20 * MS - ns), i * 20 * MS, 0, false),
        TB_OK);
  }
  for (unsigned k = 0; k <= TO_WINDOW_ALL; k++) {
    cr_assert_eq(to_windows_view(&f.w, (enum to_window)k, &v), TB_OK);
    struct to_distribution whole = distribution(&v, f.plain);
    cr_assert(whole.has_quantiles && whole.histogram.scale == 5, "%d", whole.histogram.scale);
    cr_assert_eq(whole.sum.count, to_view_sum(&v, row).count, "parts are in the whole");
    struct to_distribution part = distribution(&v, row);
    cr_assert(part.has_quantiles);
    cr_assert_eq(part.histogram.scale, 5, "one part that is all of the whole has its buckets");
    cr_assert_eq(part.histogram.zero, k >= TO_WINDOW_5MIN);
    cr_assert_eq(part.sum.min_ns, k >= TO_WINDOW_5MIN ? 0 : 1);
  }
  cr_assert_eq(to_windows_add(&f.w, f.plain, 0, 5, 0, false), TB_OK); /* the whole has one more */
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  struct to_distribution part = distribution(&v, row);
  cr_assert_eq(part.histogram.scale, 1);
  cr_assert(part.p50_ns > UINT64_C(1) << 30 && part.p50_ns < UINT64_C(1) << 33, "%lu", part.p50_ns);
  close_windows(&f);
}

static int by_length(const void *a, const void *b) {
  to_ns x = *(const to_ns *)a, y = *(const to_ns *)b;

  return (x > y) - (x < y);
}

static void is_near(uint64_t ns, const to_ns *sorted, size_t n, unsigned permille, int scale) {
  to_ns right = sorted[(n * permille + 999) / 1000 - 1], off = (to_ns)ns - right;

  cr_assert_leq((double)(off < 0 ? -off : off), (double)right * to_histogram_error(scale) + 0.5,
                "p%u is %lu, not %ld", permille, ns, right);
}

/* More series and lengths than the pool holds. */
Test(window, series_beyond_the_pool_keep_their_sum_and_the_whole_keeps_its_quantiles) {
  enum { SERIES = 20000, LENGTHS = 12, SECONDS = 40 };
  static uint32_t series[SERIES];
  static struct to_view_part part[SERIES];
  static to_ns length[SECONDS * (SERIES + 10000)];
  static uint64_t bucket[TO_BUCKETS_MAX];
  struct to_distribution d = { 0 };
  size_t lengths = 0, with = 0;
  struct fixture f;
  struct to_view v;

  setup_windows(&f);
  for (int i = 0; i < SERIES; i++)
    cr_assert_eq(to_windows_series(&f.w, f.plain, &series[i]), TB_OK);
  for (int second = 0; second < SECONDS; second++)
    for (int i = 0; i < SERIES; i++) {
      to_ns now = second * SECOND + i * 10000;
      cr_assert_eq(to_windows_move(&f.w, now), TB_OK);
      to_windows_note(&f.w, 1, 1, now);
      for (int k = 0; k < (i == 7 ? 1000 : i % 97 == 0 ? LENGTHS : 1); k++) {
        length[lengths] =
            (to_ns)(1000 + k * 370 + i + second * 5000) * (1 + (i + second) % 7 * 1000);
        cr_assert_eq(to_windows_add(&f.w, series[i], now - length[lengths++], now, 0, false),
                     TB_OK);
      }
    }
  qsort(length, lengths, sizeof *length, by_length);
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_ALL, &v), TB_OK);
  cr_assert(distribution(&v, series[7]).has_quantiles, "the series with the most lengths stays");
  for (int i = 0; i < SERIES; i++) {
    struct to_sum sum = to_view_sum(&v, series[i]);
    cr_assert_eq(sum.count, SECONDS * (uint64_t)(i == 7 ? 1000 : i % 97 == 0 ? LENGTHS : 1));
    with += distribution(&v, series[i]).has_quantiles;
    d.sum.count += sum.count;
    d.sum.min_ns = 1000;
    d.sum.max_ns = sum.max_ns > d.sum.max_ns ? sum.max_ns : d.sum.max_ns;
    part[i] =
        (struct to_view_part){ .series = series[i], .next = i + 1 < SERIES ? (uint32_t)i + 2 : 0 };
  }
  cr_assert(with < SERIES && with > SERIES / 97, "%zu have quantiles", with);
  cr_assert_eq(to_view_quantiles(&v, part, 1, bucket, &d), TB_OK);
  cr_assert(d.has_quantiles, "the whole has every length");
  cr_assert_geq(d.histogram.scale, 5);
  is_near(d.p50_ns, length, lengths, 500, d.histogram.scale);
  is_near(d.p99_ns, length, lengths, 990, d.histogram.scale);
  is_near(d.p999_ns, length, lengths, 999, d.histogram.scale);
  cr_assert_lt(f.mem.bytes, 24 << 20, "%zu", f.mem.bytes);
  close_windows(&f);
}

/* The list of parts lacks one: rows are added up at the lowest of their scales. */
Test(window, some_of_the_parts_are_added_up_at_the_lowest_scale) {
  enum { PARTS = 5, LENGTHS = 2000 };
  static to_ns length[(PARTS - 1) * LENGTHS];
  struct to_view_part part[PARTS - 1];
  static uint64_t bucket[TO_BUCKETS_MAX];
  struct to_distribution d = { 0 };
  uint32_t series[PARTS];
  size_t lengths = 0;
  struct fixture f;
  struct to_view v;

  setup_windows(&f);
  for (int i = 0; i < PARTS; i++) cr_assert_eq(to_windows_series(&f.w, f.plain, &series[i]), TB_OK);
  cr_assert_eq(to_windows_move(&f.w, 0), TB_OK);
  to_windows_note(&f.w, 1, 1, 0);
  for (int i = 0; i < PARTS * LENGTHS; i++) {
    to_ns ns = 1000 + i % LENGTHS * (i % PARTS == 1 ? 100000 : 3);
    cr_assert_eq(to_windows_add(&f.w, series[i % PARTS], -ns, 0, 0, false), TB_OK);
    if (i % PARTS != 0) length[lengths++] = ns;
  }
  cr_assert_eq(to_windows_view(&f.w, TO_WINDOW_10S, &v), TB_OK);
  cr_assert_eq(distribution(&v, series[2]).histogram.scale, 5);
  int lowest = distribution(&v, series[1]).histogram.scale;
  cr_assert_lt(lowest, 5);
  for (unsigned i = 1; i < PARTS; i++) {
    part[i - 1] = (struct to_view_part){ .series = series[i], .next = i + 1 < PARTS ? i + 1 : 0 };
    d.sum.count += to_view_sum(&v, series[i]).count;
  }
  d.sum.max_ns = UINT64_MAX;
  cr_assert_eq(to_view_quantiles(&v, part, 1, bucket, &d), TB_OK);
  cr_assert_eq(d.histogram.scale, lowest);
  qsort(length, lengths, sizeof *length, by_length);
  is_near(d.p50_ns, length, lengths, 500, lowest);
  is_near(d.p99_ns, length, lengths, 990, lowest);
  close_windows(&f);
}

/* 100 values a second, hardly any two alike: more lengths than a quiet stream keeps of its parts. */
static size_t fill_sparing(struct fixture *f, bool sparing, uint32_t *part, int parts) {
  enum { SECONDS = 400, A_SECOND = 100 };

  setup_windows(f);
  f->w.sparing = sparing;
  for (int i = 0; i < parts; i++) cr_assert_eq(to_windows_series(&f->w, f->plain, &part[i]), TB_OK);
  for (int i = 0; i < SECONDS * A_SECOND; i++) {
    to_ns end = i * (SECOND / A_SECOND), length = MS + (i * INT64_C(7919) % 999983) * 100;
    cr_assert_eq(to_windows_move(&f->w, end), TB_OK);
    to_windows_note(&f->w, 1, 1, end);
    cr_assert_eq(to_windows_add(&f->w, part[i % parts], end - length, end, 0, false), TB_OK);
  }
  cr_assert_eq(to_windows_settle(&f->w), TB_OK);
  return f->mem.bytes;
}

Test(window, one_that_is_sparing_keeps_coarser_rows_of_a_quiet_stream) {
  enum { PARTS = 40 };
  struct fixture full, sparing;
  uint32_t part[PARTS];
  struct to_view v;

  size_t bytes = fill_sparing(&full, false, part, PARTS);
  cr_assert_lt(fill_sparing(&sparing, true, part, PARTS), bytes);
  cr_assert_eq(to_windows_view(&full.w, TO_WINDOW_ALL, &v), TB_OK);
  struct to_distribution fine = distribution(&v, part[1]), whole = distribution(&v, full.plain);
  cr_assert_eq(to_windows_view(&sparing.w, TO_WINDOW_ALL, &v), TB_OK);
  struct to_distribution coarse = distribution(&v, part[1]);
  cr_assert_lt(coarse.histogram.scale, fine.histogram.scale);
  cr_assert_eq(distribution(&v, sparing.plain).p999_ns, whole.p999_ns);
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
