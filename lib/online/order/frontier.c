/* SPDX-License-Identifier: Apache-2.0 */
#include "online/order/frontier.h"

static void swap(struct to_heap_entry *heap, size_t i, size_t j) {
  struct to_heap_entry kept = heap[i];
  heap[i] = heap[j];
  heap[j] = kept;
}

static size_t rise(struct to_heap_entry *heap, size_t place) {
  for (size_t above; place > 0 && heap[above = (place - 1) / 2].time > heap[place].time;
       place = above)
    swap(heap, place, above);
  return place;
}

static void fall(struct to_heap_entry *heap, size_t n, size_t place) {
  for (;;) {
    size_t least = place, left = 2 * place + 1, right = left + 1;
    if (left < n && heap[left].time < heap[least].time) least = left;
    if (right < n && heap[right].time < heap[least].time) least = right;
    if (least == place) return;
    swap(heap, place, least);
    place = least;
  }
}

static const struct to_heap_entry no_entry = { INT64_MAX, NULL };

/* Room for the root, its children and grandchildren, which are read without a check of their number. */
enum { FAMILY = 7 };

static size_t places(size_t threads) {
  return threads + FAMILY;
}

tb_rc to__frontier_reserve(struct to_order *order, size_t threads) {
  /* One generation with very many threads must not make later ones expensive. */
  if (order->frontier_cap / 16 > places(threads)) to__frontier_fini(order);
  void *frontier = order->frontier;

  if (frontier == NULL || threads > order->frontier_cap) {
    TB_TRY(tb_mem_resize(order->mem, &frontier,
                         frontier == NULL ? 0 : places(order->frontier_cap) * sizeof no_entry,
                         places(threads) * sizeof no_entry));
    order->frontier = frontier;
    order->frontier_cap = threads;
  }
  for (size_t i = 0; i < places(order->frontier_cap); i++) order->frontier[i] = no_entry;
  return TB_OK;
}

void to__frontier_fini(struct to_order *order) {
  if (order->frontier == NULL) return;
  tb_mem_free(order->mem, order->frontier, places(order->frontier_cap) * sizeof no_entry);
  order->frontier = NULL;
  order->frontier_cap = 0;
}

void to__frontier_add(struct to_order *order, struct to_thread *t) {
  order->frontier[order->frontier_len++] = (struct to_heap_entry){ t->time, t };
  rise(order->frontier, order->frontier_len - 1);
  frontier_turn(order);
}

void to__frontier_update(struct to_order *order, size_t place) {
  struct to_heap_entry *heap = order->frontier;

  heap[place].time = to__frontier_at(order, place)->time;
  if (rise(heap, place) == place) fall(heap, order->frontier_len, place);
  frontier_turn(order);
}

void to__frontier_fall(struct to_order *order, size_t place) {
  fall(order->frontier, order->frontier_len, place);
}

void to__frontier_remove(struct to_order *order, size_t place) {
  struct to_heap_entry *heap = order->frontier;

  for (; place > 0; place = (place - 1) / 2) swap(heap, place, (place - 1) / 2);
  heap[0] = heap[--order->frontier_len];
  heap[order->frontier_len] = no_entry;
  fall(heap, order->frontier_len, 0);
  frontier_turn(order);
}

void to__frontier_sort(struct to_order *order) {
  to__sort(order->frontier, order->frontier_len);
  frontier_turn(order);
}
