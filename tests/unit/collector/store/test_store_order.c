/* SPDX-License-Identifier: Apache-2.0 */
/* What must be on the disk before what, and what becomes of a sync or a read that fails: the faults that simulated
 * lives found (docs/RELIABILITY.md, rows 3 and 4), each as a scene of a real store. A power cut cannot be had here;
 * that a call comes before another can. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "proto/meta.pb-c.h"
#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { LOG_FILE_BYTES = 1 << 20, CHECKPOINT_BYTES = 1 << 18, STREAM = 7, OTHER = 8 };

static struct tt_store copy;

static void configure(struct tc_config *config) {
  config->log_file_bytes = LOG_FILE_BYTES;
  config->log_group_bytes = 64 << 10;
  config->log_checkpoint_bytes = CHECKPOINT_BYTES;
}

static void open_store(void) {
  tt_fixture_open(configure);
  tt_store_make(&copy);
  configure(&copy.config);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
  tt_store_remove(&copy);
}

TestSuite(store_order, .init = open_store, .fini = remove_store);

/* a happened, b happened, and a first. */
static void expect_order(const char *a, const char *b) {
  int first = tt_call(a, 0), second = tt_call(b, 0);

  cr_assert_geq(first, 0, "no \"%s\"", a);
  cr_assert_geq(second, 0, "no \"%s\"", b);
  cr_assert_lt(first, second, "\"%s\" comes before \"%s\"", b, a);
}

/* The store itself is of no interest any more. */
static void crash(void) {
  tt_crash_into(&tt, copy.dir);
  tt_calls_watch(&copy);
}

static void start_copy(void) {
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
}

static void batches(struct tt_writer *w, uint64_t gen, unsigned first, unsigned last) {
  unsigned char bytes[1000];

  for (unsigned i = first; i <= last; i++) {
    tt_fill(bytes, sizeof bytes, gen, i);
    tt_batch(w, gen, bytes, sizeof bytes);
  }
}

/* Others write until the store has put a checkpoint down: it syncs the part to do so. */
static void others_write(struct tt_store *t, struct tt_writer *other, uint64_t first_gen) {
  tt_calls_watch(t);
  for (uint64_t gen = first_gen; tt_call("sync open/07*.part", 0) < 0; gen++) {
    tt_generation(other, gen, 5, 60000);
    tt_barrier(t);
    cr_assert_lt(gen, first_gen + 1000, "no checkpoint: %s", t->notes);
  }
  tt_generation(other, first_gen + 1000, 5, 60000); /* the log has it */
  tt_barrier(t);
  tt_generation(other, first_gen + 1001, 5, 60000);
  tt_barrier(t);
}

/* A generation lies open, and a checkpoint tells of it. */
static struct tt_writer put_down(void) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM), other = tt_attach_as(&tt, 2, OTHER);

  tt_header(&other);
  tt_header(&w);
  batches(&w, 1, 0, 4);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  others_write(&tt, &other, 1);
  return w;
}

/* Two generations that are published in the copy, whose log does not know. */
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

/* A file of the log that a power cut takes says where the one before it ends: what was given up would count again, and
 * what this start has removed or cut is missing then (sim_seeds, 2455). */
Test(store_order, a_start_changes_nothing_before_the_log_it_read_is_on_the_disk) {
  struct tt_writer w = put_down();

  batches(&w, 1, 5,
          5); /* lies in the file behind what the checkpoint tells of: it is cut off again */
  struct tt_writer other = tt_attach_as(&tt, 3, OTHER);
  tt_batch(&other, 9000, "x", 1);
  tt_barrier(&tt);
  crash();
  start_copy();
  expect_order("write wal/*.wal", "sync wal/*.wal"); /* a failed sync would not try again */
  expect_order("sync wal/*.wal", "sync wal");
  expect_order("sync wal", "truncate open/*");
  expect_order("sync wal", "unlink open/*"); /* the other stream's */
  cr_assert_lt(tt_call("create archive/*", 0), 0);
  struct tt_writer again = tt_go_on(&copy, 1, STREAM, &w);
  tt_end(&again, 1);
  tt_barrier(&copy);
  tt_expect_proven(&copy);
}

/* All is archived, so nothing holds the log; but who the streams are stands in its newest snapshot alone. */
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

