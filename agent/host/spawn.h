/* SPDX-License-Identifier: Apache-2.0 */
/* Starts every agent thread, so that none inherits attributes of the thread that opens a stream.
 *
 *   policy     never real-time: SCHED_FIFO, SCHED_RR and SCHED_DEADLINE become SCHED_OTHER
 *   affinity   the processors that the process's first thread may use, even if the opener is bound to one
 *   signals    all blocked, except those by which the kernel reports a fault of the thread itself (SIGSEGV, SIGBUS, SIGFPE,
 *              SIGILL, SIGTRAP, SIGSYS) and SIGABRT: the host's crash reporter sees an agent thread's crash, and a host
 *              whose seccomp filter traps system calls handles the agent's
 *   counter    allowed (agent/host/counter.h)
 *
 * A thread that may not change its policy or affinity keeps the inherited ones.
 *
 * Threads   any.
 * Errors    what pthread_create() answers, ENOMEM.
 */
#ifndef TA_HOST_SPAWN_H
#define TA_HOST_SPAWN_H

#include <pthread.h>
#include <stddef.h>

/* stack_bytes 0: the default. A name has at most 15 bytes and must stay valid. */
int ta_spawn(pthread_t *out, const char *name, size_t stack_bytes, void *(*body)(void *self),
             void *self);
int ta_spawn_detached(const char *name, size_t stack_bytes, void *(*body)(void *self), void *self);

#endif
