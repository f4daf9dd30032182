/* SPDX-License-Identifier: Apache-2.0 */
/* F2, F3, F6, F8, F9, F11, F12, F17: events of a program's own experiments are ordered by their specs in the trace. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "online/event/view.h"
#include "online/order/handler.h"
#include "tests/support/order_text.h"
#include "wire/experiments.h"
#include "wire/varint.h"
#include "wire/write.h"

static const char specs[] = TW_EXPERIMENTS_MAGIC "experiment Queue id=2\n"
                                                 "event Push id=137 ctx=MPG q_value q_seq\n"
                                                 "event Pop id=138 ctx=any q_value q_seq\n"
                                                 "event Note id=139 ctx=M text_string at_stack\n"
                                                 "event Tick id=140 ctx=MP all_seq\n";

struct trace {
  struct tb_mem mem;
  struct tb_buf bytes;
  struct tw_write w;
  unsigned char room[TW_WRITE_ROOM];
  uint64_t gen;
};

static void begin_batch(struct trace *t, int64_t thread, uint64_t time, uint8_t experiment) {
  tw_write_open(&t->w, t->room, sizeof t->room, 26,
                &(struct tw_batch){
                    .gen = t->gen, .thread = thread, .time = time, .experiment = experiment });
}

static void end_batch(struct trace *t) {
  tb_buf_add(&t->bytes, t->room, tw_write_close(&t->w));
}

static void say_specs(struct trace *t, const char *text) {
  begin_batch(t, -1, 1, TW_EXPERIMENT_SPECS);
  cr_assert_eq(tw_write_bytes(&t->w, text, strlen(text)), TB_OK);
  end_batch(t);
}

/* The next generation's clocks, one string "hello" and an empty stack. */
static void begin_generation(struct trace *t) {
  t->gen++;
  begin_batch(t, -1, 1, 0);
  struct tw_clocks clocks = { .frequency = 1000000000, .time = 1 };
  cr_assert_eq(tw_write_sync(&t->w, &clocks), TB_OK);
  end_batch(t);
  begin_batch(t, -1, 1, 0);
  cr_assert_eq(tw_write_string(&t->w, 7, "hello", 5), TB_OK);
  end_batch(t);
}

static struct trace *begin_trace(void) {
  struct trace *t = calloc(1, sizeof *t);
  unsigned char header[TW_HEADER_BYTES];

  tb_mem_init(&t->mem, tb_mem_libc, NULL, 64 << 20);
  tb_buf_init(&t->bytes, &t->mem);
  tw_header_write(header, 26);
  tb_buf_add(&t->bytes, header, sizeof header);
  begin_generation(t);
  return t;
}

static void put(struct trace *t, uint8_t type, unsigned n, uint64_t a, uint64_t b) {
  *t->w.pos++ = type;
  t->w.pos += tw_varint_write(t->w.pos, 1);
  if (n > 0) t->w.pos += tw_varint_write(t->w.pos, a);
  if (n > 1) t->w.pos += tw_varint_write(t->w.pos, b);
}

/* From here on thread m runs goroutine m on proc m. */
static void begin_thread(struct trace *t, int64_t m, uint64_t time) {
  begin_batch(t, m, time, 0);
  put(t, TW_EV_PROC_STATUS, 2, (uint64_t)m, TW_PROC_RUNNING);
  put(t, TW_EV_GO_STATUS, 2, (uint64_t)m, (uint64_t)m);
  t->w.pos += tw_varint_write(t->w.pos, TW_GO_RUNNING);
}

static struct tt_run order(struct trace *t, uint64_t exact_tries) {
  struct tt_run run = { .limits.exact_tries = exact_tries };

  tt_order_bytes(&run, t->bytes.data, t->bytes.len);
  return run;
}

static void end_trace(struct trace *t, struct tt_run *run) {
  tt_run_fini(run);
  tb_buf_fini(&t->bytes);
  free(t);
}

static void end_generation(struct trace *t) {
  tb_buf_byte(&t->bytes, TW_EV_END_OF_GENERATION);
}

