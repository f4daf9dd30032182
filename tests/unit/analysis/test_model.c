/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/model.h"
#include "support/caller.h"
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
  cr_assert_fail("line %d: no such %s", tt_caller, tw_spec(type)->name);
  return NULL;
}
#define nth(...) TT_CALL(nth(__VA_ARGS__))

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

/* Its goroutine comes with the call. The P that it leaves behind blocks no call: the call ends. */
Test(model, a_c_thread_was_idle_before_its_call_and_its_last_call_does_not_block) {
  struct run run;

  feed(&run, "Trace Go1.26\nEventBatch gen=1 m=0 time=0\n"
             "GoCreateSyscall dt=1 new_g=4\n"
             "ProcStatus dt=1 p=0 pstatus=2\n"
             "ProcStart dt=1 p=0 p_seq=1\n"
             "GoSyscallEndBlocked dt=1\n"
             "GoStart dt=1 g=4 g_seq=1\n"
             "GoSyscallBegin dt=1 p_seq=2 stack=0\n"
             "GoDestroySyscall dt=1\n");
  const struct to_effects *create = &nth(&run, TW_EV_GO_CREATE_SYSCALL, 1)->effects;
  cr_assert_eq(create->threads, 1);
  cr_assert(create->thread[0].from == TO_THREAD_IDLE && create->thread[0].to == TO_THREAD_BLOCKED);
  cr_assert_eq(create->thread[0].g, 4);
  cr_assert_not(nth(&run, TW_EV_PROC_STEAL, 1)->effects.syscall_blocked);
  const struct to_effects *destroy = &nth(&run, TW_EV_GO_DESTROY_SYSCALL, 1)->effects;
  cr_assert_eq(destroy->thread[0].from, TO_THREAD_SYSCALL);
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
Test(model, is_where_the_orderer_is_at_every_event_of_real_traces) {
  cr_assert_gt(tt_each_stored("tests/data", SIZE_MAX, follow), 4);
}

/* --- durations alone --------------------------------------------------------------------------- */

static struct tb_mem mem;
static struct to_model *durations;

static void init(void) {
  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  cr_assert_eq(to_model_new_durations(&mem, &durations), TB_OK);
}

static void fini(void) {
  to_model_free(durations);
  cr_assert_eq(mem.bytes, 0);
}

TestSuite(durations, .init = init, .fini = fini);

static struct to_event on_g(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){ .type = type, .time = time, .m = 1, .p = 0, .g = g };
}

static struct to_event about(uint8_t type, to_ns time, int64_t g) {
  return (struct to_event){ .type = type,
                            .time = time,
                            .m = 1,
                            .p = 0,
                            .g = TO_NONE,
                            .args = { (uint64_t)g },
                            .slot = (uint32_t)g };
}

static struct to_event status(uint8_t type, to_ns time, int64_t g, enum to_go_state before,
                              enum tw_go_status now) {
  struct to_event ev = about(type, time, g);

  ev.args[2] = (uint64_t)before << 32 | now;
  return ev;
}

static struct to_duration feed_one(struct to_event ev) {
  struct to_duration lasted;

  cr_assert_eq(to_model_durations(durations, NULL, &ev, 1, &lasted), TB_OK);
  return lasted;
}

#define LASTS(event, ns_)                                                                          \
  do {                                                                                             \
    struct to_duration lasted_ = feed_one(event);                                                  \
    cr_assert(lasted_.known && !lasted_.lower_bound);                                              \
    cr_assert_eq(lasted_.ns, ns_, "%lu", lasted_.ns);                                              \
  } while (0)
#define LASTS_NOTHING(event) cr_assert_not(feed_one(event).known)

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
  feed_one(about(TW_EV_GO_CREATE, 60, 8)); /* the first event: so long 7 has been there, too */
  feed_one(status(TW_EV_GO_STATUS, 100, 7, TO_GO_UNDETERMINED, TW_GO_WAITING));
  struct to_duration lasted = feed_one(about(TW_EV_GO_UNBLOCK, 150, 7));
  cr_assert(lasted.known && lasted.lower_bound);
  cr_assert_eq(lasted.ns, 90);
  feed_one(status(TW_EV_GO_STATUS_STACK, 170, 7, TO_GO_RUNNABLE,
                  TW_GO_RUNNABLE)); /* the next generation says so again */
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
  feed_one(about(TW_EV_GO_CREATE, 1, 7));
  feed_one(on_g(TW_EV_USER_REGION_BEGIN, 10, 7));
  feed_one(on_g(TW_EV_USER_REGION_BEGIN, 20, 7));
  LASTS(on_g(TW_EV_USER_REGION_END, 25, 7), 5);
  LASTS(on_g(TW_EV_USER_REGION_END, 35, 7), 25);
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 36, 7));
  feed_one(on_g(TW_EV_USER_REGION_BEGIN, 40, 7));
  feed_one(on_g(TW_EV_GO_DESTROY, 50, 7));
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 60, 7));
}

