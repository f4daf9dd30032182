/* SPDX-License-Identifier: Apache-2.0 */
#include "online/frontier.h"

static void swap(struct to_keyed *heap, size_t i, size_t j) {
  struct to_keyed kept = heap[i];
  heap[i] = heap[j];
  heap[j] = kept;
}

static size_t rise(struct to_keyed *heap, size_t place) {
  for (size_t above; place > 0 && heap[above = (place - 1) / 2].time > heap[place].time;
       place = above)
    swap(heap, place, above);
  return place;
}

static void fall(struct to_keyed *heap, size_t n, size_t place) {
  for (;;) {
    size_t least = place, left = 2 * place + 1, right = left + 1;
    if (left < n && heap[left].time < heap[least].time) least = left;
    if (right < n && heap[right].time < heap[least].time) least = right;
    if (least == place) return;
    swap(heap, place, least);
    place = least;
  }
}

static void find_second(struct to_order *order) {
  const struct to_keyed *heap = order->frontier;

  order->second = INT64_MAX;
  if (order->frontier_len > 1) order->second = heap[1].time;
  if (order->frontier_len > 2 && heap[2].time < order->second) order->second = heap[2].time;
}

void to__frontier_add(struct to_order *order, struct to_thread *t) {
  order->frontier[order->frontier_len++] = (struct to_keyed){ t->time, t };
  rise(order->frontier, order->frontier_len - 1);
  find_second(order);
}

void to__frontier_update(struct to_order *order, size_t place) {
  struct to_keyed *heap = order->frontier;

  heap[place].time = to__frontier_at(order, place)->time;
  if (rise(heap, place) == place) fall(heap, order->frontier_len, place);
  find_second(order);
}

void to__frontier_fall(struct to_order *order, size_t place) {
  fall(order->frontier, order->frontier_len, place);
}

void to__frontier_remove(struct to_order *order, size_t place) {
  struct to_keyed *heap = order->frontier;

  for (; place > 0; place = (place - 1) / 2) swap(heap, place, (place - 1) / 2);
  swap(heap, 0, --order->frontier_len);
  fall(heap, order->frontier_len, 0);
  find_second(order);
}

void to__frontier_sort(struct to_order *order) {
  to__sort(order->frontier, order->frontier_len);
  find_second(order);
}
