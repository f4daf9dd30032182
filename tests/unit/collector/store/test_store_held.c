/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that would hold the log, open/ and in the end the disk for all others: a generation
 * without an end, nothing but losses, nothing but a header. */
#include <criterion/criterion.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/store_fixture.h"

enum {
  HELD_BYTES = 2 << 20,
  LOG_FILE_BYTES = 1 << 20,
  BATCH_BYTES = 60000,
  GENERATION_BYTES = 1 << 18
};

static unsigned char batch[BATCH_BYTES];

static void configure(struct tc_config *config) {
  config->log_file_bytes = LOG_FILE_BYTES;
  config->log_group_bytes =
      LOG_FILE_BYTES / 4; /* else a file of the log grows with what arrives during a slow sync */
  config->log_held_bytes_max = HELD_BYTES;
}

static void open_store(void) {
  tt_fixture_open(configure);
}

TestSuite(store_held, .init = open_store, .fini = tt_fixture_remove);

static bool log_is_short(void) {
  return tt_count_files(&tt, "wal", ".wal") <= HELD_BYTES / LOG_FILE_BYTES + 2;
}

/* Writes whole generations of a megabyte, with a barrier after each. */
static uint64_t write_bytes(struct tt_writer *w, uint64_t gen, uint64_t bytes) {
  for (uint64_t upto = gen + bytes / GENERATION_BYTES; gen < upto; gen++) {
    tt_generation(w, gen, GENERATION_BYTES / BATCH_BYTES, BATCH_BYTES);
    tt_barrier(&tt);
  }
  return gen;
}

/* Others continue to write: five times as much as may be held, then until the log is short
 * again. */
static void others_write(struct tt_writer *other, uint64_t gen) {
  gen = write_bytes(other, gen, 5 * HELD_BYTES);
  for (int ms = 0; ms < TT_PATIENCE_MS && !log_is_short(); ms += 10, gen++) {
    tt_generation(other, gen, 1, 100);
    tt_barrier(&tt);
    usleep(10000);
  }
  cr_assert(log_is_short(), "%u log files: %s", tt_count_files(&tt, "wal", ".wal"), tt.notes);
}

Test(store_held, a_generation_without_an_end_is_given_up_and_the_next_is_stored) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7), other = tt_attach_as(&tt, 2, 8);
  const unsigned sent = 4 * HELD_BYTES / BATCH_BYTES;

  tt_header(&other);
  tt_header(&w);
  tt_generation(&w, 1, 2, 100);
  for (unsigned i = 0; i < sent; i++) {
    tt_batch(&w, 2, batch, sizeof batch);
    if (i % 20 == 0) tt_barrier(&tt);
  }
  others_write(&other, 1);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1, "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "open", ".part"), 0, "later batches are not kept either");
  tt_batch(&w, 2, batch, sizeof batch);
  tt_end(&w, 2);
  tt_generation(&w, 3, 3, 1000);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, 7);
  cr_assert_eq(row.generations, 2);
  cr_assert_eq(row.lost_batches, sent + 1);
  cr_assert_eq(row.lost_bytes, (sent + 1) * (uint64_t)BATCH_BYTES);
  cr_assert_eq(tt_stream_row(&tt, 8).lost_batches, 0);
  struct tc_reply *stored = NULL;
  for (unsigned i = 0; i < tt_count(&tt, TC_REPLY_STORED); i++) {
    struct tc_reply *reply = tt_wait(&tt, TC_REPLY_STORED, i);
    if (reply->stream == w.stream) stored = reply;
  }
  cr_assert_eq(stored->gen, 3);
  cr_assert(stored->new_run);
  tt_expect_proven(&tt);
}

Test(store_held, what_was_given_up_stays_given_up_over_a_restart) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  tt_batch(&w, 1, batch, sizeof batch);
  others_write(&other, 1);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 1, "of a stream without a segment too");
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 3, 7);
  cr_assert_eq(again.seq, w.seq);
  tt_batch(&again, 1, batch, sizeof batch);
  tt_end(&again, 1);
  tt_generation(&again, 2, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1, "%s", tt.notes);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 2);
  cr_assert_eq(tt_stream_row(&tt, 7).generations, 1);
  tt_expect_proven(&tt);
}

Test(store_held, losses_without_a_segment_do_not_hold_the_log) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  tt_loss(&w, 1, 3, 30, 3000);
  others_write(&other, 1);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 30);
  tt_loss(&w, 4, 4, 5, 500);
  others_write(&other, 1000);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 35);
  /* A segment that takes the note's file name takes over the note's losses. */
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 35);
  cr_assert_eq(tt_stream_row(&tt, 7).generations, 1);
  tt_expect_proven(&tt);
}

Test(store_held, a_header_and_nothing_else_does_not_hold_the_log) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  others_write(&other, 1);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, 7).generations, 1);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 0);
  tt_expect_proven(&tt);
}

/* A younger generation is open while an older loss holds the log. */
Test(store_held, only_what_holds_is_given_up) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  tt_loss(&w, 1, 1, 30, 3000);
  uint64_t gen = write_bytes(&other, 1, HELD_BYTES / 8 * 7);
  tt_batch(&w, 2, "young", 5);
  for (int ms = 0; ms < TT_PATIENCE_MS && tt_stream_row(&tt, 7).lost_batches == 0;
       ms += 10, gen++) {
    tt_generation(&other, gen, 1, BATCH_BYTES);
    tt_barrier(&tt);
    usleep(10000);
  }
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 30);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 0);
  tt_end(&w, 2);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, 7).generations, 1);
  cr_assert_eq(tt_stream_row(&tt, 7).lost_batches, 30);
  tt_expect_proven(&tt);
}
