/* SPDX-License-Identifier: Apache-2.0 */
/* A library that a test loads, calls and unloads. */
#include "traceagent.h"

void log_from_plugin(void);

void log_from_plugin(void) {
  ta_log(0, ta_name_of("key"), "from a library");
  __asm__ volatile("");
}
