/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a connection, and the queues in which it waits for the store. */
#include <assert.h>
#include <stdlib.h>

#include "collector/ingest/connection_private.h"

static const bool may_become[TC__CONNECTION_STATES][TC__CONNECTION_STATES] = {
  [TC__HANDSHAKING] = { [TC__GREETING] = true, [TC__CLOSING] = true, [TC__GONE] = true },
  [TC__GREETING] = { [TC__ATTACHING] = true, [TC__CLOSING] = true, [TC__GONE] = true },
  [TC__ATTACHING] = { [TC__STREAMING] = true, [TC__CLOSING] = true, [TC__GONE] = true },
  [TC__STREAMING] = { [TC__DRAINING] = true, [TC__CLOSING] = true, [TC__GONE] = true },
  [TC__DRAINING] = { [TC__CLOSING] = true, [TC__GONE] = true },
  [TC__CLOSING] = { [TC__GONE] = true },
};

void tc__connection_becomes(struct connection *c, enum tc__connection_state state) {
  assert(may_become[c->state][state]);
  c->state = state;
}

/* Starts to measure a wait because of ingest.hold. */
static void hold_begin(struct connection *c) {
  bool is_limited = c->ingest.hold >= TC_HOLD_MEMORY;

  c->held_from_ms = is_limited ? tc__now_ms(c->set) : 0;
  if (is_limited) c->held_why = c->ingest.hold;
}

void tc__hold_end(struct connection *c) {
  if (c->held_from_ms != 0) c->held_ms += tc__now_ms(c->set) - c->held_from_ms;
  c->held_from_ms = 0;
}

/* first: queue before all others. */
static void wait_add(struct connection *c, enum tc__wait wait, bool first) {
  struct tc__wait_queue *queue = &c->set->waits[wait];

  c->wait = wait;
  hold_begin(c);
  if (first)
    TAILQ_INSERT_HEAD(&queue->list, c, in_wait);
  else
    TAILQ_INSERT_TAIL(&queue->list, c, in_wait);
  queue->count++;
}

void tc__waits_no_more(struct connection *c) {
  if (!tc__waits(c)) return;
  struct tc__wait_queue *queue = &c->set->waits[c->wait];
  c->wait = TC__WAIT_NONE;
  tc__hold_end(c);
  TAILQ_REMOVE(&queue->list, c, in_wait);
  queue->count--;
}

static enum tc__wait wait_of(const struct connection *c) {
  if (c->state == TC__GONE || c->ingest.whole) return TC__WAIT_MAILBOX;
  return c->ingest.hold >= TC_HOLD_TENANT_RATE ? TC__WAIT_RATE : TC__WAIT_MEMORY;
}

static void count_hold(const struct connection *c) {
  struct tc_metrics *metrics = c->set->env.metrics;

  tc_metric_add(tc__is_limited(c) ? &metrics->limit_holds_total : &metrics->holds_total, 1);
}

void tc__wait_for_store(struct connection *c) {
  struct tc_connections *set = c->set;
  bool gone = c->state == TC__GONE;
  enum tc__wait wait = wait_of(c);

  if (!tc__waits(c) && !gone) count_hold(c);
  if (!gone && c->wait == wait && !tc__is_limited(c)) return;
  tc__waits_no_more(c);
  /* A closed connection is first: it only needs a slot for its DETACH. */
  wait_add(c, wait, gone);
  if (wait == TC__WAIT_MEMORY) tc_records_wait(&set->memory_waiter);
  if (!uv_is_active((uv_handle_t *)&set->retry)) uv_timer_again(&set->retry);
}

void tc__forget(struct connection *c) {
  assert(!c->dirty);
  tc__waits_no_more(c);
  LIST_REMOVE(c, all);
  c->set->count--;
  free(c);
}
