/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of events made by hand: what each span has beside its length. tests/conformance/spans.sh shows with real traces that
 * the lengths are the same as Go's, to the nanosecond. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/spans/spans.h"
#include "online/spans/state.h"
#include "support/caller.h"
#include "tests/unit/online/analysis/fake_generation.h"
#include "wire/spec.h"

enum { SPANS_MAX = 256, TEXT_MAX = 40 };

static struct to_generation gen = {
  .number = 1,
  .string = { "", "chan receive", "GC mark termination", "checkout", "said" },
  .stack = { [1] = { { 0x10, 1, "main.wait", "w.go" } },
             [2] = { { 0x20, 2, "main.wake", "w.go" } },
             [3] = { { 0x30, 3, "main.begin", "b.go" } },
             [4] = { { 0x40, 4, "main.spawn", "b.go" } } },
};

static struct kept {
  struct to_span span;
  char name[TEXT_MAX], text[TEXT_MAX];
} kept[SPANS_MAX];
static size_t count;
static struct tb_mem mem;
static struct to_spans *spans;

static void copy_text(char out[TEXT_MAX], struct to_string text) {
  cr_assert_lt(text.len, TEXT_MAX);
  if (text.len > 0) memcpy(out, text.data, text.len);
}

static void keep_one(const struct to_span *span) {
  if (count == SPANS_MAX) count = 0; /* a test with so many does not read them */
  struct kept *k = &kept[count++];

  *k = (struct kept){ .span = *span };
  if (span->more == NULL) return;
  copy_text(k->name, span->more->name);
  copy_text(k->text, span->more->text);
}

static tb_rc keep(void *self, const struct to_generation *of, const struct to_span *all, size_t n) {
  (void)self;
  (void)of;
  for (size_t i = 0; i < n; i++) keep_one(&all[i]);
  return TB_OK;
}

static tb_rc keep_open(void *self, const struct to_span *span) {
  (void)self;
  cr_assert(span->open);
  cr_assert_not(span->until_known);
  keep_one(span);
  return TB_OK;
}

static void begin(uint32_t wanted) {
  count = 0;
  tb_mem_init(&mem, tb_mem_libc, NULL, 4 << 20);
  cr_assert_eq(to_spans_new(&mem, &(struct to_spans_config){ .wanted = wanted },
                            (struct to_span_sink){ NULL, keep }, &spans),
               TB_OK);
}

static void end(void) {
  to_spans_free(spans);
  cr_assert_eq(mem.bytes, 0);
}

#define FEED(...)                                                                                  \
  cr_assert_eq(to_spans_events(spans, &gen, &(struct to_event){ __VA_ARGS__ }, 1), TB_OK)

/* Goroutine g has slot g. It runs on P 0 and thread 100, unless an event says otherwise. */
#define ON .m = 100, .p = 0
#define NEW(g_, at)                                                                                \
  FEED(ON, .g = TO_NONE, .type = TW_EV_GO_CREATE, .time = at, .slot = g_, .args = { g_, 3, 4 })
#define START(g_, at)                                                                              \
  FEED(ON, .g = TO_NONE, .type = TW_EV_GO_START, .time = at, .slot = g_, .args = { g_, 1 })
#define WAIT(g_, at) FEED(ON, .g = g_, .type = TW_EV_GO_BLOCK, .time = at, .args = { 1, 1 })
#define END(g_, at)  FEED(ON, .g = g_, .type = TW_EV_GO_DESTROY, .time = at)
#define WAKE(by, g_, at)                                                                           \
  FEED(ON, .g = by, .type = TW_EV_GO_UNBLOCK, .time = at, .slot = g_, .args = { g_, 1, 2 })
#define SYNC(at, n)                                                                                \
  FEED(.m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC, .time = at, .args = { n })

static const struct kept *only(enum to_span_kind kind, unsigned state) {
  const struct kept *found = NULL;

  for (size_t i = 0; i < count; i++) {
    if (kept[i].span.kind != kind || kept[i].span.state != state) continue;
    cr_assert_null(found, "line %d: two of kind %d, state %u", tt_caller, kind, state);
    found = &kept[i];
  }
  cr_assert_not_null(found, "line %d: none of kind %d, state %u", tt_caller, kind, state);
  return found;
}
#define only(...) TT_CALL(only(__VA_ARGS__))

