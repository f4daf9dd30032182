/* SPDX-License-Identifier: Apache-2.0 */
/* H3: what is "active since the last Sync" counts from there, once, and up to now. */
#include <criterion/criterion.h>

#include "analysis/range_time.h"
#include "support/order_text.h"

#define RUNNING(gen, time)                                                                         \
  "EventBatch gen=" #gen " m=0 time=" #time "\n"                                                   \
  "ProcStatus dt=1 p=0 pstatus=1\n"                                                                \
  "GoStatus dt=1 g=1 m=0 gstatus=2\n"

struct scene {
  struct tb_mem mem;
  struct to_range_times *times;
};

static void begin(struct scene *scene) {
  tb_mem_init(&scene->mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_range_times_new(&scene->mem, &scene->times), TB_OK);
}

static void end(struct scene *scene) {
  to_range_times_free(scene->times);
  cr_assert_eq(scene->mem.bytes, 0);
}

static void feed(struct scene *scene, const struct to_event *events, size_t n) {
  for (size_t i = 0; i < n; i++)
    cr_assert_eq(to_range_times_event(scene->times, &events[i]), TB_OK);
}

static void expect(struct scene *scene, enum to_range_kind kind, int64_t id,
                   struct to_range_time want, const char *when) {
  struct to_range_time got;

  want.kind = kind;
  want.id = id;
  cr_expect_eq(to_range_times_find(scene->times, kind, id, &got), want.ended > 0 || want.active,
               "%s", when);
  cr_expect(got.kind == want.kind && got.id == want.id, "%s", when);
  cr_expect_eq(got.ended, want.ended, "%s: %lu ended", when, (unsigned long)got.ended);
  cr_expect_eq(got.total_ns, want.total_ns, "%s: %lu ns", when, (unsigned long)got.total_ns);
  cr_expect_eq(got.since_sync_ns, want.since_sync_ns, "%s: %lu ns since the Sync", when,
               (unsigned long)got.since_sync_ns);
  cr_expect(got.active == want.active && got.lower_bound == want.lower_bound, "%s", when);
}

/* As the orderer gives them: a Sync, then what the generation restates. */
#define SYNC(at)                                                                                   \
  { .type = TW_EV_SYNC, .time = (at), .m = -1, .p = -1, .g = -1 }
