/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tracectl/query/columns.h"

struct vtab {
  sqlite3_vtab base;
  const struct tk_query_table *table;
  struct tk_source *source;
};

struct cursor {
  sqlite3_vtab_cursor base;
  struct tk_scan scan;
  struct tk_pass *pass;
  uint32_t kinds; /* of it, wanted */
  uint64_t end;   /* of what is in memory: the first key that is not wanted */
  bool done;
  int64_t row;
};

struct made {
  const struct tk_query_table *table;
  struct tk_source *source;
};

static int declare(sqlite3 *db, const struct tk_query_table *table) {
  char sql[600];
  size_t n = 0;

  for (const struct tk_query_column *c = table->column; c->name != NULL; c++)
    n += (size_t)snprintf(sql + n, sizeof sql - n, "%s%s", n == 0 ? "CREATE TABLE x(" : ", ",
                          c->name);
  snprintf(sql + n, sizeof sql - n, ")");
  return sqlite3_declare_vtab(db, sql);
}

static int on_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                      char **error) {
  const struct made *made = aux;
  struct vtab *vtab = sqlite3_malloc(sizeof *vtab);

  (void)argc;
  (void)argv;
  (void)error;
  if (vtab == NULL) return SQLITE_NOMEM;
  *vtab = (struct vtab){ .table = made->table, .source = made->source };
  *out = &vtab->base;
  return declare(db, made->table);
}

static int on_disconnect(sqlite3_vtab *vtab) {
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/* A pass costs the same whatever is asked; a key finds its rows at once. */
static int on_best_index(sqlite3_vtab *base, sqlite3_index_info *info) {
  const struct tk_query_table *table = ((struct vtab *)base)->table;

  info->estimatedCost = table->kinds != 0 ? 1e8 : 1e5;
  info->estimatedRows = table->kinds != 0 ? 10000000 : 10000;
  for (int i = 0; i < info->nConstraint; i++) {
    const struct sqlite3_index_constraint *at = &info->aConstraint[i];
    if (!at->usable || at->op != SQLITE_INDEX_CONSTRAINT_EQ || at->iColumn != table->key) continue;
    info->aConstraintUsage[i].argvIndex = 1;
    info->idxNum = 1;
    if (table->kinds != 0) break; /* the kind of spans: a pass all the same */
    info->estimatedCost = table->has_depths ? 30 : 1;
    info->estimatedRows = table->has_depths ? 30 : 1;
    break;
  }
  return SQLITE_OK;
}

static int on_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out) {
  const struct vtab *vtab = (const struct vtab *)base;
  struct cursor *c = sqlite3_malloc(sizeof *c);

  if (c == NULL) return SQLITE_NOMEM;
  *c = (struct cursor){ .scan = { .table = vtab->table, .source = vtab->source }, .done = true };
  *out = &c->base;
  return SQLITE_OK;
}

static int on_close(sqlite3_vtab_cursor *base) {
  struct cursor *c = (struct cursor *)base;

  tk_pass_end(c->pass);
  sqlite3_free(c);
  return SQLITE_OK;
}

static int fail(struct cursor *c, const char *error) {
  sqlite3_free(c->base.pVtab->zErrMsg);
  c->base.pVtab->zErrMsg = sqlite3_mprintf("%s", error);
  c->done = true;
  return SQLITE_ERROR;
}

static int next_span(struct cursor *c) {
  char error[TK_SOURCE_TEXT];
  int got;

  do got = tk_pass_next(c->pass, &c->scan.at, error);
  while (got == 1 && (c->kinds & 1u << c->scan.at.span->kind) == 0);
  if (got < 0) return fail(c, error);
  c->done = got == 0;
  return SQLITE_OK;
}

static bool is_row(const struct cursor *c) {
  if (c->scan.table->of_goroutines) return c->scan.source->goroutine[c->scan.key].is_known;
  return !c->scan.table->has_depths ||
         c->scan.depth < tk_source_stack(c->scan.source, (uint32_t)c->scan.key)->len;
}

/* To the first row from here on. */
static void find_row(struct cursor *c) {
  while (c->scan.key < c->end && !is_row(c)) {
    c->scan.key++;
    c->scan.depth = 0;
  }
  c->done = c->scan.key >= c->end;
}