static const char *function_of(uint64_t stack) {
  uint32_t number;

  cr_assert_eq(to_spans_stack(spans, &gen, stack, &number), TB_OK);
  const struct to_callstack *frames = to_spans_callstack(spans, number);
  return frames->len == 0 ? "" : frames->frames[0]->function.data;
}

Test(spans, a_wait_knows_its_reason_its_stack_and_its_waker) {
  begin(TO_WANT(GOROUTINE));
  SYNC(1, 1);
  NEW(7, 10);
  START(7, 20);
  WAIT(7, 30);
  NEW(8, 35);
  START(8, 40);
  WAKE(8, 7, 90);
  WAIT(8, 95);
  START(7, 100);
  const struct to_span *wait = &only(TO_SPAN_GOROUTINE, TO_GO_WAITING)->span;
  cr_assert_eq(wait->from, 30);
  cr_assert_eq(wait->until, 90);
  cr_assert_eq(wait->id, 7);
  cr_assert_eq(wait->reason, TO_REASON_CHAN_RECEIVE);
  cr_assert_str_eq(function_of(wait->stack), "main.wait");
  cr_assert_eq(wait->by, 8);
  cr_assert_eq(wait->by_thread, 100);
  cr_assert_eq(wait->by_life, wait->life + 1);
  cr_assert_str_eq(function_of(wait->by_stack), "main.wake");
  cr_assert(wait->from_known && wait->until_known && !wait->open);
  cr_assert_eq(wait->thread, TO_NONE);
  const struct to_span *last = &kept[count - 1].span; /* wait for a P, with its earlier stack */
  cr_assert_eq(last->state, TO_GO_RUNNABLE);
  cr_assert_eq(last->cause, TO_CAUSE_UNBLOCKED);
  cr_assert_eq(last->until - last->from, 10);
  cr_assert_str_eq(function_of(last->stack), "main.wait");
  end();
}

Test(spans, a_call_is_one_span_and_its_pieces_say_when_it_had_a_p) {
  begin(TO_WANT_GO(SYSCALL) | TO_WANT_GO(RUNNABLE) | TO_WANT(SYSCALL));
  SYNC(1, 1);
  NEW(7, 10);
  START(7, 20);
  FEED(ON, .g = 7, .type = TW_EV_GO_SYSCALL_BEGIN, .time = 30, .args = { 1, 1 });
  FEED(ON, .g = 7, .type = TW_EV_GO_SYSCALL_END, .time = 33);
  cr_assert_eq(only(TO_SPAN_GOROUTINE, TO_GO_SYSCALL)->span.until, 33);
  cr_assert_eq(only(TO_SPAN_SYSCALL, 1)->span.proc, 0);
  count = 0;
  FEED(ON, .g = 7, .type = TW_EV_GO_SYSCALL_BEGIN, .time = 40, .args = { 2, 1 });
  FEED(.m = 101, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_STEAL, .time = 60,
       .args = { 0, 3, 100, TW_PROC_SYSCALL });
  NEW(8, 61); /* another goroutine runs on the P meanwhile */
  START(8, 62);
  FEED(.m = 100, .p = TO_NONE, .g = 7, .type = TW_EV_GO_SYSCALL_END_BLOCKED, .time = 70);
  FEED(.m = 100, .p = 1, .g = TO_NONE, .type = TW_EV_GO_START, .time = 75, .slot = 7,
       .args = { 7, 1 });
  const struct to_span *whole = &only(TO_SPAN_GOROUTINE, TO_GO_SYSCALL)->span;
  cr_assert(whole->from == 40 && whole->until == 70 && whole->thread == 100);
  cr_assert_str_eq(function_of(whole->stack), "main.wait");
  cr_assert(only(TO_SPAN_SYSCALL, 1)->span.from == 40 &&
            only(TO_SPAN_SYSCALL, 1)->span.until == 60);
  cr_assert(only(TO_SPAN_SYSCALL, 0)->span.from == 60 &&
            only(TO_SPAN_SYSCALL, 0)->span.until == 70);
  cr_assert_eq(only(TO_SPAN_SYSCALL, 0)->span.proc, TO_NONE);
  cr_assert_eq(kept[count - 1].span.cause, TO_CAUSE_SYSCALL);
  end();
}

