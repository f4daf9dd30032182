/* SPDX-License-Identifier: Apache-2.0 */
/* Runs: files of many generations. Readers see the complete generations of a run that is still
 * being written. */
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

enum { STREAM = 7, BATCHES = 3, BATCH_BYTES = 1000, HEADER_BYTES = 16 };
enum {
  OK = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK,
  BROKEN = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN
};

static void configure(struct tc_config *config) {
  config->segment_generations_max = 100;
}

static void open_store(void) {
  tt_fixture_open(configure);
}

TestSuite(store_runs, .init = open_store, .fini = tt_fixture_remove);

struct rows {
  struct tc_segment_row row[8];
  unsigned n;
};

static tb_rc keep(void *self, const struct tc_segment_row *row) {
  struct rows *rows = self;

  cr_assert_lt(rows->n, 8u);
  rows->row[rows->n++] = *row;
  return TB_OK;
}

static struct tc_catalog *open_catalog(void) {
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;

  cr_assert_eq(tc_catalog_open(tc_store_dirfd(tt.store), false, &diag, &catalog), TB_OK, "%s",
               diag.text);
  return catalog;
}

static struct rows list(void) {
  struct tc_catalog *catalog = open_catalog();
  struct tc_select all = { 0 };
  struct tb_diag diag = { 0 };
  struct rows rows = { 0 };

  cr_assert_eq(tc_catalog_segments(catalog, &all, keep, &rows, &diag), TB_OK, "%s", diag.text);
  tc_catalog_close(catalog);
  return rows;
}

static void write_generations(struct tt_writer *w, uint64_t first, uint64_t last) {
  for (uint64_t gen = first; gen <= last; gen++) tt_generation(w, gen, BATCHES, BATCH_BYTES);
}

static void expect_bytes(const struct tc_segment_row *row, uint64_t first, uint64_t last) {
  unsigned char want[BATCH_BYTES];
  size_t len, at = HEADER_BYTES;
  char *bytes = tt_read_file(&tt, row->path, &len);

  cr_assert_not_null(bytes, "%s", row->path);
  cr_assert_geq(len, row->bytes);
  for (uint64_t gen = first; gen <= last; gen++)
    for (unsigned i = 0; i < BATCHES; i++, at += BATCH_BYTES) {
      tt_fill(want, sizeof want, gen, i);
      cr_assert_eq(memcmp(bytes + at, want, sizeof want), 0);
    }
  cr_assert_eq(at, row->bytes);
  free(bytes);
}

Test(store_runs, a_run_is_listed_while_it_grows_and_keeps_its_id) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  write_generations(&w, 1, 5);
  tt_batch(&w, 6, "begun", 5);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 0, "it was not cut");
  struct rows first = list();
  cr_assert_eq(first.n, 1u);
  cr_assert(first.row[0].open);
  cr_assert_eq(first.row[0].first_gen, 1);
  cr_assert_eq(first.row[0].last_gen, 5);
  cr_assert_eq(first.row[0].batches, 5 * BATCHES);
  expect_bytes(&first.row[0], 1, 5);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 5);

  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog = open_catalog();
  tc_meta *meta;
  cr_assert_eq(tc_catalog_open_meta(catalog, first.row[0].id, &diag, &meta), TB_OK);
  cr_assert_eq(meta->n_generations, 5u);
  cr_assert_eq(meta->generations[4]->gen, 5);
  cr_assert_eq(meta->generations[4]->offset, HEADER_BYTES + 4 * BATCHES * BATCH_BYTES);
  tc_meta_free(meta);

  tt_batch(&w, 6, "ended", 5);
  tt_end(&w, 6);
  tt_barrier(&tt);
  struct rows second = list();
  cr_assert_eq(second.n, 1u);
  cr_assert_eq(second.row[0].id, first.row[0].id);
  cr_assert_eq(second.row[0].last_gen, 6);

  tt_close(&w);
  tt_barrier(&tt);
  struct rows sealed = list();
  cr_assert_eq(sealed.n, 1u);
  cr_assert_eq(sealed.row[0].id, first.row[0].id);
  cr_assert_not(sealed.row[0].open);
  cr_assert_eq(strncmp(sealed.row[0].path, "archive/", 8), 0);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1);
  cr_assert_eq(tc_catalog_open_meta(catalog, first.row[0].id, &diag, &meta), TB_NOTFOUND);
  tc_catalog_close(catalog);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 6);
  tt_expect_proven(&tt);
}

