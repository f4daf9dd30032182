/* SPDX-License-Identifier: Apache-2.0 */
/* The wait for a log that cannot be written now, and lines for the log of the daemon: another thread writes them. */
#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "collector/commit/private.h"

bool tc__commit_waits(const struct tc_commit *commit) {
  return commit->wait.why != TC_SHORT_NONE &&
         (!commit->disk_has_room || tc_wait_is_pausing(&commit->wait, tc_mono_ns()));
}

bool tc__commit_wait_for(struct tc_commit *commit, enum tc_shortage why) {
  atomic_store(&commit->opt.stats->log_waits, why);
  return tc_wait_failed(&commit->wait, why, tc_mono_ns());
}

void tc__commit_note_at(struct tc_commit *commit, struct tc_log_site *site, enum tc_level level,
                        uint32_t ref, const char *fmt, ...) {
  char text[512];
  va_list args;

  if (commit->opt.sink.note == NULL) return;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  commit->opt.sink.note(commit->opt.sink.self, &(struct tc_note){ site, level, ref, fmt, text });
}
