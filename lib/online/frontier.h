/* SPDX-License-Identifier: Apache-2.0 */
/* The min-heap of threads by the time of their next event, with the very moves of Go's reader: where
 * times are equal, the places in the array decide who goes first.
 */
#ifndef TO_FRONTIER_H
#define TO_FRONTIER_H

#include "online/state.h"

/* The frontier has room for one more. */
void to__frontier_add(struct to_order *order, struct to_thread *t);
/* The thread at this place has a new time. */
void to__frontier_update(struct to_order *order, size_t place);
void to__frontier_remove(struct to_order *order, size_t place);
/* Sorted, it is still a heap, and can be walked in order of time. */
void to__frontier_sort(struct to_order *order);

static inline struct to_thread *to__frontier_at(const struct to_order *order, size_t place) {
  return order->frontier[place].value;
}

#endif
