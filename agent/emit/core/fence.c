/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/core/fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/filter.h"

atomic_bool ta_fence_is_light;

static atomic_bool failed; /* a heavy fence failed after light fences had relied on it */

static bool ask(int what) {
  return ta_filter_spares(SYS_membarrier, what, 0, 0) && syscall(SYS_membarrier, what, 0, 0) == 0;
}

/* A thread that still reads the old value, false, only uses the more expensive fence. The value never changes back:
 * threads that read true rely on heavy(). */
static void decide(void) {
  atomic_store(&ta_fence_is_light, ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                                       ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

/* Registers again each time, because a forked child is another process. */
bool ta_fence_choose(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  pthread_once(&once, decide);
  if (!atomic_load(&ta_fence_is_light)) return true;
  return !atomic_load(&failed) && ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

bool ta_fence_heavy(void) {
  if (!atomic_load(&ta_fence_is_light)) return true;
  if (ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return true;
  atomic_store(&failed, true);
  return false;
}