/* The run's first generations are written to the catalog once: a reader sees no difference. */
Test(store_runs, a_long_run_is_listed_in_parts) {
  enum { GENERATIONS = 90, AT_ONCE = 9 };
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  struct tb_diag diag = { 0 };
  tc_meta *meta;

  tt_header(&w);
  tt_loss(&w, 1, 2, 1, 1000);
  for (uint64_t first = 3; first < GENERATIONS; first += AT_ONCE) {
    write_generations(&w, first, first + AT_ONCE - 1);
    tt_barrier(&tt);
    for (uint64_t gen = first; gen < first + AT_ONCE; gen++) tt_verdict(&w, gen, OK);
    tt_barrier(&tt);
    struct rows rows = list();
    cr_assert_eq(rows.n, 1u);
    const struct tc_segment_row *row = &rows.row[0];
    uint64_t n = first + AT_ONCE - 3;
    cr_assert_eq(row->first_gen, 3);
    cr_assert_eq(row->last_gen, first + AT_ONCE - 1);
    cr_assert_eq(row->batches, n * BATCHES);
    cr_assert_eq(row->events, n * 10);
    cr_assert_eq(row->verdict, OK);
    cr_assert_eq(tt_stream_row(&tt, STREAM).generations, n);
    cr_assert_eq(tt_stream_row(&tt, STREAM).lost_batches, 1);
    struct tc_catalog *catalog = open_catalog();
    cr_assert_eq(tc_catalog_open_meta(catalog, row->id, &diag, &meta), TB_OK, "%s", diag.text);
    cr_assert_eq(meta->n_generations, n);
    cr_assert_eq(meta->n_losses, 1u);
    cr_assert_eq(meta->bytes, row->bytes);
    for (uint64_t i = 0; i < n; i++) {
      cr_assert_eq(meta->generations[i]->gen, i + 3);
      cr_assert_eq(meta->generations[i]->verdict->code, OK);
    }
    tc_meta_free(meta);
    tc_catalog_close(catalog);
  }
  tt_close(&w);
  tt_barrier(&tt);
  struct rows rows = list();
  cr_assert_eq(rows.n, 1u);
  cr_assert_not(rows.row[0].open);
  cr_assert_eq(rows.row[0].events, 90 * 10);
  cr_assert_eq(tt_stream_row(&tt, STREAM).events, 90 * 10);
}

struct problems {
  unsigned n;
  char text[256];
};

static void keep_problem(void *self, const char *text) {
  struct problems *problems = self;

  problems->n++;
  snprintf(problems->text, sizeof problems->text, "%s", text);
}

static struct tc_audited audit(struct problems *problems) {
  struct tc_audit_sink sink = { .self = problems, .problem = keep_problem };
  struct tb_diag diag = { 0 };
  struct tc_audited seen;

  cr_assert_eq(tc_audit(tc_store_dirfd(tt.store), true, &sink, &diag, &seen), TB_OK, "%s",
               diag.text);
  return seen;
}

/* A running collector's whole generations are verified before their run is sealed. */
Test(store_runs, damage_in_a_run_that_is_written_is_found) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  struct problems problems = { 0 };

  tt_header(&w);
  write_generations(&w, 1, 3);
  tt_batch(&w, 4, "begun", 5);
  tt_barrier(&tt);
  struct rows rows = list();
  struct tc_audited seen = audit(&problems);
  cr_assert_eq(problems.n, 0u, "%s", problems.text);
  cr_assert_eq(seen.open_runs, 1);
  cr_assert_eq(seen.open_generations, 3);
  cr_assert_eq(seen.bytes, rows.row[0].bytes);

  tt_flip(&tt, rows.row[0].path, HEADER_BYTES + 2 * BATCHES * BATCH_BYTES + 7);
  (void)audit(&problems);
  cr_assert_eq(problems.n, 1u);
  char want[256];
  snprintf(want, sizeof want, "%s: generation 3 is damaged", rows.row[0].path);
  cr_assert_str_eq(problems.text, want);
}

