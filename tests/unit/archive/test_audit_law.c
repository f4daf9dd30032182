/* SPDX-License-Identifier: Apache-2.0 */
/* For every closed stream: produced = archived + expired + lost. For a live stream the sum also includes what is open in the
 * collector and what is still in the agent. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

static char problems[4096];

static void open_store(void) {
  tt_fixture_open(NULL);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(verify_law, .init = open_store, .fini = remove_store);

static void note_problem(void *self, const char *text) {
  size_t len = strlen(problems);

  (void)self;
  snprintf(problems + len, sizeof problems - len, "%s\n", text);
}

static struct tc_audited verify(bool rebuild) {
  struct tc_audit_sink sink = { .problem = note_problem };
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  uint64_t listed;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  problems[0] = '\0';
  if (rebuild) cr_assert_eq(tc_audit_rebuild(fd, &sink, &diag, &listed), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_audit(fd, true, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  close(fd);
  return seen;
}

/* Writes three generations of three batches, and a loss of five batches after the first. */
static struct tt_writer write_stream(unsigned id) {
  struct tt_writer w = tt_attach_as(&tt, id, id);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_loss(&w, 2, 3, 5, 5000);
  tt_generation(&w, 4, 3, 1000);
  tt_generation(&w, 5, 3, 1000);
  return w;
}

enum { BATCHES = 14, BYTES = 14000 };

static void expect_sum(struct tc_sum sum, uint64_t batches, uint64_t bytes) {
  cr_assert_eq(sum.batches, batches, "%lu, not %lu", sum.batches, batches);
  cr_assert_eq(sum.bytes, bytes, "%lu, not %lu", sum.bytes, bytes);
}

Test(verify_law, the_books_of_closed_streams_add_up) {
  struct tt_writer a = write_stream(1), b = write_stream(2), live = write_stream(3);

  tt_close_with(&a, BATCHES, BYTES);
  tt_close_with(&b, BATCHES, BYTES);
  tt_barrier(&tt);
  cr_assert_gt(live.seq, 0);
  tt_store_stop(&tt);
  struct tc_audited seen = verify(false);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_eq(seen.closed.streams, 2, "the third is still open");
  expect_sum(seen.closed.produced, 2 * BATCHES, 2 * BYTES);
  expect_sum(seen.closed.archived, 2 * 9, 2 * 9000);
  expect_sum(seen.closed.lost, 2 * 5, 2 * 5000);
  expect_sum(seen.closed.taken, 0, 0);
}

Test(verify_law, what_retention_took_is_accounted_for) {
  struct tt_writer w = write_stream(1);

  tt_close_with(&w, BATCHES, BYTES);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt.config.retention_bytes = 1;
  tt.config.retention_every = 10000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") <= 2);
  tt_store_stop(&tt);
  struct tc_audited seen = verify(false);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_geq(seen.closed.taken.batches, 3);
  expect_sum(seen.closed.produced, seen.closed.archived.batches + seen.closed.taken.batches + 5,
             BYTES);
}

/* The chain does not show this when the last segment is missing, because no segment comes after it. */
Test(verify_law, a_segment_that_nobody_deleted_by_the_rules_is_missed) {
  struct tt_writer w = tt_attach_as(&tt, 1, 1);
  char command[400];

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 3; gen++) tt_generation(&w, gen, 3, 1000);
  tt_close_with(&w, 9, 9000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  cr_assert_eq(verify(false).problems, 0, "%s", problems);
  /* Deletes the first segment. The chain would also begin at the second one if a person forged the later metas. */
  snprintf(command, sizeof command, "find %s/archive -name '0000000000000001.*' -delete", tt.dir);
  cr_assert_eq(system(command), 0);
  struct tc_audited seen = verify(true);
  cr_assert_geq(seen.problems, 1);
  cr_assert_not_null(strstr(problems, "stream 01010101010101010101010101010101: produced 9 batches "
                                      "of 9000 bytes, but archived 6 of 6000, expired 0 of 0, lost "
                                      "0 of 0"),
                     "%s", problems);
}

