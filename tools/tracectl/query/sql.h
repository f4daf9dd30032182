/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one SELECT over traces. Statements that write, attach a file, or load code are refused.
 *
 * Errors    on stderr, with a line under the statement that points at the place; enum tk_exit.
 */
#ifndef TK_QUERY_SQL_H
#define TK_QUERY_SQL_H

#include "tools/tracectl/query/rows.h"
#include "tools/tracectl/query/tables.h"

int tk_sql_run(struct tk_traces *traces, const char *sql, enum tk_rows_format format, FILE *out);
/* Writes its rows as a profile (query/profile.h); path "-" is stdout. */
int tk_sql_profile(struct tk_traces *traces, const char *sql, const char *path);
/* Prints the tables with their columns; or one table (NULL: all) with types and words. */
int tk_sql_schema(const char *table);
/* Writes all tables as a SQLite database; path appears whole or not at all. */
int tk_sql_store(struct tk_traces *traces, const char *path);

#endif