Test(spans, a_call_that_a_status_names_is_found_by_its_thread) {
  begin(TO_WANT_GO(SYSCALL));
  SYNC(1, 1);
  FEED(.m = 200, .p = 3, .g = TO_NONE, .type = TW_EV_GO_STATUS, .time = 5, .slot = 9,
       .args = { 9, 200, (uint64_t)TO_GO_UNDETERMINED << 32 | TW_GO_SYSCALL });
  FEED(.m = 200, .p = 4, .g = 9, .type = TW_EV_GO_SYSCALL_END, .time = 50);
  const struct to_span *call = &only(TO_SPAN_GOROUTINE, TO_GO_SYSCALL)->span;
  cr_assert(call->from == 1 && call->until == 50 && !call->from_known && call->until_known);
  end();
}

Test(spans, a_goroutine_of_a_c_thread_is_born_and_ends_in_a_call) {
  begin(TO_WANT_GO(SYSCALL) | TO_WANT(SYSCALL) | TO_WANT(LIFE));
  SYNC(1, 1);
  FEED(.m = 300, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_GO_CREATE_SYSCALL, .time = 10, .slot = 5,
       .args = { 5 });
  FEED(.m = 300, .p = TO_NONE, .g = 5, .type = TW_EV_GO_DESTROY_SYSCALL, .time = 25);
  cr_assert_eq(only(TO_SPAN_GOROUTINE, TO_GO_SYSCALL)->span.until, 25);
  cr_assert_eq(only(TO_SPAN_SYSCALL, 0)->span.from, 10);
  cr_assert_eq(only(TO_SPAN_LIFE, 0)->span.by_thread, 300);
  end();
}

Test(spans, an_id_that_comes_again_is_another_life) {
  begin(TO_WANT(LIFE));
  SYNC(1, 1);
  for (int i = 0; i < 2; i++) {
    NEW(7, 10 + 100 * i);
    START(7, 20 + 100 * i);
    END(7, 30 + 100 * i);
  }
  cr_assert_eq(count, 2);
  cr_assert_eq(kept[0].span.id, kept[1].span.id);
  cr_assert_neq(kept[0].span.life, kept[1].span.life);
  cr_assert_eq(kept[1].span.from, 110);
  cr_assert_str_eq(function_of(kept[1].span.stack), "main.begin");
  cr_assert_str_eq(function_of(kept[1].span.end_stack), "main.spawn");
  end();
}

Test(spans, stacks_of_what_is_open_outlive_their_generation) {
  begin(TO_WANT_GO(WAITING));
  SYNC(1, 1);
  NEW(7, 10);
  START(7, 20);
  WAIT(7, 30);
  NEW(8, 35);
  START(8, 40);
  cr_assert_eq(to_spans_generation_ends(spans, &gen), TB_OK);
  struct tt_fake_frame was = gen.stack[1][0];
  gen.stack[1][0] = (struct tt_fake_frame){ 0x99, 9, "main.other", "o.go" };
  SYNC(50, 2);
  WAKE(8, 7, 60);
  cr_assert_str_eq(function_of(only(TO_SPAN_GOROUTINE, TO_GO_WAITING)->span.stack), "main.wait");
  count = 0;
  WAIT(8, 70);
  SYNC(80, 3); /* no event said that the generation had ended */
  START(7, 85);
  WAKE(7, 8, 90);
  uint32_t number;
  cr_assert_eq(to_spans_stack(spans, &gen, kept[0].span.stack, &number), TB_OK);
  cr_assert_eq(number, TO_STACK_OTHER);
  gen.stack[1][0] = was;
  end();
}

