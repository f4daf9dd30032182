/* SPDX-License-Identifier: Apache-2.0 */
/* The condition of diff --fail-on: METRIC[KEY].FIELD > +20%, as in "sched.p99 > +20%", "tasks[checkout].mean > 10%", "running.time < -50%".
 *
 * It is met if the change exceeds the limit, and is significant: neither by chance nor from the errors of both sides.
 *
 * Errors    TB_BROKEN with the reason in diag: a usage error.
 */
#ifndef TK_DIFF_CONDITION_H
#define TK_DIFF_CONDITION_H

#include "tools/tracectl/diff/compare.h"

struct tk_diff_condition {
  const char *text;
  enum tk_diff_metric metric;
  char key[256]; /* "": the whole metric */
  enum tk_diff_field field;
  bool is_less;
  double share;
};

TB_MUST tb_rc tk_diff_condition_parse(const char *text, struct tb_diag *diag,
                                      struct tk_diff_condition *out);
/* Returns whether the change is beyond the limit and on that side of zero. */
bool tk_diff_condition_is_exceeded(const struct tk_diff_condition *condition,
                                   const struct tk_change *change);
bool tk_diff_condition_is_met(const struct tk_diff_condition *condition,
                              const struct tk_change *change);

#endif
