/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/catalog/write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "archive/catalog/private.h"
#include "archive/generation_time.h"
#include "archive/state_dir.h"
#include "base/text/hex.h"

static tb_rc run_fixed(struct tc_catalog *catalog, enum tc__statement which, const char *sql,
                       struct tb_diag *diag) {
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(catalog, which, sql, diag, &stmt));
  return tc__catalog_run(catalog, stmt, diag, sql);
}

tb_rc tc_catalog_begin(struct tc_catalog *catalog, struct tb_diag *diag) {
  return run_fixed(catalog, TC__BEGIN, "BEGIN IMMEDIATE", diag);
}

tb_rc tc_catalog_commit(struct tc_catalog *catalog, struct tb_diag *diag) {
  return run_fixed(catalog, TC__COMMIT, "COMMIT", diag);
}

void tc_catalog_rollback(struct tc_catalog *catalog) {
  if (sqlite3_get_autocommit(catalog->db) == 0)
    sqlite3_exec(catalog->db, "ROLLBACK", NULL, NULL, NULL);
}

/* Sums over a meta's generations and losses. */
struct sums {
  uint64_t first_gen, last_gen, batches, events, broken, last_seq;
  uint64_t lost_batches, lost_bytes, lost_generations;
};

static struct sums sum_up(const tc_meta *meta) {
  struct sums sums = { 0 };

  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    if (i == 0) sums.first_gen = gen->gen;
    sums.last_gen = gen->gen;
    sums.batches += gen->batches;
    sums.events += gen->events;
    sums.last_seq = gen->last_seq;
    if (gen->verdict != NULL && gen->verdict->code > TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK)
      sums.broken++;
  }
  for (size_t i = 0; i < meta->n_losses; i++) {
    const Tracecollect__V1__LossMeta *loss = meta->losses[i];
    sums.lost_batches += loss->batches;
    sums.lost_bytes += loss->bytes;
    if (loss->last_gen >= loss->first_gen)
      sums.lost_generations += loss->last_gen - loss->first_gen + 1;
    if (loss->seq > sums.last_seq) sums.last_seq = loss->seq;
    if (meta->n_generations == 0 && sums.first_gen == 0)
      sums.first_gen = sums.last_gen = loss->first_gen;
  }
  return sums;
}

static void path_of(const tc_meta *meta, uint64_t first_gen, char out[192]) {
  char stream[TC_STREAM_HEX_BYTES];

  tb_hex(meta->stream.data, 16, stream);
  snprintf(out, 192, "archive/%.10s/%s/%016" PRIx64 ".trace", meta->day, stream, first_gen);
}

static tb_rc put_produced(struct tc_catalog *catalog, const tc_meta *meta, struct tb_diag *diag) {
  static const char sql[] =
      "UPDATE streams SET produced_batches = ?2, produced_bytes = ?3 WHERE stream = ?1";
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(catalog, TC__PUT_PRODUCED, sql, diag, &stmt));
  sqlite3_bind_blob(stmt, 1, meta->stream.data, (int)meta->stream.len, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 2, (int64_t)meta->produced_batches);
  sqlite3_bind_int64(stmt, 3, (int64_t)meta->produced_bytes);
  return tc__catalog_run(catalog, stmt, diag, "put produced");
}

static void add_kept(struct sums *sums, struct tc_wall *wall, const struct tc_open_kept *kept) {
  if (kept->generations == 0) return;
  sums->first_gen = kept->first_gen;
  sums->batches += kept->batches;
  sums->events += kept->events;
  sums->lost_batches += kept->lost_batches;
  sums->lost_bytes += kept->lost_bytes;
  sums->lost_generations += kept->lost_generations;
  if (kept->wall.first_ns < wall->first_ns) wall->first_ns = kept->wall.first_ns;
  if (kept->wall.last_ns > wall->last_ns) wall->last_ns = kept->wall.last_ns;
  wall->estimated |= kept->wall.estimated;
}

