/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/daemon/acceptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/source.h"
#include "collector/base/logger.h"
#include "collector/net/tcp_listener.h"

enum { RETRY_MS = 5 };

struct tc_acceptor {
  struct tc_acceptor_env env;
  struct tc_listener *listener;
  uv_timer_t retry;
  struct tc_order first; /* next in the queue, while it waits for the limiter */
  bool waits;
  char address[TC_ADDRESS_MAX];
};

static enum tc_handshake_limiter_answer ask_gate(struct tc_acceptor *d, uint64_t source) {
  const struct tc_handshake_limiter_limits limits = {
    .half_open_max = d->env.config->agents_source_handshakes_max,
    .failures_rate = d->env.config->agents_source_failures_rate,
    .failures_burst = d->env.config->agents_source_failures_burst,
  };

  return tc_handshake_limiter_enter(d->env.limiter, source, &limits, uv_hrtime());
}

static void turn_away(struct tc_acceptor *d, int fd, const char *peer, const char *why) {
  tc_metric_add(&d->env.metrics->peers_turned_away_total, 1);
  tc_log(TC_WARN, "agents", "peer=%s: turned away: %s", peer, why);
  close(fd);
}

static struct tc_worker *least_loaded(const struct tc_acceptor *d, size_t *out_all) {
  struct tc_worker *least = NULL;
  size_t least_load = SIZE_MAX;

  *out_all = 0;
  for (unsigned i = 0; i < d->env.count; i++) {
    size_t load = tc_worker_connections(d->env.workers[i]);

    *out_all += load;
    if (load >= least_load) continue;
    least_load = load;
    least = d->env.workers[i];
  }
  return least;
}

static void let_in(struct tc_acceptor *d, const struct tc_order *order) {
  char why[96];
  size_t all;
  struct tc_worker *worker = least_loaded(d, &all);

  bool has_place = all < d->env.config->agents_connections_max;
  if (has_place && tc_worker_order(worker, order)) return;
  tc_handshake_limiter_leave(d->env.limiter, order->source, false, uv_hrtime());
  if (has_place)
    snprintf(why, sizeof why, "the loop with the fewest connections takes no more orders at once");
  else
    snprintf(why, sizeof why, "%zu connections, agents.connections_max is %zu", all,
             (size_t)d->env.config->agents_connections_max);
  turn_away(d, order->fd, order->peer, why);
}

/* Returns false if the connection has to wait. */
static bool decide(struct tc_acceptor *d, const struct tc_order *order) {
  switch (ask_gate(d, order->source)) {
  case TC_HANDSHAKE_LIMITER_OPEN: let_in(d, order); break;
  case TC_HANDSHAKE_LIMITER_LATER: return false;
  case TC_HANDSHAKE_LIMITER_CLOSED_HANGING:
    turn_away(d, order->fd, order->peer, "too many handshakes at once from this address");
    break;
  case TC_HANDSHAKE_LIMITER_CLOSED_FAILING:
    turn_away(d, order->fd, order->peer, "too many failed handshakes from this address");
    break;
  }
  return true;
}

static void on_retry(uv_timer_t *timer) {
  struct tc_acceptor *d = timer->data;

  if (decide(d, &d->first))
    d->waits = false;
  else
    uv_timer_start(&d->retry, on_retry, RETRY_MS, 0);
}

/* While this is false the kernel queues connections: one waits for the limiter, or all places for
 * handshakes are taken. */
static bool ready(void *self) {
  struct tc_acceptor *d = self;

  return !d->waits && atomic_load(d->env.handshakes) < d->env.config->agents_handshakes_max;
}

static void accepted(void *self, int fd, const char *peer) {
  struct tc_acceptor *d = self;

  d->first = (struct tc_order){ .kind = TC_ORDER_ACCEPT, .fd = fd, .source = tb_source_of(fd) };
  snprintf(d->first.peer, sizeof d->first.peer, "%s", peer);
  if (decide(d, &d->first)) return;
  d->waits = true;
  uv_timer_start(&d->retry, on_retry, RETRY_MS, 0);
}

static bool takes_last(void *self, unsigned left) {
  const struct tc_acceptor *d = self;
  size_t all;

  (void)least_loaded(d, &all);
  return all < TC_FEW_PEERS && left > TC_FDS_KEPT_FREE / 2;
}

static tb_rc listen_as_reported(struct tc_acceptor *d, struct tb_diag *diag) {
  struct tc_listener_sink sink = {
    .self = d, .ready = ready, .accepted = accepted, .takes_last = takes_last
  };
  const char *address = d->env.config->listen_agents;

  return d->env.socket->fd != 0
             ? tc_listener_adopt(d->env.uv, d->env.socket->fd, address, sink, diag, &d->listener)
             : tc_listener_open(d->env.uv, address, sink, diag, &d->listener);
}

tb_rc tc_acceptor_open(const struct tc_acceptor_env *env, struct tb_diag *diag,
                       struct tc_acceptor **out) {
  struct tc_acceptor *d = calloc(1, sizeof *d);
  tb_rc rc;

  if (d == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  d->env = *env;
  rc = listen_as_reported(d, diag);
  if (rc != TB_OK) {
    free(d);
    return rc;
  }
  tc_listener_keep_free(d->listener, TC_FDS_KEPT_FREE);
  uv_timer_init(env->uv, &d->retry);
  d->retry.data = d;
  snprintf(d->address, sizeof d->address, "%s", tc_listener_address(d->listener));
  *out = d;
  return TB_OK;
}

void tc_acceptor_close(struct tc_acceptor *d) {
  if (d == NULL || d->listener == NULL) return;
  tc_listener_close(TB_MOVE(d->listener));
  uv_close((uv_handle_t *)&d->retry, NULL);
  if (d->waits) close(d->first.fd);
}

void tc_acceptor_free(struct tc_acceptor *d) {
  free(d);
}

const char *tc_acceptor_address(const struct tc_acceptor *d) {
  return d->address;
}
