/* SPDX-License-Identifier: Apache-2.0 */
/* The min-heap of threads by the time of their next event, with the same moves as in Go's reader: if
 * times are equal, the places in the array decide which thread is first.
 */
#ifndef TO_ORDER_FRONTIER_H
#define TO_ORDER_FRONTIER_H

#include "online/order/state.h"

/* Makes room for so many threads. The frontier must be empty. */
TB_MUST tb_rc to__frontier_reserve(struct to_order *order, size_t threads);
void to__frontier_fini(struct to_order *order);
/* Requires room. */
void to__frontier_add(struct to_order *order, struct to_thread *t);
/* Moves the thread at this place after its time has changed. */
void to__frontier_update(struct to_order *order, size_t place);
void to__frontier_remove(struct to_order *order, size_t place);
/* Sorts the frontier by time; a sorted array is still a heap. */
void to__frontier_sort(struct to_order *order);

/* Moves the entry at place down, after its time has grown. */
void to__frontier_fall(struct to_order *order, size_t place);

/* Computes turn_end, after a change of the heap or of the next CPU sample. */
TO_HOT void frontier_turn(struct to_order *order) {
  const struct to_heap_entry *heap = order->frontier;
  to_ns end = order->sample_time;

  if (heap[1].time < end) end = heap[1].time;
  if (heap[2].time < end) end = heap[2].time;
  order->turn_end = end;
}

/* A fast to__frontier_update(order, 0): swaps the root, whose next event is now at time, with its earlier child and
 * returns the new root. Requires that time is after turn_end and that no CPU sample is due at time; so a child is
 * earlier, and earlier than the next sample, too. */
TO_HOT struct to_thread *frontier_root_later(struct to_order *order, struct to_thread *t,
                                             to_ns time) {
  struct to_heap_entry *heap = order->frontier;
  to_ns left = heap[1].time, right = heap[2].time;
  to_ns first = right < left ? right : left, other = right < left ? left : right;
  struct to_heap_entry *child = right < left ? heap + 2 : heap + 1;
  struct to_heap_entry *below = child + (child - heap) + 1;
  struct to_thread *next = child->value;

  heap[0] = (struct to_heap_entry){ first, next };
  *child = (struct to_heap_entry){ time, t };
  if (TB_UNLIKELY(below[0].time < time || below[1].time < time)) {
    to__frontier_fall(order, (size_t)(child - heap));
    frontier_turn(order);
    return next;
  }
  order->turn_end = time < other ? time : other;
  return next;
}

static inline struct to_thread *to__frontier_at(const struct to_order *order, size_t place) {
  return order->frontier[place].value;
}

#endif