/* Its name stays taken, so the next file begins behind it. */
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

/* ---- checkpoints */

Test(store_order, a_part_that_can_be_read_at_last_loses_nothing) {
  struct tt_writer w = put_down();

  batches(&w, 1, 5, 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  crash();
  tt_calls_fail("read open/*", EIO, TC_READ_TRIES - 1);
  start_copy();
  cr_assert_eq(tt_calls_failed(), TC_READ_TRIES - 1);
  struct tt_writer again = tt_go_on(&copy, 1, STREAM, &w);
  tt_end(&again, 1);
  tt_barrier(&copy);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ""), 0, "%s", copy.notes);
  struct tc_stream_row row = tt_stream_row(&copy, STREAM);
  cr_assert_eq(row.generations, 1);
  cr_assert_eq(row.lost_batches, 0);
  tt_expect_proven(&copy);
}

/* Whoever lost nine batches of generation 1 goes on with the copy, and ends: they are lost once. */
static void expect_nine_lost(const struct tt_writer *w) {
  struct tt_writer again = tt_attach_as(&copy, 1, STREAM);

  cr_assert_eq(again.seq, w->seq);
  tt_generation(&again, 2, 3, 1000);
  tt_close_with(&again, 12, 12000);
  tt_barrier(&copy);
  struct tc_stream_row row = tt_stream_row(&copy, STREAM);
  cr_assert_eq(row.lost_batches, 9, "%s", copy.notes);
  cr_assert_eq(row.lost_bytes, 9000);
  cr_assert_eq(row.generations, 1);
  tt_expect_proven(&copy);
}

/* The disk has lost it: so has the log, which relied on it. */
Test(store_order, a_part_that_cannot_be_read_costs_its_generation_and_not_the_start) {
  struct tt_writer w = put_down();

  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  crash();
  tt_calls_fail("read open/*", EIO, UINT32_MAX);
  for (unsigned start = 0; start < 2; start++) {
    if (start > 0) tt_store_stop(&copy);
    cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
    cr_assert_geq(tt_calls_failed(), TC_READ_TRIES);
    cr_assert_eq(tt_count_files(&copy, "quarantine", ".part"), 1, "%s", copy.notes);
  }
  cr_assert_not_null(strstr(copy.notes, ".part: from offset 0 on: Input/output error; the log "
                                        "relied on it: generation 1 is lost"),
                     "%s", copy.notes);
  struct tt_writer again = tt_attach_as(&copy, 1, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_generation(&again, 2, 3, 1000);
  tt_barrier(&copy);
  struct tc_stream_row row = tt_stream_row(&copy, STREAM);
  cr_assert_eq(row.generations, 1, "%s", copy.notes);
  cr_assert_eq(row.lost_generations, 1);
  cr_assert_eq(tt_stream_row(&copy, OTHER).lost_generations, 0);
}

/* Put aside because the agent gave it up, which the log has behind the checkpoint and will say again. */
Test(store_order, what_was_given_up_just_before_a_crash_is_lost_once) {
  struct tt_writer w = put_down();

  batches(&w, 1, 5, 5);
  tt_loss(&w, 1, 1, 9, 9000);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1, "%s", tt.notes);
  crash();
  tt_calls_fail("rename quarantine/* open/*", EIO, 1);
  cr_assert_eq(tt_store_start(&copy), TB_IO, "a file that cannot be fetched back is not missing");
  start_copy();
  expect_nine_lost(&w);
}

/* The header lies in the log before the checkpoint that was taken up: the stream stays where it is. */
Test(store_order, a_header_that_is_met_again_takes_the_stream_nowhere) {
  struct tt_writer w = put_down();

  for (unsigned start = 0; start < 2; start++) {
    if (start == 0) crash();
    start_copy();
    struct tt_writer other = tt_attach_as(&copy, 2, OTHER);
    others_write(&copy, &other, 3000 * (start + 1)); /* the next checkpoint */
    tt_store_stop(&copy);
  }
  start_copy();
  struct tt_writer again = tt_go_on(&copy, 1, STREAM, &w);
  tt_end(&again, 1);
  tt_barrier(&copy);
  struct tc_stream_row row = tt_stream_row(&copy, STREAM);
  cr_assert_eq(row.generations, 1, "%s", copy.notes);
  cr_assert_eq(row.lost_batches, 0);
  tt_expect_proven(&copy);
}

