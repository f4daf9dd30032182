/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "tools/tracectl/term/plain.h"

enum { FIRST_ROWS = 1000, CELL_MAX = 120 };

void tk_rows_init(struct tk_rows *rows, enum tk_rows_format format, FILE *out) {
  *rows = (struct tk_rows){ .format = format, .out = out };
}

void tk_rows_fini(struct tk_rows *rows) {
  if (rows->source != NULL) tk_record_fini(&rows->record);
  for (size_t i = 0; i < rows->cells; i++) free(rows->cell[i]);
  free(rows->source);
  free(rows->cell);
  free(rows->width);
}

/* ---- for programs ---- */

/* Columns may have the same name: an object then has the last one's value at the place of the first. */
static int choose_columns(struct tk_rows *rows, sqlite3_stmt *s, const char **name) {
  int n = 0;

  for (int i = 0; i < rows->columns; i++) {
    const char *own = sqlite3_column_name(s, i);
    int at = n;
    for (int k = 0; rows->format == TK_ROWS_JSON && k < n; k++)
      if (strcmp(name[k], own) == 0) at = k;
    name[at] = own;
    rows->source[at] = i;
    n += at == n;
  }
  return n;
}

static bool begin_records(struct tk_rows *rows, sqlite3_stmt *s) {
  enum tk_record_format format = rows->format == TK_ROWS_CSV ? TK_RECORD_CSV : TK_RECORD_JSON;
  int all = rows->columns = sqlite3_column_count(s);
  const char **name = calloc((size_t)all + 1, sizeof *name);

  rows->source = calloc((size_t)all + 1, sizeof *rows->source);
  bool whole = name != NULL && rows->source != NULL;
  if (whole) rows->columns = choose_columns(rows, s, name);
  whole = whole && tk_record_init(&rows->record, format, rows->out, name, (size_t)rows->columns);
  if (whole) tk_record_head(&rows->record, name);
  if (!whole) free(rows->source);
  if (!whole) rows->source = NULL;
  free(name);
  return whole;
}

/* The statement is used by one thread: its values need no protection. */
static void put_value(struct tk_rows *rows, sqlite3_value *value) {
  struct tk_record *record = &rows->record;
  int type = sqlite3_value_type(value);
  const char *text;

  if (type == SQLITE_INTEGER)
    tk_record_number(record, sqlite3_value_int64(value));
  else if (type == SQLITE_FLOAT && rows->format == TK_ROWS_JSON)
    tk_record_real(record, sqlite3_value_double(value));
  else if ((text = (const char *)sqlite3_value_text(value)) != NULL)
    tk_record_text(record, text, (size_t)sqlite3_value_bytes(value));
  else
    tk_record_none(record);
}

static bool put_record(struct tk_rows *rows, sqlite3_stmt *s) {
  if (rows->source == NULL && !begin_records(rows, s)) return false;
  for (int i = 0; i < rows->columns; i++) put_value(rows, sqlite3_column_value(s, rows->source[i]));
  tk_record_end(&rows->record);
  return true;
}

/* ---- for people ---- */

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
  return rows->format == TK_ROWS_TEXT ? put_text(rows, s) : put_record(rows, s);
}

bool tk_rows_end(struct tk_rows *rows, sqlite3_stmt *s) {
  if (rows->format == TK_ROWS_TEXT) return put_first(rows, s);
  return rows->source != NULL || begin_records(rows, s);
}
