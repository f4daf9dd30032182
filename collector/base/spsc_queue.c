/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/base/spsc_queue.h"

#include <stddef.h>

void tc_spsc_queue_init(struct tc_spsc_queue *mb, void (*wake)(void *self), void *self) {
  mb->wake = wake;
  mb->self = self;
  atomic_init(&mb->tail, 0);
  atomic_init(&mb->head, 0);
}

bool tc_spsc_queue_post(struct tc_spsc_queue *mb, void *msg) {
  unsigned tail = atomic_load_explicit(&mb->tail, memory_order_relaxed);
  unsigned head = atomic_load_explicit(&mb->head, memory_order_acquire);

  if (tail - head == TC_SPSC_QUEUE_SLOTS) return false;
  mb->slot[tail % TC_SPSC_QUEUE_SLOTS] = msg;
  atomic_store_explicit(&mb->tail, tail + 1, memory_order_release);
  mb->wake(mb->self);
  return true;
}

void *tc_spsc_queue_take(struct tc_spsc_queue *mb) {
  unsigned head = atomic_load_explicit(&mb->head, memory_order_relaxed);
  unsigned tail = atomic_load_explicit(&mb->tail, memory_order_acquire);

  if (head == tail) return NULL;
  void *msg = mb->slot[head % TC_SPSC_QUEUE_SLOTS];
  atomic_store_explicit(&mb->head, head + 1, memory_order_release);
  return msg;
}

/* Not relaxed: must be ordered with `asleep` of the receiver's wakeup (wakeup.c). */
bool tc_spsc_queue_is_empty(const struct tc_spsc_queue *mb) {
  return atomic_load(&mb->head) == atomic_load(&mb->tail);
}
