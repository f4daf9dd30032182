/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/model.h"
#include "support/order_text.h"
#include "support/stored.h"
#include "wire/spec.h"

enum { NEWS_MAX = 64 };

struct reported {
  struct to_event ev;
  struct to_effects effects;
  char label[16];
};

struct run {
  struct tb_mem mem;
  struct to_model *model;
  struct reported reported[NEWS_MAX];
  size_t count;
};

static tb_rc listen(void *self, const struct to_generation *gen, const struct to_event *events,
                    size_t n) {
  struct run *run = self;

  for (; n > 0; n--, events++) {
    struct reported *reported = &run->reported[run->count++];
    cr_assert_leq(run->count, NEWS_MAX);
    reported->ev = *events;
    TB_TRY(to_model_event(run->model, gen, events, &reported->effects));
    if (reported->effects.label.len > 0)
      memcpy(reported->label, reported->effects.label.data, reported->effects.label.len);
  }
  return TB_OK;
}

/* A whole trace through a reader that gives its events to the sink. */
static void read_trace(struct tb_mem *mem, struct to_event_sink sink, const unsigned char *bytes,
                       size_t n, const char *name) {
  struct tb_diag diag = { 0 };
  struct to_reader *reader;

  cr_assert_eq(to_reader_new(mem, NULL, TO_READER_BYTES_STAY, sink, &diag, &reader), TB_OK);
  cr_assert_eq(to_reader_read(reader, bytes, n), TB_OK, "%s: %s", name, diag.text);
  to_reader_free(reader);
}

static void feed(struct run *run, const char *text) {
  struct tb_buf bytes;

  tb_mem_init(&run->mem, tb_mem_libc, NULL, SIZE_MAX);
  run->count = 0;
  cr_assert_eq(to_model_new(&run->mem, &run->model), TB_OK);
  tb_buf_init(&bytes, &run->mem);
  tt_trace_bytes(text, &run->mem, &bytes);
  read_trace(&run->mem, (struct to_event_sink){ run, listen }, bytes.data, bytes.len, text);
  tb_buf_fini(&bytes);
}

static void done(struct run *run) {
  to_model_free(run->model);
  cr_assert_eq(run->mem.bytes, 0, "%zu bytes left", run->mem.bytes);
}

/* The nth event of a type, from 1. */
static const struct reported *nth(const struct run *run, uint8_t type, int n) {
  for (size_t i = 0; i < run->count; i++)
    if (run->reported[i].ev.type == type && --n == 0) return &run->reported[i];
  cr_assert_fail("no such %s", tw_spec(type)->name);
  return NULL;
}

#define TABLE "EventBatch gen=1 m=18446744073709551615 time=0\n" /* of no thread */

#define START                                                                                      \
  "EventBatch gen=1 m=0 time=100\n"                                                                \
  "ProcStatus dt=1 p=0 pstatus=1\n"                                                                \
  "GoStatus dt=1 g=1 m=0 gstatus=2\n"

/* H4 */
Test(model, a_wait_lasts_from_block_to_unblock_and_has_its_reason) {
  struct run run;
  struct to_goroutine g;

  feed(&run, "Trace Go1.26\n" START "GoBlock dt=10 reason_string=5 stack=0\n"
             "GoUnblock dt=30 g=1 g_seq=1 stack=0\n"
             "GoStart dt=7 g=1 g_seq=2\n" TABLE "Strings\nString id=5 data=\"chan receive\"\n");
  const struct reported *block = nth(&run, TW_EV_GO_BLOCK, 1);
  cr_assert_eq(block->effects.reason, TO_REASON_CHAN_RECEIVE);
  cr_assert(block->effects.ends && block->effects.lower_bound, "it ran before the trace began");
  const struct reported *unblock = nth(&run, TW_EV_GO_UNBLOCK, 1);
  cr_assert(unblock->effects.ends && !unblock->effects.lower_bound);
  cr_assert_eq(unblock->effects.lasted_ns, 30);
  cr_assert_eq(nth(&run, TW_EV_GO_START, 1)->effects.lasted_ns, 7);
  cr_assert(to_model_goroutine(run.model, 1, &g));
  cr_assert(g.state == TO_GO_RUNNING && g.m == 0 && g.p == 0 && !g.lower_bound);
  cr_assert_eq(g.since, nth(&run, TW_EV_GO_START, 1)->ev.time);
  cr_assert_eq(to_model_goroutines(run.model), 1);
  done(&run);
}

