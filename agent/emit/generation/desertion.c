/* SPDX-License-Identifier: Apache-2.0 */
/* A program's first thread may end by pthread_exit(). Then the process ends with the last of the others, and would not for the
 * agent's. */
#include "agent/emit/generation/session.h"
#include "agent/host/process.h"
#include "agent/host/spawn.h"

enum { STACK_BYTES = 512 << 10, WAIT_MS = 1000 };

static void stop(void) {
  ta_emit_stop_in_hope(WAIT_MS, WAIT_MS);
}

void (*ta_emit_deserted)(void) = stop;

static void *thread_main(void *unused) {
  (void)unused;
  ta_emit_deserted();
  ta_process_end_as_first();
}

bool ta_emit_end_deserted(void) {
  return ta_spawn_detached("traceagent-end", STACK_BYTES, thread_main, NULL) == 0;
}
