/* SPDX-License-Identifier: Apache-2.0 */
/* One connection. While a request is being answered (busy), later bytes wait in tls, so that answers are sent in the order
 * of their requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/source.h"
#include "collector/base/logger.h"
#include "collector/http/private.h"

enum { OWED_BYTES_MAX = 256 << 10 }; /* above this no further request is read */

static uint64_t now_ms(const struct tc__http_conn *c) {
  return uv_now(c->http->env.tls->uv);
}

/* --- answers ----------------------------------------------------------------------------------- */

static bool may_keep(const struct tc__http_conn *c, const struct tc__http_answer *a) {
  return c->head.request.keep && !c->ending && !c->spare && a->bytes != UINT64_MAX &&
         c->body_left == 0 && !c->http->closing;
}

void tc__conn_begin(struct tc__http_conn *c, const struct tc__http_answer *a) {
  bool keep = may_keep(c, a);
  char head[TC__HEAD_BYTES_MAX];
  size_t n = tc__answer_head(a, &c->head.request, keep, head);

  tc__audit(c, a);
  tc_metric_add(&c->http->env.metrics->http_requests_total, 1);
  if (a->status >= 400 && a->status < 500)
    tc_metric_add(&c->http->env.metrics->http_client_errors_total, 1);
  if (!keep) c->ending = true;
  tc_tls_send(c->tls, head, n);
}

void tc__conn_answer(struct tc__http_conn *c, struct tc__http_answer *a) {
  if (a->body.rc != TB_OK) tc__answer_fail_rc(a, a->body.rc, "");
  a->bytes = a->body.len;
  if (a->status == 200 && a->tag[0] != '\0' &&
      tc_http_tag_listed(c->head.request.if_none_match, a->tag, true))
    a->status = 304;
  tc__conn_begin(c, a);
  bool whole = !c->head.request.is_head && a->status != 304;
  if (whole && tc__rest_begin(c, a)) return;
  if (whole) tc_tls_send(c->tls, a->body.data, a->body.len);
  tc__conn_done(c);
}

void tc__conn_fail(struct tc__http_conn *c, int status, const char *why) {
  struct tc__http_answer a;

  tc__answer_init(&a, NULL);
  tc__answer_fail(&a, status, "%s", why);
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}

void tc__conn_fail_rc(struct tc__http_conn *c, tb_rc rc, const char *why) {
  struct tc__http_answer a;

  tc__answer_init(&a, NULL);
  tc__answer_fail_rc(&a, rc, why);
  tc__conn_answer(c, &a);
  tc__answer_fini(&a);
}

/* If bytes are unsent, on_drained() closes the connection later. */
void tc__conn_done(struct tc__http_conn *c) {
  tc__body_free(c);
  c->route = NULL;
  c->busy = c->asks = false;
  c->since_ms = now_ms(c);
  if (c->ending) {
    if (tc_tls_unsent(c->tls) == 0) tc_tls_close(c->tls, NULL);
    return;
  }
  tc_http_head_init(&c->head, c->http->env.limits.head_bytes_max);
  if (!c->feeding) tc_tls_resume(c->tls); /* read the next request */
}

/* --- bytes ------------------------------------------------------------------------------------- */

/* The next request's beginning is unknown: sends an error and closes the connection. */
static void end_with(struct tc__http_conn *c, int status, const char *why) {
  c->ending = true;
  tc__conn_fail(c, status, why);
}

static bool may_read_on(const struct tc__http_conn *c) {
  return !c->busy && !c->ending && tc_tls_unsent(c->tls) <= OWED_BYTES_MAX;
}

/* Discards bytes from a reader of live events, up to a limit. */
static void discard(struct tc__http_conn *c, size_t n) {
  c->head.bytes += n;
  if (c->head.bytes > 2 * c->http->env.limits.head_bytes_max)
    tc_tls_abort(c->tls, "sends requests while it reads live events");
}

static size_t take_head(struct tc__http_conn *c, const unsigned char *bytes, size_t n) {
  size_t used;

  if (c->head.bytes == 0) c->since_ms = now_ms(c);
  tb_rc rc = tc_http_head_feed(&c->head, bytes, n, &used);
  if (rc == TB_END) {
    c->busy = true;
    c->body_left = c->head.request.body_bytes;
    tc__http_dispatch(c);
  } else if (rc != TB_OK) {
    end_with(c, c->head.status, c->head.why);
  }
  return used;
}

static void take_requests(struct tc__http_conn *c, const unsigned char *bytes, size_t n,
                          size_t *used) {
  while (*used < n && may_read_on(c) && c->live == NULL)
    *used += (c->body != NULL ? tc__body_take : take_head)(c, bytes + *used, n - *used);
}

