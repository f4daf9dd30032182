/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until every thread that may have seen something has left the section in which it saw it.
 *
 *   reader:  ta_quiet_enter(); ... follows pointers ...; ta_quiet_leave();
 *   writer:  takes something out of what readers see; ta_quiet_wait(); it is the writer's alone.
 *
 * A thread counts its comings and goings in a word of its own: odd, it is inside. Behind a heavy fence
 * (agent/emit/core/fence.h) the writer looks at each word once: a thread outside has not seen it or will not, a
 * thread inside is waited for until its word changes. Threads beyond 1024, and a thread whose end has begun, count
 * in two shared words that change places with every wait: slower, never wrong.
 *
 * Threads   any; sections may nest. A wait within a section would wait for itself.
 */
#ifndef TA_QUIET_H
#define TA_QUIET_H

#include <stdbool.h>

void ta_quiet_enter(void);
void ta_quiet_leave(void);
bool ta_quiet_inside(void); /* this thread is */
/* Before the first reader that must be waited for: once a writer has the lock. */
void ta_quiet_ready(void);
void ta_quiet_wait(void);
void ta_quiet_forget(void); /* in a forked child: only this thread is left */

#endif
