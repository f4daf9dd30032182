/* SPDX-License-Identifier: Apache-2.0 */
/* The deadline and the disk that the sealer works within. */
#include <sys/statvfs.h>

#include "base/clock.h"
#include "collector/sealer/private.h"

bool tc__is_late(const struct tc_sealer *sealer) {
  uint64_t deadline = atomic_load_explicit(&sealer->deadline_mono_ns, memory_order_relaxed);

  return deadline != 0 && tc_mono_ns() >= deadline;
}

uint64_t tc__disk_free(const struct tc_sealer *sealer) {
  struct statvfs fs;

  if (fstatvfs(sealer->opt.dirs->state, &fs) != 0) return UINT64_MAX;
  return (uint64_t)fs.f_bavail * fs.f_frsize;
}
