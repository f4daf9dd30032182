/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/rows.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tools/tracectl/term/plain.h"

enum { FIRST_ROWS = 1000, CELL_MAX = 120 };

void tk_rows_init(struct tk_rows *rows, enum tk_rows_format format, FILE *out) {
  *rows = (struct tk_rows){ .format = format, .out = out };
  tk_csv_begin(&rows->line, out);
}

void tk_rows_fini(struct tk_rows *rows) {
  for (size_t i = 0; i < rows->cells; i++) free(rows->cell[i]);
  free(rows->cell);
  free(rows->width);
}

static json_t *json_value(sqlite3_stmt *s, int i) {
  switch (sqlite3_column_type(s, i)) {
  case SQLITE_NULL: return json_null();
  case SQLITE_INTEGER: return json_integer(sqlite3_column_int64(s, i));
  case SQLITE_FLOAT: return json_real(sqlite3_column_double(s, i));
  default: {
    const char *text = (const char *)sqlite3_column_text(s, i);
    json_t *value = json_stringn(text, (size_t)sqlite3_column_bytes(s, i));
    return value != NULL ? value : json_string("\xef\xbf\xbd"); /* not UTF-8 */
  }
  }
}

static bool put_json(const struct tk_rows *rows, sqlite3_stmt *s) {
  json_t *row = json_object();
  bool whole = row != NULL;

  for (int i = 0; i < sqlite3_column_count(s); i++)
    whole = whole && json_object_set_new(row, sqlite3_column_name(s, i), json_value(s, i)) == 0;
  if (whole) whole = json_dumpf(row, rows->out, JSON_COMPACT | JSON_ENSURE_ASCII) == 0;
  if (whole) putc('\n', rows->out);
  json_decref(row);
  return whole || ferror(rows->out) != 0;
}

static void put_csv_head(struct tk_rows *rows, sqlite3_stmt *s) {
  if (rows->head_is_out) return;
  rows->head_is_out = true;
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    const char *name = sqlite3_column_name(s, i);
    tk_csv_text(&rows->line, name, strlen(name));
  }
  tk_csv_end(&rows->line);
}

static void put_csv(struct tk_rows *rows, sqlite3_stmt *s) {
  struct tk_csv_line *line = &rows->line;

  put_csv_head(rows, s);
  for (int i = 0, columns = sqlite3_column_count(s); i < columns; i++) {
    const char *text;
    if (sqlite3_column_type(s, i) == SQLITE_INTEGER)
      tk_csv_number(line, sqlite3_column_int64(s, i));
    else if ((text = (const char *)sqlite3_column_text(s, i)) != NULL)
      tk_csv_text(line, text, (size_t)sqlite3_column_bytes(s, i));
    else
      tk_csv_none(line);
  }
  tk_csv_end(line);
}

/* Copies the text without characters that would move the cursor. */
static char *printable(const char *text) {
  char *copy = strdup(text == NULL ? "" : text);

  if (copy != NULL) tk_plain_text(copy);
  return copy;
}

static bool is_number(const char *text) {
  return text[0] != 0 && text[strspn(text, "0123456789.-+e")] == 0;
}

static void put_cell(FILE *out, const char *text, int width, bool last) {
  if (is_number(text))
    fprintf(out, "%*s", width, text);
  else
    fprintf(out, "%-*s", last ? 0 : width, text);
  fputs(last ? "\n" : "  ", out);
}

static void find_widths(struct tk_rows *rows, sqlite3_stmt *s) {
  for (int i = 0; i < rows->columns; i++) rows->width[i] = (int)strlen(sqlite3_column_name(s, i));
  for (size_t i = 0; i < rows->cells; i++) {
    int *width = &rows->width[i % (size_t)rows->columns], n = (int)strlen(rows->cell[i]);
    if (n > *width) *width = n < CELL_MAX ? n : CELL_MAX;
  }
}

/* Prints the head and the buffered rows. */
static bool put_first(struct tk_rows *rows, sqlite3_stmt *s) {
  int n = rows->columns = sqlite3_column_count(s);

  if (rows->width != NULL || n == 0) return true;
  rows->width = calloc((size_t)n, sizeof *rows->width);
  if (rows->width == NULL) return false;
  find_widths(rows, s);
  for (int i = 0; i < n; i++) {
    bool of_numbers = rows->cells > 0 && is_number(rows->cell[i]);
    fprintf(rows->out, "%*s%s",
            of_numbers || i + 1 == n ? (of_numbers ? rows->width[i] : 0) : -rows->width[i],
            sqlite3_column_name(s, i), i + 1 == n ? "\n" : "  ");
  }
  for (size_t i = 0; i < rows->cells; i++) {
    size_t column = i % (size_t)n;
    put_cell(rows->out, rows->cell[i], rows->width[column], (int)column + 1 == n);
    free(rows->cell[i]);
  }
  rows->cells = 0;
  return true;
}

static bool keep_cell(struct tk_rows *rows, const char *text) {
  if (TB_GROW(rows->cell, rows->room, rows->cells) != TB_OK) return false;
  rows->cell[rows->cells] = printable(text);
  return rows->cell[rows->cells++] != NULL;
}

static bool put_text(struct tk_rows *rows, sqlite3_stmt *s) {
  int n = rows->columns = sqlite3_column_count(s);

  if (rows->width == NULL) {
    for (int i = 0; i < n; i++)
      if (!keep_cell(rows, (const char *)sqlite3_column_text(s, i))) return false;
    return rows->cells < (size_t)FIRST_ROWS * (size_t)n || put_first(rows, s);
  }
  for (int i = 0; i < n; i++) {
    char *text = printable((const char *)sqlite3_column_text(s, i));
    if (text == NULL) return false;
    put_cell(rows->out, text, rows->width[i], i + 1 == n);
    free(text);
  }
  return true;
}

bool tk_rows_put(struct tk_rows *rows, sqlite3_stmt *s) {
  switch (rows->format) {
  case TK_ROWS_JSON: return put_json(rows, s);
  case TK_ROWS_CSV: put_csv(rows, s); return true;
  default: return put_text(rows, s);
  }
}

bool tk_rows_end(struct tk_rows *rows, sqlite3_stmt *s) {
  if (rows->format == TK_ROWS_CSV) put_csv_head(rows, s);
  return rows->format != TK_ROWS_TEXT || put_first(rows, s);
}
