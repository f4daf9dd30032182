/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of very many tiny generations beside other streams: the cost does not grow with the
 * square of their number, and does not delay a stop. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/patience.h"
#include "support/store_fixture.h"

enum { CROWD = 3000, CROWD_FULL = 12000, WAITING = 1500, NAP_US = 1000 };

static const uint64_t S = 1000000000;

/* Publication of a segment waits while `held`, and then for nap_us, as on a slow disk. */
static atomic_bool held;
static atomic_uint nap_us;

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
  size_t n = strlen(to);

  if (n > 6 && strcmp(to + n - 6, ".trace") == 0) {
    while (held) usleep(1000);
    if (nap_us > 0) usleep(nap_us);
  }
  return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

static void of_process(struct tc_config *config) {
  strcpy(config->top_sync, "process");
}

static void open_store(void) {
  tt_fixture_open(of_process);
}

TestSuite(store_flood, .init = open_store, .fini = tt_fixture_remove);

static void write_crowd(struct tt_writer *w, uint64_t first, unsigned n) {
  for (uint64_t gen = first; gen < first + n; gen++) {
    tt_batch(w, gen, "", 1);
    tt_end(w, gen);
  }
}

/* Returns the CPU time of all threads, so that a slow disk and a busy machine do not count. */
static uint64_t cpu_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

/* Verdicts without an analysis arrive first, deferred ones last: the search for each verdict
 * once passed all waiting ones. */
Test(store_flood, verdicts_come_in_any_order) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  unsigned crowd = tt_full() ? CROWD_FULL : CROWD;

  tt_header(&w);
  write_crowd(&w, 1, crowd);
  tt_barrier(&tt);
  uint64_t began = cpu_ns();
  for (uint64_t gen = crowd; gen > crowd / 2; gen--)
    tt_verdict(&w, gen, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  for (uint64_t gen = 1; gen <= crowd / 2; gen++)
    tt_verdict(&w, gen, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_barrier(&tt);
  cr_assert_lt(cpu_ns() - began, 30 * S);
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 0, "every verdict is in its meta");
  tt_expect_proven(&tt);
}

/* The archive is told to stop at the first of many segments. The next start finishes the rest
 * before it returns. */
static uint64_t stop_in_the_middle(struct tt_writer *w, uint64_t first) {
  held = true;
  write_crowd(w, first, WAITING);
  cr_assert(tt_wait_acked(&tt, w->stream, w->seq));
  nap_us = NAP_US; /* all of them take longer than the deadline and a second */
  uint64_t began = tc_mono_ns();
  held = false;
  tt_store_stop_by(&tt, began + S / 5);
  uint64_t took = tc_mono_ns() - began;
  cr_assert_not_null(strstr(tt.notes, "shutdown: the archive is not done"), "%s", tt.notes);
  cr_assert_lt(tt_count_files(&tt, "archive", ".trace"), first + WAITING - 1);
  nap_us = 0;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), first + WAITING - 1);
  return took;
}

Test(store_flood, a_stop_ends_at_its_deadline_and_the_next_start_goes_on) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  uint64_t quickest = UINT64_MAX; /* in the others the machine may have stood still */

  tt_header(&w);
  for (unsigned tries = 0; tries < 10 && quickest >= S / 5 + S; tries++) {
    if (tries > 0) w = tt_go_on(&tt, 1, 7, &w);
    uint64_t took = stop_in_the_middle(&w, 1 + (uint64_t)tries * WAITING);
    if (took < quickest) quickest = took;
  }
  cr_assert_lt(quickest, S / 5 + S);
  tt_expect_proven(&tt);
}
