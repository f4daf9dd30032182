/* SPDX-License-Identifier: Apache-2.0 */
/* The condition of --fail-on: PATH OP VALUE, as in "syscall.blocked.p99 > 50ms", "stw.wall_share >= 1%",
 * "syscall.blocked_now > 0".
 *
 * PATH is a number of a report: tools/tracectl/report/figure_path.h. OP is > >= < <= == !=. VALUE is a number, a time
 * with a unit (ns us ms s m h), a size (B KiB MiB GiB TiB), or a percentage of a share.
 *
 * Errors    TB_BROKEN with the reason in diag: a usage error.
 */
#ifndef TK_REPORT_CONDITION_H
#define TK_REPORT_CONDITION_H

#include "tools/tracectl/report/figure_path.h"

struct tk_condition {
  const char *text; /* as given */
  struct tk_figure_path path;
  unsigned op;
  double value; /* nanoseconds, bytes, a count, 0..1 */
};

/* schemas: of the kinds of report that are there. Lends its names from them. */
TB_MUST tb_rc tk_condition_parse(const char *text, Tracecollect__V1__ReportSchema *const *schemas,
                                 size_t n, struct tb_diag *diag, struct tk_condition *out);

enum tk_verdict {
  TK_VERDICT_ABSENT,  /* the report is of another kind */
  TK_VERDICT_UNKNOWN, /* the report does not know the number */
  TK_VERDICT_NOT_MET,
  TK_VERDICT_MET,
};
enum tk_verdict tk_condition_judge(const struct tk_condition *condition,
                                   const Tracecollect__V1__StreamReport *report);

#endif
