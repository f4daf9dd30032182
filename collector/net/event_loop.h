/* SPDX-License-Identifier: Apache-2.0 */
/* One libuv loop on a thread of its own, with a queue for each thread that may speak to it.
 *
 * Everything a connection owns belongs to its loop; what comes from outside comes as a message.
 *
 * Threads   open, start, join from one; post and stop as said below; handlers run on the loop's.
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
  void (*stop)(void *self); /* close every handle you made; the loop ends when they are gone */
};

struct tc_loop {
  uv_loop_t uv;
  uv_thread_t thread;
  uv_async_t wake;
  uv_timer_t tick;
  struct tc_loop_handler handler;
  atomic_bool stopping;
  atomic_ullong beats; /* ticks done: the watchdog looks whether they go on */
  struct tc_spsc_queue inbox[TC_SENDERS];
};

/* After open() the caller may put its own handles on loop->uv, and must close them before close()
 * where start() was not called or failed. tick_ms: how often handler.tick is called. */
TB_MUST tb_rc tc_loop_open(struct tc_loop *loop, unsigned tick_ms, struct tc_loop_handler handler);
TB_MUST tb_rc tc_loop_start(struct tc_loop *loop);
/* Of one that does not run. Messages that were posted to it are dropped. */
void tc_loop_close(struct tc_loop *loop, void (*drop)(enum tc_loop_sender from, void *msg));
/* From the one thread that is `from`. False: full, msg stays the caller's. */
bool tc_loop_post(struct tc_loop *loop, enum tc_loop_sender from, void *msg);
/* Any thread. */
void tc_loop_stop(struct tc_loop *loop);
/* Once, after stop. Messages that came too late are given to drop. */
void tc_loop_join(struct tc_loop *loop, void (*drop)(enum tc_loop_sender from, void *msg));

#endif
