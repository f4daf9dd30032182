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
#include "online/spans/stacks/callstack.h"
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

/* The same, sample by sample. Texts and stacks are lent until it is freed, but those of above, which are copied. */
struct tk_profile;
TB_MUST tb_rc tk_profile_new(struct tk_profile **out);
void tk_profile_free(struct tk_profile *p); /* NULL is fine */
/* What follows is of another program: a counter says nothing of it that was known before. */
void tk_profile_program(struct tk_profile *p);
/* stack NULL: none. above: names that stand on top of it, the first one uppermost. values: as many in each sample. */
TB_MUST tb_rc tk_profile_sample(struct tk_profile *p, const struct to_callstack *stack,
                                const char *const *above, size_t n_above,
                                const int64_t *values, size_t n_values);
/* What the values are: names[i] NULL leaves out the i-th one. All left out, or none there: a sample counts as one of "rows". */
TB_MUST tb_rc tk_profile_write(struct tk_profile *p, const char *path, const char *const *names,
                               size_t n_values, struct tb_diag *diag);

#endif
