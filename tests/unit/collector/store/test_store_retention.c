/* SPDX-License-Identifier: Apache-2.0 */
/* Retention when the disk refuses calls: a file that cannot be removed does not keep younger segments or the catalog's mark.
 * Each test is a scene of a real store. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { OLDER = 7, YOUNGER = 8 };

static const uint64_t ONE_ROUND_NS = UINT64_C(3600000000000), EACH_TURN_NS = 1;

static void open_store(void) {
  tt_fixture_open(NULL);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(store_retention, .init = open_store, .fini = remove_store);

static void write_segments(uint64_t conn, unsigned stream, unsigned n) {
  struct tt_writer w = tt_attach_as(&tt, conn, stream);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= n; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
}

/* Starts a store that may keep one byte. As soon as retention begins, the matching calls fail. */
static void start_retention(uint64_t every_ns, const char *pattern, unsigned times) {
  tt_store_stop(&tt);
  tt.config.retention_bytes = 1;
  tt.config.retention_every = every_ns;
  tt_calls_watch(&tt);
  tt_calls_fail_after("create catalog.stale", pattern, EIO, times);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

static tb_rc take_row(void *self, const struct tc_segment_row *row) {
  *(struct tc_segment_row *)self = *row;
  return TB_OK;
}

static unsigned count_notes(const char *of) {
  unsigned n = 0;

  for (const char *at = tt.notes; (at = strstr(at, of)) != NULL; at += strlen(of)) n++;
  return n;
}

/* A folder that cannot be opened has more segments than a round asks for at once. */
Test(store_retention, a_folder_that_cannot_be_opened_does_not_keep_the_younger_segments) {
  write_segments(1, OLDER, 70);
  write_segments(2, YOUNGER, 2);
  start_retention(ONE_ROUND_NS, "open archive/*/0707*", UINT32_MAX);
  TT_WAIT_UNTIL(tt_call("unlink catalog.stale", 0) >= 0); /* the round is over */
  tt_store_stop(&tt);
  cr_assert_eq(count_notes("retention: 2 segments deleted"), 1, "%s", tt.notes);
  /* Each segment is tried once. A pass that looks for metas to fold may also have tried the folder. */
  cr_assert(tt_calls_failed() == 70 || tt_calls_failed() == 71, "%u", tt_calls_failed());
  cr_assert_eq(count_notes("retention: archive/"), 4, "%s", tt.notes);
  cr_assert_eq(count_notes("retention: 66 more could not be deleted"), 1, "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 70);
  tt_calls_fail("", 0, 0);
  tt_expect_proven(&tt);
}

/* ---- the mark of a catalog that differs from the metas */

Test(store_retention, the_mark_goes_once_nothing_is_half_gone) {
  write_segments(1, OLDER, 1);
  start_retention(EACH_TURN_NS, "unlink archive/*.trace", 1);
  TT_WAIT_UNTIL(tt_call("unlink archive/*.trace", 0) >= 0);
  cr_assert_eq(tt_calls_failed(), 1);
  TT_WAIT_UNTIL(tt_call("unlink catalog.stale", tt_call("unlink archive/*.trace", 0)) >= 0);
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  cr_assert_eq(count_notes("catalog.sqlite is rebuilt"), 0, "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* The mark stays although other segments are deleted. The next start finishes the half-deleted segment, although that start may
 * keep everything. */
Test(store_retention, the_mark_stays_while_one_is_half_gone) {
  write_segments(1, OLDER, 1);
  write_segments(2, YOUNGER, 1);
  start_retention(EACH_TURN_NS, "unlink archive/*/0707*.trace", UINT32_MAX);
  TT_WAIT_UNTIL(tt_call("unlink archive/*/0808*.trace", 0) >= 0);
  tt_store_stop(
      &tt); /* after one more round, which cannot try again because of the minute's allowance */
  cr_assert_lt(tt_call("unlink catalog.stale", 0), 0);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1);
  tt_calls_fail("", 0, 0);
  tt.config.retention_bytes = 0;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 0, "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* ---- what triggers keep */

/* With so few segments, rules of age and service delete at most one in a minute. */
enum { TWO = 2, SEGMENTS = 6, KEPT_GEN = 1 };

/* Returns the n-th segment of the stream in the catalog; its generation is n. */
static struct tc_segment_row row_of(uint64_t gen) {
  struct tc_segment_row row = { 0 };
  struct tc_select select = { .first_gen = gen, .last_gen = gen };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_segments(catalog, &select, take_row, &row, &diag), TB_OK, "%s",
               diag.text);
  tc_catalog_close(catalog);
  close(fd);
  return row;
}

static void keep_the_oldest_of(unsigned segments) {
  write_segments(1, OLDER, segments);
  struct tc_segment_row row = row_of(KEPT_GEN);
  struct tc_keep keep = { .from_ns = row.first_wall_ns,
                          .until_ns = row.last_wall_ns,
                          .noted_ns = tc_wall_ns(),
                          .rule = "slow",
                          .of_stream = true };
  memcpy(keep.stream, row.stream, sizeof keep.stream);
  cr_assert_eq(tc_keeps_add(tc_store_keeps(tt.store), &keep), TB_OK);
  struct tb_diag diag = { 0 };
  cr_assert_eq(tc_keeps_save(tc_store_keeps(tt.store), &diag), TB_OK, "%s", diag.text);
  tt_store_stop(&tt);
  tt.config.retention_every = EACH_TURN_NS;
}

/* The rule of age deletes the younger segment. The kept segment is deleted at an age of its own. */
Test(store_retention, what_a_trigger_keeps_has_an_age_of_its_own) {
  keep_the_oldest_of(TWO);
  tt.config.retention_age = 1;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 1);
  for (unsigned i = 0; i < 20; i++) tt_barrier(&tt); /* rounds that find the kept segment */
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1);
  cr_assert_not(row_of(KEPT_GEN).expired);
  tt_store_stop(&tt);
  tt.config.retention_kept_age = 1;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 0);
  cr_assert_eq(tc_keeps_count(tc_store_keeps(tt.store)), 0, "it is forgotten");
  tt_expect_proven(&tt);
}

