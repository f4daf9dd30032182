/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of waits, as the contention report and the findings show them. Goroutine g is on P g and thread g. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "unit/online/analysis/fake_generation.h"

#define SECOND INT64_C(1000000000)

enum { SYNC = 1, RECEIVE, SLEEP, SEND };
enum { LOCK = 1, NEXT, JOBS, UNLOCK, FSYNC, ACCEPT };

static const struct to_generation gen1 = {
  .number = 1,
  .string = { [SYNC] = "sync",
              [RECEIVE] = "chan receive",
              [SLEEP] = "sleep",
              [SEND] = "chan send" },
  .stack = { [LOCK] = { { 100, 7, "sync.Lock", "m.go" }, { 200, 9, "main.first", "main.go" } },
             [NEXT] = { { 100, 7, "sync.Lock", "m.go" }, { 300, 19, "main.next", "main.go" } },
             [JOBS] = { { 400, 7, "runtime.chanrecv", "c.go" },
                        { 500, 5, "main.serve", "main.go" } },
             [UNLOCK] = { { 600, 8, "sync.Unlock", "m.go" }, { 700, 3, "main.main", "main.go" } },
             [FSYNC] = { { 800, 8, "syscall.fsync", "s.go" }, { 900, 3, "main.flush", "main.go" } },
             [ACCEPT] = { { 1000, 8, "net/http.(*persistConn).readLoop", "t.go" } } },
};

static uint32_t slot(int64_t g) {
  return (uint32_t)g + 1;
}

static void begin_generation(struct tt_analyses *t, to_ns time) {
  TT_FEED(t, &gen1, .time = time, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
}

static void end_generation(struct tt_analyses *t, to_ns time) {
  TT_FEED(t, &gen1, .time = time, .m = 999999, .p = TO_NONE, .g = TO_NONE,
          .type = TW_EV_HEAP_ALLOC);
  cr_assert_eq(to_analyses_generation_ends(t->a, &gen1), TB_OK);
}

static void open_stream(struct tt_analyses *t, int64_t goroutines) {
  tt_analyses_open(t, SECOND, 100);
  begin_generation(t, 1);
  for (int64_t g = 1; g <= goroutines; g++)
    TT_FEED(t, &gen1, .time = 1, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
            .type = TW_EV_GO_STATUS, .args = { (uint64_t)g, (uint64_t)g, TW_GO_RUNNING });
}

static void block(struct tt_analyses *t, to_ns time, int64_t g, uint64_t reason, uint64_t stack) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_BLOCK,
          .args = { reason, stack });
}

static void wake(struct tt_analyses *t, to_ns time, int64_t by, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = by, .p = by, .g = by, .slot = slot(g),
          .type = TW_EV_GO_UNBLOCK, .args = { (uint64_t)g, 2, UNLOCK });
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = TO_NONE, .slot = slot(g),
          .type = TW_EV_GO_START, .args = { (uint64_t)g, 1 });
}

/* Goroutine g waits there, and goroutine `by` ends the wait. */
static void has_waited(struct tt_analyses *t, to_ns time, int64_t g, int64_t by, uint64_t reason,
                       uint64_t stack) {
  block(t, time, g, reason, stack);
  wake(t, time + 1, by, g);
}

static void call(struct tt_analyses *t, to_ns time, int64_t g, uint64_t stack) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_SYSCALL_BEGIN,
          .args = { 0, stack });
}

static void ends(struct tt_analyses *t, to_ns time, int64_t g) {
  TT_FEED(t, &gen1, .time = time, .m = g, .p = g, .g = g, .type = TW_EV_GO_DESTROY);
}

static const struct to_report *report(struct tt_analyses *t) {
  return tt_report(t, TO_ANALYSIS_CONTENTION, TO_WINDOW_ALL);
}

static int64_t number(const struct to_report *r, const char *table, size_t row,
                      const char *column) {
  return tt_cell(r, table, row, column)->number;
}

static void expect_text(const struct to_report *r, const char *table, size_t row,
                        const char *column, const char *want) {
  const char *text = tt_cell(r, table, row, column)->text.data;

  cr_assert_str_eq(text, want, "%s, row %zu: %s is \"%s\", not \"%s\"", table, row, column, text,
                   want);
}

/* ---- which findings there are ---- */

struct found {
  unsigned n[TO_FINDINGS];
  uint64_t key, count;
  int64_t goroutine;
  to_ns since;
  char words[1200];
};

