/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the catalog and reads rows. Numbers are u64 in C and i64 in SQLite: generations and wall clocks stay below 2^63 in
 * any valid trace. */
#include "archive/catalog/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/catalog/private.h"
#include "archive/catalog/schema.h"
#include "base/buf.h"

static bool is_rotten(sqlite3 *db) {
  int code = sqlite3_extended_errcode(db);

  switch (code) {
  case SQLITE_IOERR_READ:
  case SQLITE_IOERR_SHORT_READ:
  case SQLITE_IOERR_CORRUPTFS: return true;
  default: return (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB;
  }
}

tb_rc tc__catalog_fail(struct tc_catalog *catalog, struct tb_diag *diag, const char *what) {
  bool rot = is_rotten(catalog->db);

  catalog->rotten |= rot;
  return tb_fail(diag, rot ? TB_CORRUPT : TB_IO, "catalog.sqlite: %s: %s", what,
                 sqlite3_errmsg(catalog->db));
}

tb_rc tc__catalog_statement(struct tc_catalog *catalog, enum tc__statement which, const char *sql,
                            struct tb_diag *diag, sqlite3_stmt **out) {
  sqlite3_stmt **slot = &catalog->stmt[which];

  if (*slot == NULL &&
      sqlite3_prepare_v3(catalog->db, sql, -1, SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK)
    return tc__catalog_fail(catalog, diag, "prepare");
  sqlite3_reset(*slot);
  sqlite3_clear_bindings(*slot);
  *out = *slot;
  return TB_OK;
}

tb_rc tc__catalog_run(struct tc_catalog *catalog, sqlite3_stmt *stmt, struct tb_diag *diag,
                      const char *what) {
  int rc = sqlite3_step(stmt);

  if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
    tb_rc failed = tc__catalog_fail(catalog, diag, what);
    sqlite3_reset(stmt);
    return failed;
  }
  sqlite3_reset(stmt);
  return TB_OK;
}

/* Creates all tables and the version number in one transaction. */
static int make_schema(struct tc_catalog *catalog) {
  char sql[40];

  snprintf(sql, sizeof sql, "PRAGMA user_version=%d; COMMIT", TC__SCHEMA_VERSION);
  int code = sqlite3_exec(catalog->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
  if (code == SQLITE_OK) code = sqlite3_exec(catalog->db, tc__catalog_schema, NULL, NULL, NULL);
  return code == SQLITE_OK ? sqlite3_exec(catalog->db, sql, NULL, NULL, NULL) : code;
}

static tb_rc read_version(struct tc_catalog *catalog, struct tb_diag *diag, int *out) {
  sqlite3_stmt *stmt;

  if (sqlite3_prepare_v2(catalog->db, "PRAGMA user_version", -1, &stmt, NULL) != SQLITE_OK)
    return tc__catalog_fail(catalog, diag, "open");
  *out = sqlite3_step(stmt) == SQLITE_ROW ? sqlite3_column_int(stmt, 0) : -1;
  sqlite3_finalize(stmt);
  if (*out == 0 || *out == TC__SCHEMA_VERSION) return TB_OK;
  return tb_fail(diag, TB_CORRUPT, "catalog.sqlite: has schema %d, this program needs %d", *out,
                 TC__SCHEMA_VERSION);
}

/* Rollback data and sorts stay in memory (a page of rows at most): there may be no writable folder for temporary
 * files. */
static tb_rc set_up(struct tc_catalog *catalog, bool writable, struct tb_diag *diag) {
  int version = 0;

  sqlite3_busy_timeout(catalog->db, 5000);
  TB_TRY(read_version(catalog, diag, &version));
  if (!writable) {
    if (sqlite3_exec(
            catalog->db,
            "PRAGMA query_only=1; PRAGMA temp_store=MEMORY; SELECT 1 FROM segments LIMIT 1", NULL,
            NULL, NULL) != SQLITE_OK)
      return tc__catalog_fail(catalog, diag, "open");
    return TB_OK;
  }
  if (sqlite3_exec(catalog->db,
                   "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY",
                   NULL, NULL, NULL) != SQLITE_OK ||
      (version == 0 && make_schema(catalog) != SQLITE_OK))
    return tc__catalog_fail(catalog, diag, "schema");
  return TB_OK;
}

/* Called before the database is opened: if the file is replaced in between, the reader reopens once too often rather
 * than keeping an old catalog. */
static ino_t file_of(int dir_fd) {
  struct stat st;

  return fstatat(dir_fd, "catalog.sqlite", &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

bool tc_catalog_is_rotten(const struct tc_catalog *catalog) {
  return catalog->rotten;
}

bool tc_catalog_is_current(const struct tc_catalog *catalog) {
  return catalog->file != 0 && catalog->file == file_of(catalog->dir_fd);
}

tb_rc tc_catalog_open(int state_fd, bool writable, struct tb_diag *diag, struct tc_catalog **out) {
  struct tc_catalog *catalog = calloc(1, sizeof *catalog);
  char path[64];

  if (catalog == NULL) return tb_fail(diag, TB_NOMEM, "catalog: no memory");
  catalog->dir_fd = fcntl(state_fd, F_DUPFD_CLOEXEC, 3);
  snprintf(path, sizeof path, "/proc/self/fd/%d/catalog.sqlite", catalog->dir_fd);
  catalog->file = file_of(catalog->dir_fd);
  int flags = writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READWRITE;
  tb_rc rc = TB_OK;
  if (catalog->dir_fd < 0)
    rc = tb_fail(diag, TB_IO, "catalog.sqlite: %s", strerror(errno));
  else if (sqlite3_open_v2(path, &catalog->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    rc = tc__catalog_fail(catalog, diag, "open");
  else
    rc = set_up(catalog, writable, diag);
  if (rc != TB_OK) {
    tc_catalog_close(catalog);
    return rc;
  }
  *out = catalog;
  return TB_OK;
}

void tc_catalog_close(struct tc_catalog *catalog) {
  if (catalog == NULL) return;
  for (size_t i = 0; i < TC__STATEMENTS; i++) sqlite3_finalize(catalog->stmt[i]);
  sqlite3_close(catalog->db);
  if (catalog->dir_fd >= 0) close(catalog->dir_fd);
  free(catalog);
}

static void copy_text(sqlite3_stmt *stmt, int column, char *out, size_t out_bytes) {
  const unsigned char *text = sqlite3_column_text(stmt, column);

  snprintf(out, out_bytes, "%s", text == NULL ? "" : (const char *)text);
}

static void copy_blob(sqlite3_stmt *stmt, int column, unsigned char *out, size_t out_bytes) {
  const void *blob = sqlite3_column_blob(stmt, column);

  memset(out, 0, out_bytes);
  if (blob != NULL && (size_t)sqlite3_column_bytes(stmt, column) == out_bytes)
    memcpy(out, blob, out_bytes);
}

static uint64_t number(sqlite3_stmt *stmt, int column) {
  return (uint64_t)sqlite3_column_int64(stmt, column);
}

static struct tc_content_hash read_hash(sqlite3_stmt *stmt, int kind_column, int column) {
  struct tc_content_hash hash = { .kind = TC_HASH_NONE };
  uint64_t kind = number(stmt, kind_column);

  if (kind != TC_HASH_SHA256 && kind != TC_HASH_XXH3) return hash;
  hash.kind = (enum tc_hash_kind)kind;
  copy_blob(stmt, column, hash.bytes, tc_hash_len(hash.kind));
  return hash;
}

tb_rc tc__catalog_each_segment(struct tc_catalog *catalog, sqlite3_stmt *stmt,
                               tc_segment_row_fn *each, void *self, struct tb_diag *diag) {
  tb_rc rc = TB_OK;
  int step;

  while (rc == TB_OK && (step = sqlite3_step(stmt)) != SQLITE_DONE) {
    if (step != SQLITE_ROW) {
      rc = tc__catalog_fail(catalog, diag, "read");
      break;
    }
    struct tc_segment_row row = {
      .id = number(stmt, 0),
      .first_gen = number(stmt, 5),
      .last_gen = number(stmt, 6),
      .bytes = number(stmt, 7),
      .batches = number(stmt, 8),
      .events = number(stmt, 9),
      .first_wall_ns = number(stmt, 10),
      .last_wall_ns = number(stmt, 11),
      .go_version = (unsigned)number(stmt, 12),
      .verdict = (unsigned)number(stmt, 13),
      .expired = number(stmt, 15) != 0,
      .unsafe_experiment = number(stmt, 16) != 0,
      .first_arrival_ns = number(stmt, 18),
      .last_arrival_ns = number(stmt, 19),
      .wall_estimated = number(stmt, 20) != 0,
      .open = number(stmt, 21) != 0,
    };
    copy_blob(stmt, 1, row.stream, sizeof row.stream);
    copy_text(stmt, 2, row.service, sizeof row.service);
    copy_text(stmt, 3, row.instance, sizeof row.instance);
    copy_text(stmt, 4, row.path, sizeof row.path);
    copy_text(stmt, 14, row.reason, sizeof row.reason);
    row.hash = read_hash(stmt, 22, 17);
    rc = each(self, &row);
  }
  sqlite3_reset(stmt);
  return rc;
}

tb_rc tc_catalog_open_meta(struct tc_catalog *catalog, uint64_t segment, struct tb_diag *diag,
                           tc_meta **out) {
  static const char sql[] = "SELECT meta FROM open_metas WHERE segment = ?1 ORDER BY part";
  struct tb_mem mem;
  struct tb_buf parts;
  sqlite3_stmt *stmt;
  int step;
  tb_rc rc = TB_NOTFOUND;

  TB_TRY(tc__catalog_statement(catalog, TC__OPEN_META, sql, diag, &stmt));
  sqlite3_bind_int64(stmt, 1, (int64_t)segment);
  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&parts, &mem);
  while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
    rc = TB_OK;
    tb_buf_add(&parts, sqlite3_column_blob(stmt, 0), (size_t)sqlite3_column_bytes(stmt, 0));
  }
  if (step != SQLITE_DONE) rc = tc__catalog_fail(catalog, diag, "open meta");
  sqlite3_reset(stmt);
  if (rc == TB_OK) {
    *out = parts.rc != TB_OK ? NULL
                             : tracecollect__v1__segment_meta__unpack(NULL, parts.len, parts.data);
    if (*out == NULL) rc = tb_fail(diag, TB_NOMEM, "catalog: no memory for a meta");
  }
  tb_buf_fini(&parts);
  return rc;
}

static void read_stream(sqlite3_stmt *stmt, struct tc_stream_row *row) {
  *row = (struct tc_stream_row){
    .go_version = (unsigned)number(stmt, 6),
    .acked_seq = number(stmt, 7),
    .batches = number(stmt, 8),
    .bytes = number(stmt, 9),
    .generations = number(stmt, 10),
    .broken = number(stmt, 11),
    .events = number(stmt, 12),
    .lost_batches = number(stmt, 13),
    .lost_bytes = number(stmt, 14),
    .lost_generations = number(stmt, 15),
    .first_arrival_ns = number(stmt, 16),
    .last_arrival_ns = number(stmt, 17),
    .produced_batches = number(stmt, 18),
    .produced_bytes = number(stmt, 19),
    .spool_bytes = number(stmt, 20),
    .cut = { .seq = number(stmt, 21),
             .settled_seq = number(stmt, 22),
             .produced = { number(stmt, 23), number(stmt, 24) },
             .reported = { number(stmt, 25), number(stmt, 26) },
             .open = { number(stmt, 27), number(stmt, 28) } },
    .last_loss = (uint32_t)number(stmt, 29),
    .newest_wall_ns = number(stmt, 30),
  };
  copy_blob(stmt, 0, row->stream, sizeof row->stream);
  copy_text(stmt, 1, row->service, sizeof row->service);
  copy_text(stmt, 2, row->instance, sizeof row->instance);
  copy_text(stmt, 3, row->identity, sizeof row->identity);
  copy_text(stmt, 4, row->peer, sizeof row->peer);
  copy_text(stmt, 5, row->state, sizeof row->state);
}

tb_rc tc__catalog_each_stream(struct tc_catalog *catalog, sqlite3_stmt *stmt,
                              tc_stream_row_fn *each, void *self, struct tb_diag *diag) {
  tb_rc rc = TB_OK;
  int step;

  while (rc == TB_OK && (step = sqlite3_step(stmt)) != SQLITE_DONE) {
    struct tc_stream_row row;
    if (step != SQLITE_ROW) {
      rc = tc__catalog_fail(catalog, diag, "read");
      break;
    }
    read_stream(stmt, &row);
    rc = each(self, &row);
  }
  sqlite3_reset(stmt);
  return rc;
}
