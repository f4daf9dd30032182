/* SPDX-License-Identifier: Apache-2.0 */
/* A condition on a report, for --fail-on and triggers: PATH OP VALUE, as in "syscall.blocked.p99 > 50ms",
 * "stw.wall_share >= 1%", "syscall.blocked_now > 0".
 *
 * PATH is a number of a report: trigger/figure_path.h. OP is > >= < <= == !=. VALUE is a number, a time
 * with a unit (ns us ms s m h), a size (B KiB MiB GiB TiB), or a percentage of a share.
 *
 * Errors    TB_BROKEN with the reason in diag: a usage error.
 */
#ifndef TR_TRIGGER_CONDITION_H
#define TR_TRIGGER_CONDITION_H

#include "trigger/figure_path.h"

struct tr_condition {
  const char *text; /* as given; NULL for a rule, which has its own text */
  struct tr_figure_path path;
  unsigned op;
  double value; /* nanoseconds, bytes, a count, or a share 0..1 */
};

/* schemas: the known kinds of report. The condition points to their names. */
TB_MUST tb_rc tr_condition_parse(const char *text, Tracecollect__V1__ReportSchema *const *schemas,
                                 size_t n, struct tb_diag *diag, struct tr_condition *out);

enum tr_verdict {
  TR_VERDICT_ABSENT,  /* the report is of another kind */
  TR_VERDICT_UNKNOWN, /* the report does not have the number */
  TR_VERDICT_NOT_MET,
  TR_VERDICT_MET,
};
/* report must be of the path's kind. *out: the number; not set if it is unknown. */
enum tr_verdict tr_condition_judge(const struct tr_condition *condition,
                                   const struct to_report *report, double *out);
enum tr_verdict tr_condition_judge_message(const struct tr_condition *condition,
                                           const Tracecollect__V1__StreamReport *report,
                                           struct tr_number *out);

/* Parses a duration with a unit, such as "30s". Returns false if text is not one. */
bool tr_time_parse(const char *text, uint64_t *out_ns);

#endif