static void take(void *self, const struct to_finding *finding) {
  struct found *f = self;

  f->n[finding->kind]++;
  f->key = finding->key;
  f->count = finding->count;
  f->goroutine = finding->goroutine;
  f->since = finding->since;
  snprintf(f->words, sizeof f->words, "%.*s", (int)finding->words.len, finding->words.data);
}

static struct found findings(struct tt_analyses *t) {
  struct found found = { .n = { 0 } };

  cr_assert_eq(to_analyses_findings(t->a, &(struct to_finding_sink){ &found, take }), TB_OK);
  return found;
}

/* ---- chains ---- */

Test(an_chains, a_chain_is_followed_to_what_does_not_wait) {
  struct tt_analyses t;

  open_stream(&t, 4);
  has_waited(&t, 100, 2, 3, SYNC, LOCK);
  has_waited(&t, 200, 3, 4, RECEIVE, NEXT);
  block(&t, SECOND, 3, RECEIVE, NEXT);
  block(&t, SECOND + 5, 2, SYNC, LOCK);
  call(&t, SECOND + 7, 4, FSYNC);
  end_generation(&t, 3 * SECOND);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_table(r, "chains")->rows, 2);
  cr_assert_eq(number(r, "chains", 1, "goroutine"), 2);
  cr_assert_eq(number(r, "chains", 1, "length"), 2);
  cr_assert_eq(number(r, "chains", 1, "waiting"), 1);
  cr_assert_eq(number(r, "chains", 1, "age_ns"), 2 * SECOND - 5);
  cr_assert_eq(number(r, "chains", 1, "last_goroutine"), 4);
  expect_text(r, "chains", 1, "link", "inferred");
  expect_text(r, "chains", 1, "end", "system call");
  expect_text(
      r, "chains", 1, "chain",
      "goroutine 2 main.first waits at main.first:9 (sync, 2.0 s) for goroutine 3 main.next, "
      "which waits at main.next:19 (channel receive, 2.0 s) for goroutine 4 main.flush, "
      "which is in a system call at main.flush:3 for 2.0 s (inferred: each ended the "
      "last such wait of the one before)");
  cr_assert_eq(tt_cell(r, "chains", 1, "last_stack")->stack->frames[0]->pc, 800);
  cr_assert_eq(tt_figure(r, "deadlocks")->number, 0);
  tt_analyses_close(&t);
}

Test(an_chains, a_short_wait_is_in_none) {
  struct tt_analyses t;

  open_stream(&t, 3);
  has_waited(&t, 100, 2, 3, SYNC, LOCK);
  block(&t, 2 * SECOND, 2, SYNC, LOCK);
  end_generation(&t, 3 * SECOND);
  cr_assert_eq(tt_table(report(&t), "chains")->rows, 0);
  tt_analyses_close(&t);
}

Test(an_chains, one_that_never_waited_there_is_guessed_by_others) {
  struct tt_analyses t;

  open_stream(&t, 5);
  has_waited(&t, 100, 2, 4, SYNC, LOCK);
  block(&t, SECOND, 3, SYNC, LOCK); /* another goroutine has waited here */
  block(&t, SECOND, 4, SYNC, NEXT); /* no goroutine has waited here */
  block(&t, SECOND, 5, SLEEP, NEXT);
  end_generation(&t, 3 * SECOND);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_table(r, "chains")->rows, 2);
  cr_assert_eq(number(r, "chains", 0, "goroutine"), 3);
  expect_text(r, "chains", 0, "link", "guessed");
  expect_text(r, "chains", 0, "end", "no waker");
  cr_assert_eq(number(r, "chains", 0, "last_goroutine"), 4);
  expect_text(r, "chains", 1, "link", "");
  expect_text(
      r, "chains", 1, "chain",
      "goroutine 4 main.next waits at main.next:19 (sync, 2.0 s); it is unknown who will end "
      "that wait");
  tt_analyses_close(&t);
}

Test(an_chains, those_that_nobody_is_known_to_wake_share_a_row) {
  struct tt_analyses t;

  open_stream(&t, 5);
  block(&t, SECOND, 3, SYNC, LOCK);
  block(&t, SECOND / 2, 4, SYNC, LOCK);
  block(&t, SECOND, 5, SYNC, NEXT);
  end_generation(&t, 3 * SECOND);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_table(r, "chains")->rows, 2);
  cr_assert_eq(number(r, "chains", 0, "waiting"), 2);
  cr_assert_eq(number(r, "chains", 0, "goroutine"), 4, "the longest");
  expect_text(r, "chains", 0, "end", "no waker");
  cr_assert_eq(number(r, "chains", 1, "waiting"), 1);
  tt_analyses_close(&t);
}

