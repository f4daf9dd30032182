/* SPDX-License-Identifier: Apache-2.0 */
/* Files of single generations become runs: each byte, the chain, the accounting, whatever call fails in between. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/upgrade.h"
#include "archive/walk.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { STREAMS = 3, GENERATIONS = 5, BATCHES = 3, BYTES = 700 };

static char problems[4096];

static void note_problem(void *self, const char *text) {
  (void)self;
  strncat(problems, text, 500);
  strcat(problems, "\n");
}

static const struct tc_audit_sink sink = { .problem = note_problem };

static void write_generations(uint64_t conn, unsigned id, uint64_t from, bool ends) {
  struct tt_writer w = tt_attach_as(&tt, conn, id);

  if (from == 1) tt_header(&w);
  for (uint64_t gen = from; gen < from + GENERATIONS; gen++) tt_generation(&w, gen, BATCHES, BYTES);
  uint64_t batches = (from - 1 + GENERATIONS) * BATCHES;
  if (ends) tt_close_with(&w, batches, batches * BYTES);
  tt_barrier(&tt);
}

static void make_archive(void) {
  tt_fixture_open(NULL);
  for (unsigned id = 1; id <= STREAMS; id++) write_generations(id, id, 1, id > 1);
  tt_store_stop(&tt);
  tt_calls_watch(&tt);
}

static void remove_archive(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(upgrade, .init = make_archive, .fini = remove_archive);

static tb_rc upgrade(unsigned young, struct tc_upgraded *out, struct tb_diag *diag) {
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);
  tb_rc rc;

  problems[0] = '\0';
  tb_diag_clear(diag);
  rc = tc_upgrade(fd, young, &sink, diag, out);
  close(fd);
  return rc;
}

static struct tc_upgraded upgrade_well(void) {
  struct tc_upgraded done;
  struct tb_diag diag;

  cr_assert_eq(upgrade(0, &done, &diag), TB_OK, "%s", diag.text);
  return done;
}

Test(upgrade, each_streams_files_become_one_run_and_the_stream_goes_on) {
  struct tc_upgraded done = upgrade_well();

  cr_assert_str_empty(problems);
  cr_assert_eq(done.segments, STREAMS * GENERATIONS);
  cr_assert_eq(done.runs, STREAMS);
  cr_assert_eq(done.folders, STREAMS);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), STREAMS);
  cr_assert_eq(tt_count_files(&tt, "archive", ".meta"), STREAMS);
  struct tc_audited seen = tt_expect_proven(&tt);
  cr_assert_eq(seen.segments, STREAMS);
  cr_assert_eq(seen.bytes, STREAMS * (16 + GENERATIONS * BATCHES * BYTES));
  cr_assert_eq(seen.closed.archived.batches, (STREAMS - 1) * GENERATIONS * BATCHES);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  write_generations(1, 1, 1 + GENERATIONS, true);
  seen = tt_expect_proven(&tt);
  cr_assert_eq(seen.segments, STREAMS + GENERATIONS);
  cr_assert_eq(seen.closed.streams, STREAMS);
  cr_assert_eq(upgrade_well().runs, 1);
  tt_expect_proven(&tt);
}

Test(upgrade, a_second_time_there_is_nothing_to_do) {
  upgrade_well();
  struct tc_upgraded again = upgrade_well();
  cr_assert_eq(again.segments, 0);
  cr_assert_eq(again.folders, 0);
}

Test(upgrade, the_newest_days_stay_as_they_are) {
  struct tc_upgraded done;
  struct tb_diag diag;

  cr_assert_eq(upgrade(2, &done, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(done.segments, 0);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), STREAMS * GENERATIONS);
  tt_expect_proven(&tt);
}

Test(upgrade, a_running_collector_is_a_refusal) {
  struct tc_upgraded done;
  struct tb_diag diag;

  cr_assert_eq(tt_store_start(&tt), TB_OK);
  cr_assert_eq(upgrade(0, &done, &diag), TB_REFUSED);
  cr_assert_str_eq(diag.text, "a running collector has this folder; stop it first");
  tt_expect_proven(&tt);
}

Test(upgrade, another_users_folder_is_a_refusal) {
  struct tc_upgraded done;
  struct tb_diag diag;

  if (geteuid() != 0) cr_skip_test("only root can give a folder away");
  cr_assert_eq(chown(tt.dir, 4711, 4711), 0);
  cr_assert_eq(upgrade(0, &done, &diag), TB_REFUSED);
  cr_assert_str_eq(diag.text,
                   "the folder belongs to user 4711, this is user 0: run it as that user");
  cr_assert_eq(chown(tt.dir, 0, 0), 0);
}

/* ---- what is damaged stays, and is named */

static tb_rc damage_third(void *self, const struct tc_archive_file *file) {
  unsigned char byte;

  (void)self;
  if (strncmp(file->stream_hex, "0202", 4) != 0 ||
      strcmp(file->name, "0000000000000003.trace") != 0)
    return TB_OK;
  int fd = openat(file->dir_fd, file->name, O_RDWR);
  cr_assert_eq(pread(fd, &byte, 1, 100), 1);
  byte ^= 1;
  cr_assert_eq(pwrite(fd, &byte, 1, 100), 1);
  close(fd);
  return TB_END;
}

Test(upgrade, a_damaged_segment_is_named_and_stays_alone) {
  struct tb_diag diag = { 0 };
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY), archive_fd = openat(fd, "archive", O_RDONLY);

  cr_assert_eq(tc_archive_walk(archive_fd, damage_third, NULL, NULL, &diag), TB_END);
  close(archive_fd);
  close(fd);
  struct tc_upgraded done = upgrade_well();
  cr_assert_not_null(strstr(problems, "0000000000000003.meta: generation 3 is damaged"), "%s",
                     problems);
  cr_assert_eq(done.runs, STREAMS + 1); /* before it and behind it */
  cr_assert_eq(done.segments, STREAMS * GENERATIONS - 1);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), STREAMS + 2);
}

/* ---- it ends anywhere */

static void expect_whole(const char *what) {
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  uint64_t listed;

  problems[0] = '\0';
  cr_assert_eq(tc_audit_rebuild(fd, &sink, &diag, &listed), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_audit(fd, true, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  cr_assert_str_empty(problems, "%s: %s", what, problems);
  cr_assert_eq(seen.closed.archived.batches, (STREAMS - 1) * GENERATIONS * BATCHES);
  close(fd);
}

/* After each failure the archive is as whole as before, once its catalog is made again, and another try finishes. */
Test(upgrade, whatever_call_fails_nothing_is_lost) {
  static const char *const calls[] = { "create upgrade/*.trace", "write upgrade/*.trace",
                                       "sync upgrade/*.trace",   "create upgrade/*.meta.new",
                                       "write upgrade/*.meta*",  "sync upgrade/*.meta*",
                                       "rename upgrade/*.meta*", "sync upgrade/01*",
                                       "rename upgrade/01*",     "sync archive/*",
                                       "unlink upgrade/*" };

  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    unsigned before = tt_calls_failed();
    struct tc_upgraded done;
    struct tb_diag diag;
    tt_calls_fail(calls[i], EIO, 1);
    tb_rc rc = upgrade(0, &done, &diag);
    tt_calls_fail("", 0, 0);
    cr_assert_eq(tt_calls_failed(), before + 1, "%s", calls[i]);
    cr_assert_neq(rc, TB_OK, "%s", calls[i]);
    expect_whole(calls[i]);
  }
  upgrade_well();
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), STREAMS);
  cr_assert_eq(tt_count_files(&tt, "upgrade", ""), 0);
  tt_expect_proven(&tt);
}
