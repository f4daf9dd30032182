/* SPDX-License-Identifier: Apache-2.0 */
/* CPU samples: stacks of the program's threads, taken at intervals of their CPU time.
 *
 * Each attached thread has a timer on its own CPU clock, which sends the thread a signal; a waiting thread uses no CPU
 * time and gets no signals. The handler walks the stack by frame pointers, stores it in the generation's table of stacks,
 * and stores the time, thread, proc and goroutine in preallocated memory. The handler is async-signal-safe and may interrupt
 * an emit function: it does not touch a half-written event. A signal that is not from our timers (si_code SI_TIMER, and our
 * address in si_value) goes to the handler that was installed before, or does what it would have done without us.
 *
 * The handler stays installed when the session has ended (caught.h). If the program has installed its own handler since
 * then, a later session with samples by that signal is refused. Under the preload library the program's handlers never
 * replace ours. The default signal is SIGURG: its default action is to be ignored, and Go's runtime interrupts threads with
 * it, too.
 *
 * A program may notice samples: the signal is in use. The kernel restarts most interrupted calls (SA_RESTART). A few are
 * never restarted (poll, epoll_wait, nanosleep, see signal(7)); one of them may return EINTR if the timer expires
 * while the thread enters the call. A thread that blocks the signal when it first emits has no samples.
 *
 * Memory    one mapping, touched as it is used: 40 bytes a sample, as many as are due in a generation.
 * Threads   arm: the thread itself, not in the handler. disarm: any. The rest: start, stop and the flusher.
 * Errors    a thread without a timer has no samples. A sample that finds no room is counted as lost.
 */
#ifndef TA_EMIT_GENERATION_SAMPLES_H
#define TA_EMIT_GENERATION_SAMPLES_H

#include <signal.h>

#include "agent/emit/generation/generation.h"

enum { TA_SAMPLES_HZ_MAX = 1000, TA_SAMPLES_DEPTH = 32 };

/* Returns false if a seccomp filter forbids timers. */
bool ta_samples_are_allowed(void);
/* From now until stop, threads are armed when they enter. depth: longest stack of a sample. TB_NOMEM; TB_BROKEN: the signal
 * cannot be caught; TB_REFUSED: the program has replaced the agent's handler. */
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
