/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of a stream on the feed, from ordered events written by hand. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collector/analysis/feed_encoder.h"
#include "collector/analysis/private.h"
#include "pack/report.h"
#include "pack/report_read.h"
#include "proto/meta.pb-c.h"
#include "support/patience.h"
#include "unit/collector/feed/feed_ear.h"
#include "unit/online/analysis/fake_generation.h"

#define MS INT64_C(1000000)

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [1] = "order", [2] = "GC mark termination", [3] = "paid \xff", [4] = "bill" },
  .stack = { [1] = { { 100, 7, "read", "io.c" }, { 200, 9, "main", "main.c" } },
             [3] = { { 300, 1, "tracecollect.invalid/traceagent._Cfunc_ta_forward_write", "" } } },
  .clock = { .trace_ns = 1000, .wall_s = 5, .wall_ns = 0 },
};

struct bench {
  struct tt_ear ear;
  struct tt_analyses t;
  struct tc_metrics metrics;
  struct tc_feed_encoder *source;
};
static struct bench b;

/* Built-in rules that have fired: how many, and the last one. */
static struct {
  unsigned n;
  uint64_t gen;
  to_ns at;
  char rule[40], words[200];
} passed;

static void on_passed(void *self, const char *rule, const char *words, uint64_t gen, to_ns at) {
  (void)self;
  passed.n++;
  passed.gen = gen;
  passed.at = at;
  snprintf(passed.rule, sizeof passed.rule, "%s", rule);
  snprintf(passed.words, sizeof passed.words, "%s", words);
}

/* Spans that exceeded a threshold: all of them, whatever the alerts' limits are. */
static struct {
  unsigned n, known;
  to_ns longest;
  char kind[20], cause[60];
  struct tc_exceeded_text text;
} exceeded;

static struct tc_exceeded_text *on_exceeded(void *self, const struct tc_exceeded *span) {
  (void)self;
  exceeded.n++;
  exceeded.known += span->is_known;
  snprintf(exceeded.kind, sizeof exceeded.kind, "%s", span->kind);
  snprintf(exceeded.cause, sizeof exceeded.cause, "%s", span->cause);
  if (span->end - span->begin <= exceeded.longest) return NULL;
  exceeded.longest = span->end - span->begin;
  return &exceeded.text;
}

static void begin(const char *const *sets) {
  static const struct tc_reply said = { .service = "shop",
                                        .instance = "host:1",
                                        .stream_id = { 0xab, 0xcd } };
  struct tc_reply stored = { .gen = 1, .len = 100, .first_wall_ns = 10, .end_wall_ns = 20 };

  tt_ear_open(&b.ear, sets);
  struct tc_feed_encoder_env env = { b.ear.feed, 0,           &b.ear.config, &b.metrics,
                                     on_passed,  on_exceeded, NULL };
  cr_assert_eq(tc_feed_encoder_new(&env, &said, &b.source), TB_OK);
  tt_analyses_open(&b.t, 10 * MS, 100);
  tc_feed_encoder_watch(b.source, b.t.a);
  tc_feed_encoder_begin(b.source, &stored, true);
}

static void end(void) {
  tc_feed_encoder_free(b.source);
  tt_analyses_close(&b.t);
  tt_ear_close(&b.ear);
}

#define FEED(...)                                                                                  \
  do {                                                                                             \
    struct to_event event_ = { __VA_ARGS__ };                                                      \
    cr_assert_eq(to_analyses_events(b.t.a, &gen1, &event_, 1), TB_OK);                             \
    tc_feed_encoder_slice(b.source);                                                               \
  } while (0)

static void sync_event(to_ns time) {
  FEED(.time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC, .args = { 1 });
}

/* A goroutine that occurs for the first time gets a status in the trace: it runs. */
static void runs(to_ns time, int64_t m, int64_t g) {
  static bool is_known[64];

  if (is_known[g]) return;
  is_known[g] = true;
  FEED(.time = time, .m = m, .p = m, .g = TO_NONE, .slot = (uint32_t)g + 1, .type = TW_EV_GO_STATUS,
       .args = { (uint64_t)g, (uint64_t)m, TW_GO_RUNNING });
}

static void call(to_ns from, to_ns to, int64_t m, int64_t g, bool blocked) {
  runs(from, m, g);
  FEED(.time = from, .m = m, .p = m, .g = g, .type = TW_EV_GO_SYSCALL_BEGIN, .args = { 1, 1 });
  if (to > from)
    FEED(.time = to, .m = m, .p = TO_NONE, .g = g,
         .type = blocked ? TW_EV_GO_SYSCALL_END_BLOCKED : TW_EV_GO_SYSCALL_END);
  if (to > from && blocked)
    FEED(.time = to, .m = m, .p = m, .g = TO_NONE, .slot = (uint32_t)g + 1, .type = TW_EV_GO_START,
         .args = { (uint64_t)g, 1 });
}

