/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines that wait when the analysis of a stream begins: the trace has their stacks, not their reasons. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "unit/online/analysis/fake_generation.h"

enum { SEND = 1, LOCK, POLL, SWEEP, UNKNOWN, WAKER };
enum { SENDERS = 12, LOCKERS = 3, FIRST_GEN = 7, MAIN = 40 };

#define PARKED                                                                                     \
  { 1, 462, "runtime.gopark", "proc.go" }
static const struct to_generation gen = {
  .number = FIRST_GEN,
  .stack = { [SEND] = { PARKED,
                        { 2, 1, "runtime.chansend", "chan.go" },
                        { 3, 39, "main.send", "main.go" } },
             [LOCK] = { PARKED,
                        { 4, 46, "sync.(*Mutex).Lock", "mutex.go" },
                        { 5, 43, "main.lock", "main.go" } },
             [POLL] = { PARKED,
                        { 6, 1, "runtime.netpollblock", "netpoll.go" },
                        { 7, 5, "main.read", "main.go" } },
             [SWEEP] = { PARKED, { 8, 1, "runtime.bgsweep", "mgcsweep.go" } },
             [UNKNOWN] = { PARKED, { 9, 6, "main.odd", "main.go" } },
             [WAKER] = { { 10, 7, "main.main", "main.go" } } },
};

static void waits(struct tt_analyses *t, int64_t g, uint64_t stack) {
  TT_FEED(t, &gen, .time = 2, .m = 1, .p = 1, .g = MAIN, .slot = (uint32_t)g + 1,
          .type = TW_EV_GO_STATUS_STACK, .args = { (uint64_t)g, UINT64_MAX, TW_GO_WAITING, stack });
}

static void open_stream(struct tt_analyses *t, unsigned senders) {
  tt_analyses_open(t, 1000000000, 100);
  TT_FEED(t, &gen, .time = 1, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE, .type = TW_EV_SYNC);
  TT_FEED(t, &gen, .time = 1, .m = 1, .p = 1, .g = TO_NONE, .slot = MAIN + 1,
          .type = TW_EV_GO_STATUS, .args = { MAIN, 1, TW_GO_RUNNING });
  for (unsigned i = 0; i < senders; i++) waits(t, 1 + i, SEND);
  for (unsigned i = 0; i < LOCKERS; i++) waits(t, 20 + i, LOCK);
  waits(t, 30, POLL);
  waits(t, 31, SWEEP);
  waits(t, 32, UNKNOWN);
}

static void expect_row(const struct to_report *r, size_t row, const char *reason, int64_t waiting) {
  cr_expect_str_eq(tt_cell(r, "queues", row, "reason")->text.data, reason);
  cr_expect_eq(tt_cell(r, "queues", row, "waiting")->number, waiting);
  cr_expect_eq(tt_cell(r, "queues", row, "longest_queue")->number, waiting);
}

Test(an_before, those_that_wait_for_each_other_are_queues_with_the_reason_of_their_stack) {
  struct tt_analyses t;

  open_stream(&t, SENDERS);
  const struct to_report *r = tt_report(&t, TO_ANALYSIS_CONTENTION, TO_WINDOW_ALL);
  cr_expect_eq(tt_figure(r, "waiting")->number, SENDERS + LOCKERS);
  cr_expect_eq(tt_figure(r, "longest_queue")->number, SENDERS);
  cr_assert_eq(tt_table(r, "queues")->rows, 2);
  expect_row(r, 0, "channel send", SENDERS);
  expect_row(r, 1, "sync", LOCKERS);
  TT_FEED(&t, &gen, .time = 5, .m = 1, .p = 1, .g = MAIN, .slot = 21, .type = TW_EV_GO_UNBLOCK,
          .args = { 20, 1, WAKER });
  r = tt_report(&t, TO_ANALYSIS_CONTENTION, TO_WINDOW_ALL);
  cr_expect_eq(tt_figure(r, "waiting")->number, SENDERS + LOCKERS - 1, "one was woken");
  tt_analyses_close(&t);
}

Test(an_before, many_of_them_have_a_note_that_leaves_out_the_idle_and_the_runtime) {
  static const enum to_analysis_kind kinds[] = { TO_ANALYSIS_CONTENTION, TO_ANALYSIS_GOROUTINES,
                                                 TO_ANALYSIS_BLOCK };
  struct tt_analyses t;

  open_stream(&t, SENDERS);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    const struct to_report *r = tt_report(&t, kinds[k], TO_WINDOW_ALL);
    cr_assert_eq(r->notes, 1);
    cr_expect_str_eq(
        r->note[0],
        "17 goroutines wait since before generation 7, where the analysis begins: since when, and "
        "where they were created, is not known; why is read from their stacks. Most of them, 12, "
        "wait at main.send:39 (channel send).");
  }
  cr_expect_eq(tt_report(&t, TO_ANALYSIS_LEAK, TO_WINDOW_ALL)->notes, 2);
  cr_expect_eq(tt_report(&t, TO_ANALYSIS_NET, TO_WINDOW_ALL)->notes, 0);
  tt_analyses_close(&t);
}

Test(an_before, a_few_have_none) {
  struct tt_analyses t;

  open_stream(&t, 2);
  cr_expect_eq(tt_report(&t, TO_ANALYSIS_CONTENTION, TO_WINDOW_ALL)->notes, 0);
  tt_analyses_close(&t);
}

static void count_convoys(void *self, const struct to_finding *finding) {
  if (finding->kind != TO_FINDING_CONVOY) return;
  ++*(unsigned *)self;
  cr_expect_eq(finding->count, LOCKERS);
  cr_expect_str_eq(finding->words.data,
                   "they wait at main.lock:43 (sync), since before generation 7");
}

Test(an_before, a_queue_for_a_lock_that_lasts_is_a_convoy) {
  struct tt_analyses t;
  unsigned convoys = 0;
  const struct to_finding_sink sink = { &convoys, count_convoys };

  open_stream(&t, SENDERS);
  for (unsigned i = 1; i < 10; i++) {
    cr_assert_eq(to_analyses_generation_ends(t.a, &gen), TB_OK);
    cr_assert_eq(to_analyses_findings(t.a, &sink), TB_OK);
    cr_expect_eq(convoys, 0, "after %u generations", i);
    TT_FEED(&t, &gen, .time = 1000 * i, .m = TO_NONE, .p = TO_NONE, .g = TO_NONE,
            .type = TW_EV_SYNC);
  }
  cr_assert_eq(to_analyses_generation_ends(t.a, &gen), TB_OK);
  cr_assert_eq(to_analyses_findings(t.a, &sink), TB_OK);
  cr_expect_eq(convoys, 1);
  tt_analyses_close(&t);
}
