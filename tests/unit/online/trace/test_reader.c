/* SPDX-License-Identifier: Apache-2.0 */
/* The end of generations, results for any chunks, and what is freed when memory runs out. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "online/event/generation.h"
#include "online/event/tables.h"
#include "support/order_text.h"
#include "wire/batch.h"

#define ONE_GENERATION(gen, time)                                                                  \
  "EventBatch gen=" gen " m=0 time=" time "\n"                                                     \
  "ProcStatus dt=1 p=0 pstatus=1\n"                                                                \
  "GoStatus dt=1 g=1 m=0 gstatus=2\n"                                                              \
  "UserTaskBegin dt=1 task=1" gen " parent_task=0 name_string=7 stack=3\n"                         \
  "UserRegionBegin dt=1 task=1 name_string=7 stack=3\n"                                            \
  "GoCreate dt=1 new_g=10" gen " new_stack=3 stack=4\n"
#define THREE_GENERATIONS                                                                          \
  ONE_GENERATION("1", "0") ONE_GENERATION("2", "50") ONE_GENERATION("3", "100")

static void start(struct tt_run *run, struct tb_buf *bytes, const char *text) {
  *run = (struct tt_run){ 0 };
  tb_mem_init(&run->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(bytes, &run->mem);
  tt_trace_bytes(text, &run->mem, bytes);
}

static void stop(struct tt_run *run, struct tb_buf *bytes) {
  tb_buf_fini(bytes);
  tt_run_fini(run);
  cr_assert_eq(run->mem.bytes, 0, "%zu bytes left", run->mem.bytes);
}

static void check_any_chunking(const char *text) {
  struct tb_buf bytes;
  struct tt_run whole, parts = { 0 };

  start(&whole, &bytes, text);
  tt_order_bytes(&whole, bytes.data, bytes.len);
  TT_OK(whole);
  cr_assert_eq(whole.generations, 3);
  for (unsigned how = 0; how < 4; how++) {
    for (size_t chunk = 1; chunk <= bytes.len; chunk = chunk < 40 ? chunk + 1 : chunk * 2) {
      parts.feed_bytes = chunk;
      parts.feed_whole_batches = how >= 2;
      parts.flags = how % 2 == 0 ? 0 : TO_READER_BYTES_STAY;
      tt_order_bytes(&parts, bytes.data, bytes.len);
      TT_OK(parts);
      cr_assert_eq(parts.count, whole.count, "chunks of %zu", chunk);
      cr_assert_eq(memcmp(parts.events, whole.events, whole.count * sizeof *whole.events), 0);
    }
  }
  tt_run_fini(&parts);
  stop(&whole, &bytes);
}

Test(reader, any_chunking_gives_the_same_events_before_1_26) {
  check_any_chunking("Trace Go1.22\n" THREE_GENERATIONS);
}
Test(reader, any_chunking_gives_the_same_events_from_1_26) {
  check_any_chunking("Trace Go1.26\n" THREE_GENERATIONS);
}

Test(reader, pieces_of_whole_batches_that_stay_need_no_copies) {
  struct tb_buf bytes;
  struct tt_run text, whole = { .flags = TO_READER_BYTES_STAY }, parts = whole;

  start(&text, &bytes, "Trace Go1.26\n" THREE_GENERATIONS);
  tt_order_bytes(&whole, bytes.data, bytes.len);
  TT_OK(whole);
  parts.feed_bytes = 1;
  parts.feed_whole_batches = true;
  tt_order_bytes(&parts, bytes.data, bytes.len);
  TT_OK(parts);
  cr_assert_eq(parts.count, whole.count);
  cr_assert_eq(parts.mem.bytes_peak, whole.mem.bytes_peak);
  parts.feed_whole_batches = false;
  tt_order_bytes(&parts, bytes.data, bytes.len);
  TT_OK(parts);
  cr_assert_gt(parts.mem.bytes_peak, whole.mem.bytes_peak, "each batch is put together");
  tt_run_fini(&parts);
  tt_run_fini(&whole);
  stop(&text, &bytes);
}

Test(reader, a_generation_goes_out_when_its_end_is_seen) {
  static const char *const texts[] = { "Trace Go1.25\n" THREE_GENERATIONS,
                                       "Trace Go1.26\n" THREE_GENERATIONS };

  for (size_t i = 0; i < 2; i++) {
    struct tb_buf bytes;
    struct tt_run run;
    start(&run, &bytes, texts[i]);
    /* A batch is cut off. In 1.26 the third generation then has no end mark; before 1.26 it is whole. */
    if (i == 1) bytes.len--;
    tb_buf_byte(&bytes, TW_EV_EVENT_BATCH);
    tt_order_bytes(&run, bytes.data, bytes.len);
    cr_assert_eq(run.rc, TB_BROKEN);
    cr_assert_eq(run.generations, i == 0 ? 3 : 2);
    cr_assert_eq(run.events[run.count - 1].type, TW_EV_SYNC,
                 "a fault between generations has a Sync before it");
    stop(&run, &bytes);
  }
}

