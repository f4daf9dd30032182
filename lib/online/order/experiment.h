/* SPDX-License-Identifier: Apache-2.0 */
/* Orders events of a program's own experiments: checks what their spec requires (wire/experiments.h) and follows their
 * sequence numbers. They do not change the state of the scheduler.
 *
 * Separate from the rules, because these events are defined in the generation and not in a table.
 */
#ifndef TO_ORDER_EXPERIMENT_H
#define TO_ORDER_EXPERIMENT_H

#include "online/order/state.h"

/* Tells the cursor how many arguments each event of the generation has, and finds the handlers. */
void to__experiment_begin(struct to_order *order, const struct to_generation *gen);

struct to_own_step {
  tb_rc rc; /* TB_AGAIN: another thread's event comes before */
  const unsigned char *pos;
};
/* Tries the thread's next event, at time, and writes it to out. last: time of the previous event of all. */
struct to_own_step to__experiment_step(struct to_order *order, const struct to_thread *t,
                                       to_ns time, to_ns last, struct to_event *out);

/* Writes the sequence number of the thread's next event, with kind TO_WANT_SEQUENCE or above. Returns false if the
 * event is not an experiment's or has no sequence. */
bool to__experiment_want(const struct to_order *order, const struct to_thread *t,
                         struct to_want *out);
/* Writes the reason why an experiment's event, just tried, must wait: its number is not next, or its handler said so. */
bool to__experiment_waits(const struct to_order *order, const struct to_thread *t,
                          struct to_want *out);

#endif