static void stop(to_ns from, to_ns to) {
  FEED(.time = from, .m = 1, .p = 0, .g = 7, .type = TW_EV_STW_BEGIN, .args = { 2, 1 });
  FEED(.time = to, .m = 1, .p = 0, .g = 7, .type = TW_EV_STW_END);
}

static void verdict(uint32_t code, const char *reason) {
  struct tc_verdict v = { .gen = 1,
                          .code = code,
                          .events = 3,
                          .first_ns = 1000,
                          .last_ns = 2000,
                          .thread = TB_NO_THREAD,
                          .offset = 77 };

  strcpy(v.reason, reason);
  tc_feed_encoder_overdue(b.source);
  tc_feed_encoder_end(b.source, &v);
}

static const Tracecollect__V1__FeedMessage *hear(const char *kind, size_t n) {
  char topic[128];

  tc_feed_encoder_pause(b.source, UINT64_MAX);
  snprintf(topic, sizeof topic, "shop/host:1/%s", kind);
  return tt_ear_wait(&b.ear, topic, n);
}

static const Tracecollect__V1__GenerationNote *hear_generation(size_t n) {
  return hear("generation", n)->generations[0];
}

/* Messages may have been joined into bundles. */
static const Tracecollect__V1__Alert *hear_alert(size_t n) {
  size_t bundle = 0;

  for (; n >= hear("alert", bundle)->n_alerts; bundle++) n -= hear("alert", bundle)->n_alerts;
  return hear("alert", bundle)->alerts[n];
}

static size_t count(const char *kind) {
  char topic[128];

  snprintf(topic, sizeof topic, "shop/host:1/%s", kind);
  return tt_ear_count(&b.ear, topic);
}

Test(feed_source, a_generation_has_a_begin_and_an_end) {
  begin(NULL);
  sync_event(1000);
  verdict(TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "");
  const Tracecollect__V1__GenerationNote *first = hear_generation(0), *last = hear_generation(1);
  cr_assert_eq(first->state, TRACECOLLECT__V1__GENERATION_STATE__GENERATION_BEGIN);
  cr_assert(first->new_epoch);
  cr_assert_eq(first->bytes, 100);
  cr_assert_eq(hear("generation", 0)->from_wall_ns, 10);
  cr_assert_eq(hear("generation", 0)->until_wall_ns, 20);
  cr_assert_eq(last->state, TRACECOLLECT__V1__GENERATION_STATE__GENERATION_END);
  cr_assert_eq(last->events, 3);
  cr_assert_eq(last->last_ns, 2000);
  cr_assert_eq(hear("generation", 1)->from_wall_ns, 5000000000);
  cr_assert_eq(hear("generation", 1)->until_wall_ns, 5000001000);
  cr_assert_eq(hear("generation", 1)->stream.data[1], 0xcd);
  end();
}

/* I1 */
Test(feed_source, messages_have_the_version_of_the_trace_once_it_is_known) {
  begin(NULL);
  cr_assert_eq(hear("generation", 0)->go_version, 0);
  tc_feed_encoder_version(b.source, 26);
  sync_event(1000);
  stop(2000, 5000);
  verdict(TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "");
  cr_assert_eq(hear("generation", 1)->go_version, 26);
  cr_assert_eq(hear("event/stw", 0)->go_version, 26);
  end();
}

Test(feed_source, a_broken_generation_says_where_and_why) {
  begin(NULL);
  verdict(TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN, "goroutine 7 started twice");
  const Tracecollect__V1__GenerationNote *note = hear_generation(1);
  cr_assert_eq(note->state, TRACECOLLECT__V1__GENERATION_STATE__GENERATION_BROKEN);
  cr_assert_str_eq(note->reason, "goroutine 7 started twice");
  cr_assert_eq(note->offset, 77);
  end();
}