Test(reader, an_empty_trace_is_good_from_1_26_only) {
  struct tt_run run = tt_order_text("Trace Go1.26\n");
  TT_OK(run);
  cr_assert_eq(run.count, 1);
  tt_run_fini(&run);
  run = tt_order_text("Trace Go1.25\n");
  TT_BROKEN(run, "no frequency found");
  cr_assert_eq(run.count, 1);
  tt_run_fini(&run);
}

Test(reader, bytes_that_are_no_trace_are_refused) {
  struct tt_run run = { 0 };

  tt_order_bytes(&run, "", 0);
  TT_BROKEN(run, "not a Go execution trace");
  tt_order_bytes(&run, "hello, world, hello", 19);
  TT_BROKEN(run, "not a Go execution trace");
  tt_order_bytes(&run, "go 1.19 trace\0\0\0", 16);
  cr_assert_eq(run.rc, TB_UNSUPPORTED);
  cr_assert_eq(run.count, 0, "not even a Sync");
  tt_run_fini(&run);
}

Test(reader, generations_must_not_mix) {
  struct tt_run run =
      tt_order_text("Trace Go1.25\nEventBatch gen=1 m=0 time=0\nEventBatch gen=3 m=0 time=0\n");
  TT_BROKEN(run, "out of order");
  tt_run_fini(&run);
  run = tt_order_text("Trace Go1.22\nEventBatch gen=0 m=0 time=0\n");
  TT_BROKEN(run, "generation number 0");
  tt_run_fini(&run);
}

Test(reader, a_batch_that_begins_with_an_end_mark_ends_the_generation_in_1_26) {
  static const unsigned char batch[] = {
    TW_EV_EVENT_BATCH, 1, 0, 0, 2, TW_EV_END_OF_GENERATION, 99
  };
  struct tb_buf bytes;
  struct tt_run run;
  start(&run, &bytes, "Trace Go1.26\n" ONE_GENERATION("1", "0"));

  bytes.len--; /* removes the generation's own end mark */
  tb_buf_add(&bytes, batch, sizeof batch);
  tt_order_bytes(&run, bytes.data, bytes.len);
  TT_OK(run);
  cr_assert_eq(run.generations, 1);
  stop(&run, &bytes);
}

/* Go's reader takes such a table for the end of the trace. This reader must do so, too, or the verdicts would differ. */
Test(reader, a_table_cut_off_just_before_a_number_ends_the_trace_in_peace) {
  static const unsigned char batch[] = {
    TW_EV_EVENT_BATCH, 1, 0, 0, 2, TW_EV_STRINGS, TW_EV_STRING
  };
  struct tb_buf bytes;
  struct tt_run run;
  start(&run, &bytes, "Trace Go1.26\n" ONE_GENERATION("1", "0"));

  tb_buf_add(&bytes, batch, sizeof batch);
  tb_buf_text(&bytes, "not looked at");
  tt_order_bytes(&run, bytes.data, bytes.len);
  TT_OK(run);
  cr_assert_eq(run.generations, 1);
  bytes.len -= strlen("not looked at") + sizeof batch;
  tb_buf_byte(&bytes, TW_EV_EXPERIMENTAL_BATCH);
  tt_order_bytes(&run, bytes.data, bytes.len);
  TT_OK(run);
  stop(&run, &bytes);
}

