/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/sql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "online/spans/stacks/library.h"
#include "tools/tracectl/names/aggregates.h"
#include "tools/tracectl/names/compared.h"
#include "tools/tracectl/names/names.h"
#include "tools/tracectl/names/numbers.h"
#include "tools/tracectl/names/plain.h"
#include "tools/tracectl/query/export.h"
#include "tools/tracectl/query/findings.h"
#include "tools/tracectl/query/profile.h"
#include "tools/tracectl/query/tables.h"
#include "tools/tracectl/term/tracectl.h"

struct query {
  sqlite3 *db;
  const char *sql;
  char refused[100]; /* why the statement is refused; empty: it is allowed */
};

static bool is_one_of(const char *name, const char *const *names) {
  for (; *names != NULL; names++)
    if (sqlite3_stricmp(name, *names) == 0) return true;
  return false;
}

static bool may(int action, const char *first, const char *second) {
  static const char *const pragmas[] = { "table_info", "table_xinfo", "table_list", "function_list",
                                         NULL };
  static const char *const functions[] = { "load_extension", "fts3_tokenizer", NULL };

  switch (action) {
  case SQLITE_SELECT:
  case SQLITE_READ:
  case SQLITE_RECURSIVE: return true;
  case SQLITE_FUNCTION: return !is_one_of(second, functions);
  case SQLITE_PRAGMA: return is_one_of(first, pragmas);
  default: return false;
  }
}

/* SQLite authorizes the schema's own table before CREATE or DROP. */
static const char *action_name(int action, const char *first) {
  bool is_schema = first != NULL && strncmp(first, "sqlite_", strlen("sqlite_")) == 0;

  switch (action) {
  case SQLITE_ATTACH: return "ATTACH";
  case SQLITE_DETACH: return "DETACH";
  case SQLITE_PRAGMA: return "this PRAGMA";
  case SQLITE_FUNCTION: return "this function";
  case SQLITE_INSERT: return is_schema ? "CREATE" : "INSERT";
  case SQLITE_UPDATE: return is_schema ? "ALTER" : "UPDATE";
  case SQLITE_DELETE: return is_schema ? "DROP" : "DELETE";
  case SQLITE_TRANSACTION:
  case SQLITE_SAVEPOINT: return "a transaction";
  default: return "what changes something";
  }
}

/* SQLite calls this for each part of a statement before running it. */
static int authorize(void *self, int action, const char *first, const char *second,
                     const char *database, const char *inner) {
  struct query *q = self;

  (void)database;
  (void)inner;
  if (may(action, first, second)) return SQLITE_OK;
  if (q->refused[0] == 0)
    snprintf(q->refused, sizeof q->refused, "%s is refused: a query only reads",
             action_name(action, first));
  return SQLITE_DENY;
}

/* Prints the statement's line with the place, and a mark below it. */
static void point_at(const char *sql, int offset) {
  const char *begin = sql + offset, *end = sql + offset + strcspn(sql + offset, "\n");

  while (begin > sql && begin[-1] != '\n') begin--;
  fprintf(stderr, "  %.*s\n  %*s^\n", (int)(end - begin), begin, (int)(sql + offset - begin), "");
}

static const char *missing_table(const struct query *q) {
  static const char no_table[] = "no such table: ";
  const char *why = sqlite3_errmsg(q->db);

  return strncmp(why, no_table, strlen(no_table)) == 0 ? why + strlen(no_table) : NULL;
}

/* SQLite has no offset for a missing table: searches for the name. */
static int error_offset(const struct query *q) {
  const char *table = missing_table(q);
  int offset = sqlite3_error_offset(q->db);

  if (offset >= 0 || table == NULL) return offset;
  const char *at = strstr(q->sql, table);
  return at != NULL ? (int)(at - q->sql) : -1;
}

static const char *what_to_do(const char *message) {
  if (strcmp(message, "incomplete input") == 0) return ": the statement ends too early";
  return strstr(message, "may not be modified") != NULL ? ": a query only reads" : "";
}

static int fail(const struct query *q) {
  int offset = error_offset(q);
  char *message = sqlite3_mprintf("%s", sqlite3_errmsg(q->db));

  if (q->refused[0] != 0) {
    sqlite3_free(message);
    return tk_usage("query", "%s", q->refused);
  }
  if (message != NULL && message[0] != 0) /* otherwise already reported */
    tk_fail("query", "%s%s", message, what_to_do(message));
  if (offset >= 0 && (size_t)offset <= strlen(q->sql)) point_at(q->sql, offset);
  sqlite3_set_authorizer(q->db, NULL, NULL); /* what follows is our own */
  if (message != NULL) tk_names_lead_on(q->db, q->sql, message);
  sqlite3_free(message);
  return TK_FAILED;
}

static bool is_blank(const char *sql) {
  return sql[strspn(sql, " \t\r\n;")] == 0;
}

