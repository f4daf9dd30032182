/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/daemon/worker.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TICK_MS = 100 };

struct tc_worker {
  struct tc_worker_env env;
  struct tc_loop loop;
  struct tc_tls_loop tls;
  struct tc_connections *connections;
  struct tc_event_tap *tap;
  struct tc_scheduler *understand;
  struct tc_metrics metrics;
  SSL_CTX *context;
  bool started, understanding; /* understanding: the scheduler's handles are open */
  bool silent;                 /* the store may be closed: submit nothing */
  atomic_size_t taken;         /* accepted connections that have not arrived here yet */
  atomic_size_t here;
  atomic_bool idle, quiet;
};

/* --- the store --------------------------------------------------------------------------------- */

static bool submit(void *self, struct tc_submit *msg) {
  struct tc_worker *st = self;

  return !st->silent && tc_store_submit(st->env.store, st->env.number, msg);
}

static int open_file(void *self, const struct tc_reply *stored) {
  return tc_store_open_file(self, stored);
}

/* --- messages ---------------------------------------------------------------------------------- */

static void publish_state(struct tc_worker *st) {
  size_t here = tc_connections_count(st->connections);

  atomic_store(&st->here, here);
  atomic_store(&st->idle, !st->understanding || tc_scheduler_is_idle(st->understand));
}

static void quiet_down(struct tc_worker *st) {
  if (st->understanding) tc_scheduler_close(st->understand);
  st->understanding = false;
  st->silent = true; /* a DETACH for which there was no room may still be retried */
  atomic_store(&st->quiet, true);
}

static void take_idle_patterns(struct tc_worker *st, char *text) {
  if (st->understanding)
    tc_scheduler_idle_patterns(st->understand, text);
  else
    free(text);
}

struct tc_order *tc_order_new(const struct tc_order *like) {
  struct tc_order *order = malloc(sizeof *order);

  if (order == NULL) return NULL;
  *order = *like;
  order->magic = TC_ORDER_MAGIC;
  return order;
}

void tc_order_free(struct tc_order *order) {
  if (order == NULL) return;
  TB_MAGIC_END(order, TC_ORDER_MAGIC);
  free(order);
}

static void carry_out(struct tc_worker *st, struct tc_order *order) {
  TB_MAGIC_CHECK(order, TC_ORDER_MAGIC);
  switch (order->kind) {
  case TC_ORDER_ACCEPT:
    tc_connections_accept(st->connections, st->context, order->fd, order->peer, order->source);
    atomic_fetch_sub(&st->taken, 1);
    break;
  case TC_ORDER_CONTEXT:
    SSL_CTX_free(st->context);
    st->context = order->context;
    break;
  case TC_ORDER_IDLE: take_idle_patterns(st, order->text); break;
  case TC_ORDER_RECHECK: tc_connections_recheck(st->connections); break;
  case TC_ORDER_DRAIN: tc_connections_drain(st->connections, "shutdown"); break;
  case TC_ORDER_ABORT: tc_connections_abort(st->connections); break;
  case TC_ORDER_QUIET: quiet_down(st); break;
  }
  tc_order_free(order);
}

static void on_reply(struct tc_worker *st, struct tc_reply *reply) {
  TB_MAGIC_CHECK(reply, TC_REPLY_MAGIC);
  bool of_stream = reply->kind == TC_REPLY_STORED || reply->kind == TC_REPLY_ARCHIVED ||
                   reply->kind == TC_REPLY_LOST;

  if (of_stream && st->understanding) {
    tc_scheduler_reply(st->understand, reply);
    return;
  }
  tc_connections_reply(st->connections, reply);
  tc_reply_free(reply);
}

static void on_message(void *self, enum tc_loop_sender from, void *msg) {
  struct tc_worker *st = self;

  switch (from) {
  case TC_SENDER_MAIN: carry_out(st, msg); break;
  case TC_SENDER_LEASES: tc_event_tap_order(st->tap, msg); break;
  default: on_reply(st, msg); break;
  }
}

static void on_drained(void *self) {
  struct tc_worker *st = self;

  tc_connections_flush(st->connections);
  publish_state(st);
}

/* Copies settings into TLS, since a reload may change them. */
static void follow_config(struct tc_worker *st) {
  const struct tc_config *config = st->env.config;

  st->tls.handshake_ms = config->agents_handshake_timeout / 1000000;
  st->tls.user_timeout_ms = (unsigned)(tp_silence(config->agents_heartbeat) / 1000000);
}

static void on_tick(void *self) {
  struct tc_worker *st = self;

  follow_config(st);
  tc_tls_loop_tick(&st->tls);
  tc_connections_tick(st->connections);
  if (st->understanding) tc_scheduler_tick(st->understand);
  tc_event_tap_tick(st->tap);
  publish_state(st);
}

static void on_stop(void *self) {
  struct tc_worker *st = self;

  quiet_down(st);
  tc_connections_abort(st->connections);
  tc_connections_close(st->connections);
  tc_tls_loop_close(&st->tls);
}

static void drop_order(struct tc_order *order) {
  if (order->kind == TC_ORDER_ACCEPT) close(order->fd);
  if (order->kind == TC_ORDER_CONTEXT) SSL_CTX_free(order->context);
  if (order->kind == TC_ORDER_IDLE) free(order->text);
  tc_order_free(order);
}