Test(reader, tables_are_checked) {
  static const char *const bad[][2] = {
    { "Strings\nString id=1 data=\"a\"\nString id=1 data=\"a\"\n", "string id 1 is given twice" },
    { "Strings\nString id=0 data=\"a\"\n", "string id 0 is given twice" },
    { "Stacks\nStack id=1 nframes=0\nStack id=1 nframes=0\n", "stack id 1 is given twice" },
    { "Strings\nStack id=1 nframes=0\n", "expected a string entry, got event type 3" },
    { "Frequency freq=1\nFrequency freq=1\n", "two frequencies" },
  };

  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    char text[300];
    snprintf(text, sizeof text, "Trace Go1.22\nEventBatch gen=1 m=18446744073709551615 time=0\n%s",
             bad[i][0]);
    struct tt_run run = tt_order_text(text);
    TT_BROKEN(run, bad[i][1]);
    tt_run_fini(&run);
  }
}

/* Collects a stack as a sink sees it, as text. */
struct stack_check {
  char text[200];
};

static tb_rc print_stack(void *self, const struct to_generation *gen, const struct to_event *events,
                         size_t n) {
  struct stack_check *check = self;

  for (size_t i = 0; i < n; i++) {
    struct to_stack_iter it;
    struct to_frame frame;
    if (events[i].type != TW_EV_GO_STOP) continue;
    cr_assert(to_generation_stack(gen, events[i].args[1], &it));
    cr_assert_eq(to_stack_length(gen, events[i].args[1]), 2);
    while (to_stack_next(&it, &frame))
      snprintf(check->text + strlen(check->text), sizeof check->text - strlen(check->text),
               "%.*s %.*s:%d;", (int)frame.function.len, frame.function.data, (int)frame.file.len,
               frame.file.data, (int)frame.line);
  }
  return TB_OK;
}

Test(reader, the_first_frame_that_names_a_pc_wins) {
  struct stack_check check = { "" };
  struct to_event_sink sink = { &check, print_stack };
  struct to_reader *reader;
  struct tb_buf bytes;
  struct tt_run run;
  start(&run, &bytes,
        "Trace Go1.22\n"
        "EventBatch gen=1 m=18446744073709551615 time=0\n"
        "Stacks\n"
        "Stack id=1 nframes=1\n pc=100 func=1 file=2 line=3\n"
        "Stack id=2 nframes=2\n pc=100 func=4 file=4 line=9\n pc=200 func=4 file=2 line=5\n"
        "EventBatch gen=1 m=0 time=0\n"
        "ProcStatus dt=1 p=0 pstatus=1\n"
        "GoStatus dt=1 g=1 m=0 gstatus=2\n"
        "GoStop dt=1 reason_string=0 stack=2\n");

  cr_assert_eq(to_reader_new(&run.mem, NULL, 0, sink, &run.diag, &reader), TB_OK);
  cr_assert_eq(to_reader_read(reader, bytes.data, bytes.len), TB_OK);
  cr_assert_str_eq(check.text, "s1 s2:3;s4 s2:5;");
  to_reader_free(reader);
  stop(&run, &bytes);
}

struct empty_check {
  unsigned stops, logs;
};

static tb_rc look_at_empty(void *self, const struct to_generation *gen,
                           const struct to_event *events, size_t n) {
  struct empty_check *check = self;

  for (; n > 0; n--, events++) {
    struct to_string text;
    struct to_stack_iter it;
    struct to_frame frame;
    if (events->type == TW_EV_GO_STOP) {
      cr_assert_eq(events->args[1], 0);
      cr_assert_eq(to_stack_length(gen, 0), 0);
      cr_assert(!to_generation_stack(gen, 0, &it) || !to_stack_next(&it, &frame));
      check->stops++;
    }
    if (events->type == TW_EV_USER_LOG) {
      cr_assert(to_generation_string(gen, events->args[2], &text));
      cr_assert_eq(text.len, 4);
      cr_assert_arr_eq(text.data, "\0\xff\n\0", 4);
      check->logs++;
    }
  }
  return TB_OK;
}

