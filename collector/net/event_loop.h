/* SPDX-License-Identifier: Apache-2.0 */
/* A libuv loop on a thread of its own, with a queue for each thread that sends to it.
 *
 * All state of a connection belongs to its loop; other threads send messages.
 *
 * Threads   open, start, join: one thread; post and stop: see below; handlers: the loop's thread.
 * Errors    TB_IO: no thread, no descriptor.
 */
#ifndef TC_NET_EVENT_LOOP_H
#define TC_NET_EVENT_LOOP_H

#include <stdatomic.h>
#include <uv.h>

#include "base/result.h"
#include "collector/base/spsc_queue.h"

enum tc_loop_sender {
  TC_SENDER_MAIN,
  TC_SENDER_COMMIT,
  TC_SENDER_SEGMENT,
  TC_SENDER_LEASES,
  TC_SENDERS
};

struct tc_loop_handler {
  void *self;
  void (*message)(void *self, enum tc_loop_sender from, void *msg); /* owns msg */
  void (*drained)(void *self);                                      /* all queues are empty */
  void (*tick)(void *self);
  void (*stop)(void *self); /* must close the handler's handles, which ends the loop */
};

struct tc_loop {
  uv_loop_t uv;
  uv_thread_t thread;
  uv_async_t wake;
  uv_timer_t tick;
  struct tc_loop_handler handler;
  atomic_bool stopping;
  atomic_ullong beats; /* number of ticks; the watchdog checks that it rises */
  struct tc_spsc_queue inbox[TC_SENDERS];
};

/* Opens a loop that calls handler.tick every tick_ms. The caller may then add handles to loop->uv. If start() fails or is never
 * called, the caller must close its handles before it calls tc_loop_close(). */
TB_MUST tb_rc tc_loop_open(struct tc_loop *loop, unsigned tick_ms, struct tc_loop_handler handler);
TB_MUST tb_rc tc_loop_start(struct tc_loop *loop);
/* Closes a loop that does not run. Calls drop() for each message posted to it. */
void tc_loop_close(struct tc_loop *loop, void (*drop)(enum tc_loop_sender from, void *msg));
/* Only from the thread `from`. Returns false if the queue is full; the caller then keeps msg. */
bool tc_loop_post(struct tc_loop *loop, enum tc_loop_sender from, void *msg);
void tc_loop_stop(struct tc_loop *loop); /* any thread */
/* Call once, after stop. Calls drop() for each message that arrived too late. */
void tc_loop_join(struct tc_loop *loop, void (*drop)(enum tc_loop_sender from, void *msg));

#endif
