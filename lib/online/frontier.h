/* SPDX-License-Identifier: Apache-2.0 */
/* The min-heap of threads by the time of their next event, with the very moves of Go's reader: where
 * times are equal, the places in the array decide who goes first.
 */
#ifndef TO_FRONTIER_H
#define TO_FRONTIER_H

#include "online/state.h"

/* Makes room for so many threads; the frontier is empty. */
TB_MUST tb_rc to__frontier_reserve(struct to_order *order, size_t threads);
void to__frontier_fini(struct to_order *order);
/* There is room. */
void to__frontier_add(struct to_order *order, struct to_thread *t);
/* The thread at this place has a new time. */
void to__frontier_update(struct to_order *order, size_t place);
void to__frontier_remove(struct to_order *order, size_t place);
/* Sorted, it is still a heap, and can be walked in order of time. */
void to__frontier_sort(struct to_order *order);

/* What lies below place has grown too large for it. */
void to__frontier_fall(struct to_order *order, size_t place);

/* Until when the root goes on: after a change of the heap or of the next CPU sample. */
TO_HOT void frontier_turn(struct to_order *order) {
  const struct to_keyed *heap = order->frontier;
  to_ns end = order->sample_time;

  if (heap[1].time < end) end = heap[1].time;
  if (heap[2].time < end) end = heap[2].time;
  order->turn_end = end;
}

/* The thread at the root has moved on (to__frontier_update(order, 0), for the moment the loop changes
 * threads): where threads alternate, root and child change places. */
TO_HOT void frontier_root_later(struct to_order *order, to_ns time) {
  struct to_keyed *heap = order->frontier;
  size_t least = heap[2].time < heap[1].time ? 2 : 1, below = 2 * least + 1;
  struct to_keyed root = { time, heap[0].value };

  heap[0].time = time;
  if (TB_UNLIKELY(time <= heap[least].time)) return; /* a CPU sample is due, or the slice is full */
  heap[0] = heap[least];
  heap[least] = root;
  if (TB_UNLIKELY(heap[below].time < time || heap[below + 1].time < time))
    to__frontier_fall(order, least);
  frontier_turn(order);
}

static inline struct to_thread *to__frontier_at(const struct to_order *order, size_t place) {
  return order->frontier[place].value;
}

#endif
