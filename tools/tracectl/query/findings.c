/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/findings.h"

#include "base/text/hex.h"
#include "config/times.h"
#include "proto/json.h"
#include "tools/tracectl/term/tracectl.h"

typedef Tracecollect__V1__Finding finding;

static const char create[] = "CREATE TABLE findings(stream, id, kind, service, place, cause, "
                             "words, began_ns, last_ns, open, "
                             "count, peak, peak_unit, instances, gen, expired, muted)";
static const char insert[] =
    "INSERT INTO findings VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, "
    "?16, ?17)";

static void bind_text(sqlite3_stmt *row, int at, const char *text) {
  sqlite3_bind_text(row, at, text, -1, SQLITE_TRANSIENT);
}

static void bind_time(sqlite3_stmt *row, int at, const char *text) {
  uint64_t wall_ns;

  if (tc_time_parse(text, 0, NULL, &wall_ns) == TB_OK)
    sqlite3_bind_int64(row, at, (sqlite3_int64)wall_ns);
}

/* SERVICE/INSTANCE/ID, as in the other tables. */
static void bind_stream(sqlite3_stmt *row, int at, const finding *f) {
  const char *instance = f->n_instances > 0 ? f->instances[f->n_instances - 1] : "";
  char hex[2 * 16 + 1] = "";

  if (f->stream.len == 16) tb_hex(f->stream.data, 16, hex);
  char *text = sqlite3_mprintf("%s/%s/%s", f->service, instance, hex);
  sqlite3_bind_text(row, at, text, -1, sqlite3_free);
}

static void bind_instances(sqlite3_stmt *row, int at, const finding *f) {
  struct tb_buf list;

  tb_buf_init(&list, &tk_mem);
  for (size_t i = 0; i < f->n_instances; i++) {
    tb_buf_text(&list, i == 0 ? "[" : ",");
    tp_json_text(&list, f->instances[i]);
  }
  tb_buf_text(&list, f->n_instances == 0 ? "[]" : "]");
  if (list.rc == TB_OK)
    sqlite3_bind_text(row, at, (const char *)list.data, (int)list.len, SQLITE_TRANSIENT);
  tb_buf_fini(&list);
}

static int add_row(sqlite3_stmt *row, const finding *f) {
  bind_stream(row, 1, f);
  bind_text(row, 2, f->id);
  bind_text(row, 3, f->kind);
  bind_text(row, 4, f->service);
  bind_text(row, 5, f->place);
  bind_text(row, 6, f->cause);
  bind_text(row, 7, f->words);
  bind_time(row, 8, f->began_at);
  bind_time(row, 9, f->last_at);
  sqlite3_bind_int(row, 10, f->open);
  sqlite3_bind_int64(row, 11, (sqlite3_int64)f->count);
  sqlite3_bind_int64(row, 12, (sqlite3_int64)f->peak);
  bind_text(row, 13, f->peak_unit);
  bind_instances(row, 14, f);
  sqlite3_bind_int64(row, 15, (sqlite3_int64)f->gen);
  sqlite3_bind_int(row, 16, f->expired);
  sqlite3_bind_int(row, 17, f->muted_until[0] != '\0');
  int rc = sqlite3_step(row);
  sqlite3_reset(row);
  sqlite3_clear_bindings(row);
  return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int tk_findings_add(sqlite3 *db, const Tracecollect__V1__FindingsReply *findings) {
  sqlite3_stmt *row = NULL;
  int rc = sqlite3_exec(db, create, NULL, NULL, NULL);

  if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(db, insert, -1, &row, NULL);
  for (size_t i = 0; rc == SQLITE_OK && i < findings->n_findings; i++)
    rc = add_row(row, findings->findings[i]);
  sqlite3_finalize(row);
  return rc;
}