/* H2, J3, J4, J5 */
Test(model, a_system_call_is_told_to_block_when_its_proc_is_taken) {
  struct run run;
  struct to_thread_now thread;
  struct to_proc_now proc;
  struct to_goroutine g;

  feed(&run, "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=9\n"
             "EventBatch gen=1 m=1 time=200\n"
             "ProcSteal dt=1 p=0 p_seq=2 m=0\n"
             "ProcStart dt=1 p=0 p_seq=3\n");
  const struct reported *steal = nth(&run, TW_EV_PROC_STEAL, 1),
                        *begin = nth(&run, TW_EV_GO_SYSCALL_BEGIN, 1);
  cr_assert(steal->effects.syscall_blocked);
  cr_assert_eq(steal->effects.stolen_from, 0);
  const struct to_blocked_syscall *call = &steal->effects.blocked;
  cr_assert(call->g == 1 && call->m == 0 && call->p == 0 && call->stack == 9 && call->gen == 1);
  cr_assert_eq(call->since, begin->ev.time);
  cr_assert(to_model_thread(run.model, 0, &thread));
  cr_assert(thread.state == TO_THREAD_BLOCKED && thread.g == 1 && thread.p == TO_NONE);
  cr_assert(to_model_thread(run.model, 1, &thread));
  cr_assert(thread.state == TO_THREAD_IDLE && thread.p == 0);
  cr_assert(to_model_proc(run.model, 0, &proc));
  cr_assert(proc.state == TO_PROC_RUNNING && proc.m == 1 && !proc.syscall);
  cr_assert(to_model_goroutine(run.model, 1, &g));
  cr_assert(g.state == TO_GO_SYSCALL && g.blocked && g.m == 0);
  done(&run);
}

/* H1, H2, I16 */
Test(model, a_call_that_ends_blocked_is_told_once) {
  struct run run;

  feed(&run, "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=0\n"
             "ProcStop dt=1\n"
             "GoSyscallEndBlocked dt=4\n");
  cr_assert(nth(&run, TW_EV_PROC_STOP, 1)->effects.syscall_blocked);
  const struct reported *end = nth(&run, TW_EV_GO_SYSCALL_END_BLOCKED, 1);
  cr_assert_not(end->effects.syscall_blocked);
  cr_assert(end->effects.ends && end->effects.lasted_ns == 5);
  done(&run);
}

Test(model, a_proc_in_a_short_call_stays_with_its_thread) {
  struct run run;
  struct to_proc_now proc;

  feed(&run, "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=0\n");
  cr_assert(to_model_proc(run.model, 0, &proc));
  cr_assert(proc.state == TO_PROC_RUNNING && proc.m == 0 && proc.syscall);
  done(&run);
}

/* I12, I13 */
Test(model, a_label_is_of_the_span_that_encloses_it) {
  struct run run;

  feed(&run,
       "Trace Go1.26\n" START "GoLabel dt=1 label_string=6\n"
       "GoStop dt=3 reason_string=5 stack=0\n"
       "GoStart dt=1 g=1 g_seq=1\n"
       "GoStop dt=3 reason_string=5 stack=0\n" TABLE "Strings\nString id=5 data=\"preempted\"\n"
       "String id=6 data=\"idle mark\"\n");
  cr_assert_str_eq(nth(&run, TW_EV_GO_STOP, 1)->label, "idle mark");
  cr_assert_str_eq(nth(&run, TW_EV_GO_START, 1)->label, "");
  cr_assert_str_eq(nth(&run, TW_EV_GO_STOP, 2)->label, "");
  cr_assert_eq(nth(&run, TW_EV_GO_STOP, 2)->effects.reason, TO_REASON_PREEMPTED);
  done(&run);
}

