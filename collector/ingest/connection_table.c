/* SPDX-License-Identifier: Apache-2.0 */
/* The connections of one loop: by id for the store's replies, in a list for ticks. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/ingest/connection_private.h"

/* Waiting connections are mostly retried after a reply of the store or when a record is freed. The timer handles the other
 * cases: a queue full of DETACHes, and a wait that began just as the last record was freed. */
enum { RETRY_MS = 10, TENANTS_TRIED_MAX = 64, RATES_TRIED_MAX = 256 };

enum { STILL_MS = 1000 }; /* ten ticks: if more passed, the loop or the machine was stopped */

/* Returns false if the connection must go on waiting. */
static bool offer(struct connection *c) {
  if (c->state != TC__GONE) {
    tc__go_on_reading(c);
    return !tc__waits(c);
  }
  if (!tc__detach(c)) return false;
  tc__forget(c);
  return true;
}

static void offer_mailbox(struct tc_connections *set) {
  struct connection *c;

  while ((c = TAILQ_FIRST(&set->waits[TC__WAIT_MAILBOX].list)) != NULL &&
         (offer(c) || c->wait != TC__WAIT_MAILBOX)) {
  }
}

/* Ends at the first record without memory, unless its owner's limit is the reason: then others are tried. */
static void offer_memory(struct tc_connections *set) {
  struct tc__wait_queue *queue = &set->waits[TC__WAIT_MEMORY];
  size_t tries = queue->count < TENANTS_TRIED_MAX ? queue->count : TENANTS_TRIED_MAX;
  struct connection *c;

  if (!TAILQ_EMPTY(&queue->list))
    tc_records_wait(&set->memory_waiter); /* before the attempts: miss no freed record */
  while (tries > 0 && (c = TAILQ_FIRST(&queue->list)) != NULL) {
    if (offer(c) || c->wait != TC__WAIT_MEMORY) continue;
    if (!tc__is_limited(c)) return;
    tries--;
  }
}

/* A connection that is still too early is moved to the end of its queue. */
static void offer_rate(struct tc_connections *set) {
  struct tc__wait_queue *queue = &set->waits[TC__WAIT_RATE];
  size_t tries = queue->count < RATES_TRIED_MAX ? queue->count : RATES_TRIED_MAX;

  for (; tries > 0 && !TAILQ_EMPTY(&queue->list); tries--) (void)!offer(TAILQ_FIRST(&queue->list));
}

static bool none_waits(const struct tc_connections *set) {
  for (unsigned i = 0; i < TC__WAITS; i++)
    if (!TAILQ_EMPTY(&set->waits[i].list)) return false;
  return true;
}

static void offer_all(struct tc_connections *set) {
  offer_mailbox(set);
  offer_memory(set);
  if (none_waits(set)) uv_timer_stop(&set->retry);
}

static void on_retry(uv_timer_t *timer) {
  offer_rate(timer->data);
  offer_all(timer->data);
}

static void on_memory(uv_async_t *handle) {
  offer_all(handle->data);
}

static void wake_for_memory(void *self) {
  uv_async_send(self);
}

void tc_connections_reply(struct tc_connections *set, const struct tc_reply *reply) {
  if (reply->kind == TC_REPLY_FAILED) {
    set->store_failed = true;
    return;
  }
  struct connection *c = tb_map_at(&set->by_id, reply->conn);
  if (c == NULL) return; /* closed meanwhile */
  tc__about_one(c, reply);
  if (c->dirty) return;
  c->dirty = true;
  c->dirty_next = set->dirty;
  set->dirty = c;
}

void tc_connections_flush(struct tc_connections *set) {
  while (set->dirty != NULL) {
    struct connection *c = set->dirty;

    set->dirty = c->dirty_next;
    c->dirty = false;
    if (c->state < TC__STREAMING) continue;
    tc__say_ack(c);
    tc__end_if_acked(c);
  }
  offer_all(set);
}

static void send_snaps(struct tc_connections *set) {
  struct tc_snap_order order;

  while (set->env.recorders != NULL &&
         tc_recorders_next(set->env.recorders, set->env.loop, &order)) {
    struct connection *c = tb_map_at(&set->by_id, order.conn);
    if (c != NULL) tc__say_snap(c, &order);
  }
}