static const char put_sql[] =
    "INSERT INTO segments (stream, service, instance, identity, path, first_gen, last_gen,"
    " generations, bytes, batches, events, first_arrival, last_arrival, go_version, verdict,"
    " broken, reason, expired, unsafe, hash, lost_batches, lost_bytes, lost_generations,"
    " last_seq, ended, first_wall, last_wall, estimated, open, hash_kind)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
    " ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30) ON CONFLICT (stream,"
    " first_gen)"
    " DO UPDATE SET path = ?5, last_gen = ?7, generations = ?8, bytes = ?9, batches = ?10,"
    " events = ?11, first_arrival = ?12, last_arrival = ?13, go_version = ?14, verdict = ?15,"
    " broken = ?16, reason = ?17, expired = ?18, unsafe = ?19, hash = ?20, lost_batches = ?21,"
    " lost_bytes = ?22, lost_generations = ?23, last_seq = ?24, ended = ?25, first_wall = ?26,"
    " last_wall = ?27, estimated = ?28, open = ?29, hash_kind = ?30 WHERE ?29 = 0 OR open = 1";

/* run: the open run whose last part is meta; NULL: the segment is sealed. An open run never replaces a sealed row. */
static tb_rc put_row(struct tc_catalog *catalog, const tc_meta *meta, const struct tc_open_run *run,
                     struct tb_diag *diag) {
  struct sums sums = sum_up(meta);
  struct tc_wall wall = tc_meta_wall(meta);
  struct tc_content_hash hash = tc_meta_hash(meta);
  const char *reason;
  unsigned verdict = tc_meta_verdict(meta, &reason);
  char path[192];
  sqlite3_stmt *stmt;

  if (run == NULL)
    path_of(meta, sums.first_gen, path);
  else
    add_kept(&sums, &wall, &run->kept);
  TB_TRY(tc__catalog_statement(catalog, TC__PUT, put_sql, diag, &stmt));
  sqlite3_bind_blob(stmt, 1, meta->stream.data, (int)meta->stream.len, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 2, meta->service, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 3, meta->instance, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 4, meta->identity, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 5, run != NULL ? run->path : path, -1, SQLITE_TRANSIENT);
  sqlite3_bind_text(stmt, 17, reason, -1, SQLITE_STATIC);
  sqlite3_bind_blob(stmt, 20, hash.bytes, (int)tc_hash_len(hash.kind), SQLITE_STATIC);
  sqlite3_bind_text(stmt, 25, meta->ended, -1, SQLITE_STATIC);
  const struct {
    int at;
    uint64_t value;
  } numbers[] = {
    { 6, sums.first_gen },
    { 7, sums.last_gen },
    { 8, (run != NULL ? run->kept.generations : 0) + meta->n_generations },
    { 9, meta->bytes },
    { 10, sums.batches },
    { 11, sums.events },
    { 12, meta->first_wall_ns },
    { 13, meta->last_wall_ns },
    { 14, meta->go_version },
    { 15, verdict },
    { 16, sums.broken },
    { 18, (uint64_t)meta->expired },
    { 19, meta->unsafe_experiment || (run != NULL && run->kept.unsafe_experiment) },
    { 21, sums.lost_batches },
    { 22, sums.lost_bytes },
    { 23, sums.lost_generations },
    { 24, sums.last_seq },
    { 26, wall.first_ns },
    { 27, wall.last_ns },
    { 28, wall.estimated },
    { 29, run != NULL },
    { 30, hash.kind },
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sqlite3_bind_int64(stmt, numbers[i].at, (int64_t)numbers[i].value);
  return tc__catalog_run(catalog, stmt, diag, "put segment");
}

tb_rc tc_catalog_put(struct tc_catalog *catalog, const tc_meta *meta, struct tb_diag *diag) {
  TB_TRY(put_row(catalog, meta, NULL, diag));
  return meta->produced_batches > 0 ? put_produced(catalog, meta, diag) : TB_OK;
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

static tb_rc add_expired(struct tc_catalog *catalog, uint64_t segments, struct tb_diag *diag) {
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(catalog, TC__FOLD_TOTALS, "UPDATE totals SET expired = expired + ?1",
                               diag, &stmt));
  sqlite3_bind_int64(stmt, 1, (int64_t)segments);
  return tc__catalog_run(catalog, stmt, diag, "count a ledger's segments");
}

tb_rc tc_catalog_put_folded(struct tc_catalog *catalog, const tc_meta *record,
                            struct tb_diag *diag) {
  struct sums sums = sum_up(record);
  const uint64_t numbers[] = {
    record->go_version,
    record->first_wall_ns,
    record->last_wall_ns,
    record->produced_batches,
    record->produced_bytes,
    sums.last_seq,
    sums.batches,
    record->bytes,
    sums.events,
    sums.lost_batches,
    sums.lost_bytes,
    sums.lost_generations,
    record->folded->generations,
    record->folded->broken,
  };
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(
      catalog, TC__FOLD_PUT,
      "INSERT INTO streams (stream, service, instance, identity, ended, go_version, first_arrival,"
      " last_arrival, produced_batches, produced_bytes, last_seq, batches, bytes, events,"
      " lost_batches, lost_bytes, lost_generations, generations, broken)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
      " ?19) ON CONFLICT (stream) DO UPDATE SET"
      " ended = CASE ended WHEN '' THEN ?5 ELSE ended END,"
      " first_arrival = CASE first_arrival WHEN 0 THEN ?7 ELSE min(first_arrival, ?7) END,"
      " last_arrival = max(last_arrival, ?8),"
      " produced_batches = CASE produced_batches WHEN 0 THEN ?9 ELSE produced_batches END,"
      " produced_bytes = CASE produced_bytes WHEN 0 THEN ?10 ELSE produced_bytes END,"
      " last_seq = max(last_seq, ?11), batches = batches + ?12, bytes = bytes + ?13,"
      " events = events + ?14, lost_batches = lost_batches + ?15, lost_bytes = lost_bytes + ?16,"
      " lost_generations = lost_generations + ?17, generations = generations + ?18,"
      " broken = broken + ?19",
      diag, &stmt));
  sqlite3_bind_blob(stmt, 1, record->stream.data, (int)record->stream.len, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 2, record->service, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 3, record->instance, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 4, record->identity, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 5, record->ended, -1, SQLITE_STATIC);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sqlite3_bind_int64(stmt, 6 + (int)i, (int64_t)numbers[i]);
  TB_TRY(tc__catalog_run(catalog, stmt, diag, "put a record of a ledger"));
  return add_expired(catalog, record->folded->segments, diag);
}

