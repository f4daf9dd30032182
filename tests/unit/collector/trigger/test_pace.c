/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "collector/trigger/pace.h"

static const uint64_t SECOND_NS = 1000000000, HOUR_NS = UINT64_C(3600000000000);

/* Counts how many attempts, one each step, are accepted in that time. */
static unsigned taken(struct tc_pace *pace, const struct tc_pace_limits *limits, uint64_t from_ns,
                      uint64_t span_ns, uint64_t step_ns) {
  unsigned n = 0;

  for (uint64_t at = from_ns; at < from_ns + span_ns; at += step_ns)
    n += tc_pace_takes(pace, limits, at) ? 1 : 0;
  return n;
}

Test(pace, a_flood_is_done_so_often_as_the_limits_say) {
  const struct tc_pace_limits limits = { .every_ns = 10 * SECOND_NS, .hour_max = 60 };
  struct tc_pace pace = { .has_begun = false };

  cr_assert_eq(taken(&pace, &limits, 5, 59 * SECOND_NS, SECOND_NS / 290), 6);
  cr_assert_eq(taken(&pace, &limits, 59 * SECOND_NS, HOUR_NS - 60 * SECOND_NS, SECOND_NS), 54);
  cr_assert(tc_pace_takes(&pace, &limits, HOUR_NS + 5)); /* in the next hour */
  cr_assert_not(tc_pace_takes(&pace, &limits, HOUR_NS + 6));
}

Test(pace, a_limit_of_0_is_none) {
  const struct tc_pace_limits none = { .every_ns = 0 }, every = { .every_ns = SECOND_NS },
                              hour = { .hour_max = 3 };
  struct tc_pace a = { .has_begun = false }, b = a, c = a;

  cr_assert_eq(taken(&a, &none, 0, SECOND_NS, SECOND_NS / 1000), 1000);
  cr_assert_eq(taken(&b, &every, 0, 5 * SECOND_NS, SECOND_NS / 10), 5);
  cr_assert_eq(taken(&c, &hour, 0, SECOND_NS, SECOND_NS / 10), 3);
}

/* The machine has restarted since, so its clock is younger than the last action. */
Test(pace, what_was_done_before_the_clock_began_counts) {
  const struct tc_pace_limits limits = { .every_ns = 60 * SECOND_NS, .hour_max = 2 };
  struct tc_pace pace = { .has_begun = false };
  const uint64_t now = 10 * SECOND_NS;

  tc_pace_took(&pace, 50 * 60 * SECOND_NS, now);
  tc_pace_took(&pace, 30 * SECOND_NS, now);
  cr_assert_not(tc_pace_takes(&pace, &limits, now), "too soon");
  cr_assert_not(tc_pace_takes(&pace, &limits, now + 60 * SECOND_NS), "too often");
  cr_assert(tc_pace_takes(&pace, &limits, now + 10 * 60 * SECOND_NS), "the next hour");
}
