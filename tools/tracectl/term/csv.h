/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of RFC 4180. The caller writes the commas; "\r\n" ends a line. */
#ifndef TK_TERM_CSV_H
#define TK_TERM_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Quotes the text if required; NULL: an empty cell. */
void tk_csv_put(FILE *out, const char *text);

/* A line built cell by cell, with commas, and written in one piece if it is not too long. For a terminal, control characters become '?'
 * (plain.h). */
struct tk_csv_line {
  FILE *out;
  char text[1024];
  size_t n;
  bool has_cells, is_on_terminal;
};

void tk_csv_begin(struct tk_csv_line *line, FILE *out);
void tk_csv_number(struct tk_csv_line *line, int64_t number);
/* Writes text up to its first NUL. */
void tk_csv_text(struct tk_csv_line *line, const char *text, size_t n);
void tk_csv_none(struct tk_csv_line *line);
void tk_csv_end(struct tk_csv_line *line);

#endif
