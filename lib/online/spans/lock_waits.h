/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks: by lock, by the stacks that block and release, and by the goroutine that releases.
 *
 * By the agent's rule, the goroutine that ends a wait has released the lock, so it was the holder. In a stream that names
 * locks, all waits for `reasons` are counted here, in addition to the shared sums (online/spans/sums.h); waits for no lock
 * are counted for TO_LOCK_NONE. In other streams nothing is counted.
 *
 * Memory    from mem: some 150 bytes a sum; at most TO_LOCK_SUMS_MAX, then the sum of all others is used. 7 KiB of
 *           recent ones, and a queue for each lock as in online/spans/queues.h.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this wait is not counted.
 */
#ifndef TO_SPANS_LOCK_WAITS_H
#define TO_SPANS_LOCK_WAITS_H

#include "online/spans/lock_table.h"
#include "online/spans/queues.h"
#include "online/spans/sums.h"

enum { TO_LOCK_SUMS_MAX = 4096, TO_LOCK_RECENT = 128 };

struct to_lock_sum {
  uint32_t lock, stack, by_stack;
  uint32_t by_entry; /* entry function of the goroutine that ended the waits; or TO_ENTRY_UNKNOWN */
  uint32_t series;
  uint8_t why; /* enum to_reason */
};

struct to_lock_waits {
  struct tb_mem *mem;
  struct to_windows *windows;
  struct to_stack_table *stacks;
  struct to_span_sums *sums; /* for entry functions */
  uint64_t reasons;          /* bits of enum to_reason that are counted */
  uint32_t parent;           /* series of all */
  struct to_lock_sum *sum;   /* 0: waits above the limit */
  size_t n, room;
  struct tb_map by_key;
  uint32_t *of_lock; /* series by lock, the parents of its sums; 0: none yet */
  size_t locks;
  struct tb_map pairs;     /* reason and stacks of sums with a lock */
  struct to_queues queues; /* by lock */
  struct to_lock_recent {
    uint64_t stack, by_stack; /* the generation's ids, or TO_STACK_KEPT | number */
    uint64_t what;            /* 0: a free place */
    uint32_t lock, sum;
  } recent[TO_LOCK_RECENT];
};

TB_MUST tb_rc to_lock_waits_init(struct to_lock_waits *w, struct tb_mem *mem,
                                 struct to_windows *windows, struct to_stack_table *stacks,
                                 struct to_span_sums *sums);
void to_lock_waits_fini(struct to_lock_waits *w); /* accepts a zeroed one */

/* Counts a wait that has ended. by_slot: of the goroutine that ended it; 0: unknown. */
TB_MUST tb_rc to_lock_waits_take(struct to_lock_waits *w, const struct to_generation *gen,
                                 const struct to_span *wait, uint32_t by_slot);

/* Returns true if these waits are reported by lock, not from the shared sums: one was for a known lock. */
bool to_lock_waits_has_pair(const struct to_lock_waits *w, unsigned why, uint32_t stack,
                            uint32_t by_stack);

/* Iterates over the sums that the view contains:
 * for (const struct to_lock_sum *sum = NULL; (sum = to_lock_waits_next(w, view, sum)) != NULL;) */
const struct to_lock_sum *to_lock_waits_next(const struct to_lock_waits *w,
                                             const struct to_view *view,
                                             const struct to_lock_sum *sum);

#endif
