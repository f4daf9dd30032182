/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/base/env.h"

#include <sys/statvfs.h>

#include "base/clock.h"

bool tc__is_late(const struct tc__env *env) {
  uint64_t deadline = atomic_load_explicit(&env->deadline_mono_ns, memory_order_relaxed);

  return deadline != 0 && tc_mono_ns() >= deadline;
}

uint64_t tc__disk_free(const struct tc__env *env) {
  struct statvfs fs;

  if (fstatvfs(env->opt.dirs->state, &fs) != 0) return UINT64_MAX;
  return (uint64_t)fs.f_bavail * fs.f_frsize;
}