/* A3, A4 */
Test(reader, stack_0_is_empty_and_strings_hold_any_byte) {
  struct empty_check check = { 0 };
  struct to_reader *reader;
  struct tb_buf bytes;
  struct tt_run run;

  start(&run, &bytes,
        "Trace Go1.22\n"
        "EventBatch gen=1 m=18446744073709551615 time=0\n"
        "Strings\nString id=7 data=\"\\x00\\xff\\x0a\\x00\"\n"
        "EventBatch gen=1 m=0 time=0\n"
        "ProcStatus dt=1 p=0 pstatus=1\n"
        "GoStatus dt=1 g=1 m=0 gstatus=2\n"
        "UserLog dt=1 task=0 key_string=0 value_string=7 stack=0\n"
        "GoStop dt=1 reason_string=0 stack=0\n");
  cr_assert_eq(to_reader_new(&run.mem, NULL, 0, (struct to_event_sink){ &check, look_at_empty },
                             &run.diag, &reader),
               TB_OK);
  cr_assert_eq(to_reader_read(reader, bytes.data, bytes.len), TB_OK, "%s", run.diag.text);
  cr_assert(check.stops == 1 && check.logs == 1);
  to_reader_free(reader);
  stop(&run, &bytes);
}

/* Prints a stack with the table of frames made beforehand, and without it. */
static tb_rc print_own_stack(void *self, const struct to_generation *gen,
                             const struct to_event *events, size_t n) {
  struct stack_check *check = self;

  for (size_t i = 0; i < n; i++) {
    struct to_stack_iter it;
    struct to_frame frame = { 0 };
    if (events[i].type != TW_EV_GO_STOP) continue;
    cr_assert(to_generation_stack_own(gen, events[i].args[1], &it));
    while (to_stack_next(&it, &frame))
      snprintf(check->text + strlen(check->text), sizeof check->text - strlen(check->text),
               "%.*s:%d;", (int)frame.function.len, frame.function.data, (int)frame.line);
  }
  return TB_OK;
}

Test(reader, a_stack_in_its_own_words_is_the_same_whatever_tables_there_are) {
  for (unsigned flags = 0; flags <= TO_READER_FRAMES; flags += TO_READER_FRAMES) {
    struct stack_check check = { "" };
    struct to_event_sink sink = { &check, print_own_stack };
    struct to_reader *reader;
    struct tb_buf bytes;
    struct tt_run run;
    start(&run, &bytes,
          "Trace Go1.22\n"
          "EventBatch gen=1 m=18446744073709551615 time=0\n"
          "Stacks\n"
          "Stack id=1 nframes=1\n pc=100 func=1 file=2 line=3\n"
          "Stack id=2 nframes=2\n pc=200 func=4 file=4 line=5\n pc=100 func=7 file=4 line=9\n"
          "EventBatch gen=1 m=0 time=0\n"
          "ProcStatus dt=1 p=0 pstatus=1\n"
          "GoStatus dt=1 g=1 m=0 gstatus=2\n"
          "GoStop dt=1 reason_string=0 stack=2\n");
    /* The second frame names a string that does not exist. */
    unsigned char *at = memmem(bytes.data, bytes.len, "\x64\x07\x04\x09", 4);
    cr_assert_not_null(at);
    at[1] = 99;
    cr_assert_eq(to_reader_new(&run.mem, NULL, flags, sink, &run.diag, &reader), TB_OK);
    cr_assert_eq(to_reader_read(reader, bytes.data, bytes.len), TB_OK);
    cr_assert_str_eq(check.text, "s4:5;:9;");
    to_reader_free(reader);
    stop(&run, &bytes);
  }
}