/* Told as lost in a meta, and killed before the log said so: its agent, who is there again, cannot make it whole. */
Test(store_order, what_was_given_up_unsaid_stays_lost) {
  tt_store_stop(&tt);
  tt.config.agents_abandon_after = 1000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  batches(&w, 2, 0, 1);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_calls_watch(&tt);
  tt_calls_fail("rename archive/*.meta.new archive/*.meta", ENOSPC, UINT32_MAX);
  tt_detach(&tt, w.conn);
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  tt_copy_log(&tt, "unsaid");
  tt_calls_fail("", 0, 0);
  TT_WAIT_UNTIL(tt_stream_row(&tt, STREAM).lost_batches == 2);
  crash();
  tt_shell(&copy, "rm -r wal && mv unsaid wal");
  start_copy();
  struct tt_writer again = tt_go_on(&copy, 1, STREAM, &w);
  batches(&again, 2, 2, 2);
  tt_end(&again, 2);
  tt_generation(&again, 3, 3, 1000);
  tt_close_with(&again, 9, 9000);
  tt_barrier(&copy);
  struct tc_stream_row row = tt_stream_row(&copy, STREAM);
  cr_assert_eq(row.lost_batches, 3, "%s", copy.notes);
  cr_assert_eq(row.generations, 2);
  tt_expect_proven(&copy);
}

/* What an earlier run gave up of the generation: its bytes are as good as the checkpoint's part, but its place is taken
 * (sim_seeds, 95111). */
Test(store_order, a_part_in_quarantine_is_not_taken_up_where_the_generation_is_published) {
  struct tt_writer w = put_down();

  tt_shell(&tt, "cp open/07*.part quarantine");
  tt_calls_fail("rename open/07*", EIO, 1 << 30);
  tt_end(&w, 1);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  tt_copy_log(&tt, "unsaid");
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm -r wal && mv unsaid wal");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_go_on(&tt, 3, STREAM, &w);
  tt_generation(&again, 2, 3, 1000);
  tt_close_with(&again, 8, 8000);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, STREAM);
  cr_assert_eq(row.generations, 2, "%s", tt.notes);
  cr_assert_eq(row.lost_batches, 0, "%s", tt.notes);
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
  tt_calls_fail("sync archive/*-[0-9][0-9]", EIO, 1); /* the day's, which has the stream's name */
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

/* What is lost of it is told before what comes behind it is settled: the log has let go of it then. */
Test(store_order, a_generation_that_is_refused_is_told_as_lost_by_the_next_meta) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_calls_watch(&tt);
  tt_calls_fail("open archive/*0707", ENOSPC, UINT32_MAX); /* they wait for each other */
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

/* The log lets go of what stands in metas, so a catalog that lags behind them must be known to, also after a power
 * cut. */
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

/* Its records were passed over as damaged ones, and with them those that were acked (sim_seeds, seed 105377). */
Test(store_order, a_log_that_cannot_be_read_for_now_is_not_taken_for_damaged) {
  struct tt_writer w = put_down();

  crash();
  tt_calls_fail("read wal/*.wal", ENOMEM, 2); /* the window, and its first block */
  cr_assert_eq(tt_store_start(&copy), TB_NOMEM, "%s", copy.notes);
  cr_assert_eq(tt_calls_failed(), 2);
  tt_calls_watch(&copy);
  start_copy();
  struct tt_writer again = tt_go_on(&copy, 1, STREAM, &w);
  tt_end(&again, 1);
  tt_barrier(&copy);
  tt_expect_proven(&copy);
}

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

/* What the disk has lost is no reason not to start: the log has all of it. What lay there has no known
 * owner, and is kept. */
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
  cr_assert_not_null(strstr(copy.notes, "it is made again from the log"), "%s", copy.notes);
  struct tt_writer again = tt_attach_as(&copy, 1, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_store_stop(&copy);
  tt_shell(&copy, "rm catalog.sqlite*");
  start_copy();
  cr_assert_eq(tt_stream_row(&copy, STREAM).lost_generations, 0, "%s", copy.notes);
  tt_expect_proven(&copy);
}

/* A power cut may leave the names of the second of two only: the first is made anew, and then the second, once. */
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

