/* SPDX-License-Identifier: Apache-2.0 */
/* Leases: a request is passed to the leases' thread, which answers once there are events; no worker waits meanwhile. Only
 * the loop uses the connection: the leases' thread puts the answered request into a list and wakes the loop, which also
 * frees requests whose connection was closed. Protobuf is sent as packed by the event loops; a worker converts it to
 * JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/http/private.h"
#include "proto/put.h"
#include "proto/unpack.h"

enum {
  JSON_BYTES_MAX = 4 << 20, /* packed bytes; JSON is about eight times as long */
  JSON_MEMORY_MAX = 256 << 20,
  REPLY_BUNDLES = 1, /* fields of proto/archive.proto */
  BUNDLE_NUMBER = 1,
  BUNDLE_LOST = 2,
  BUNDLE_HEAD_BYTES_MAX = 2 * TP_FIELD_BYTES,
};

struct tc__lease_wait {
  STAILQ_ENTRY(tc__lease_wait) answered;
  struct tc_http *http;
  struct tc__http_conn *conn; /* used by the loop only; NULL: closed */
  struct tc_lease_ask ask;
  struct tc__http_answer answer; /* NEXT: the body is a NextReply */
  struct tc_lease_answer said;   /* without bundles */
  char words[200];
};

/* --- on the leases' thread --------------------------------------------------------------------- */

static size_t write_head(const struct tc_bundle *b, uint64_t lost,
                         unsigned char head[BUNDLE_HEAD_BYTES_MAX]) {
  unsigned char *end = tp_put_number(head, BUNDLE_NUMBER, b->number);

  return (size_t)(tp_put_number(end, BUNDLE_LOST, lost) - head);
}

/* Writes a NextReply with the packed bundles. */
static void pack_bundles(const struct tc_lease_answer *answer, struct tb_buf *out) {
  unsigned char head[TP_FIELD_BYTES + BUNDLE_HEAD_BYTES_MAX], fields[BUNDLE_HEAD_BYTES_MAX];
  const struct tc_bundle *b = answer->bundles;
  uint64_t lost = answer->lost;

  for (size_t i = 0; i < answer->n; i++, b = b->next) {
    size_t len = write_head(b, lost, fields);
    unsigned char *end = tp_put_length(head, REPLY_BUNDLES, len + b->len);

    tb_buf_add(out, head, (size_t)(end - head));
    tb_buf_add(out, fields, len);
    tb_buf_add(out, b->bytes, b->len);
    if (b->next != NULL) lost = b->next->position - (b->position + b->events);
  }
}

static void on_answer(struct tc_lease_ask *ask, const struct tc_lease_answer *answer) {
  struct tc__lease_wait *w = (void *)((char *)ask - offsetof(struct tc__lease_wait, ask));
  struct tc_http *http = w->http;

  sk_X509_pop_free(TB_MOVE(ask->reader), X509_free);
  w->said = *answer;
  if (answer->rc != TB_OK) snprintf(w->words, sizeof w->words, "%s", answer->error);
  if (ask->kind == TC_LEASE_NEXT && answer->rc == TB_OK) pack_bundles(answer, &w->answer.body);
  pthread_mutex_lock(&http->lock);
  STAILQ_INSERT_TAIL(&http->leases_answered, w, answered);
  pthread_mutex_unlock(&http->lock);
  uv_async_send(&http->lease_wake);
}

/* --- on the loop ------------------------------------------------------------------------------- */

static void wait_free(struct tc__lease_wait *w) {
  tc__answer_fini(&w->answer);
  free(w);
}

static void fail(struct tc__http_conn *c, const struct tc__lease_wait *w) {
  switch ((int)w->said.rc) {
  case TB_PROTOCOL: tc__conn_fail(c, 409, w->words); break;
  case TB_BUDGET: tc__conn_fail(c, 429, w->words); break;
  case TB_IO: tc__conn_fail(c, 503, w->words); break;
  default: tc__conn_fail_rc(c, w->said.rc, w->words); break;
  }
}

