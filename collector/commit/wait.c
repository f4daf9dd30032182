/* SPDX-License-Identifier: Apache-2.0 */
/* The wait for a log that cannot be written now. */
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