Test(reader, an_unknown_string_in_a_frame_matters_only_where_a_pc_is_first_named) {
  static const char frames[] = "Trace Go1.22\n"
                               "EventBatch gen=1 m=18446744073709551615 time=0\n"
                               "Stacks\n"
                               "Stack id=1 nframes=1\n pc=100 func=1 file=1 line=3\n"
                               "Stack id=2 nframes=1\n pc=%s func=1 file=1 line=9\n";
  /* The test support defines every string that is named, so the id is changed in the bytes: 1 becomes 99. */
  for (int same_pc = 0; same_pc < 2; same_pc++) {
    char text[300];
    struct tb_buf bytes;
    snprintf(text, sizeof text, frames, same_pc ? "100" : "101");
    struct tt_run run;
    start(&run, &bytes, text);
    unsigned char wanted[] = { same_pc ? 100 : 101, 1, 1, 9 };
    unsigned char *at = memmem(bytes.data, bytes.len, wanted, sizeof wanted);
    cr_assert_not_null(at);
    at[1] = 99;
    tt_order_bytes(&run, bytes.data, bytes.len);
    if (same_pc)
      TT_OK(run);
    else
      TT_BROKEN(run, "stack 2 names string 99");
    stop(&run, &bytes);
  }
}

Test(reader, a_generation_above_its_limit_is_refused) {
  struct tb_buf bytes;
  struct tt_run run;
  start(&run, &bytes, "Trace Go1.26\n" THREE_GENERATIONS);

  run.limits.generation_bytes_max = 40;
  tt_order_bytes(&run, bytes.data, bytes.len);
  cr_assert_eq(run.rc, TB_BUDGET);
  cr_assert_not_null(strstr(run.diag.text, "larger than 40 bytes"));
  stop(&run, &bytes);
}

/* An allocator that refuses the n-th request. */
struct scarce {
  size_t left;
};

static void *scarce_resize(void *self, void *block, size_t old_bytes, size_t new_bytes) {
  struct scarce *scarce = self;

  if (new_bytes > old_bytes && scarce->left-- == 0) {
    scarce->left = 0;
    return NULL;
  }
  return tb_mem_libc(NULL, block, old_bytes, new_bytes);
}

/* I10, I19 */
Test(reader, each_refused_allocation_is_a_clean_result) {
  static const char *const texts[] = { "Trace Go1.22\n" THREE_GENERATIONS,
                                       "Trace Go1.26\n" THREE_GENERATIONS };
  unsigned failures = 0;

  for (size_t i = 0; i < 2; i++) {
    struct tb_buf bytes;
    struct tt_run good;
    start(&good, &bytes, texts[i]);
    for (size_t n = 0;; n++) {
      struct scarce scarce = { n };
      struct tt_run run = { .feed_bytes = 50 };
      tb_mem_init(&run.mem, scarce_resize, &scarce, SIZE_MAX);
      tt_order_bytes(&run, bytes.data, bytes.len);
      cr_assert_eq(run.mem.bytes, 0, "request %zu: %zu bytes left", n, run.mem.bytes);
      tt_run_fini(&run);
      if (run.rc == TB_OK) break;
      cr_assert_eq(run.rc, TB_NOMEM, "request %zu: %s", n, tb_rc_name(run.rc));
      failures++;
    }
    stop(&good, &bytes);
  }
  cr_assert_gt(failures, 30);
}

static tb_rc refuse(void *self, const struct to_generation *gen, const struct to_event *events,
                    size_t n) {
  (void)self, (void)gen, (void)events, (void)n;
  return TB_IO;
}

Test(reader, a_sinks_answer_stops_the_reader_for_good) {
  struct tb_buf bytes;
  struct tt_run run;
  start(&run, &bytes, "Trace Go1.26\n" THREE_GENERATIONS);
  struct to_event_sink sink = { NULL, refuse };
  struct to_reader *reader;
  size_t used;

  cr_assert_eq(to_reader_new(&run.mem, NULL, 0, sink, &run.diag, &reader), TB_OK);
  cr_assert_eq(to_reader_feed(reader, bytes.data, bytes.len, &used), TB_AGAIN);
  cr_assert_eq(to_reader_run(reader, 1000), TB_IO);
  cr_assert_eq(to_reader_run(reader, 1000), TB_IO);
  cr_assert_eq(to_reader_feed(reader, bytes.data + used, bytes.len - used, &used), TB_IO);
  cr_assert_eq(to_reader_finish(reader), TB_IO);
  to_reader_free(reader);
  stop(&run, &bytes);
}

