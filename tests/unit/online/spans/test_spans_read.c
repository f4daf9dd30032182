/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of traces that the reader reads. */
#include <criterion/criterion.h>
#include <string.h>

#include "online/spans/spans.h"
#include "support/order_text.h"
#include "support/stored.h"
#include "wire/spec.h"

enum { KEPT_MAX = 64 };

static struct tb_mem mem;
static struct to_spans *spans;
static struct kept {
  struct to_span span;
  uint64_t value;
} kept[KEPT_MAX];
static size_t count;

static tb_rc keep(void *self, const struct to_generation *gen, const struct to_span *span,
                  size_t n) {
  (void)self;
  (void)gen;
  for (; n > 0; n--, span++) {
    cr_assert_lt(count, KEPT_MAX);
    kept[count++] = (struct kept){ *span, span->more == NULL ? 0 : span->more->value };
  }
  return TB_OK;
}

static tb_rc feed(void *self, const struct to_generation *gen, const struct to_event *events,
                  size_t n) {
  (void)self;
  return to_spans_events(spans, gen, events, n);
}

/* Reads a whole trace; the reader passes its events to the sink. */
static void read_trace(struct to_event_sink sink, const unsigned char *bytes, size_t n,
                       const char *name) {
  struct tb_diag diag = { 0 };
  struct to_reader *reader;

  cr_assert_eq(to_reader_new(&mem, NULL, TO_READER_BYTES_STAY, sink, &diag, &reader), TB_OK);
  cr_assert_eq(to_reader_read(reader, bytes, n), TB_OK, "%s: %s", name, diag.text);
  to_reader_free(reader);
}

static void begin(uint32_t wanted) {
  count = 0;
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_spans_new(&mem, &(struct to_spans_config){ .wanted = wanted },
                            (struct to_span_sink){ NULL, keep }, &spans),
               TB_OK);
}

static void read_text(uint32_t wanted, const char *text) {
  struct tb_buf bytes;

  begin(wanted);
  tb_buf_init(&bytes, &mem);
  tt_trace_bytes(text, &mem, &bytes);
  read_trace((struct to_event_sink){ NULL, feed }, bytes.data, bytes.len, text);
  tb_buf_fini(&bytes);
}

static void end(void) {
  to_spans_free(spans);
  cr_assert_eq(mem.bytes, 0, "%zu bytes left", mem.bytes);
}

static const struct to_span *nth(enum to_span_kind kind, int64_t id, int n) {
  for (size_t i = 0; i < count; i++)
    if (kept[i].span.kind == kind && kept[i].span.id == id && --n == 0) return &kept[i].span;
  cr_assert_fail("no such %s", to_span_kind_name(kind));
  return NULL;
}

static struct to_span found;

static tb_rc find(void *self, const struct to_span *span) {
  const struct to_span *wanted = self;

  if (span->kind == wanted->kind && span->id == wanted->id) found = *span;
  return TB_OK;
}

static const struct to_span *open_one(enum to_span_kind kind, int64_t id) {
  struct to_span wanted = { .kind = (uint8_t)kind, .id = id };

  found = (struct to_span){ .id = TO_NONE };
  cr_assert_eq(to_spans_open(spans, find, &wanted), TB_OK);
  return &found;
}

#define TABLE "EventBatch gen=1 m=18446744073709551615 time=0\n" /* not of a thread */

#define START                                                                                      \
  "EventBatch gen=1 m=0 time=100\n"                                                                \
  "ProcStatus dt=1 p=0 pstatus=1\n"                                                                \
  "GoStatus dt=1 g=1 m=0 gstatus=2\n"

