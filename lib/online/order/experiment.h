/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a program's own experiments, in their place: what their spec asks for is checked, their numbers are
 * followed (wire/experiments.h). They change nothing that the scheduler's events look at.
 *
 * Apart from the rules, as what an event is stands in the generation and not in a table; order.c hands over what it
 * has in registers.
 */
#ifndef TO_ORDER_EXPERIMENT_H
#define TO_ORDER_EXPERIMENT_H

#include "online/order/state.h"

/* How many arguments each event of the generation has, for the cursor. */
void to__experiment_begin(struct to_order *order, const struct to_generation *gen);

struct to_own_step {
  tb_rc rc; /* TB_AGAIN: another thread's event comes before */
  const unsigned char *pos;
};
/* The thread's next event, which is at time, written to out; last is the time of the event before. */
struct to_own_step to__experiment_step(struct to_order *order, const struct to_thread *t,
                                       to_ns time, to_ns last, struct to_event *out);

/* The thread's next event waits for this, and these threads go on; kind TO_WANT_SEQUENCE and up. False: it
 * is none of an experiment's, or without a sequence. */
bool to__experiment_want(const struct to_order *order, const struct to_thread *t,
                         struct to_want *out);
/* The same of an event that has just been tried too early: its number's turn, or its handler's answer. */
bool to__experiment_waits(const struct to_order *order, const struct to_thread *t,
                          struct to_want *out);

#endif
