/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of --fail-on, of all reports in a set. */
#ifndef TK_REPORT_CONDITIONS_H
#define TK_REPORT_CONDITIONS_H

#include "tools/tracectl/report/set.h"
#include "trigger/condition.h"

/* Returns true if a report meets it, and sets *out to its number. A figure that no report has is reported on stderr. */
bool tk_condition_is_met(const struct tr_condition *condition, const struct tk_report_set *set,
                         struct tr_number *out);
/* Says on stderr that it is met; number: the one that met it. */
void tk_condition_tell(const struct tr_condition *condition, struct tr_number number);

#endif
