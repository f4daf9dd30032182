/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that are noted in an existing meta, a segment's or one of their own, while the disk
 * fails and the stream continues. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { STREAM = 7 };

static void configure(struct tc_config *config) {
  config->agents_abandon_after = 1000000;
}

static void open_store(void) {
  tt_fixture_open(configure);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(store_noted, .init = open_store, .fini = remove_store);

/* A generation of two batches is abandoned, and the loss noted in the meta of the first one, but
 * it is not known whether the note is on the disk. Until that is known, the third generation
 * arrives and waits. */
static struct tt_writer note_and_go_on(void) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  unsigned char bytes[1000] = { 0 };
  for (int i = 0; i < 2; i++) tt_batch(&w, 2, bytes, sizeof bytes);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_calls_watch(&tt);
  tt_calls_fail("sync archive/*-*/*0707", EIO, UINT32_MAX);
  tt_detach(&tt, w.conn);
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  struct tt_writer again = tt_attach_as(&tt, 2, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_generation(&again, 3, 3, 1000);
  cr_assert(tt_wait_acked(&tt, again.stream, again.seq));
  TT_WAIT_UNTIL(tt_call("create open/07*3.part", 0) >= 0);
  unsigned failed = tt_calls_failed();
  TT_WAIT_UNTIL(tt_calls_failed() >= failed + 3);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1, "it has its place before the losses");
  return again;
}

static void expect_two_lost(void) {
  struct tc_stream_row row = tt_stream_row(&tt, STREAM);

  cr_assert_eq(row.generations, 2, "%s", tt.notes);
  cr_assert_eq(row.lost_batches, 2, "%s", tt.notes);
  cr_assert_eq(row.lost_bytes, 2000);
}

/* The losses are not repeated in the third segment's meta, and a start whose log has neither of
 * them finds the losses with the first segment. */
Test(store_noted, losses_are_told_once_and_no_segment_overtakes_them) {
  struct tt_writer w = note_and_go_on();

  tt_copy_log(&tt, "unsaid");
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  expect_two_lost();
  tt_store_stop(&tt);
  tt_shell(&tt, "rm -r wal && mv unsaid wal");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 1, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_close_with(&again, 8, 8000);
  tt_barrier(&tt);
  expect_two_lost();
  tt_expect_proven(&tt);
}

/* The run died before the note was certainly on the disk: the next run syncs what it counts as
 * reported. */
Test(store_noted, what_a_killed_run_noted_counts_once_it_is_on_the_disk) {
  struct tt_writer w = note_and_go_on();

  tt_store_stop(&tt);
  tt_calls_watch(&tt);
  tt_calls_fail("sync archive/*-*/*0707", EIO, 1);
  cr_assert_neq(tt_store_start(&tt), TB_OK);
  cr_assert_eq(tt_calls_failed(), 1);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 1, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_close_with(&again, 8, 8000);
  tt_barrier(&tt);
  expect_two_lost();
  tt_expect_proven(&tt);
}

/* ---- in a meta of their own */

static void expect_lost(uint64_t batches) {
  struct tc_stream_row row = tt_stream_row(&tt, STREAM);

  cr_assert_eq(row.lost_batches, batches, "%lu: %s", row.lost_batches, tt.notes);
  cr_assert_eq(row.lost_bytes, 1000 * batches);
}

/* Writes generation gen, of two batches. */
static void lose(struct tt_writer *w, uint64_t gen) {
  tt_loss(w, gen, gen, 2, 2000);
  cr_assert(tt_wait_acked(&tt, w->stream, w->seq));
}

static void leave(const struct tt_writer *w, uint64_t lost_batches) {
  tt_detach(&tt, w->conn);
  TT_WAIT_UNTIL(tt_stream_row(&tt, STREAM).lost_batches == lost_batches);
}

static struct tt_writer leave_note(void) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  lose(&w, 1);
  leave(&w, 2);
  return tt_attach_as(&tt, 2, STREAM);
}

