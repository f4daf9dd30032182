/* SPDX-License-Identifier: Apache-2.0 */
/* Every thread of ours is made here, so that none takes on what belongs to the thread that opens a stream.
 *
 *   policy     never real-time: SCHED_FIFO, SCHED_RR and SCHED_DEADLINE become SCHED_OTHER
 *   affinity   the processors that the process's first thread may use, though the opener be bound to one
 *   signals    all blocked, except those by which the kernel reports a fault of the thread itself (SIGSEGV, SIGBUS, SIGFPE,
 *              SIGILL, SIGTRAP, SIGSYS) and SIGABRT: the host's crash reporter sees a crash of ours, and a host whose
 *              seccomp filter traps system calls answers ours
 *
 *   counter    allowed (agent/host/counter.h)
 *
 * A thread that may not change its policy or affinity keeps those it was made with.
 *
 * Threads   any.
 * Errors    what pthread_create() answers, ENOMEM.
 */
#ifndef TA_HOST_SPAWN_H
#define TA_HOST_SPAWN_H

#include <pthread.h>
#include <stddef.h>

/* stack_bytes 0: as usual. A name has at most 15 bytes and stays valid. */
int ta_spawn(pthread_t *out, const char *name, size_t stack_bytes, void *(*body)(void *self),
             void *self);
int ta_spawn_detached(const char *name, size_t stack_bytes, void *(*body)(void *self), void *self);

#endif