tb_rc tc_catalog_folded(struct tc_catalog *catalog, tc_folded_fn *each, void *self,
                        struct tb_diag *diag) {
  sqlite3_stmt *stmt;
  tb_rc rc = TB_OK;
  int step = SQLITE_DONE;

  TB_TRY(tc__catalog_statement(
      catalog, TC__FOLD_SUMS,
      "SELECT s.stream, s.bytes - (SELECT coalesce(sum(g.bytes), 0) FROM segments g"
      " WHERE g.stream = s.stream) FROM streams s WHERE length(s.stream) = 16 ORDER BY s.stream",
      diag, &stmt));
  while (rc == TB_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW)
    rc = each(self, sqlite3_column_blob(stmt, 0), sqlite3_column_int64(stmt, 1));
  if (rc == TB_OK && step != SQLITE_DONE) rc = tc__catalog_fail(catalog, diag, "sums of ledgers");
  sqlite3_reset(stmt);
  return rc;
}

/* Concatenated parts are one valid message: protobuf appends repeated fields. */
static tb_rc put_part(struct tc_catalog *catalog, const struct tc_open_run *run, uint64_t first_gen,
                      uint64_t part, const tc_meta *meta, struct tb_diag *diag) {
  static const char sql[] =
      "INSERT INTO open_metas (segment, part, meta) SELECT id, ?3, ?4 FROM segments"
      " WHERE stream = ?1 AND first_gen = ?2 AND open = 1"
      " ON CONFLICT (segment, part) DO UPDATE SET meta = ?4";
  size_t len = tracecollect__v1__segment_meta__get_packed_size(meta);
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(catalog, TC__PUT_OPEN_META, sql, diag, &stmt));
  unsigned char *packed = malloc(len + 1);
  if (packed == NULL) return tb_fail(diag, TB_NOMEM, "catalog: no memory for a meta");
  tracecollect__v1__segment_meta__pack(meta, packed);
  sqlite3_bind_blob(stmt, 1, run->rest->stream.data, (int)run->rest->stream.len, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 2, (int64_t)first_gen);
  sqlite3_bind_int64(stmt, 3, (int64_t)part);
  sqlite3_bind_blob(stmt, 4, packed, (int)len, free);
  return tc__catalog_run(catalog, stmt, diag, "put open meta");
}