static void answer_opened(struct tc__http_conn *c, struct tc__lease_wait *w) {
  Tracecollect__V1__LeaseReply reply = TRACECOLLECT__V1__LEASE_REPLY__INIT;
  char id[TC__ID_HEX + 1];

  tc__write_id(w->said.lease, id);
  reply.id = id;
  reply.window_bytes = w->said.window_bytes;
  reply.expire_ns = w->said.expire_ns;
  w->answer.status = 201;
  snprintf(w->answer.what, sizeof w->answer.what, "%s", id);
  snprintf(w->answer.fields, sizeof w->answer.fields, "Location: /api/v1/leases/%s\r\n", id);
  tc__answer_put(&w->answer, tc__wants_protobuf(c), &reply.base);
  tc__conn_answer(c, &w->answer);
}

static void write_json(struct tc__http_job *job, struct tc_query_session *session) {
  struct tc__lease_wait *w = job->self;
  const struct tb_buf *packed = &w->answer.body;
  struct tb_arena arena;
  struct tb_mem mem;

  (void)session;
  tb_mem_init(&mem, tb_mem_libc, NULL, JSON_MEMORY_MAX);
  tb_arena_init(&arena, &mem, 1 << 20);
  ProtobufCAllocator allocator = tp_arena_allocator(&arena);
  Tracecollect__V1__NextReply *reply =
      tracecollect__v1__next_reply__unpack(&allocator, packed->len, packed->data);
  if (reply != NULL)
    tc__answer_put(&job->answer, false, &reply->base);
  else
    tc__answer_fail_rc(&job->answer, TB_NOMEM, "");
  tb_arena_fini(&arena);
}

static void json_written(struct tc__http_job *job, bool wanted) {
  tc__job_answer(job, wanted);
  wait_free(job->self);
}

/* Returns true if a worker owns w now. */
static bool answer_next(struct tc__http_conn *c, struct tc__lease_wait *w) {
  const struct tc__http_job job = { .run = write_json, .done = json_written, .self = w };

  if (tc__wants_protobuf(c)) {
    tc__answer_type(&w->answer, true, &tracecollect__v1__next_reply__descriptor);
    tc__conn_answer(c, &w->answer);
    return false;
  }
  if (tc__job_begin(c->http, c, &job)) return true;
  tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
  return false;
}

/* Returns true if a worker owns w now. */
static bool answer(struct tc__http_conn *c, struct tc__lease_wait *w) {
  if (w->said.rc != TB_OK) {
    fail(c, w);
  } else if (w->ask.kind == TC_LEASE_OPEN) {
    answer_opened(c, w);
  } else if (w->ask.kind == TC_LEASE_RELEASE) {
    w->answer.status = 204;
    tc__conn_answer(c, &w->answer);
  } else {
    return answer_next(c, w);
  }
  return false;
}

static struct tc__lease_wait *take_answered(struct tc_http *http) {
  pthread_mutex_lock(&http->lock);
  struct tc__lease_wait *w = STAILQ_FIRST(&http->leases_answered);
  if (w != NULL) STAILQ_REMOVE_HEAD(&http->leases_answered, answered);
  pthread_mutex_unlock(&http->lock);
  return w;
}

static void end_waits(struct tc_http *http) {
  struct tc__lease_wait *w;

  while ((w = take_answered(http)) != NULL) {
    struct tc__http_conn *c = w->conn;

    tc_metric_sub(&http->env.metrics->http_waits, 1);
    if (c != NULL) c->lease = NULL;
    if (c == NULL || !answer(c, w)) wait_free(w);
  }
}

static void on_wake(uv_async_t *handle) {
  struct tc_http *http = handle->data;

  if (!http->closing) end_waits(http);
}

void tc__lease_left(struct tc__http_conn *c) {
  struct tc__lease_wait *w = TB_MOVE(c->lease);

  if (w == NULL) return;
  w->conn = NULL;
  tc_leases_leave(w->http->env.leases, &w->ask);
}

void tc__leases_start(struct tc_http *http) {
  uv_async_init(http->env.tls->uv, &http->lease_wake, on_wake);
  http->lease_wake.data = http;
}

void tc__leases_close(struct tc_http *http) {
  uv_close((uv_handle_t *)&http->lease_wake, NULL);
}

void tc__leases_free(struct tc_http *http) {
  end_waits(http);
}

/* --- questions --------------------------------------------------------------------------------- */

