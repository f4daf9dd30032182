/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a whole table, or some of its columns, directly from its scan: SQL would take longer than the rest.
 *
 * Errors    on stderr; enum tk_exit.
 */
#ifndef TK_QUERY_EXPORT_H
#define TK_QUERY_EXPORT_H

#include "tools/tracectl/query/tables.h"
#include "tools/tracectl/term/record.h"

enum { TK_EXPORT_COLUMNS = 64 };

struct tk_export {
  const char *verb, *table;
  const char *columns; /* "kind, duration_ns"; NULL: all that SELECT * has */
  enum tk_record_format format;
};

enum tk_export_fault { TK_EXPORT_FITS, TK_EXPORT_NO_TABLE, TK_EXPORT_NO_COLUMN, TK_EXPORT_TWICE };

/* Has the table all columns, each once at most? Views are no tables here. out_name: the column at fault, in ask->columns. */
enum tk_export_fault tk_export_check(const struct tk_export *ask, const char **out_name,
                                     size_t *out_len);
int tk_export(const struct tk_export *ask, struct tk_traces *traces, FILE *out);

#endif
