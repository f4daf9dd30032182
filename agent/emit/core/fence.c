/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/core/fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/host/filter.h"

atomic_bool ta_fence_is_light;

static atomic_bool failed; /* a heavy fence that light ones relied on */

static bool ask(int what) {
  return ta_filter_spares(SYS_membarrier, what, 0, 0) && syscall(SYS_membarrier, what, 0, 0) == 0;
}

/* A thread that still goes by the older answer, which is no, only takes the dearer way. Never the other way round: who
 * has found the fence to be light relies on heavy() from then on. */
static void decide(void) {
  atomic_store(&ta_fence_is_light, ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                                       ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

/* Registered again each time: a forked child is another process. */
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