static void ask(struct tc__http_conn *c, const struct tc_lease_ask *question) {
  struct tc__lease_wait *w = calloc(1, sizeof *w);

  if (w == NULL) {
    tc__conn_fail(c, 503, tb_rc_text(TB_NOMEM));
    return;
  }
  w->http = c->http;
  w->conn = c;
  c->lease = w;
  tc__answer_init(&w->answer, "application/json");
  w->ask = *question;
  w->ask.owner = c->owner;
  w->ask.reader = tc_tls_chain_of(tc_tls_ssl(c->tls));
  w->ask.answer = on_answer;
  tc_metric_add(&c->http->env.metrics->http_waits, 1);
  tc_leases_ask(c->http->env.leases, &w->ask);
}

static tb_rc copy_name(const char *exact, const char *prefix, char out[TC_LEASE_NAME_MAX + 1],
                       bool *out_is_prefix, struct tb_diag *diag) {
  *out_is_prefix = *prefix != '\0';
  if (*exact != '\0' && *prefix != '\0')
    return tb_fail(diag, TB_PROTOCOL, "a name and a prefix of it exclude each other");
  const char *name = *prefix != '\0' ? prefix : exact;
  if (strlen(name) > TC_LEASE_NAME_MAX)
    return tb_fail(diag, TB_PROTOCOL, "a name has at most %d bytes", TC_LEASE_NAME_MAX);
  strcpy(out, name);
  return TB_OK;
}

static tb_rc read_filter(const Tracecollect__V1__EventFilter *from, struct tc_lease_filter *out,
                         struct tb_diag *diag) {
  to_filter_all(&out->events);
  if (from == NULL) return TB_OK;
  TB_TRY(
      copy_name(from->service, from->service_prefix, out->service, &out->service_is_prefix, diag));
  TB_TRY(copy_name(from->instance, from->instance_prefix, out->instance, &out->instance_is_prefix,
                   diag));
  out->one_stream = from->stream.len != 0;
  if (out->one_stream && from->stream.len != sizeof out->stream)
    return tb_fail(diag, TB_PROTOCOL, "a stream's id has 16 bytes");
  if (out->one_stream) memcpy(out->stream, from->stream.data, sizeof out->stream);
  if (from->n_kinds != 0) to_filter_none(&out->events);
  for (size_t i = 0; i < from->n_kinds; i++)
    if (!to_filter_add(&out->events, from->kinds[i]))
      return tb_fail(diag, TB_PROTOCOL, "there is no kind of event called \"%.60s\"",
                     from->kinds[i]);
  if (from->goroutine != 0) out->events.goroutine = (int64_t)from->goroutine;
  out->events.duration_ns = from->min_duration_ns;
  return TB_OK;
}

static tb_rc read_open(const ProtobufCMessage *question, struct tb_diag *diag,
                       struct tc_lease_ask *out) {
  const Tracecollect__V1__LeaseRequest *request = (const Tracecollect__V1__LeaseRequest *)question;

  out->window_bytes = (size_t)request->window_bytes;
  return read_filter(request->filter, &out->filter, diag);
}

void tc__lease_open(struct tc__http_conn *c) {
  struct tc_lease_ask open = { .kind = TC_LEASE_OPEN };
  struct tc__http_question q;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  if (!tc__question_read(c, &q)) return;
  tb_rc rc = read_open(q.message, &diag, &open);
  tc__question_fini(&q);
  if (rc == TB_OK)
    ask(c, &open);
  else
    tc__conn_fail_rc(c, rc, diag.text);
}

static bool read_lease(struct tc__http_conn *c, uint64_t *out) {
  if (tc__read_id(c, out)) return true;
  tc__conn_fail(c, 404, "a lease has 16 hexadecimal digits");
  return false;
}

void tc__lease_next(struct tc__http_conn *c) {
  struct tc_lease_ask next = { .kind = TC_LEASE_NEXT };
  struct tc__http_question q;

  if (!read_lease(c, &next.lease) || !tc__question_read(c, &q)) return;
  const Tracecollect__V1__NextRequest *request = (Tracecollect__V1__NextRequest *)q.message;
  next.after = request->after;
  next.wait_ms = request->wait_ms;
  next.bytes_max = request->bytes;
  tc__question_fini(&q);
  if (!tc__wants_protobuf(c) && next.bytes_max > JSON_BYTES_MAX) next.bytes_max = JSON_BYTES_MAX;
  ask(c, &next);
}

void tc__lease_release(struct tc__http_conn *c) {
  struct tc_lease_ask release = { .kind = TC_LEASE_RELEASE };

  if (read_lease(c, &release.lease)) ask(c, &release);
}
