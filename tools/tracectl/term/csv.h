/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of RFC 4180. The caller puts the commas; "\r\n" ends a line. */
#ifndef TK_TERM_CSV_H
#define TK_TERM_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* In quotes where the text needs them; NULL: an empty cell. */
void tk_csv_put(FILE *out, const char *text);

/* A line that is put together cell by cell, with its commas, and written in one piece where it is not too long. Where out is a terminal, what a
 * terminal would obey becomes '?' (plain.h); elsewhere text is as it is. */
struct tk_csv_line {
  FILE *out;
  char text[1024];
  size_t n;
  bool has_cells, is_on_terminal;
};

void tk_csv_begin(struct tk_csv_line *line, FILE *out);
void tk_csv_number(struct tk_csv_line *line, int64_t number);
/* Up to its first NUL, as the C library's functions would see it. */
void tk_csv_text(struct tk_csv_line *line, const char *text, size_t n);
void tk_csv_none(struct tk_csv_line *line);
void tk_csv_end(struct tk_csv_line *line);

#endif
