/* SPDX-License-Identifier: Apache-2.0 */
/* Named queries: tracectl query --saved NAME. */
#ifndef TK_QUERY_SAVED_H
#define TK_QUERY_SAVED_H

#include <stdbool.h>

struct tk_saved {
  const char *name, *about, *sql;
};
extern const struct tk_saved tk_saved[]; /* ends with a row without name */

/* Returns NULL if there is none, and prints an error with similar names. */
const struct tk_saved *tk_saved_find(const char *name);
/* Prints all on standard output: as a table, or an object a line. */
void tk_saved_list(bool json);

#endif
