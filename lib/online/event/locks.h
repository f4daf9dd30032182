/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of a generation's waits (wire/locks.h), by the string of the wait's reason.
 *
 *   TB_TRY(to_locks_generation(locks, gen));              -- at each generation's first event
 *   const struct to_lock *lock = to_locks_find(locks, ev->args[0]);    -- of a GoBlock
 *
 * Traces of Go programs have no locks; for them only the experimental batches are checked.
 *
 * Memory    from mem: 40 bytes a lock and an entry of a hash map; at most TO_LOCKS_MAX in a generation. Names are valid
 *           as long as their generation.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: locks of this generation are missing.
 */
#ifndef TO_EVENT_LOCKS_H
#define TO_EVENT_LOCKS_H

#include "base/map.h"
#include "online/event/generation.h"

enum { TO_LOCKS_MAX = 1 << 16 };

struct to_lock {
  uint64_t object;       /* address of the lock */
  int64_t holder;        /* the thread that held the lock when the waits began, or TO_NONE */
  struct to_string name; /* the program's name for the lock; len 0: unknown */
};

struct to_locks {
  struct tb_mem *mem;
  struct to_lock *lock;
  size_t n, room;
  uint64_t missed; /* waits of this generation without a lock, because there were too many locks */
  struct tb_map by_string;
};

void to_locks_init(struct to_locks *locks, struct tb_mem *mem);
void to_locks_fini(struct to_locks *locks); /* accepts a zeroed one */
TB_MUST tb_rc to_locks_generation(struct to_locks *locks, const struct to_generation *gen);
/* Returns NULL for an ordinary string. */
const struct to_lock *to_locks_find(const struct to_locks *locks, uint64_t string);

#endif
