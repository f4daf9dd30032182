/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that are noted in the meta of a segment that lies there already, while the disk fails and the stream goes on. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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

/* A generation of two batches is given up, and noted where the first one is, but nobody knows whether the disk has that.
 * Until it does the third one comes and waits behind it. */
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

/* Not in the third one's meta as well; and a start whose log knows of neither finds it where the first one is. */
Test(store_noted, losses_are_told_once_and_no_segment_overtakes_them) {
  struct tt_writer w = note_and_go_on();

  tt_shell(&tt, "cp -r wal unsaid");
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
