/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and filters of single events. */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/durations.h"
#include "analysis/filter.h"

static struct tb_mem mem;
static struct to_durations durations;

static void init(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  to_durations_init(&durations, &mem);
}

static void fini(void) {
  to_durations_fini(&durations);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(durations, .init = init, .fini = fini);
TestSuite(filter);

static struct to_event on_g(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){ .type = type, .time = time, .m = 1, .p = 0, .g = g };
}

static struct to_event about(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){
    .type = type, .time = time, .m = 1, .p = 0, .g = TO_NONE, .args = { (uint64_t)g }
  };
}

static struct to_duration feed(struct to_event ev) {
  struct to_duration lasted;

  cr_assert_eq(to_durations_event(&durations, &ev, &lasted), TB_OK);
  return lasted;
}

#define LASTS(event, ns_)                                                                          \
  do {                                                                                             \
    struct to_duration lasted_ = feed(event);                                                      \
    cr_assert(lasted_.known && !lasted_.lower_bound);                                              \
    cr_assert_eq(lasted_.ns, ns_, "%lu", lasted_.ns);                                              \
  } while (0)
#define LASTS_NOTHING(event) cr_assert_not(feed(event).known)

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
  feed(about(TW_EV_GO_CREATE, 60, 8)); /* the first event: so long 7 has been there, too */
  feed(about(TW_EV_GO_STATUS, 100, 7));
  struct to_duration lasted = feed(about(TW_EV_GO_UNBLOCK, 150, 7));
  cr_assert(lasted.known && lasted.lower_bound);
  cr_assert_eq(lasted.ns, 90);
  feed(about(TW_EV_GO_STATUS_STACK, 170, 7)); /* the next generation says so again */
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
  feed(about(TW_EV_GO_CREATE, 1, 7));
  feed(on_g(TW_EV_USER_REGION_BEGIN, 10, 7));
  feed(on_g(TW_EV_USER_REGION_BEGIN, 20, 7));
  LASTS(on_g(TW_EV_USER_REGION_END, 25, 7), 5);
  LASTS(on_g(TW_EV_USER_REGION_END, 35, 7), 25);
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 36, 7));
  feed(on_g(TW_EV_USER_REGION_BEGIN, 40, 7));
  feed(on_g(TW_EV_GO_DESTROY, 50, 7));
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 60, 7));
}

Test(durations, an_epoch_forgets_what_is_open) {
  feed(about(TW_EV_GO_CREATE, 100, 7));
  to_durations_epoch(&durations);
  LASTS_NOTHING(about(TW_EV_GO_START, 130, 7));
  feed(about(TW_EV_GO_STATUS, 150, 8));
  cr_assert_eq(feed(about(TW_EV_GO_START, 170, 8)).ns, 40, "since the epoch's first event");
}

Test(durations, without_memory_a_lasted_has_no_duration_and_the_others_do) {
  struct to_duration lasted;
  tb_rc rc = TB_OK;
  int64_t g = 0;

  mem.bytes_max = 64 << 10;
  while (rc == TB_OK) {
    struct to_event ev = about(TW_EV_GO_CREATE, 1, ++g);
    rc = to_durations_event(&durations, &ev, &lasted);
  }
  cr_assert_eq(rc, TB_BUDGET);
  LASTS(about(TW_EV_GO_START, 1000000, 1), 999999);
}

/* Fills a table up to its next growth, which the budget then refuses. */
static void fill(struct tb_map *map) {
  uint64_t *value;

  for (uint64_t key = UINT64_C(1) << 62; map->slots == 0 || (map->count + 1) * 4 <= map->slots * 3;
       key++)
    cr_assert_eq(tb_map_put(map, key, &value, NULL), TB_OK);
}

static void refused_region(struct tb_map *full) {
  struct to_event begin = on_g(TW_EV_USER_REGION_BEGIN, 10, 7);
  struct to_duration lasted;
  size_t begun, regions;

  fill(full);
  begun = durations.begun.count;
  regions = durations.regions.count;
  mem.bytes_max = mem.bytes;
  cr_assert_eq(to_durations_event(&durations, &begin, &lasted), TB_BUDGET);
  cr_assert_eq(durations.begun.count, begun);
  cr_assert_eq(durations.regions.count, regions);
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 20, 7));
  LASTS_NOTHING(on_g(TW_EV_GO_DESTROY, 30, 7));
  mem.bytes_max = 1 << 20;
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 40, 7));
  LASTS(on_g(TW_EV_USER_REGION_END, 47, 7), 7);
}

