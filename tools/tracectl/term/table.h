/* SPDX-License-Identifier: Apache-2.0 */
/* A table for people: columns as wide as their widest cell, or Markdown.
 *
 * Memory    copies its cells; tk_table_fini() frees them. Cells that cannot be allocated are left out.
 */
#ifndef TK_TERM_TABLE_H
#define TK_TERM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/result.h"

enum { TK_COLUMNS_MAX = 32 };

struct tk_table {
  size_t columns, cells, room;
  bool right[TK_COLUMNS_MAX]; /* column holds numbers */
  char **cell;                /* row by row, the head first */
};

/* head: names, comma separated; a leading '>' makes the column right-aligned. */
void tk_table_init(struct tk_table *table, const char *head);
void tk_table_fini(struct tk_table *table);
/* Adds a cell; unprintable characters become question marks. */
void tk_table_add(struct tk_table *table, const char *fmt, ...) TB_PRINTF(2, 3);
void tk_table_print(const struct tk_table *table, FILE *out, bool markdown);

/* "1.2 MiB", "317 B". */
enum { TK_SIZE_BYTES = 16 };
void tk_size_format(uint64_t bytes, char out[TK_SIZE_BYTES]);

#endif