Test(an_chains, a_waker_that_has_ended_is_gone_and_its_successor_is_another) {
  struct tt_analyses t;

  open_stream(&t, 3);
  has_waited(&t, 100, 2, 3, SYNC, LOCK);
  ends(&t, 200, 3);
  TT_FEED(&t, &gen1, .time = 300, .m = 1, .p = 1, .g = 1, .slot = slot(3), .type = TW_EV_GO_CREATE,
          .args = { 3, LOCK, UNLOCK });
  block(&t, SECOND, 2, SYNC, LOCK);
  end_generation(&t, 3 * SECOND);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_table(r, "chains")->rows, 1);
  expect_text(r, "chains", 0, "end", "gone");
  cr_assert_eq(number(r, "chains", 0, "last_goroutine"), 2);
  tt_analyses_close(&t);
}

Test(an_chains, a_worker_without_work_ends_a_chain_and_begins_none) {
  struct tt_analyses t;

  open_stream(&t, 3);
  cr_assert_eq(to_analyses_idle(t.a, "main.serve"), TB_OK);
  has_waited(&t, 100, 2, 3, SYNC, LOCK);
  has_waited(&t, 200, 3, 2, RECEIVE, JOBS);
  block(&t, SECOND, 3, RECEIVE, JOBS);
  block(&t, SECOND, 2, SYNC, LOCK);
  end_generation(&t, 3 * SECOND);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_table(r, "chains")->rows, 1);
  expect_text(r, "chains", 0, "end", "idle");
  cr_assert_eq(number(r, "chains", 0, "last_goroutine"), 3);
  cr_assert_eq(tt_table(r, "cycles")->rows, 0);
  tt_analyses_close(&t);
}

Test(an_chains, many_behind_one_are_a_row) {
  enum { WAITING = 500 };
  struct tt_analyses t;

  open_stream(&t, WAITING + 1);
  for (int64_t g = 2; g <= WAITING + 1; g++) has_waited(&t, 100 * g, g, 1, SYNC, LOCK);
  for (int64_t g = 2; g <= WAITING + 1; g++) block(&t, SECOND + g, g, SYNC, LOCK);
  end_generation(&t, 3 * SECOND);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_table(r, "chains")->rows, 1);
  cr_assert_eq(number(r, "chains", 0, "waiting"), WAITING);
  cr_assert_eq(number(r, "chains", 0, "goroutine"), 2, "the first of them");
  expect_text(r, "chains", 0, "end", "runs");
  tt_analyses_close(&t);
}

/* ---- cycles ---- */

/* Goroutines 2, 3 and 4 wait for each other. Generations begin at 1 ns, 2 s, 4 s, and so on. */
static void close_circle(struct tt_analyses *t, uint64_t reason, int64_t guest) {
  open_stream(t, 5);
  has_waited(t, 100, 2, 3, reason, LOCK);
  has_waited(t, 200, 3, 4, reason, NEXT);
  if (guest != TO_NONE) has_waited(t, 250, 4, guest, reason, NEXT);
  has_waited(t, 300, 4, 2, reason, NEXT);
  block(t, SECOND, 2, reason, LOCK);
  block(t, SECOND + 10, 3, reason, NEXT);
  block(t, SECOND + 20, 4, reason, NEXT);
}

static void pass(struct tt_analyses *t, unsigned *generation) {
  end_generation(t, 2 * SECOND * ++*generation - 1);
}

static void go_on(struct tt_analyses *t, unsigned generation) {
  begin_generation(t, 2 * SECOND * generation);
}