/* H3 */
Test(model, a_range_that_was_there_before_the_first_sync_is_a_lower_bound) {
  struct run run;
  to_ns since;
  bool lower_bound;

  feed(&run, "Trace Go1.26\n" START "GCActive dt=10 gc_seq=1\n"
             "STWBegin dt=1 kind_string=5 stack=0\n"
             "ProcsChange dt=1 procs_value=8 stack=0\n"
             "STWEnd dt=20\n"
             "GCMarkAssistBegin dt=1 stack=0\n");
  const struct reported *stw = nth(&run, TW_EV_STW_END, 1);
  cr_assert(stw->effects.ends && stw->effects.lasted_ns == 21 && !stw->effects.lower_bound);
  cr_assert_not(to_model_range(run.model, TO_RANGE_STW, 1, &since, &lower_bound));
  cr_assert(to_model_range(run.model, TO_RANGE_GC_MARK, 0, &since, &lower_bound));
  cr_assert(lower_bound);
  cr_assert_eq(since, run.reported[0].ev.time);
  cr_assert(to_model_range(run.model, TO_RANGE_GC_MARK_ASSIST, 1, &since, &lower_bound));
  cr_assert_not(lower_bound);
  cr_assert_eq(to_model_gomaxprocs(run.model), 8);
  to_model_epoch(run.model);
  cr_assert_eq(to_model_gomaxprocs(run.model), 0, "another program may follow");
  done(&run);
}

/* J1, J2: threads that run goroutines or do not, and no proc in sight. */
Test(model, a_thread_is_idle_running_in_a_call_and_blocked_in_it) {
  struct run run;

  feed(&run, "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=0\n"
             "EventBatch gen=1 m=1 time=200\n"
             "ProcSteal dt=1 p=0 p_seq=2 m=0\n"
             "ProcStart dt=1 p=0 p_seq=3\n"
             "ProcStop dt=10\n"
             "EventBatch gen=1 m=0 time=300\n"
             "GoSyscallEndBlocked dt=1\n");
  const struct to_effects *begin = &nth(&run, TW_EV_GO_SYSCALL_BEGIN, 1)->effects;
  cr_assert_eq(nth(&run, TW_EV_GO_STATUS, 1)->effects.threads, 0, "it ran before, too");
  cr_assert_eq(begin->threads, 1);
  cr_assert(begin->thread[0].m == 0 && begin->thread[0].g == 1);
  cr_assert(begin->thread[0].from == TO_THREAD_RUNNING && begin->thread[0].to == TO_THREAD_SYSCALL);
  cr_assert(begin->thread[0].lower_bound);
  const struct to_effects *steal = &nth(&run, TW_EV_PROC_STEAL, 1)->effects;
  cr_assert_eq(steal->threads, 1);
  cr_assert(steal->thread[0].m == 0 && steal->thread[0].to == TO_THREAD_BLOCKED);
  cr_assert_eq(steal->thread[0].lasted_ns,
               (uint64_t)(nth(&run, TW_EV_PROC_STEAL, 1)->ev.time -
                          nth(&run, TW_EV_GO_SYSCALL_BEGIN, 1)->ev.time));
  cr_assert_not(steal->thread[0].lower_bound);
  const struct to_effects *end = &nth(&run, TW_EV_GO_SYSCALL_END_BLOCKED, 1)->effects;
  cr_assert_eq(end->threads, 1);
  cr_assert(end->thread[0].from == TO_THREAD_BLOCKED && end->thread[0].to == TO_THREAD_IDLE);
  cr_assert_eq(end->thread[0].g, TO_NONE);
  cr_assert_eq(nth(&run, TW_EV_PROC_START, 1)->effects.threads, 0, "procs are not shown");
  done(&run);
}

/* As Go 1.25 does: the proc first, the end of the call then. */
Test(model, a_blocked_thread_that_gets_a_proc_is_blocked_until_its_call_ends) {
  struct run run;

  feed(&run, "Trace Go1.26\n" START "GoSyscallBegin dt=5 p_seq=1 stack=0\n"
             "EventBatch gen=1 m=1 time=200\n"
             "ProcSteal dt=1 p=0 p_seq=2 m=0\n"
             "EventBatch gen=1 m=0 time=300\n"
             "ProcStart dt=1 p=0 p_seq=3\n"
             "GoSyscallEndBlocked dt=1\n");
  cr_assert_eq(nth(&run, TW_EV_PROC_START, 1)->effects.threads, 0);
  const struct to_effects *end = &nth(&run, TW_EV_GO_SYSCALL_END_BLOCKED, 1)->effects;
  cr_assert_eq(end->threads, 1);
  cr_assert(end->thread[0].from == TO_THREAD_BLOCKED && end->thread[0].to == TO_THREAD_IDLE);
  done(&run);
}

