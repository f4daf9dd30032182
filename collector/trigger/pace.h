/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how often a rule does an action: a minimum time between two, and a number an hour. The hour begins with its first action.
 *
 * Threads   use each object from one thread at a time.
 * Time      monotonic, passed in.
 */
#ifndef TC_TRIGGER_PACE_H
#define TC_TRIGGER_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct tc_pace_limits { /* 0: no limit */
  uint64_t every_ns, hour_max;
};

struct tc_pace { /* zeroed: nothing was done yet */
  bool has_begun;
  uint64_t last_ns, hour_began_ns, in_hour;
};

/* Returns true, and counts the action, if it may be done now. */
bool tc_pace_takes(struct tc_pace *pace, const struct tc_pace_limits *limits, uint64_t now_ns);
/* Counts an action that was done ago_ns ago, perhaps by an earlier process. Call for the oldest first. */
void tc_pace_took(struct tc_pace *pace, uint64_t ago_ns, uint64_t now_ns);

#endif