Test(feed_source, what_the_store_tells_is_told) {
  struct tc_reply archived = { .kind = TC_REPLY_ARCHIVED,
                               .gen = 4,
                               .last_gen = 6,
                               .bytes = 500,
                               .path = "archive/x/y/z.trace" },
                  lost = { .kind = TC_REPLY_LOST,
                           .gen = 7,
                           .last_gen = 9,
                           .batches = 11,
                           .bytes = 300,
                           .loss_text = "its end does not parse" };

  begin(NULL);
  tc_feed_encoder_reported(b.source, &archived);
  tc_feed_encoder_reported(b.source, &lost);
  const Tracecollect__V1__GenerationNote *note = hear_generation(1);
  cr_assert_eq(note->state, TRACECOLLECT__V1__GENERATION_STATE__GENERATION_ARCHIVED);
  cr_assert_str_eq(note->path, "archive/x/y/z.trace");
  cr_assert_str_eq(note->fetch, "tracectl fetch --stream abcd0000000000000000000000000000 "
                                "--gen 4..6 -o shop-4.trace");
  note = hear_generation(2);
  cr_assert_eq(note->state, TRACECOLLECT__V1__GENERATION_STATE__GENERATION_LOST);
  cr_assert_eq(note->batches, 11);
  cr_assert_str_eq(note->reason, "its end does not parse");
  cr_assert_eq(hear("generation", 2)->generation, 9);
  end();
}

Test(feed_source, tasks_and_logs_carry_their_text_and_stack) {
  begin(NULL);
  sync_event(1000);
  FEED(.time = 1100, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_TASK_BEGIN,
       .args = { 42, TO_NO_TASK, 1, 1 });
  FEED(.time = 1200, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_LOG, .args = { 42, 4, 3, 0 });
  FEED(.time = 1300, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_TASK_END, .args = { 42, 0, 8, 1 });
  const Tracecollect__V1__Event *task = hear("event/tasks", 0)->events[0];
  cr_assert_str_eq(task->id, "/task/begin");
  cr_assert_str_eq(task->name, "order");
  cr_assert_eq(task->task, 42);
  cr_assert_eq(task->parent_task, 0);
  cr_assert_eq(task->goroutine, 9);
  cr_assert_eq(task->thread, 3);
  cr_assert_eq(task->proc, 2);
  cr_assert_eq(task->wall_ns, 5000000100);
  cr_assert_eq(task->n_stack, 2);
  cr_assert_str_eq(task->stack[0]->function, "read");
  cr_assert_eq(task->stack[1]->line, 9);
  const Tracecollect__V1__Event *log = hear("event/logs", 0)->events[0];
  cr_assert_str_eq(log->id, "/log");
  cr_assert_str_eq(log->name, "bill");
  cr_assert_str_eq(log->text, "paid \xEF\xBF\xBD", "what is not UTF-8 is replaced");
  end();
}

Test(feed_source, a_stack_number_means_another_stack_in_the_next_generation) {
  static struct to_generation gen2;
  struct tc_reply stored = { .gen = 2 };

  gen2 = gen1;
  gen2.number = 2;
  gen2.stack[1][0] = (struct tt_fake_frame){ 300, 1, "write", "io.c" };
  begin(NULL);
  sync_event(1000);
  for (int i = 0; i < 2; i++)
    FEED(.time = 1100 + i, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_LOG, .args = { 42, 4, 3, 1 });
  tc_feed_encoder_begin(b.source, &stored, false);
  struct to_event log = {
    .time = 1200, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_LOG, .args = { 42, 4, 3, 1 }
  };
  cr_assert_eq(to_analyses_events(b.t.a, &gen2, &log, 1), TB_OK);
  size_t heard = 0;
  for (size_t i = 0; heard < 3; i++) {
    const Tracecollect__V1__FeedMessage *m = hear("event/logs", i);
    for (size_t k = 0; k < m->n_events; k++, heard++) {
      cr_assert_eq(m->events[k]->n_stack, 2);
      cr_assert_str_eq(m->events[k]->stack[0]->function, heard < 2 ? "read" : "write");
    }
  }
  end();
}

Test(feed_source, stops_and_blocked_calls_are_told_with_their_length) {
  begin(NULL);
  sync_event(1000);
  stop(2000, 5000);
  call(6000, 9000, 4, 12, true);
  call(10000, 10100, 4, 12, false); /* the thread kept its P: not blocked */
  const Tracecollect__V1__Event *stw = hear("event/stw", 0)->events[0];
  cr_assert_str_eq(stw->id, "/stw/gc/mark-termination");
  cr_assert_str_eq(stw->reason, "GC mark termination");
  cr_assert_eq(stw->duration_ns, 3000);
  cr_assert_eq(stw->time_ns, 5000);
  cr_assert_eq(stw->goroutine, 7);
  cr_assert_eq(stw->proc, -1);
  const Tracecollect__V1__FeedMessage *m = hear("event/syscall-blocked", 0);
  cr_assert_eq(m->n_events, 1);
  cr_assert_str_eq(m->events[0]->id, "/syscall/unblocked");
  cr_assert_eq(m->events[0]->from, TRACECOLLECT__V1__GO_STATE__GO_SYSCALL);
  cr_assert_eq(m->events[0]->to, TRACECOLLECT__V1__GO_STATE__GO_RUNNABLE);
  cr_assert_eq(m->events[0]->duration_ns, 3000);
  cr_assert_eq(m->from_wall_ns, 5000005000);
  cr_assert_eq(m->until_wall_ns, 5000008000);
  end();
}

