/* SPDX-License-Identifier: Apache-2.0 */
/* One SELECT over a trace. It reads and nothing else: what would write, attach a file, or load code is refused.
 *
 * Errors    on stderr, with a line under the statement that points at the place; enum tk_exit.
 */
#ifndef TK_QUERY_SQL_H
#define TK_QUERY_SQL_H

#include "tools/tracectl/query/rows.h"

int tk_sql_run(const char *path, const char *sql, enum tk_rows_format format);

#endif
