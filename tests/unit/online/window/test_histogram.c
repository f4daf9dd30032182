/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "online/window/histogram.h"

static uint64_t next_random(void) {
  static uint64_t x = UINT64_C(0x9e3779b97f4a7c15);

  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

enum { INDEXES = 4200, LOWEST = -1914 };

/* tests/data/histogram/bounds.txt: the shortest length of each bucket that has one, found with Prometheus' code. */
static size_t read_bounds(int32_t *index, uint64_t *shortest) {
  char path[4096], line[256];
  size_t n = 0;

  snprintf(path, sizeof path, "%s/tests/data/histogram/bounds.txt", getenv("TC_SOURCE_DIR"));
  FILE *file = fopen(path, "r");
  cr_assert_not_null(file, "%s", path);
  while (fgets(line, sizeof line, file) != NULL)
    if (line[0] != '#' && sscanf(line, "%d %lu", &index[n], &shortest[n]) == 2) n++;
  fclose(file);
  return n;
}

static int32_t index_of(uint64_t ns) {
  return to_place_index(to_histogram_place(ns), TO_SCALE_MAX);
}

/* The index rises with the length, so the shortest length of each bucket and the one before prove it for all lengths. */
Test(hist, every_length_has_the_index_that_prometheus_and_opentelemetry_give_it) {
  static int32_t index[INDEXES];
  static uint64_t shortest[INDEXES];
  size_t n = read_bounds(index, shortest);

  cr_assert_gt(n, 3500);
  cr_assert_eq(index[0], LOWEST);
  for (size_t i = 0; i < n; i++) {
    cr_assert_eq(index_of(shortest[i]), index[i], "%lu ns: %d", shortest[i], index_of(shortest[i]));
    if (i > 0) cr_assert_eq(index_of(shortest[i] - 1), index[i - 1], "%lu ns", shortest[i] - 1);
  }
  for (int i = 0; i < 10000000; i++) {
    uint64_t ns = next_random() >> (1 + next_random() % 63);
    if (ns == 0) continue;
    int32_t at = index_of(ns);
    cr_assert(at >= LOWEST && at < 2120, "%lu ns: %d", ns, at);
  }
  cr_assert_eq(to_histogram_place(0), 0);
  cr_assert_eq(to_histogram_place(1), TO_PLACE_OF_NS);
  cr_assert_lt(to_histogram_place(UINT64_MAX), TO_PLACES);
}

Test(hist, a_length_is_between_the_bounds_of_its_bucket_and_near_the_middle) {
  for (int scale = TO_SCALE_MIN; scale <= TO_SCALE_MAX; scale++)
    for (int i = 0; i < 100000; i++) {
      uint64_t ns = next_random() >> (1 + next_random() % 63);
      if (ns == 0) continue;
      int32_t index = to_place_index(to_histogram_place(ns) >> (TO_SCALE_MAX - scale), scale);
      double low = to_histogram_bound_ns(index, scale),
             high = to_histogram_bound_ns(index + 1, scale);
      double off = (double)to_histogram_middle_ns(index, scale) - (double)ns;
      cr_assert(low < (double)ns * (1 + 1e-15) && (double)ns <= high * (1 + 1e-15), "%lu: %f %f",
                ns, low, high);
      cr_assert_leq(off < 0 ? -off : off,
                    (double)ns * to_histogram_error(scale) * (1 + 1e-12) + 0.5,
                    "%lu ns at scale %d: off by %f", ns, scale, off);
      cr_assert_eq(to_index_place(index, scale), to_histogram_place(ns) >> (TO_SCALE_MAX - scale));
    }
}

Test(hist, the_error_of_each_scale_is_the_one_that_is_promised) {
  static const double error[] = { 0.172, 0.0865, 0.0434, 0.0217, 0.0109, 0.0055 };

  for (int scale = TO_SCALE_MIN; scale <= TO_SCALE_MAX; scale++) {
    cr_assert_leq(to_histogram_error(scale), error[scale - TO_SCALE_MIN]);
    cr_assert_gt(to_histogram_error(scale), error[scale - TO_SCALE_MIN] * 0.97);
  }
}

Test(hist, quantiles_are_of_ranks_that_are_rounded_up_and_stay_between_the_ends) {
  const uint64_t bucket[] = { 3, 0, 1 };
  struct to_histogram h = { .scale = 6, .first = 0, .n = 3, .bucket = bucket, .zero = 2 };

  cr_assert_eq(to_histogram_rank(0, 500), 1);
  cr_assert_eq(to_histogram_rank(6, 500), 3);
  cr_assert_eq(to_histogram_rank(7, 500), 4);
  cr_assert_eq(to_histogram_rank(UINT64_MAX, 999), UINT64_MAX / 1000 * 999 + 615);
  cr_assert_eq(to_histogram_length(&h, 2, 0, 2000000000), 0);
  cr_assert_eq(to_histogram_length(&h, 5, 0, 2000000000), to_histogram_middle_ns(0, 6));
  cr_assert_eq(to_histogram_length(&h, 6, 0, 2000000000), 2000000000, "the greatest is exact");
  cr_assert_eq(to_histogram_length(&h, 1, 0, 2000000000), 0, "as is the least");
  cr_assert_eq(to_histogram_length(&h, 5, 0, 1000000001), 1000000001);
  cr_assert_eq(to_histogram_length(&h, 3, 1008000000, 2000000000), 1008000000);
}