Test(feed_source, kinds_that_are_not_listed_are_not_told) {
  static const char *const sets[] = { "feed.events=logs", "feed.windows=", NULL };

  begin(sets);
  sync_event(1000);
  stop(2000, 5000);
  FEED(.time = 6000, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_LOG, .args = { 42, 4, 3, 0 });
  tc_feed_encoder_report(b.source, TO_ANALYSIS_STW, TO_WINDOW_ALL, 0, "", 0, 1);
  hear("event/logs", 0);
  cr_assert_eq(count("event/stw"), 0);
  cr_assert_eq(count("report/stw"), 0);
  end();
}

static void steal_a_proc(void) {
  sync_event(1000);
  FEED(.time = 1100, .m = 3, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_PROC_START,
       .args = { 2, 1 });
  FEED(.time = 1200, .m = 4, .p = 5, .g = TO_NONE, .type = TW_EV_PROC_STEAL,
       .args = { 2, 2, 3, TW_PROC_SYSCALL });
  FEED(.time = 1300, .m = 4, .p = 5, .g = TO_NONE, .type = TW_EV_PROC_STOP);
  FEED(.time = 1400, .m = 4, .p = TO_NONE, .g = 9, .type = TW_EV_USER_LOG, .args = { 42, 4, 3, 0 });
}

/* J1, J3, J5 */
Test(feed_source, procs_are_published_only_where_they_are_listed) {
  static const char *const sets[] = { "feed.events=logs,procs", NULL };

  begin(NULL);
  steal_a_proc();
  hear("event/logs", 0);
  cr_assert_eq(count("event/procs"), 0);
  end();

  begin(sets);
  steal_a_proc();
  const Tracecollect__V1__FeedMessage *m = hear("event/procs", 0);
  cr_assert_eq(m->n_events, 3);
  cr_assert_str_eq(m->events[0]->id, "/proc/start");
  cr_assert(m->events[0]->thread == 3 && m->events[0]->proc == 2);
  cr_assert_str_eq(m->events[1]->id, "/proc/stolen");
  cr_assert(m->events[1]->thread == 4 && m->events[1]->proc == 2 && m->events[1]->from_thread == 3);
  cr_assert_str_eq(m->events[2]->id, "/proc/stop");
  cr_assert(m->events[2]->thread == 4 && m->events[2]->proc == 5);
  cr_assert_eq(m->events[2]->from_thread, -1);
  end();
}

Test(feed_source, events_beyond_the_rate_are_a_gap) {
  static const char *const sets[] = { "feed.events_rate=3", NULL };

  begin(sets);
  sync_event(1000);
  for (int i = 0; i < 10; i++)
    FEED(.time = 2000 + i, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_LOG, .args = { 1, 4, 3, 0 });
  FEED(.time = 1000 * MS, .m = 3, .p = 2, .g = 9, .type = TW_EV_USER_LOG, .args = { 1, 4, 4, 0 });
  uint64_t expected = 1, lost = 0;
  for (size_t i = 0; expected <= 11; i++) {
    const Tracecollect__V1__FeedMessage *m = hear("event/logs", i);
    lost += m->seq - expected;
    expected = m->seq + m->count;
  }
  cr_assert_eq(lost, 7);
  cr_assert_eq(atomic_load(&tc_feed_metrics(b.ear.feed)->feed_dropped_total), 7);
  end();
}

/* --- reports --- */