static void keep_generations(struct tc_open_kept *kept, const tc_meta *meta) {
  struct sums sums = sum_up(meta);
  struct tc_wall wall = tc_meta_wall(meta);

  add_kept(&sums, &wall, kept);
  *kept = (struct tc_open_kept){ .parts = kept->parts + 1,
                                 .generations = kept->generations + meta->n_generations,
                                 .first_gen = sums.first_gen,
                                 .batches = sums.batches,
                                 .events = sums.events,
                                 .lost_batches = sums.lost_batches,
                                 .lost_bytes = sums.lost_bytes,
                                 .lost_generations = sums.lost_generations,
                                 .unsafe_experiment =
                                     kept->unsafe_experiment || meta->unsafe_experiment,
                                 .wall = wall };
}

tb_rc tc_catalog_put_open(struct tc_catalog *catalog, struct tc_open_run *run,
                          struct tb_diag *diag) {
  uint64_t part = run->kept.parts;

  if (run->next != NULL) keep_generations(&run->kept, run->next);
  uint64_t first_gen =
      run->kept.generations > 0 ? run->kept.first_gen : run->rest->generations[0]->gen;
  TB_TRY(put_row(catalog, run->rest, run, diag));
  if (run->next != NULL) TB_TRY(put_part(catalog, run, first_gen, part, run->next, diag));
  return put_part(catalog, run, first_gen, run->kept.parts, run->rest, diag);
}

tb_rc tc_catalog_drop_open(struct tc_catalog *catalog, const unsigned char stream[16],
                           uint64_t first_gen, struct tb_diag *diag) {
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(
      catalog, TC__DROP_OPEN,
      "DELETE FROM segments WHERE stream = ?1 AND first_gen = ?2 AND open = 1", diag, &stmt));
  sqlite3_bind_blob(stmt, 1, stream, 16, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 2, (int64_t)first_gen);
  return tc__catalog_run(catalog, stmt, diag, "drop open run");
}

