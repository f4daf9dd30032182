/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

#define MS     INT64_C(1000000)
#define SECOND (1000 * MS)

/* The heap begins at 0; pages of 8192 bytes, objects are aligned to 8. */
static const unsigned char packing[] = { 1, 0, 0x80, 0x40, 8, 8 };
/* Type 1 is main.node, 40 bytes. */
static const unsigned char types[] = { 0,   1,   9,   40,  8,   9,   'm', 'a',
                                       'i', 'n', '.', 'n', 'o', 'd', 'e' };
static const struct to_experimental experimental[] = {
  { .experiment = 1, .data = packing, .len = sizeof packing },
  { .experiment = 1, .data = types, .len = sizeof types },
};
static const struct to_generation plain = { .number = 1 };
static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "sync" },
  .stack = { [1] = { { 100, 7, "main.serve", "m.go" } } },
  .experimental = experimental,
  .experimentals = 2,
};

static void open_stream(struct tt_analyses *t, const struct to_generation *gen) {
  tt_analyses_open(t, 10 * MS, 100);
  TT_FEED(t, gen, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC,
          .args = { 1 });
}

static void size(struct tt_analyses *t, to_ns time, uint64_t bytes) {
  TT_FEED(t, &plain, .time = time, .m = 1, .p = 1, .g = 1, .type = TW_EV_HEAP_ALLOC,
          .args = { bytes });
}

static void goal(struct tt_analyses *t, to_ns time, uint64_t bytes) {
  TT_FEED(t, &plain, .time = time, .m = 1, .p = 1, .g = 1, .type = TW_EV_HEAP_GOAL,
          .args = { bytes });
}

static int64_t figure(const struct to_report *r, const char *name) {
  cr_assert_not(tt_figure(r, name)->none, "%s", name);
  return tt_figure(r, name)->number;
}

static int64_t number(const struct to_report *r, const char *table, size_t row,
                      const char *column) {
  return tt_cell(r, table, row, column)->number;
}

static const struct to_report *report(struct tt_analyses *t, enum to_window window) {
  return tt_report(t, TO_ANALYSIS_HEAP, window);
}

Test(an_heap, each_window_has_the_least_the_most_and_what_is_now) {
  const struct to_report *r;
  struct tt_analyses t;

  open_stream(&t, &plain);
  cr_assert(tt_figure(report(&t, TO_WINDOW_10S), "heap_bytes")->none);
  goal(&t, SECOND, 900);
  size(&t, SECOND + 1, 10);
  size(&t, 100 * SECOND, 500);
  size(&t, 100 * SECOND + 5, 300);
  goal(&t, 100 * SECOND + 6, 1000);
  size(&t, 103 * SECOND, 400);
  r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(figure(r, "heap_bytes"), 400);
  cr_assert_eq(figure(r, "heap_min_bytes"), 300);
  cr_assert_eq(figure(r, "heap_max_bytes"), 500);
  cr_assert_eq(figure(r, "goal_bytes"), 1000);
  cr_assert_eq(figure(r, "has_objects"), 0);
  cr_assert(tt_figure(r, "live_bytes")->none);
  cr_assert_eq(tt_table(r, "over_time")->rows, 2);
  cr_assert_eq(number(r, "over_time", 0, "start_ns"), 100 * SECOND);
  cr_assert_eq(number(r, "over_time", 0, "heap_bytes"), 300, "at its end");
  cr_assert_eq(number(r, "over_time", 0, "heap_max_bytes"), 500);
  cr_assert_eq(number(r, "over_time", 0, "goal_bytes"), 1000);
  cr_assert_eq(number(r, "over_time", 1, "heap_bytes"), 400);
  r = report(&t, TO_WINDOW_5MIN);
  cr_assert_eq(figure(r, "heap_min_bytes"), 10);
  cr_assert_eq(tt_table(r, "over_time")->rows, 2, "one of 0 s, one of 60 s");
  cr_assert_eq(number(r, "over_time", 1, "start_ns"), 60 * SECOND);
  tt_analyses_close(&t);
}

