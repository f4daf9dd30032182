/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which data must reach the disk, and the handling of a sync or a read that fails:
 * faults that simulated lives found (docs/RELIABILITY.md, rows 3 and 4), each reproduced in a
 * real store. A test cannot cut the power, but can check that one call precedes another. Here:
 * the log, publication and the next start. Checkpoints are in test_store_put_down.c, retention
 * in test_store_expired.c. */
#include <criterion/criterion.h>
#include <errno.h>

#include "support/patience.h"
#include "tests/unit/collector/store/store_copy.h"

TestSuite(store_order, .init = open_store, .fini = remove_store);

/* Publishes two generations in the copy, whose log does not know of this. */
static struct tt_writer publish_unsaid(void) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_calls_watch(&tt);
  tt_calls_fail("rename open/*", ENOSPC, UINT32_MAX);
  tt_header(&w);
  for (uint64_t gen = 1; gen <= 2; gen++) tt_generation(&w, gen, 3, 1000);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  tt_copy_log(&tt, "unsaid");
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 2);
  crash();
  tt_shell(&copy, "rm -r wal && mv unsaid wal");
  return w;
}

/* ---- the log */

/* All data is archived, so nothing holds the log. But only the log's newest snapshot tells which streams there are. */
Test(store_order, an_empty_last_file_does_not_cost_the_one_that_knows_the_streams) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "touch wal/00000000ffff0000.wal");
  for (unsigned start = 0; start < 3; start++) {
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
    cr_assert_eq(tt_attach_as(&tt, 1, STREAM).seq, w.seq, "start %u: %s", start, tt.notes);
    tt_store_stop(&tt);
  }
  tt_expect_proven(&tt);
}

/* The name of the file stays taken, so the next file begins after it. */
Test(store_order, a_file_of_the_log_that_failed_and_cannot_be_deleted_is_gone_past) {
  tt_calls_watch(&tt);
  tt_calls_fail("[wu][rn]*wal/*", EIO, 2); /* write, unlink */
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  tt_header(&w);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_REFUSED, 0), "agents send again");
  cr_assert_eq(tt_calls_failed(), 2);
  w = tt_attach_as(&tt, 2, STREAM);
  cr_assert_eq(w.seq, 0);
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq), "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* ---- publication */

Test(store_order, a_part_whose_sync_failed_is_written_anew_before_it_has_a_name) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_calls_watch(&tt);
  tt_calls_fail("sync open/*.part", EIO, 1);
  tt_generation(&w, 1, 3, 1000);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_FAILED, 0), "it is told");
  tt_barrier(&tt);
  expect_order("create open/*.part.part", "write open/*.part.part");
  expect_order("write open/*.part.part", "sync open/*.part.part");
  expect_order("sync open/*.part.part", "rename open/*.part.part open/*.part");
  expect_order("rename open/*.part.part open/*.part", "rename open/*.part archive/*.trace");
  tt_expect_proven(&tt);
}

Test(store_order, a_meta_whose_sync_failed_is_written_anew_before_it_has_a_name) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_calls_watch(&tt);
  tt_calls_fail("sync archive/*.meta.new", EIO, 1);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_BARRIER), 1, "asked while the disk failed, answered after");
  cr_assert_eq(tt_calls_failed(), 1);
  int first = tt_call("create archive/*.meta.new", 0);
  int second = tt_call("create archive/*.meta.new", first + 1);
  int synced = tt_call("sync archive/*.meta.new", second);
  cr_assert(first >= 0 && second > first && synced > second);
  cr_assert_gt(tt_call("rename archive/*.meta.new archive/*.meta", 0), synced);
  tt_expect_proven(&tt);
}

Test(store_order, a_folder_whose_sync_failed_is_synced_again_before_it_counts) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_calls_watch(&tt);
  /* the day's folder, which contains the name of the stream's */
  tt_calls_fail("sync archive/*-[0-9][0-9]", EIO, 1);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(tt_calls_failed(), 1);
  expect_order("sync archive/*-[0-9][0-9]", "rename open/*.part archive/*.trace");
  expect_order("sync archive", "rename open/*.part archive/*.trace");
  tt_expect_proven(&tt);
}

Test(store_order, what_an_amended_meta_says_is_on_the_disk_before_the_catalog_says_so) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  TT_WAIT_UNTIL(tt_stream_row(&tt, STREAM).generations == 1);
  tt_calls_watch(&tt);
  tt_verdict(&w, 1, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_close(&w);
  tt_barrier(&tt);
  int named = tt_call("rename archive/*.meta.new archive/*.meta", 0);
  int synced = tt_call("sync archive/*-*/*0707", named);
  cr_assert(named >= 0 && synced > named);
  tt_expect_proven(&tt);
}

/* The lost part of the generation must be reported before the records that follow are settled, because the log then deletes the
 * part. */
Test(store_order, a_generation_that_is_refused_is_told_as_lost_by_the_next_meta) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_calls_watch(&tt);
  tt_calls_fail("open archive/*0707", ENOSPC, UINT32_MAX); /* both generations wait */
  tt_generation(&w, 1, 3, 1000);
  tt_generation(&w, 2, 3, 1000);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_STORED, 1), "the second is whole");
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  w = tt_attach_as(&tt, 2, STREAM);
  tt_close_with(&w, 9, 9000);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, STREAM).lost_batches, 3, "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* The log releases records that metas contain, so a catalog that lags behind these metas must be
 * recognized, also after a power cut. */
