/* SPDX-License-Identifier: Apache-2.0 */
/* Finds threads that hang. WATCHDOG=1 is sent only if all are alive; a timer alone would go on firing while the
 * disk hangs and nothing is acked. Each thread counts its turns; the caller compares with the last count.
 *
 * Threads   one object from one thread.
 */
#ifndef TC_DAEMON_WATCHDOG_H
#define TC_DAEMON_WATCHDOG_H

#include <stddef.h>
#include <stdint.h>

/* loops; threads of store (2), feed, leases, listeners (2), triggers and history */
enum { TC_WATCHDOG_THREADS_MAX = 264 };

struct tc_watchdog {
  uint64_t turns[TC_WATCHDOG_THREADS_MAX]; /* at the last check; 0 for a new thread */
};

/* Returns the first of n threads that has not turned since the last call; -1: all have. */
int tc_watchdog_stuck(struct tc_watchdog *progress, const uint64_t *turns, size_t n);

#endif
