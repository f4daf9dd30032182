/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "support/trace_text.h"
#include "wire/split.h"
#include "wire/write.h"

#define ROOM(w) (w).room, (size_t)((w).pos - (w).room)

static unsigned char room[TW_WRITE_ROOM];

static struct tw_write open_batch(unsigned version, uint8_t experiment) {
  struct tw_write w;

  tw_write_open(
      &w, room, sizeof room, version,
      &(struct tw_batch){ .gen = 3, .thread = 7, .time = 1000, .experiment = experiment });
  return w;
}

static struct tw_batch read_back(struct tw_write *w) {
  struct tw_batch batch;
  struct tb_diag diag = { 0 };
  size_t n = tw_write_close(w), used;

  cr_assert_eq(tw_batch_read(room, n, &diag, &batch, &used), TB_OK, "%s", diag.text);
  cr_assert_eq(used, n);
  cr_assert_eq(batch.gen, 3);
  cr_assert_eq(batch.thread, 7);
  cr_assert_eq(batch.time, 1000);
  return batch;
}

Test(write, events_carry_the_difference_to_the_one_before) {
  struct tw_write w = open_batch(26, 0);

  cr_assert_eq(tw_write_event(&w, TW_EV_GO_START, 1000, (uint64_t[]){ 9, 1 }), TB_OK);
  cr_assert_eq(tw_write_event(&w, TW_EV_GO_DESTROY, 1300, NULL), TB_OK);
  struct tw_batch batch = read_back(&w);
  static const unsigned char wanted[] = { 16, 0, 9, 1, 17, 0xac, 0x02 };
  cr_assert_eq(batch.len, sizeof wanted);
  cr_assert_eq(memcmp(batch.data, wanted, sizeof wanted), 0);
}

Test(write, what_no_trace_may_hold_is_refused_and_writes_nothing) {
  static char longest[TW_STRING_BYTES_MAX + 1];
  static struct tw_frame frames[TW_STACK_FRAMES_MAX + 1];
  struct tw_write w = open_batch(22, 0);

  cr_assert_eq(tw_write_event(&w, TW_EV_GO_SWITCH, 1000, (uint64_t[]){ 9, 1 }), TB_UNSUPPORTED);
  cr_assert_eq(tw_write_event(&w, TW_EV_STRING, 1000, (uint64_t[]){ 1 }), TB_BROKEN);
  cr_assert_eq(tw_write_event(&w, 127, 1000, NULL), TB_BROKEN);
  cr_assert_eq(tw_write_event(&w, TW_EV_GO_DESTROY, 999, NULL), TB_BROKEN);
  cr_assert_eq(tw_write_string(&w, 1, longest, sizeof longest), TB_BROKEN);
  cr_assert_eq(tw_write_stack(&w, 1, frames, TW_STACK_FRAMES_MAX + 1), TB_BROKEN);
  cr_assert_eq(tw_write_bytes(&w, "x", 1), TB_BROKEN);
  cr_assert(tw_write_is_empty(&w));

  cr_assert_eq(tw_write_string(&w, 1, "a", 1), TB_OK);
  unsigned char *end = w.pos;
  cr_assert_eq(tw_write_stack(&w, 1, frames, 1), TB_BROKEN, "one batch, two tables");
  cr_assert_eq(tw_write_event(&w, TW_EV_GO_DESTROY, 1000, NULL), TB_BROKEN);
  cr_assert_eq(tw_write_sync(&w, &(struct tw_clocks){ .time = 1000 }), TB_BROKEN);
  cr_assert_eq(w.pos, end);
}

Test(write, a_full_batch_takes_no_more_and_stays_within_the_limit_of_the_format) {
  struct tw_write w = open_batch(26, 0);
  uint64_t args[] = { UINT64_MAX, UINT64_MAX, UINT64_MAX }, events = 0;

  while (tw_write_event(&w, TW_EV_GO_CREATE, w.time + 1, args) == TB_OK) events++;
  cr_assert_eq(tw_write_event(&w, TW_EV_GO_CREATE, w.time, args), TB_AGAIN);
  struct tw_batch batch = read_back(&w);
  cr_assert_eq(batch.len, events * 32);
  cr_assert_gt(batch.len, TW_BATCH_BYTES_MAX - 64);
}