Test(spans, what_is_open_can_be_asked_for_and_a_hole_cuts_it) {
  begin(TO_WANT_ALL);
  SYNC(1, 1);
  NEW(7, 10);
  START(7, 20);
  FEED(ON, .g = 7, .type = TW_EV_STW_BEGIN, .time = 25, .args = { 2, 1 });
  count = 0;
  cr_assert_eq(to_spans_open(spans, keep_open, NULL), TB_OK);
  cr_assert_eq(only(TO_SPAN_GOROUTINE, TO_GO_RUNNING)->span.from, 20);
  cr_assert_eq(only(TO_SPAN_RANGE, TO_RANGE_STW)->span.until, 25);
  cr_assert_str_eq(only(TO_SPAN_RANGE, TO_RANGE_STW)->name, "GC mark termination");
  cr_assert_eq(only(TO_SPAN_THREAD, TO_THREAD_RUNNING)->span.id, 100);
  size_t open = count;
  count = 0;
  cr_assert_eq(to_spans_epoch(spans), TB_OK);
  cr_assert_eq(count, open);
  for (size_t i = 0; i < count; i++)
    cr_assert(!kept[i].span.open && !kept[i].span.until_known && kept[i].span.until == 25);
  cr_assert_str_eq(only(TO_SPAN_RANGE, TO_RANGE_STW)->name, "GC mark termination");
  count = 0;
  cr_assert_eq(to_spans_open(spans, keep_open, NULL), TB_OK);
  cr_assert_eq(count, 0);
  SYNC(100, 2);
  END(7, 110); /* the goroutine is no longer known */
  cr_assert_eq(count, 0);
  end();
}

Test(spans, ranges_tasks_regions_and_logs_have_their_names) {
  begin(TO_WANT(RANGE) | TO_WANT(TASK) | TO_WANT(REGION) | TO_WANT(LOG) | TO_WANT(METRIC));
  SYNC(1, 1);
  NEW(7, 10);
  START(7, 20);
  FEED(ON, .g = 7, .type = TW_EV_USER_TASK_BEGIN, .time = 30, .args = { 50, 40, 3, 1 });
  FEED(ON, .g = 7, .type = TW_EV_USER_REGION_BEGIN, .time = 31, .args = { 50, 3, 1 });
  FEED(ON, .g = 7, .type = TW_EV_USER_LOG, .time = 32, .args = { 50, 3, 4, 2 });
  FEED(ON, .g = 7, .type = TW_EV_HEAP_ALLOC, .time = 33, .args = { 4096 });
  FEED(ON, .g = 7, .type = TW_EV_STW_BEGIN, .time = 34, .args = { 2, 1 });
  FEED(ON, .g = 7, .type = TW_EV_STW_END, .time = 36, .args = { 2 });
  FEED(ON, .g = 7, .type = TW_EV_USER_REGION_END, .time = 40, .args = { 50, 3, 2 });
  FEED(ON, .g = 7, .type = TW_EV_USER_REGION_BEGIN, .time = 41, .args = { 50, 3, 1 });
  END(7, 45); /* also ends the region, which has no end event */
  cr_assert_str_eq(only(TO_SPAN_LOG, 0)->text, "said");
  cr_assert_str_eq(only(TO_SPAN_RANGE, TO_RANGE_STW)->name, "GC mark termination");
  cr_assert_eq(only(TO_SPAN_RANGE, TO_RANGE_STW)->span.life, 1);
  cr_assert_eq(only(TO_SPAN_METRIC, TO_METRIC_HEAP_ALLOC)->span.from, 33);
  cr_assert_eq(count, 5);
  const struct kept *region = &kept[3], *cut = &kept[4];
  cr_assert(region->span.from == 31 && region->span.until == 40 && region->span.until_known);
  cr_assert_str_eq(region->name, "checkout");
  cr_assert(cut->span.until == 45 && !cut->span.until_known);
  end();
}