static int on_next(sqlite3_vtab_cursor *base) {
  struct cursor *c = (struct cursor *)base;

  c->row++;
  if (c->scan.table->kinds != 0) return next_span(c);
  if (c->scan.table->has_depths)
    c->scan.depth++;
  else
    c->scan.key++;
  find_row(c);
  return SQLITE_OK;
}

/* kind: what the column must be; NULL: whatever the table has. */
static uint32_t kinds_of(const struct tk_query_table *table, sqlite3_value *kind) {
  const char *name = kind == NULL ? NULL : (const char *)sqlite3_value_text(kind);

  if (kind == NULL) return table->kinds;
  for (unsigned i = 0; i < TO_SPAN_KINDS && name != NULL; i++)
    if (strcmp(to_span_kind_name((enum to_span_kind)i), name) == 0) return table->kinds & 1u << i;
  return 0;
}

static int begin_pass(struct cursor *c) {
  char error[TK_SOURCE_TEXT];

  tk_pass_end(c->pass);
  c->pass = NULL;
  if (!tk_pass_begin(c->scan.source->path, c->kinds, &c->pass, error)) return fail(c, error);
  return next_span(c);
}

static int begin_rows(struct cursor *c, const sqlite3_value *key) {
  bool of_goroutines = c->scan.table->of_goroutines;
  uint64_t first = of_goroutines ? 1 : TO_STACK_OTHER + 1;
  char error[TK_SOURCE_TEXT];

  if (!tk_source_read(c->scan.source, error)) return fail(c, error);
  uint64_t end = of_goroutines ? c->scan.source->lives : c->scan.source->stacks;
  c->scan.key = first;
  c->end = end;
  c->scan.depth = 0;
  if (key != NULL) {
    sqlite3_int64 wanted = sqlite3_value_int64((sqlite3_value *)(uintptr_t)key);
    bool is_there = wanted >= (sqlite3_int64)first && (uint64_t)wanted < end;
    c->scan.key = is_there ? (uint64_t)wanted : end;
    c->end = is_there ? c->scan.key + 1 : end;
  }
  find_row(c);
  return SQLITE_OK;
}

static int on_filter(sqlite3_vtab_cursor *base, int number, const char *text, int argc,
                     sqlite3_value **argv) {
  struct cursor *c = (struct cursor *)base;

  (void)text;
  c->row = 0;
  c->done = true;
  sqlite3_value *key = number == 1 && argc == 1 ? argv[0] : NULL;
  if (c->scan.table->kinds == 0) return begin_rows(c, key);
  c->kinds = kinds_of(c->scan.table, key);
  return c->kinds != 0 ? begin_pass(c) : SQLITE_OK;
}

static int on_eof(sqlite3_vtab_cursor *base) {
  return ((const struct cursor *)base)->done;
}

static int on_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column) {
  const struct cursor *c = (const struct cursor *)base;

  c->scan.table->column[column].value(&c->scan, out);
  return SQLITE_OK;
}

static int on_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out) {
  *out = ((const struct cursor *)base)->row;
  return SQLITE_OK;
}

/* Without xCreate the tables are there by their names, and no others can be made. */
static const sqlite3_module module = { .xConnect = on_connect,
                                       .xBestIndex = on_best_index,
                                       .xDisconnect = on_disconnect,
                                       .xOpen = on_open,
                                       .xClose = on_close,
                                       .xFilter = on_filter,
                                       .xNext = on_next,
                                       .xEof = on_eof,
                                       .xColumn = on_column,
                                       .xRowid = on_rowid };

/* A table's columns are declared when it is first named, by a statement that an authorizer would not let pass. */
static int name_once(sqlite3 *db, const char *table) {
  sqlite3_stmt *statement = NULL;
  char sql[60];

  snprintf(sql, sizeof sql, "SELECT 1 FROM %s", table);
  int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);
  sqlite3_finalize(statement);
  return rc;
}

int tk_tables_add(sqlite3 *db, struct tk_source *source) {
  for (const struct tk_query_table *t = tk_query_tables; t->name != NULL; t++) {
    struct made *made = malloc(sizeof *made);
    if (made == NULL) return SQLITE_NOMEM;
    *made = (struct made){ t, source };
    int rc = sqlite3_create_module_v2(db, t->name, &module, made, free);
    if (rc == SQLITE_OK) rc = name_once(db, t->name);
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}
