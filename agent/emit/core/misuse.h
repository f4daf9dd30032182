/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are not valid in their state: ignored, and counted in the thread's `misused`. In a debug build of the
 * agent the first such call prints what it was and aborts, so that the program's fault is found.
 *
 * An end without a begin only counts, even there, if its begin may have gone unreported: before the session, in an
 * earlier session, on a thread beyond the limit.
 *
 * Threads   any, t on its own.
 */
#ifndef TA_EMIT_CORE_MISUSE_H
#define TA_EMIT_CORE_MISUSE_H

#include <stdatomic.h>
#include <stdbool.h>

#ifndef TA_DEBUG
#define TA_DEBUG 0
#endif

struct ta_thread;

extern bool ta_misuse_aborts; /* set in debug builds; tests that misuse on purpose clear it */

void ta_misuse(struct ta_thread *t, const char *what);
void ta_misuse_end(struct ta_thread *t, const char *what);

extern atomic_bool ta_misuse_unreported;
/* Notes that an operation begins which is in no trace. */
static inline void ta_begins_unreported(void) {
#if TA_DEBUG
  atomic_store(&ta_misuse_unreported, true);
#endif
}

#endif