/* J7, J8, H5 */
Test(model, generations_begin_and_end_and_gomaxprocs_is_told_at_each) {
  struct run run;

  feed(&run, "Trace Go1.26\n" START "ProcsChange dt=1 procs_value=8 stack=0\n"
             "EventBatch gen=2 m=0 time=900\n"
             "ProcStatus dt=1 p=0 pstatus=1\n"
             "GoStatus dt=1 g=1 m=0 gstatus=2\n"
             "ProcsChange dt=1 procs_value=4 stack=0\n");
  const struct to_effects *first = &nth(&run, TW_EV_SYNC, 1)->effects,
                          *second = &nth(&run, TW_EV_SYNC, 2)->effects,
                          *last = &nth(&run, TW_EV_SYNC, 3)->effects;
  cr_assert(first->generation_begins == 1 && first->generation_ends == 0 && first->gomaxprocs == 0);
  cr_assert(second->generation_begins == 2 && second->generation_ends == 1);
  cr_assert_eq(second->gomaxprocs, 8, "what held as the first one ended");
  cr_assert(last->generation_begins == 0 && last->generation_ends == 2 && last->gomaxprocs == 4);
  cr_assert_eq(nth(&run, TW_EV_PROCS_CHANGE, 2)->effects.gomaxprocs, 4);
  cr_assert_eq(nth(&run, TW_EV_GO_STATUS, 1)->effects.gomaxprocs, 0, "nothing to tell");
  done(&run);
}

/* I17 */
Test(model, a_sample_that_names_another_goroutine_than_its_thread_runs_is_flagged) {
  struct run run;

  feed(&run, "Trace Go1.26\n" START "GoDestroy dt=50\n" TABLE "CPUSamples\n"
             "CPUSample time=120 m=0 p=0 g=1 stack=0\n"
             "CPUSample time=190 m=0 p=0 g=1 stack=0\n");
  cr_assert_not(nth(&run, TW_EV_CPU_SAMPLE, 1)->effects.context_mismatch);
  cr_assert(nth(&run, TW_EV_CPU_SAMPLE, 2)->effects.context_mismatch);
  cr_assert_eq(to_model_goroutines(run.model), 0);
  done(&run);
}

/* The context in which the orderer saw an event is where the model has thread, proc and goroutine. */
static tb_rc compare(void *self, const struct to_generation *gen, const struct to_event *events,
                     size_t n) {
  struct to_model *model = self;

  for (; n > 0; n--, events++) {
    struct to_thread_now thread;
    struct to_effects effects;
    if (events->type != TW_EV_CPU_SAMPLE && to_model_thread(model, events->m, &thread)) {
      cr_assert_eq(thread.g, events->g, "%s at %lld: goroutine %lld, not %lld",
                   tw_spec(events->type)->name, (long long)events->time, (long long)thread.g,
                   (long long)events->g);
      if (events->type != TW_EV_GO_DESTROY_SYSCALL) /* its proc went with the ProcSteal before it */
        cr_assert_eq(thread.p, events->p, "%s at %lld: proc %lld, not %lld",
                     tw_spec(events->type)->name, (long long)events->time, (long long)thread.p,
                     (long long)events->p);
    }
    TB_TRY(to_model_event(model, gen, events, &effects));
  }
  return TB_OK;
}

static void follow(const struct tt_stored *trace) {
  struct tb_mem mem;
  struct to_model *model;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  cr_assert_eq(to_model_new(&mem, &model), TB_OK);
  read_trace(&mem, (struct to_event_sink){ model, compare }, trace->bytes, trace->len, trace->path);
  cr_assert_gt(to_model_goroutines(model), 0, "%s", trace->path);
  to_model_free(model);
  cr_assert_eq(mem.bytes, 0, "%s", trace->path);
}

/* G6, J3: any goroutine, thread and proc, asked after each event. */
Test(model, is_where_the_orderer_is_at_every_event_of_real_traces, .timeout = 200) {
  cr_assert_gt(tt_each_stored("tests/data", SIZE_MAX, follow), 4);
}
