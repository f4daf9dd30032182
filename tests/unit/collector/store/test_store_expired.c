/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: segments that expire, and expired segments whose files cannot be deleted. */
#include <criterion/criterion.h>
#include <errno.h>

#include "support/patience.h"
#include "tests/unit/collector/store/store_copy.h"

TestSuite(store_expired, .init = open_store, .fini = remove_store);

static void keep_one_byte(void) {
  tt.config.retention_bytes = 1;
  tt.config.retention_every = 10000000;
}

/* Makes segments that are half expired: their metas say that they expired, but the first `times` attempts to unlink a trace
 * fail. */
static void expire_half(uint64_t segments, unsigned times) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= segments; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  keep_one_byte();
  tt_calls_watch(&tt);
  tt_calls_fail("unlink archive/*.trace", EIO, times);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
}

/* The catalog must be changed last, because no round looks again at a segment that has expired in the catalog. */
Test(store_expired, what_expires_is_gone_from_the_disk_before_the_catalog_says_so) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  keep_one_byte();
  tt_calls_watch(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_call("unlink catalog.stale", 0) >= 0);
  int marked = tt_call("create catalog.stale", 0), on_disk = tt_call("sync .", marked);
  cr_assert(marked >= 0 && on_disk > marked);
  cr_assert_gt(tt_call("rename archive/*.meta.new archive/*.meta", 0), on_disk);
  int named = tt_call("rename archive/*.meta.new archive/*.meta", 0);
  int synced = tt_call("sync archive/*-*/*0707", named),
      gone = tt_call("unlink archive/*.trace", 0);
  cr_assert(synced > named && gone > synced);
  cr_assert_gt(tt_call("sync archive/*-*/*0707", gone), gone);
  cr_assert_gt(tt_call("unlink catalog.stale", 0), gone);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 0);
  tt_expect_proven(&tt);
}

/* Waits for the store to count `expired` segments, and compares its totals. */
static void expect_totals(uint64_t segments, uint64_t bytes, uint64_t expired) {
  struct tc_store_stats stats;

  TT_WAIT_UNTIL((tc_store_stats(tt.store, &stats), stats.expired_segments >= expired));
  cr_assert_eq(stats.expired_segments, expired);
  cr_assert_eq(stats.archive_segments, segments);
  cr_assert_eq(stats.archive_bytes, bytes);
}

Test(store_expired, what_could_not_be_taken_away_is_once_it_can) {
  expire_half(1, 3);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 0);
  expect_totals(0, 0, 1);
  cr_assert_eq(tt_calls_failed(), 3);
  tt_expect_proven(&tt);
}

/* More half-expired segments than the store remembers one by one (TC__HALF_MAX). */
Test(store_expired, many_that_could_not_be_taken_away_are_once_they_can) {
  enum { SEGMENTS = 70 };

  expire_half(SEGMENTS, SEGMENTS);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 0);
  expect_totals(0, 0, SEGMENTS);
  cr_assert_eq(tt_calls_failed(), SEGMENTS);
  tt_expect_proven(&tt);
}

/* The start tries to delete the segment, fails, and continues. */
Test(store_expired, what_a_start_could_not_take_away_is_once_it_can) {
  expire_half(1, UINT32_MAX);
  crash();
  copy.config.retention_bytes = tt.config.retention_bytes;
  copy.config.retention_every = tt.config.retention_every;
  tt_calls_fail("unlink archive/*.trace", EIO, 2);
  start_copy();
  TT_WAIT_UNTIL(tt_count_files(&copy, "archive", ".trace") == 0);
  cr_assert_eq(tt_calls_failed(), 2);
  TT_WAIT_UNTIL(tt_call("write catalog.sqlite*", tt_call("unlink archive/*.trace", 0)) >= 0);
  tt_expect_proven(&copy);
}

/* A person deleted the segment by hand. If retention used the earlier size, it would never stop. */
Test(store_expired, the_size_of_the_archive_is_what_its_metas_say) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM), other = tt_attach_as(&tt, 2, OTHER);

  tt_header(&w);
  tt_generation(&w, 1, 30, 1000);
  tt_barrier(&tt); /* of the older stream */
  tt_header(&other);
  for (uint64_t gen = 1; gen <= 10; gen++) tt_generation(&other, gen, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm -r archive/*/0707*");
  tt.config.retention_bytes = 10 * 3016;
  tt.config.retention_every = 10000000;
  tt_calls_watch(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_call("unlink catalog.stale", 0) >= 0);
  tt_barrier(&tt);
  expect_totals(10, 10 * 3016, 0);
  tt_expect_proven(&tt);
}

/* The catalog's rows cannot be trusted after a failure: the batch in which the catalog fails is the last one until it is
 * rebuilt. */
Test(store_expired, a_round_of_retention_ends_where_the_catalog_fails) {
  enum { SEGMENTS = 40, BATCH = 32 }; /* TC__EXPIRE_MAX */
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  int unlinks = 0;

  tt_header(&w);
  for (uint64_t gen = 1; gen <= SEGMENTS; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  keep_one_byte();
  tt_calls_watch(&tt);
  tt_calls_fail_after("unlink archive/*.trace", "write catalog.sqlite*", EIO, 1);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  expect_totals(0, 0, SEGMENTS);
  cr_assert_eq(tt_calls_failed(), 1);
  int rebuilt = tt_call("unlink catalog.sqlite", 0);
  cr_assert_geq(rebuilt, 0);
  for (int at = 0; (at = tt_call("unlink archive/*.trace", at)) >= 0 && at < rebuilt; at++)
    unlinks++;
  cr_expect_geq(unlinks, 1);
  cr_expect_leq(unlinks, BATCH);
  cr_assert_gt(tt_call("unlink archive/*.trace", rebuilt), rebuilt);
  tt_expect_proven(&tt);
}

Test(store_expired, what_had_half_expired_is_taken_away_by_the_next_start) {
  expire_half(1, UINT32_MAX);
  crash();
  start_copy(); /* with a configuration that keeps everything */
  cr_assert_eq(tt_count_files(&copy, "archive", ".meta"), 1, "%s", copy.notes);
  cr_assert_eq(tt_count_files(&copy, "archive", ".trace"), 0, "%s", copy.notes);
  tt_expect_proven(&copy);
}