static size_t own_events(const struct tt_run *run, struct to_event out[16]) {
  size_t n = 0;

  for (size_t i = 0; i < run->count; i++)
    if (run->events[i].type >= TW_OWN_EVENT_FIRST && n < 16) out[n++] = run->events[i];
  return n;
}

/* Thread 2's clock is behind, so in the order of time its pops would come first. */
static void queue_of_two(struct trace *t) {
  say_specs(t, specs);
  begin_thread(t, 1, 1000);
  put(t, 137, 2, 5, 1);
  put(t, 137, 2, 6, 1);
  put(t, 137, 2, 5, 3);
  end_batch(t);
  begin_batch(t, -1, 10, 0);
  put(t, 138, 2, 5, 2);
  put(t, 138, 2, 5, 4);
  end_batch(t);
  end_generation(t);
}

static void expect_queue(struct trace *t, uint64_t exact_tries) {
  static const uint64_t expected[][3] = {
    { 137, 5, 1 }, { 138, 5, 2 }, { 137, 6, 1 }, { 137, 5, 3 }, { 138, 5, 4 }
  };
  struct tt_run run = order(t, exact_tries);
  struct to_event ev[16];

  TT_OK(run);
  cr_assert_eq(own_events(&run, ev), 5);
  for (int i = 0; i < 5; i++) {
    cr_expect_eq(ev[i].type, expected[i][0], "event %d", i);
    cr_expect_eq(ev[i].args[0], expected[i][1], "event %d", i);
    cr_expect_eq(ev[i].args[1], expected[i][2], "event %d", i);
    cr_expect_eq(to_event_kind(&ev[i]), TO_KIND_EXPERIMENTAL);
    if (i > 0) cr_expect_gt(ev[i].time, ev[i - 1].time);
  }
  cr_expect_eq(ev[0].g, 1);
  cr_expect_eq(ev[1].m, TO_NONE);
  end_trace(t, &run);
}

Test(own_events, follow_their_sequence_and_not_the_clock) {
  struct trace *t = begin_trace();

  queue_of_two(t);
  expect_queue(t, 0);
}

Test(own_events, are_parked_until_their_number_comes) {
  struct trace *t = begin_trace();

  queue_of_two(t);
  expect_queue(t, 1);
}

Test(own_events, begin_to_count_anew_in_each_generation) {
  struct trace *t = begin_trace();

  queue_of_two(t);
  begin_generation(t);
  queue_of_two(t);
  struct tt_run run = order(t, 0);
  struct to_event ev[16];
  TT_OK(run);
  cr_assert_eq(own_events(&run, ev), 10);
  end_trace(t, &run);
}

static void refused(void (*fill)(struct trace *), const char *words) {
  struct trace *t = begin_trace();

  fill(t);
  end_generation(t);
  struct tt_run run = order(t, 0);
  TT_BROKEN(run, words);
  end_trace(t, &run);
}

static void unreported(struct trace *t) {
  begin_thread(t, 1, 1000);
  put(t, 137, 2, 5, 1);
  end_batch(t);
}

static void reported_before(struct trace *t) {
  queue_of_two(t);
  begin_generation(t);
  unreported(t);
}

static void no_goroutine(struct trace *t) {
  say_specs(t, specs);
  begin_batch(t, 1, 1000, 0);
  put(t, 137, 2, 5, 1);
  end_batch(t);
}

static void no_thread(struct trace *t) {
  say_specs(t, specs);
  begin_batch(t, -1, 1000, 0);
  put(t, 139, 2, 0, 0);
  end_batch(t);
}

static void no_string(struct trace *t) {
  say_specs(t, specs);
  begin_batch(t, 1, 1000, 0);
  put(t, 139, 2, 8, 0);
  end_batch(t);
}

static void no_stack(struct trace *t) {
  say_specs(t, specs);
  begin_batch(t, 1, 1000, 0);
  put(t, 139, 2, 7, 7);
  end_batch(t);
}

