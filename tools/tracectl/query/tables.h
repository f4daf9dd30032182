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

/* places are copied, their texts lent. False: no memory. */
bool tk_traces_open(struct tk_traces *traces, const struct tk_place *places, size_t n);
void tk_traces_close(struct tk_traces *traces);

/* The name of the i-th table; NULL: there are no more. */
const char *tk_tables_name(size_t i);
/* traces are lent until db is closed. SQLITE_OK, or what SQLite answers. */
int tk_tables_add(sqlite3 *db, struct tk_traces *traces);

#endif
