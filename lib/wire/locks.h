/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a generation: which waits are for the same one (docs/FORMAT.md, "Locks").
 *
 * The reason of a wait is a string. A wait for a known lock has a string of its own, with the same text as any other
 * wait for that reason, and the sub-stream "locks" of experiment 1 says which lock, and which thread held it, that string
 * stands for. Go's tools see the reason alone, and an event costs no more than without.
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
}; /* version of the trace's header: older ones have no such batches */

struct tw_lock {
  uint64_t string; /* the reason of waits for it */
  uint64_t object; /* its address */
  uint64_t holder; /* the thread that held it when these waits began; 0: not known */
  uint64_t name;   /* string: what the program calls it; 0: not known */
};

/* missed: waits of this generation whose lock is not said, because there were too many. */
TB_MUST tb_rc tw_write_locks(struct tw_write *w, uint64_t missed);
/* TB_AGAIN: this batch is full. */
TB_MUST tb_rc tw_write_lock(struct tw_write *w, const struct tw_lock *lock);

struct tw_locks_reading {
  const unsigned char *pos, *end;
  uint64_t missed;
};
/* Returns false if the batch is not one of locks. */
bool tw_locks_read(const unsigned char *data, size_t len, struct tw_locks_reading *out);
bool tw_lock_next(struct tw_locks_reading *r, struct tw_lock *out);

#endif