static void a_number_again(struct trace *t) {
  say_specs(t, specs);
  begin_thread(t, 1, 1000);
  put(t, 137, 2, 5, 1);
  put(t, 137, 2, 5, 1);
  end_batch(t);
}

static void a_number_left_out(struct trace *t) {
  say_specs(t, specs);
  begin_thread(t, 1, 1000);
  put(t, 140, 1, 2, 0);
  end_batch(t);
}

static void two_stories(struct trace *t) {
  say_specs(t, specs);
  say_specs(t, TW_EXPERIMENTS_MAGIC "experiment Other id=2\n");
}

Test(own_events, that_do_not_fit_are_broken) {
  refused(unreported, "not an event with a time (event type 137)");
  refused(reported_before, "not an event with a time (event type 137)");
  refused(no_goroutine, "Push needs a proc");
  refused(no_thread, "Note needs a thread");
  refused(no_string, "Note names string 8, which the generation does not have");
  refused(no_stack, "Note names stack 7, which the generation does not have");
  refused(a_number_again, "Push is number 1 of q 5, which is at 1");
  refused(a_number_left_out, "no thread can go on");
  refused(two_stories, "line 1: experiment Other was already declared with another name or number");
}

/* Batches with the same experiment number but other contents belong to another program. */
Test(own_events, are_told_by_who_says_so_only) {
  struct trace *t = begin_trace();

  say_specs(t, "experiment Queue\nanything");
  end_generation(t);
  struct tt_run run = order(t, 0);
  TT_OK(run);
  end_trace(t, &run);
}

struct seen {
  int notes;
};

static tb_rc look(void *self, const struct to_generation *gen, const struct to_event *ev,
                  size_t n) {
  struct seen *seen = self;

  for (; n > 0; ev++, n--) {
    enum tw_arg_type types[4];
    struct to_string text;
    if (ev->type != 139) continue;
    seen->notes++;
    cr_expect_str_eq(to_generation_spec(gen, 139)->name, "Note");
    cr_expect_str_eq(to_generation_experiment(gen, 139), "Queue");
    cr_expect_eq(to_generation_args(gen, 139, types), 2);
    cr_expect_eq(types[0], TW_ARG_STRING);
    cr_expect_eq(types[1], TW_ARG_STACK);
    cr_expect(to_generation_string(gen, ev->args[0], &text));
    cr_expect_arr_eq(text.data, "hello", 5);
    cr_expect_str_eq(to_generation_spec(gen, TW_EV_SPAN)->name, "Span");
    cr_expect_str_eq(to_generation_experiment(gen, TW_EV_SPAN), "AllocFree");
    cr_expect_null(to_generation_experiment(gen, TW_EV_GO_START));
  }
  return TB_OK;
}

Test(own_events, say_what_they_are) {
  struct trace *t = begin_trace();
  struct seen seen = { 0 };
  struct to_event_sink sink = { &seen, look };
  struct to_reader *reader;
  struct tb_diag diag;

  say_specs(t, specs);
  begin_batch(t, 3, 1000, 0);
  put(t, 139, 2, 7, 0);
  end_batch(t);
  end_generation(t);
  tb_diag_clear(&diag);
  cr_assert_eq(to_reader_new(&t->mem, &(struct to_limits){ 0 }, 0, sink, &diag, &reader), TB_OK);
  cr_assert_eq(to_reader_read(reader, t->bytes.data, t->bytes.len), TB_OK, "%s", diag.text);
  cr_assert_eq(seen.notes, 1);
  to_reader_free(reader);
  tb_buf_fini(&t->bytes);
  cr_assert_eq(t->mem.bytes, 0);
  free(t);
}

/* --- handlers ---------------------------------------------------------------------------------- */

enum { NOTE = 139, PUSH = 137, POP = 138 };

/* State of the tests' handler: a Note must be between a Push and the Pop that follows. */
struct queue {
  unsigned pushed, asked;
  const char *order;
  char said[32];
};

