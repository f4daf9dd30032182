/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a generation: each lock that a thread waited for, with the thread that held it then, has a string of its
 * own, which contains the reason of the wait. Events use that string in place of the reason's (wire/locks.h).
 *
 * There are two tables, by the generation's parity. A repeated wait for a lock costs a hash and a comparison, and only
 * reads shared memory; a new lock is added by compare-and-swap. So a thread that is stopped halfway blocks no other
 * thread, and changes nothing in a later generation.
 *
 * Memory    static: 128 KiB, touched as it is used.
 * Threads   put: any, in a section. The rest: the flusher, when no thread is in that generation.
 * Errors    if there is no room, put returns the reason's own string and counts that.
 */
#ifndef TA_EMIT_EVENTS_LOCKS_H
#define TA_EMIT_EVENTS_LOCKS_H

#include "agent/emit/core/emit.h"

enum {
  TA_LOCKS_MAX = 2048,              /* locks and their holders in a generation */
  TA_LOCKS_FIRST_ID = TA_NAMES_MAX, /* below are names */
  TA_LOCKS_IDS_END = TA_LOCKS_FIRST_ID + TA_LOCKS_MAX,
};

struct ta_lock {
  uintptr_t object;
  uint32_t reason, holder; /* a name; a thread, 0: not known */
};

/* The string for a wait that begins now. object is not 0, and reason is known. */
uint64_t ta_locks_put(const struct ta_thread *t, uint32_t reason, uintptr_t object,
                      uint32_t holder);

/* Rows i below the end; each one's string is TA_LOCKS_FIRST_ID + i. ta_locks_at() returns false for an empty row, whose
 * thread was left behind before it had written the row. */
uint32_t ta_locks_end(uint32_t gen);
bool ta_locks_at(uint32_t gen, uint32_t i, struct ta_lock *out);
uint64_t ta_locks_missed(uint32_t gen); /* waits that used the reason's own string */
void ta_locks_clear(uint32_t gen);      /* gen is over: clears its table for gen + 2 */

#endif
