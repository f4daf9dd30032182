/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/net/event_loop.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>

static void wake_up(void *self) {
  uv_async_send(self);
}

static void on_wake(uv_async_t *handle) {
  struct tc_loop *loop = handle->data;
  struct tc_loop_handler *h = &loop->handler;
  void *msg;

  for (unsigned from = 0; from < TC_SENDERS; from++)
    while ((msg = tc_spsc_queue_take(&loop->inbox[from])) != NULL) h->message(h->self, from, msg);
  h->drained(h->self);

  if (!atomic_load(&loop->stopping) || uv_is_closing((uv_handle_t *)handle)) return;
  h->stop(h->self);
  uv_close((uv_handle_t *)&loop->tick, NULL);
  uv_close((uv_handle_t *)&loop->wake, NULL);
}

static void on_tick(uv_timer_t *handle) {
  struct tc_loop *loop = handle->data;

  atomic_fetch_add_explicit(&loop->beats, 1, memory_order_relaxed);
  loop->handler.tick(loop->handler.self);
}

static void run_loop(void *arg) {
  struct tc_loop *loop = arg;

  uv_run(&loop->uv, UV_RUN_DEFAULT);
}

tb_rc tc_loop_open(struct tc_loop *loop, unsigned tick_ms, struct tc_loop_handler handler) {
  loop->handler = handler;
  atomic_init(&loop->stopping, false);
  atomic_init(&loop->beats, 0);
  for (unsigned i = 0; i < TC_SENDERS; i++)
    tc_spsc_queue_init(&loop->inbox[i], wake_up, &loop->wake);
  if (uv_loop_init(&loop->uv) != 0) return TB_IO;
  if (uv_async_init(&loop->uv, &loop->wake, on_wake) != 0) {
    uv_loop_close(&loop->uv);
    return TB_IO;
  }
  loop->wake.data = loop;
  uv_timer_init(&loop->uv, &loop->tick);
  loop->tick.data = loop;
  uv_timer_start(&loop->tick, on_tick, tick_ms, tick_ms);
  return TB_OK;
}

/* Blocks signals in the new thread: the main thread handles them. */
tb_rc tc_loop_start(struct tc_loop *loop) {
  sigset_t all, before;
  int failed;

  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  failed = uv_thread_create(&loop->thread, run_loop, loop);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed == 0 ? TB_OK : TB_IO;
}

static void close_loop(struct tc_loop *loop) {
  int left = uv_loop_close(&loop->uv);

  assert(left == 0 && "a handle was not closed");
  (void)left;
}

static void drop_messages(struct tc_loop *loop, void (*drop)(enum tc_loop_sender from, void *msg)) {
  void *msg;

  for (unsigned from = 0; from < TC_SENDERS; from++)
    while ((msg = tc_spsc_queue_take(&loop->inbox[from])) != NULL) drop(from, msg);
}

void tc_loop_close(struct tc_loop *loop, void (*drop)(enum tc_loop_sender from, void *msg)) {
  drop_messages(loop, drop);
  uv_close((uv_handle_t *)&loop->tick, NULL);
  uv_close((uv_handle_t *)&loop->wake, NULL);
  uv_run(&loop->uv, UV_RUN_DEFAULT);
  close_loop(loop);
}

bool tc_loop_post(struct tc_loop *loop, enum tc_loop_sender from, void *msg) {
  return tc_spsc_queue_post(&loop->inbox[from], msg);
}

void tc_loop_stop(struct tc_loop *loop) {
  atomic_store(&loop->stopping, true);
  uv_async_send(&loop->wake);
}

void tc_loop_join(struct tc_loop *loop, void (*drop)(enum tc_loop_sender from, void *msg)) {
  uv_thread_join(&loop->thread);
  drop_messages(loop, drop);
  close_loop(loop);
}