/* It may be sound: the start does without it, and the next one looks again. */
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

/* Killed between a verdict's meta and its row: the row follows once the meta's name is on the disk. */
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

/* ---- retention */

static void keep_one_byte(void) {
  tt.config.retention_bytes = 1;
  tt.config.retention_every = 10000000;
}

/* Segments of which retention has made the metas say that they expired, and which it could not take away: traces
 * cannot be unlinked so often. */
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

/* The catalog knows it last: no round looks again for what has expired in it. */
Test(store_order, what_expires_is_gone_from_the_disk_before_the_catalog_says_so) {
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

/* So much the store says it has, when it has said so to the end. */
static void expect_totals(uint64_t segments, uint64_t bytes, uint64_t expired) {
  struct tc_store_stats stats;

  TT_WAIT_UNTIL((tc_store_stats(tt.store, &stats), stats.expired_segments >= expired));
  cr_assert_eq(stats.expired_segments, expired);
  cr_assert_eq(stats.archive_segments, segments);
  cr_assert_eq(stats.archive_bytes, bytes);
}

Test(store_order, what_could_not_be_taken_away_is_once_it_can) {
  expire_half(1, 3);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 0);
  expect_totals(0, 0, 1);
  cr_assert_eq(tt_calls_failed(), 3);
  tt_expect_proven(&tt);
}

/* More of them than are remembered one by one (TC__HALF_MAX). */
Test(store_order, many_that_could_not_be_taken_away_are_once_they_can) {
  enum { SEGMENTS = 70 };

  expire_half(SEGMENTS, SEGMENTS);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 0);
  expect_totals(0, 0, SEGMENTS);
  cr_assert_eq(tt_calls_failed(), SEGMENTS);
  tt_expect_proven(&tt);
}

/* The start tries first, and goes on without. */
Test(store_order, what_a_start_could_not_take_away_is_once_it_can) {
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

/* Somebody has deleted it by hand: retention would go on for ever by the size that was. */
Test(store_order, the_size_of_the_archive_is_what_its_metas_say) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM), other = tt_attach_as(&tt, 2, OTHER);

  tt_header(&w);
  tt_generation(&w, 1, 30, 1000);
  tt_barrier(&tt); /* the older one */
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

/* Its rows are no measure any more: the batch in which it fails is the last one before it is rebuilt. */
Test(store_order, a_round_of_retention_ends_where_the_catalog_fails) {
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

Test(store_order, what_had_half_expired_is_taken_away_by_the_next_start) {
  expire_half(1, UINT32_MAX);
  crash();
  start_copy(); /* which keeps all it has */
  cr_assert_eq(tt_count_files(&copy, "archive", ".meta"), 1, "%s", copy.notes);
  cr_assert_eq(tt_count_files(&copy, "archive", ".trace"), 0, "%s", copy.notes);
  tt_expect_proven(&copy);
}

/* Retention may take it from quarantine while the log still has the checkpoint, and behind it that it was given up. */
Test(store_order, a_part_that_was_given_up_and_is_gone_is_lost_once) {
  struct tt_writer w = put_down();

  batches(&w, 1, 5, 5);
  tt_loss(&w, 1, 1, 9, 9000);
  tt_barrier(&tt);
  crash();
  tt_shell(&copy, "rm quarantine/*.part");
  start_copy();
  expect_nine_lost(&w);
}

/* A meta that has its name, and no trace yet when the store is killed, is no segment: what lies open would find its
 * place taken (sim_seeds, 61034). */
Test(store_order, what_is_half_published_does_not_expire) {
  struct tt_writer w = put_down();

  tt_calls_fail("rename open/07*", ENOSPC, UINT32_MAX);
  tt_end(&w, 1);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  crash();
  /* Without the others, whose accounting are of no interest, it is what a round takes first. */
  tt_shell(&copy, "rm -r catalog.sqlite* archive/*/0808*");
  copy.config.segment_generations_max = 3; /* it stays open for more */
  copy.config.retention_bytes = 1;
  copy.config.retention_every = 10000000;
  start_copy();
  tt_barrier(&copy);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ""), 0, "%s", copy.notes);
  struct tc_stream_row row = tt_stream_row(&copy, STREAM);
  cr_assert_eq(row.generations, 1);
  cr_assert_eq(row.lost_batches, 0);
}