static tb_rc count_events(void *self, const struct to_generation *gen,
                          const struct to_event *events, size_t n) {
  (void)gen, (void)events;
  *(size_t *)self += n;
  return TB_OK;
}

static tb_rc read_segment(struct to_reader *reader, struct tb_mem *mem, const char *text) {
  struct tb_buf bytes;

  tb_buf_init(&bytes, mem);
  tt_trace_bytes(text, mem, &bytes);
  tb_rc rc = to_reader_begin(reader);
  if (rc == TB_OK) rc = to_reader_read(reader, bytes.data, bytes.len);
  tb_buf_fini(&bytes);
  return rc;
}

Test(reader, segments_of_one_generation_go_on_with_one_state) {
  static const char *const segments[][3] = {
    { "Trace Go1.25\n" ONE_GENERATION("1", "0"), "Trace Go1.25\n" ONE_GENERATION("2", "50"),
      "Trace Go1.25\n" ONE_GENERATION("4", "50") },
    { "Trace Go1.26\n" ONE_GENERATION("1", "0"), "Trace Go1.26\n" ONE_GENERATION("2", "50"),
      "Trace Go1.26\n" ONE_GENERATION("4", "50") },
  };

  for (size_t i = 0; i < 2; i++) {
    size_t events = 0;
    struct to_event_sink sink = { &events, count_events };
    struct to_reader *reader;
    struct tb_diag diag;
    struct tb_mem mem;

    tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
    tb_diag_clear(&diag);
    cr_assert_eq(to_reader_new(&mem, NULL, 0, sink, &diag, &reader), TB_OK);
    cr_assert_eq(read_segment(reader, &mem, segments[i][0]), TB_OK, "%s", diag.text);
    cr_assert_eq(read_segment(reader, &mem, segments[i][1]), TB_OK, "%s", diag.text);
    cr_assert_eq(events, 12, "no last Sync: the stream goes on");
    /* Goroutine 104 and task 11 are both new in generation 4. After a hole both begin again. */
    to_reader_epoch(reader);
    cr_assert_eq(read_segment(reader, &mem, segments[i][2]), TB_OK, "%s", diag.text);
    /* A fault ends only its own segment. */
    cr_assert_eq(read_segment(reader, &mem, segments[i][2]), TB_BROKEN, "task 14 begins twice");
    cr_assert_eq(diag.gen, 4);
    cr_assert_eq(read_segment(reader, &mem, segments[i][2]), TB_OK, "%s", diag.text);
    cr_assert_eq(to_reader_generations(reader), 4);
    to_reader_free(reader);
    cr_assert_eq(mem.bytes, 0);
  }
}

Test(reader, segments_of_another_version_are_refused) {
  size_t events = 0;
  struct to_event_sink sink = { &events, count_events };
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  cr_assert_eq(to_reader_new(&mem, NULL, 0, sink, &diag, &reader), TB_OK);
  cr_assert_eq(read_segment(reader, &mem, "Trace Go1.25\n" ONE_GENERATION("1", "0")), TB_OK);
  cr_assert_eq(read_segment(reader, &mem, "Trace Go1.26\n" ONE_GENERATION("2", "50")),
               TB_UNSUPPORTED);
  to_reader_free(reader);
}

static tb_rc keep_clock(void *self, const struct to_generation *gen, const struct to_event *events,
                        size_t n) {
  (void)events, (void)n;
  if (gen == NULL) return TB_OK;
  cr_assert_eq(to_generation_version(gen), 25);
  cr_assert(to_generation_clock(gen, self));
  return TB_OK;
}

