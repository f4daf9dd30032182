/* SPDX-License-Identifier: Apache-2.0 */
/* The locks that goroutines wait for now, and the goroutines that hold them.
 *
 * A trace names the thread that held a lock when a wait began; the newest wait is the best evidence. The holder is the
 * goroutine that this thread runs, or the last one it ran, which waits now.
 *
 * Passes twice over all goroutines, only in a stream that names locks. */
#ifndef TO_EXPLAIN_LOCK_HOLDERS_H
#define TO_EXPLAIN_LOCK_HOLDERS_H

#include "base/arena.h"
#include "online/spans/spans.h"

struct to_held_lock {
  uint32_t lock;
  uint32_t waiting; /* goroutines */
  to_ns since;      /* begin of the longest wait */
  to_ns newest;     /* begin of the newest wait, which names: */
  int64_t holder;   /* a thread; TO_NONE: unknown */
  bool is_found;    /* the next three, the goroutine on that thread, are known */
  uint32_t slot;
  int64_t goroutine;
  uint8_t state; /* enum to_go_state */
};

/* Fills *out, sorted by lock, with at most TO_HELD_MAX locks. Allocates from arena. */
enum { TO_HELD_MAX = 1024 };
TB_MUST tb_rc to_lock_holders(const struct to_spans *s, struct tb_arena *arena,
                              const struct to_held_lock **out, size_t *out_n);

#endif
