/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "online/analysis/durations.h"

static struct tb_mem mem;
static struct to_durations *durations;

static void init(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  cr_assert_eq(to_durations_new(&mem, &durations), TB_OK);
}

static void fini(void) {
  to_durations_free(durations);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(durations, .init = init, .fini = fini);

static struct to_event on_g(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){ .type = type, .time = time, .m = 1, .p = 0, .g = g };
}

static struct to_event about(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){ .type = type,
                            .time = time,
                            .m = 1,
                            .p = 0,
                            .g = TO_NONE,
                            .args = { (uint64_t)g },
                            .slot = (uint32_t)g };
}

static struct to_event status(uint8_t type, to_ns time, int64_t g, enum to_go_state before,
                              enum tw_go_status now) {
  struct to_event ev = about(type, time, g);

  ev.args[2] = (uint64_t)before << 32 | now;
  return ev;
}

static struct to_duration feed_one(struct to_event ev) {
  struct to_duration lasted;

  cr_assert_eq(to_durations_events(durations, NULL, &ev, 1, &lasted), TB_OK);
  return lasted;
}

#define LASTS(event, ns_)                                                                          \
  do {                                                                                             \
    struct to_duration lasted_ = feed_one(event);                                                  \
    cr_assert(lasted_.known && !lasted_.lower_bound);                                              \
    cr_assert_eq(lasted_.ns, ns_, "%lu", lasted_.ns);                                              \
  } while (0)
#define LASTS_NOTHING(event) cr_assert_not(feed_one(event).known)

Test(durations, a_transition_tells_how_long_the_state_was_that_it_ends) {
  LASTS_NOTHING(about(TW_EV_GO_CREATE, 100, 7));
  LASTS(about(TW_EV_GO_START, 130, 7), 30);
  LASTS(on_g(TW_EV_GO_SYSCALL_BEGIN, 150, 7), 20);
  LASTS(on_g(TW_EV_GO_SYSCALL_END, 157, 7), 7);
  LASTS(on_g(TW_EV_GO_BLOCK, 160, 7), 3);
  LASTS(about(TW_EV_GO_UNBLOCK, 1160, 7), 1000);
  LASTS(about(TW_EV_GO_START, 1161, 7), 1);
  LASTS(on_g(TW_EV_GO_DESTROY, 1200, 7), 39);
  LASTS_NOTHING(about(TW_EV_GO_START, 1300, 7));
}

Test(durations, what_began_unseen_is_a_lower_bound_and_what_is_restated_is_not) {
  /* the first event: goroutine 7 has existed at least since then */
  feed_one(about(TW_EV_GO_CREATE, 60, 8));
  feed_one(status(TW_EV_GO_STATUS, 100, 7, TO_GO_UNDETERMINED, TW_GO_WAITING));
  struct to_duration lasted = feed_one(about(TW_EV_GO_UNBLOCK, 150, 7));
  cr_assert(lasted.known && lasted.lower_bound);
  cr_assert_eq(lasted.ns, 90);
  feed_one(status(TW_EV_GO_STATUS_STACK, 170, 7, TO_GO_RUNNABLE,
                  TW_GO_RUNNABLE)); /* restated by the next generation */
  LASTS(about(TW_EV_GO_START, 180, 7), 30);
}

Test(durations, ranges_end_with_their_own_begin) {
  LASTS_NOTHING(on_g(TW_EV_STW_BEGIN, 10, 7));
  LASTS_NOTHING(about(TW_EV_GC_BEGIN, 11, 1));
  LASTS_NOTHING(on_g(TW_EV_GC_MARK_ASSIST_BEGIN, 12, 8));
  LASTS(on_g(TW_EV_STW_END, 15, 7), 5);
  LASTS(on_g(TW_EV_GC_MARK_ASSIST_END, 20, 8), 8);
  LASTS(about(TW_EV_GC_END, 111, 2), 100);
  LASTS_NOTHING(on_g(TW_EV_STW_END, 200, 7));
}

Test(durations, regions_nest_and_end_with_their_goroutine) {
  feed_one(about(TW_EV_GO_CREATE, 1, 7));
  feed_one(on_g(TW_EV_USER_REGION_BEGIN, 10, 7));
  feed_one(on_g(TW_EV_USER_REGION_BEGIN, 20, 7));
  LASTS(on_g(TW_EV_USER_REGION_END, 25, 7), 5);
  LASTS(on_g(TW_EV_USER_REGION_END, 35, 7), 25);
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 36, 7));
  feed_one(on_g(TW_EV_USER_REGION_BEGIN, 40, 7));
  feed_one(on_g(TW_EV_GO_DESTROY, 50, 7));
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 60, 7));
}