Test(spans, a_label_is_on_the_spans_of_its_stay_on_the_thread) {
  begin(TO_WANT_GO(RUNNING) | TO_WANT(LIFE));
  SYNC(1, 1);
  NEW(7, 10);
  START(7, 20);
  FEED(ON, .g = 7, .type = TW_EV_GO_LABEL, .time = 25, .args = { 3 });
  WAIT(7, 30);
  WAKE(TO_NONE, 7, 40);
  START(7, 50);
  END(7, 60);
  cr_assert_str_eq(kept[0].name, "checkout");
  cr_assert_str_eq(kept[1].name, "");
  cr_assert_str_eq(only(TO_SPAN_LIFE, 0)->name, "checkout");
  end();
}

/* Each of the following tests is for a fault that a review of this code found. */

Test(spans, a_label_that_is_set_again_stays_on_the_spans_before) {
  begin(TO_WANT_GO(SYSCALL));
  struct to_event events[] = {
    { .type = TW_EV_SYNC, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE },
    { ON, .g = TO_NONE, .type = TW_EV_GO_CREATE, .time = 2, .slot = 7, .args = { 7, 3, 4 } },
    { ON, .g = TO_NONE, .type = TW_EV_GO_START, .time = 3, .slot = 7, .args = { 7, 1 } },
    { ON, .g = 7, .type = TW_EV_GO_LABEL, .time = 4, .args = { 3 } },
    { ON, .g = 7, .type = TW_EV_GO_SYSCALL_BEGIN, .time = 5, .args = { 1, 1 } },
    { ON, .g = 7, .type = TW_EV_GO_SYSCALL_END, .time = 6 },
    { ON, .g = 7, .type = TW_EV_GO_LABEL, .time = 7, .args = { 4 } },
  };
  cr_assert_eq(to_spans_events(spans, &gen, events, sizeof events / sizeof *events), TB_OK);
  cr_assert_str_eq(kept[0].name, "checkout");
  end();
}

Test(spans, labels_of_goroutines_that_end_find_room_although_no_span_is_wanted) {
  static struct to_event events[400];
  size_t n = 0;

  begin(TO_WANT_GO(SYSCALL));
  for (int64_t at = 1; n + 4 <= 400; at += 10) {
    events[n++] = (struct to_event){ ON,         .g = TO_NONE, .type = TW_EV_GO_CREATE,
                                     .time = at, .slot = 7,    .args = { 7, 3, 4 } };
    events[n++] =
        (struct to_event){ ON,        .g = TO_NONE,    .type = TW_EV_GO_START, .time = at + 1,
                           .slot = 7, .args = { 7, 1 } };
    events[n++] =
        (struct to_event){ ON, .g = 7, .type = TW_EV_GO_LABEL, .time = at + 2, .args = { 3 } };
    events[n++] = (struct to_event){ ON, .g = 7, .type = TW_EV_GO_DESTROY, .time = at + 3 };
  }
  cr_assert_eq(to_spans_events(spans, &gen, events, n), TB_OK);
  cr_assert_eq(count, 0);
  end();
}

Test(spans, one_goroutine_may_stop_the_world_for_two_reasons) {
  begin(TO_WANT(RANGE));
  SYNC(1, 1);
  NEW(7, 10);
  START(7, 20);
  FEED(ON, .g = 7, .type = TW_EV_STW_BEGIN, .time = 30, .args = { 2, 1 });
  FEED(ON, .g = 7, .type = TW_EV_STW_BEGIN, .time = 40, .args = { 3, 1 });
  FEED(ON, .g = 7, .type = TW_EV_STW_END, .time = 50, .args = { 2 });
  cr_assert_eq(count, 1);
  cr_assert_eq(kept[0].span.from, 30);
  END(7, 60); /* the other region ends with its goroutine */
  cr_assert_eq(count, 2);
  cr_assert(kept[1].span.from == 40 && kept[1].span.until == 60 && !kept[1].span.until_known);
  cr_assert_str_eq(kept[1].name, "checkout");
  count = 0;
  cr_assert_eq(to_spans_open(spans, keep_open, NULL), TB_OK);
  cr_assert_eq(count, 0);
  end();
}

