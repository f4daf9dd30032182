/* SPDX-License-Identifier: Apache-2.0 */
/* Which events a filter accepts. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/analysis/filter.h"

TestSuite(filter);

static struct to_event on_g(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){ .type = type, .time = time, .m = 1, .p = 0, .g = g };
}

static struct to_event about(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){
    .type = type, .time = time, .m = 1, .p = 0, .g = TO_NONE, .args = { (uint64_t)g }
  };
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
