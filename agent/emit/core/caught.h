/* SPDX-License-Identifier: Apache-2.0 */
/* A signal that the agent catches and shares with the program.
 *
 * The kernel knows only one handler for a signal number: here it is the agent's. A signal that is not the agent's own is passed
 * to the program's handler, with the mask and the flags that the program requested. The program's handler is the one that was
 * installed before the agent's. If the preload library intercepts the program's sigaction() (agent/preload/signals.c), it is
 * the newest one, and the agent's handler stays in place.
 *
 * The agent's handler stays after its last use: a signal of a deleted timer may still be pending, and would kill the
 * program.
 *
 * Threads   any; action and pass_on in signal handlers, too.
 * Errors    TB_BROKEN: the signal cannot be caught. TB_REFUSED: the program has replaced the agent's handler.
 */
#ifndef TA_EMIT_CORE_CAUGHT_H
#define TA_EMIT_CORE_CAUGHT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/result.h"

extern atomic_bool ta_caught[_NSIG];
/* sigaction(), or the real one if a library intercepts it. Set before any other call here. */
extern int (*ta_caught_install)(int number, const struct sigaction *act, struct sigaction *old);

static inline bool ta_is_caught(int number) {
  return (unsigned)number < _NSIG && atomic_load_explicit(&ta_caught[number], memory_order_relaxed);
}

TB_MUST tb_rc ta_caught_begin(int number,
                              void (*handler)(int number, siginfo_t *info, void *context));
/* Called by the handler, with its arguments. */
void ta_caught_pass_on(int number, siginfo_t *info, void *context);
/* Does what sigaction() would do, for a signal that is caught. act and old may be NULL. */
void ta_caught_action(int number, const struct sigaction *act, struct sigaction *old);

#endif
