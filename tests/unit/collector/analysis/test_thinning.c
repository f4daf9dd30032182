/* SPDX-License-Identifier: Apache-2.0 */
/* The rule of thinning, by a clock of its own. */
#include <criterion/criterion.h>

#include "collector/analysis/thinning.h"

static const uint64_t MS = 1000000, AFTER = 1000000000;
enum { ROOM = 1000 };

/* Runs for ms, with a generation every 100 ms that has waited for so long; returns the level. */
static unsigned run(struct tc_thinning *t, uint64_t *now, uint64_t ms, uint64_t waited_ms) {
  for (uint64_t end = *now + ms * MS; *now < end; *now += 100 * MS) {
    tc_thinning_measure(t, waited_ms * MS);
    (void)tc_thinning_advance(t, *now, AFTER, 10, ROOM);
  }
  return t->level;
}

static unsigned rest(struct tc_thinning *t, uint64_t *now, uint64_t ms, size_t waiting) {
  for (uint64_t end = *now + ms * MS; *now < end; *now += 100 * MS)
    (void)tc_thinning_advance(t, *now, AFTER, waiting, ROOM);
  return t->level;
}

static unsigned counted_of_64(const struct tc_thinning *t, uint64_t from, bool is_preferred) {
  unsigned n = 0;

  for (uint64_t turn = from; turn < from + 64; turn++)
    n += !tc_thinning_thins(t, turn, is_preferred);
  return n;
}

Test(thinning, a_loop_that_follows_thins_nothing) {
  struct tc_thinning t = { 0 };
  uint64_t now = 100 * AFTER;

  cr_expect_eq(run(&t, &now, 60000, 900), 0);
  cr_expect_eq(counted_of_64(&t, 0, false), 64);
}

Test(thinning, the_level_rises_by_one_a_second_and_no_further_than_the_last) {
  struct tc_thinning t = { 0 };
  uint64_t now = 100 * AFTER;

  rest(&t, &now, 1000, 0);
  for (unsigned level = 1; level <= TC_THINNING_LEVELS; level++)
    cr_expect_eq(run(&t, &now, 1100, 1500), level);
  cr_expect_eq(run(&t, &now, 5000, 90000), TC_THINNING_LEVELS);
}

Test(thinning, between_the_two_limits_the_level_stays) {
  struct tc_thinning t = { .level = 3 };
  uint64_t now = 100 * AFTER;

  cr_expect_eq(run(&t, &now, 20000, 250), 3);
  cr_expect_eq(run(&t, &now, 20000, 999), 3);
  t.level = 0;
  cr_expect_eq(run(&t, &now, 20000, 999), 0);
}

Test(thinning, after_the_overload_all_is_counted_again_within_two_seconds) {
  struct tc_thinning t = { .level = TC_THINNING_LEVELS };
  uint64_t now = 100 * AFTER;

  t.since_ns = now;
  cr_expect_gt(run(&t, &now, 1000, 100), 0);
  cr_expect_eq(run(&t, &now, 1000, 100), 0);
}

Test(thinning, a_loop_without_work_comes_back_as_well) {
  struct tc_thinning t = { .level = TC_THINNING_LEVELS };
  uint64_t now = 100 * AFTER;

  t.since_ns = now;
  cr_expect_eq(rest(&t, &now, 4000, 3), TC_THINNING_LEVELS, "work waits: nothing is known");
  cr_expect_eq(rest(&t, &now, 4000, 0), 0);
}

Test(thinning, a_room_that_is_half_full_is_an_overload_whoever_fills_it) {
  struct tc_thinning t = { 0 };
  uint64_t now = 100 * AFTER;

  cr_expect_eq(rest(&t, &now, 5000, ROOM / 2 - 1), 0);
  cr_expect_gt(rest(&t, &now, 5000, ROOM / 2), 3);
  cr_expect_eq(tc_thinning_queue(&t, false), SIZE_MAX, "a finished trace is analysed whole");
  run(&t, &now, 1100, 1000);
  cr_expect_eq(tc_thinning_queue(&t, false), 2);
  rest(&t, &now, 5000, 0);
  cr_expect_eq(t.level, 0);
  cr_expect_not(t.bounds);
}

Test(thinning, preferred_streams_are_thinned_last) {
  static const unsigned counted[TC_THINNING_LEVELS + 1][2] = {
    { 64, 64 }, { 32, 64 }, { 16, 64 }, { 8, 64 }, { 8, 32 }, { 8, 16 }, { 8, 8 },
  };

  for (unsigned level = 0; level <= TC_THINNING_LEVELS; level++) {
    struct tc_thinning t = { .level = level, .bounds = true };
    cr_expect_eq(counted_of_64(&t, 0, false), counted[level][0], "level %u", level);
    cr_expect_eq(counted_of_64(&t, 0, true), counted[level][1], "level %u", level);
    cr_expect_eq(tc_thinning_queue(&t, false), counted[level][0] == 8 ? 2 : SIZE_MAX);
    cr_expect_eq(tc_thinning_queue(&t, true), counted[level][1] == 8 ? 2 : SIZE_MAX);
  }
}

Test(thinning, streams_take_turns) {
  struct tc_thinning t = { .level = 3 };

  for (uint64_t turn = 0; turn < 100; turn++) {
    unsigned counted = 0;
    for (uint64_t stream = 0; stream < 8; stream++)
      counted += !tc_thinning_thins(&t, stream + turn, false);
    cr_expect_eq(counted, 1, "one of eight at a time");
  }
}

Test(thinning, the_share_is_that_of_the_last_whole_second) {
  struct tc_thinning t = { 0 };
  uint64_t now = 100 * AFTER;

  rest(&t, &now, 1000, 0);
  tc_thinning_count(&t, 300, false);
  tc_thinning_count(&t, 100, true);
  rest(&t, &now, 100, 0);
  cr_expect_eq(t.share.missing_ppb, 250000000);
  tc_thinning_count(&t, 300, false);
  rest(&t, &now, 900, 0);
  cr_expect_eq(t.share.missing_ppb, 250000000, "the next second is not over");
  rest(&t, &now, 100, 0);
  cr_expect_eq(t.share.missing_ppb, 0);
}