void tc_connections_tick(struct tc_connections *set) {
  uint64_t now = tc__now_ms(set), expires_s = 0;
  bool stood_still = now - set->ticked_ms >= STILL_MS;
  struct connection *next;

  set->ticked_ms = now;
  for (struct connection *c = LIST_FIRST(&set->all); c != NULL; c = next) {
    next = LIST_NEXT(c, all);
    if (c->expires_s != 0 && (expires_s == 0 || c->expires_s < expires_s)) expires_s = c->expires_s;
    tc__tick_one(c, now, stood_still);
  }
  atomic_store_explicit(&set->env.metrics->agent_certificate_expires_seconds, expires_s,
                        memory_order_relaxed);
  send_snaps(set);
}

static void turn_away(struct tc_connections *set, struct connection *c, uint64_t source) {
  if (set->env.limiter != NULL)
    tc_handshake_limiter_leave(set->env.limiter, source, false, uv_hrtime());
  free(c);
}

void tc_connections_accept(struct tc_connections *set, SSL_CTX *ctx, int fd, const char *peer,
                           uint64_t source) {
  struct connection *c = calloc(1, sizeof *c);
  uint64_t *slot;

  if (c == NULL) {
    turn_away(set, c, source);
    close(fd);
    return;
  }
  c->set = set;
  c->id = (uint64_t)(set->env.loop + 1) << 48 | ++set->next_id; /* unique over all loops */
  c->source = source;
  snprintf(c->peer, sizeof c->peer, "%s", peer);
  if (tb_map_put(&set->by_id, c->id, &slot, NULL) != TB_OK) {
    close(fd);
    turn_away(set, c, source);
    return;
  }
  if (tc__connection_open(c, ctx, fd) != TB_OK) {
    tb_map_remove(&set->by_id, c->id);
    turn_away(set, c, source);
    return;
  }
  *slot = (uintptr_t)c;
  LIST_INSERT_HEAD(&set->all, c, all);
  set->count++;
}

void tc_connections_drain(struct tc_connections *set, const char *reason) {
  struct connection *next;

  for (struct connection *c = LIST_FIRST(&set->all); c != NULL; c = next) {
    next = LIST_NEXT(c, all);
    if (c->state < TC__STREAMING)
      tc__abort(c, reason);
    else if (c->state == TC__STREAMING)
      tc__send_away(c, reason);
  }
}

void tc_connections_recheck(struct tc_connections *set) {
  for (struct connection *c = LIST_FIRST(&set->all); c != NULL; c = LIST_NEXT(c, all))
    tc__end_if_revoked(c);
}

void tc_connections_abort(struct tc_connections *set) {
  for (struct connection *c = LIST_FIRST(&set->all); c != NULL; c = LIST_NEXT(c, all))
    tc__abort(c, "shutdown");
}

size_t tc_connections_count(const struct tc_connections *set) {
  return set->count;
}

tb_rc tc_connections_new(const struct tc_connections_env *env, struct tc_connections **out) {
  struct tc_connections *set = calloc(1, sizeof *set);

  if (set == NULL) return TB_NOMEM;
  set->env = *env;
  tb_mem_init(&set->mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_map_init(&set->by_id, &set->mem, 0x9e3779b97f4a7c15u); /* no peer chooses ids */
  for (unsigned i = 0; i < TC__WAITS; i++) TAILQ_INIT(&set->waits[i].list);
  LIST_INIT(&set->all);
  if (uv_async_init(env->tls->uv, &set->memory, on_memory) != 0) {
    free(set);
    return TB_IO;
  }
  uv_timer_init(env->tls->uv, &set->retry);
  uv_timer_start(&set->retry, on_retry, RETRY_MS, RETRY_MS);
  uv_timer_stop(&set->retry); /* the first waiting connection starts it again */
  set->retry.data = set->memory.data = set;
  set->memory_waiter.wake = wake_for_memory;
  set->memory_waiter.self = &set->memory;
  tc_records_waiter_add(&set->memory_waiter);
  *out = set;
  return TB_OK;
}

void tc_connections_close(struct tc_connections *set) {
  tc_records_waiter_remove(&set->memory_waiter);
  uv_close((uv_handle_t *)&set->memory, NULL);
  uv_close((uv_handle_t *)&set->retry, NULL);
}

void tc_connections_free(struct tc_connections *set) {
  if (set == NULL) return;
  for (struct connection *c; (c = LIST_FIRST(&set->all)) != NULL;) { /* with an unsent DETACH */
    assert(c->state == TC__GONE);
    tc__forget(c);
  }
  tb_map_fini(&set->by_id);
  free(set);
}