static int prepare(struct query *q, sqlite3_stmt **out) {
  const char *rest;

  if (sqlite3_prepare_v2(q->db, q->sql, -1, out, &rest) != SQLITE_OK) {
    fail(q);
    return TK_USAGE;
  }
  if (*out == NULL) return tk_usage("query", "a SELECT is required");
  if (!is_blank(rest))
    return tk_usage("query", "one statement at a time: what follows is \"%.40s\"", rest);
  tk_compared_check(q->sql);
  tk_numbers_check(q->sql);
  return TK_DONE;
}

static int run_statement(struct query *q, sqlite3_stmt *statement, enum tk_rows_format format,
                         FILE *out) {
  struct tk_rows rows;
  bool whole = true;
  int rc;

  tk_rows_init(&rows, format, out);
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW && whole && ferror(out) == 0)
    whole = tk_rows_put(&rows, statement);
  whole = tk_rows_end(&rows, statement) && whole;
  tk_rows_fini(&rows);
  if (!whole) return tk_fail("query", "out of memory");
  if (rc == SQLITE_DONE || rc == SQLITE_ROW)
    return TK_DONE; /* ROW: the reader of the output is gone; main() reports why */
  fflush(out);
  return fail(q);
}

static const struct to_callstack *stack_of(const struct tk_traces *traces, sqlite3_value *value) {
  const struct tk_trace *trace;
  uint32_t number;

  return tk_stack_of(traces, sqlite3_value_int64(value), &trace, &number)
             ? tk_trace_stack(trace, number)
             : NULL;
}

/* place(stack): "main.serve:31", the first frame of the program's own code. */
static void place(sqlite3_context *out, int argc, sqlite3_value **argv) {
  const struct to_frame *frame = to_callstack_own(stack_of(sqlite3_user_data(out), argv[0]));
  char text[512];

  (void)argc;
  if (frame == NULL) return;
  uint64_t line = to_library_line(frame);
  int n = snprintf(text, sizeof text, line > 0 ? "%s:%llu" : "%s", frame->function.data,
                   (unsigned long long)line);
  sqlite3_result_text(out, text, n < (int)sizeof text ? n : (int)sizeof text - 1, SQLITE_TRANSIENT);
}

/* call(stack): "time.Sleep", the function that was called at this place. */
static void call(sqlite3_context *out, int argc, sqlite3_value **argv) {
  const struct to_frame *frame = to_callstack_call(stack_of(sqlite3_user_data(out), argv[0]));

  (void)argc;
  if (frame != NULL)
    sqlite3_result_text(out, frame->function.data, (int)frame->function.len, SQLITE_TRANSIENT);
}

static int add_functions(sqlite3 *db, struct tk_traces *traces) {
  /* SQLite declares its JSON tables at first use, which the authorizer would take for a CREATE */
  int rc = sqlite3_exec(db, "SELECT 1 FROM json_each('0'), json_tree('0')", NULL, NULL, NULL);

  if (rc == SQLITE_OK) rc = tk_aggregates_add(db);
  if (rc != SQLITE_OK) return rc;
  int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
  rc = sqlite3_create_function(db, "place", 1, flags, traces, place, NULL, NULL);
  if (rc != SQLITE_OK) return rc;
  return sqlite3_create_function(db, "call", 1, flags, traces, call, NULL, NULL);
}

