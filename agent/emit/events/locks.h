/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a generation: each that a wait was for, with the thread that held it then, has a string of its own, whose
 * text is the reason of the wait. Events name it as they would name the reason (wire/locks.h).
 *
 * Two tables by the generation's parity. A lock that is waited for again costs a hash and a comparison, and only reads
 * memory that others share; a new one takes its place by compare-and-swap. So a thread that is stopped in the middle
 * stops no other, and changes nothing of a later generation.
 *
 * Memory    static: 128 KiB, touched as it is used.
 * Threads   put: any that is in a section. The rest: the flusher, when no thread is in that generation.
 * Errors    no room: the reason's own string, and counted.
 */
#ifndef TA_EMIT_EVENTS_LOCKS_H
#define TA_EMIT_EVENTS_LOCKS_H

#include "agent/emit/core/emit.h"

enum {
  TA_LOCKS_MAX = 2048,              /* of a generation: locks and their holders */
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

/* Rows below the end; the string of each is TA_LOCKS_FIRST_ID + i. False: the row is empty, because its thread was left
 * behind before it was written. */
uint32_t ta_locks_end(uint32_t gen);
bool ta_locks_at(uint32_t gen, uint32_t i, struct ta_lock *out);
uint64_t ta_locks_missed(uint32_t gen); /* waits that have the reason's own string */
void ta_locks_clear(uint32_t gen);      /* it is over: its table is of gen + 2 now */

#endif
