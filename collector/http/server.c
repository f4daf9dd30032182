/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/server.h"

#include <assert.h>
#include <stdlib.h>

#include "collector/http/private.h"

void tc_http_tick(struct tc_http *http) {
  struct tc__http_conn *next;

  if (http == NULL || http->closing) return;
  for (struct tc__http_conn *c = http->first; c != NULL; c = next) {
    next = c->next;
    tc__conn_tick(c, uv_now(http->env.tls->uv));
  }
  tc__live_tick(http);
  tc__longs_tick(http);
  tc__timeline_tick(http);
}

/* --- opening and closing ----------------------------------------------------------------------- */

tb_rc tc_http_reload(struct tc_http *http, struct tb_diag *diag) {
  const struct tc_tls_terms terms = { .alpn = "http/1.1",
                                      .alpn_may_be_none = true,
                                      .peer_may_be_none = true,
                                      .revoked = http->env.revoked };
  SSL_CTX *fresh;

  TB_TRY(tc_tls_context_new(http->env.certs, &terms, diag, &fresh));
  SSL_CTX_free(http->ctx);
  http->ctx = fresh;
  return TB_OK;
}

unsigned tc_http_recheck(struct tc_http *http) {
  unsigned ended = 0;

  if (http == NULL) return 0;
  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next) {
    if (tc_tls_ssl(c->tls) == NULL || !tc_tls_is_revoked(tc_tls_ssl(c->tls))) continue;
    c->ending = true;
    tc_tls_abort(c->tls, "certificate revoked");
    ended++;
  }
  return ended;
}

static void http_freep(struct tc_http **http) {
  tc_http_free(*http);
}

static void close_doors(struct tc_http *http) {
  for (unsigned i = 0; i < TC__DOORS; i++) tc_listener_close(TB_MOVE(http->doors[i].listener));
}

static tb_rc open_door(struct tc_http *http, enum tc__door_kind kind, struct tb_diag *diag) {
  const struct tc_http_env *env = &http->env;
  const char *address = kind == TC__DOOR_METRICS ? env->metrics_address : env->address;
  struct tc__http_door *door = &http->doors[kind];
  struct tc_listener_sink sink = { door, tc__place_ready, tc__place_accepted,
                                   tc__place_takes_last };
  uv_loop_t *uv = env->tls->uv;

  *door = (struct tc__http_door){ .http = http, .kind = kind };
  if (kind == TC__DOOR_SOCKET) {
    TB_TRY(tc_listener_open_path(uv, env->path, sink, diag, &door->listener));
  } else {
    if (*address == '\0') return TB_OK;
    TB_TRY(tb_hostport_parse(address, diag, &door->where));
    TB_TRY(kind == TC__DOOR_TCP && env->socket != 0
               ? tc_listener_adopt(uv, env->socket, address, sink, diag, &door->listener)
               : tc_listener_open(uv, address, sink, diag, &door->listener));
  }
  tc_listener_keep_free(door->listener, TC_FDS_KEPT_FREE);
  return TB_OK;
}

/* Opens all doors, or none. */
static tb_rc open_doors(struct tc_http *http, struct tb_diag *diag) {
  tb_rc rc = TB_OK;

  for (unsigned i = 0; i < TC__DOORS && rc == TB_OK; i++) rc = open_door(http, i, diag);
  if (rc != TB_OK) close_doors(http);
  http->is_tls = !tb_host_is_loopback(http->doors[TC__DOOR_TCP].where.host);
  return rc;
}

tb_rc tc_http_open(const struct tc_http_env *env, struct tb_diag *diag, struct tc_http **out) {
  TB_CLEANUP(http_freep) struct tc_http *http = calloc(1, sizeof *http);
  tb_rc rc;

  if (http == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  http->env = *env;
  pthread_mutex_init(&http->lock, NULL);
  pthread_cond_init(&http->idle, NULL);
  STAILQ_INIT(&http->leases_answered);
  for (unsigned i = 0; i < TC__LANES; i++) TAILQ_INIT(&http->lanes[i].waiting);
  http->timeline = tc_timeline_new(env->limits.timeline_bytes);
  if (http->timeline == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  TB_TRY(tc__turns_open(http));
  TB_TRY(tc__live_open(http));
  TB_TRY(tc_http_reload(http, diag));
  TB_TRY(open_doors(http, diag));
  rc = tc__feed_open(http);
  if (rc != TB_OK) {
    close_doors(http);
    return tb_fail(diag, rc, "%s", tb_rc_text(rc));
  }
  tc__turns_start(http);
  tc__leases_start(http);
  *out = TB_MOVE(http);
  return TB_OK;
}

void tc_http_close(struct tc_http *http) {
  if (http == NULL) return;
  http->closing = true;
  tc__feed_close(http);
  tc__turns_close(http);
  tc__leases_close(http);
  tc__longs_close(http);
  close_doors(http);
  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next) tc_tls_abort(c->tls, NULL);
  tc__jobs_end(http);
}

void tc_http_free(struct tc_http *http) {
  if (http == NULL) return;
  tc__leases_free(http);
  assert(http->first == NULL && !http->overview && LIST_EMPTY(&http->long_jobs));
  tc__feed_free(http);
  tc__live_free(http);
  free(http->turn_bytes);
  tc_timeline_free(http->timeline);
  SSL_CTX_free(http->ctx);
  pthread_cond_destroy(&http->idle);
  pthread_mutex_destroy(&http->lock);
  free(http);
}

static const char *address_of(const struct tc_http *http, enum tc__door_kind kind) {
  const struct tc_listener *listener = http->doors[kind].listener;

  return listener != NULL ? tc_listener_address(listener) : "";
}

const char *tc_http_address(const struct tc_http *http) {
  return address_of(http, TC__DOOR_TCP);
}

const char *tc_http_path(const struct tc_http *http) {
  return address_of(http, TC__DOOR_SOCKET);
}

const char *tc_http_metrics_address(const struct tc_http *http) {
  return address_of(http, TC__DOOR_METRICS);
}