Test(verify_law, an_agent_that_says_more_than_came_is_told) {
  struct tt_writer w = write_stream(1);

  tt_close_with(&w, BATCHES + 1, BYTES + 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  cr_assert_eq(verify(false).problems, 1);
  cr_assert_not_null(strstr(problems, "produced 15 batches of 15000 bytes"), "%s", problems);
}

Test(verify_law, what_a_closed_stream_produced_is_known_after_it) {
  struct tt_writer w = write_stream(1);

  tt_close_with(&w, BATCHES, BYTES);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, 1).produced_batches, BATCHES);
  tt_store_stop(&tt);
  verify(true);
  struct tc_stream_row row = tt_stream_row(&tt, 1);
  cr_assert_eq(row.produced_batches, BATCHES, "the metas have it: it outlives the catalog");
  cr_assert_eq(row.produced_bytes, BYTES);
}

/* As write_stream(), with two more batches of a generation that stays open. */
static struct tt_writer write_living(unsigned id) {
  struct tt_writer w = write_stream(id);
  unsigned char batch[1000];

  tt_fill(batch, sizeof batch, 6, 0);
  tt_batch(&w, 6, batch, sizeof batch);
  tt_batch(&w, 6, batch, sizeof batch);
  tt_barrier(&tt); /* when the agent counts, whole generations are archived */
  return w;
}

static void expect_living(const struct tc_audited *seen, uint64_t lost, uint64_t open,
                          uint64_t spooled) {
  cr_assert_eq(seen->problems, 0, "%s", problems);
  cr_assert_eq(seen->live_streams, 1);
  cr_assert_eq(seen->live.streams, 1);
  expect_sum(seen->live.archived, 9, 9000);
  expect_sum(seen->live.lost, lost, 1000 * lost);
  expect_sum(seen->live.open, open, 1000 * open);
  expect_sum(seen->live.spooled, spooled, 1000 * spooled);
}

Test(verify_law, the_books_of_a_living_stream_add_up) {
  struct tt_writer w = write_living(1);

  cr_assert_eq(verify(false).live.streams, 0, "its agent has not counted yet");
  tt_heartbeat(&w, BATCHES + 2 + 4, w.seq, BATCHES + 2);
  tt_barrier(&tt);
  struct tc_audited seen = verify(false);
  expect_living(&seen, 5, 2, 4);
  cr_assert_eq(seen.segments, 3, "what is acked is looked at, however young");
  /* Records after the heartbeat do not change what was true when it was sent. */
  tt_loss(&w, 6, 6, 5, 5000);
  tt_generation(&w, 7, 3, 1000);
  tt_barrier(&tt);
  seen = verify(false);
  expect_living(&seen, 5, 2, 4);
  tt_heartbeat(&w, BATCHES + 5 + 3, w.seq, BATCHES + 5 + 3);
  tt_barrier(&tt);
  seen = verify(false);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  expect_sum(seen.live.archived, 12, 12000);
  expect_sum(seen.live.lost, 10, 10000);
  expect_sum(seen.live.open, 0, 0);
}

Test(verify_law, counters_wait_for_the_records_they_tell_of) {
  struct tt_writer w = write_stream(1);
  unsigned char batch[1000];

  tt_barrier(&tt);
  tt_heartbeat(&w, BATCHES + 3, w.seq + 2, BATCHES + 2);
  tt_heartbeat(&w, BATCHES + 9, w.seq + 8, BATCHES + 8); /* the first still waits for records */
  tt_barrier(&tt);
  cr_assert_eq(verify(false).live.streams, 0);
  tt_fill(batch, sizeof batch, 6, 0);
  for (int i = 0; i < 3; i++) tt_batch(&w, 6, batch, sizeof batch);
  tt_barrier(&tt);
  struct tc_audited seen = verify(false);
  expect_living(&seen, 5, 2, 1);
}

