/* SPDX-License-Identifier: Apache-2.0 */
/* Views of `spans` by the names that people look for: system calls, stop-the-world pauses, waits. */
#ifndef TK_NAMES_VIEWS_H
#define TK_NAMES_VIEWS_H

#include <sqlite3.h>
#include <stddef.h>

/* Returns the name of the i-th view, or NULL. */
const char *tk_views_name(size_t i);
/* The table `spans` must exist. Returns SQLITE_OK, or SQLite's error. */
int tk_views_add(sqlite3 *db);

#endif