Test(durations, a_region_without_memory_leaves_no_depth_behind, .timeout = 20) {
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 1, 1)); /* both tables are there */
  refused_region(&durations.regions);
}

Test(durations, a_depth_without_memory_leaves_no_region_behind, .timeout = 20) {
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 1, 1));
  refused_region(&durations.begun);
}

Test(filter, every_event_is_of_a_kind_and_every_kind_has_events) {
  struct to_filter any;

  to_filter_none(&any);
  for (size_t i = 0; i < to_kinds_count; i++) {
    cr_assert_neq(to_kinds[i].types[0], 0, "%s", to_kinds[i].name);
    cr_assert(to_filter_add(&any, to_kinds[i].name));
  }
  for (unsigned type = 1; type < TW_EV_LIMIT; type++) {
    const struct tw_spec *spec = tw_spec((uint8_t)type);
    bool ordered = spec->kind == TW_KIND_TIMED || spec->kind == TW_KIND_EXPERIMENT ||
                   type == TW_EV_SYNC || type == TW_EV_CPU_SAMPLE;
    struct to_event ev = { .type = (uint8_t)type };
    struct to_duration lasted = { 0 };
    if (spec->name == NULL) continue;
    cr_assert_eq(to_filter_fits(&any, &ev, &lasted), ordered, "%s", spec->name);
  }
}

Test(filter, an_event_may_be_asked_for_by_its_own_name) {
  struct to_event block = on_g(TW_EV_GO_BLOCK, 1, 7), stop = on_g(TW_EV_GO_STOP, 1, 7);
  struct to_duration lasted = { 0 };
  struct to_filter f;

  to_filter_none(&f);
  cr_assert_not(to_filter_fits(&f, &block, &lasted));
  cr_assert(to_filter_add(&f, "GoBlock"));
  cr_assert_not(to_filter_add(&f, "GoBlocks"));
  cr_assert_not(to_filter_add(&f, ""));
  cr_assert(to_filter_fits(&f, &block, &lasted));
  cr_assert_not(to_filter_fits(&f, &stop, &lasted));
}

Test(filter, a_goroutine_is_concerned_by_what_it_does_and_what_is_done_to_it) {
  struct to_event unblock = about(TW_EV_GO_UNBLOCK, 1, 7), block = on_g(TW_EV_GO_BLOCK, 1, 8),
                  proc = about(TW_EV_PROC_START, 1, 7);
  struct to_duration lasted = { 0 };
  struct to_filter f;

  to_filter_all(&f);
  f.goroutine = 7;
  cr_assert(to_filter_fits(&f, &unblock, &lasted));
  cr_assert_not(to_filter_fits(&f, &block, &lasted));
  cr_assert_not(to_filter_fits(&f, &proc, &lasted), "that 7 is a P");
}

Test(filter, a_least_duration_leaves_out_what_has_none) {
  struct to_event block = on_g(TW_EV_GO_BLOCK, 1, 8);
  struct to_filter f;

  to_filter_all(&f);
  f.duration_ns = 100;
  cr_assert_not(to_filter_fits(&f, &block, &(struct to_duration){ .ns = 500 }));
  cr_assert_not(to_filter_fits(&f, &block, &(struct to_duration){ .known = true, .ns = 99 }));
  cr_assert(to_filter_fits(&f, &block, &(struct to_duration){ .known = true, .ns = 100 }));
}

Test(durations, a_range_under_way_is_a_lower_bound_until_it_was_seen_to_begin) {
  static const struct {
    uint8_t active, begin, end;
  } ranges[] = { { TW_EV_GC_SWEEP_ACTIVE, TW_EV_GC_SWEEP_BEGIN, TW_EV_GC_SWEEP_END },
                 { TW_EV_GC_MARK_ASSIST_ACTIVE, TW_EV_GC_MARK_ASSIST_BEGIN,
                   TW_EV_GC_MARK_ASSIST_END } };

  feed(about(TW_EV_GO_CREATE, 5, 9));
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    feed(about(ranges[i].active, 10, 0)); /* of goroutine 0, or proc 0 */
    struct to_duration lasted = feed(on_g(ranges[i].end, 30, 0));
    cr_assert(lasted.known && lasted.lower_bound && lasted.ns == 25);
    feed(on_g(ranges[i].begin, 40, 0));
    feed(about(ranges[i].active, 50, 0)); /* the next generation says so again */
    LASTS(on_g(ranges[i].end, 60, 0), 20);
  }
}
