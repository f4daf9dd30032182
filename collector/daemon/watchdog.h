/* SPDX-License-Identifier: Apache-2.0 */
/* Whether threads go on turning: the watchdog is fed on this, and not on a timer that would go on firing
 * while the disk hangs and nothing is acked.
 *
 * Each thread counts its turns; the caller compares with the count of its last look.
 *
 * Threads   one object from one thread.
 */
#ifndef TC_DAEMON_WATCHDOG_H
#define TC_DAEMON_WATCHDOG_H

#include <stddef.h>
#include <stdint.h>

enum {
  TC_WATCHDOG_THREADS_MAX = 264
}; /* loops, the store's two, the feed's, the leases', two listeners', the triggers', the history's */

struct tc_watchdog {
  uint64_t turns[TC_WATCHDOG_THREADS_MAX]; /* when last asked; a new one has not turned */
};

/* The first of n threads that has not turned since the last question; -1: all have. */
int tc_watchdog_stuck(struct tc_watchdog *progress, const uint64_t *turns, size_t n);

#endif