/* The archive's totals count published segments only: retention depends on them. */
Test(store_runs, open_runs_are_in_no_total) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  struct tc_store_stats stats;

  tt_header(&w);
  write_generations(&w, 1, 3);
  tt_barrier(&tt);
  tc_store_stats(tt.store, &stats);
  cr_assert_eq(stats.archive_segments, 0);
  cr_assert_eq(stats.archive_bytes, 0);
  tt_close(&w);
  tt_barrier(&tt);
  TT_WAIT_UNTIL((tc_store_stats(tt.store, &stats), stats.archive_segments == 1));
  cr_assert_eq(stats.archive_bytes, HEADER_BYTES + 3 * BATCHES * BATCH_BYTES);
}

Test(store_runs, a_run_is_sealed_at_its_age_though_nothing_more_comes) {
  struct tt_writer w;

  tt_store_stop(&tt);
  tt.config.segment_seconds_max = 50000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  w = tt_attach_as(&tt, 1, STREAM);
  tt_header(&w);
  write_generations(&w, 1, 2);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") > 0);
}

/* Go's reader stops at a broken generation. So later generations get a file of their own, and no reader has to wait until the
 * run is old enough to be sealed. The generation that is open meanwhile continues in the next file. */
Test(store_runs, a_run_ends_behind_a_broken_generation) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  write_generations(&w, 1, 3);
  tt_batch(&w, 4, "begun", 5);
  tt_verdict(&w, 1, OK);
  tt_verdict(&w, 2, OK);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 0);
  tt_verdict(&w, 3, BROKEN);
  TT_WAIT_UNTIL(tt_count_files(&tt, "archive", ".trace") == 1);
  tt_batch(&w, 4, "ended", 5);
  tt_end(&w, 4);
  tt_barrier(&tt);
  struct rows rows = list();
  cr_assert_eq(rows.n, 2u);
  cr_assert_not(rows.row[0].open);
  cr_assert_eq(rows.row[0].last_gen, 3);
  expect_bytes(&rows.row[0], 1, 3);
  cr_assert(rows.row[1].open);
  cr_assert_eq(rows.row[1].first_gen, 4);
  tt_expect_proven(&tt);
}

/* A long run that ended before its verdicts arrived: its meta is rewritten for many verdicts at
 * once, in any order. */
Test(store_runs, verdicts_join_a_sealed_run) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  static const uint64_t order[] = { 5, 1, 3, 2, 4 };
  uint32_t code[] = { OK, OK, BROKEN, OK, OK };
  struct tb_diag diag = { 0 };
  tc_meta *meta;

  tt_header(&w);
  write_generations(&w, 1, 5);
  tt_close(&w);
  tt_barrier(&tt);
  struct rows rows = list();
  cr_assert_eq(rows.n, 1u);
  cr_assert_not(rows.row[0].open);
  for (unsigned i = 0; i < 5; i++) tt_verdict(&w, order[i], code[order[i] - 1]);
  tt_verdict(&w, 4, OK); /* may come again if it was ordered twice */
  tt_store_stop(&tt);
  char path[sizeof rows.row[0].path + 8];
  int len = (int)(strlen(rows.row[0].path) - strlen(".trace"));
  snprintf(path, sizeof path, "%.*s.meta", len, rows.row[0].path);
  int state_fd = open(tt.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cr_assert_eq(tc_meta_read(state_fd, path, &diag, &meta), TB_OK, "%s", diag.text);
  close(state_fd);
  cr_assert_eq(meta->n_generations, 5u);
  for (unsigned i = 0; i < 5; i++) {
    cr_expect_eq(meta->generations[i]->verdict->code, code[i], "%u", i);
    cr_expect_eq(meta->generations[i]->events, 10, "%u", i);
  }
  tc_meta_free(meta);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 0, "none is ordered again");
}

/* The catalog is derived from files. If it is rebuilt while a run is open, it shows the same as before. */
Test(store_runs, a_catalog_that_is_made_again_shows_open_runs) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  write_generations(&w, 1, 3);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm catalog.sqlite*");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_go_on(&tt, 1, STREAM, &w);
  write_generations(&again, 4, 6);
  tt_barrier(&tt);
  struct rows rows = list();
  cr_assert_eq(rows.n, 2u, "%s", tt.notes);
  cr_assert_not(rows.row[0].open);
  cr_assert_eq(rows.row[0].last_gen, 3);
  cr_assert(rows.row[1].open);
  cr_assert_eq(rows.row[1].first_gen, 4);
  expect_bytes(&rows.row[1], 4, 6);
}

