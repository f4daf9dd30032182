/* SPDX-License-Identifier: Apache-2.0 */
/* A trace as tables of SQLite, made while they are read: nothing is stored. Their columns are part of the contract
 * (docs/QUERY.md).
 *
 * spans, tasks, regions, logs, samples and metrics are a pass over the file each time they are scanned; goroutines,
 * stacks and frames are in memory after one pass, and found by life and by stack.
 *
 * Threads   one.
 * Errors    of a scan: SQLITE_ERROR with the reason, after the rows before it.
 */
#ifndef TK_QUERY_TABLES_H
#define TK_QUERY_TABLES_H

#include <sqlite3.h>

#include "tools/tracectl/query/source.h"

/* source is lent until db is closed. SQLITE_OK, or what SQLite answers. */
int tk_tables_add(sqlite3 *db, struct tk_source *source);

#endif