/* A3, A4 */
Test(write, tables_read_back_as_they_were_written) {
  const struct tw_frame frames[] = { { 4096, 1, 2, 10 }, { UINT64_MAX, 300, 2, 70000 } };
  const struct tw_cpu_sample sample = { .time = 55, .m = 7, .p = -1, .g = -1, .stack = 8 };
  struct tw_section section;
  struct tb_diag diag = { 0 };
  struct tw_write w = open_batch(26, 0);

  cr_assert_eq(tw_write_string(&w, 5, "hello", 5), TB_OK);
  cr_assert_eq(tw_write_string(&w, 6, NULL, 0), TB_OK);
  struct tw_batch batch = read_back(&w);
  cr_assert_eq(tw_batch_kind(&batch, 26), TW_BATCH_STRINGS);
  tw_section_open(&section, &batch, 26, &diag);
  struct tw_string string;
  cr_assert_eq(tw_string_next(&section, &string), TB_OK);
  cr_assert(string.id == 5 && string.len == 5 && memcmp(string.data, "hello", 5) == 0);
  cr_assert_eq(tw_string_next(&section, &string), TB_OK);
  cr_assert(string.id == 6 && string.len == 0);
  cr_assert_eq(tw_string_next(&section, &string), TB_END);

  w = open_batch(26, 0);
  cr_assert_eq(tw_write_stack(&w, 8, frames, 2), TB_OK);
  batch = read_back(&w);
  tw_section_open(&section, &batch, 26, &diag);
  struct tw_stack stack;
  cr_assert_eq(tw_stack_next(&section, &stack), TB_OK);
  cr_assert(stack.id == 8 && stack.nframes == 2);
  struct tw_frame frame;
  tw_frame_read(tw_frame_read(stack.frames, &frame), &frame);
  cr_assert_eq(memcmp(&frame, &frames[1], sizeof frame), 0);
  cr_assert_eq(tw_stack_next(&section, &stack), TB_END);

  w = open_batch(26, 0);
  cr_assert_eq(tw_write_cpu_sample(&w, &sample), TB_OK);
  batch = read_back(&w);
  tw_section_open(&section, &batch, 26, &diag);
  struct tw_cpu_sample got;
  cr_assert_eq(tw_cpu_sample_next(&section, &got), TB_OK);
  cr_assert_eq(memcmp(&got, &sample, sizeof got), 0);
}

Test(write, clocks_take_the_form_of_their_version) {
  const struct tw_clocks clocks = {
    .frequency = 1000000000, .time = 1010, .mono_ns = 5, .wall_sec = 6, .wall_nsec = 7
  };
  static const unsigned versions[] = { 22, 23, 25, 26 };

  for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
    struct tw_write w = open_batch(versions[i], 0);
    struct tw_section section;
    struct tb_diag diag = { 0 };
    struct tw_sync sync;

    cr_assert_eq(tw_write_sync(&w, &clocks), TB_OK);
    struct tw_batch batch = read_back(&w);
    cr_assert_eq(tw_batch_kind(&batch, versions[i]), TW_BATCH_SYNC);
    tw_section_open(&section, &batch, versions[i], &diag);
    cr_assert_eq(tw_sync_next(&section, versions[i], &sync), TB_OK);
    cr_assert_eq(sync.args[0], clocks.frequency);
    if (versions[i] >= 25) {
      cr_assert_eq(tw_sync_next(&section, versions[i], &sync), TB_OK);
      cr_assert(sync.args[0] == 10 && sync.args[1] == 5 && sync.args[2] == 6 && sync.args[3] == 7);
    }
    cr_assert_eq(tw_sync_next(&section, versions[i], &sync), TB_END);
  }
}

/* A7 */
Test(write, an_experiment_keeps_its_bytes) {
  struct tw_write w = open_batch(26, TW_EXPERIMENT_ALLOC_FREE);

  cr_assert_eq(tw_write_event(&w, TW_EV_GO_DESTROY, 1000, NULL), TB_BROKEN);
  cr_assert_eq(tw_write_bytes(&w, "\1\2\3", 3), TB_OK);
  struct tw_batch batch = read_back(&w);
  cr_assert_eq(batch.experiment, TW_EXPERIMENT_ALLOC_FREE);
  cr_assert(batch.len == 3 && memcmp(batch.data, "\1\2\3", 3) == 0);
}

/* E7. */
Test(write, a_batch_that_was_closed_takes_nothing_until_it_is_opened_again) {
  static unsigned char bytes[TW_WRITE_ROOM];
  const struct tw_batch heads[] = { { .gen = 3, .thread = 7, .time = 1000 },
                                    { .gen = 3, .thread = 7, .time = 1000, .experiment = 2 } };
  struct tw_clocks clocks = { .frequency = 1, .time = 1000 };
  struct tw_frame frame = { .pc = 1 };
  struct tw_write w;

  for (size_t i = 0; i < 2; i++) {
    for (int opened = 0; opened < 2; opened++) {
      tw_write_open(&w, bytes, sizeof bytes, 26, &heads[i]);
      size_t n = tw_write_close(&w);
      cr_assert_eq(tw_write_event(&w, TW_EV_HEAP_ALLOC, 1000, (uint64_t[]){ 1 }), TB_BROKEN);
      cr_assert_eq(tw_write_string(&w, 1, "x", 1), TB_BROKEN);
      cr_assert_eq(tw_write_stack(&w, 1, &frame, 1), TB_BROKEN);
      cr_assert_eq(tw_write_cpu_sample(&w, &(struct tw_cpu_sample){ 0 }), TB_BROKEN);
      cr_assert_eq(tw_write_sync(&w, &clocks), TB_BROKEN);
      cr_assert_eq(tw_write_bytes(&w, "x", 1), TB_BROKEN);
      cr_assert_eq(tw_write_close(&w), n);
    }
  }
}