static tb_rc count_pushes(void *self, const struct to_handled *at) {
  struct queue *queue = self;

  cr_expect_eq(at->ev->args[0], 5);
  cr_expect_eq(to_handled_goroutine(at, at->ev->g), TO_GO_RUNNING);
  cr_expect_eq(to_handled_proc(at, at->ev->p), TO_PROC_RUNNING);
  cr_expect_eq(to_handled_goroutine(at, 99), TO_GO_UNDETERMINED);
  queue->pushed++;
  return TB_OK;
}

static tb_rc after_a_push(void *self, const struct to_handled *at) {
  struct queue *queue = self;

  queue->asked++;
  cr_expect_eq(at->ev->type, NOTE);
  return queue->pushed > 0 ? TB_OK : TB_AGAIN;
}

static tb_rc never(void *self, const struct to_handled *at) {
  (void)self;
  return to_handled_refuse(at, "this queue takes no notes");
}

struct handled {
  struct to_event own[16];
  size_t n;
};

static tb_rc keep_own(void *self, const struct to_generation *gen, const struct to_event *ev,
                      size_t n) {
  struct handled *got = self;

  (void)gen;
  for (; n > 0; ev++, n--)
    if (ev->type >= TW_OWN_EVENT_FIRST && got->n < 16) got->own[got->n++] = *ev;
  return TB_OK;
}

/* Thread 3 emits a Note at 10, by its clock long before thread 1 pushes at 1000. */
static void note_before_push(struct trace *t) {
  say_specs(t, specs);
  begin_batch(t, 3, 10, 0);
  put(t, NOTE, 2, 7, 0);
  end_batch(t);
  begin_thread(t, 1, 1000);
  put(t, PUSH, 2, 5, 1);
  end_batch(t);
  end_generation(t);
}

static tb_rc read_handled(struct trace *t, const struct to_handler *handlers, size_t n,
                          uint64_t exact_tries, struct handled *got, struct tb_diag *diag) {
  struct to_event_sink sink = { got, keep_own };
  struct to_reader *reader;

  tb_diag_clear(diag);
  cr_assert_eq(to_reader_new(&t->mem, &(struct to_limits){ .exact_tries = exact_tries }, 0, sink,
                             diag, &reader),
               TB_OK);
  for (size_t i = 0; i < n; i++) cr_assert_eq(to_reader_handle(reader, &handlers[i]), TB_OK);
  tb_rc rc = to_reader_read(reader, t->bytes.data, t->bytes.len);
  to_reader_free(reader);
  return rc;
}

static void trace_fini(struct trace *t) {
  tb_buf_fini(&t->bytes);
  cr_assert_eq(t->mem.bytes, 0);
  free(t);
}

static void note_waits(uint64_t exact_tries) {
  struct queue queue = { 0 };
  const struct to_handler handlers[] = { { "Queue", "Push", &queue, count_pushes },
                                         { "Queue", "Note", &queue, after_a_push } };
  struct trace *t = begin_trace();
  struct handled got = { 0 };
  struct tb_diag diag;

  note_before_push(t);
  cr_assert_eq(read_handled(t, NULL, 0, exact_tries, &got, &diag), TB_OK, "%s", diag.text);
  cr_assert(got.n == 2 && got.own[0].type == NOTE && got.own[1].type == PUSH, "as the clock says");
  got.n = 0;
  cr_assert_eq(read_handled(t, handlers, 2, exact_tries, &got, &diag), TB_OK, "%s", diag.text);
  cr_assert(got.n == 2 && got.own[0].type == PUSH && got.own[1].type == NOTE);
  cr_assert_gt(got.own[1].time, got.own[0].time);
  cr_assert_gt(queue.asked, 1);
  trace_fini(t);
}

Test(own_events, wait_as_their_handler_says) {
  note_waits(0);
}

Test(own_events, wait_parked_as_their_handler_says) {
  note_waits(1);
}

