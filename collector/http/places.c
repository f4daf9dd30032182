/* SPDX-License-Identifier: Apache-2.0 */
/* A new connection gets one of connections_max places: a free one, or that of an unused or slow connection, which is closed.
 * If there is none, it gets a spare place, where only health and metrics are answered; the oldest spare is then closed.
 *
 * At most a quarter of the places may be in a TLS handshake, because unfinished handshakes cost a peer nothing. A further
 * one replaces another handshake, never a connection that has finished its handshake. */
#include <unistd.h>

#include "collector/base/logger.h"
#include "collector/http/private.h"

enum {
  SPARES = 32,
  GREETING_PART = 4, /* divisor of connections_max */
  LEAVING_MAX = 64,  /* closed, but their memory is not freed yet */
  SLOW_MS = 1000,    /* a connection whose answer is unsent for longer may be replaced */
  UNREAD_MS = 1000,  /* a connection with an unread request keeps its place for this time */
};

static uint64_t now_ms(const struct tc_http *http) {
  return uv_now(http->env.tls->uv);
}

/* --- replacing --------------------------------------------------------------------------------- */

/* The connection with the least merit is replaced: by kind, then by time. UINT64_MAX: not replaced. */
static uint64_t merit(const struct tc__http_conn *c, uint64_t at_ms) {
  enum { ANSWERED, WITHOUT_REQUEST, SLOW };
  const uint64_t kind_unit = UINT64_C(1) << 48;

  if (c->owes_ms != 0 && at_ms - c->owes_ms >= SLOW_MS) return SLOW * kind_unit + c->owes_ms;
  if (c->busy || c->live != NULL || tc_tls_unsent(c->tls) > 0) return UINT64_MAX;
  if (c->unread_ms != 0 && at_ms - c->unread_ms < UNREAD_MS) return UINT64_MAX;
  return (c->ending ? ANSWERED : WITHOUT_REQUEST) * kind_unit + c->since_ms;
}

/* Equal merit: takes the older one, which is later in the list. */
static struct tc__http_conn *lowest(const struct tc_http *http) {
  uint64_t at_ms = now_ms(http), least = UINT64_MAX - 1;
  struct tc__http_conn *found = NULL;

  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next) {
    uint64_t its = c->spare ? UINT64_MAX : merit(c, at_ms);

    if (its > least) continue;
    least = its;
    found = c;
  }
  return found;
}

/* Has its request arrived, but the loop has not read it yet because it accepts others first? */
static bool is_about_to_ask(const struct tc__http_conn *c) {
  return c->unread_ms == 0 && c->head.bytes == 0 && !c->greets && !c->ending &&
         tc_tls_is_unread(c->tls);
}

static struct tc__http_conn *least(const struct tc_http *http) {
  struct tc__http_conn *found;

  while ((found = lowest(http)) != NULL && is_about_to_ask(found)) found->unread_ms = now_ms(http);
  return found;
}

static struct tc__http_conn *oldest_spare(const struct tc_http *http) {
  struct tc__http_conn *found = NULL;

  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next)
    if (c->spare) found = c;
  return found;
}

/* Returns the oldest handshake of the owner that has the most, so that one owner cannot displace others. */
static struct tc__http_conn *least_greeting(const struct tc_http *http) {
  struct tc__http_conn *found = NULL;
  size_t most = 0;

  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next) {
    size_t same = 0;

    if (!c->greets) continue;
    for (const struct tc__http_conn *o = http->first; o != NULL; o = o->next)
      same += o->greets && o->owner == c->owner;
    if (same < most) continue;
    most = same;
    found = c;
  }
  return found;
}

/* Leaves the place at once, so that the count is right for the next accept in this turn. */
static void give_way_as(struct tc__http_conn *c, const char *why) {
  c->http->leaving++;
  tc__place_leave(c);
  c->ending = true;
  tc_tls_abort(c->tls, why);
}

static void give_way(struct tc__http_conn *c) {
  give_way_as(
      c, "gives way to a newer connection: there are http.requests_max, or no more descriptors");
}

/* --- taking and leaving a place ---------------------------------------------------------------- */

static bool is_full(const struct tc_http *http) {
  return http->count - http->spares >= http->env.limits.connections_max;
}

