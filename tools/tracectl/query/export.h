/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a whole table as CSV (RFC 4180) directly from its scan: SQL would take longer than the rest.
 *
 * Errors    on stderr; enum tk_exit. TK_USAGE, and nothing is written: no such table.
 */
#ifndef TK_QUERY_EXPORT_H
#define TK_QUERY_EXPORT_H

#include <stdio.h>

#include "tools/tracectl/query/tables.h"

int tk_table_csv(struct tk_traces *traces, const char *table, FILE *out);

#endif
