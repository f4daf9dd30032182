/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a number in a report, by the names of its schema:
 *
 *   KIND.FIGURE[.FIELD]          syscall.blocked.p99, stw.wall_share
 *   KIND.TABLE                   number of rows, including those that the report omits: syscall.blocked_now
 *   KIND.TABLE.COLUMN[.FIELD]    the greatest value of all rows: syscall.blocked_now.age
 *
 * A distribution needs a FIELD: count total min max mean p50 p90 p99 p999 lower_bounds. The unit at the end of a name
 * (_ns, _bytes, _share) may be omitted.
 *
 * Memory    a path points to names in the schema.
 * Errors    TB_BROKEN, with the reason and the nearest paths in diag.
 */
#ifndef TR_TRIGGER_FIGURE_PATH_H
#define TR_TRIGGER_FIGURE_PATH_H

#include "base/result.h"
#include "online/analysis/report.h"
#include "proto/report.pb-c.h"

enum tr_field {
  TR_FIELD_NONE, /* the value is not a distribution */
  TR_FIELD_COUNT,
  TR_FIELD_TOTAL,
  TR_FIELD_MIN,
  TR_FIELD_MAX,
  TR_FIELD_MEAN,
  TR_FIELD_P50,
  TR_FIELD_P90,
  TR_FIELD_P99,
  TR_FIELD_P999,
  TR_FIELD_LOWER_BOUNDS,
  TR_FIELDS
};
const char *tr_field_name(enum tr_field field); /* such as "p99"; TR_FIELD_NONE: "" */

struct tr_figure_path {
  const char *kind;
  const char *figure;               /* NULL: a table */
  const char *table, *column;       /* column NULL: number of rows */
  enum tr_field field;              /* field of a distribution */
  Tracecollect__V1__ValueType type; /* type of the number: COUNT, NS, ... */
};

/* Parses the first len bytes of text. schemas: the known kinds. */
TB_MUST tb_rc tr_figure_path_parse(const char *text, size_t len,
                                   Tracecollect__V1__ReportSchema *const *schemas, size_t n,
                                   struct tb_diag *diag, struct tr_figure_path *out);

/* Returns false if the report is of another kind or does not have the number. */
bool tr_figure_path_read(const struct tr_figure_path *path, const struct to_report *report,
                         double *out);

struct tr_number {
  double value;
  double error_share; /* how much it may be off, as a share of it; 0 unless it is a quantile */
};
/* Reads the number from a report in a message. */
bool tr_figure_path_unpack(const struct tr_figure_path *path,
                           const Tracecollect__V1__StreamReport *report, struct tr_number *out);

#endif