/* Starts without a catalog; while a new one is made, calls that match the pattern fail. */
static void start_without_catalog(const char *pattern, unsigned times) {
  tt_shell(&tt, "rm catalog.sqlite*");
  tt_calls_watch(&tt);
  tt_calls_fail(pattern, EIO, times);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

static void close_and_prove(uint64_t batches) {
  struct tt_writer w = tt_attach_as(&tt, 9, STREAM);

  tt_close_with(&w, batches, 1000 * batches);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_calls_watch(NULL);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes); /* makes a catalog of everything */
  expect_lost(batches);
  tt_expect_proven(&tt);
}

/* A note that the rebuilt catalog lacks, because the disk did not return it then, is looked up:
 * its losses, which are not in the log, are not reported again. */
Test(store_noted, a_note_that_the_catalog_had_to_leave_out_is_found) {
  struct tt_writer w = leave_note();

  lose(&w, 5);
  tt_copy_log(&tt, "unsaid");
  leave(&w, 4);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm -r wal && mv unsaid wal");
  start_without_catalog("read archive/*.meta", TC_READ_TRIES);
  cr_assert_eq(tt_calls_failed(), TC_READ_TRIES);
  close_and_prove(4);
}

/* A note that cannot be read may exist, so it is not overwritten. */
Test(store_noted, a_note_that_could_not_be_found_keeps_what_it_says) {
  leave_note();
  tt_store_stop(&tt);
  start_without_catalog("read archive/*.meta", 2 * TC_READ_TRIES);
  struct tt_writer w = tt_attach_as(&tt, 3, STREAM);
  lose(&w, 1);
  leave(&w, 4);
  cr_assert_eq(tt_calls_failed(), 2 * TC_READ_TRIES);
  cr_assert_not_null(strstr(tt.notes, "that were reported may be reported again"), "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), 1);
  close_and_prove(4);
}

/* Neither folder can be opened when the catalog is made. */
Test(store_noted, a_note_is_looked_for_where_its_stream_lies_and_nowhere_else) {
  struct tt_writer other = tt_attach_as(&tt, 5, STREAM - 1);

  tt_header(&other);
  tt_generation(&other, 1, 3, 1000);
  tt_close_with(&other, 3, 3000);
  tt_barrier(&tt);
  leave_note();
  tt_store_stop(&tt);
  start_without_catalog("open archive/*-*/*0[67]", 2);
  cr_assert_eq(tt_calls_failed(), 2);
  cr_assert_not_null(strstr(tt.notes, "/0606"), "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 3, STREAM);
  lose(&w, 5);
  leave(&w, 4);
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), 2);
  cr_assert_lt(tt_call("open archive/*/0606*", 0), 0);
  close_and_prove(4);
}

/* A power cut kept the name of a segment's trace, but not of its meta, whose place a note has:
 * the segment is made again from the log, and reports the note's losses. */
Test(store_noted, a_trace_beside_a_note_is_no_segment) {
  struct tt_writer w = leave_note();

  tt_shell(&tt, "cp archive/*/*/*.meta note");
  tt_calls_watch(&tt);
  tt_calls_fail("rename open/*", ENOSPC, UINT32_MAX);
  tt_generation(&w, 1, 3, 1000);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  tt_copy_log(&tt, "unsaid");
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1);
  tt_shell(&tt, "rm -r wal catalog.sqlite* && mv unsaid wal && mv note archive/*/*/*.meta");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 3, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_close_with(&again, 5, 5000);
  tt_barrier(&tt);
  expect_lost(2);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 1, "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ""), 0, "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* Somebody later restores the meta from a copy. */
Test(store_noted, losses_that_a_damaged_meta_cannot_tell_have_one_of_their_own) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  tt_shell(&tt, "cp archive/*/*/*.meta whole && for m in archive/*/*/*.meta; do echo >>$m; done");
  lose(&w, 2);
  leave(&w, 2);
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), 2);
  tt_store_stop(&tt);
  tt_shell(&tt, "mv whole archive/*/*/0000000000000001.meta && rm catalog.sqlite*");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 2, STREAM);
  cr_assert_eq(again.seq, w.seq);
  tt_close_with(&again, 5, 5000);
  tt_barrier(&tt);
  expect_lost(2);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 1, "%s", tt.notes);
  tt_expect_proven(&tt);
}