/* 1000 seconds are more than 64 stretches of 8 s. */
Test(an_heap, all_of_the_time_is_at_most_64_rows) {
  enum { SECONDS = 1000 };
  struct tt_analyses t;

  open_stream(&t, &plain);
  for (to_ns i = 1; i <= SECONDS; i++) size(&t, i * SECOND, (uint64_t)i);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(figure(r, "heap_min_bytes"), 1);
  cr_assert_eq(figure(r, "heap_max_bytes"), SECONDS);
  cr_assert_eq(tt_table(r, "over_time")->rows, 63, "of 16 s");
  for (size_t row = 0; row < 63; row++) {
    cr_assert_eq(number(r, "over_time", row, "start_ns"), (to_ns)row * 16 * SECOND);
    cr_assert_eq(number(r, "over_time", row, "heap_min_bytes"), row == 0 ? 1 : (int64_t)row * 16);
    cr_assert_eq(number(r, "over_time", row, "heap_bytes"),
                 row == 62 ? SECONDS : (int64_t)row * 16 + 15);
  }
  r = report(&t, TO_WINDOW_1MIN);
  cr_assert_eq(figure(r, "heap_max_bytes"), SECONDS);
  cr_assert_eq(figure(r, "heap_min_bytes"), r->from / SECOND);
  tt_analyses_close(&t);
}

Test(an_heap, where_the_clock_fell_time_begins_again) {
  struct tt_analyses t;

  open_stream(&t, &plain);
  size(&t, 100 * SECOND, 500);
  to_analyses_epoch(t.a);
  size(&t, 97 * SECOND, 300);
  const struct to_report *r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(figure(r, "heap_max_bytes"), 300);
  cr_assert_eq(tt_table(r, "over_time")->rows, 1);
  cr_assert_eq(figure(report(&t, TO_WINDOW_ALL), "heap_max_bytes"), 500);
  tt_analyses_close(&t);
}

#define AF(at, its_type, ...)                                                                      \
  TT_FEED(&t, &gen1, .time = at, .m = 1, .p = 1, .g = 1, .type = TW_EV_##its_type,                 \
          .args = { __VA_ARGS__ })

Test(an_heap, an_object_takes_what_its_size_class_takes_until_it_is_freed) {
  struct tt_analyses t;

  open_stream(&t, &gen1);
  TT_FEED(&t, &gen1, .time = 2, .m = 1, .p = 1, .g = TO_NONE, .slot = 1,
          .type = TW_EV_GO_STATUS_STACK, .args = { 1, 1, TW_GO_RUNNABLE, 1 });
  TT_FEED(&t, &gen1, .time = 3, .m = 1, .p = 1, .g = TO_NONE, .slot = 1, .type = TW_EV_GO_START,
          .args = { 1, 1 });
  AF(10, SPAN, 0, 1, 5 << 2);  /* page 0: objects of 48 bytes */
  AF(11, SPAN_ALLOC, 4, 3, 0); /* pages 4 to 6: one large object */
  AF(12, HEAP_OBJECT, 6, 1);   /* existed before the trace */
  AF(SECOND, HEAP_OBJECT_ALLOC, 12, 1);
  AF(SECOND + 1, HEAP_OBJECT_ALLOC, 18, 1);
  AF(SECOND + 2, HEAP_OBJECT_ALLOC, 4 * 1024, 0);
  AF(SECOND + 3, HEAP_OBJECT_FREE, 18);
  AF(SECOND + 4, HEAP_OBJECT_FREE, 99); /* never seen */
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_eq(figure(r, "has_objects"), 1);
  cr_assert_eq(figure(r, "live_objects"), 3);
  cr_assert_eq(figure(r, "live_bytes"), 2 * 48 + 3 * 8192);
  cr_assert_eq(figure(r, "allocations"), 3);
  cr_assert_eq(figure(r, "allocated_bytes"), 2 * 48 + 3 * 8192);
  cr_assert_eq(tt_table(r, "by_type")->rows, 2);
  cr_assert_str_eq(tt_cell(r, "by_type", 0, "type")->text.data, "(no type)");
  cr_assert_eq(number(r, "by_type", 0, "live_bytes"), 3 * 8192);
  cr_assert_str_eq(tt_cell(r, "by_type", 1, "type")->text.data, "main.node");
  cr_assert_eq(number(r, "by_type", 1, "live_objects"), 2);
  cr_assert_eq(number(r, "by_type", 1, "live_bytes"), 96);
  cr_assert_eq(number(r, "by_type", 1, "allocations"), 2);
  cr_assert_str_eq(tt_cell(r, "by_entry", 0, "entry")->text.data, "main.serve");
  cr_assert_eq(number(r, "by_entry", 0, "allocations"), 3);
  cr_assert_eq(number(r, "by_entry", 1, "live_bytes"), 48, "there before");
  TT_FEED(&t, &gen1, .time = 100 * SECOND, .m = 9, .type = TW_EV_HEAP_ALLOC);
  r = report(&t, TO_WINDOW_10S);
  cr_assert_eq(figure(r, "allocations"), 0);
  cr_assert_eq(figure(r, "live_objects"), 3);
  to_analyses_epoch(t.a);
  cr_assert_eq(figure(report(&t, TO_WINDOW_ALL), "live_objects"), 0);
  tt_analyses_close(&t);
}

