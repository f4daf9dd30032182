/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "online/window/histogram.h"

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
