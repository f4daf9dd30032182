/* SPDX-License-Identifier: Apache-2.0 */
/* Starts after a crash with an open generation, of which the log has a checkpoint: the next start may find the generation's
 * file, the log and quarantine in different states. */
#include <criterion/criterion.h>
#include <errno.h>

#include "support/patience.h"
#include "tests/unit/collector/store/store_copy.h"

TestSuite(store_put_down, .init = open_store, .fini = remove_store);

static void batches(struct tt_writer *w, uint64_t gen, unsigned first, unsigned last) {
  unsigned char bytes[1000];

  for (unsigned i = first; i <= last; i++) {
    tt_fill(bytes, sizeof bytes, gen, i);
    tt_batch(w, gen, bytes, sizeof bytes);
  }
}

/* Writes to other streams until the store has written a checkpoint, for which it syncs the part. */
static void others_write(struct tt_store *t, struct tt_writer *other, uint64_t first_gen) {
  tt_calls_watch(t);
  for (uint64_t gen = first_gen; tt_call("sync open/07*.part", 0) < 0; gen++) {
    tt_generation(other, gen, 5, 60000);
    tt_barrier(t);
    cr_assert_lt(gen, first_gen + 1000, "no checkpoint: %s", t->notes);
  }
  tt_generation(other, first_gen + 1000, 5, 60000); /* then the log has the checkpoint */
  tt_barrier(t);
  tt_generation(other, first_gen + 1001, 5, 60000);
  tt_barrier(t);
}

/* Writes an open generation that has a checkpoint. */
static struct tt_writer put_down(void) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM), other = tt_attach_as(&tt, 2, OTHER);

  tt_header(&other);
  tt_header(&w);
  batches(&w, 1, 0, 4);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  others_write(&tt, &other, 1);
  return w;
}

/* A log file says where the file before it ends. If a power cut takes that log file, what was given up would count again, and
 * files that this start has removed or cut would be missing (sim_seeds, 2455). */
Test(store_put_down, a_start_changes_nothing_before_the_log_it_read_is_on_the_disk) {
  struct tt_writer w = put_down();

  /* In the .part after the bytes that the checkpoint lists: cut off by the next start. */
  batches(&w, 1, 5, 5);
  struct tt_writer other = tt_attach_as(&tt, 3, OTHER);
  tt_batch(&other, 9000, "x", 1);
  tt_barrier(&tt);
  crash();
  start_copy();
  expect_order("write wal/*.wal", "sync wal/*.wal"); /* a failed sync would not be tried again */
  expect_order("sync wal/*.wal", "sync wal");
  expect_order("sync wal", "truncate open/*");
  expect_order("sync wal", "unlink open/*"); /* of the other stream */
  cr_assert_lt(tt_call("create archive/*", 0), 0);
  struct tt_writer again = tt_go_on(&copy, 1, STREAM, &w);
  tt_end(&again, 1);
  tt_barrier(&copy);
  tt_expect_proven(&copy);
}

Test(store_put_down, a_part_that_can_be_read_at_last_loses_nothing) {
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

/* The writer, which lost nine batches of generation 1, continues with the copy and closes. Expects these batches to be lost
 * once. */
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

/* The disk has lost the part. The log relied on it, so the log does not have these records either. */
Test(store_put_down, a_part_that_cannot_be_read_costs_its_generation_and_not_the_start) {
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

/* The part is in quarantine because the agent gave the generation up. The log has this loss after the checkpoint, and will
 * report it again. */
Test(store_put_down, what_was_given_up_just_before_a_crash_is_lost_once) {
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

/* The log has the header before the checkpoint that was resumed, so the header does not move the stream. */
Test(store_put_down, a_header_that_is_met_again_takes_the_stream_nowhere) {
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

/* A meta reports the generation as lost, and the store is killed before the log says so. Its agent reconnects, but cannot make
 * the generation whole. */
Test(store_put_down, what_was_given_up_unsaid_stays_lost) {
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

/* An earlier run abandoned this part of the generation: its bytes equal those of the checkpoint,
 * but its place is taken (sim_seeds, 95111). */
Test(store_put_down, a_part_in_quarantine_is_not_taken_up_where_the_generation_is_published) {
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

/* Once, records that could not be read were skipped as damaged, and acked records with them (sim_seeds, seed 105377). */
Test(store_put_down, a_log_that_cannot_be_read_for_now_is_not_taken_for_damaged) {
  struct tt_writer w = put_down();

  crash();
  tt_calls_fail("read wal/*.wal", ENOMEM, 2); /* the read of the window, and of its first block */
  cr_assert_eq(tt_store_start(&copy), TB_NOMEM, "%s", copy.notes);
  cr_assert_eq(tt_calls_failed(), 2);
  tt_calls_watch(&copy);
  start_copy();
  struct tt_writer again = tt_go_on(&copy, 1, STREAM, &w);
  tt_end(&again, 1);
  tt_barrier(&copy);
  tt_expect_proven(&copy);
}

/* Retention may delete the part from quarantine while the log still has the checkpoint, and after it the loss of the
 * generation. */
Test(store_put_down, a_part_that_was_given_up_and_is_gone_is_lost_once) {
  struct tt_writer w = put_down();

  batches(&w, 1, 5, 5);
  tt_loss(&w, 1, 1, 9, 9000);
  tt_barrier(&tt);
  crash();
  tt_shell(&copy, "rm quarantine/*.part");
  start_copy();
  expect_nine_lost(&w);
}

/* The store is killed after a meta got its final name and before its trace did. That is not a segment: if it counted as one,
 * the open generation would find its place taken (sim_seeds, 61034). */
Test(store_put_down, what_is_half_published_does_not_expire) {
  struct tt_writer w = put_down();

  tt_calls_fail("rename open/07*", ENOSPC, UINT32_MAX);
  tt_end(&w, 1);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  crash();
  /* Without the other stream's segments, whose accounting does not matter here, a round would delete this one first. */
  tt_shell(&copy, "rm -r catalog.sqlite* archive/*/0808*");
  copy.config.segment_generations_max = 3; /* the run stays open for more generations */
  copy.config.retention_bytes = 1;
  copy.config.retention_every = 10000000;
  start_copy();
  tt_barrier(&copy);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ""), 0, "%s", copy.notes);
  struct tc_stream_row row = tt_stream_row(&copy, STREAM);
  cr_assert_eq(row.generations, 1);
  cr_assert_eq(row.lost_batches, 0);
}