Test(feed_source, a_report_is_the_message_that_report_proto_says) {
  const struct tp_report_about about = {
    .stream = NULL, .service = "shop", .instance = "host:1", .broken_generations = 0
  };
  struct tb_buf buf;

  begin(NULL);
  sync_event(1000);
  stop(2000, 5000);
  tb_buf_init(&buf, &b.t.mem);
  cr_assert_eq(tp_report_pack(b.t.a, TO_ANALYSIS_STW, TO_WINDOW_10S, 10, &about, &buf), TB_OK);
  tc_feed_encoder_report(b.source, TO_ANALYSIS_STW, TO_WINDOW_10S, 0, buf.data, buf.len, 1);
  tb_buf_fini(&buf);
  const Tracecollect__V1__FeedMessage *m = hear("report/stw", 0);
  cr_assert_eq(m->n_reports, 1);
  cr_assert_str_eq(m->reports[0]->window, "10s");
  cr_assert_eq(tp_value_distribution(tp_report_figure(m->reports[0]->report, "stopped"))->total_ns,
               3000);
  cr_assert_eq(m->generation, 1);
  cr_assert_eq(m->until_wall_ns, m->reports[0]->until_wall_ns);
  end();
}

static void publish_stw(enum to_window window, uint64_t mono_ns) {
  const struct tp_report_about about = {
    .stream = NULL, .service = "shop", .instance = "host:1", .broken_generations = 0
  };
  struct tb_buf buf;

  tb_buf_init(&buf, &b.t.mem);
  cr_assert_eq(tp_report_pack(b.t.a, TO_ANALYSIS_STW, window, 10, &about, &buf), TB_OK);
  tc_feed_encoder_report(b.source, TO_ANALYSIS_STW, window, 0, buf.data, buf.len, mono_ns);
  tb_buf_fini(&buf);
}

/* Returns the n-th report, from 0. Messages may have been joined into bundles. */
static const Tracecollect__V1__StreamReport *hear_report(const char *kind, size_t n) {
  size_t bundle = 0;

  for (; n >= hear(kind, bundle)->n_reports; bundle++) n -= hear(kind, bundle)->n_reports;
  return hear(kind, bundle)->reports[n];
}

static uint64_t stopped_in(size_t n) {
  const Tracecollect__V1__StreamReport *report = hear_report("report/stw", n);

  return tp_value_distribution(tp_report_figure(report->report, "stopped"))->total_ns;
}

Test(feed_source, a_report_that_says_the_same_comes_every_10_s) {
  const uint64_t s = 1000000000;

  begin(NULL);
  sync_event(1000);
  publish_stw(TO_WINDOW_ALL, 1 * s);
  FEED(.time = 7000, .m = 1, .p = 0, .g = 7, .type = TW_EV_SYNC, .args = { 1 });
  publish_stw(TO_WINDOW_ALL, 2 * s); /* only its stretch differs */
  publish_stw(TO_WINDOW_10S, 2 * s); /* another window */
  publish_stw(TO_WINDOW_ALL, 11 * s - 1);
  stop(8000, 12000);
  publish_stw(TO_WINDOW_ALL, 11 * s - 1);
  publish_stw(TO_WINDOW_ALL, 21 * s - 2);
  publish_stw(TO_WINDOW_ALL, 21 * s - 1);
  cr_assert_eq(stopped_in(0), 0);
  cr_assert_str_eq(hear_report("report/stw", 1)->window, "10s");
  cr_assert_eq(stopped_in(2), 4000, "it says something new");
  cr_assert_eq(stopped_in(3), 4000, "10 s later");
  publish_stw(TO_WINDOW_5MIN, 22 * s);
  cr_assert_str_eq(hear_report("report/stw", 4)->window, "5m", "nothing lies between");
  end();
}

Test(feed_source, the_next_subscriber_gets_each_report) {
  begin(NULL);
  sync_event(1000);
  stop(2000, 5000);
  publish_stw(TO_WINDOW_ALL, 1000);
  hear_report("report/stw", 0);
  cr_assert_eq(tc_feed_encoder_report_windows(b.source), (1u << TO_WINDOWS) - 1);
  tc_feed_reader_want_reports(b.ear.reader, false);
  cr_assert_eq(tc_feed_encoder_report_windows(b.source), 0);
  publish_stw(TO_WINDOW_ALL, 2000);
  tc_feed_reader_want_reports(b.ear.reader, true);
  publish_stw(TO_WINDOW_ALL, 3000);
  cr_assert_str_eq(hear_report("report/stw", 1)->window, "all");
  end();
}

static void many_stacks(struct to_generation *gen, unsigned first, char names[][1024]) {
  for (unsigned i = 1; i <= TT_FAKE_STACKS; i++) {
    memset(names[i], 'a' + (int)i, 1000);
    gen->stack[i][0] =
        (struct tt_fake_frame){ .pc = first + i, .line = 1, .function = names[i], .file = "x.c" };
  }
}

