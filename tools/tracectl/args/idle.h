/* SPDX-License-Identifier: Apache-2.0 */
/* The option --idle: functions whose waits have nothing to do (online/spans/stacks/idle.h). */
#ifndef TK_ARGS_IDLE_H
#define TK_ARGS_IDLE_H

#include "tools/tracectl/args/options.h"

#define TK_IDLE_ABOUT                                                                              \
  "functions in which waits and system calls are idle, besides those of 'tracectl tables "         \
  "idle': 'main.worker,net:main.accept*,!main.main'; '!*': nothing is idle"

/* Checks the list, and notes a reason that no table has. field: const char *. */
tb_rc tk_read_idle(const struct tk_option *option, const char *value, void *field,
                   struct tb_diag *diag);

#endif
