/* SPDX-License-Identifier: Apache-2.0 */
/* /api/v1/live: a connection that reads the ring of live.h.
 *
 * While a reader wants overviews, a worker writes an overview of all streams each second, once for all readers. */
#include <string.h>

#include "base/clock.h"
#include "collector/http/overview.h"
#include "collector/http/private.h"
#include "config/times.h"
#include "proto/archive.pb-c.h"

#define KINDS_DEFAULT "overview,alert,generation"

enum {
  TURN_BYTES = 64 << 10, /* size of http->turn_bytes */
  OWED_BYTES_MAX = 64 << 10,
  OVERVIEW_MS = 1000,
  HISTORY_BYTES_MAX = 64 << 20
};

/* --- sending ----------------------------------------------------------------------------------- */

/* Sends all available events in one write. */
bool tc__live_turn(struct tc__http_conn *c) {
  struct tc_http *http = c->http;
  size_t gathered = 0, n;
  const void *text;
  bool more = false;

  if (tc_tls_unsent(c->tls) >= OWED_BYTES_MAX) return false; /* on_drained() continues */
  while (tc_live_next(http->live, c->live, &text, &n)) {
    if (n > TURN_BYTES - gathered) {
      more = true;
      break;
    }
    memcpy(http->turn_bytes + gathered, text, n);
    gathered += n;
  }
  if (gathered == 0 && !more) return false;
  tc_tls_send(c->tls, http->turn_bytes, gathered);
  if (more) tc_tls_send(c->tls, text, n);
  c->since_ms = uv_now(http->env.tls->uv);
  return more;
}

void tc__live_pump_all(struct tc_http *http) {
  for (struct tc__http_conn *c = http->first; c != NULL; c = c->next)
    if (c->live != NULL) tc__turn_take(c);
}

void tc__live_end(struct tc__http_conn *c) {
  if (c->live == NULL) return;
  tc_live_leave(c->http->live, TB_MOVE(c->live));
  tc__feed_listen(c->http);
}

tb_rc tc__live_open(struct tc_http *http) {
  return tc_live_new(http->env.limits.live_bytes_max, http->env.started_wall_ns, &http->live);
}

void tc__live_free(struct tc_http *http) {
  tc_live_free(http->live);
}

/* --- overviews --------------------------------------------------------------------------------- */

static void make_overview(struct tc__http_job *job, struct tc_query_session *session) {
  tc_overview_write(session, tc_query_reports(job->http->env.query), &job->answer.body);
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

  if (http->overview || !tc_live_wanted(http->live, "overview")) return;
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

/* The history has no event number, because only a new reader gets it; a reader that reconnects has it already. */
static void send_history(struct tc__http_conn *c) {
  struct tc_http *http = c->http;
  struct tb_mem mem;
  struct tb_buf text;

  tb_mem_init(&mem, tb_mem_libc, NULL, HISTORY_BYTES_MAX);
  tb_buf_init(&text, &mem);
  tb_buf_text(&text, "event: history\ndata: ");
  tc_pauses_history_write(http->env.history, tc_wall_ns(), &text);
  tb_buf_text(&text, "\n\n");
  if (text.rc == TB_OK) tc_tls_send(c->tls, text.data, text.len);
  tb_buf_fini(&text);
}

void tc__live_begin(struct tc__http_conn *c) {
  struct tc_http *http = c->http;
  const char *kinds = KINDS_DEFAULT, *last_id = c->head.request.last_event_id;
  struct tc__http_question q;
  struct tc__http_answer a;

  if (!tc__question_read(c, &q)) return;
  const Tracecollect__V1__LiveRequest *asked = (const Tracecollect__V1__LiveRequest *)q.message;
  if (*asked->kinds != '\0') kinds = asked->kinds; /* both point into the request */
  if (*asked->last_event_id != '\0') last_id = asked->last_event_id;
  tc__question_fini(&q);
  if (!tc__place_may_listen(c)) return;
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
    tc__turn_take(c);
    begin_overview(http); /* a page need not wait for its first figures */
  }
  tc__answer_fini(&a);
}
