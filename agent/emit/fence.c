/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

bool ta_fence_is_light;

static bool ask(int what) {
  return syscall(SYS_membarrier, what, 0, 0) == 0;
}

/* Once registered the command cannot fail; it is tried all the same. */
void ta_fence_choose(void) {
  ta_fence_is_light =
      ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void ta_fence_heavy(void) {
  if (ta_fence_is_light) ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}
