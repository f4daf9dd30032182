/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/export.h"

#include <string.h>

#include "tools/tracectl/query/scan.h"
#include "tools/tracectl/term/tracectl.h"

struct chosen {
  const struct tk_query_column *column[TK_EXPORT_COLUMNS];
  const char *name[TK_EXPORT_COLUMNS];
  size_t n;
};

static bool choose(struct chosen *chosen, const struct tk_query_column *column) {
  for (size_t i = 0; i < chosen->n; i++)
    if (chosen->column[i] == column) return false;
  if (chosen->n == TK_EXPORT_COLUMNS) return false;
  chosen->name[chosen->n] = column->name;
  chosen->column[chosen->n++] = column;
  return true;
}

static const struct tk_query_column *find_column(const struct tk_query_table *table,
                                                 const char *name, size_t len) {
  for (const struct tk_query_column *c = table->column; c->name != NULL; c++)
    if (strlen(c->name) == len && sqlite3_strnicmp(c->name, name, (int)len) == 0) return c;
  return NULL;
}

static void choose_all(const struct tk_query_table *table, struct chosen *out) {
  for (const struct tk_query_column *c = table->column; c->name != NULL; c++)
    if (!c->is_hidden) (void)choose(out, c);
}

/* Returns the end of the list, or the column at fault. */
static const char *choose_columns(const struct tk_query_table *table, const char *at,
                                  struct chosen *out, enum tk_export_fault *fault) {
  static const char blank[] = " \t\r\n";

  for (;; at++) {
    at += strspn(at, blank);
    size_t len = strcspn(at, ", \t\r\n");
    const struct tk_query_column *column = find_column(table, at, len);
    *fault = column == NULL         ? TK_EXPORT_NO_COLUMN
             : !choose(out, column) ? TK_EXPORT_TWICE
                                    : TK_EXPORT_FITS;
    if (*fault != TK_EXPORT_FITS) return at;
    at += len + strspn(at + len, blank);
    if (*at == '\0') return at;
    *fault = TK_EXPORT_NO_COLUMN;
    if (*at != ',') return at;
  }
}

static enum tk_export_fault choose_from(const struct tk_export *ask, struct chosen *out,
                                        const char **out_at) {
  const struct tk_query_table *table = tk__table(ask->table);
  enum tk_export_fault fault = TK_EXPORT_FITS;

  out->n = 0;
  *out_at = "";
  if (table == NULL) return TK_EXPORT_NO_TABLE;
  if (ask->columns == NULL)
    choose_all(table, out);
  else
    *out_at = choose_columns(table, ask->columns, out, &fault);
  return fault;
}

enum tk_export_fault tk_export_check(const struct tk_export *ask, const char **out_name,
                                     size_t *out_len) {
  struct chosen chosen;

  enum tk_export_fault fault = choose_from(ask, &chosen, out_name);
  *out_len = strcspn(*out_name, ", \t\r\n");
  return fault;
}

static int put_row(const struct tk_export *ask, const struct chosen *chosen, struct tk_scan *scan,
                   struct tk_record *record) {
  for (size_t i = 0; i < chosen->n; i++) {
    struct tk_value value = { 0 };
    chosen->column[i]->value(scan, &value);
    switch (value.kind) {
    case TK_VALUE_NONE: tk_record_none(record); break;
    case TK_VALUE_NUMBER: tk_record_number(record, value.number); break;
    case TK_VALUE_TEXT: tk_record_text(record, value.text.data, value.text.len); break;
    case TK_VALUE_NO_MEMORY: return tk_fail(ask->verb, "out of memory");
    case TK_VALUE_TOO_LONG:
      return tk_fail(ask->verb, "%s: a value is too long", chosen->column[i]->name);
    }
  }
  tk_record_end(record);
  return TK_DONE;
}

static int put_rows(const struct tk_export *ask, const struct chosen *chosen, struct tk_scan *scan,
                    struct tk_record *record) {
  char error[TK_QUERY_ERROR];
  int code = TK_DONE;

  int got = tk__scan_begin(scan, error);
  while (got == 1 && code == TK_DONE && ferror(record->line.out) == 0) {
    code = put_row(ask, chosen, scan, record);
    if (code == TK_DONE) got = tk__scan_next(scan, error);
  }
  tk__scan_end(scan);
  if (got >= 0) return code;
  fflush(record->line.out); /* the rows before the fault */
  return error[0] == 0 ? TK_FAILED : tk_fail(ask->verb, "%s", error); /* empty: already reported */
}

int tk_export(const struct tk_export *ask, struct tk_traces *traces, FILE *out) {
  struct tk_scan scan = { .table = tk__table(ask->table), .traces = traces };
  struct tk_record record;
  struct chosen chosen;
  const char *at;

  if (choose_from(ask, &chosen, &at) != TK_EXPORT_FITS)
    return tk_fail(ask->verb, "no such columns");
  for (size_t i = 0; i < chosen.n; i++)
    scan.wants.events.with_details |= chosen.column[i]->is_detail;
  if (!tk_record_init(&record, ask->format, out, chosen.name, chosen.n))
    return tk_fail(ask->verb, "out of memory");
  tk_record_head(&record, chosen.name);
  int code = put_rows(ask, &chosen, &scan, &record);
  tk_record_fini(&record);
  return code;
}
