/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as SQLite's virtual tables, made while they are read: nothing is stored. Columns are part of the contract (docs/QUERY.md).
 *
 * A scan of a table of spans is a pass over the traces. So are events and generations, but they only read generations that
 * conditions on their columns allow. goroutines, stacks and frames are in memory after one pass, and found by life and stack.
 * reports are made in a pass for the requested kinds.
 *
 * Threads   one.
 * Errors    of a scan: SQLITE_ERROR with the reason, after the rows before it.
 */
#ifndef TK_QUERY_TABLES_H
#define TK_QUERY_TABLES_H

#include <sqlite3.h>

#include "proto/archive.pb-c.h"
#include "tools/tracectl/query/trace.h"

struct tk_traces {
  struct tk_trace *trace;
  size_t n;
  const Tracecollect__V1__FindingsReply *findings; /* NULL: there is no table of them */
};

/* places are copied, but not their texts. Returns false if memory cannot be allocated. */
bool tk_traces_open(struct tk_traces *traces, const struct tk_place *places, size_t n);
void tk_traces_close(struct tk_traces *traces);

/* Returns the name of the i-th table, or NULL. */
const char *tk_tables_name(size_t i);
/* traces are lent until db is closed. Returns SQLITE_OK, or SQLite's error. */
int tk_tables_add(sqlite3 *db, struct tk_traces *traces);

#endif
