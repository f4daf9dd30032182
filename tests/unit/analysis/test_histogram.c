/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "analysis/histogram.h"

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

Test(hist, a_bucket_is_read_back_at_most_a_thousandth_above_its_values) {
  for (int i = 0; i < 200000; i++) {
    uint64_t value = next_random() >> (next_random() % 64);
    unsigned bucket = to_histogram_bucket(value);
    uint64_t top = to_histogram_bucket_top(bucket);

    cr_assert_lt(bucket, TO_HISTOGRAM_BUCKETS);
    cr_assert(top >= value && top - value <= value / 1024, "value %lu top %lu", value, top);
    cr_assert_eq(to_histogram_bucket(top), bucket);
    if (top != UINT64_MAX) cr_assert_eq(to_histogram_bucket(top + 1), bucket + 1);
  }
}

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

Test(hist, quantiles_are_those_of_the_sorted_values_within_the_stated_error) {
  enum { N = 5003 };
  static const unsigned permille[] = { 1, 500, 900, 990, 999, 1000 };
  static uint64_t values[N];
  struct tb_mem mem;
  struct to_histogram hist;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  to_histogram_init(&hist, &mem);
  uint64_t got[6];
  to_histogram_quantiles(&hist, permille, 6, got);
  cr_assert_eq(got[0], 0);
  for (int i = 0; i < N; i++) {
    values[i] = next_random() % 1000 + (next_random() >> (20 + next_random() % 40));
    cr_assert_eq(to_histogram_add(&hist, values[i]), TB_OK);
  }
  qsort(values, N, sizeof(*values), compare);
  to_histogram_quantiles(&hist, permille, 6, got);
  for (unsigned i = 0; i < 6; i++) {
    uint64_t exact = values[(N * permille[i] + 999) / 1000 - 1];
    cr_assert(got[i] >= exact && got[i] - exact <= exact / 1024, "%u: %lu, not %lu", permille[i],
              got[i], exact);
  }
  to_histogram_fini(&hist);
  cr_assert_eq(mem.bytes, 0);
}

Test(hist, a_refused_page_counts_nothing) {
  struct tb_mem mem;
  struct to_histogram hist;

  tb_mem_init(&mem, tb_mem_libc, NULL, 100);
  to_histogram_init(&hist, &mem);
  cr_assert_eq(to_histogram_add(&hist, 7), TB_BUDGET);
  cr_assert_eq(hist.count, 0);
  to_histogram_fini(&hist);
}
