/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until every thread that may have seen an object has left the section in which it saw the object.
 *
 *   reader:  ta_quiet_enter(); ... follows pointers ...; ta_quiet_leave();
 *   writer:  removes an object that readers see; ta_quiet_wait(); now the object is the writer's alone.
 *
 * A thread counts its entries and exits in a word of its own; odd: it is inside. After a heavy fence
 * (agent/emit/core/fence.h) the writer reads each word once: a thread that is outside will not see the object any more; for
 * a thread that is inside the writer waits until the word changes. Threads beyond 1024, and threads that have begun to end,
 * count in two shared words that swap with every wait, which is slower but as correct.
 *
 * Threads   any; sections may nest. A wait within a section would wait for itself.
 */
#ifndef TA_QUIET_H
#define TA_QUIET_H

#include <stdbool.h>

void ta_quiet_enter(void);
void ta_quiet_leave(void);
bool ta_quiet_inside(void); /* this thread is inside */
/* Call it as soon as a writer has the lock, before the first reader that must be waited for. */
void ta_quiet_ready(void);
void ta_quiet_wait(void);
void ta_quiet_forget(void); /* in a forked child: only this thread is left */

#endif
