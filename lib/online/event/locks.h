/* SPDX-License-Identifier: Apache-2.0 */
/* The locks that a generation's waits are for (wire/locks.h), by the string that is the reason of such a wait.
 *
 *   TB_TRY(to_locks_generation(locks, gen));              -- at each generation's first event
 *   const struct to_lock *lock = to_locks_find(locks, ev->args[0]);    -- of a GoBlock
 *
 * A generation of a Go program names none, and costs a look at its experimental batches.
 *
 * Memory    from mem: 40 bytes a lock and its place in a hash map; at most TO_LOCKS_MAX in a generation. Names are lent
 *           as long as their generation.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the locks of this generation are not known.
 */
#ifndef TO_EVENT_LOCKS_H
#define TO_EVENT_LOCKS_H

#include "base/map.h"
#include "online/event/generation.h"

enum { TO_LOCKS_MAX = 1 << 16 };

struct to_lock {
  uint64_t object;       /* its address */
  int64_t holder;        /* the thread that held it when the waits began; TO_NONE: not known */
  struct to_string name; /* what the program calls it; len 0: not known */
};

struct to_locks {
  struct tb_mem *mem;
  struct to_lock *lock;
  size_t n, room;
  uint64_t
      missed; /* waits of this generation whose lock is not said, because there were too many */
  struct tb_map by_string;
};

void to_locks_init(struct to_locks *locks, struct tb_mem *mem);
void to_locks_fini(struct to_locks *locks); /* accepts a zeroed one */
TB_MUST tb_rc to_locks_generation(struct to_locks *locks, const struct to_generation *gen);
/* NULL: the string is an ordinary one. */
const struct to_lock *to_locks_find(const struct to_locks *locks, uint64_t string);

#endif
