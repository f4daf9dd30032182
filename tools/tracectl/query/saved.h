/* SPDX-License-Identifier: Apache-2.0 */
/* The queries that have a name: tracectl query --saved NAME. */
#ifndef TK_QUERY_SAVED_H
#define TK_QUERY_SAVED_H

#include <stdbool.h>

struct tk_saved {
  const char *name, *about, *sql;
};
extern const struct tk_saved tk_saved[]; /* the last one has no name */

/* NULL: none is called so; it is said on stderr, with what comes near. */
const struct tk_saved *tk_saved_find(const char *name);
/* All of them on standard output: as a table, or an object a line. */
void tk_saved_list(bool json);

#endif
