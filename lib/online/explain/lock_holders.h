/* SPDX-License-Identifier: Apache-2.0 */
/* The locks that goroutines wait for now, and the goroutines that hold them.
 *
 * A trace says which thread held a lock when a wait for it began; the wait that began last says it best. The goroutine is
 * the one that this thread runs, or ran before it waited itself.
 *
 * Two looks at all goroutines, only in a stream that names locks.
 */
#ifndef TO_EXPLAIN_LOCK_HOLDERS_H
#define TO_EXPLAIN_LOCK_HOLDERS_H

#include "base/arena.h"
#include "online/spans/spans.h"

struct to_held_lock {
  uint32_t lock;
  uint32_t waiting; /* goroutines */
  to_ns since;      /* the one that has waited longest */
  to_ns newest;     /* the one that began last: */
  int64_t holder;   /* a thread; TO_NONE: not known */
  bool is_found;    /* the next three are the goroutine on that thread */
  uint32_t slot;
  int64_t goroutine;
  uint8_t state; /* enum to_go_state */
};

/* In the order of the locks' numbers, at most TO_HELD_MAX; the arena's. */
enum { TO_HELD_MAX = 1024 };
TB_MUST tb_rc to_lock_holders(const struct to_spans *s, struct tb_arena *arena,
                              const struct to_held_lock **out, size_t *out_n);

#endif
