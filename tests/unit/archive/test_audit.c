/* SPDX-License-Identifier: Apache-2.0 */
/* Each test makes an archive of three streams, and then damages something in it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "archive/catalog/catalog.h"
#include "support/store_driver.h"

enum { STREAMS = 3, GENERATIONS = 4 };

static struct tt_store t;
static char problems[8192];
static char paths[STREAMS * GENERATIONS][192];
static size_t npaths;

static void make_archive(void) {
  tt_store_make(&t);
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  for (unsigned id = 1; id <= STREAMS; id++) {
    struct tt_writer w = { .t = &t, .conn = id };
    tt_attach(&t, id, id, "tracecollect:agent/a");
    w.stream = tt_attached(&t, id, &w.seq);
    tt_header(&w);
    for (uint64_t gen = 1; gen <= GENERATIONS; gen++) tt_generation(&w, gen, 3, 700);
    tt_close(&w);
  }
  tt_barrier(&t);
  for (unsigned i = 0; i < t.nreplies; i++)
    if (t.replies[i]->kind == TC_REPLY_STORED && t.replies[i]->gen != 0)
      strcpy(paths[npaths++], t.replies[i]->final_path);
  tt_store_stop(&t);
}

static void remove_archive(void) {
  tt_store_remove(&t);
}

TestSuite(verify, .init = make_archive, .fini = remove_archive);

static void note_problem(void *self, const char *text) {
  size_t len = strlen(problems);

  (void)self;
  snprintf(problems + len, sizeof problems - len, "%s\n", text);
}

static const struct tc_audit_sink sink = { .problem = note_problem };

static struct tc_audited verify(void) {
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  int fd = open(t.dir, O_RDONLY | O_DIRECTORY);

  problems[0] = '\0';
  cr_assert_eq(tc_audit(fd, true, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  close(fd);
  return seen;
}

static void meta_of(const char *trace, char *out) {
  strcpy(out, trace);
  strcpy(strrchr(out, '.'), ".meta");
}

static void remove_file(const char *path) {
  char full[300];

  snprintf(full, sizeof full, "%s/%s", t.dir, path);
  cr_assert_eq(unlink(full), 0);
}

static void rebuild(void) {
  struct tb_diag diag = { 0 };
  uint64_t segments;
  int fd = open(t.dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(tc_audit_rebuild(fd, &sink, &diag, &segments), TB_OK, "%s", diag.text);
  close(fd);
}

Test(verify, a_good_archive_has_no_problem) {
  struct tc_audited seen = verify();

  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_eq(seen.segments, STREAMS * GENERATIONS);
  cr_assert_eq(seen.bytes, STREAMS * GENERATIONS * (16 + 3 * 700));
}

Test(verify, any_flipped_bit_of_a_trace_or_meta_is_found) {
  char path[192];
  size_t len;

  for (uint64_t at = 0; at < 16 + 3 * 700; at += 61) {
    tt_flip(&t, paths[3], at);
    cr_assert_gt(verify().problems, 0, "byte %lu", at);
    tt_flip(&t, paths[3], at);
  }
  meta_of(paths[5], path);
  free(tt_read_file(&t, path, &len));
  for (uint64_t at = 0; at < len; at++) {
    tt_flip(&t, path, at);
    cr_assert_gt(verify().problems, 0, "byte %lu", at);
    tt_flip(&t, path, at);
  }
  cr_assert_eq(verify().problems, 0, "%s", problems);
}

Test(verify, a_cut_trace_is_named) {
  char full[300];

  snprintf(full, sizeof full, "%s/%s", t.dir, paths[0]);
  cr_assert_eq(truncate(full, 100), 0);
  cr_assert_eq(verify().problems, 1);
  cr_assert_not_null(strstr(problems, "the trace has 100 bytes, the meta says 2116"), "%s",
                     problems);
}

Test(verify, a_missing_segment_breaks_the_chain_even_without_a_catalog) {
  char meta[192];

  meta_of(paths[1], meta);
  remove_file(paths[1]);
  remove_file(meta);
  rebuild();
  cr_assert_eq(verify().problems, 1);
  cr_assert_not_null(strstr(problems, "the chain is broken"), "%s", problems);
}

Test(verify, a_trace_without_a_meta_is_named) {
  char meta[192];

  meta_of(paths[GENERATIONS - 1], meta); /* the last segment of its stream */
  remove_file(meta);
  rebuild();
  verify();
  cr_assert_not_null(strstr(problems, "has no meta"), "%s", problems);
}

