/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/names/views.h"
#include "tools/tracectl/query/scan.h"

struct vtab {
  sqlite3_vtab base;
  const struct tk_query_table *table;
  struct tk_traces *traces;
};

struct cursor {
  sqlite3_vtab_cursor base;
  struct tk_scan scan;
  bool done;
  int64_t row;
};

struct made {
  const struct tk_query_table *table;
  struct tk_traces *traces;
};

static int declare(sqlite3 *db, const struct tk_query_table *table) {
  sqlite3_str *text = sqlite3_str_new(db);

  for (const struct tk_query_column *c = table->column; c->name != NULL; c++)
    sqlite3_str_appendf(text, "%s%s%s", c == table->column ? "CREATE TABLE x(" : ", ", c->name,
                        c->is_hidden ? " HIDDEN" : "");
  sqlite3_str_appendall(text, ")");
  char *sql = sqlite3_str_finish(text);
  if (sql == NULL) return SQLITE_NOMEM;
  int rc = sqlite3_declare_vtab(db, sql);
  sqlite3_free(sql);
  return rc;
}

static int on_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                      char **error) {
  const struct made *made = aux;
  struct vtab *vtab = sqlite3_malloc(sizeof *vtab);

  (void)argc;
  (void)argv;
  (void)error;
  if (vtab == NULL) return SQLITE_NOMEM;
  *vtab = (struct vtab){ .table = made->table, .traces = made->traces };
  *out = &vtab->base;
  return declare(db, made->table);
}

static int on_disconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/* ---- conditions ---- */

/* A plan begins with '+' if details of events are needed. Each condition is two letters: its column, and '=', '<' (an upper bound) or
 * '>'. */
static const char push_letter[] = {
  [TK_PUSH_NONE] = 0,        [TK_PUSH_NAME] = 'n', [TK_PUSH_KEY] = 'k', [TK_PUSH_ID] = 'i',
  [TK_PUSH_GOROUTINE] = 'g', [TK_PUSH_GEN] = 'G',  [TK_PUSH_WALL] = 'w'
};

static char op_letter(enum tk_push push, unsigned char op) {
  bool has_bounds = push == TK_PUSH_GEN || push == TK_PUSH_WALL;

  switch (op) {
  case SQLITE_INDEX_CONSTRAINT_EQ: return '=';
  case SQLITE_INDEX_CONSTRAINT_LT:
  case SQLITE_INDEX_CONSTRAINT_LE: return has_bounds ? '<' : 0;
  case SQLITE_INDEX_CONSTRAINT_GT:
  case SQLITE_INDEX_CONSTRAINT_GE: return has_bounds ? '>' : 0;
  default: return 0;
  }
}

static sqlite3_uint64 details_of(const struct tk_query_table *table) {
  sqlite3_uint64 bits = 0;

  for (unsigned i = 0; table->column[i].name != NULL; i++)
    if (table->column[i].is_detail) bits |= UINT64_C(1) << i;
  return bits;
}

/* A pass costs about the same for any condition; a key or an id finds its rows directly. */
static int on_best_index(sqlite3_vtab *base, sqlite3_index_info *info) {
  const struct tk_query_table *table = ((struct vtab *)base)->table;
  char *plan = sqlite3_malloc(2 * info->nConstraint + 2), *letter = plan;
  int n = 0;

  if (plan == NULL) return SQLITE_NOMEM;
  *letter++ = (info->colUsed & details_of(table)) != 0 ? '+' : '-';
  info->estimatedCost = table->is_small ? 1e5 : 1e8;
  info->estimatedRows = table->is_small ? 10000 : 10000000;
  for (int i = 0; i < info->nConstraint; i++) {
    const struct sqlite3_index_constraint *at = &info->aConstraint[i];
    if (!at->usable || at->iColumn < 0) continue;
    enum tk_push push = table->column[at->iColumn].push;
    char op = op_letter(push, at->op);
    if (push == TK_PUSH_NONE || op == 0) continue;
    *letter++ = push_letter[push];
    *letter++ = op;
    info->aConstraintUsage[i].argvIndex = ++n;
    if (push != TK_PUSH_KEY && push != TK_PUSH_ID) continue;
    info->estimatedCost = 30;
    info->estimatedRows = 30;
  }
  *letter = 0;
  info->idxStr = plan;
  info->needToFreeIdxStr = 1;
  return SQLITE_OK;
}

/* Keeps the narrower bound. A value that is not a number is ignored here: SQLite compares it. */
static void bound(uint64_t *first, uint64_t *last, char op, sqlite3_int64 value) {
  uint64_t at = value < 1 ? 1 : (uint64_t)value; /* 0 means open */

  if (op != '<' && at > *first) *first = at;
  if (op != '>' && (*last == 0 || at < *last)) *last = at;
}

static void want(struct tk_wants *wants, char about, char op, sqlite3_value *value) {
  int type = sqlite3_value_type(value);
  sqlite3_int64 number = sqlite3_value_int64(value);
  bool is_number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;

  if (about == 'n' && type == SQLITE_TEXT)
    snprintf(wants->name, sizeof wants->name, "%s", (const char *)sqlite3_value_text(value));
  if (!is_number) return;
  switch (about) {
  case 'k':
    wants->has_key = true;
    wants->key = number;
    break;
  case 'i':
    wants->has_id = true;
    wants->id = number;
    break;
  case 'g':
    wants->events.has_goroutine = true;
    wants->events.goroutine = number;
    break;
  case 'G': bound(&wants->events.first_gen, &wants->events.last_gen, op, number); break;
  case 'w': bound(&wants->events.first_wall_ns, &wants->events.last_wall_ns, op, number); break;
  default: break;
  }
}