/* A trace may have any number there. Whole seconds in it are added to the seconds. */
Test(reader, nanoseconds_of_a_wall_clock_are_below_a_second_whatever_the_trace_says) {
  static const struct {
    const char *nsec;
    int64_t wall_s, wall_ns;
  } clocks[] = { { "7", 100, 7 },
                 { "2000000007", 102, 7 },
                 { "18446744073709551615" /* -1 */, 99, 999999999 },
                 { "18446744071709551615" /* -2 s and 1 ns */, 97, 999999999 } };

  for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
    struct to_clock clock = { 0 };
    struct to_reader *reader;
    struct tb_buf bytes;
    struct tt_run run;
    char text[400];

    snprintf(text, sizeof text,
             "Trace Go1.25\nEventBatch gen=1 m=18446744073709551615 time=5\nSync\n"
             "Frequency freq=1000000000\nClockSnapshot dt=1 mono=20 sec=100 nsec=%s\n"
             "EventBatch gen=1 m=0 time=0\nProcStatus dt=1 p=0 pstatus=1\n",
             clocks[i].nsec);
    start(&run, &bytes, text);
    cr_assert_eq(to_reader_new(&run.mem, NULL, 0, (struct to_event_sink){ &clock, keep_clock },
                               &run.diag, &reader),
                 TB_OK);
    cr_assert_eq(to_reader_read(reader, bytes.data, bytes.len), TB_OK, "%s", run.diag.text);
    cr_assert_eq(to_reader_version(reader), 25);
    cr_assert_eq(clock.trace_ns, 6);
    cr_assert_eq(clock.mono_ns, 20);
    cr_assert(clock.wall_s == clocks[i].wall_s && clock.wall_ns == clocks[i].wall_ns, "%s",
              clocks[i].nsec);
    to_reader_free(reader);
    stop(&run, &bytes);
  }
}

/* Many threads, so that threads left in the frontier would not fit beside those of the next file. */
Test(reader, a_file_begun_in_the_middle_of_a_generation_is_an_epoch) {
  enum { THREADS = 40, EVENTS = 20 };
  struct to_reader *reader;
  struct tb_buf text, bytes;
  struct tb_diag diag;
  struct tb_mem mem;
  size_t events = 0, used;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_diag_clear(&diag);
  tb_buf_init(&text, &mem);
  tb_buf_init(&bytes, &mem);
  tb_buf_printf(&text, "Trace Go1.26\n");
  for (int m = 0; m < THREADS; m++) {
    tb_buf_printf(&text, "EventBatch gen=1 m=%d time=0\n", m);
    for (int i = 0; i < EVENTS; i++)
      tb_buf_printf(&text, "ProcStatus dt=1 p=%d pstatus=2\n", m * EVENTS + i);
  }
  tb_buf_byte(&text, '\0');
  tt_trace_bytes((const char *)text.data, &mem, &bytes);
  struct to_event_sink sink = { &events, count_events };
  cr_assert_eq(to_reader_new(&mem, NULL, 0, sink, &diag, &reader), TB_OK);
  for (int round = 0; round < 3; round++) {
    cr_assert_eq(to_reader_begin(reader), TB_OK);
    cr_assert_eq(to_reader_feed(reader, bytes.data, bytes.len, &used), TB_AGAIN);
    cr_assert_eq(to_reader_run(reader, 1), TB_AGAIN);
  }
  events = 0;
  cr_assert_eq(to_reader_begin(reader), TB_OK);
  cr_assert_eq(to_reader_read(reader, bytes.data, bytes.len), TB_OK, "%s", diag.text);
  cr_assert_eq(events, THREADS * EVENTS + 1);
  to_reader_free(reader);
  tb_buf_fini(&text);
  tb_buf_fini(&bytes);
  cr_assert_eq(mem.bytes, 0);
}