Test(verify_law, losses_that_wait_for_a_file_are_open) {
  struct tt_writer w = write_stream(1);

  tt_barrier(&tt);
  tt_loss(&w, 6, 8, 7, 7000);
  tt_heartbeat(&w, BATCHES + 7, w.seq, BATCHES + 7);
  tt_barrier(&tt);
  struct tc_audited seen = verify(false);
  expect_living(&seen, 5, 7, 0);
  tt_generation(&w, 9, 3, 1000); /* now its meta has the losses */
  tt_barrier(&tt);
  seen = verify(false);
  expect_living(&seen, 5, 7, 0);
}

Test(verify_law, a_living_agent_that_says_more_than_came_is_told) {
  struct tt_writer w = write_living(1);

  tt_heartbeat(&w, BATCHES + 4, w.seq, BATCHES + 3);
  tt_barrier(&tt);
  cr_assert_eq(verify(false).problems, 1);
  cr_assert_not_null(
      strstr(problems,
             "produced 18 batches of 18000 bytes, but archived 9 of 9000, expired 0 of 0, "
             "lost 5 of 5000, open in the collector 2 of 2000, in the agent 1 of 1000"),
      "%s", problems);
}

Test(verify_law, a_segment_that_a_living_stream_lacks_is_missed) {
  struct tt_writer w = write_stream(1);
  char command[400];

  tt_barrier(&tt);
  tt_heartbeat(&w, BATCHES, w.seq, BATCHES);
  tt_barrier(&tt);
  cr_assert_eq(verify(false).problems, 0, "%s", problems);
  snprintf(command, sizeof command, "find %s/archive -name '0000000000000005.*' -delete", tt.dir);
  cr_assert_eq(system(command), 0);
  cr_assert_eq(verify(false).problems, 1, "%s", problems);
  cr_assert_not_null(strstr(problems, "produced 14 batches"), "%s", problems);
}

/* ---- a generation that the collector gives up, and later its agent, too */

static void send_batches(struct tt_writer *w, uint64_t gen, unsigned n) {
  unsigned char batch[1000];

  for (unsigned i = 0; i < n; i++) {
    tt_fill(batch, sizeof batch, gen, (unsigned)w->batches);
    tt_batch(w, gen, batch, sizeof batch);
  }
}

/* Continues the stream where it was, in the middle of a generation. */
static struct tt_writer come_back(const struct tt_writer *w, uint64_t conn) {
  struct tt_writer again = tt_attach_as(&tt, conn, 1);

  cr_assert_eq(again.seq, w->seq);
  again.batches = w->batches, again.bytes = w->bytes, again.crc = w->crc;
  return again;
}

