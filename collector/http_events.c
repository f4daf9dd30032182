/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/live: a connection that reads the ring of http_live.h.
 *
 * As long as somebody reads, an overview of all streams is put together once a second on a worker; its
 * cost does not depend on the number of readers, and without one there is none. */
#include <string.h>

#include "collector/clock.h"
#include "collector/http_private.h"
#include "collector/http_query.h"
#include "collector/overview.h"
#include "collector/times.h"

#define KINDS_DEFAULT "overview,alert,generation"

enum { OWED_BYTES_MAX = 64 << 10, OVERVIEW_MS = 1000, HISTORY_BYTES_MAX = 64 << 20 };

void tc__live_pump(struct tc__http_conn *c) {
  const void *text;
  size_t n;

  while (tc_tls_unsent(c->tls) < OWED_BYTES_MAX &&
         tc_live_next(c->http->live, c->live, &text, &n)) {
    tc_tls_send(c->tls, text, n);
    c->since_ms = uv_now(c->http->env.tls->uv);
  }
}

void tc__live_pump_all(struct tc_http *http) {
  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next)
    if (c->live != NULL) tc__live_pump(c);
}

/* --- overviews --------------------------------------------------------------------------------- */

static void make_overview(struct tc__http_job *job, struct tc_archive_desk *desk) {
  tc_overview_write(desk, job->http->env.archive.reports, &job->answer.body);
}

static void overview_made(struct tc__http_job *job, bool wanted) {
  struct tc_http *http = job->http;

  http->overview = false;
  if (wanted && job->answer.body.rc == TB_OK && job->answer.body.len > 0)
    tc_live_publish(http->live, "overview", job->answer.body.data, job->answer.body.len);
  tc__live_pump_all(http);
}

static void begin_overview(struct tc_http *http) {
  const struct tc__http_job job = { .run = make_overview, .done = overview_made };

  if (http->overview) return;
  http->overview_ms = uv_now(http->env.tls->uv);
  http->overview = tc__job_begin(http, NULL, &job);
}

void tc__live_tick(struct tc_http *http) {
  uint64_t now_ms = uv_now(http->env.tls->uv);

  if (tc_live_readers(http->live) == 0) return;
  if (now_ms - http->overview_ms >= OVERVIEW_MS) begin_overview(http);
  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next) {
    if (c->live == NULL || now_ms - c->since_ms < http->env.limits.heartbeat_ms) continue;
    if (tc_tls_unsent(c->tls) < OWED_BYTES_MAX) tc_tls_send(c->tls, ": alive\n\n", 9);
    c->since_ms = now_ms;
  }
}

/* --- a new reader ------------------------------------------------------------------------------ */

/* Not numbered: it is for this reader, and nobody misses it. Whoever comes back has his own. */
static void send_history(struct tc__http_conn *c) {
  struct tc_http *http = c->http;
  struct tb_mem mem;
  struct tb_buf text;

  tb_mem_init(&mem, tb_mem_libc, NULL, HISTORY_BYTES_MAX);
  tb_buf_init(&text, &mem);
  tb_buf_text(&text, "event: history\ndata: ");
  tc_history_write(http->env.history, tc_wall_ns(), &text);
  tb_buf_text(&text, "\n\n");
  if (text.rc == TB_OK) tc_tls_send(c->tls, text.data, text.len);
  tb_buf_fini(&text);
}

void tc__live_begin(struct tc__http_conn *c) {
  struct tc_http *http = c->http;
  const char *kinds = KINDS_DEFAULT, *last_id = c->head.request.last_event_id;
  const struct tc_http_param params[] = { { "kinds", &kinds }, { "last_event_id", &last_id } };
  struct tc__http_answer a;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (tc_http_query(c->head.request.query, params, 2, &diag) != TB_OK) {
    tc__conn_fail(c, 400, diag.text);
    return;
  }
  if (tc_live_readers(http->live) >= http->env.limits.live_max) {
    tc__conn_fail(c, 503, "as many readers as http.live_max allows are here");
    return;
  }
  tc__answer_init(&a, "text/event-stream");
  a.bytes = UINT64_MAX;
  if (c->head.request.is_head) {
    tc__conn_begin(c, &a);
    tc__conn_done(c);
  } else if (tc_live_join(http->live, last_id, kinds, &c->live) != TB_OK) {
    tc__conn_fail(c, 400, "kinds= is too long");
  } else {
    tc__feed_listen(http);
    tc__conn_begin(c, &a);
    tc_tls_send(c->tls, "retry: 1000\n\n", 13);
    if (http->env.history != NULL && last_id[0] == '\0' && tc_live_reads(c->live, "history"))
      send_history(c);
    tc__live_pump(c);
    begin_overview(http); /* so that a page need not wait for its first figures */
  }
  tc__answer_fini(&a);
}
