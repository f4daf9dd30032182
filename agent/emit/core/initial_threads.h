/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads were there when the session began: of those the stack was not made in it, however late each of them
 * says its first word.
 *
 * Known by the kernel's number. One that the kernel gives a second time in the session is taken for the first.
 *
 * Memory    static, 4 bytes a thread; of more threads than may be traced the rest are taken for new ones.
 * Threads   note: begin the session, before any thread is in it. has: any.
 */
#ifndef TA_EMIT_CORE_INITIAL_THREADS_H
#define TA_EMIT_CORE_INITIAL_THREADS_H

#include <stdbool.h>
#include <sys/types.h>

void ta_initial_threads_note(
    void); /* where /proc cannot be read: the caller, and the threads it found */
bool ta_initial_threads_has(pid_t thread);

#endif
