/* SPDX-License-Identifier: Apache-2.0 */
/* p(x, 99) and median(x) for SQL: exact, of all values of a group.
 *
 * Memory    8 bytes a value, SQLite's; all groups that are open at once have at most TK_AGGREGATE_VALUES, then the query fails.
 */
#ifndef TK_NAMES_AGGREGATES_H
#define TK_NAMES_AGGREGATES_H

#include <sqlite3.h>

enum { TK_AGGREGATE_VALUES = 1 << 26 };

/* Returns SQLITE_OK, or SQLite's error. */
int tk_aggregates_add(sqlite3 *db);

#endif