/* A generation number that comes again does not take the row of the segment that already has it. */
Test(store_runs, a_number_that_comes_again_leaves_the_sealed_row) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  write_generations(&w, 1, 2);
  tt_loss(&w, 3, 3, 1, 1000); /* the run ends */
  tt_barrier(&tt);
  struct rows before = list();
  cr_assert_eq(before.n, 1u);
  cr_assert_not(before.row[0].open);
  write_generations(&w, 1, 1);
  tt_barrier(&tt);
  struct rows after = list();
  cr_assert_eq(after.n, 1u);
  cr_assert_eq(after.row[0].last_gen, 2);
  cr_assert_not(after.row[0].open);
}

/* The disk neither moves nor removes the bytes of an abandoned generation: the next turn tries
 * again. */
Test(store_runs, a_rest_that_the_disk_keeps_is_moved_later) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  write_generations(&w, 1, 2);
  tt_batch(&w, 3, "\x01unfinished", 11);
  tt_barrier(&tt);
  tt_calls_watch(&tt);
  tt_calls_fail("[ru][en][nl]* open/*3.part*", EIO, 4);
  tt_loss(&w, 3, 3, 1, 1000);
  TT_WAIT_UNTIL(tt_calls_failed() == 4 && tt_count_files(&tt, "open", ".part") == 0);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1, "%s", tt.notes);
  write_generations(&w, 4, 4);
  tt_barrier(&tt);
  struct rows rows = list();
  cr_assert_eq(rows.n, 2u, "%s", tt.notes);
  cr_assert_eq(rows.row[0].last_gen, 2);
  cr_assert_eq(rows.row[1].first_gen, 4);
  tt_calls_watch(NULL);
}

/* A generation number that comes again while the disk still has such bytes waits until the name is free. */
Test(store_runs, a_file_waits_for_a_rest_of_its_name) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  write_generations(&w, 1, 2);
  tt_batch(&w, 3, "\x01unfinished", 11);
  tt_barrier(&tt);
  tt_calls_watch(&tt);
  tt_calls_fail("[ru][en][nl]* open/*3.part*", EIO, 1 << 30);
  tt_loss(&w, 3, 3, 1, 1000);
  write_generations(&w, 4, 4);
  tt_barrier(&tt);
  write_generations(&w, 3, 3);
  TT_WAIT_UNTIL(tt_noted(&tt, "an older file of that name cannot be moved"));
  cr_assert_eq(tt_count(&tt, TC_REPLY_FAILED), 0, "%s", tt.notes);
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  struct rows rows = list();
  cr_assert_eq(rows.n, 3u, "%s", tt.notes);
  cr_assert_eq(rows.row[1].first_gen, 3);
  expect_bytes(&rows.row[1], 3, 3);
  tt_calls_watch(NULL);
}

/* A reader that waits for nothing else still sees the whole generations of a run. */
Test(store_runs, a_reader_asks_for_what_the_runs_have) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  write_generations(&w, 1, 3);
  (void)tt_wait(&tt, TC_REPLY_STORED, 2);
  tc_store_show_runs(tt.store);
  struct rows rows = list();
  cr_assert_eq(rows.n, 1u);
  cr_assert(rows.row[0].open);
  cr_assert_eq(rows.row[0].last_gen, 3);
}

static tb_rc count_open(void *self, const struct tc_segment_row *row) {
  cr_assert(row->open, "%s: %lu..%lu", row->path, row->first_gen, row->last_gen);
  cr_assert_eq(row->last_gen, 2);
  ++*(unsigned *)self;
  return TB_OK;
}

/* More runs than one slice of a pass handles. Records continue meanwhile, and the barrier is answered when all runs are shown. */
Test(store_runs, a_barrier_sees_all_of_many_runs) {
  enum { RUNS = 600 };
  struct tc_select all = { .limit = 2 * RUNS };
  struct tb_diag diag = { 0 };
  unsigned shown = 0;

  for (unsigned i = 1; i <= RUNS; i++) {
    struct tt_writer w = tt_attach_as(&tt, i, i);
    tt_header(&w);
    tt_generation(&w, 1, 1, 100);
    tt_generation(&w, 2, 1, 100);
  }
  tt_barrier(&tt);
  struct tc_catalog *catalog = open_catalog();
  cr_assert_eq(tc_catalog_segments(catalog, &all, count_open, &shown, &diag), TB_OK, "%s",
               diag.text);
  tc_catalog_close(catalog);
  cr_assert_eq(shown, RUNS);
}
