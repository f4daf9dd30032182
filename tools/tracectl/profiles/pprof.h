/* SPDX-License-Identifier: Apache-2.0 */
/* A table of reports as a profile for `go tool pprof`: gzip over proto/pprof.proto.
 *
 * Each row of a table with a stack among its keys is a sample. Its values are the row's measures: for a distribution
 * NAME_count and NAME_total in nanoseconds, for a number NAME. The row that sums the rows left out is a sample named
 * "(other stacks)". pprof shows the total of the first distribution; without one, the first measure. Without reports the profile has no samples, which is valid.
 *
 * Profiles of `go tool trace -pprof=KIND` have one measure, which Go names "contentions" and "delay".
 *
 * Errors    TB_IO with the reason in diag; TB_NOMEM.
 */
#ifndef TK_PROFILES_PPROF_H
#define TK_PROFILES_PPROF_H

#include "base/result.h"
#include "online/spans/stacks/callstack.h"
#include "proto/report.pb-c.h"

struct tk_pprof_ask {
  const Tracecollect__V1__TableSchema *table; /* found in each report by its name */
  const char *go_measure; /* only this distribution, with Go's names; NULL: all measures */
};

/* Returns the table's first key that is a stack; NULL: none, so there is no profile of the table. */
const Tracecollect__V1__FieldSchema *tk_pprof_stack(const Tracecollect__V1__TableSchema *table);

/* path "-" is stdout; a file is replaced. */
TB_MUST tb_rc tk_pprof_write(const char *path, const struct tk_pprof_ask *ask,
                             Tracecollect__V1__StreamReport *const *reports, size_t n,
                             struct tb_diag *diag);

/* Builds a profile from single samples. Texts and stacks are lent until it is freed; names in `above` are copied. */
struct tk_profile;
TB_MUST tb_rc tk_profile_new(struct tk_profile **out);
void tk_profile_free(struct tk_profile *p); /* NULL is fine */
/* Begins another program, with other code at the same counters. */
void tk_profile_program(struct tk_profile *p);
/* stack NULL: none. above: names on top of it, the first one uppermost. values: the same number in each sample. */
TB_MUST tb_rc tk_profile_sample(struct tk_profile *p, const struct to_callstack *stack,
                                const char *const *above, size_t n_above, const int64_t *values,
                                size_t n_values);
/* names: of the values; names[i] NULL leaves out the i-th. Without any value a sample counts as one of "rows". */
TB_MUST tb_rc tk_profile_write(struct tk_profile *p, const char *path, const char *const *names,
                               size_t n_values, struct tb_diag *diag);

#endif
