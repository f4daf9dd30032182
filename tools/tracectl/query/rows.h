/* SPDX-License-Identifier: Apache-2.0 */
/* Prints rows of a statement: as a table for people, as JSON (one object a line), as CSV (RFC 4180).
 * A table's columns are as wide as the widest cell among its first rows. */
#ifndef TK_QUERY_ROWS_H
#define TK_QUERY_ROWS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "tools/tracectl/term/record.h"

enum tk_rows_format { TK_ROWS_TEXT, TK_ROWS_JSON, TK_ROWS_CSV };

struct tk_rows {
  enum tk_rows_format format;
  FILE *out;
  int columns;
  int *width;  /* widths of text; NULL: not known yet */
  char **cell; /* first rows, buffered until the widths are known */
  size_t cells, room;
  struct tk_record record; /* for programs, from the first row on */
  int *source; /* a record's columns, as the statement numbers them; NULL: not yet begun */
};

void tk_rows_init(struct tk_rows *rows, enum tk_rows_format format, FILE *out);
void tk_rows_fini(struct tk_rows *rows);
/* Prints the statement's current row. Returns false if memory cannot be allocated. */
bool tk_rows_put(struct tk_rows *rows, sqlite3_stmt *statement);
/* Call after the last row, and before reporting an error. */
bool tk_rows_end(struct tk_rows *rows, sqlite3_stmt *statement);

#endif