tb_rc tc_catalog_put_live(struct tc_catalog *catalog, const struct tc_stream_row *row,
                          struct tb_diag *diag) {
  static const char sql[] =
      "INSERT INTO streams (stream, service, instance, identity, live_state, live_peer, live_seq,"
      " produced_batches, produced_bytes, spool_bytes, go_version, cut_seq, cut_settled_seq,"
      " cut_produced_batches, cut_produced_bytes, cut_told_batches, cut_told_bytes,"
      " cut_open_batches, cut_open_bytes, last_loss) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, "
      "?10, ?11,"
      " ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)"
      " ON CONFLICT (stream) DO UPDATE SET live_state = ?5, live_peer = ?6, live_seq = ?7,"
      " produced_batches = ?8, produced_bytes = ?9, spool_bytes = ?10,"
      " go_version = CASE WHEN ?11 = 0 THEN go_version ELSE ?11 END,"
      " cut_seq = ?12, cut_settled_seq = ?13, cut_produced_batches = ?14, cut_produced_bytes = ?15,"
      " cut_told_batches = ?16, cut_told_bytes = ?17, cut_open_batches = ?18, cut_open_bytes = ?19,"
      " last_loss = ?20";
  const uint64_t numbers[] = {
    row->acked_seq,          row->produced_batches,
    row->produced_bytes,     row->spool_bytes,
    row->go_version,         row->cut.seq,
    row->cut.settled_seq,    row->cut.produced.batches,
    row->cut.produced.bytes, row->cut.reported.batches,
    row->cut.reported.bytes, row->cut.open.batches,
    row->cut.open.bytes,     row->last_loss,
  };
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(catalog, TC__PUT_LIVE, sql, diag, &stmt));
  sqlite3_bind_blob(stmt, 1, row->stream, sizeof row->stream, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 2, row->service, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 3, row->instance, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 4, row->identity, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 5, row->state, -1, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 6, row->peer, -1, SQLITE_STATIC);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    sqlite3_bind_int64(stmt, 7 + (int)i, (int64_t)numbers[i]);
  return tc__catalog_run(catalog, stmt, diag, "put stream");
}

tb_rc tc_catalog_forget_live(struct tc_catalog *catalog, struct tb_diag *diag) {
  /* Recovery adds open runs again from the log. Streams without a segment were known only as live. */
  if (sqlite3_exec(
          catalog->db,
          "DELETE FROM segments WHERE open = 1;"
          "UPDATE streams SET live_state = '', live_peer = '', cut_seq = 0"
          " WHERE live_state <> '' OR live_peer <> '';"
          "DELETE FROM streams WHERE generations = 0 AND lost_generations = 0 AND last_seq = 0",
          NULL, NULL, NULL) != SQLITE_OK)
    return tc__catalog_fail(catalog, diag, "forget live");
  return TB_OK;
}

tb_rc tc_catalog_totals(struct tc_catalog *catalog, struct tb_diag *diag,
                        struct tc_catalog_totals *out) {
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(catalog, TC__TOTALS, "SELECT bytes, segments, expired FROM totals",
                               diag, &stmt));
  if (sqlite3_step(stmt) != SQLITE_ROW) {
    tb_rc rc = tc__catalog_fail(catalog, diag, "totals");
    sqlite3_reset(stmt);
    return rc;
  }
  out->bytes = (uint64_t)sqlite3_column_int64(stmt, 0);
  out->segments = (uint64_t)sqlite3_column_int64(stmt, 1);
  out->expired = (uint64_t)sqlite3_column_int64(stmt, 2);
  sqlite3_reset(stmt);
  return TB_OK;
}

tb_rc tc_catalog_note(struct tc_catalog *catalog, const unsigned char stream[16],
                      struct tb_diag *diag, char out_day[TC_DAY_BYTES], uint64_t *out_gen) {
  sqlite3_stmt *stmt;
  tb_rc rc = TB_NOTFOUND;

  TB_TRY(tc__catalog_statement(
      catalog, TC__NOTE,
      "SELECT substr(path, length('archive/') + 1, 10), first_gen FROM segments"
      " WHERE stream = ?1 AND generations = 0 ORDER BY first_gen DESC LIMIT 1",
      diag, &stmt));
  sqlite3_bind_blob(stmt, 1, stream, 16, SQLITE_STATIC);
  int step = sqlite3_step(stmt);
  if (step == SQLITE_ROW) {
    snprintf(out_day, TC_DAY_BYTES, "%s", (const char *)sqlite3_column_text(stmt, 0));
    *out_gen = (uint64_t)sqlite3_column_int64(stmt, 1);
    rc = TB_OK;
  } else if (step != SQLITE_DONE) {
    rc = tc__catalog_fail(catalog, diag, "note");
  }
  sqlite3_reset(stmt);
  return rc;
}

