/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a generation: they show which waits are for the same lock (docs/FORMAT.md, "Locks").
 *
 * The reason of a wait is a string. A wait for a known lock uses a separate string with the same text as the reason's. The
 * sub-stream "locks" of experiment 1 maps this string to the lock, and to the thread that held it. Go's tools see only the
 * reason, and an event is no larger than without locks.
 *
 *   TB_TRY(tw_write_locks(&w, missed));                   -- first thing in the batch
 *   rc = tw_write_lock(&w, &(struct tw_lock){ .string = id, .object = (uintptr_t)mutex, .holder = thread });
 *
 *   struct tw_locks_reading r;
 *   if (tw_locks_read(data, len, &r))                      -- of an experimental batch
 *     while (tw_lock_next(&r, &lock)) ...
 *
 * Memory    none: writes into the caller's room, reads the caller's bytes.
 * Errors    reading: a batch that is cut off, or of another kind, has no more locks. Writing: as in wire/write.h.
 */
#ifndef TW_LOCKS_H
#define TW_LOCKS_H

#include "wire/write.h"

enum {
  TW_FIRST_VERSION_WITH_LOCKS = 23
}; /* older versions of the header have no experimental batches */

struct tw_lock {
  uint64_t string; /* string of the waits for this lock */
  uint64_t object; /* its address */
  uint64_t holder; /* thread that held it when these waits began; 0: not known */
  uint64_t name;   /* string of the program's name for it; 0: not known */
};

/* missed: number of waits of this generation whose lock is left out because there were too many locks. */
TB_MUST tb_rc tw_write_locks(struct tw_write *w, uint64_t missed);
/* TB_AGAIN: this batch is full, nothing was written. */
TB_MUST tb_rc tw_write_lock(struct tw_write *w, const struct tw_lock *lock);

struct tw_locks_reading {
  const unsigned char *pos, *end;
  uint64_t missed;
};
/* Returns false if the batch is not one of locks. */
bool tw_locks_read(const unsigned char *data, size_t len, struct tw_locks_reading *out);
bool tw_lock_next(struct tw_locks_reading *r, struct tw_lock *out);

#endif
