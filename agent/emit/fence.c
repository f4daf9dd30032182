/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

atomic_bool ta_fence_is_light;

static bool ask(int what) {
  return syscall(SYS_membarrier, what, 0, 0) == 0;
}

/* Once registered the command cannot fail; it is tried all the same. A thread that still goes by the older answer,
 * which is no, only takes the dearer way. */
void ta_fence_choose(void) {
  atomic_store(&ta_fence_is_light, ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                                       ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}

void ta_fence_heavy(void) {
  if (atomic_load(&ta_fence_is_light)) ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
