/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/conditions.h"

#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/tracectl.h"

bool tk_condition_is_met(const struct tr_condition *condition, const struct tk_report_set *set,
                         struct tr_number *out) {
  bool known = false, unknown = false;

  for (size_t i = 0; i < set->n; i++) {
    enum tr_verdict verdict = tr_condition_judge_message(condition, set->report[i], out);
    if (verdict == TR_VERDICT_MET) return true;
    known |= verdict == TR_VERDICT_NOT_MET;
    unknown |= verdict == TR_VERDICT_UNKNOWN;
  }
  if (unknown && !known)
    tk_fail("report", "condition not checked, its figure is unknown: %s", condition->text);
  return false;
}

void tk_condition_tell(const struct tr_condition *condition, struct tr_number number) {
  char length[TK_FORMAT_BYTES];

  if (number.error_share == 0) {
    tk_fail("report", "condition met: %s", condition->text);
    return;
  }
  tk_format_ns((uint64_t)number.value, length); /* only quantiles have an error */
  tk_fail("report", "condition met: %s (%s, off by at most %.3g %%)", condition->text, length,
          number.error_share * 100);
}
