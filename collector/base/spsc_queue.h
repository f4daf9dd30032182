/* SPDX-License-Identifier: Apache-2.0 */
/* A queue with fixed slots for one sender and one receiver. A message is owned by the receiver once posted.
 *
 * Threads   post() from the one sending thread, take() from the one receiving thread.
 * Errors    post() returns false if the queue is full: the caller keeps msg, stops its own input, and tries again later (after
 *           a message from the receiver or by a timer).
 */
#ifndef TC_BASE_SPSC_QUEUE_H
#define TC_BASE_SPSC_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>

enum { TC_SPSC_QUEUE_SLOTS = 4096 };

struct tc_spsc_queue {
  void (*wake)(void *self); /* called after each post, on the sender's thread; wakes coalesce */
  void *self;
  _Alignas(64) atomic_uint tail;
  _Alignas(64) atomic_uint head;
  _Alignas(64) void *slot[TC_SPSC_QUEUE_SLOTS];
};

void tc_spsc_queue_init(struct tc_spsc_queue *mb, void (*wake)(void *self), void *self);
bool tc_spsc_queue_post(struct tc_spsc_queue *mb, void *msg);
void *tc_spsc_queue_take(struct tc_spsc_queue *mb);          /* NULL: empty */
bool tc_spsc_queue_is_empty(const struct tc_spsc_queue *mb); /* receiver only */

#endif