static void drop(enum tc_loop_sender from, void *msg) {
  switch (from) {
  case TC_SENDER_MAIN: drop_order(msg); break;
  case TC_SENDER_LEASES: tc_event_tap_order_free(msg); break;
  default: tc_reply_free(msg); break;
  }
}

bool tc_worker_order(struct tc_worker *st, const struct tc_order *order) {
  struct tc_order *msg = tc_order_new(order);

  if (msg == NULL) return false;
  if (order->kind == TC_ORDER_ACCEPT) atomic_fetch_add(&st->taken, 1);
  if (tc_loop_post(&st->loop, TC_SENDER_MAIN, msg)) return true;
  if (order->kind == TC_ORDER_ACCEPT) atomic_fetch_sub(&st->taken, 1);
  tc_order_free(msg);
  return false;
}

bool tc_worker_reply(struct tc_worker *st, enum tc_from from, struct tc_reply *reply) {
  return tc_loop_post(&st->loop, from == TC_FROM_COMMIT ? TC_SENDER_COMMIT : TC_SENDER_SEGMENT,
                      reply);
}

bool tc_worker_tap(struct tc_worker *st, struct tc_event_tap_order *order) {
  return tc_loop_post(&st->loop, TC_SENDER_LEASES, order);
}

struct tc_metrics *tc_worker_metrics(struct tc_worker *st) {
  return &st->metrics;
}
size_t tc_worker_connections(const struct tc_worker *st) {
  return atomic_load(&st->taken) + atomic_load(&st->here);
}
bool tc_worker_is_idle(const struct tc_worker *st) {
  return atomic_load(&st->idle);
}
bool tc_worker_is_quiet(const struct tc_worker *st) {
  return atomic_load(&st->quiet);
}
uint64_t tc_worker_beats(const struct tc_worker *st) {
  return atomic_load(&st->loop.beats);
}

static enum tc_shortage shortage(const void *store, bool of_log) {
  return tc_store_shortage(store, of_log);
}

tb_rc tc_worker_open(const struct tc_worker_env *env, struct tc_worker **out) {
  struct tc_worker *st = calloc(1, sizeof *st);
  struct tc_loop_handler handler = { st, on_message, on_drained, on_tick, on_stop };
  const struct tc_config *config = env->config;
  tb_rc rc;

  if (st == NULL) return TB_NOMEM;
  rc = tc_loop_open(&st->loop, TICK_MS, handler);
  if (rc != TB_OK) {
    free(st);
    return rc;
  }
  st->env = *env;
  atomic_init(&st->idle, true);
  tc_tls_loop_init(&st->tls, &st->loop.uv);
  st->tls.handshakes = env->handshakes;
  follow_config(st);

  struct tc_submit_sink store = { st, submit };
  struct tc_connections_env connections = { .tls = &st->tls,
                                            .config = config,
                                            .metrics = &st->metrics,
                                            .store = store,
                                            .shortage = shortage,
                                            .shortage_self = env->store,
                                            .loop = env->number,
                                            .quotas = env->quotas,
                                            .limiter = env->limiter,
                                            .recorders = env->recorders };

  rc = tc_event_tap_new(env->leases, env->number, &st->tap);
  struct tc_scheduler_env understand = { .uv = &st->loop.uv,
                                         .config = config,
                                         .metrics = &st->metrics,
                                         .reports = env->reports,
                                         .history = env->history,
                                         .feed = env->feed,
                                         .tap = st->tap,
                                         .triggers = env->triggers,
                                         .findings = env->findings,
                                         .kept = env->kept,
                                         .store = store,
                                         .loop = env->number,
                                         .files = env->store,
                                         .open_file = open_file };

  if (rc == TB_OK) rc = tc_connections_new(&connections, &st->connections);
  if (rc == TB_OK) rc = tc_scheduler_new(&understand, &st->understand);
  st->understanding = rc == TB_OK;
  if (rc != TB_OK) {
    tc_worker_close(st);
    return rc;
  }
  *out = st;
  return TB_OK;
}

tb_rc tc_worker_start(struct tc_worker *st) {
  char name[16]; /* as top and gdb show it */

  TB_TRY(tc_loop_start(&st->loop));
  st->started = true;
  snprintf(name, sizeof name, "tc-loop-%u", st->env.number);
  pthread_setname_np(st->loop.thread, name);
  return TB_OK;
}

void tc_worker_stop(struct tc_worker *st) {
  tc_loop_stop(&st->loop);
}

void tc_worker_close(struct tc_worker *st) {
  if (st == NULL) return;
  if (st->started) {
    tc_loop_join(&st->loop, drop);
  } else {
    if (st->understanding) tc_scheduler_close(st->understand);
    if (st->connections != NULL) tc_connections_close(st->connections);
    tc_tls_loop_close(&st->tls);
    tc_loop_close(&st->loop, drop);
  }
  tc_connections_free(st->connections);
  tc_scheduler_free(st->understand);
  tc_event_tap_free(st->tap);
  SSL_CTX_free(st->context);
  free(st);
}