/* Objects of one type are freed at both ends and in the middle of their list. */
Test(an_heap, a_type_has_the_age_of_its_oldest_object_and_its_rate) {
  struct tt_analyses t;

  open_stream(&t, &gen1);
  AF(1, SPAN, 0, 1, 5 << 2);
  AF(1, HEAP_OBJECT, 6, 1);
  for (to_ns i = 1; i <= 4; i++) AF(i * SECOND, HEAP_OBJECT_ALLOC, 6 + 6 * (uint64_t)i, 1);
  AF(4 * SECOND + 1, HEAP_OBJECT_ALLOC, 1000000, 0);
  const struct to_report *r = report(&t, TO_WINDOW_ALL);
  cr_assert_str_eq(tt_cell(r, "by_type", 0, "type")->text.data, "main.node");
  cr_expect_eq(number(r, "by_type", 0, "oldest_ns"), 4 * SECOND, "there before");
  cr_expect_eq(number(r, "by_type", 0, "alloc_rate_bytes"), 4 * 48 / 4);
  cr_expect_eq(number(r, "by_type", 1, "oldest_ns"), 0);
  AF(5 * SECOND, HEAP_OBJECT_FREE, 6);
  cr_expect_eq(number(report(&t, TO_WINDOW_ALL), "by_type", 0, "oldest_ns"), 4 * SECOND);
  AF(5 * SECOND, HEAP_OBJECT_FREE, 18); /* allocated in second 2 */
  AF(5 * SECOND, HEAP_OBJECT_FREE, 12); /* allocated in second 1 */
  cr_expect_eq(number(report(&t, TO_WINDOW_ALL), "by_type", 0, "oldest_ns"), 2 * SECOND);
  AF(5 * SECOND, HEAP_OBJECT_FREE, 30);     /* the youngest */
  AF(5 * SECOND, HEAP_OBJECT_ALLOC, 24, 1); /* the last one again: its free was not shown */
  AF(6 * SECOND, HEAP_OBJECT_ALLOC, 12, 1);
  r = report(&t, TO_WINDOW_ALL);
  cr_expect_eq(number(r, "by_type", 0, "live_objects"), 2);
  cr_expect_eq(number(r, "by_type", 0, "oldest_ns"), SECOND);
  AF(7 * SECOND, HEAP_OBJECT_FREE, 12);
  AF(7 * SECOND, HEAP_OBJECT_FREE, 24);
  r = report(&t, TO_WINDOW_ALL);
  cr_expect(tt_cell(r, "by_type", 0, "oldest_ns")->none, "none lives");
  AF(8 * SECOND, HEAP_OBJECT_ALLOC, 36, 1);
  to_analyses_epoch(t.a);
  AF(9 * SECOND, HEAP_OBJECT_ALLOC, 42, 1);
  AF(10 * SECOND, HEAP_OBJECT_FREE, 36);
  r = report(&t, TO_WINDOW_ALL);
  cr_expect_eq(number(r, "by_type", 0, "live_objects"), 1);
  cr_expect_eq(number(r, "by_type", 0, "oldest_ns"), SECOND);
  tt_analyses_close(&t);
}

/* The row for the types that are left out has the age of their oldest object, not the sum of ages. */
Test(an_heap, the_rest_has_the_greatest_age) {
  struct tt_analyses t;
  const struct to_report *r;

  open_stream(&t, &gen1);
  AF(10, SPAN, 0, 1, 5 << 2);
  AF(SECOND, HEAP_OBJECT_ALLOC, 6, 1);
  AF(2 * SECOND, HEAP_OBJECT_ALLOC, 1000000, 0);
  AF(5 * SECOND, HEAP_OBJECT_FREE, 99);
  cr_assert_eq(to_analyses_report(t.a, TO_ANALYSIS_HEAP, TO_WINDOW_ALL, 0, &r), TB_OK);
  cr_assert_eq(tt_table(r, "by_type")->rows, 1);
  cr_expect_eq(number(r, "by_type", 0, "live_objects"), 2);
  cr_expect_eq(number(r, "by_type", 0, "oldest_ns"), 4 * SECOND);
  tt_analyses_close(&t);
}