/* Allows only SELECT from now on: before, SQLite reads its own tables. */
static int close_off(struct query *q) {
  sqlite3_db_config(q->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
  sqlite3_db_config(q->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  return sqlite3_set_authorizer(q->db, authorize, q);
}

/* For use by this thread only. */
static int open_own(sqlite3 **out) {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); /* statistics cost a lock for each allocation */
  return sqlite3_open_v2(":memory:", out,
                         SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
}

static int open_query(struct query *q, struct tk_traces *traces, sqlite3_stmt **out) {
  int rc = open_own(&q->db);

  if (rc == SQLITE_OK) rc = tk_tables_add(q->db, traces);
  if (rc == SQLITE_OK) rc = add_functions(q->db, traces);
  if (rc == SQLITE_OK && traces->findings != NULL) rc = tk_findings_add(q->db, traces->findings);
  if (rc == SQLITE_OK) rc = close_off(q);
  return rc == SQLITE_OK ? prepare(q, out) : tk_fail("query", "%s", sqlite3_errstr(rc));
}

/* Rows before a fault are written, too. */
static int profile(struct query *q, sqlite3_stmt *statement, struct tk_row_profile *p,
                   const char *path) {
  struct tb_diag diag;
  tb_rc rc = TB_OK;
  int step;

  tb_diag_clear(&diag);
  while (rc == TB_OK && (step = sqlite3_step(statement)) == SQLITE_ROW)
    rc = tk_row_profile_put(p, statement);
  if (rc != TB_OK) return tk_fail("query", "%s", tb_rc_text(rc));
  rc = tk_row_profile_write(p, statement, path, &diag);
  if (rc == TB_IO && strcmp(path, "-") == 0 && tk_reader_is_gone()) return TK_DONE;
  if (rc != TB_OK) return tk_fail("query", "%s", diag.text[0] != 0 ? diag.text : tb_rc_text(rc));
  return step == SQLITE_DONE ? TK_DONE : fail(q);
}

int tk_sql_profile(struct tk_traces *traces, const char *sql, const char *path) {
  struct query q = { .sql = sql };
  struct tk_row_profile p = { 0 };
  sqlite3_stmt *statement = NULL;

  int code = open_query(&q, traces, &statement);
  if (code == TK_DONE && !tk_row_profile_begin(&p, traces, statement))
    code = tk_usage("query",
                    "--pprof needs a column with the name stack, and at most %d in all: "
                    "SELECT stack, event, count(*) AS events FROM events GROUP BY 1, 2",
                    TK_ROW_PROFILE_COLUMNS);
  if (code == TK_DONE) code = profile(&q, statement, &p, path);
  tk_row_profile_fini(&p);
  sqlite3_finalize(statement);
  sqlite3_close(q.db);
  return code;
}

/* Returns false if the statement needs SQL, or its rows are for people. */
static bool is_export(const char *sql, enum tk_rows_format format, struct tk_plain *plain,
                      struct tk_export *out) {
  const char *name;
  size_t len;

  if (format == TK_ROWS_TEXT || !tk_plain_select(sql, plain)) return false;
  *out = (struct tk_export){ .verb = "query",
                             .table = plain->table,
                             .columns = plain->columns[0] != 0 ? plain->columns : NULL,
                             .format = format == TK_ROWS_CSV ? TK_RECORD_CSV : TK_RECORD_JSON };
  return tk_export_check(out, &name, &len) == TK_EXPORT_FITS;
}

int tk_sql_run(struct tk_traces *traces, const char *sql, enum tk_rows_format format, FILE *out) {
  struct query q = { .sql = sql };
  sqlite3_stmt *statement = NULL;
  struct tk_export export;
  struct tk_plain plain;

  int code = open_query(&q, traces, &statement);
  if (code == TK_DONE && is_export(sql, format, &plain, &export))
    code = tk_export(&export, traces, out);
  else if (code == TK_DONE)
    code = run_statement(&q, statement, format, out);
  sqlite3_finalize(statement);
  sqlite3_close(q.db);
  return code;
}

int tk_sql_schema(const char *table) {
  Tracecollect__V1__FindingsReply none = TRACECOLLECT__V1__FINDINGS_REPLY__INIT;
  struct tk_traces traces = { 0 };
  sqlite3 *db = NULL;

  int rc = open_own(&db);
  if (rc == SQLITE_OK) rc = tk_tables_add(db, &traces);
  if (rc == SQLITE_OK) rc = tk_findings_add(db, &none);
  int code =
      rc == SQLITE_OK ? tk_names_print(db, table) : tk_fail("query", "%s", sqlite3_errstr(rc));
  sqlite3_close(db);
  return code;
}

/* ---- a database of its own ---- */

static int fail_store(sqlite3 *db, const char *path, int rc) {
  const char *why = db != NULL ? sqlite3_errmsg(db) : sqlite3_errstr(rc);

  return tk_fail("convert", "%s: %s", path, why[0] != 0 ? why : "a trace is broken");
}

static int attach(sqlite3 *db, const char *path) {
  char *sql = sqlite3_mprintf(
      "ATTACH %Q AS out; PRAGMA out.journal_mode=OFF; PRAGMA out.synchronous=OFF", path);

  int rc = sql == NULL ? SQLITE_NOMEM : sqlite3_exec(db, sql, NULL, NULL, NULL);
  sqlite3_free(sql);
  return rc;
}

static int copy_tables(sqlite3 *db) {
  char sql[120];
  int rc = SQLITE_OK;

  for (size_t i = 0; rc == SQLITE_OK && tk_tables_name(i) != NULL; i++) {
    const char *table = tk_tables_name(i);
    snprintf(sql, sizeof sql, "CREATE TABLE out.%s AS SELECT * FROM %s", table, table);
    rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  }
  if (rc != SQLITE_OK) return rc;
  return sqlite3_exec(db,
                      "CREATE INDEX out.spans_by_life ON spans(life, from_ns);"
                      "CREATE INDEX out.goroutines_by_life ON goroutines(life);"
                      "CREATE INDEX out.frames_by_stack ON frames(stack, depth)",
                      NULL, NULL, NULL);
}

int tk_sql_store(struct tk_traces *traces, const char *path) {
  char *part = sqlite3_mprintf("%s.part", path);
  sqlite3 *db = NULL;

  if (part == NULL) return tk_fail("convert", "out of memory");
  unlink(part); /* left by a killed process */
  int rc = open_own(&db);
  if (rc == SQLITE_OK) rc = tk_tables_add(db, traces);
  if (rc == SQLITE_OK) rc = attach(db, part);
  if (rc == SQLITE_OK) rc = copy_tables(db);
  int code = rc == SQLITE_OK ? TK_DONE : fail_store(db, path, rc);
  sqlite3_close(db);
  if (code == TK_DONE && rename(part, path) != 0)
    code = tk_fail("convert", "%s: %s", path, strerror(errno));
  if (code != TK_DONE) unlink(part);
  sqlite3_free(part);
  return code;
}