Test(verify, a_catalog_that_tells_other_things_is_found_and_rebuilt) {
  char meta[192];

  meta_of(paths[GENERATIONS - 1], meta);
  remove_file(meta);
  remove_file(paths[GENERATIONS - 1]);
  verify();
  cr_assert_not_null(strstr(problems, "has no valid meta"), "%s", problems);
  rebuild();
  cr_assert_eq(verify().problems, 0, "%s", problems);
  remove_file("catalog.sqlite");
  cr_assert_eq(verify().problems, 1);
  cr_assert_not_null(strstr(problems, "catalog.sqlite: is missing"), "%s", problems);
  rebuild();
  cr_assert_eq(verify().problems, 0, "%s", problems);
}

/* A folder in place of a meta cannot be read, so the rebuilt catalog lacks a row. The next start must not take this catalog for
 * whole. */
Test(verify, a_rebuilt_catalog_that_lacks_something_says_so) {
  char meta[192], full[300], mark[300];

  meta_of(paths[GENERATIONS - 1], meta);
  snprintf(full, sizeof full, "%s/%s", t.dir, meta);
  snprintf(mark, sizeof mark, "%s/catalog.stale", t.dir);
  cr_assert_eq(unlink(full), 0);
  cr_assert_eq(mkdir(full, 0700), 0);
  rebuild();
  cr_assert_eq(access(mark, F_OK), 0, "%s", problems);
  cr_assert_eq(rmdir(full), 0);
  rebuild();
  cr_assert_eq(access(mark, F_OK), -1);
}

Test(verify, a_start_rebuilds_a_catalog_that_is_no_database) {
  char full[300];

  snprintf(full, sizeof full, "%s/catalog.sqlite", t.dir);
  FILE *f = fopen(full, "w");
  fputs("this is no database, and long enough to be read as one", f);
  fclose(f);
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  tt_store_stop(&t);
  cr_assert_eq(verify().problems, 0, "%s", problems);
}

static void try_to_start(void *self, const char *text) {
  tb_rc *rc = self;

  (void)text;
  *rc = tt_store_start(&t);
  if (*rc == TB_OK) tt_store_stop(&t);
}

Test(verify, no_collector_starts_while_the_catalog_is_rebuilt) {
  tb_rc started = TB_OK;
  struct tc_audit_sink meanwhile = { .self = &started, .problem = try_to_start };
  struct tb_diag diag = { 0 };
  char meta[192], full[300];
  uint64_t segments;
  int fd = open(t.dir, O_RDONLY | O_DIRECTORY);

  meta_of(paths[GENERATIONS - 1], meta);
  snprintf(full, sizeof full, "%s/%s", t.dir, meta);
  cr_assert_eq(unlink(full), 0);
  cr_assert_eq(mkdir(full, 0700), 0);
  cr_assert_eq(tc_audit_rebuild(fd, &meanwhile, &diag, &segments), TB_OK, "%s", diag.text);
  cr_assert_eq(started, TB_REFUSED);
  close(fd);
  cr_assert_eq(rmdir(full), 0);
  cr_assert_eq(tt_store_start(&t), TB_OK, "its lock is gone");
  tt_store_stop(&t);
}

Test(verify, rebuilding_is_refused_beside_a_daemon_and_looking_is_not) {
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  uint64_t segments;

  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  cr_assert_eq(tc_audit_rebuild(tc_store_dirfd(t.store), &sink, &diag, &segments), TB_REFUSED);
  cr_assert_eq(tc_audit(tc_store_dirfd(t.store), true, &sink, &diag, &seen), TB_OK);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_eq(seen.fresh + seen.segments, STREAMS * GENERATIONS);
}
