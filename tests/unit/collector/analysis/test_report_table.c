/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "collector/analysis/report_table.h"
#include "support/patience.h"

static const uint64_t WAIT_NS = UINT64_C(1000000) * TC_REPORTS_WAIT_MS;

static struct tc_report report_of(const unsigned char *id, const char *kind, const char *window,
                                  const char *text) {
  return (struct tc_report){ .stream = id,
                             .service = "shop",
                             .instance = "host:1",
                             .kind = kind,
                             .window = window,
                             .bytes = text,
                             .len = strlen(text) };
}

struct seen {
  char text[2000];
  unsigned n;
};

static tb_rc see(void *self, const struct tc_report *report) {
  struct seen *seen = self;
  size_t len = strlen(seen->text);

  snprintf(seen->text + len, sizeof seen->text - len, "%s/%s=%.*s ", report->kind, report->window,
           (int)report->len, (const char *)report->bytes);
  seen->n++;
  return TB_OK;
}

Test(reports, the_newest_of_each_kind_and_window_is_found_in_order) {
  struct tc_reports *reports;
  static const unsigned char id[16] = { 1 };
  struct tc_report r;
  struct seen seen = { .n = 0 }, stw = { .n = 0 }, none = { .n = 0 };

  cr_assert_eq(tc_reports_new(1 << 20, &reports), TB_OK);
  r = report_of(id, "syscall", "all", "old");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(id, "stw", "10s", "s");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(id, "syscall", "all", "new");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(id, "syscall", "10s", "ten");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);

  struct tc_report_select all = { .service = "shop" };
  cr_assert_eq(tc_reports_collect(reports, &all, see, &seen), TB_OK);
  cr_assert_str_eq(seen.text, "stw/10s=s syscall/10s=ten syscall/all=new ");
  struct tc_report_select one = { .kind = "stw" };
  cr_assert_eq(tc_reports_collect(reports, &one, see, &stw), TB_OK);
  cr_assert_str_eq(stw.text, "stw/10s=s ");
  struct tc_report_select other = { .service = "bank" };
  cr_assert_eq(tc_reports_collect(reports, &other, see, &none), TB_OK);
  cr_assert_eq(none.n, 0);
  tc_reports_free(reports);
}

Test(reports, ended_streams_give_way_and_live_ones_never_do) {
  struct tc_reports *reports;
  unsigned char ended[16] = { 1 }, live[16] = { 2 }, late[16] = { 3 };
  char big[600];
  struct seen seen = { .n = 0 };
  struct tc_report r;

  memset(big, 'x', sizeof big - 1), big[sizeof big - 1] = '\0';
  cr_assert_eq(tc_reports_new(1300, &reports), TB_OK);
  r = report_of(ended, "stw", "all", big);
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  tc_reports_close(reports, ended);
  r = report_of(live, "stw", "all", big);
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(late, "stw", "all", big); /* the ended stream makes room */
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(late, "syscall", "all", big); /* there is nothing left to drop */
  cr_assert_eq(tc_reports_publish(reports, &r), TB_BUDGET);

  struct tc_report_select all = { .service = NULL };
  cr_assert_eq(tc_reports_collect(reports, &all, see, &seen), TB_OK);
  cr_assert_eq(seen.n, 2);
  struct tc_report_select gone = { .stream = ended };
  memset(&seen, 0, sizeof seen);
  cr_assert_eq(tc_reports_collect(reports, &gone, see, &seen), TB_OK);
  cr_assert_eq(seen.n, 0);
  tc_reports_free(reports);
}

static void wake_nobody(void *self) {
  (void)self;
}

Test(reports, what_can_be_made_again_gives_way_the_oldest_first) {
  static const unsigned char first[16] = { 1 }, second[16] = { 2 };
  struct tc_report_select all = { .service = NULL };
  struct tc_report_maker *maker;
  struct tc_reports *reports;
  struct seen seen = { .n = 0 };
  struct tc_report r;

  cr_assert_eq(tc_reports_new(10, &reports), TB_OK);
  cr_assert_eq(tc_report_maker_new(reports, wake_nobody, NULL, &maker), TB_OK);
  cr_assert_eq(tc_reports_outdate(maker, first, "shop", "host:1", 1), TB_OK);
  cr_assert_eq(tc_reports_outdate(maker, second, "shop", "host:2", 2), TB_OK);
  cr_expect_eq(tc_reports_live(reports, &all), 2);
  r = report_of(first, "stw", "all", "1111");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(first, "syscall", "all", "2222");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(second, "stw", "all", "3333");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  cr_expect(tc_reports_outdated(reports, first).kinds[TO_WINDOW_ALL] & 1u << TO_ANALYSIS_STW);
  cr_expect_not(tc_reports_outdated(reports, second).kinds[TO_WINDOW_ALL] & 1u << TO_ANALYSIS_STW);
  tc_report_maker_free(maker);
  cr_assert_eq(tc_reports_collect(reports, &all, see, &seen), TB_OK);
  cr_expect_not_null(strstr(seen.text, "stw/all=3333"));
  cr_expect_null(strstr(seen.text, "1111"));
  tc_reports_free(reports);
}