static void start_impatient(void) {
  tt_store_stop(&tt);
  tt.config.agents_abandon_after = 1000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

/* Disconnects the agent for so long that `lost` batches count as lost. */
static void leave(struct tt_writer *w, uint64_t lost) {
  cr_assert(tt_wait_acked(&tt, w->stream, w->seq));
  tt_detach(&tt, w->conn);
  for (int tries = 0; tries < TT_PATIENCE_MS; tries++, usleep(1000))
    if (tt_stream_row(&tt, 1).lost_batches == lost) break;
  cr_assert_eq(tt_stream_row(&tt, 1).lost_batches, lost, "%s", tt.notes);
}

/* Returns the writer of a stream for which the collector has given up two batches of generation 6. */
static struct tt_writer stay_away(void) {
  start_impatient();
  struct tt_writer w = write_stream(1);
  send_batches(&w, 6, 2);
  leave(&w, 5 + 2);
  return w;
}

/* The agent reports generations 6 and 7 as lost: nine batches, nine kilobytes in all, however many were sent. Expects each to
 * be lost once. */
static void expect_nine_lost(struct tt_writer *w) {
  tt_loss(w, 6, 7, 9, 9000);
  tt_generation(w, 8, 3, 1000);
  tt_close_with(w, BATCHES + 9 + 3, BYTES + 9000 + 3000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  struct tc_audited seen = verify(false);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  expect_sum(seen.closed.lost, 5 + 9, 5000 + 9000);
}

Test(verify_law, what_the_collector_gave_up_first_is_lost_once) {
  struct tt_writer w = stay_away(), again = come_back(&w, 2);

  expect_nine_lost(&again);
}

Test(verify_law, what_still_comes_of_it_is_lost_once) {
  struct tt_writer w = stay_away(), again = come_back(&w, 2);

  send_batches(&again, 6, 3);
  expect_nine_lost(&again);
}

Test(verify_law, a_restart_knows_what_was_given_up) {
  struct tt_writer w = stay_away(), again = come_back(&w, 2);

  send_batches(&again, 6, 3);
  cr_assert(tt_wait_acked(&tt, again.stream, again.seq));
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  again = come_back(&again, 3);
  send_batches(&again, 6, 1);
  expect_nine_lost(&again);
}

/* Different metas report the agent's loss and the batches that were given up before. */
Test(verify_law, what_was_given_up_twice_is_lost_once) {
  struct tt_writer w = stay_away(), again = come_back(&w, 2);

  send_batches(&again, 6, 3);
  leave(&again, 5 + 5);
  again = come_back(&again, 3);
  expect_nine_lost(&again);
}

Test(verify_law, a_generation_after_one_that_was_given_up_twice_is_whole) {
  struct tt_writer w = stay_away(), again = come_back(&w, 2);

  tt_loss(&again, 6, 6, 4, 4000);
  tt_generation(&again, 7, 3, 1000);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, 1);
  cr_assert_eq(row.lost_batches, 5 + 4);
  cr_assert_eq(row.generations, 4);
}

/* No segment of the stream is archived yet, so the losses have their own meta. After a restart, more losses are added to it. */
Test(verify_law, losses_without_a_segment_are_kept_over_a_restart) {
  start_impatient();
  struct tt_writer w = tt_attach_as(&tt, 1, 1);

  tt_header(&w);
  send_batches(&w, 1, 2);
  leave(&w, 2);
  start_impatient();
  struct tt_writer again = come_back(&w, 2);
  send_batches(&again, 1, 3);
  leave(&again, 5);
  again = come_back(&again, 3);
  tt_loss(&again, 1, 2, 9, 9000);
  tt_generation(&again, 3, 3, 1000);
  tt_close_with(&again, 12, 12000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  struct tc_audited seen = verify(false);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  expect_sum(seen.closed.lost, 9, 9000);
}

/* Two ends of the stream wait to be written: one because its agent stayed away, and one that the agent sends when it comes
 * back. */
Test(verify_law, a_stream_that_came_back_ends_as_its_agent_says) {
  start_impatient();
  struct tt_writer w = write_stream(1);
  tt_barrier(&tt);
  tt_calls_watch(&tt);
  tt_calls_fail("open archive/*0101", ENOSPC, UINT32_MAX);
  send_batches(&w, 6, 2);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_detach(&tt, w.conn);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_LOST, 1), "it is given up");
  struct tt_writer again = come_back(&w, 2);
  tt_loss(&again, 6, 7, 9, 9000);
  tt_generation(&again, 8, 3, 1000);
  tt_close_with(&again, BATCHES + 9 + 3, BYTES + 9000 + 3000);
  cr_assert(tt_wait_acked(&tt, again.stream, again.seq));
  unsigned failed = tt_calls_failed(); /* each attempt begins with all records so far */
  for (int tries = 0; tt_calls_failed() < failed + 3 && tries < TT_PATIENCE_MS; tries++)
    usleep(1000);
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  struct tc_audited seen = verify(false);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_eq(seen.closed.streams, 1);
  expect_sum(seen.closed.lost, 5 + 9, 5000 + 9000);
}
