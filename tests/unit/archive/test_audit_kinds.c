/* SPDX-License-Identifier: Apache-2.0 */
/* Archives with both kinds of content hash in one chain are proven. Damage is reported with its generation. */
#include <criterion/criterion.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/audit/audit.h"
#include "archive/catalog/catalog.h"
#include "base/crc32c.h"
#include "support/store_fixture.h"

enum { STREAM = 5, BATCHES = 3, BATCH_BYTES = 700, HEADER_BYTES = 16, RUN = 4 };

static char problems[4096];

/* Files of RUN generations each. */
static void configure(struct tc_config *config) {
  config->segment_generations_max = RUN;
}

static void open_store(void) {
  tt_fixture_open(configure);
}

TestSuite(audit_kinds, .init = open_store, .fini = tt_fixture_remove);

static void set(const char *assignment) {
  struct tb_diag diag = { 0 };

  cr_assert_eq(tc_config_set(&tt.config, assignment, &diag), TB_OK, "%s", diag.text);
}

static void note_problem(void *self, const char *text) {
  (void)self;
  size_t len = strlen(problems);
  snprintf(problems + len, sizeof problems - len, "%s\n", text);
}

static struct tc_audited audit(void) {
  struct tc_audit_sink sink = { .problem = note_problem };
  struct tb_diag diag = { 0 };
  struct tc_audited seen;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  problems[0] = '\0';
  cr_assert_eq(tc_audit(fd, true, &sink, &diag, &seen), TB_OK, "%s", diag.text);
  close(fd);
  return seen;
}

struct rows {
  struct tc_segment_row row[8];
  unsigned n;
};

static tb_rc keep_row(void *self, const struct tc_segment_row *row) {
  struct rows *rows = self;

  cr_assert_lt(rows->n, 8u);
  rows->row[rows->n++] = *row;
  return TB_OK;
}

static struct rows list(void) {
  struct tc_select all = { 0 };
  struct rows rows = { .n = 0 };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_segments(catalog, &all, keep_row, &rows, &diag), TB_OK, "%s", diag.text);
  tc_catalog_close(catalog);
  close(fd);
  return rows;
}

/* Writes a run of the stream from generation `first` on, with a new connection. */
static void write_run(struct tt_writer *w, uint64_t first) {
  *w = tt_attach_as(&tt, first, STREAM);
  if (first == 1) tt_header(w);
  for (uint64_t gen = first; gen < first + RUN; gen++) tt_generation(w, gen, BATCHES, BATCH_BYTES);
  tt_barrier(&tt);
}

/* Three runs of one stream: XXH3, SHA-256, XXH3. */
static struct rows write_mixed(void) {
  static const char *const kinds[] = { "archive.hash=xxh3", "archive.hash=sha256",
                                       "archive.hash=xxh3" };
  struct tt_writer w;

  for (unsigned i = 0; i < 3; i++) {
    tt_store_stop(&tt);
    set(kinds[i]);
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
    write_run(&w, 1 + i * RUN);
  }
  tt_close(&w);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  return list();
}

static void meta_of(const struct tc_segment_row *row, char out[192]) {
  strcpy(out, row->path);
  strcpy(strrchr(out, '.'), ".meta");
}

static tc_meta *read_meta(const struct tc_segment_row *row, int *out_fd) {
  struct tb_diag diag = { 0 };
  char path[192];
  tc_meta *meta;

  meta_of(row, path);
  *out_fd = open(tt.dir, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_meta_read(*out_fd, path, &diag, &meta), TB_OK, "%s", diag.text);
  return meta;
}

static void write_meta(const struct tc_segment_row *row, tc_meta *meta, int fd) {
  struct tb_diag diag = { 0 };
  char path[192];

  meta_of(row, path);
  cr_assert_eq(tc_meta_write(fd, path, meta, NULL, false, &diag), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_meta_publish(fd, path, &diag), TB_OK, "%s", diag.text);
  tc_meta_free(meta);
  close(fd);
}

Test(audit_kinds, a_chain_goes_on_when_the_kind_is_changed) {
  struct rows rows = write_mixed();
  struct tc_audited seen = audit();

  cr_assert_eq(seen.problems, 0, "%s", problems);
  cr_assert_eq(seen.segments, 3);
  cr_assert_eq(rows.n, 3u);
  cr_assert_eq(rows.row[0].hash.kind, TC_HASH_XXH3);
  cr_assert_eq(rows.row[1].hash.kind, TC_HASH_SHA256);
  cr_assert_eq(rows.row[2].hash.kind, TC_HASH_XXH3);
  for (unsigned i = 0; i < 3; i++) {
    int fd;
    tc_meta *meta = read_meta(&rows.row[i], &fd);
    struct tc_content_hash previous = tc_meta_previous(meta);
    if (i == 0)
      cr_assert_eq(previous.kind, TC_HASH_NONE);
    else
      cr_assert(tc_hash_equal(&previous, &rows.row[i - 1].hash));
    for (size_t k = 0; k < meta->n_generations; k++)
      cr_assert_eq(meta->generations[k]->hash.len, i == 1 ? 0u : 16u);
    tc_meta_free(meta);
    close(fd);
  }
}

