/* SPDX-License-Identifier: Apache-2.0 */
/* CPU samples: stacks of the program's threads, taken at intervals of their CPU time.
 *
 * Each attached thread has a timer on its own CPU clock, which sends it a signal: a thread that waits uses no processor
 * and gets none. The handler walks the stack by frame pointers, puts it among the generation's and notes the moment,
 * thread, proc and goroutine in memory that is there already. It calls nothing that is not async-signal-safe, and
 * may come in the middle of an emit function: what that has begun, it leaves alone. A signal that is not of our
 * timers goes to the handler that was there before, or does what it would have done without us.
 *
 * The handler stays when the session has ended (caught.h). A program that has put one of its own in its place since
 * then keeps it: a later session with samples by that signal is refused. Ours have si_code SI_TIMER and an address
 * in si_value that is none of the program's. Under the preload library the program's handlers never take its place.
 * Without a signal chosen it is SIGURG, which ends no program whose default is restored, and which Go's runtime
 * interrupts threads by, too.
 *
 * Samples have effects that a program may notice: the signal is taken. Calls that are restarted by SA_RESTART are; a
 * few never are (poll, epoll_wait, nanosleep, see signal(7)), and one of them may return EINTR if the sample falls due
 * while the thread is on its way into it. A thread that blocks the signal when it first emits has no samples.
 *
 * Memory    one mapping, touched as it is used: 40 bytes a sample, as many as are due in a generation.
 * Threads   arm: the thread itself, not in the handler. disarm: any. The rest: start, stop and the flusher.
 * Errors    a thread without a timer has no samples. A sample without room is counted.
 */
#ifndef TA_EMIT_GENERATION_SAMPLES_H
#define TA_EMIT_GENERATION_SAMPLES_H

#include <signal.h>

#include "agent/emit/generation/generation.h"

enum { TA_SAMPLES_HZ_MAX = 1000, TA_SAMPLES_DEPTH = 32 };

/* A filter may forbid timers. */
bool ta_samples_are_allowed(void);
/* Arms threads as they enter, until stop. depth: of a sample's stack. TB_NOMEM; TB_BROKEN: the signal cannot be caught;
 * TB_REFUSED: the program has replaced the agent's handler. */
TB_MUST tb_rc ta_samples_start(unsigned hz, int signal, unsigned depth, uint64_t period_ns);
void ta_samples_stop(void); /* when no thread is in a section */
/* The program waits for these signals: if the samples' signal is among them, sampling ends. */
void ta_samples_yield(const sigset_t *set);
void ta_samples_forget(void); /* in a forked child: timers are not inherited */
extern atomic_bool ta_samples_on;
static inline bool ta_samples_are_on(void) {
  return atomic_load_explicit(&ta_samples_on, memory_order_relaxed);
}

void ta_samples_arm(struct ta_thread *t);
void ta_samples_disarm(struct ta_thread *t);

/* Writes the samples of a generation that is over. */
void ta_samples_write(struct ta_generation *k, uint32_t gen);

#endif