Test(feed_source, a_report_too_long_for_a_message_has_shorter_lists) {
  static const char *const sets[] = { "feed.message_bytes_max=16KiB", NULL };
  static char names[TT_FAKE_STACKS + 1][1024];
  static struct to_generation gen;
  struct tb_buf buf;

  begin(sets);
  sync_event(1000);
  runs(1000, 1, 1);
  gen = gen1;
  for (unsigned round = 0; round < 4; round++) {
    many_stacks(&gen, 100 * (round + 1), names);
    struct to_event sync = {
      .time = 2000 + 100 * round, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC
    };
    cr_assert_eq(to_analyses_events(b.t.a, &gen, &sync, 1), TB_OK);
    for (unsigned i = 1; i <= TT_FAKE_STACKS; i++) {
      struct to_event call[2] = {
        { .time = sync.time + 2 * i,
          .m = 1,
          .p = 1,
          .g = 1,
          .type = TW_EV_GO_SYSCALL_BEGIN,
          .args = { 1, i } },
        { .time = sync.time + 2 * i + 1, .m = 1, .p = 1, .g = 1, .type = TW_EV_GO_SYSCALL_END },
      };
      cr_assert_eq(to_analyses_events(b.t.a, &gen, call, 2), TB_OK);
    }
  }
  const struct tp_report_about about = {
    .stream = NULL, .service = "shop", .instance = "host:1", .broken_generations = 0
  };
  tb_buf_init(&buf, &b.t.mem);
  cr_assert_eq(tp_report_pack(b.t.a, TO_ANALYSIS_SYSCALL, TO_WINDOW_ALL, 256, &about, &buf), TB_OK);
  cr_assert_gt(buf.len, 16 << 10);
  tc_feed_encoder_report(b.source, TO_ANALYSIS_SYSCALL, TO_WINDOW_ALL, 0, buf.data, buf.len, 1);
  tb_buf_fini(&buf);
  const Tracecollect__V1__Report *r = hear("report/syscall", 0)->reports[0]->report;
  struct tp_table stacks;
  cr_assert_eq(tp_value_distribution(tp_report_figure(r, "calls"))->count, 4 * TT_FAKE_STACKS,
               "the sums are whole");
  cr_assert(tp_report_table(r, "by_stack", &stacks));
  cr_assert_lt(stacks.table->n_rows, 4 * TT_FAKE_STACKS);
  cr_assert_gt(stacks.table->n_rows, 0);
  cr_assert_eq(stacks.table->rows_total, 4 * TT_FAKE_STACKS);
  end();
}

/* --- alerts --- */

Test(feed_source, no_alert_where_none_is_configured) {
  begin(NULL);
  sync_event(1000);
  stop(2000, 900 * MS);
  call(901 * MS, 990 * MS, 4, 12, true);
  verdict(TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "");
  hear_generation(1);
  cr_assert_eq(count("alert"), 0);
  cr_assert_eq(atomic_load(&b.metrics.alerts_total), 0);
  end();
}

Test(feed_source, a_world_that_stands_too_long_is_an_alert) {
  static const char *const sets[] = { "alert.stw=2ms", NULL };

  begin(sets);
  sync_event(1000);
  stop(1 * MS, 2 * MS);
  stop(10 * MS, 12 * MS); /* exactly as long as the threshold */
  const Tracecollect__V1__FeedMessage *m = hear("alert", 0);
  const Tracecollect__V1__Alert *a = m->alerts[0];
  cr_assert_eq(m->seq, 1);
  cr_assert_eq(a->kind, TRACECOLLECT__V1__ALERT_KIND__ALERT_STW);
  cr_assert_str_eq(a->id, "/stw/gc/mark-termination");
  cr_assert_eq(a->duration_ns, 2 * MS);
  cr_assert_eq(a->threshold_ns, 2 * MS);
  cr_assert_eq(a->begin_ns, 10 * MS);
  cr_assert_eq(a->n_stack, 2);
  cr_assert_str_eq(a->text, "shop/host:1: world stopped for 2.000 ms in read, goroutine 7");
  cr_assert_eq(passed.n, 1);
  cr_assert_eq(passed.gen, 1);
  cr_assert_eq(passed.at, 12 * MS);
  cr_assert_str_eq(passed.rule, "alert.stw");
  cr_assert_str_eq(passed.words, "world stopped for 2.000 ms in read, goroutine 7");
  cr_assert_eq(exceeded.n, 1);
  cr_assert_str_eq(exceeded.kind, "long_stop");
  cr_assert_str_eq(exceeded.cause, "/stw/gc/mark-termination");
  cr_assert_str_eq(exceeded.text.words, passed.words);
  cr_assert_str_eq(exceeded.text.why, "");
  cr_assert_str_eq(a->why, "");
  /* a quarter of its length and a millisecond before and after */
  cr_assert_str_eq(a->fetch, "tracectl fetch --stream abcd0000000000000000000000000000 "
                             "--since @5.008499000 --until @5.013499000 -o shop-1.trace");
  end();
}