/* A minute deletes a tenth of the archive, at least one: the oldest of those that only a finding keeps. */
Test(store_retention, what_findings_keep_has_a_size_of_its_own) {
  keep_the_oldest_of(SEGMENTS);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tc_segment_row last = row_of(SEGMENTS);
  struct tc_keep keep = { .until_ns = last.last_wall_ns,
                          .noted_ns = tc_wall_ns(),
                          .rule = TC_KEEP_FINDING "leak",
                          .of_stream = true };
  memcpy(keep.stream, last.stream, sizeof keep.stream);
  cr_assert_eq(tc_keeps_add(tc_store_keeps(tt.store), &keep), TB_OK);
  struct tb_diag diag = { 0 };
  cr_assert_eq(tc_keeps_save(tc_store_keeps(tt.store), &diag), TB_OK, "%s", diag.text);
  tt_store_stop(&tt);
  tt.config.retention_age = 1;
  tt.config.findings_keep_bytes = UINT64_MAX;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  for (unsigned i = 0; i < 20; i++) tt_barrier(&tt); /* rounds that find them */
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), SEGMENTS);
  tt_store_stop(&tt);
  tt.config.findings_keep_bytes = last.bytes;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(row_of(KEPT_GEN + 1).expired);
  cr_assert_not(row_of(KEPT_GEN).expired, "a rule keeps it");
  cr_assert_not(row_of(SEGMENTS).expired, "the newest of those that a finding keeps");
  tt_expect_proven(&tt);
}

/* If there is room for two, the kept segment and the youngest stay. If there is no room, the kept segment is deleted, too. */
Test(store_retention, what_a_trigger_keeps_goes_last_where_there_is_no_room) {
  keep_the_oldest_of(SEGMENTS);
  tt.config.retention_bytes = 2 * row_of(KEPT_GEN).bytes;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 2);
  cr_assert_not(row_of(KEPT_GEN).expired);
  cr_assert_not(row_of(SEGMENTS).expired);
  tt_store_stop(&tt);
  tt.config.retention_bytes = 1;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 0);
  tt_expect_proven(&tt);
}

Test(store_retention, what_a_trigger_keeps_is_the_last_of_a_service_that_has_too_much) {
  keep_the_oldest_of(TWO);
  tt.config.retention_service_bytes = row_of(KEPT_GEN).bytes;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 1);
  cr_assert_not(row_of(KEPT_GEN).expired);
  tt_expect_proven(&tt);
}

/* ---- under load */

enum { KEPT_BYTES = 4 << 20, GENERATIONS = 500, GENERATION_BYTES = 3 * 5000, UNSEALED_MAX = 8 };

static void keep_4_mib(struct tc_config *config) {
  config->retention_bytes = KEPT_BYTES;
  config->retention_every = ONE_ROUND_NS;
  config->log_group_bytes = 128 << 10;
}

static struct tc_store_stats stats_now(void) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return stats;
}

static uint64_t segments_made(void) {
  struct tc_store_stats stats = stats_now();

  return stats.archive_segments + stats.expired_segments;
}

/* The writer never runs far ahead of the sealer, so that the bound below holds on a slow machine, too. It waits
 * only for sizes: no timed round comes during the test. */
