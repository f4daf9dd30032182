/* SPDX-License-Identifier: Apache-2.0 */
#include "support/store_fixture.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tt_store tt;

void tt_fixture_open(void (*configure)(struct tc_config *config)) {
  tt_store_make(&tt);
  if (configure != NULL) configure(&tt.config);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

void tt_fixture_remove(void) {
  tt_store_remove(&tt);
}

void tt_shell(const struct tt_store *t, const char *command) {
  char line[400];

  cr_assert_lt(snprintf(line, sizeof line, "cd %s && %s", t->dir, command), (int)sizeof line);
  cr_assert_eq(system(line), 0, "%s", line);
}

/* Copies a folder, and again whatever changed during the copy. */
static void copy_at_rest(const struct tt_store *t, const char *from, const char *to) {
  char line[900];
  bool copied = false;

  snprintf(line, sizeof line,
           "look() { find %s -printf '%%P %%i %%s %%T@\n'; } 2>/dev/null; before=$(look); "
           "mkdir -p %s && rm -rf %s/* && cp -r %s/. %s 2>/dev/null && "
           "[ \"$before\" = \"$(look)\" ]",
           from, to, to, from, to);
  for (int tries = 0; !copied && tries < 1000; tries++) copied = system(line) == 0;
  cr_assert(copied, "%s: %s", line, t->notes);
}

void tt_crash_into(const struct tt_store *t, const char *to) {
  copy_at_rest(t, t->dir, to);
}

void tt_copy_log(const struct tt_store *t, const char *name) {
  char wal[100], to[100];

  snprintf(wal, sizeof wal, "%s/wal", t->dir);
  snprintf(to, sizeof to, "%s/%s", t->dir, name);
  copy_at_rest(t, wal, to);
}

struct tt_writer tt_attach_as(struct tt_store *t, uint64_t conn, unsigned id) {
  struct tt_writer w = { .t = t, .conn = conn };

  tt_attach(t, conn, id, "tracecollect:agent/a");
  w.stream = tt_attached(t, conn, &w.seq);
  cr_assert_neq(w.stream, 0);
  return w;
}

struct tt_writer tt_go_on(struct tt_store *t, uint64_t conn, unsigned id,
                          const struct tt_writer *w) {
  struct tt_writer again = tt_attach_as(t, conn, id);

  cr_assert_eq(again.seq, w->seq, "%s", t->notes);
  again.gen = w->gen, again.batches = w->batches, again.bytes = w->bytes, again.crc = w->crc;
  return again;
}

static void note_problem(void *self, const char *text) {
  strncat(self, text, 1000);
}

struct tc_audited tt_expect_proven(struct tt_store *t) {
  static char problems[8192];
  struct tc_audit_sink sink = { .self = problems, .problem = note_problem };
  struct tb_diag diag = { 0 };
  struct tc_audited seen;

  tt_store_stop(t);
  problems[0] = '\0';
  int fd = open(t->dir, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_audit(fd, true, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  cr_assert_eq(seen.problems, 0, "%s", problems);
  close(fd);
  return seen;
}

static tb_rc keep_row(void *self, const struct tc_stream_row *row) {
  *(struct tc_stream_row *)self = *row;
  return TB_OK;
}

struct tc_stream_row tt_stream_row(struct tt_store *t, unsigned id) {
  unsigned char stream[TC_STREAM_BYTES];
  struct tc_select select = { .stream = stream };
  struct tc_stream_row row = { 0 };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;
  int fd = open(t->dir, O_RDONLY | O_DIRECTORY);

  memset(stream, (int)id, sizeof stream);
  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_streams(catalog, &select, keep_row, &row, &diag), TB_OK, "%s", diag.text);
  tc_catalog_close(catalog);
  close(fd);
  return row;
}