/* H2, J4, J5 */
Test(spans_read, a_stolen_proc_says_from_which_thread_and_by_which_and_its_call_blocks) {
  read_text(TO_WANT(GOROUTINE) | TO_WANT(SYSCALL) | TO_WANT(PROC),
            "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=9\n"
            "EventBatch gen=1 m=1 time=200\n"
            "ProcSteal dt=1 p=0 p_seq=2 m=0\n"
            "ProcStart dt=1 p=0 p_seq=3\n");
  const struct to_span *proc = nth(TO_SPAN_PROC, 0, 1), *piece = nth(TO_SPAN_SYSCALL, 1, 1);
  cr_assert_eq(proc->state, TO_PROC_RUNNING);
  cr_assert_eq(proc->thread, 0);
  cr_assert_eq(proc->by_thread, 1);
  cr_assert_eq(piece->until, proc->until);
  cr_assert(piece->lost_proc && piece->from_known);
  cr_assert(piece->id == 1 && piece->thread == 0 && piece->proc == 0 && piece->stack == 9);
  const struct to_span *call = open_one(TO_SPAN_GOROUTINE, 1);
  cr_assert(call->state == TO_GO_SYSCALL && call->thread == 0 && call->lost_proc);
  cr_assert_eq(call->from, piece->from);
  cr_assert_eq(open_one(TO_SPAN_PROC, 0)->thread, 1);
  end();
}

/* J5 */
Test(spans_read, a_proc_in_a_short_call_stays_with_its_thread) {
  read_text(TO_WANT(GOROUTINE) | TO_WANT(PROC),
            "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=0\n");
  cr_assert_eq(open_one(TO_SPAN_GOROUTINE, 1)->state, TO_GO_SYSCALL);
  const struct to_span *proc = open_one(TO_SPAN_PROC, 0);
  cr_assert(proc->state == TO_PROC_RUNNING && proc->thread == 0);
  end();
}

/* J1, J2: threads that run goroutines or do not; procs are not wanted. */
Test(spans_read, a_thread_is_idle_running_in_a_call_and_blocked_in_it) {
  read_text(TO_WANT(THREAD), "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=0\n"
                             "EventBatch gen=1 m=1 time=200\n"
                             "ProcSteal dt=1 p=0 p_seq=2 m=0\n"
                             "ProcStart dt=1 p=0 p_seq=3\n"
                             "ProcStop dt=10\n"
                             "EventBatch gen=1 m=0 time=300\n"
                             "GoSyscallEndBlocked dt=1\n");
  const struct to_span *running = nth(TO_SPAN_THREAD, 0, 1), *call = nth(TO_SPAN_THREAD, 0, 2),
                       *blocked = nth(TO_SPAN_THREAD, 0, 3);
  cr_assert_eq(count, 3, "procs are not shown, and it ran before its status, too");
  cr_assert(running->state == TO_THREAD_RUNNING && !running->from_known);
  cr_assert(call->state == TO_THREAD_SYSCALL && call->from_known && call->from == running->until);
  cr_assert(blocked->state == TO_THREAD_BLOCKED && blocked->from == call->until);
  cr_assert_eq(open_one(TO_SPAN_THREAD, 0)->state, TO_THREAD_IDLE);
  end();
}

/* As in Go 1.25: first the proc starts, then the call ends. */
Test(spans_read, a_blocked_thread_that_gets_a_proc_is_blocked_until_its_call_ends) {
  read_text(TO_WANT(THREAD), "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=0\n"
                             "EventBatch gen=1 m=1 time=200\n"
                             "ProcSteal dt=1 p=0 p_seq=2 m=0\n"
                             "EventBatch gen=1 m=0 time=300\n"
                             "ProcStart dt=1 p=0 p_seq=3\n"
                             "GoSyscallEndBlocked dt=1\n");
  cr_assert_eq(nth(TO_SPAN_THREAD, 0, 3)->state, TO_THREAD_BLOCKED);
  cr_assert_eq(open_one(TO_SPAN_THREAD, 0)->state, TO_THREAD_IDLE);
  end();
}

