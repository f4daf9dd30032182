/* SPDX-License-Identifier: Apache-2.0 */
/* Metas of expired segments are folded into their day's ledger, each as a scene of a real store. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { FIRST = 3, SECOND = 4, SEGMENTS = 5, BATCHES = 3 };

static const uint64_t EACH_TURN_NS = 1, ONE_MS = 1000000;

/* ---- the clock */

static atomic_long ahead_s;

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_clock_gettime(clockid_t id, struct timespec *out) {
  int rc = __real_clock_gettime(id, out);

  if (id == CLOCK_MONOTONIC) out->tv_sec += atomic_load(&ahead_s);
  return rc;
}

/* ---- the store */

static uint64_t streams_known(void) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return stats.streams;
}

static void open_store(void) {
  tt_fixture_open(NULL);
  tt_calls_watch(&tt);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(store_fold, .init = open_store, .fini = remove_store);

static void write_stream(uint64_t conn, unsigned id) {
  struct tt_writer w = tt_attach_as(&tt, conn, id);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= SEGMENTS; gen++) tt_generation(&w, gen, BATCHES, 1000);
  tt_close_with(&w, SEGMENTS * BATCHES, SEGMENTS * BATCHES * 1000);
  tt_barrier(&tt);
}

/* Starts with a configuration in which everything expires, and ended streams are forgotten at
 * once. */
static void start_greedy(void) {
  tt_store_stop(&tt);
  tt.config.retention_bytes = 1;
  tt.config.retention_every = EACH_TURN_NS;
  tt.config.agents_abandon_after = ONE_MS;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

/* Forgotten streams whose segments have expired are folded by the next pass, two hours later. The first start still waits for
 * verdicts, which this test does not give, so a second start follows. */
static void start_and_fold(void) {
  start_greedy();
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 0);
  start_greedy();
  TT_WAIT_UNTIL(streams_known() == 0);
  atomic_fetch_add(&ahead_s, 2 * 3600);
}

/* A pass that ran while the clock was changed may have seen the streams, and set the next pass two hours later. Then the clock
 * is changed again. */