Test(feed_source, a_call_that_blocks_too_long_is_an_alert_when_it_ends) {
  static const char *const sets[] = { "alert.syscall_blocked=5ms", NULL };

  begin(sets);
  sync_event(1000);
  call(1 * MS, 5 * MS, 4, 12, true); /* shorter than the threshold */
  /* the thread kept its P, and the call is below syscall.blocked_after */
  call(10 * MS, 18 * MS, 4, 12, false);
  cr_assert_eq(atomic_load(&b.metrics.alerts_total), 0);
  call(20 * MS, 25 * MS, 4, 12, true);
  const Tracecollect__V1__Alert *a = hear("alert", 0)->alerts[0];
  cr_assert_eq(a->kind, TRACECOLLECT__V1__ALERT_KIND__ALERT_SYSCALL_BLOCKED);
  cr_assert_eq(a->duration_ns, 5 * MS);
  cr_assert_eq(a->goroutine, 12);
  cr_assert_eq(a->thread, 4);
  cr_assert_not(a->open);
  cr_assert_str_eq(a->text, "shop/host:1: system call blocked for 5.000 ms in read, goroutine 12");
  cr_assert_str_eq(exceeded.text.why, "goroutine=12&ns=22500000");
  cr_assert_not_null(strstr(a->why, "&goroutine=12&ns=22500000"));
  cr_assert_eq(passed.n, 1);
  cr_assert_str_eq(passed.rule, "alert.syscall_blocked");
  end();
}

Test(feed_source, a_call_that_goes_on_is_one_alert_not_two) {
  static const char *const sets[] = { "alert.syscall_blocked=5ms", "alert.every=0", NULL };

  begin(sets);
  sync_event(1000);
  call(10 * MS, 0, 4, 12, false);
  sync_event(30 * MS);
  verdict(TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "");
  const Tracecollect__V1__Alert *a = hear("alert", 0)->alerts[0];
  cr_assert(a->open);
  cr_assert_eq(a->duration_ns, 20 * MS);
  FEED(.time = 40 * MS, .m = 4, .p = TO_NONE, .g = 12, .type = TW_EV_GO_SYSCALL_END_BLOCKED);
  cr_assert_eq(atomic_load(&b.metrics.alerts_total), 1);
  cr_assert_eq(exceeded.n, 2, "its finding gets the whole length");
  cr_assert_eq(exceeded.known, 1);
  cr_assert_eq(exceeded.longest, 30 * MS);
  end();
}

/* A call of the agent itself, as long as one that is an alert. */
Test(feed_source, a_call_that_waits_for_work_is_no_alert) {
  static const char *const sets[] = { "alert.syscall_blocked=5ms", "alert.every=0", NULL };

  begin(sets);
  sync_event(1000);
  runs(10 * MS, 4, 12);
  for (int i = 0; i < 2; i++) {
    FEED(.time = (10 + 40 * i) * MS, .m = 4, .p = 4, .g = 12, .type = TW_EV_GO_SYSCALL_BEGIN,
         .args = { 1, 3 });
    if (i == 0) FEED(.time = 30 * MS, .m = 4, .p = 4, .g = 12, .type = TW_EV_GO_SYSCALL_END);
  }
  FEED(.time = 90 * MS, .m = 9, .type = TW_EV_HEAP_ALLOC);
  verdict(TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "");
  hear_generation(1);
  cr_assert_eq(atomic_load(&b.metrics.alerts_total), 0);
  end();
}

Test(feed_source, alerts_of_a_kind_are_spaced_and_the_rest_is_counted) {
  static const char *const sets[] = { "alert.stw=1ms", "alert.every=1s", NULL };

  begin(sets);
  sync_event(1000);
  for (int i = 1; i <= 5; i++) stop(i * 10 * MS, (i * 10 + 2) * MS);
  stop(2000 * MS, 2005 * MS);
  cr_assert_eq(hear_alert(0)->suppressed, 0);
  cr_assert_eq(hear_alert(1)->suppressed, 4);
  cr_assert_eq(hear_alert(1)->begin_ns, 2000 * MS);
  cr_assert_eq(atomic_load(&b.metrics.alerts_total), 6);
  cr_assert_eq(atomic_load(&b.metrics.alerts_suppressed_total), 4);
  end();
}

