/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that waits for what another thread will say holds no worker. Only the loop touches the connection: the other
 * thread puts the wait into a list and wakes the loop, and a wait whose connection has gone ends there too. */
#include <assert.h>

#include "collector/http/private.h"

void tc__wait_begin(struct tc__http_conn *c, struct tc__http_wait *w) {
  w->http = c->http;
  w->conn = c;
  c->wait = w;
  w->http->waits++;
  tc_metric_add(&w->http->env.metrics->http_waits, 1);
}

void tc__wait_done(struct tc__http_wait *w) {
  struct tc_http *http = w->http;

  pthread_mutex_lock(&http->lock);
  STAILQ_INSERT_TAIL(&http->waits_done, w, in_done);
  pthread_mutex_unlock(&http->lock);
  uv_async_send(&http->wait_wake);
}

void tc__wait_leave(struct tc__http_conn *c) {
  struct tc__http_wait *w = TB_MOVE(c->wait);

  if (w == NULL) return;
  w->conn = NULL;
  w->left(w);
}

static struct tc__http_wait *take(struct tc_http *http) {
  pthread_mutex_lock(&http->lock);
  struct tc__http_wait *w = STAILQ_FIRST(&http->waits_done);
  if (w != NULL) STAILQ_REMOVE_HEAD(&http->waits_done, in_done);
  pthread_mutex_unlock(&http->lock);
  return w;
}

static void end_waits(struct tc_http *http) {
  struct tc__http_wait *w;

  while ((w = take(http)) != NULL) {
    http->waits--;
    tc_metric_sub(&http->env.metrics->http_waits, 1);
    if (w->conn != NULL) w->conn->wait = NULL;
    w->done(w, w->conn);
  }
}

static void on_wake(uv_async_t *handle) {
  struct tc_http *http = handle->data;

  if (!http->closing) end_waits(http);
}

void tc__waits_open(struct tc_http *http) {
  uv_async_init(http->env.tls->uv, &http->wait_wake, on_wake);
  http->wait_wake.data = http;
}

void tc__waits_close(struct tc_http *http) {
  uv_close((uv_handle_t *)&http->wait_wake, NULL);
}

void tc__waits_free(struct tc_http *http) {
  end_waits(http);
  assert(http->waits == 0 && "who answers has stopped first");
}
