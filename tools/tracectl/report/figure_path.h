/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a number in a report, by the names of its schema:
 *
 *   KIND.FIGURE[.FIELD]          syscall.blocked.p99, stw.wall_share
 *   KIND.TABLE                   rows found, those that the report does not list included: syscall.blocked_now
 *   KIND.TABLE.COLUMN[.FIELD]    the greatest value of all rows: syscall.blocked_now.age
 *
 * A distribution needs a FIELD: count total max mean p50 p90 p99 p999 lower_bounds. The unit at the end of a name
 * (_ns, _bytes, _share) may be left out. Names of reports before they described themselves are understood for one
 * version more: syscall.stacks is syscall.by_stack.
 *
 * Memory    a path lends its names from the schema.
 * Errors    TB_BROKEN, with the reason and the nearest paths in diag.
 */
#ifndef TK_REPORT_FIGURE_PATH_H
#define TK_REPORT_FIGURE_PATH_H

#include "base/result.h"
#include "proto/report.pb-c.h"

enum tk_field {
  TK_FIELD_NONE, /* the value is no distribution */
  TK_FIELD_COUNT,
  TK_FIELD_TOTAL,
  TK_FIELD_MAX,
  TK_FIELD_MEAN,
  TK_FIELD_P50,
  TK_FIELD_P90,
  TK_FIELD_P99,
  TK_FIELD_P999,
  TK_FIELD_LOWER_BOUNDS,
  TK_FIELDS
};

struct tk_figure_path {
  const char *kind;
  const char *figure;               /* NULL: a table */
  const char *table, *column;       /* column NULL: its rows */
  enum tk_field field;              /* of a distribution */
  Tracecollect__V1__ValueType type; /* of the number: COUNT, NS, ... */
};

/* The path is the first len bytes of text. Kinds are those that the caller shows: a path of another one is unknown. */
TB_MUST tb_rc tk_figure_path_parse(const char *text, size_t len,
                                   Tracecollect__V1__ReportSchema *const *schemas, size_t n,
                                   struct tb_diag *diag, struct tk_figure_path *out);

/* False: the report is of another kind, or does not know the number. */
bool tk_figure_path_read(const struct tk_figure_path *path,
                         const Tracecollect__V1__StreamReport *report, double *out);

#endif