static void note_is_refused(const struct to_handler *handler, uint64_t exact_tries,
                            const char *words) {
  struct trace *t = begin_trace();
  struct handled got = { 0 };
  struct tb_diag diag;

  note_before_push(t);
  cr_assert_eq(read_handled(t, handler, 1, exact_tries, &got, &diag), TB_BROKEN);
  cr_expect_not_null(strstr(diag.text, words), "%s", diag.text);
  cr_expect(diag.gen == 1 && diag.thread == 3, "%lu %ld", (unsigned long)diag.gen,
            (long)diag.thread);
  cr_expect_neq(diag.offset, TB_NO_OFFSET);
  for (size_t i = 0; i < got.n; i++) cr_expect_neq(got.own[i].type, NOTE);
  trace_fini(t);
}

Test(own_events, that_a_handler_refuses_are_broken_with_their_place) {
  struct queue queue = { 0 };

  note_is_refused(&(struct to_handler){ "Queue", "Note", NULL, never }, 0,
                  "Note: this queue takes no notes");
  note_is_refused(&(struct to_handler){ "Queue", "Note", &queue, after_a_push }, 0,
                  "no thread can go on");
  note_is_refused(&(struct to_handler){ "Queue", "Note", &queue, after_a_push }, 1,
                  "no thread can go on");
}

static tb_rc ends(void *self, const struct to_handled *at) {
  (void)self, (void)at;
  return TB_END; /* for the orderer this is the end of a thread; a handler may not return it */
}

static tb_rc runs_short(void *self, const struct to_handled *at) {
  (void)self, (void)at;
  return TB_NOMEM;
}

Test(own_events, end_with_what_their_handler_answers) {
  struct trace *t = begin_trace();
  struct handled got = { 0 };
  struct tb_diag diag;

  note_is_refused(&(struct to_handler){ "Queue", NULL, NULL, ends }, 0,
                  "Note does not fit its handler's rule");
  note_before_push(t);
  cr_assert_eq(
      read_handled(t, &(struct to_handler){ "Queue", "Push", NULL, runs_short }, 1, 0, &got, &diag),
      TB_NOMEM);
  trace_fini(t);
}

static tb_rc note_name(void *self, const struct to_handled *at) {
  struct queue *queue = self;

  strncat(queue->said, to_generation_spec(at->gen, at->ev->type)->name, 8);
  strncat(queue->said, queue->order, 2);
  return TB_OK;
}

/* The spec decides before the handler, and each number is used once. An event without its own handler has its experiment's
 * handler. */
Test(own_events, have_their_own_handler_or_their_experiments) {
  struct queue queue = { .order = "! " };
  const struct to_handler handlers[] = { { "Queue", NULL, &queue, note_name },
                                         { "Other", NULL, NULL, never },
                                         { "Queue", "Push", &(struct queue){ 0 }, count_pushes } };
  struct trace *t = begin_trace();
  struct handled got = { 0 };
  struct tb_diag diag;

  say_specs(t, specs);
  begin_thread(t, 1, 1000);
  put(t, PUSH, 2, 5, 1);
  end_batch(t);
  begin_batch(t, -1, 10, 0);
  put(t, POP, 2, 5, 2);
  end_batch(t);
  end_generation(t);
  cr_assert_eq(read_handled(t, handlers, 3, 0, &got, &diag), TB_OK, "%s", diag.text);
  cr_assert(got.n == 2 && got.own[0].type == PUSH && got.own[1].type == POP);
  cr_assert_str_eq(queue.said, "Pop! ");
  trace_fini(t);
}

Test(own_events, have_32_handlers_at_most) {
  const struct to_handler handler = { "Queue", NULL, NULL, never };
  struct to_reader *reader;
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(
      to_reader_new(&mem, NULL, 0, (struct to_event_sink){ NULL, keep_own }, NULL, &reader), TB_OK);
  for (int i = 0; i < 32; i++) cr_assert_eq(to_reader_handle(reader, &handler), TB_OK);
  cr_assert_eq(to_reader_handle(reader, &handler), TB_BUDGET);
  to_reader_free(reader);
}
