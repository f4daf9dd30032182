/* SPDX-License-Identifier: Apache-2.0 */
/* Statements that only choose columns of one table: `SELECT kind, duration_ns FROM spans`. They need no SQL to be run. */
#ifndef TK_NAMES_PLAIN_H
#define TK_NAMES_PLAIN_H

#include <stdbool.h>

struct tk_plain {
  char table[40];
  char columns[400]; /* with commas; "": * */
};

/* Returns false if the statement is another. Neither table nor columns need exist. */
bool tk_plain_select(const char *sql, struct tk_plain *out);

#endif
