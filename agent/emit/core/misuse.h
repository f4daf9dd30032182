/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that make no sense where they stand: left out, and counted in the thread's `misused`. In a debug build of the
 * agent such a call is a fault of the program's that is to be found, so the first one says what it was and aborts.
 *
 * An end without a begin is counted there, and nowhere else, where its begin may have come before the session:
 * before the session, in a session before it, on a thread that found no place.
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

extern bool ta_misuse_aborts; /* as the build says; tests that misuse on purpose say otherwise */

void ta_misuse(struct ta_thread *t, const char *what);
void ta_misuse_end(struct ta_thread *t, const char *what);

extern atomic_bool ta_misuse_unreported;
/* An operation that begins here is in no trace. */
static inline void ta_begins_unreported(void) {
#if TA_DEBUG
  atomic_store(&ta_misuse_unreported, true);
#endif
}

#endif
