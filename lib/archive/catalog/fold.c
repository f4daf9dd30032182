/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of months' ledgers. */
#include <stdio.h>
#include <string.h>

#include "archive/catalog/private.h"
#include "archive/catalog/write.h"
#include "archive/state_dir.h"

struct lost {
  uint64_t batches, bytes, generations;
};

static struct lost lost_of(const tc_meta *record) {
  struct lost lost = { 0 };

  for (size_t i = 0; i < record->n_losses; i++) {
    const Tracecollect__V1__LossMeta *loss = record->losses[i];
    lost.batches += loss->batches;
    lost.bytes += loss->bytes;
    if (loss->last_gen >= loss->first_gen) lost.generations += loss->last_gen - loss->first_gen + 1;
  }
  return lost;
}

/* Of a catalog that is made again: the ledgers come first. */
static tb_rc know_stream(struct tc_catalog *catalog, const tc_meta *record, struct tb_diag *diag) {
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(
      catalog, TC__FOLD_STREAM,
      "INSERT INTO streams (stream, service, instance, identity, go_version, first_arrival,"
      " last_arrival, ended, produced_batches, produced_bytes)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (stream) DO UPDATE SET"
      " first_arrival = CASE first_arrival WHEN 0 THEN ?6 ELSE min(first_arrival, ?6) END,"
      " last_arrival = max(last_arrival, ?7), ended = CASE ended WHEN '' THEN ?8 ELSE ended END,"
      " produced_batches = CASE produced_batches WHEN 0 THEN ?9 ELSE produced_batches END,"
      " produced_bytes = CASE produced_bytes WHEN 0 THEN ?10 ELSE produced_bytes END",
      diag, &stmt));
  sqlite3_bind_blob(stmt, 1, record->stream.data, (int)record->stream.len, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 2, record->service, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 3, record->instance, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 4, record->identity, -1, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 5, record->go_version);
  sqlite3_bind_int64(stmt, 6, (int64_t)record->first_wall_ns);
  sqlite3_bind_int64(stmt, 7, (int64_t)record->last_wall_ns);
  sqlite3_bind_text(stmt, 8, record->ended, -1, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 9, (int64_t)record->produced_batches);
  sqlite3_bind_int64(stmt, 10, (int64_t)record->produced_bytes);
  return tc__catalog_run(catalog, stmt, diag, "put the stream of a ledger");
}

tb_rc tc_catalog_drop_folded(struct tc_catalog *catalog, const tc_meta *record, unsigned most,
                             struct tb_diag *diag, bool *out_more) {
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(
      catalog, TC__FOLD_DROP,
      "DELETE FROM segments WHERE id IN (SELECT id FROM segments WHERE stream = ?1 AND open = 0"
      " AND (expired = 1 OR generations = 0) AND last_seq <= ?2"
      " AND substr(path, length('archive/') + 1, 10) = ?3 LIMIT ?4)",
      diag, &stmt));
  sqlite3_bind_blob(stmt, 1, record->stream.data, (int)record->stream.len, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 2, (int64_t)tc_meta_last_seq(record));
  sqlite3_bind_text(stmt, 3, record->day, -1, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 4, most);
  TB_TRY(tc__catalog_run(catalog, stmt, diag, "drop folded rows"));
  *out_more = (unsigned)sqlite3_changes(catalog->db) == most;
  return TB_OK;
}

static tb_rc put_row(struct tc_catalog *catalog, const tc_meta *record, struct tb_diag *diag) {
  const Tracecollect__V1__GenerationMeta *sum = record->generations[0];
  struct lost lost = lost_of(record);
  const struct {
    int at;
    uint64_t value;
  } numbers[] = {
    { 3, sum->gen },
    { 4, record->folded->last_gen },
    { 5, record->folded->segments },
    { 6, record->folded->generations },
    { 7, record->bytes },
    { 8, sum->batches },
    { 9, sum->events },
    { 10, record->folded->broken },
    { 11, lost.batches },
    { 12, lost.bytes },
    { 13, lost.generations },
    { 14, tc_meta_last_seq(record) },
  };
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(
      catalog, TC__FOLD_PUT,
      "INSERT INTO folded (stream, day, first_gen, last_gen, segments, generations, bytes, batches,"
      " events, broken, lost_batches, lost_bytes, lost_generations, last_seq)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14) ON CONFLICT DO "
      "NOTHING",
      diag, &stmt));
  sqlite3_bind_blob(stmt, 1, record->stream.data, (int)record->stream.len, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 2, record->day, -1, SQLITE_STATIC);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sqlite3_bind_int64(stmt, numbers[i].at, (int64_t)numbers[i].value);
  return tc__catalog_run(catalog, stmt, diag, "put a row of a ledger");
}

tb_rc tc_catalog_put_folded(struct tc_catalog *catalog, const tc_meta *record,
                            struct tb_diag *diag) {
  TB_TRY(know_stream(catalog, record, diag));
  return put_row(catalog, record, diag);
}

tb_rc tc_catalog_folded(struct tc_catalog *catalog, tc_folded_row_fn *each, void *self,
                        struct tb_diag *diag) {
  sqlite3_stmt *stmt;
  tb_rc rc = TB_OK;
  int step = SQLITE_DONE;

  if (sqlite3_prepare_v2(catalog->db,
                         "SELECT stream, day, first_gen, last_gen, segments, bytes, events"
                         " FROM folded ORDER BY stream, day, first_gen",
                         -1, &stmt, NULL) != SQLITE_OK)
    return tc__catalog_fail(catalog, diag, "ledgers");
  while (rc == TB_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
    struct tc_folded_row row = { .first_gen = (uint64_t)sqlite3_column_int64(stmt, 2),
                                 .last_gen = (uint64_t)sqlite3_column_int64(stmt, 3),
                                 .segments = (uint64_t)sqlite3_column_int64(stmt, 4),
                                 .bytes = (uint64_t)sqlite3_column_int64(stmt, 5),
                                 .events = (uint64_t)sqlite3_column_int64(stmt, 6) };
    if (sqlite3_column_bytes(stmt, 0) != sizeof row.stream) continue;
    memcpy(row.stream, sqlite3_column_blob(stmt, 0), sizeof row.stream);
    snprintf(row.day, sizeof row.day, "%s", (const char *)sqlite3_column_text(stmt, 1));
    rc = each(self, &row);
  }
  if (rc == TB_OK && step != SQLITE_DONE) rc = tc__catalog_fail(catalog, diag, "ledgers");
  sqlite3_finalize(stmt);
  return rc;
}
