/* SPDX-License-Identifier: Apache-2.0 */
/* The condition of --fail-on: FIGURE OP VALUE, as in "syscall.blocked.p99 > 50ms",
 * "stw.share_of_wall >= 1%", "syscall.blocked_now > 0".
 *
 * FIGURE is a path of field names in a report (proto/report.proto, what --json shows), "_ns" left
 * out if wanted; a list stands for its length,
 * rows that the report leaves out included. OP is > >= < <= == !=. VALUE is a number, a time with
 * a unit (ns us ms s m h) for what is in nanoseconds, or a percentage.
 *
 * Errors    TB_BROKEN with the reason in diag: a usage error.
 */
#ifndef TK_REPORT_CONDITION_H
#define TK_REPORT_CONDITION_H

#include "base/result.h"
#include "proto/report.pb-c.h"

enum { TK_CONDITION_PATH_MAX = 4 };

struct tk_condition {
  const char *text; /* as given */
  const ProtobufCFieldDescriptor *path[TK_CONDITION_PATH_MAX];
  unsigned path_len;
  unsigned op;
  double value; /* nanoseconds, a count, 0..1 */
};

TB_MUST tb_rc tk_condition_parse(const char *text, struct tb_diag *diag, struct tk_condition *out);
/* The kind of report that has the figure: "syscall", "stw". */
const char *tk_condition_kind(const struct tk_condition *condition);
/* True: the report is of that kind and the condition is met. */
bool tk_condition_met(const struct tk_condition *condition,
                      const Tracecollect__V1__StreamReport *report);

#endif