Test(an_chains, a_circle_is_a_suspect_after_two_whole_generations) {
  struct tt_analyses t;
  unsigned generation = 0;

  close_circle(&t, SYNC, TO_NONE);
  for (int i = 0; i < 2; i++) {
    pass(&t, &generation);
    cr_assert_eq(tt_table(report(&t), "cycles")->rows, i == 0 ? 0 : 1, "waits are long after 1 s");
    cr_assert_eq(tt_figure(report(&t), "deadlocks")->number, 0);
    cr_assert_eq(findings(&t).n[TO_FINDING_DEADLOCK], 0);
    go_on(&t, generation);
  }
  cr_assert_eq(tt_figure(report(&t), "deadlocks")->number, 0, "the second one is under way");
  pass(&t, &generation);
  const struct to_report *r = report(&t);
  cr_assert_eq(tt_figure(r, "deadlocks")->number, 1);
  cr_assert_eq(tt_table(r, "cycles")->rows, 1);
  cr_assert_eq(number(r, "cycles", 0, "goroutine"), 2);
  cr_assert_eq(number(r, "cycles", 0, "length"), 3);
  cr_assert_eq(number(r, "cycles", 0, "suspected"), 1);
  cr_assert_eq(number(r, "cycles", 0, "age_ns"), 5 * SECOND - 1 - 20);
  expect_text(
      r, "cycles", 0, "chain",
      "goroutine 2 main.first waits at main.first:9 (sync, 5.0 s) for goroutine 3 main.next, "
      "which waits at main.next:19 (sync, 5.0 s) for goroutine 4 main.next, which waits at "
      "main.next:19 (sync, 5.0 s) for goroutine 2 main.first: a circle (inferred: each "
      "ended the last such wait of the one before)");
  struct found found = findings(&t);
  cr_assert_eq(found.n[TO_FINDING_DEADLOCK], 1);
  cr_assert_eq(found.count, 3);
  cr_assert_eq(found.goroutine, 2);
  cr_assert_eq(found.since, SECOND + 20);
  uint64_t key = found.key;
  go_on(&t, generation);
  cr_assert_eq(tt_figure(report(&t), "deadlocks")->number, 1, "two whole ones, and one under way");
  pass(&t, &generation);
  cr_assert_eq(findings(&t).key, key, "it is the same one");
  go_on(&t, generation);
  to_analyses_epoch(t.a);
  cr_assert_eq(findings(&t).n[TO_FINDING_DEADLOCK], 0, "after a hole nothing is known");
  tt_analyses_close(&t);
}

static unsigned deadlocks_after(struct tt_analyses *t, unsigned generations) {
  unsigned generation = 0;

  while (generation < generations) {
    pass(t, &generation);
    if (generation < generations) go_on(t, generation);
  }
  return (unsigned)tt_figure(report(t), "deadlocks")->number;
}

Test(an_chains, workers_that_wait_for_each_others_jobs_are_no_suspects) {
  struct tt_analyses t;

  close_circle(&t, RECEIVE, TO_NONE);
  cr_assert_eq(deadlocks_after(&t, 12), 0);
  cr_assert_eq(tt_table(report(&t), "cycles")->rows, 1);
  tt_analyses_close(&t);
}

Test(an_chains, where_another_may_end_the_wait_there_is_no_suspect) {
  struct tt_analyses t;

  close_circle(&t, SYNC, 5);
  cr_assert_eq(deadlocks_after(&t, 12), 0, "goroutine 5 runs");
  tt_analyses_close(&t);
}

Test(an_chains, where_the_other_has_ended_there_is_one) {
  struct tt_analyses t;

  close_circle(&t, SYNC, 5);
  ends(&t, SECOND + 30, 5);
  cr_assert_eq(deadlocks_after(&t, 3), 1);
  tt_analyses_close(&t);
}

/* The analysis remembers only the last two goroutines that ended such waits. */
Test(an_chains, a_crowd_at_a_lock_is_a_suspect_after_ten_generations) {
  for (unsigned generations = 10; generations <= 11; generations++) {
    struct tt_analyses t;

    open_stream(&t, 5);
    has_waited(&t, 50, 2, 5, SYNC, LOCK);
    has_waited(&t, 60, 2, 4, SYNC, LOCK);
    has_waited(&t, 100, 2, 3, SYNC, LOCK);
    has_waited(&t, 200, 3, 2, SYNC, NEXT);
    has_waited(&t, 300, 4, 2, SYNC, NEXT);
    block(&t, SECOND, 2, SYNC, LOCK);
    block(&t, SECOND + 10, 3, SYNC, NEXT);
    block(&t, SECOND + 20, 4, SYNC, NEXT);
    cr_assert_eq(deadlocks_after(&t, generations), generations == 11);
    tt_analyses_close(&t);
  }
}

/* ---- convoys, stalls ---- */