#define GC(TYPE, at)                                                                               \
  { .type = TW_EV_GC_##TYPE, .time = (at), .m = 0, .p = 0, .g = 1 }
#define ASSIST(TYPE, at)                                                                           \
  {                                                                                                \
    .type = TW_EV_GC_MARK_ASSIST_##TYPE, .time = (at), .m = 0, .p = 0, .g = 1, .args = { 1 }       \
  }
#define SWEEP(TYPE, at)                                                                            \
  {                                                                                                \
    .type = TW_EV_GC_SWEEP_##TYPE, .time = (at), .m = 0, .p = 3, .g = 1, .args = { 3 }             \
  }
#define FEED(scene, ...)                                                                           \
  do {                                                                                             \
    const struct to_event events_[] = { __VA_ARGS__ };                                             \
    feed((scene), events_, sizeof events_ / sizeof events_[0]);                                    \
  } while (0)

Test(range_time, a_range_that_each_generation_restates_counts_once) {
  struct scene scene;

  begin(&scene);
  FEED(&scene, SYNC(1000), GC(BEGIN, 1400));
  expect(&scene, TO_RANGE_GC_MARK, 0, (struct to_range_time){ .active = true }, "at its begin");
  FEED(&scene, SYNC(2000));
  cr_assert_eq(to_range_times_sync(scene.times), 2000);
  expect(&scene, TO_RANGE_GC_MARK, 0, (struct to_range_time){ .active = true, .total_ns = 600 },
         "at the Sync");
  FEED(&scene, GC(ACTIVE, 2100));
  expect(&scene, TO_RANGE_GC_MARK, 0,
         (struct to_range_time){ .active = true, .total_ns = 700, .since_sync_ns = 100 },
         "restated: since the Sync");
  FEED(&scene, SYNC(3000), GC(ACTIVE, 3050), GC(END, 3300));
  expect(&scene, TO_RANGE_GC_MARK, 0,
         (struct to_range_time){ .ended = 1, .total_ns = 1900, .since_sync_ns = 300 }, "ended");
  FEED(&scene, GC(BEGIN, 3500), GC(END, 3600));
  expect(&scene, TO_RANGE_GC_MARK, 0,
         (struct to_range_time){ .ended = 2, .total_ns = 2000, .since_sync_ns = 400 }, "and again");
  FEED(&scene, SYNC(4000));
  expect(&scene, TO_RANGE_GC_MARK, 0, (struct to_range_time){ .ended = 2, .total_ns = 2000 },
         "of another generation");
  end(&scene);
}

Test(range_time, what_was_active_before_the_first_event_is_a_lower_bound) {
  struct scene scene;
  struct to_range_time row;
  size_t pos = 0, rows = 0;

  begin(&scene);
  FEED(&scene, SYNC(1000), ASSIST(ACTIVE, 1010), SWEEP(ACTIVE, 1020), ASSIST(END, 1200));
  expect(&scene, TO_RANGE_GC_MARK_ASSIST, 1,
         (struct to_range_time){
             .ended = 1, .total_ns = 200, .since_sync_ns = 200, .lower_bound = true },
         "ended");
  expect(&scene, TO_RANGE_GC_SWEEP, 3,
         (struct to_range_time){
             .active = true, .total_ns = 200, .since_sync_ns = 200, .lower_bound = true },
         "active");
  expect(&scene, TO_RANGE_GC_SWEEP, 2, (struct to_range_time){ 0 }, "another P's");
  FEED(&scene, ASSIST(END, 1300), GC(END, 1300));
  expect(&scene, TO_RANGE_GC_MARK, 0, (struct to_range_time){ 0 }, "an end of what nothing began");
  while (to_range_times_next(scene.times, &pos, &row)) rows += row.total_ns > 0;
  cr_assert_eq(rows, 2);
  end(&scene);
}

Test(range_time, sums_begin_anew_and_what_is_active_counts_from_there) {
  struct scene scene;

  begin(&scene);
  FEED(&scene, SYNC(1000), GC(BEGIN, 1100), ASSIST(BEGIN, 1100), ASSIST(END, 1150),
       SWEEP(BEGIN, 1200));
  to_range_times_clear(scene.times);
  expect(&scene, TO_RANGE_GC_MARK_ASSIST, 1, (struct to_range_time){ 0 }, "had ended");
  expect(&scene, TO_RANGE_GC_MARK, 0, (struct to_range_time){ .active = true }, "goes on");
  FEED(&scene, GC(END, 1500), SWEEP(END, 1600));
  expect(&scene, TO_RANGE_GC_MARK, 0,
         (struct to_range_time){ .ended = 1, .total_ns = 300, .since_sync_ns = 300 }, "ended");
  expect(&scene, TO_RANGE_GC_SWEEP, 3,
         (struct to_range_time){ .ended = 1, .total_ns = 400, .since_sync_ns = 400 }, "ended");
  FEED(&scene, GC(BEGIN, 1700));
  to_range_times_epoch(scene.times);
  FEED(&scene, SYNC(5000), GC(END, 5100));
  expect(&scene, TO_RANGE_GC_MARK, 0, (struct to_range_time){ .ended = 1, .total_ns = 300 },
         "nothing is counted over a hole");
  end(&scene);
}

static tb_rc hand_over(void *self, const struct to_generation *gen, const struct to_event *ev,
                       size_t n) {
  (void)gen;
  for (; n > 0; ev++, n--) TB_TRY(to_range_times_event(((struct scene *)self)->times, ev));
  return TB_OK;
}

/* The same out of a trace: two generations, of which the second says that the first one's mark phase is active. */
Test(range_time, a_trace_is_summed_as_it_is_read) {
  struct to_reader *reader;
  struct scene scene;
  struct tb_buf bytes;

  begin(&scene);
  tb_buf_init(&bytes, &scene.mem);
  tt_trace_bytes("Trace Go1.26\n" RUNNING(1, 1000) "GCBegin dt=98 gc_seq=1 stack=0\n" RUNNING(
                     2, 2000) "GCActive dt=1 gc_seq=2\nGCEnd dt=97 gc_seq=3\nSTWBegin dt=100 "
                              "kind_string=5 stack=0\n"
                              "STWEnd dt=7\n",
                 &scene.mem, &bytes);
  cr_assert_eq(to_reader_new(&scene.mem, NULL, 0, (struct to_event_sink){ &scene, hand_over }, NULL,
                             &reader),
               TB_OK);
  cr_assert_eq(to_reader_read(reader, bytes.data, bytes.len), TB_OK);
  struct to_range_time row;
  cr_assert(to_range_times_find(scene.times, TO_RANGE_GC_MARK, 0, &row));
  cr_assert(row.ended == 1 && row.total_ns == 1000 && !row.lower_bound, "%lu",
            (unsigned long)row.total_ns);
  cr_assert(to_range_times_find(scene.times, TO_RANGE_STW, 1, &row) && row.total_ns == 7);
  to_reader_free(reader);
  tb_buf_fini(&bytes);
  end(&scene);
}

Test(range_time, without_memory_it_says_so_and_leaks_nothing) {
  for (size_t limit = 0; limit < 20000; limit += 97) {
    struct to_range_times *times = NULL;
    struct tb_mem mem;
    tb_rc rc;

    tb_mem_init(&mem, tb_mem_libc, NULL, limit);
    rc = to_range_times_new(&mem, &times);
    for (int64_t g = 1; rc == TB_OK && g < 100; g++) {
      const struct to_event ev = { .type = TW_EV_GC_MARK_ASSIST_BEGIN, .time = g, .g = g };
      rc = to_range_times_event(times, &ev);
    }
    cr_assert(rc == TB_OK || rc == TB_BUDGET);
    to_range_times_free(times);
    cr_assert_eq(mem.bytes, 0);
  }
}