Test(spans, a_thread_that_a_status_names_was_so_before) {
  begin(TO_WANT(THREAD));
  SYNC(1, 1);
  FEED(.m = 200, .p = 3, .g = TO_NONE, .type = TW_EV_GO_STATUS, .time = 5, .slot = 9,
       .args = { 9, 200, (uint64_t)TO_GO_UNDETERMINED << 32 | TW_GO_SYSCALL });
  FEED(.m = 200, .p = 4, .g = 9, .type = TW_EV_GO_SYSCALL_END, .time = 50);
  cr_assert_eq(count, 1);
  cr_assert(kept[0].span.state == TO_THREAD_SYSCALL && kept[0].span.from == 1 &&
            !kept[0].span.from_known);
  end();
}

Test(spans, a_goroutine_that_changes_its_p_while_it_runs_is_found) {
  begin(TO_WANT_GO(RUNNING));
  SYNC(1, 1);
  FEED(.m = 200, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_GO_STATUS, .time = 5, .slot = 9,
       .args = { 9, 200, (uint64_t)TO_GO_UNDETERMINED << 32 | TW_GO_RUNNING });
  FEED(.m = 200, .p = 3, .g = 9, .type = TW_EV_GO_LABEL, .time = 6, .args = { 3 });
  FEED(.m = 200, .p = 3, .g = 9, .type = TW_EV_PROC_STOP, .time = 7);
  FEED(.m = 200, .p = TO_NONE, .g = 9, .type = TW_EV_PROC_START, .time = 8, .args = { 4, 1 });
  FEED(.m = 200, .p = 4, .g = 9, .type = TW_EV_GO_BLOCK, .time = 9, .args = { 1, 1 });
  cr_assert_eq(count, 1);
  cr_assert_eq(kept[0].span.until, 9);
  end();
}

/* A made-up trace with many goroutines and many empty generations could otherwise cause much work. */
Test(spans, generations_without_events_do_not_walk_over_all_goroutines_for_ever) {
  begin(TO_WANT_GO(WAITING));
  SYNC(1, 1);
  for (int64_t g = 1; g <= 3000; g++)
    FEED(ON, .g = TO_NONE, .type = TW_EV_GO_CREATE_BLOCKED, .time = 10 + g, .slot = (uint32_t)g,
         .args = { (uint64_t)g, 3, 4 });
  count = 0;
  uint64_t cut = 0;
  for (int64_t i = 0; i < 20000; i++) {
    cr_assert_eq(to_spans_generation_ends(spans, &gen), TB_OK);
    cut += count;
    count = 0;
    SYNC(10000 + i, (uint64_t)i + 2);
  }
  cr_assert_gt(cut, 0, "20,000 walks over 3,000 goroutines were made");
  end();
}

/* Events that make no sense, as in a broken trace or one that a program made up: they cause no fault, and all memory is freed,
 * whichever allocation fails. */
Test(spans, no_events_break_it_and_no_memory_is_lost) {
  static const uint8_t types[] = { TW_EV_GO_CREATE,         TW_EV_GO_START,
                                   TW_EV_GO_BLOCK,          TW_EV_GO_UNBLOCK,
                                   TW_EV_GO_DESTROY,        TW_EV_GO_SYSCALL_BEGIN,
                                   TW_EV_GO_SYSCALL_END,    TW_EV_GO_SYSCALL_END_BLOCKED,
                                   TW_EV_PROC_STEAL,        TW_EV_PROC_STOP,
                                   TW_EV_PROC_START,        TW_EV_STW_BEGIN,
                                   TW_EV_STW_END,           TW_EV_USER_TASK_BEGIN,
                                   TW_EV_USER_TASK_END,     TW_EV_USER_REGION_BEGIN,
                                   TW_EV_USER_REGION_END,   TW_EV_GO_LABEL,
                                   TW_EV_GO_CREATE_SYSCALL, TW_EV_GO_DESTROY_SYSCALL,
                                   TW_EV_GC_SWEEP_BEGIN,    TW_EV_GC_SWEEP_END };
  uint64_t chance = 88172645463325252;
  unsigned short_of_memory = 0;

  for (size_t limit = 16 << 10; limit <= 1 << 20; limit *= 2) {
    begin(TO_WANT_ALL);
    mem.bytes_max = mem.bytes + limit;
    for (int i = 0; i < 20000; i++) {
      chance ^= chance << 13;
      chance ^= chance >> 7;
      chance ^= chance << 17;
      uint64_t g = chance >> 20 & 1023;
      struct to_event ev = {
        .time = 10 * i,
        .type = types[chance % sizeof types],
        .slot = (uint32_t)g,
        .m = 100 + (chance >> 32 & 7),
        .p = (chance >> 36 & 7) == 7 ? TO_NONE : (int64_t)(chance >> 36 & 7) * 99,
        .g = (chance >> 40 & 3) == 0 ? TO_NONE : (int64_t)(chance >> 42 & 1023),
        .args = { g, 1, 2, 1 }
      };
      tb_rc rc = to_spans_events(spans, &gen, &ev, 1);
      cr_assert(rc == TB_OK || rc == TB_BUDGET, "%s", tb_rc_name(rc));
      count = 0;
      if (rc != TB_OK || i % 5000 == 4999) {
        short_of_memory += rc != TB_OK;
        cr_assert_eq(to_spans_epoch(spans), TB_OK);
        count = 0;
      }
    }
    end();
  }
  cr_assert_gt(short_of_memory, 0);
}