Test(durations, an_epoch_forgets_what_is_open) {
  feed_one(about(TW_EV_GO_CREATE, 100, 7));
  to_durations_epoch(durations);
  LASTS_NOTHING(about(TW_EV_GO_START, 130, 7));
  feed_one(status(TW_EV_GO_STATUS, 150, 8, TO_GO_UNDETERMINED, TW_GO_RUNNABLE));
  cr_assert_eq(feed_one(about(TW_EV_GO_START, 170, 8)).ns, 40, "since the epoch's first event");
}

/* Returns the first goroutine for which there is no room. */
static int64_t create_until_refused(void) {
  struct to_duration lasted;
  int64_t g = 0;

  mem.bytes_max = 64 << 10;
  for (tb_rc rc = TB_OK; rc == TB_OK;) {
    struct to_event ev = about(TW_EV_GO_CREATE, 1, ++g);
    rc = to_durations_events(durations, NULL, &ev, 1, &lasted);
    cr_assert(rc == TB_OK || rc == TB_BUDGET);
  }
  return g;
}

Test(durations, without_memory_a_span_has_no_duration_and_the_others_do) {
  create_until_refused();
  LASTS(about(TW_EV_GO_START, 1000000, 1), 999999);
}

Test(durations, of_a_slice_are_known_beside_one_that_finds_no_memory) {
  int64_t refused = create_until_refused();
  const struct to_event slice[] = { about(TW_EV_GO_START, 11, 1),
                                    about(TW_EV_GO_CREATE, 12, refused),
                                    on_g(TW_EV_GO_BLOCK, 15, 1), about(TW_EV_GO_START, 16, refused),
                                    about(TW_EV_GO_UNBLOCK, 18, 1) };
  struct to_duration lasted[5];

  cr_assert_eq(to_durations_events(durations, NULL, slice, 5, lasted), TB_BUDGET);
  cr_assert(lasted[0].known && lasted[0].ns == 10);
  cr_assert_not(lasted[1].known);
  cr_assert(lasted[2].known && lasted[2].ns == 4);
  cr_assert_not(lasted[3].known);
  cr_assert(lasted[4].known && lasted[4].ns == 3);
}

/* Begins regions, each with `spare` bytes of memory beyond what is in use: too little for a
 * region, or enough for a region but not for a larger table. Returns how many are refused; each
 * refused one is tried again. */
static int begin_regions(size_t spare) {
  to_ns began[201];
  int refused = 0;

  for (int64_t g = 1; g <= 200; g++) LASTS_NOTHING(about(TW_EV_GO_CREATE, g, g));
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 201, 1)); /* allocates the tables */
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 202, 2));
  for (int64_t g = 3; g <= 200; g++) {
    struct to_event begin = on_g(TW_EV_USER_REGION_BEGIN, 210, g);
    struct to_duration lasted;
    size_t bytes = mem.bytes;
    mem.bytes_max = bytes + spare;
    tb_rc rc = to_durations_events(durations, NULL, &begin, 1, &lasted);
    mem.bytes_max = 1 << 20;
    began[g] = rc == TB_OK ? 210 : 240;
    if (rc == TB_OK) continue;
    cr_assert_eq(rc, TB_BUDGET);
    cr_assert_leq(mem.bytes, bytes + spare);
    LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 220, g));
    LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 240, g));
    refused++;
  }
  for (int64_t g = 3; g <= 200; g++)
    LASTS(on_g(TW_EV_USER_REGION_END, 247, g), (uint64_t)(247 - began[g]));
  return refused;
}

Test(durations, a_region_without_memory_leaves_nothing_behind) {
  cr_assert_eq(begin_regions(0), 198);
}

Test(durations, a_region_without_room_in_its_table_leaves_nothing_behind) {
  int refused = begin_regions(512); /* enough for a region, too little for a larger table */

  cr_assert(refused > 0 && refused < 10, "%d: the table grows a few times", refused);
}

Test(durations, a_range_under_way_is_a_lower_bound_until_it_was_seen_to_begin) {
  static const struct {
    uint8_t active, begin, end;
  } ranges[] = { { TW_EV_GC_SWEEP_ACTIVE, TW_EV_GC_SWEEP_BEGIN, TW_EV_GC_SWEEP_END },
                 { TW_EV_GC_MARK_ASSIST_ACTIVE, TW_EV_GC_MARK_ASSIST_BEGIN,
                   TW_EV_GC_MARK_ASSIST_END } };

  feed_one(about(TW_EV_GO_CREATE, 5, 9));
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    feed_one(about(ranges[i].active, 10, 0)); /* of goroutine 0, or proc 0 */
    struct to_duration lasted = feed_one(on_g(ranges[i].end, 30, 0));
    cr_assert(lasted.known && lasted.lower_bound && lasted.ns == 25);
    feed_one(on_g(ranges[i].begin, 40, 0));
    feed_one(about(ranges[i].active, 50, 0)); /* restated by the next generation */
    LASTS(on_g(ranges[i].end, 60, 0), 20);
  }
}
