/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that existed when the session began: their stacks are reported as existing, not as allocated in it, however
 * late their first event is.
 *
 * Threads are identified by gettid(). If the kernel reuses a number within the session, the new thread counts as old.
 *
 * Memory    static, 4 bytes a thread; threads beyond TA_THREADS_MAX count as new.
 * Threads   note: the one that begins the session, before any thread is in it. has: any.
 */
#ifndef TA_EMIT_CORE_INITIAL_THREADS_H
#define TA_EMIT_CORE_INITIAL_THREADS_H

#include <stdbool.h>
#include <sys/types.h>

void ta_initial_threads_note(void); /* without /proc only the caller is noted */
bool ta_initial_threads_has(pid_t thread);

#endif
