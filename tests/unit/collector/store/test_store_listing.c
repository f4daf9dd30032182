/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that cannot be listed to their end, and names that cannot be looked up: a file that was not seen may exist
 * nevertheless. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { STREAM = 7 };

static void open_store(void) {
  tt_fixture_open(NULL);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(store_listing, .init = open_store, .fini = remove_store);

/* Expects a start to fail if the listing fails at the first entry or after one: the folder must
 * not be taken for empty. */
static void expect_no_start(const char *folder) {
  char pattern[32], reason[96];

  snprintf(pattern, sizeof pattern, "list %s", folder);
  snprintf(reason, sizeof reason, "%s: cannot be listed to its end: Input/output error", folder);
  for (int behind = 0; behind < 2; behind++) {
    tt.notes[0] = '\0';
    tt_shell(&tt, "rm -f catalog.sqlite*");
    tt_calls_watch(&tt);
    tt_calls_fail_after(behind ? pattern : "", pattern, EIO, 1);
    cr_assert_eq(tt_store_start(&tt), TB_IO, "%s", folder);
    cr_assert_eq(tt_calls_failed(), 1);
    cr_assert_not_null(strstr(tt.notes, reason), "%s", tt.notes);
  }
}

/* If a start did not see all, it would lose acked records of the log, parts whose names are taken, or segments for a new
 * catalog. */
Test(store_listing, a_start_that_does_not_see_all_there_is_is_refused_and_loses_nothing) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_batch(&w, 2, "open", 4);
  tt_barrier(&tt);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_store_stop(&tt);
  expect_no_start("wal");
  expect_no_start("open");
  expect_no_start("archive");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_go_on(&tt, 1, STREAM, &w);
  tt_end(&again, 2);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, STREAM);
  cr_assert_eq(row.generations, 2);
  cr_assert_eq(row.lost_batches, 0);
  tt_expect_proven(&tt);
}

/* If some parts were not seen, the oldest is not known. So nothing is deleted until all parts are seen. */
static void expect_listed_again(const char *call, const char *reason) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_batch(&w, 1, "half", 4);
  tt_loss(&w, 1, 1, 1, 4);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1);
  tt_store_stop(&tt);
  tt.config.retention_quarantine_bytes = 1;
  tt.config.retention_every = 1;
  tt_calls_watch(&tt);
  tt_calls_fail(call, EIO, 1);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_call("unlink quarantine/*.part", 0) >= 0);
  tt_store_stop(&tt);
  cr_assert_eq(tt_calls_failed(), 1);
  cr_assert_not_null(strstr(tt.notes, reason), "%s", tt.notes);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 0);
}

Test(store_listing, quarantine_is_listed_again) {
  expect_listed_again("list quarantine", "retention: quarantine: cannot be listed to its end");
}

Test(store_listing, quarantine_is_listed_again_where_a_part_cannot_be_looked_at) {
  expect_listed_again("stat quarantine/*.part", "retention: quarantine/0707");
}

static void leave_a_part(uint64_t conn, unsigned stream) {
  struct tt_writer w = tt_attach_as(&tt, conn, stream);

  tt_header(&w);
  tt_batch(&w, 1, "half", 4);
  tt_loss(&w, 1, 1, 1, 4);
  tt_barrier(&tt);
}

Test(store_listing, a_part_that_cannot_be_looked_at_costs_no_other_its_turn) {
  leave_a_part(1, STREAM);
  leave_a_part(2, STREAM + 1);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 2);
  tt_store_stop(&tt);
  tt.config.retention_quarantine_bytes = 1;
  tt.config.retention_every = 1;
  tt_calls_watch(&tt);
  tt_calls_fail("stat quarantine/07*.part", EIO, 1 << 30);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_call("unlink quarantine/08*.part", 0) >= 0);
  cr_assert_eq(tt_call("unlink quarantine/07*.part", 0), -1);
  tt_calls_fail("", 0, 0);
  TT_WAIT_UNTIL(tt_call("unlink quarantine/07*.part", 0) >= 0);
}

/* The catalog is one generation old, and its mark says so. */
Test(store_listing, a_catalog_whose_mark_cannot_be_looked_for_is_made_anew) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 2; gen++) {
    tt_generation(&w, gen, 3, 1000);
    tt_barrier(&tt);
    tt_store_stop(&tt);
    if (gen == 1) tt_shell(&tt, "mkdir old && cp catalog.sqlite* old");
    if (gen == 2)
      tt_shell(&tt, "rm catalog.sqlite* && mv old/* . && rmdir old && touch catalog.stale");
    if (gen == 2) tt_calls_watch(&tt);
    tt_calls_fail("look catalog.stale", EIO, gen == 2);
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
    uint64_t seq = w.seq;
    w = tt_attach_as(&tt, 1, STREAM);
    cr_assert_eq(w.seq, seq);
  }
  cr_assert_eq(tt_calls_failed(), 1);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 2, "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* A generation number comes again. What the archive has under this number stays as it is. */
Test(store_listing, a_place_that_cannot_be_looked_at_is_not_free) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 2; gen++) {
    tt_generation(&w, gen, 3, 1000);
    tt_barrier(&tt);
    tt_calls_watch(&tt);
    tt_calls_fail(gen == 1 ? "look archive/*.trace" : "open archive/*.meta",
                  gen == 1 ? EIO : EDQUOT, 1);
    tt_generation(&w, gen, 2, 1000);
    tt_barrier(&tt);
    cr_assert_eq(tt_calls_failed(), 1);
    cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), gen, "%s", tt.notes);
  }
  tt_close_with(&w, 10, 10000);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, STREAM);
  cr_assert_eq(row.generations, 2, "%s", tt.notes);
  cr_assert_eq(row.lost_batches, 4);
  tt_expect_proven(&tt);
}

/* A single bad folder does not stop archiving: the start skips the folder, and the next start
 * looks again. */
Test(store_listing, a_folder_that_cannot_be_listed_is_left_out_of_the_catalog) {
  static const char *const calls[] = { "open archive/*-*/*0808", "list archive/*-*/*0808",
                                       "list archive/*-??" };

  for (unsigned i = 0; i < 2; i++) {
    struct tt_writer w = tt_attach_as(&tt, i + 1, STREAM + i);
    tt_header(&w);
    tt_generation(&w, 1, 3, 1000);
    tt_barrier(&tt);
  }
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    tt_store_stop(&tt);
    tt.notes[0] = '\0';
    tt_shell(&tt, "rm catalog.sqlite*");
    tt_calls_watch(&tt);
    tt_calls_fail(calls[i], EIO, 1);
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s: %s", calls[i], tt.notes);
    cr_assert_eq(tt_calls_failed(), 1, "%s", calls[i]);
    cr_assert_not_null(strstr(tt.notes, "left out of the catalog"), "%s", tt.notes);
    cr_assert_not_null(strstr(tt.notes, "archive/2"), "%s", tt.notes);
    cr_assert_eq(tt_stream_row(&tt, STREAM + 1).generations, 0, "%s", tt.notes);
    if (i < 2) cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 1, "%s", tt.notes);
    tt_store_stop(&tt);
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
    for (unsigned k = 0; k < 2; k++) cr_assert_eq(tt_stream_row(&tt, STREAM + k).generations, 1);
  }
  tt_expect_proven(&tt);
}