/* ---- cursors ---- */

static int on_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out) {
  const struct vtab *vtab = (const struct vtab *)base;
  struct cursor *c = sqlite3_malloc(sizeof *c);

  if (c == NULL) return SQLITE_NOMEM;
  *c = (struct cursor){ .scan = { .table = vtab->table, .traces = vtab->traces }, .done = true };
  *out = &c->base;
  return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *base) {
  struct cursor *c = (struct cursor *)base;

  tk__scan_end(&c->scan);
  sqlite3_free(c);
  return SQLITE_OK;
}

/* got: result of the scan. */
static int set_row(struct cursor *c, int got, const char *error) {
  c->done = got <= 0;
  if (got >= 0) return SQLITE_OK;
  sqlite3_free(c->base.pVtab->zErrMsg);
  c->base.pVtab->zErrMsg = sqlite3_mprintf("%s", error);
  return SQLITE_ERROR;
}

static int on_next(sqlite3_vtab_cursor *base) {
  struct cursor *c = (struct cursor *)base;
  char error[TK_QUERY_ERROR];

  c->row++;
  return set_row(c, tk__scan_next(&c->scan, error), error);
}

static int on_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
                     sqlite3_value **argv) {
  struct cursor *c = (struct cursor *)base;
  char error[TK_QUERY_ERROR];

  (void)number;
  c->row = 0;
  c->scan.wants = (struct tk_wants){ 0 };
  c->scan.wants.events.with_details = plan[0] == '+';
  for (int i = 0; i < argc; i++) want(&c->scan.wants, plan[2 * i + 1], plan[2 * i + 2], argv[i]);
  return set_row(c, tk__scan_begin(&c->scan, error), error);
}

static int on_eof(sqlite3_vtab_cursor *base) {
  return ((const struct cursor *)base)->done;
}

static int on_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column) {
  struct cursor *c = (struct cursor *)base;
  struct tk_value value = { 0 };

  c->scan.table->column[column].value(&c->scan, &value);
  switch (value.kind) {
  case TK_VALUE_NONE: break;
  case TK_VALUE_NUMBER: sqlite3_result_int64(out, value.number); break;
  case TK_VALUE_TEXT:
    /* -1: the text ends with a NUL, so SQLite need not copy it to add one */
    sqlite3_result_text(out, value.text.data, value.stays ? -1 : (int)value.text.len,
                        value.stays ? SQLITE_STATIC : SQLITE_TRANSIENT);
    break;
  case TK_VALUE_NO_MEMORY: sqlite3_result_error_nomem(out); break;
  case TK_VALUE_TOO_LONG: sqlite3_result_error_toobig(out); break;
  }
  return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out) {
  *out = ((const struct cursor *)base)->row;
  return SQLITE_OK;
}

/* A table is created from the module of its name, so that SQLite's schema lists it. */
static const sqlite3_module module = { .xCreate = on_connect,
                                       .xConnect = on_connect,
                                       .xBestIndex = on_best_index,
                                       .xDisconnect = on_disconnect,
                                       .xDestroy = on_disconnect,
                                       .xOpen = on_open,
                                       .xClose = on_close,
                                       .xFilter = on_filter,
                                       .xNext = on_next,
                                       .xEof = on_eof,
                                       .xColumn = on_column,
                                       .xRowid = on_rowid };

static int add_table(sqlite3 *db, const struct tk_query_table *table, struct tk_traces *traces) {
  struct made *made = malloc(sizeof *made);
  char sql[100];

  if (made == NULL) return SQLITE_NOMEM;
  *made = (struct made){ table, traces };
  int rc = sqlite3_create_module_v2(db, table->name, &module, made, free);
  snprintf(sql, sizeof sql, "CREATE VIRTUAL TABLE %s USING %s", table->name, table->name);
  return rc == SQLITE_OK ? sqlite3_exec(db, sql, NULL, NULL, NULL) : rc;
}

static const struct tk_query_table *table_at(size_t i) {
  static const struct tk_query_table *const all[] = { tk__generation_tables, tk__span_tables,
                                                      tk__memory_tables, tk__event_tables,
                                                      tk__report_tables };

  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    for (const struct tk_query_table *t = all[k]; t->name != NULL; t++)
      if (i-- == 0) return t;
  return NULL;
}

const struct tk_query_table *tk__table(const char *name) {
  const struct tk_query_table *table;

  for (size_t i = 0; (table = table_at(i)) != NULL; i++)
    if (strcmp(table->name, name) == 0) return table;
  return NULL;
}

const char *tk_tables_name(size_t i) {
  const struct tk_query_table *table = table_at(i);

  return table == NULL ? NULL : table->name;
}

int tk_tables_add(sqlite3 *db, struct tk_traces *traces) {
  int rc = SQLITE_OK;

  for (size_t i = 0; rc == SQLITE_OK && table_at(i) != NULL; i++)
    rc = add_table(db, table_at(i), traces);
  return rc == SQLITE_OK ? tk_views_add(db) : rc;
}

bool tk_traces_open(struct tk_traces *traces, const struct tk_place *places, size_t n) {
  *traces = (struct tk_traces){ .trace = calloc(n, sizeof *traces->trace) };
  if (traces->trace == NULL) return false;
  for (; traces->n < n; traces->n++)
    tk_trace_init(&traces->trace[traces->n], &places[traces->n], traces->n);
  return true;
}

void tk_traces_close(struct tk_traces *traces) {
  for (size_t i = 0; i < traces->n; i++) tk_trace_fini(&traces->trace[i]);
  free(traces->trace);
}