Test(durations, an_epoch_forgets_what_is_open) {
  feed_one(about(TW_EV_GO_CREATE, 100, 7));
  to_model_epoch(durations);
  LASTS_NOTHING(about(TW_EV_GO_START, 130, 7));
  feed_one(status(TW_EV_GO_STATUS, 150, 8, TO_GO_UNDETERMINED, TW_GO_RUNNABLE));
  cr_assert_eq(feed_one(about(TW_EV_GO_START, 170, 8)).ns, 40, "since the epoch's first event");
}

/* The first goroutine that has no room. */
static int64_t create_until_refused(void) {
  struct to_duration lasted;
  int64_t g = 0;

  mem.bytes_max = 64 << 10;
  for (tb_rc rc = TB_OK; rc == TB_OK;) {
    struct to_event ev = about(TW_EV_GO_CREATE, 1, ++g);
    rc = to_model_durations(durations, NULL, &ev, 1, &lasted);
    cr_assert(rc == TB_OK || rc == TB_BUDGET);
  }
  return g;
}

Test(durations, without_memory_a_span_has_no_duration_and_the_others_do) {
  create_until_refused();
  LASTS(about(TW_EV_GO_START, 1000000, 1), 999999);
}

Test(durations, of_a_slice_are_known_beside_one_that_finds_no_memory) {
  int64_t refused = create_until_refused();
  const struct to_event slice[] = { about(TW_EV_GO_START, 11, 1),
                                    about(TW_EV_GO_CREATE, 12, refused),
                                    on_g(TW_EV_GO_BLOCK, 15, 1), about(TW_EV_GO_START, 16, refused),
                                    about(TW_EV_GO_UNBLOCK, 18, 1) };
  struct to_duration lasted[5];

  cr_assert_eq(to_model_durations(durations, NULL, slice, 5, lasted), TB_BUDGET);
  cr_assert(lasted[0].known && lasted[0].ns == 10);
  cr_assert_not(lasted[1].known);
  cr_assert(lasted[2].known && lasted[2].ns == 4);
  cr_assert_not(lasted[3].known);
  cr_assert(lasted[4].known && lasted[4].ns == 3);
}

/* Each with so much memory beside what is used: enough for none of its own, or for that but not for the table's growth.
 * Answers how many find none; what was refused is tried again. */
static int begin_regions(size_t spare) {
  to_ns began[201];
  int refused = 0;

  for (int64_t g = 1; g <= 200; g++) LASTS_NOTHING(about(TW_EV_GO_CREATE, g, g));
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 201, 1)); /* the tables are there */
  LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 202, 2));
  for (int64_t g = 3; g <= 200; g++) {
    struct to_event begin = on_g(TW_EV_USER_REGION_BEGIN, 210, g);
    struct to_duration lasted;
    size_t bytes = mem.bytes;
    mem.bytes_max = bytes + spare;
    tb_rc rc = to_model_durations(durations, NULL, &begin, 1, &lasted);
    mem.bytes_max = 1 << 20;
    began[g] = rc == TB_OK ? 210 : 240;
    if (rc == TB_OK) continue;
    cr_assert_eq(rc, TB_BUDGET);
    cr_assert_leq(mem.bytes, bytes + spare);
    LASTS_NOTHING(on_g(TW_EV_USER_REGION_END, 220, g));
    LASTS_NOTHING(on_g(TW_EV_USER_REGION_BEGIN, 240, g));
    refused++;
  }
  for (int64_t g = 3; g <= 200; g++)
    LASTS(on_g(TW_EV_USER_REGION_END, 247, g), (uint64_t)(247 - began[g]));
  return refused;
}

Test(durations, a_region_without_memory_leaves_nothing_behind) {
  cr_assert_eq(begin_regions(0), 198);
}

Test(durations, a_region_without_room_in_its_table_leaves_nothing_behind) {
  int refused = begin_regions(512); /* a region has room, a larger table has none */

  cr_assert(refused > 0 && refused < 10, "%d: the table grows a few times", refused);
}

Test(durations, a_range_under_way_is_a_lower_bound_until_it_was_seen_to_begin) {
  static const struct {
    uint8_t active, begin, end;
  } ranges[] = { { TW_EV_GC_SWEEP_ACTIVE, TW_EV_GC_SWEEP_BEGIN, TW_EV_GC_SWEEP_END },
                 { TW_EV_GC_MARK_ASSIST_ACTIVE, TW_EV_GC_MARK_ASSIST_BEGIN,
                   TW_EV_GC_MARK_ASSIST_END } };

  feed_one(about(TW_EV_GO_CREATE, 5, 9));
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    feed_one(about(ranges[i].active, 10, 0)); /* of goroutine 0, or proc 0 */
    struct to_duration lasted = feed_one(on_g(ranges[i].end, 30, 0));
    cr_assert(lasted.known && lasted.lower_bound && lasted.ns == 25);
    feed_one(on_g(ranges[i].begin, 40, 0));
    feed_one(about(ranges[i].active, 50, 0)); /* the next generation says so again */
    LASTS(on_g(ranges[i].end, 60, 0), 20);
  }
}