#define FOLD_UNTIL(condition)                                                                      \
  do {                                                                                             \
    for (int left_ = TT_PATIENCE_MS; !(condition) && left_ > 0; left_--) {                         \
      usleep(1000);                                                                                \
      if (left_ % 2000 == 1) atomic_fetch_add(&ahead_s, 2 * 3600);                                 \
    }                                                                                              \
    cr_assert((condition), "in time: " #condition);                                                \
  } while (0)

Test(store_fold, metas_of_expired_segments_become_a_record_a_stream_and_a_day) {
  write_stream(1, FIRST);
  write_stream(2, SECOND);
  struct tc_stream_row before = tt_stream_row(&tt, FIRST);
  start_and_fold();
  FOLD_UNTIL(tt_count_files(&tt, "archive", ".meta") == 0);
  TT_WAIT_UNTIL(tt_count_files(&tt, "", "catalog.stale") == 0);
  struct tc_stream_row after = tt_stream_row(&tt, FIRST);
  cr_assert_eq(after.generations, SEGMENTS);
  cr_assert_eq(after.batches, before.batches);
  cr_assert_eq(after.bytes, before.bytes);
  cr_assert_str_eq(after.state, "closed");
  struct tc_audited seen = tt_expect_proven(&tt);
  cr_assert_eq(seen.segments, 2 * SEGMENTS);
  cr_assert_eq(seen.expired, 2 * SEGMENTS);
  cr_assert_eq(seen.closed.streams, 2);
  cr_assert_eq(seen.closed.taken.batches, 2 * SEGMENTS * BATCHES);
  cr_assert_eq(tt_count_files(&tt, "archive", "ledger"), 1);
}

/* ---- records that a ledger loses */

static void note_problem(void *self, const char *text) {
  char *problems = self;

  strncat(problems, text, 4000 - strlen(problems));
}

static const char *problems_found(void) {
  static char problems[4096];
  struct tc_audit_sink sink = { .self = problems, .problem = note_problem };
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  problems[0] = '\0';
  cr_assert_eq(tc_audit(fd, true, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  close(fd);
  return problems;
}

static void fold_two_streams(void) {
  write_stream(1, FIRST);
  write_stream(2, SECOND);
  tt_shell(&tt, "cp $(ls archive/*/*/*.meta | head -n 1) one.copy");
  start_and_fold();
  FOLD_UNTIL(tt_count_files(&tt, "archive", ".meta") == 0);
  TT_WAIT_UNTIL(tt_count_files(&tt, "", "catalog.stale") == 0);
  tt_store_stop(&tt);
}

/* A ledger that ends early does not itself show that records are missing; the sums in the catalog do. */
Test(store_fold, a_record_that_is_lost_is_found_wherever_it_stood) {
  static const char *const losses[] = {
    "truncate -s -1 archive/*/ledger",
    "truncate -s 0 archive/*/ledger",
    "rm archive/*/ledger",
    "printf x | dd of=$(echo archive/*/ledger) bs=1 seek=$(($(stat -c %s archive/*/ledger) - 9))"
    " conv=notrunc status=none",
  };

  fold_two_streams();
  cr_assert_str_empty(problems_found());
  tt_shell(&tt, "cp archive/*/ledger ledger.copy");
  for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
    tt_shell(&tt, losses[i]);
    cr_assert_not_null(strstr(problems_found(), "should be in archive/*/ledger"), "%s: %s",
                       losses[i], problems_found());
    tt_shell(&tt, "touch catalog.stale");
    cr_assert_null(strstr(problems_found(), "should be"), "a start will make it again");
    tt_shell(&tt, "rm catalog.stale; cp ledger.copy $(echo archive/*-*)/ledger");
    cr_assert_str_empty(problems_found());
  }
}

static void make_the_catalog_again(void) {
  tt_shell(&tt, "touch catalog.stale");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_store_stop(&tt);
}

/* A rotten record stays rotten. It must not keep the mark, which would stop all folding. */
Test(store_fold, a_rotten_record_does_not_end_the_folding) {
  fold_two_streams();
  tt_shell(&tt, "printf x | dd of=$(echo archive/*/ledger) bs=1 seek=40 conv=notrunc status=none");
  make_the_catalog_again();
  cr_assert(tt_noted(&tt, "ledger: damaged from byte 0 to"), "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "", "catalog.stale"), 0);
}

Test(store_fold, a_record_that_is_not_understood_keeps_the_mark) {
  fold_two_streams();
  tt_shell(&tt, "cat one.copy >>$(echo archive/*/ledger); cp archive/*/ledger ledger.copy");
  make_the_catalog_again();
  cr_assert(tt_noted(&tt, "stands for no expired segments; the record is kept"), "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "", "catalog.stale"), 1);
  tt_shell(&tt, "cmp archive/*/ledger ledger.copy");
}

Test(store_fold, what_a_start_cuts_off_a_ledger_is_noted_once) {
  fold_two_streams();
  tt_shell(&tt, "cp archive/*/ledger ledger.copy; head -c 100 one.copy >>$(echo archive/*/ledger)");
  make_the_catalog_again();
  cr_assert(tt_noted(&tt, "ledger: 100 bytes from byte"), "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "", "catalog.stale"), 0);
  tt_shell(&tt, "cmp archive/*/ledger ledger.copy");
}

static uint64_t segments_expired(void) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return stats.expired_segments;
}

Test(store_fold, a_catalog_that_is_made_again_has_the_sums_that_it_had) {
  write_stream(1, FIRST);
  start_and_fold();
  FOLD_UNTIL(tt_count_files(&tt, "archive", ".meta") == 0);
  TT_WAIT_UNTIL(tt_count_files(&tt, "", "catalog.stale") == 0);
  struct tc_stream_row before = tt_stream_row(&tt, FIRST);
  cr_assert_eq(segments_expired(), SEGMENTS);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm catalog.sqlite*");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tc_stream_row after = tt_stream_row(&tt, FIRST);
  cr_assert_str_eq(after.service, before.service);
  cr_assert_str_eq(after.instance, before.instance);
  cr_assert_str_eq(after.state, "closed");
  cr_assert_eq(after.batches, before.batches);
  cr_assert_eq(after.bytes, before.bytes);
  cr_assert_eq(after.generations, before.generations);
  cr_assert_eq(after.events, before.events);
  cr_assert_eq(after.lost_batches, before.lost_batches);
  cr_assert_eq(after.produced_batches, before.produced_batches);
  cr_assert_eq(after.produced_bytes, before.produced_bytes);
  cr_assert_eq(after.first_arrival_ns, before.first_arrival_ns);
  cr_assert_eq(after.last_arrival_ns, before.last_arrival_ns);
  cr_assert_eq(segments_expired(), SEGMENTS);
}

/* A meta that one run could not delete is deleted by the next start, and nothing is folded
 * twice. */
Test(store_fold, a_meta_that_stays_beside_its_record_goes_with_the_next_start) {
  write_stream(1, FIRST);
  tt_calls_fail("unlink archive/*.meta", EIO, 1);
  start_and_fold();
  FOLD_UNTIL(tt_noted(&tt, "its metas are deleted at the next start"));
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), SEGMENTS);
  start_greedy();
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), 0, "%s", tt.notes);
  struct tc_audited seen = tt_expect_proven(&tt);
  cr_assert_eq(seen.expired, SEGMENTS);
  cr_assert_eq(seen.closed.taken.batches, SEGMENTS * BATCHES);
}

Test(store_fold, where_a_ledger_finds_no_room_the_metas_stay) {
  write_stream(1, FIRST);
  tt_calls_fail("write archive/*ledger", ENOSPC, 1);
  start_and_fold();
  FOLD_UNTIL(tt_noted(&tt, "its metas are not folded"));
  struct tc_audited seen = tt_expect_proven(&tt);
  cr_assert_eq(seen.expired, SEGMENTS);
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), SEGMENTS);
}
