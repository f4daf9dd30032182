/* SPDX-License-Identifier: Apache-2.0 */
/* A signal that we catch and share with the program.
 *
 * The kernel has one handler for a signal: ours. Signals that are not ours are handled as the program wants,
 * as if it had its handler itself: with the mask and the flags it asked for. The program wants what it had before
 * us. Where its calls of sigaction() come by us (agent/preload/signals.c), it is also what it asks for later, and
 * the handler stays ours.
 *
 * Ours stays after its last use: a signal of a timer that is gone may still be on its way, and would end the
 * program.
 *
 * Threads   any; action and pass_on in signal handlers, too.
 * Errors    TB_BROKEN: the signal cannot be caught. TB_REFUSED: the program has put its own handler in the place of ours.
 */
#ifndef TA_EMIT_CORE_CAUGHT_H
#define TA_EMIT_CORE_CAUGHT_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/result.h"

extern atomic_bool ta_caught[_NSIG];
/* sigaction(), or what it is for a library that stands in front of it. Set before anything else here is used. */
extern int (*ta_caught_install)(int number, const struct sigaction *act, struct sigaction *old);

static inline bool ta_is_caught(int number) {
  return (unsigned)number < _NSIG && atomic_load_explicit(&ta_caught[number], memory_order_relaxed);
}

TB_MUST tb_rc ta_caught_begin(int number,
                              void (*handler)(int number, siginfo_t *info, void *context));
/* By the handler, with its arguments. */
void ta_caught_pass_on(int number, siginfo_t *info, void *context);
/* Does what sigaction() would do, for a signal that is caught. act and old may be NULL. */
void ta_caught_action(int number, const struct sigaction *act, struct sigaction *old);

#endif
