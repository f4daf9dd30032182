/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting threads, after the whole frontier has been tried too often.
 *
 * If the earliest event is too early, Go's reader tries all threads by time, again and again: 20,000
 * threads that wait for each other cost it ten seconds. Real traces do that a few times an hour. The
 * orderer does the same until its attempts exceed a budget. Then a thread whose event is too early
 * leaves the frontier and waits for the state that the event needs: of a goroutine, a proc or the
 * garbage collector, with a sequence number. The step that reaches this state puts the thread back.
 *
 * The order is the same except for events of equal time, which Go orders by their places in the frontier.
 *
 * Memory    from the orderer's mem: 8 bytes a parked thread, and a map by awaited state.
 * Errors    TB_BUDGET, TB_NOMEM from mem.
 */
#ifndef TO_ORDER_PARKED_H
#define TO_ORDER_PARKED_H

#include "online/order/state.h"

/* The state that a step may change, recorded before the step. */
struct to_touched {
  int64_t g[2], p[2], thread;
  bool in_sequence; /* the event is an experiment's, with a sequence number */
  struct to_want number;
};

void to__parked_init(struct to_parked *parked, struct tb_mem *mem);
void to__parked_fini(struct to_parked *parked);
void to__parked_clear(struct to_parked *parked);

/* Parks the thread at the root of the frontier, whose event is too early. */
TB_MUST tb_rc to__park(struct to_order *order);
struct to_touched to__touched_by(const struct to_order *order, const struct to_thread *t);
/* Call after a step: returns threads that can go on now to the frontier. */
void to__parked_wake(struct to_order *order, const struct to_touched *touched);

/* Returns the earliest parked thread; there must be one. */
static inline struct to_thread *to__parked_first(const struct to_order *order) {
  return order->parked.heap[0];
}

#endif