static bool is_full_of_greeting(const struct tc_http *http) {
  return http->greeting > 1 && http->greeting > http->env.limits.connections_max / GREETING_PART;
}

bool tc__place_ready(void *self) {
  const struct tc__http_door *door = self;

  return door->http->leaving < LEAVING_MAX;
}

bool tc__place_takes_last(void *self, unsigned left) {
  struct tc_http *http = ((struct tc__http_door *)self)->http;
  struct tc__http_conn *victim = least(http);

  if (victim == NULL && http->count < TC_FEW_PEERS) return left > TC_FDS_KEPT_FREE / 2;
  if (victim == NULL) victim = oldest_spare(http);
  if (victim == NULL) return false;
  tc_metric_add(&http->env.metrics->http_gave_way_total, 1);
  give_way(victim);
  return true;
}

void tc__place_accepted(void *self, int fd, const char *peer) {
  const struct tc__http_door *door = self;
  struct tc_http *http = door->http;
  struct tc__http_conn *victim = is_full(http) ? least(http) : NULL;

  if (is_full(http)) tc_metric_add(&http->env.metrics->http_gave_way_total, 1);
  if (victim != NULL) give_way(victim);
  if (is_full(http) && http->spares >= SPARES) give_way(oldest_spare(http));
  tc__conn_accept(door, fd, peer);
  if (!is_full_of_greeting(http)) return;
  tc_metric_add(&http->env.metrics->http_gave_way_total, 1);
  give_way_as(least_greeting(http), "gives way to a newer connection: a quarter of "
                                    "http.requests_max are in their handshakes");
}

void tc__place_take(struct tc__http_conn *c) {
  struct tc_http *http = c->http;

  c->spare = is_full(http);
  c->next = http->first;
  if (c->next != NULL) c->next->at = &c->next;
  c->at = &http->first;
  http->first = c;
  http->count++;
  http->spares += c->spare;
  http->greeting += c->greets;
  tc_metric_add(&http->env.metrics->http_connections, 1);
}

void tc__place_greeted(struct tc__http_conn *c) {
  c->http->greeting -= c->greets;
  c->greets = false;
}

void tc__place_leave(struct tc__http_conn *c) {
  if (c->at == NULL) return;
  *c->at = c->next;
  if (c->next != NULL) c->next->at = c->at;
  c->at = NULL;
  c->http->count--;
  c->http->spares -= c->spare;
  tc__place_greeted(c);
  tc_metric_sub(&c->http->env.metrics->http_connections, 1);
}

void tc__place_left(struct tc__http_conn *c) {
  if (c->at == NULL) c->http->leaving--;
  tc__place_leave(c);
}

/* --- questions --------------------------------------------------------------------------------- */

/* A connection in a spare place gets a normal one if one is free now. */
bool tc__place_may_wait(struct tc__http_conn *c) {
  if (c->spare && !is_full(c->http)) {
    c->spare = false;
    c->http->spares--;
  }
  if (!c->spare) return true;
  tc__conn_fail(c, 503, "as many questions as http.requests_max allows are being answered");
  return false;
}

bool tc__place_may_ask(struct tc__http_conn *c) {
  size_t asked = 0;

  if (!tc__place_may_wait(c)) return false;
  for (const struct tc__http_conn *o = c->http->first; o != NULL; o = o->next)
    asked += o->asks && o->owner == c->owner;
  if (asked >= c->http->env.limits.owner_questions_max) {
    tc__conn_fail(c, 503,
                  "as many of your questions as http.owner_requests_max allows are being answered");
    return false;
  }
  c->asks = true;
  return true;
}

bool tc__place_may_listen(struct tc__http_conn *c) {
  const struct tc_http *http = c->http;
  size_t listening = 0;

  if (!tc__place_may_wait(c)) return false;
  for (const struct tc__http_conn *o = http->first; o != NULL; o = o->next)
    listening += o->live != NULL && o->owner == c->owner;
  if (tc_live_readers(http->live) >= http->env.limits.live_max)
    tc__conn_fail(c, 503, "as many readers as http.live_max allows are here");
  else if (listening >= http->env.limits.owner_live_max)
    tc__conn_fail(c, 503, "as many of your readers as http.owner_live_max allows are here");
  else
    return true;
  return false;
}
