/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/daemon/watchdog.h"

#include <assert.h>

int tc_watchdog_stuck(struct tc_watchdog *progress, const uint64_t *turns, size_t n) {
  int stuck = -1;

  assert(n <= TC_WATCHDOG_THREADS_MAX);
  for (size_t i = n; i-- > 0;) {
    if (turns[i] == progress->turns[i]) stuck = (int)i;
    progress->turns[i] = turns[i];
  }
  return stuck;
}
