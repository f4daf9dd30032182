/* SPDX-License-Identifier: Apache-2.0 */
/* How often one action of a rule is done: a least time between two, and so many an hour, which begins with the first of them.
 *
 * Threads   use each object from one thread at a time.
 * Time      monotonic, given by the caller.
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

/* True: it may be done now, which is noted. */
bool tc_pace_takes(struct tc_pace *pace, const struct tc_pace_limits *limits, uint64_t now_ns);
/* It was done so long ago, by another process; perhaps before this clock began. The oldest first. */
void tc_pace_took(struct tc_pace *pace, uint64_t ago_ns, uint64_t now_ns);

#endif