static tb_rc on_bytes(void *self, const unsigned char *bytes, size_t n, size_t *used) {
  struct tc__http_conn *c = self;

  *used = 0;
  c->unread_ms = 0;
  c->feeding = true;
  take_requests(c, bytes, n, used);
  c->feeding = false;
  if (c->live != NULL) {
    discard(c, n - *used);
    *used = n;
    return TB_OK;
  }
  return may_read_on(c) ? TB_OK : TB_AGAIN;
}

static void on_open(void *self) {
  struct tc__http_conn *c = self;

  tc__place_greeted(c);
  c->since_ms = now_ms(c);
}

static void on_drained(void *self) {
  struct tc__http_conn *c = self;

  c->owes_ms = 0;
  if (c->file != NULL || c->rest != NULL || c->live != NULL)
    tc__turn_take(c);
  else if (c->ending)
    tc_tls_close(c->tls, NULL);
  else if (!c->busy)
    tc_tls_resume(c->tls);
}

/* The peer closed its side while its request was being answered. It may not read any more, so the connection and its running
 * job end. Not while an answer is being sent: a peer that no longer reads then answers with a reset. */
static void on_left(void *self) {
  struct tc__http_conn *c = self;

  if (c->busy && c->file == NULL && c->rest == NULL)
    tc_tls_abort(c->tls, "closed before the answer was ready");
}

static void on_closed(void *self, const char *why) {
  struct tc__http_conn *c = self;
  char text[TC_ESCAPE_MAX + 1];

  if (why[0] != '\0')
    tc_log(TC_INFO, "http", "peer=%s: %s", c->peer, tc_escape(text, why, strlen(why)));
  tc__place_left(c);
  tc__live_end(c);
  tc__lease_left(c);
  tc__turn_leave(c);
  c->tls = NULL;
  if (c->job == NULL)
    tc__conn_free(c);
  else
    tc__job_call_off(c->job); /* the end of the job frees c */
}

void tc__conn_free(struct tc__http_conn *c) {
  tc__body_free(c);
  tc__http_file_free(c);
  tc__rest_free(c);
  free(c);
}

/* --- time -------------------------------------------------------------------------------------- */

/* why NULL: a late request, which gets an error; else the connection is aborted with this reason. */
static void time_out(struct tc__http_conn *c, const char *why) {
  static const char late[] = "the request took too long";

  tc_metric_add(&c->http->env.metrics->http_timeouts_total, 1);
  if (why != NULL) {
    tc_tls_abort(c->tls, why);
    return;
  }
  tc_log(TC_INFO, "http", "peer=%s: %s", c->peer, late);
  end_with(c, 408, late);
}

/* Live events may fit into the socket buffers of both hosts for a while, and heartbeats are added. So only the bytes that
 * the peer's host has acknowledged show that the peer reads. */
static bool is_stalled(struct tc__http_conn *c, uint64_t at_ms) {
  struct tc_tls_flow flow;

  tc_tls_flow(c->tls, &flow);
  if (!flow.owes || flow.taken != c->taken) c->moved_ms = at_ms;
  c->taken = flow.taken;
  return at_ms - c->moved_ms >= c->http->env.limits.stall_ms;
}

void tc__conn_tick(struct tc__http_conn *c, uint64_t at_ms) {
  const struct tc_http_limits *limits = &c->http->env.limits;
  bool unsent = tc_tls_unsent(c->tls) > 0;

  if (!unsent) c->owes_ms = 0;
  if (unsent && c->owes_ms == 0) c->owes_ms = at_ms;
  if (unsent || c->live != NULL) {
    if (is_stalled(c, at_ms)) time_out(c, "reads no bytes");
    return;
  }
  c->moved_ms = at_ms;
  if (c->busy || c->ending) return;
  if (c->head.bytes > 0 && at_ms - c->since_ms >= limits->request_ms)
    time_out(c, NULL);
  else if (c->head.bytes == 0 && at_ms - c->since_ms >= limits->idle_ms)
    tc_tls_close(c->tls, NULL);
}

void tc__conn_accept(const struct tc__http_door *door, int fd, const char *peer) {
  struct tc__http_conn *c = calloc(1, sizeof *c);
  struct tc_http *http = door->http;
  SSL_CTX *ctx = door->kind == TC__DOOR_TCP && http->is_tls ? http->ctx : NULL;
  struct tc_tls_sink sink = {
    .self = c,
    .open = on_open,
    .bytes = on_bytes,
    .drained = on_drained,
    .left = on_left,
    .closed = on_closed,
  };

  if (c == NULL) {
    close(fd);
    return;
  }
  if (tc_tls_accept(http->env.tls, ctx, fd, sink, &c->tls) != TB_OK) {
    free(c);
    return;
  }
  c->http = http;
  c->door = door;
  c->since_ms = c->moved_ms = now_ms(c);
  c->greets = ctx != NULL;
  c->owner = tb_source_of(fd);
  snprintf(c->peer, sizeof c->peer, "%s", peer);
  tc_http_head_init(&c->head, http->env.limits.head_bytes_max);
  tc__place_take(c);
}