/* An agent may come back when its stream is already marked as ended and the table is full. */
Test(reports, a_stream_that_comes_back_does_not_give_way_to_itself) {
  static const unsigned char id[16] = { 1 };
  struct tc_reports *reports;
  struct seen seen = { .n = 0 };
  char big[80];

  memset(big, 'x', sizeof big - 1), big[sizeof big - 1] = '\0';
  cr_assert_eq(tc_reports_new(100, &reports), TB_OK);
  struct tc_report r = report_of(id, "stw", "all", "small");
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  tc_reports_close(reports, id);
  r = report_of(id, "syscall", "all", big);
  cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
  r = report_of(id, "syscall", "10s", big);
  cr_assert_eq(tc_reports_publish(reports, &r), TB_BUDGET);
  struct tc_report_select stw = { .kind = "stw" };
  cr_assert_eq(tc_reports_collect(reports, &stw, see, &seen), TB_OK);
  cr_assert_str_eq(seen.text, "stw/all=small ");
  tc_reports_free(reports);
}

static void *publish_many(void *self) {
  static const unsigned char id[16] = { 7 };
  struct tc_reports *reports = self;

  for (int i = 0; i < 2000; i++) {
    struct tc_report r = report_of(id, "stw", i % 2 ? "all" : "10s", "0123456789");
    if (tc_reports_publish(reports, &r) != TB_OK) return self;
  }
  return NULL;
}

static tb_rc whole(void *self, const struct tc_report *report) {
  (void)self;
  return memcmp(report->bytes, "0123456789", 10) == 0 ? TB_OK : TB_CORRUPT;
}

Test(reports, readers_see_whole_reports_while_a_loop_publishes) {
  struct tc_reports *reports;
  struct tc_report_select all = { .service = NULL };
  pthread_t thread;
  void *failed;

  cr_assert_eq(tc_reports_new(1 << 20, &reports), TB_OK);
  cr_assert_eq(pthread_create(&thread, NULL, publish_many, reports), 0);
  for (int i = 0; i < 500; i++) cr_assert_eq(tc_reports_collect(reports, &all, whole, NULL), TB_OK);
  pthread_join(thread, &failed);
  cr_assert_null(failed);
  tc_reports_free(reports);
}

static tb_rc count(void *self, const struct tc_report *report) {
  (void)report;
  ++*(unsigned *)self;
  return TB_OK;
}

/* A loop that makes the reports that readers ask for. */
struct loop {
  struct tc_reports *reports;
  struct tc_report_maker *maker;
  sem_t woken, answered;
  atomic_bool stop;
  atomic_uint made; /* number of reports made so far; reports that are published */
};

static void wake_loop(void *self) {
  struct loop *loop = self;

  sem_post(&loop->woken);
}

static void make(struct loop *loop, uint32_t ref, unsigned kind, unsigned window) {
  unsigned char id[16] = { (unsigned char)ref };
  char text[16];

  snprintf(text, sizeof text, "made%u", loop->made + 1);
  struct tc_report r = report_of(id, to_analysis_name((enum to_analysis_kind)kind),
                                 to_window_name((enum to_window)window), text);
  cr_assert_eq(tc_reports_publish(loop->reports, &r), TB_OK);
  loop->made++;
}

static void *run_loop(void *self) {
  struct loop *loop = self;
  struct tc_report_set set;
  uint32_t ref;

  while (sem_wait(&loop->woken) == 0 && !atomic_load(&loop->stop))
    while (tc_reports_asked(loop->maker, &ref, &set))
      for (unsigned w = 0; w < TO_WINDOWS; w++)
        for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
          if (set.kinds[w] >> k & 1) make(loop, ref, k, w);
  return NULL;
}

