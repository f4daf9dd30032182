/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait, once the whole frontier has been tried too often.
 *
 * Where the earliest event comes too early, Go's reader tries all threads by time, again and again: 20,000
 * threads that wait for each other cost it ten seconds. Real traces do that a few times an hour. So the
 * orderer does the same until the frontiers it has tried add up to a budget; from then on a thread whose
 * event comes too early leaves the frontier and waits for what the event needs: a goroutine, a proc or the
 * collector in some state with some sequence number. The step that brings it about puts the thread back.
 *
 * The order is the same, but for events of equal time: those Go settles by the places in the frontier.
 *
 * Memory    from the orderer's mem: 8 bytes a parked thread, and a map of what they want.
 * Errors    TB_BUDGET, TB_NOMEM from mem.
 */
#ifndef TO_ORDER_PARKED_H
#define TO_ORDER_PARKED_H

#include "online/order/state.h"

/* The state that a step may change, noted before it is taken. */
struct to_touched {
  int64_t g[2], p[2], thread;
  bool in_sequence; /* an experiment's event that has a number */
  struct to_want number;
};

void to__parked_init(struct to_parked *parked, struct tb_mem *mem);
void to__parked_fini(struct to_parked *parked);
void to__parked_clear(struct to_parked *parked);

/* The thread at the root of the frontier has tried its event too early: it leaves. */
TB_MUST tb_rc to__park(struct to_order *order);
struct to_touched to__touched_by(const struct to_order *order, const struct to_thread *t);
/* After a step: threads that can go on now are back in the frontier. */
void to__parked_wake(struct to_order *order, const struct to_touched *touched);

/* The earliest of them; there is one. */
static inline struct to_thread *to__parked_first(const struct to_order *order) {
  return order->parked.heap[0];
}

#endif