/* Two streams that take turns, also in the middle of a generation and after a fault; text: of a whole generation. */
Test(reader, readers_that_share_a_pool_charge_it_to_the_one_that_reads) {
  static const char *const text = "Trace Go1.25\n" ONE_GENERATION("1", "0");
  struct to_generation_pool pool;
  struct to_reader *reader[2];
  struct tb_diag diag[2];
  struct tb_mem mem[2], of_bytes;
  struct tb_buf bytes;
  size_t events[2] = { 0 }, used, resting;

  to_generation_pool_init(&pool, tb_mem_libc, NULL, SIZE_MAX);
  tb_mem_init(&of_bytes, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&bytes, &of_bytes);
  tt_trace_bytes(text, &of_bytes, &bytes);
  for (int i = 0; i < 2; i++) {
    struct to_event_sink sink = { &events[i], count_events };
    tb_mem_init(&mem[i], tb_mem_libc, NULL, SIZE_MAX);
    tb_diag_clear(&diag[i]);
    cr_assert_eq(to_reader_new(&mem[i], NULL, 0, sink, &diag[i], &reader[i]), TB_OK);
    to_reader_share(reader[i], &pool);
  }
  cr_assert_eq(to_reader_begin(reader[0]), TB_OK);
  cr_assert_eq(to_reader_read(reader[0], bytes.data, bytes.len), TB_OK);
  to_reader_rest(reader[0]);
  resting = mem[0].bytes;
  size_t pooled = pool.mem.bytes, before = mem[1].bytes;
  cr_assert_gt(pooled, 0);

  cr_assert_eq(to_reader_begin(reader[1]), TB_OK);
  cr_assert_eq(pool.mem.bytes, 0);
  cr_assert_eq(mem[1].bytes, before + pooled);
  cr_assert_eq(to_reader_feed(reader[1], bytes.data, bytes.len / 2, &used), TB_OK);
  to_reader_epoch(reader[0]);
  cr_assert_eq(to_reader_begin(reader[0]), TB_OK); /* the other one has the pool's */
  cr_assert_eq(to_reader_read(reader[0], bytes.data, bytes.len), TB_OK);
  to_reader_rest(reader[0]);
  cr_assert_eq(mem[0].bytes, resting);

  to_reader_rest(reader[1]); /* the file failed in the middle */
  cr_assert_eq(pool.n, 2);
  to_reader_epoch(reader[1]);
  cr_assert_eq(to_reader_begin(reader[1]), TB_OK);
  cr_assert_eq(to_reader_read(reader[1], bytes.data, bytes.len), TB_OK, "%s", diag[1].text);
  cr_assert_eq(2 * events[1], events[0]);

  to_reader_free(reader[0]);
  to_reader_free(reader[1]); /* without rest */
  cr_assert_eq(mem[0].bytes, 0);
  cr_assert_eq(mem[1].bytes, 0);
  to_generation_pool_fini(&pool);
  cr_assert_eq(pool.mem.bytes, 0);
  tb_buf_fini(&bytes);
}

/* A stream with a small limit must not take what a large one left, and the pool keeps no more than it may. */
Test(reader, a_pool_keeps_to_the_limits_of_both) {
  static const char *const text = "Trace Go1.25\n" ONE_GENERATION("1", "0");
  struct to_generation_pool pool;
  struct to_reader *reader;
  struct tb_diag diag;
  struct tb_mem mem;
  size_t events = 0;

  for (int small = 0; small < 2; small++) {
    to_generation_pool_init(&pool, tb_mem_libc, NULL, small == 0 ? SIZE_MAX : 1024);
    tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
    tb_diag_clear(&diag);
    struct to_event_sink sink = { &events, count_events };
    cr_assert_eq(to_reader_new(&mem, NULL, 0, sink, &diag, &reader), TB_OK);
    to_reader_share(reader, &pool);
    cr_assert_eq(read_segment(reader, &mem, text), TB_OK);
    to_reader_rest(reader);
    cr_assert_eq(pool.n, small == 0);
    mem.bytes_max = mem.bytes + pool.mem.bytes / 2;
    size_t before = mem.bytes;
    cr_assert_eq(to_reader_begin(reader), TB_OK);
    cr_assert_eq(mem.bytes, before);
    cr_assert_eq(pool.n, small == 0);
    to_reader_free(reader);
    to_generation_pool_fini(&pool);
    cr_assert_eq(mem.bytes, 0);
  }
}