Test(an_chains, a_long_call_that_holds_others_up_is_a_finding) {
  struct tt_analyses t;

  open_stream(&t, 4);
  has_waited(&t, 100, 2, 4, SYNC, LOCK);
  has_waited(&t, 200, 3, 4, SYNC, LOCK);
  call(&t, SECOND, 4, FSYNC);
  block(&t, SECOND + 1, 2, SYNC, LOCK);
  block(&t, SECOND + 2, 3, SYNC, LOCK);
  end_generation(&t, 3 * SECOND);
  struct found found = findings(&t);
  cr_assert_eq(found.n[TO_FINDING_STALL], 1);
  cr_assert_eq(found.count, 2);
  cr_assert_eq(found.goroutine, 4);
  cr_assert_eq(found.since, SECOND);
  cr_assert(strncmp(found.words, "goroutine 2 main.first waits at", 31) == 0, "%s", found.words);
  tt_analyses_close(&t);
}

Test(an_chains, a_convoy_is_a_finding_at_the_end_of_its_third_generation) {
  struct tt_analyses t;
  unsigned generation = 0;

  open_stream(&t, 5);
  for (int64_t g = 2; g <= 4; g++) block(&t, 100 * g, g, SYNC, LOCK);
  for (int i = 1; i <= 3; i++) {
    pass(&t, &generation);
    cr_assert_eq(findings(&t).n[TO_FINDING_CONVOY], i == 3, "generation %d", i);
    if (i == 3) break;
    go_on(&t, generation);
    has_waited(&t, 2 * SECOND * generation + 50, 5, 1, SYNC, LOCK);
  }
  cr_assert_eq(findings(&t).count, 4);
  cr_assert_eq(findings(&t).goroutine, 2);
  tt_analyses_close(&t);
}

/* It may be a leak: nobody receives what they send. */
Test(an_chains, a_queue_that_only_grows_is_no_convoy) {
  struct tt_analyses t;
  unsigned generation = 0;

  open_stream(&t, 30);
  for (int64_t g = 2; g <= 5; g++) block(&t, 100 * g, g, SEND, JOBS);
  for (int64_t g = 6; g <= 25; g++) {
    pass(&t, &generation);
    cr_assert_eq(findings(&t).n[TO_FINDING_CONVOY], 0, "generation %u", generation);
    go_on(&t, generation);
    block(&t, 2 * SECOND * generation + 50, g, SEND, JOBS);
  }
  wake(&t, 2 * SECOND * generation + 60, 1, 2);
  pass(&t, &generation);
  cr_assert_eq(findings(&t).n[TO_FINDING_CONVOY], 1, "it moves");
  tt_analyses_close(&t);
}

Test(an_chains, a_queue_that_is_stuck_is_a_convoy_after_ten_generations) {
  struct tt_analyses t;
  unsigned generation = 0;

  open_stream(&t, 5);
  for (int64_t g = 2; g <= 5; g++) block(&t, 100 * g, g, SYNC, LOCK);
  for (unsigned i = 1; i <= 13; i++) {
    pass(&t, &generation);
    cr_assert_eq(findings(&t).n[TO_FINDING_CONVOY], i > 11, "generation %u", i);
    go_on(&t, generation);
  }
  tt_analyses_close(&t);
}

/* ---- size ---- */

static double now_s(void) {
  struct timespec at;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Each goroutine waits for the next one. A walk from each one to the end would take 5 billion steps in all. */
Test(an_chains, a_chain_of_a_hundred_thousand_is_walked_once) {
  enum { LENGTH = 100000 };
  struct tt_analyses t;

  open_stream(&t, LENGTH + 1);
  for (int64_t g = 1; g <= LENGTH; g++) has_waited(&t, 10 * g, g, g + 1, SYNC, LOCK);
  for (int64_t g = 1; g <= LENGTH; g++) block(&t, SECOND + g, g, SYNC, LOCK);
  end_generation(&t, 3 * SECOND);
  double before = now_s();
  const struct to_report *r = report(&t);
  cr_log_info("the report took %.1f ms", 1e3 * (now_s() - before));
  cr_assert_eq(number(r, "chains", 0, "goroutine"), 1);
  cr_assert_eq(number(r, "chains", 0, "length"), LENGTH);
  cr_assert_eq(number(r, "chains", 0, "last_goroutine"), LENGTH + 1);
  cr_assert_eq(number(r, "chains", 0, "waiting"), LENGTH);
  cr_assert(strstr(tt_cell(r, "chains", 0, "chain")->text.data,
                   ", and so on over 99996 more to goroutine 100001, which runs") != NULL,
            "%s", tt_cell(r, "chains", 0, "chain")->text.data);
  cr_assert_lt(now_s() - before, 10);
  tt_analyses_close(&t);
}
