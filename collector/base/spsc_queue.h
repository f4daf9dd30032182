/* SPDX-License-Identifier: Apache-2.0 */
/* One sender, one receiver, fixed slots; the message's ownership goes with it.
 *
 * Threads   post() from the one sending thread, take() from the one receiving thread.
 * Errors    post() false: full, msg stays the caller's, which holds its own input back and tries again when the
 *           receiver has drained (a later message says so, or its own timer does).
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
bool tc_spsc_queue_is_empty(const struct tc_spsc_queue *mb); /* the receiver's, too */

#endif