Test(audit_kinds, a_catalog_of_both_kinds_is_made_again_as_it_was) {
  struct rows rows = write_mixed();
  struct tc_audit_sink sink = { .problem = note_problem };
  struct tb_diag diag = { 0 };
  uint64_t segments;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(tc_audit_rebuild(fd, &sink, &diag, &segments), TB_OK, "%s", diag.text);
  close(fd);
  cr_assert_eq(segments, 3);
  struct rows again = list();
  for (unsigned i = 0; i < 3; i++) cr_assert(tc_hash_equal(&again.row[i].hash, &rows.row[i].hash));
  cr_assert_eq(audit().problems, 0, "%s", problems);
}

Test(audit_kinds, a_segment_that_is_exchanged_breaks_the_chain_of_either_kind) {
  struct rows rows = write_mixed();

  for (unsigned i = 0; i < 2; i++) {
    int fd;
    tc_meta *meta = read_meta(&rows.row[i + 1], &fd);
    meta->previous->value.data[3] ^= 1;
    write_meta(&rows.row[i + 1], meta, fd);
    (void)audit();
    cr_assert_not_null(strstr(problems, "the chain is broken: the segment before it is missing or "
                                        "another one"),
                       "%s", problems);
    meta = read_meta(&rows.row[i + 1], &fd);
    meta->previous->value.data[3] ^= 1;
    write_meta(&rows.row[i + 1], meta, fd);
    cr_assert_eq(audit().problems, 0, "%s", problems);
  }
}

Test(audit_kinds, a_flipped_byte_is_named_with_its_generation) {
  struct rows rows = write_mixed();

  for (unsigned i = 0; i < 3; i++) {
    /* in the third of four generations */
    uint64_t at = HEADER_BYTES + 2 * BATCHES * BATCH_BYTES + 7;
    char damaged[64], title[64];
    tt_flip(&tt, rows.row[i].path, at);
    cr_assert_eq(audit().problems, 3, "%s", problems);
    snprintf(damaged, sizeof damaged, "generation %u is damaged", 1 + i * RUN + 2);
    cr_assert_not_null(strstr(problems, damaged), "%s", problems);
    snprintf(title, sizeof title, "%s of the trace is not the meta's",
             i == 1 ? "SHA-256" : "XXH3-128");
    cr_assert_not_null(strstr(problems, title), "%s", problems);
    tt_flip(&tt, rows.row[i].path, at);
  }
  cr_assert_eq(audit().problems, 0, "%s", problems);
}

/* The trace fits its CRC32C, but not the generation's hash. */
Test(audit_kinds, a_generations_hash_alone_finds_it) {
  struct rows rows = write_mixed();
  int fd;
  tc_meta *meta = read_meta(&rows.row[0], &fd);

  meta->generations[1]->hash.data[15] ^= 1;
  write_meta(&rows.row[0], meta, fd);
  cr_assert_eq(audit().problems, 1, "%s", problems);
  cr_assert_not_null(strstr(problems, "0000000000000001.meta: generation 2 is damaged"), "%s",
                     problems);
}

Test(audit_kinds, an_expired_segments_hashes_still_fit_together) {
  struct rows rows = write_mixed();
  char path[300];
  int fd;
  tc_meta *meta = read_meta(&rows.row[0], &fd);

  meta->expired = true;
  write_meta(&rows.row[0], meta, fd);
  snprintf(path, sizeof path, "%s/%s", tt.dir, rows.row[0].path);
  cr_assert_eq(unlink(path), 0);
  (void)audit();
  cr_assert_null(strstr(problems, "content hash"), "%s", problems);
  meta = read_meta(&rows.row[0], &fd);
  meta->generations[3]->hash.data[0] ^= 1;
  write_meta(&rows.row[0], meta, fd);
  (void)audit();
  cr_assert_not_null(
      strstr(problems, "0000000000000001.meta: its content hash is not that of its generations"),
      "%s", problems);
}

Test(audit_kinds, a_kind_of_later_years_is_refused_by_name) {
  struct rows rows = write_mixed();
  struct tb_diag diag = { 0 };
  char path[192];
  int fd;
  tc_meta *meta = read_meta(&rows.row[0], &fd);

  meta->hash->kind = (Tracecollect__V1__HashKind)9;
  write_meta(&rows.row[0], meta, fd);
  meta_of(&rows.row[0], path);
  fd = open(tt.dir, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_meta_read(fd, path, &diag, &meta), TB_CORRUPT);
  cr_assert_not_null(
      strstr(diag.text, "its content hash is of kind 9, which this program does not know"), "%s",
      diag.text);
  close(fd);
  (void)audit();
  cr_assert_not_null(strstr(problems, "0000000000000001.meta: its content hash is of kind 9"), "%s",
                     problems);
}
