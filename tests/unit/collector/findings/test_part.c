/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/findings/part.h"

#include <criterion/criterion.h>
#include <string.h>

#define S   UINT64_C(1000000000)
#define HEX "0102000000000000000000000000000f"

static struct tc_part part_of(uint64_t from_ns, uint64_t until_ns) {
  struct tc_part part = { .stream = { 1, 2, [15] = 15 }, .service = "shop", .gen = 41 };

  tc_part_times(&part, false, from_ns, until_ns);
  return part;
}

static const char *fetch_of(const struct tc_part *part) {
  static char fetch[TC_PART_FETCH_BYTES];

  tc_part_fetch(part, fetch);
  return fetch;
}

static const char *timeline_of(const struct tc_part *part) {
  static char path[TC_PART_PATH_BYTES];

  tc_part_timeline(part, path);
  return path;
}

static const char *why_of(const struct tc_part *part) {
  static char path[TC_PART_PATH_BYTES];

  tc_part_why(part, path);
  return path;
}

Test(part, has_a_quarter_of_its_length_before_and_after) {
  struct tc_part part = part_of(1000 * S, 1004 * S);

  cr_assert_str_eq(fetch_of(&part),
                   "tracectl fetch --stream " HEX
                   " --since @998.999000000 --until @1005.001000000 -o shop-41.trace");
  cr_assert_str_eq(timeline_of(&part), "/timeline/" HEX "?from=998999000000&to=1005001000000");
  cr_assert_str_eq(why_of(&part), "", "nothing explains it");
}

Test(part, without_times_is_a_generation_and_has_no_page) {
  struct tc_part unknown = part_of(0, 0), beginning = part_of(0, S);

  unknown.why = beginning.why = "task=97";
  for (const struct tc_part *part = &unknown; part != NULL;
       part = part == &unknown ? &beginning : NULL) {
    cr_assert_str_eq(fetch_of(part),
                     "tracectl fetch --stream " HEX " --gen 41..41 -o shop-41.trace");
    cr_assert_str_eq(timeline_of(part), "");
    cr_assert_str_eq(why_of(part), "");
  }
}

Test(part, of_a_long_time_is_its_end) {
  struct tc_part part = part_of(1000 * S, 1100 * S), backwards = part_of(1101 * S, 1100 * S);

  cr_assert_eq(part.from_ns, 1070 * S);
  cr_assert_eq(part.until_ns, 1100 * S);
  cr_assert_eq(backwards.from_ns, 1100 * S);
}

/* It was found after 40 s, in a stream whose begin was known from before: a report needs more than a minute. */
Test(part, of_a_leak_is_long_enough_for_its_own_report) {
  struct tc_part part = part_of(0, 0), early = part_of(0, 0);

  tc_part_times(&part, true, 1060 * S, 1100 * S);
  cr_assert_str_eq(fetch_of(&part),
                   "tracectl fetch --stream " HEX
                   " --since @1000.000000000 --until @1110.000000000 -o shop-41.trace");
  tc_part_times(&early, true, 10 * S, 50 * S);
  cr_assert_str_eq(fetch_of(&early),
                   "tracectl fetch --stream " HEX " --gen 41..41 -o shop-41.trace");
}

Test(part, is_explained_by_what_began_before_it) {
  char why[TC_WHY_BYTES];
  struct tc_part part = part_of(1000 * S, 1001 * S);

  part.why = why;
  tc_why_task(UINT64_MAX, why);
  cr_assert_str_eq(why_of(&part), "/why/" HEX "?from=@998.000000000&to=@1003.000000000&task="
                                  "18446744073709551615");
  cr_assert_null(strstr(timeline_of(&part), "pin"));
  tc_why_moment(17, INT64_MAX, why);
  cr_assert_str_eq(why_of(&part),
                   "/why/" HEX "?from=@998.000000000&to=@1003.000000000&goroutine=17&ns="
                   "9223372036854775807");
  cr_assert_not_null(strstr(timeline_of(&part), "&pin=17"));
  part.goroutine = 9;
  cr_assert_not_null(strstr(timeline_of(&part), "&pin=9"));
}