/* The thread's goroutine begins with the call. */
Test(spans_read, a_c_thread_was_idle_before_its_call) {
  read_text(TO_WANT(THREAD), "Trace Go1.26\nEventBatch gen=1 m=0 time=0\n"
                             "GoCreateSyscall dt=1 new_g=4\n"
                             "ProcStatus dt=1 p=0 pstatus=2\n"
                             "ProcStart dt=1 p=0 p_seq=1\n"
                             "GoSyscallEndBlocked dt=1\n"
                             "GoStart dt=1 g=4 g_seq=1\n"
                             "GoSyscallBegin dt=1 p_seq=2 stack=0\n"
                             "GoDestroySyscall dt=1\n");
  cr_assert_eq(nth(TO_SPAN_THREAD, 0, 1)->state, TO_THREAD_IDLE);
  cr_assert_eq(nth(TO_SPAN_THREAD, 0, 2)->state, TO_THREAD_BLOCKED);
  cr_assert_eq(kept[count - 1].span.state, TO_THREAD_SYSCALL);
  end();
}

/* H5 */
Test(spans_read, gomaxprocs_is_a_metric_of_each_generation) {
  read_text(TO_WANT(METRIC), "Trace Go1.26\n" START "ProcsChange dt=1 procs_value=8 stack=0\n"
                             "EventBatch gen=2 m=0 time=900\n"
                             "ProcStatus dt=1 p=0 pstatus=1\n"
                             "GoStatus dt=1 g=1 m=0 gstatus=2\n"
                             "ProcsChange dt=1 procs_value=4 stack=0\n");
  cr_assert_eq(count, 2);
  cr_assert(kept[0].span.state == TO_METRIC_GOMAXPROCS && kept[0].value == 8);
  cr_assert(kept[1].span.state == TO_METRIC_GOMAXPROCS && kept[1].value == 4);
  end();
}

/* I17 */
Test(spans_read, a_sample_that_names_a_goroutine_that_is_not_on_its_thread_is_flagged) {
  read_text(TO_WANT(SAMPLE), "Trace Go1.26\n" START "GoDestroy dt=50\n" TABLE "CPUSamples\n"
                             "CPUSample time=120 m=0 p=0 g=1 stack=0\n"
                             "CPUSample time=121 m=7 p=0 g=1 stack=0\n"
                             "CPUSample time=190 m=0 p=0 g=1 stack=0\n");
  cr_assert_eq(count, 3);
  cr_assert_eq(kept[0].value, 0);
  cr_assert_eq(kept[1].value, 1, "another thread than its own");
  cr_assert_eq(kept[2].value, 1, "it has ended");
  end();
}

/* The open spans have the same goroutine, thread and proc as the context in which the orderer saw an event. */
static tb_rc compare(void *self, const struct to_generation *gen, const struct to_event *events,
                     size_t n) {
  unsigned *seen = self;

  for (; n > 0; n--, events++) {
    bool has_context = events->type != TW_EV_CPU_SAMPLE && events->g != TO_NONE;
    if (has_context && (*seen)++ % 16 == 0) {
      const struct to_span *g = open_one(TO_SPAN_GOROUTINE, events->g);
      if (g->id != TO_NONE) {
        cr_assert_eq(g->thread, events->m, "%s at %lld: thread %lld, not %lld",
                     tw_spec(events->type)->name, (long long)events->time, (long long)g->thread,
                     (long long)events->m);
        if (g->state == TO_GO_RUNNING) cr_assert_eq(g->proc, events->p);
      }
    }
    TB_TRY(to_spans_events(spans, gen, events, 1));
    count = 0;
  }
  return TB_OK;
}

static void follow(const struct tt_stored *trace) {
  unsigned seen = 0;

  begin(TO_WANT(GOROUTINE));
  read_trace((struct to_event_sink){ &seen, compare }, trace->bytes, trace->len, trace->path);
  cr_assert_gt(seen, 0, "%s", trace->path);
  end();
}

/* G6: any goroutine, asked for at any moment. */
Test(spans_read, what_is_open_is_where_the_orderer_is_in_real_traces) {
  cr_assert_gt(tt_each_stored("tests/data", 200000, follow), 4);
}
