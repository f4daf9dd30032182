/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as tables of SQLite, made while they are read: nothing is stored. Their columns are part of the contract
 * (docs/QUERY.md).
 *
 * Tables of spans are a pass over the traces each time they are scanned; so are events and generations, but those read
 * only generations that conditions on their columns leave. goroutines, stacks and frames are in memory after one pass, and
 * found by life and by stack. reports are made in a pass for the wanted kinds.
 *
 * Threads   one.
 * Errors    of a scan: SQLITE_ERROR with the reason, after the rows before it.
 */
#ifndef TK_QUERY_TABLES_H
#define TK_QUERY_TABLES_H

#include <sqlite3.h>

#include "tools/tracectl/query/trace.h"

struct tk_traces {
  struct tk_trace *trace;
  size_t n;
};

/* traces are lent until db is closed. SQLITE_OK, or what SQLite answers. */
int tk_tables_add(sqlite3 *db, struct tk_traces *traces);

#endif