static void loop_begin(struct loop *loop, pthread_t *thread) {
  *loop = (struct loop){ .made = 0 };
  sem_init(&loop->woken, 0, 0);
  cr_assert_eq(tc_reports_new(1 << 20, &loop->reports), TB_OK);
  cr_assert_eq(tc_report_maker_new(loop->reports, wake_loop, loop, &loop->maker), TB_OK);
  cr_assert_eq(pthread_create(thread, NULL, run_loop, loop), 0);
}

static void loop_end(struct loop *loop, pthread_t thread) {
  atomic_store(&loop->stop, true);
  sem_post(&loop->woken);
  pthread_join(thread, NULL);
  tc_report_maker_free(loop->maker);
  tc_reports_free(loop->reports);
}

static void outdate(struct loop *loop, uint32_t ref) {
  unsigned char id[16] = { (unsigned char)ref };

  cr_assert_eq(tc_reports_outdate(loop->maker, id, "shop", "host:1", ref), TB_OK);
}

static void expect_of(struct loop *loop, const struct tc_report_select *select, const char *text) {
  struct seen seen = { .n = 0 };

  cr_assert_eq(tc_reports_collect(loop->reports, select, see, &seen), TB_OK);
  cr_assert_str_eq(seen.text, text);
}

/* The reader waits for all reports. But on a busy machine its wait may end first, and the loop makes them after that. */
static void expect_made(struct loop *loop, const struct tc_report_select *select, unsigned made,
                        const char *text) {
  uint64_t began = tc_mono_ns();
  struct seen seen = { .n = 0 };

  cr_assert_eq(tc_reports_collect(loop->reports, select, see, &seen), TB_OK);
  if (tc_mono_ns() - began < WAIT_NS) cr_assert_str_eq(seen.text, text);
  TT_WAIT_UNTIL(loop->made == made);
  expect_of(loop, select, text);
}

Test(reports, a_report_is_made_when_it_is_asked_for_and_out_of_date) {
  const struct tc_report_select stw = { .kind = "stw", .window = "10s" };
  static struct loop loop;
  pthread_t thread;

  loop_begin(&loop, &thread);
  expect_of(&loop, &stw, "");
  outdate(&loop, 1);
  cr_assert_eq(loop.made, 0, "no reader asked");
  expect_made(&loop, &stw, 1, "stw/10s=made1 ");
  expect_of(&loop, &stw, "stw/10s=made1 ");
  outdate(&loop, 1);
  outdate(&loop, 2);
  expect_made(&loop, &stw, 3, "stw/10s=made2 stw/10s=made3 ");
  loop_end(&loop, thread);
  cr_assert_eq(loop.made, 3, "one report of two streams, and no other");
}

Test(reports, a_reader_waits_for_all_that_it_selects) {
  const struct tc_report_select all = { .service = "shop" },
                                few = { .kinds = 1u << TO_ANALYSIS_STW | 1u << TO_ANALYSIS_SCHED,
                                        .window = "all" };
  const unsigned whole = TO_ANALYSIS_KINDS * TO_WINDOWS;
  static struct loop loop;
  unsigned n = 0;
  pthread_t thread;

  loop_begin(&loop, &thread);
  outdate(&loop, 1);
  expect_made(&loop, &few, 2, "sched/all=made2 stw/all=made1 ");
  uint64_t began = tc_mono_ns();
  cr_assert_eq(tc_reports_collect(loop.reports, &all, count, &n), TB_OK);
  if (tc_mono_ns() - began < WAIT_NS) cr_assert_eq(n, whole);
  TT_WAIT_UNTIL(loop.made == whole);
  loop_end(&loop, thread);
  cr_assert_eq(loop.made, whole);
}

/* Answers as for a report that cannot be made, then as for a stream that ended, then as a loop that is closed. */
static void *answer_otherwise(void *self) {
  struct loop *loop = self;
  struct tc_report_set set;
  unsigned char id[16] = { 1 };
  uint32_t ref;

  sem_wait(&loop->woken);
  cr_assert(tc_reports_asked(loop->maker, &ref, &set));
  cr_assert_eq(set.kinds[TO_WINDOW_ALL], 1u << TO_ANALYSIS_STW);
  tc_reports_missed(loop->reports, id, TO_ANALYSIS_STW, TO_WINDOW_ALL);
  sem_post(&loop->answered);
  sem_wait(&loop->woken);
  tc_reports_close(loop->reports, id);
  sem_post(&loop->answered);
  sem_wait(&loop->woken);
  tc_report_maker_free(loop->maker);
  sem_post(&loop->answered);
  return NULL;
}