/* The program controls the stream's clock, and may set it to any time. */
Test(feed_source, a_clock_that_jumps_makes_alerts_and_no_firings) {
  static const char *const sets[] = { "alert.stw=1ms", "alert.syscall_blocked=5ms",
                                      "alert.every=1h", NULL };
  const to_ns hour = 3600000 * MS;

  begin(sets);
  sync_event(1000);
  for (int i = 1; i <= 5; i++) stop(i * hour, i * hour + 2 * MS);
  cr_assert_eq(hear_alert(4)->begin_ns, 5 * hour);
  cr_assert_eq(passed.n, 1);
  cr_assert_eq(passed.at, hour + 2 * MS);
  cr_assert_eq(atomic_load(&b.metrics.alerts_unfired_total), 4);
  call(6 * hour, 6 * hour + 5 * MS, 4, 12, true);
  cr_assert_eq(passed.n, 2, "each rule for itself");
  cr_assert_eq(exceeded.n, 6, "a finding counts all");
  cr_assert_str_eq(passed.rule, "alert.syscall_blocked");
  end();
}

Test(feed_source, alerts_without_a_limit_fire_ten_times_a_second_at_most) {
  static const char *const sets[] = { "alert.stw=1ms", "alert.every=0", NULL };
  const struct tc_reply next = { .gen = 2, .len = 100, .first_wall_ns = 20, .end_wall_ns = 30 };
  to_ns at = 10 * MS;

  begin(sets);
  tc_feed_reader_listen(b.ear.reader, false);
  tc_feed_encoder_begin(b.source, &next, false); /* nothing is packed, because nobody listens */
  sync_event(1000);
  uint64_t began = tc_mono_ns();
  for (; passed.n < 3; at += 10 * MS) stop(at, at + 2 * MS);
  cr_assert_geq(tc_mono_ns() - began, 200 * MS);
  cr_assert_eq(atomic_load(&b.metrics.alerts_unfired_total),
               atomic_load(&b.metrics.alerts_total) - 3);
  end();
}

Test(feed_source, while_nobody_listens_alerts_are_counted_and_fire_and_nothing_is_packed) {
  static const char *const sets[] = { "alert.stw=1ms", NULL };
  const struct tc_reply next = { .gen = 2, .len = 100, .first_wall_ns = 20, .end_wall_ns = 30 };

  begin(sets);
  hear_generation(0);
  tc_feed_reader_listen(b.ear.reader, false);
  tc_feed_encoder_begin(
      b.source, &next,
      false); /* this call and the end of each slice check whether somebody listens */
  sync_event(1000);
  stop(10 * MS, 20 * MS);
  verdict(TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK, "");
  cr_assert_eq(atomic_load(&b.metrics.alerts_total), 1);
  cr_assert_eq(passed.n, 1);
  /* A subscriber may receive a message a moment before the feed counts it. */
  TT_WAIT_UNTIL(atomic_load(&tc_feed_metrics(b.ear.feed)->feed_messages_total) >= 1);
  cr_assert_eq(atomic_load(&tc_feed_metrics(b.ear.feed)->feed_messages_total), 1);
  end();
}

/* A window that is published every 9.5 s keeps its changes meanwhile. The stream is checked again in a second, not at once. */
Test(feed_source, a_stream_is_told_once_a_tick) {
  struct tc_scheduler u = { .waiting = 0 };
  uint64_t now = uv_hrtime();

  begin(NULL);
  struct tc__analysed s = { .u = &u,
                            .feed = b.source,
                            .analyses = b.t.a,
                            .in_by_reported = true,
                            .feed_pending = (1u << TO_WINDOWS) - 1 };
  for (unsigned w = 0; w < TO_WINDOWS; w++) s.window_reported_ns[w] = now;
  TAILQ_INIT(&u.by_reported);
  TAILQ_INSERT_TAIL(&u.by_reported, &s, by_reported);
  cr_assert_eq(tc__scheduler_tell_late(&u, now), &s);
  cr_assert_neq(s.due.kinds[TO_WINDOW_10S], 0);
  cr_assert_neq(s.feed_pending >> TO_WINDOW_5MIN & 1, 0);
  s.due = s.due_on_feed = (struct tc_report_set){ 0 }; /* as if the reports were made */
  cr_assert_null(tc__scheduler_tell_late(&u, now));
  cr_assert_eq(s.due.kinds[TO_WINDOW_1MIN], 0);
  end();
}
