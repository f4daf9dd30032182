/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/trigger/pace.h"

static const uint64_t HOUR_NS = UINT64_C(3600000000000);

bool tc_pace_takes(struct tc_pace *pace, const struct tc_pace_limits *limits, uint64_t now_ns) {
  bool is_new_hour = !pace->has_begun || now_ns - pace->hour_began_ns >= HOUR_NS;

  if (pace->has_begun && now_ns - pace->last_ns < limits->every_ns) return false;
  if (!is_new_hour && limits->hour_max != 0 && pace->in_hour >= limits->hour_max) return false;
  if (is_new_hour) {
    pace->hour_began_ns = now_ns;
    pace->in_hour = 0;
  }
  pace->has_begun = true;
  pace->last_ns = now_ns;
  pace->in_hour++;
  return true;
}

/* Times are only subtracted from each other, so a time before the clock's start may wrap. */
void tc_pace_took(struct tc_pace *pace, uint64_t ago_ns, uint64_t now_ns) {
  static const struct tc_pace_limits none = { .every_ns = 0 };

  (void)tc_pace_takes(pace, &none, now_ns - ago_ns);
}