static uint64_t wait_for_nothing_ns(void) {
  const struct tc_report_select stw = { .kind = "stw", .window = "all" };
  struct loop loop = { .made = 0 };
  pthread_t thread;

  sem_init(&loop.woken, 0, 0);
  sem_init(&loop.answered, 0, 0);
  cr_assert_eq(tc_reports_new(1 << 20, &loop.reports), TB_OK);
  cr_assert_eq(tc_report_maker_new(loop.reports, wake_loop, &loop, &loop.maker), TB_OK);
  cr_assert_eq(pthread_create(&thread, NULL, answer_otherwise, &loop), 0);
  uint64_t began = tc_mono_ns();
  for (int i = 0; i < 3; i++) {
    outdate(&loop, 1);
    expect_of(&loop, &stw, "");
    sem_wait(&loop.answered);
  }
  uint64_t took = tc_mono_ns() - began;
  pthread_join(thread, NULL);
  tc_reports_free(loop.reports);
  return took;
}

Test(reports, no_reader_waits_for_what_is_not_made) {
  uint64_t quickest = UINT64_MAX; /* a busy machine may have slowed the other tries */

  for (int i = 0; i < 10 && quickest >= WAIT_NS; i++) {
    uint64_t took = wait_for_nothing_ns();
    if (took < quickest) quickest = took;
  }
  cr_assert_lt(quickest, WAIT_NS);
}

static void no_wake(void *self) {
  ++*(unsigned *)self;
}

Test(reports, a_loop_that_does_not_turn_holds_a_reader_for_a_time_only) {
  const struct tc_report_select stw = { .kind = "stw", .window = "all" };
  static const unsigned char id[16] = { 1 };
  struct tc_report old = report_of(id, "stw", "all", "old");
  struct loop loop = { .made = 0 };
  unsigned woken = 0;

  cr_assert_eq(tc_reports_new(1 << 20, &loop.reports), TB_OK);
  cr_assert_eq(tc_report_maker_new(loop.reports, no_wake, &woken, &loop.maker), TB_OK);
  outdate(&loop, 1);
  cr_assert_eq(tc_reports_publish(loop.reports, &old), TB_OK);
  expect_of(&loop, &stw, "stw/all=old ");
  cr_assert_eq(woken, 0, "it is up to date");
  outdate(&loop, 1);
  expect_of(&loop, &stw, "stw/all=old ");
  expect_of(&loop, &stw, "stw/all=old ");
  cr_assert_eq(woken, 1, "it stands in line");
  cr_assert_eq(tc_reports_outdated(loop.reports, id).kinds[TO_WINDOW_ALL],
               (1u << TO_ANALYSIS_KINDS) - 1);
  tc_report_maker_free(loop.maker);
  tc_reports_free(loop.reports);
}

static double cpu_s(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* In an earlier version each published report walked the list of all streams; with 1,500 streams that took 18 % of the
 * collector's time. */
Test(reports, publishing_costs_the_same_with_many_streams) {
  enum { STREAMS = 20000, ROUNDS = 5 };
  struct tc_reports *reports;

  cr_assert_eq(tc_reports_new(1 << 24, &reports), TB_OK);
  double began = cpu_s();
  for (unsigned round = 0; round < ROUNDS; round++)
    for (unsigned i = 0; i < STREAMS; i++) {
      unsigned char id[16] = { (unsigned char)i, (unsigned char)(i >> 8),
                               (unsigned char)(i >> 16) };
      struct tc_report r = report_of(id, "stw", "all", "x");

      cr_assert_eq(tc_reports_publish(reports, &r), TB_OK);
    }
  cr_expect_lt(cpu_s() - began, 2.0);
  unsigned all = 0, one = 0;
  static const unsigned char id[16] = { 7, 1 };
  struct tc_report_select any = { 0 }, only = { .stream = id };
  cr_assert_eq(tc_reports_collect(reports, &any, count, &all), TB_OK);
  cr_assert_eq(all, STREAMS);
  cr_assert_eq(tc_reports_collect(reports, &only, count, &one), TB_OK);
  cr_assert_eq(one, 1);
  for (unsigned i = 0; i < STREAMS; i++) {
    unsigned char gone[16] = { (unsigned char)i, (unsigned char)(i >> 8),
                               (unsigned char)(i >> 16) };

    tc_reports_close(reports, gone);
  }
  all = 0;
  cr_assert_eq(tc_reports_collect(reports, &any, count, &all), TB_OK);
  cr_assert_eq(all, TC_REPORTS_CLOSED_MAX);
  tc_reports_free(reports);
}
