/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/export.h"

#include <string.h>

#include "tools/tracectl/query/scan.h"
#include "tools/tracectl/term/csv.h"
#include "tools/tracectl/term/tracectl.h"

static void put_head(struct tk_csv_line *line, const struct tk_query_table *table) {
  for (const struct tk_query_column *c = table->column; c->name != NULL; c++)
    if (!c->is_hidden) tk_csv_text(line, c->name, strlen(c->name));
  tk_csv_end(line);
}

static int put_row(struct tk_csv_line *line, struct tk_scan *scan) {
  for (const struct tk_query_column *c = scan->table->column; c->name != NULL; c++) {
    struct tk_value value = { 0 };
    if (c->is_hidden) continue;
    c->value(scan, &value);
    switch (value.kind) {
    case TK_VALUE_NONE: tk_csv_none(line); break;
    case TK_VALUE_NUMBER: tk_csv_number(line, value.number); break;
    case TK_VALUE_TEXT: tk_csv_text(line, value.text.data, value.text.len); break;
    case TK_VALUE_NO_MEMORY: return tk_fail("convert", "out of memory");
    case TK_VALUE_TOO_LONG: return tk_fail("convert", "%s: a value is too long", c->name);
    }
  }
  tk_csv_end(line);
  return TK_DONE;
}

int tk_table_csv(struct tk_traces *traces, const char *name, FILE *out) {
  struct tk_scan scan = { .table = tk__table(name),
                          .traces = traces,
                          .wants.events.with_details = true };
  char error[TK_QUERY_ERROR];
  struct tk_csv_line line;
  int code = TK_DONE;

  if (scan.table == NULL) return tk_usage("convert", "--table: no such table \"%s\"", name);
  tk_csv_begin(&line, out);
  put_head(&line, scan.table);
  int got = tk__scan_begin(&scan, error);
  while (got == 1 && code == TK_DONE && ferror(out) == 0) {
    code = put_row(&line, &scan);
    if (code == TK_DONE) got = tk__scan_next(&scan, error);
  }
  tk__scan_end(&scan);
  return got < 0 ? tk_fail("convert", "%s", error) : code;
}
