/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of very many tiny generations beside others: what it costs does not grow with its square, and it does not keep
 * a stop. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "support/patience.h"
#include "support/store_fixture.h"

enum { CROWD = 12000 };

static const uint64_t S = 1000000000;

static void of_process(struct tc_config *config) {
  strcpy(config->top_sync, "process");
}

static void open_store(void) {
  tt_fixture_open(of_process);
}

TestSuite(store_flood, .init = open_store, .fini = tt_fixture_remove);

static void write_crowd(struct tt_writer *w, unsigned n) {
  for (uint64_t gen = 1; gen <= n; gen++) {
    tt_batch(w, gen, "", 1);
    tt_end(w, gen);
  }
}

/* Of all threads, so that a slow disk and a busy machine do not count. */
static uint64_t cpu_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (uint64_t)ts.tv_sec * S + (uint64_t)ts.tv_nsec;
}

/* Those that are not analysed come first, those that wait come last: each was looked for behind all that wait. */
Test(store_flood, verdicts_come_in_any_order, .timeout = 800) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  write_crowd(&w, CROWD);
  tt_barrier(&tt);
  uint64_t began = cpu_ns();
  for (uint64_t gen = CROWD; gen > CROWD / 2; gen--)
    tt_verdict(&w, gen, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  for (uint64_t gen = 1; gen <= CROWD / 2; gen++)
    tt_verdict(&w, gen, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_barrier(&tt);
  cr_assert_lt(cpu_ns() - began, 30 * S);
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 0, "every verdict is in its meta");
  tt_expect_proven(&tt);
}

Test(store_flood, a_stop_ends_at_its_deadline_and_the_next_start_goes_on, .timeout = 800) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  write_crowd(&w, CROWD);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  uint64_t quickest = UINT64_MAX; /* in the others the machine may have stood still */
  for (int stops = 0; stops < 3 && quickest >= S / 5 + S; stops++) {
    uint64_t began = tc_mono_ns();
    tt_store_stop_by(&tt, began + S / 5);
    uint64_t took = tc_mono_ns() - began;
    if (took < quickest) quickest = took;
    cr_assert_not_null(strstr(tt.notes, "shutdown: the archive is not done"), "%s", tt.notes);
    cr_assert_lt(tt_count_files(&tt, "archive", ".trace"), CROWD);
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  }
  cr_assert_lt(quickest, S / 5 + S);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), CROWD);
  tt_expect_proven(&tt);
}
