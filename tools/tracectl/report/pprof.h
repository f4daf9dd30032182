/* SPDX-License-Identifier: Apache-2.0 */
/* A table of reports as a profile for `go tool pprof`: gzip over proto/pprof.proto.
 *
 * Each row of a table that has a stack among its keys is a sample. Its values are the row's measures: of a distribution
 * NAME_count and NAME_total in nanoseconds, of a number NAME. The row that sums what a report does not list is a
 * sample named "(other stacks)". No report gives a profile without samples, which is a valid one.
 *
 * The profiles that `go tool trace -pprof=KIND` writes have one measure, which Go names "contentions" and "delay".
 *
 * Errors    TB_IO with the reason in diag; TB_NOMEM.
 */
#ifndef TK_REPORT_PPROF_H
#define TK_REPORT_PPROF_H

#include "base/result.h"
#include "proto/report.pb-c.h"

struct tk_pprof_ask {
  const Tracecollect__V1__TableSchema
      *table;             /* the same table of each report is found by its name */
  const char *go_measure; /* this distribution alone, with Go's names; NULL: all measures */
};

/* The table's first key that is a stack; NULL: it has none, and there is no profile of it. */
const Tracecollect__V1__FieldSchema *tk_pprof_stack(const Tracecollect__V1__TableSchema *table);

/* path "-" is stdout; a file is replaced. */
TB_MUST tb_rc tk_pprof_write(const char *path, const struct tk_pprof_ask *ask,
                             Tracecollect__V1__StreamReport *const *reports, size_t n,
                             struct tb_diag *diag);

#endif