Test(store_order, a_catalog_that_lags_behind_is_marked_on_the_disk_and_rebuilt) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_calls_watch(&tt);
  tt_calls_fail("sync archive/*-*/*0707", EIO, 1);
  tt_verdict(&w, 1, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  TT_WAIT_UNTIL(tt_call("unlink catalog.stale", 0) >= 0);
  cr_assert_eq(tt_calls_failed(), 1);
  expect_order("create catalog.stale", "sync .");
  expect_order("sync .", "unlink catalog.sqlite");
  expect_order("unlink catalog.sqlite", "unlink catalog.stale");
  tt_expect_proven(&tt);
}

/* ---- the next start */

Test(store_order, a_segment_that_cannot_be_looked_at_is_not_taken_for_missing) {
  static const char *const calls[] = { "open archive/*.meta", "open archive/*-*/*0707",
                                       "sync archive/*-*/*0707" };
  publish_unsaid();

  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    tt_calls_watch(&copy);
    tt_calls_fail(calls[i], EIO, UINT32_MAX);
    cr_assert_eq(tt_store_start(&copy), TB_IO, "%s: %s", calls[i], copy.notes);
    cr_assert_gt(tt_calls_failed(), 0);
  }
  tt_calls_watch(&copy);
  start_copy();
  tt_barrier(&copy);
  cr_assert_eq(tt_count_files(&copy, "archive", ".trace"), 2, "%s", copy.notes);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ""), 0, "%s", copy.notes);
  tt_expect_proven(&copy);
}

/* A file that the disk has lost does not prevent the start: the log has all of its data. The
 * file found in its place has an unknown owner, and is kept. */
Test(store_order, a_segment_whose_meta_cannot_be_read_is_made_anew) {
  struct tt_writer w = publish_unsaid();

  tt_calls_watch(&copy);
  tt_calls_fail("read archive/*.meta", EIO, UINT32_MAX);
  start_copy();
  cr_assert_geq(tt_calls_failed(), TC_READ_TRIES);
  tt_barrier(&copy);
  tt_calls_fail("", 0, 0);
  cr_assert_eq(tt_count_files(&copy, "archive", ".trace"), 2, "%s", copy.notes);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ".part"), 2, "%s", copy.notes);
  cr_assert_not_null(strstr(copy.notes, "is rebuilt from the log"), "%s", copy.notes);
  struct tt_writer again = tt_attach_as(&copy, 1, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_store_stop(&copy);
  tt_shell(&copy, "rm catalog.sqlite*");
  start_copy();
  cr_assert_eq(tt_stream_row(&copy, STREAM).lost_generations, 0, "%s", copy.notes);
  tt_expect_proven(&copy);
}

/* A power cut may leave only the names of the second of two segments. The first is made again, and then the second, once. */
Test(store_order, a_segment_without_the_one_before_it_is_made_anew) {
  struct tt_writer w = publish_unsaid();

  tt_shell(&copy, "rm archive/*/*/0000000000000001.* catalog.sqlite*");
  start_copy();
  struct tt_writer again = tt_attach_as(&copy, 1, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_generation(&again, 3, 3, 1000);
  tt_barrier(&copy);
  cr_assert_eq(tt_count_files(&copy, "archive", ".trace"), 3, "%s", copy.notes);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ""), 0, "%s", copy.notes);
  cr_assert_eq(tt_stream_row(&copy, STREAM).generations, 3);
  tt_expect_proven(&copy);
}

Test(store_order, a_catalog_is_made_of_metas_whose_names_are_on_the_disk) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm catalog.sqlite*");
  tt_calls_watch(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  expect_order("sync archive/*-*/*0707", "read archive/*.meta");
  tt_expect_proven(&tt);
}

/* The meta may be sound: the start skips it, and the next start looks again. */
Test(store_order, a_catalog_that_had_to_leave_a_meta_out_is_made_again_at_the_next_start) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 2; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm catalog.sqlite*");
  tt_calls_watch(&tt);
  tt_calls_fail("read archive/*.meta", EIO, TC_READ_TRIES);
  for (unsigned start = 0; start < 2; start++) {
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
    cr_assert_eq(tt_calls_failed(), TC_READ_TRIES);
    tt_store_stop(&tt);
    cr_assert_eq(tt_stream_row(&tt, STREAM).generations, start == 0 ? 1 : 2, "%s", tt.notes);
  }
  tt_expect_proven(&tt);
}

/* Killed between a verdict's meta and its row: the row is written once the meta's name is on the
 * disk. */
Test(store_order, a_row_follows_its_meta_once_the_metas_name_is_on_the_disk) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "cp catalog.sqlite before");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  w = tt_attach_as(&tt, 1, STREAM);
  tt_verdict(&w, 1, TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "cp before catalog.sqlite");
  tt_calls_watch(&tt);
  tt_calls_fail("sync archive/*", EIO, 1);
  cr_assert_eq(tt_store_start(&tt), TB_IO, "%s", tt.notes);
  cr_assert_eq(tt_calls_failed(), 1);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 0, "it has its verdict");
  tt_expect_proven(&tt);
}
