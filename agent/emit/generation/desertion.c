/* SPDX-License-Identifier: Apache-2.0 */
/* If a program's first thread ends by pthread_exit(), the process ends with the last of its other threads. The agent's threads
 * would keep the process alive, so a thread made here ends the session and then itself. */
#include "agent/emit/generation/session.h"
#include "agent/host/process.h"
#include "agent/host/spawn.h"

enum { STACK_BYTES = 512 << 10, WAIT_MS = 1000 };

static void stop_session(void) {
  ta_emit_stop_by_outlook(WAIT_MS, WAIT_MS);
}

void (*ta_emit_deserted)(void) = stop_session;

static void *thread_main(void *unused) {
  (void)unused;
  ta_emit_deserted();
  ta_process_end_as_first();
}

bool ta_emit_end_deserted(void) {
  return ta_spawn_detached("traceagent-end", STACK_BYTES, thread_main, NULL) == 0;
}
