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

/* What lies below place has grown too large for it. */
void to__frontier_fall(struct to_order *order, size_t place);

/* The thread at the root has moved on past another one's time (to__frontier_update(order, 0), for the
 * moment the loop changes threads): where threads alternate, root and child change places. */
TO_HOT void frontier_root_later(struct to_order *order, to_ns time) {
  struct to_keyed *heap = order->frontier;
  size_t n = order->frontier_len, least = n > 2 && heap[2].time < heap[1].time ? 2 : 1;
  size_t below = 2 * least + 1;
  struct to_keyed root = { time, heap[0].value };

  heap[0] = heap[least];
  heap[least] = root;
  if (below < n && (heap[below].time < time || (below + 1 < n && heap[below + 1].time < time)))
    to__frontier_fall(order, least);
  order->second = n > 2 && heap[2].time < heap[1].time ? heap[2].time : heap[1].time;
}

static inline struct to_thread *to__frontier_at(const struct to_order *order, size_t place) {
  return order->frontier[place].value;
}

#endif
