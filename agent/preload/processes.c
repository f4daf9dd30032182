/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that a program forks. */
#include "agent/host/process.h"
#include "agent/preload/preload.h"

TA_API pid_t fork(void) {
  pid_t pid = TA_REAL(fork)();

  if (pid == 0 && ta_preload_follows_forks()) ta_preload_begin(true);
  return pid;
}

/* _Fork() runs no handlers, and may be called where no lock may be taken: in a signal handler that interrupted the agent. */
TA_API pid_t _Fork(void) {
  if (!ta_preload_is_on() || ta_is_late() || ta_agent_runs()) return TA_REAL(_Fork)();
  ta_process_hold();
  pid_t pid = TA_REAL(_Fork)();
  ta_process_go_on();
  return pid;
}

/* The parent ends inside daemon(), and the child is the program. So everything is sent before, and the child begins a session. */
TA_API int daemon(int stay, int keep) {
  bool ours = ta_preload_is_on();

  if (ours) ta_preload_end();
  int answer = TA_REAL(daemon)(stay, keep);
  if (ours) ta_preload_begin(answer == 0);
  return answer;
}