Test(store_retention, the_size_holds_while_records_come) {
  const uint64_t go_on_below = KEPT_BYTES + KEPT_BYTES / 20;
  uint64_t most = 0;

  tt_store_stop(&tt);
  keep_4_mib(&tt.config);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, OLDER);
  tt_header(&w);
  for (uint64_t gen = 1; gen <= GENERATIONS; gen++) {
    tt_generation(&w, gen, 3, GENERATION_BYTES / 3);
    TT_WAIT_UNTIL(segments_made() + UNSEALED_MAX >= gen);
    uint64_t bytes = stats_now().archive_bytes;
    if (bytes > most) most = bytes;
    TT_WAIT_UNTIL(stats_now().archive_bytes <= go_on_below);
  }
  TT_WAIT_UNTIL(segments_made() == GENERATIONS);
  cr_assert_gt(most, KEPT_BYTES - (1 << 20));
  cr_assert_leq(most, KEPT_BYTES + KEPT_BYTES / 10, "%lu", most);
  cr_assert_leq(stats_now().archive_bytes, KEPT_BYTES + KEPT_BYTES / 10);
  cr_assert_gt(stats_now().retention_slices, 10);
  tt_expect_proven(&tt);
}

/* Waits for two whole turns of the thread that passes submitted work on to the sealer. */
static void await_passed_on(struct tt_writer *w, uint64_t gen) {
  for (unsigned i = 0; i < 2; i++) {
    uint64_t turns = stats_now().commit_turns;

    tt_verdict(w, gen + i, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
    TT_WAIT_UNTIL(stats_now().commit_turns > turns);
  }
}

/* Once, each of these works let a slice of the round go first. Here all have arrived when the round begins, and must be done
 * before it ends. */
Test(store_retention, many_small_works_do_not_wait_for_a_round_each) {
  enum { SEGMENTS = 400, VERDICTS = 200 };
  struct tt_writer w = tt_attach_as(&tt, 1, OLDER);
  struct tc_submit *barrier = tc_submit_new(TC_SUBMIT_BARRIER);
  char last[60];

  snprintf(last, sizeof last, "unlink archive/*/%016x.trace", SEGMENTS);
  tt_header(&w);
  for (uint64_t gen = 1; gen <= SEGMENTS; gen++) tt_generation(&w, gen, 1, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt.config.retention_bytes = 1;
  tt.config.retention_every = ONE_ROUND_NS;
  tt_calls_watch(&tt);
  tt_calls_hold("unlink archive/*.trace");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  unsigned answered = tt_count(&tt, TC_REPLY_BARRIER);
  TT_WAIT_UNTIL(tt_calls_held() == 1);
  for (uint64_t i = 0; i < VERDICTS; i++)
    tt_verdict(&w, SEGMENTS + 1 + i, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_submit(&tt, barrier);
  await_passed_on(&w, SEGMENTS + 1 + VERDICTS);
  tt_calls_hold(last);
  TT_WAIT_UNTIL(tt_count(&tt, TC_REPLY_BARRIER) > answered ||
                (tt_call("unlink archive/*.trace", 0) >= 0 && tt_calls_held() == 1));
  cr_assert_gt(tt_count(&tt, TC_REPLY_BARRIER), answered, "they wait for the end of the round");
  cr_expect_lt(stats_now().expired_segments, SEGMENTS);
  tt_calls_hold(NULL);
  TT_WAIT_UNTIL(stats_now().expired_segments == SEGMENTS);
  tt_expect_proven(&tt);
}

/* ---- more than one service with too much ---- */

enum { EACH = 30 };

static void write_segments_of(const char *service, uint64_t conn, unsigned stream) {
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_ATTACH);
  struct tt_writer w = { .t = &tt, .conn = conn };

  msg->conn = conn;
  memset(msg->attach.stream, (int)stream, TC_STREAM_BYTES);
  snprintf(msg->attach.identity, sizeof msg->attach.identity, "tracecollect:agent/a");
  snprintf(msg->attach.service, sizeof msg->attach.service, "%s", service);
  snprintf(msg->attach.instance, sizeof msg->attach.instance, "host");
  tt_submit(&tt, msg);
  w.stream = tt_attached(&tt, conn, &w.seq);
  cr_assert_neq(w.stream, 0);
  tt_header(&w);
  for (uint64_t gen = 1; gen <= EACH; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
}

/* Each service is half a segment too large, so one segment of each is deleted. */
Test(store_retention, each_service_that_has_too_much_gives_its_own_part) {
  write_segments_of("shop", 1, OLDER);
  write_segments_of("bank", 2, YOUNGER);
  uint64_t bytes = row_of(KEPT_GEN).bytes;
  tt_store_stop(&tt);
  tt.config.retention_service_bytes = EACH * bytes - bytes / 2;
  tt.config.retention_every = ONE_ROUND_NS;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 2 * EACH - 2);
  tt_expect_proven(&tt);
}
