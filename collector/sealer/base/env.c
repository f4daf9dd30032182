/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/base/env.h"

#include <stdarg.h>
#include <stdio.h>
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

void tc__note_at(const struct tc__env *env, struct tc_log_site *site, enum tc_level level,
                 uint32_t ref, const char *fmt, ...) {
  char text[512];
  va_list args;

  if (env->opt.sink.note == NULL) return;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  env->opt.sink.note(env->opt.sink.self, &(struct tc_note){ site, level, ref, fmt, text });
}