tb_rc tc_catalog_pending(struct tc_catalog *catalog, tc_segment_row_fn *each, void *self,
                         struct tb_diag *diag) {
  sqlite3_stmt *stmt;

  TB_TRY(
      tc__catalog_statement(catalog, TC__PENDING,
                            "SELECT " TC__SEGMENT_COLUMNS
                            "FROM segments g WHERE g.verdict = 0 AND g.expired = 0 AND g.open = 0"
                            " AND g.generations > 0 ORDER BY g.stream, g.first_gen",
                            diag, &stmt));
  return tc__catalog_each_segment(catalog, stmt, each, self, diag);
}

tb_rc tc_catalog_oldest(struct tc_catalog *catalog, const char *service,
                        const struct tc_segment_row *after, unsigned limit, tc_segment_row_fn *each,
                        void *self, struct tb_diag *diag) {
  sqlite3_stmt *stmt;

  TB_TRY(tc__catalog_statement(
      catalog, TC__OLDEST,
      "SELECT " TC__SEGMENT_COLUMNS
      "FROM segments g WHERE g.expired = 0 AND g.open = 0 AND g.generations > 0"
      " AND (?1 IS NULL OR g.service = ?1) AND (g.last_arrival, g.id) > (?3, ?4)"
      " ORDER BY g.last_arrival, g.id LIMIT ?2",
      diag, &stmt));
  /* SQLITE_STATIC: if a copy could not be allocated, ?1 would be NULL, and retention would remove other services'
   * segments. */
  if (service != NULL) sqlite3_bind_text(stmt, 1, service, -1, SQLITE_STATIC);
  sqlite3_bind_int64(stmt, 2, limit);
  sqlite3_bind_int64(stmt, 3, after != NULL ? (int64_t)after->last_arrival_ns : INT64_MIN);
  sqlite3_bind_int64(stmt, 4, after != NULL ? (int64_t)after->id : INT64_MIN);
  return tc__catalog_each_segment(catalog, stmt, each, self, diag);
}

tb_rc tc_catalog_newest_arrival(struct tc_catalog *catalog, uint64_t *out_arrival_ns,
                                struct tb_diag *diag) {
  sqlite3_stmt *stmt;
  tb_rc rc = TB_OK;

  *out_arrival_ns = 0;
  TB_TRY(tc__catalog_statement(
      catalog, TC__NEWEST,
      "SELECT g.last_arrival FROM segments g WHERE g.expired = 0 AND g.open = 0"
      " AND g.generations > 0 ORDER BY g.last_arrival DESC LIMIT 1",
      diag, &stmt));
  int step = sqlite3_step(stmt);
  if (step == SQLITE_ROW)
    *out_arrival_ns = (uint64_t)sqlite3_column_int64(stmt, 0);
  else if (step != SQLITE_DONE)
    rc = tc__catalog_fail(catalog, diag, "the newest segment");
  sqlite3_reset(stmt);
  return rc;
}

tb_rc tc_catalog_heavy(struct tc_catalog *catalog, uint64_t bytes,
                       tb_rc (*each)(void *self, const char *service, uint64_t service_bytes),
                       void *self, struct tb_diag *diag) {
  sqlite3_stmt *stmt;
  tb_rc rc = TB_OK;
  int step = SQLITE_DONE;

  TB_TRY(tc__catalog_statement(
      catalog, TC__HEAVY, "SELECT service, bytes FROM services WHERE bytes > ?1", diag, &stmt));
  sqlite3_bind_int64(stmt, 1, (int64_t)bytes);
  while (rc == TB_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW)
    rc = each(self, (const char *)sqlite3_column_text(stmt, 0),
              (uint64_t)sqlite3_column_int64(stmt, 1));
  if (rc == TB_OK && step != SQLITE_DONE) rc = tc__catalog_fail(catalog, diag, "heavy services");
  sqlite3_reset(stmt);
  return rc;
}
