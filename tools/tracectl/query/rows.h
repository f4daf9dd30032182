/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a statement, as they come: as a table for people, as JSON (one object a line), as CSV (RFC
 * 4180). The table's columns are as wide as the widest cell among its first rows.
 */
#ifndef TK_QUERY_ROWS_H
#define TK_QUERY_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/tracectl/term/csv.h"

enum tk_rows_format { TK_ROWS_TEXT, TK_ROWS_JSON, TK_ROWS_CSV };

struct tk_rows {
  enum tk_rows_format format;
  FILE *out;
  int columns;
  int *width;  /* text; NULL: not known yet */
  char **cell; /* of the first rows, until then */
  size_t cells, room;
  bool head_is_out;
  struct tk_csv_line line;
};

void tk_rows_init(struct tk_rows *rows, enum tk_rows_format format, FILE *out);
void tk_rows_fini(struct tk_rows *rows);
/* The row that the statement stands at. False: no memory. */
bool tk_rows_put(struct tk_rows *rows, sqlite3_stmt *statement);
/* After the last one, and before an error is reported. */
bool tk_rows_end(struct tk_rows *rows, sqlite3_stmt *statement);

#endif