/* A made-up trace: a goroutine runs on a thread without a P, and the P of a call on that thread is taken away. */
Test(spans, one_that_runs_is_in_no_call_that_could_lose_a_p) {
  begin(TO_WANT_GO(RUNNING) | TO_WANT_GO(SYSCALL) | TO_WANT(SYSCALL));
  SYNC(1, 1);
  FEED(.m = 200, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_GO_STATUS, .time = 5, .slot = 9,
       .args = { 9, 200, (uint64_t)TO_GO_UNDETERMINED << 32 | TW_GO_RUNNING });
  FEED(.m = 201, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_STEAL, .time = 60,
       .args = { 3, 3, 200, TW_PROC_SYSCALL });
  cr_assert_eq(count, 0);
  end();
}

static uint64_t call_time_on(int64_t proc) {
  begin(TO_WANT_GO(SYSCALL));
  SYNC(1, 1);
  FEED(.m = 200, .p = proc, .g = TO_NONE, .type = TW_EV_GO_STATUS, .time = 5, .slot = 9,
       .args = { 9, 200, (uint64_t)TO_GO_UNDETERMINED << 32 | TW_GO_SYSCALL });
  uint64_t time = to_spans_call_time(spans, proc, 100);
  end();
  return time;
}

Test(spans, the_last_p_whose_calls_are_counted_counts_as_the_first) {
  cr_assert_gt(call_time_on(0), 0);
  cr_expect_eq(call_time_on(TO_SPANS_PROCS_NEAR - 1), call_time_on(0));
  cr_expect_eq(call_time_on(TO_SPANS_PROCS_NEAR), 0);
}

/* The P's number is beyond those that need no map. */
Test(spans, a_call_on_a_far_p_knows_when_it_lost_it) {
  enum { FAR = TO_SPANS_PROCS_NEAR + 44 };

  begin(TO_WANT_GO(SYSCALL) | TO_WANT(SYSCALL));
  SYNC(1, 1);
  FEED(.m = 200, .p = FAR, .g = TO_NONE, .type = TW_EV_GO_STATUS, .time = 5, .slot = 9,
       .args = { 9, 200, (uint64_t)TO_GO_UNDETERMINED << 32 | TW_GO_RUNNING });
  FEED(.m = 200, .p = FAR, .g = 9, .type = TW_EV_GO_SYSCALL_BEGIN, .time = 40, .args = { 2, 1 });
  FEED(.m = 201, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_STEAL, .time = 60,
       .args = { FAR, 3, 200, TW_PROC_SYSCALL });
  FEED(.m = 200, .p = TO_NONE, .g = 9, .type = TW_EV_GO_SYSCALL_END_BLOCKED, .time = 70);
  const struct to_span *with = &only(TO_SPAN_SYSCALL, 1)->span;
  cr_assert(with->from == 40 && with->until == 60 && with->lost_proc);
  cr_assert_eq(only(TO_SPAN_SYSCALL, 0)->span.from, 60);
  end();
}
