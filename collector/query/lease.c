/* SPDX-License-Identifier: Apache-2.0 */
/* A long poll must not hold a worker: its context goes with the question to the leases' thread, which
 * answers on it, and the worker goes on with a spare one. There are as many as can be waiting, since
 * a lease has at most one question. */
#include "collector/query/server_private.h"

#include <nng/protocol/reqrep0/rep.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "proto/put.h"
#include "tls/identity.h"

enum {
  NEXT_BYTES = 1 << 20,
  NEXT_BYTES_MAX = 16 << 20,
  SPARE_LINES = 8, /* answers on their way out, asks on their way in */
  REPLY_NEXT = 9,  /* fields of proto/archive.proto */
  NEXT_BUNDLES = 1,
  BUNDLE_NUMBER = 1,
  BUNDLE_LOST = 2,
  BUNDLE_HEAD_BYTES_MAX = 2 * TP_FIELD_BYTES,
};

/* --- lines ------------------------------------------------------------------------------------- */

static struct tc__line *take_line(struct tc_archive *a) {
  pthread_mutex_lock(&a->lock);
  struct tc__line *line = a->spare;
  if (line != NULL) a->spare = line->next;
  pthread_mutex_unlock(&a->lock);
  return line;
}

static void give_back(struct tc__line *line) {
  struct tc_archive *a = line->archive;

  pthread_mutex_lock(&a->lock);
  line->next = a->spare;
  a->spare = line;
  pthread_mutex_unlock(&a->lock);
}

static void on_sent(void *self) {
  struct tc__line *line = self;

  if (nng_aio_result(line->aio) != 0) nng_msg_free(nng_aio_get_msg(line->aio));
  give_back(line);
}

tb_rc tc__lines_open(struct tc_archive *a, struct tb_diag *diag) {
  if (a->env.leases == NULL) return TB_OK;
  size_t n = (size_t)a->env.config->lease_max + SPARE_LINES;
  a->lines = calloc(n, sizeof *a->lines);
  if (a->lines == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  for (; a->n_lines < n; a->n_lines++) {
    struct tc__line *line = &a->lines[a->n_lines];

    line->archive = a;
    if (nng_ctx_open(&line->ctx, a->socket) != 0 || nng_aio_alloc(&line->aio, on_sent, line) != 0)
      return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
    give_back(line);
  }
  return TB_OK;
}

void tc__lines_close(struct tc_archive *a) {
  for (size_t i = 0; i < a->n_lines; i++) nng_aio_stop(a->lines[i].aio);
  for (size_t i = 0; i < a->n_lines; i++) nng_aio_free(a->lines[i].aio);
  free(a->lines);
}

/* --- answers, on the leases' thread ------------------------------------------------------------ */

static nng_msg *pack_words(const struct tc_lease_ask *ask, const struct tc_lease_answer *answer) {
  Tracecollect__V1__Reply reply = TRACECOLLECT__V1__REPLY__INIT;
  Tracecollect__V1__LeaseReply lease = TRACECOLLECT__V1__LEASE_REPLY__INIT;
  Tracecollect__V1__ReleaseReply release = TRACECOLLECT__V1__RELEASE_REPLY__INIT;

  reply.rc = answer->rc;
  if (answer->rc != TB_OK) {
    reply.error = (char *)(uintptr_t)answer->error; /* packing only reads it */
  } else if (ask->kind == TC_LEASE_OPEN) {
    lease.lease = answer->lease;
    lease.window_bytes = answer->window_bytes;
    lease.expire_ns = answer->expire_ns;
    reply.answer_case = TRACECOLLECT__V1__REPLY__ANSWER_LEASE;
    reply.lease = &lease;
  } else {
    reply.answer_case = TRACECOLLECT__V1__REPLY__ANSWER_RELEASE;
    reply.release = &release;
  }
  return tc__archive_pack(&reply);
}

static size_t write_head(const struct tc_bundle *b, uint64_t lost,
                         unsigned char head[BUNDLE_HEAD_BYTES_MAX]) {
  unsigned char *end = tp_put_number(head, BUNDLE_NUMBER, b->number);

  return (size_t)(tp_put_number(end, BUNDLE_LOST, lost) - head);
}

/* The reply's one field, with the bundles as their loops have packed them. */
static nng_msg *pack_bundles(const struct tc_lease_answer *answer) {
  unsigned char head[BUNDLE_HEAD_BYTES_MAX];
  const struct tc_bundle *b = answer->bundles;
  uint64_t lost = answer->lost;
  size_t inner = 0;
  nng_msg *msg;

  for (size_t i = 0; i < answer->n; i++, b = b->next) {
    size_t len = write_head(b, lost, head) + b->len;
    inner += 1 + tp_varint_bytes(len) + len;
    if (b->next != NULL) lost = b->next->position - (b->position + b->events);
  }
  if (nng_msg_alloc(&msg, 1 + tp_varint_bytes(inner) + inner) != 0) return NULL;

  unsigned char *out = tp_put_length(nng_msg_body(msg), REPLY_NEXT, inner);
  b = answer->bundles;
  lost = answer->lost;
  for (size_t i = 0; i < answer->n; i++, b = b->next) {
    size_t len = write_head(b, lost, head);
    out = tp_put_length(out, NEXT_BUNDLES, len + b->len);
    memcpy(out, head, len);
    memcpy(out + len, b->bytes, b->len);
    out += len + b->len;
    if (b->next != NULL) lost = b->next->position - (b->position + b->events);
  }
  return msg;
}

static void on_answer(struct tc_lease_ask *ask, const struct tc_lease_answer *answer) {
  struct tc__line *line = (void *)((char *)ask - offsetof(struct tc__line, ask));
  bool bundles = ask->kind == TC_LEASE_NEXT && answer->rc == TB_OK;
  nng_msg *msg = bundles ? pack_bundles(answer) : pack_words(ask, answer);

  sk_X509_pop_free(TB_MOVE(ask->reader), X509_free);
  if (msg == NULL) { /* the reader's deadline speaks */
    give_back(line);
    return;
  }
  nng_aio_set_msg(line->aio, msg);
  nng_aio_set_timeout(line->aio, TC__SEND_MS);
  nng_ctx_send(line->ctx, line->aio);
}

/* --- questions, on a worker's ------------------------------------------------------------------ */

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

static tb_rc read_ask(const Tracecollect__V1__Request *request, struct tc_lease_ask *ask,
                      struct tb_diag *diag) {
  const Tracecollect__V1__NextRequest *next = request->next;

  *ask = (struct tc_lease_ask){ .answer = on_answer };
  switch ((int)request->ask_case) {
  case TRACECOLLECT__V1__REQUEST__ASK_LEASE:
    ask->kind = TC_LEASE_OPEN;
    ask->window_bytes = (size_t)request->lease->window_bytes;
    return read_filter(request->lease->filter, &ask->filter, diag);
  case TRACECOLLECT__V1__REQUEST__ASK_NEXT:
    ask->kind = TC_LEASE_NEXT;
    ask->lease = next->lease;
    ask->after = next->after;
    ask->wait_ms = next->wait_ms < TC_LEASE_WAIT_MS_MAX ? next->wait_ms : TC_LEASE_WAIT_MS_MAX;
    ask->bytes_max = next->bytes == 0               ? NEXT_BYTES
                     : next->bytes < NEXT_BYTES_MAX ? next->bytes
                                                    : NEXT_BYTES_MAX;
    return TB_OK;
  default:
    ask->kind = TC_LEASE_RELEASE;
    ask->lease = request->release->lease;
    return TB_OK;
  }
}

bool tc__archive_is_lease(const Tracecollect__V1__Request *request) {
  return request->ask_case == TRACECOLLECT__V1__REQUEST__ASK_LEASE ||
         request->ask_case == TRACECOLLECT__V1__REQUEST__ASK_NEXT ||
         request->ask_case == TRACECOLLECT__V1__REQUEST__ASK_RELEASE;
}

/* Of a reader without a certificate its user or, over TCP on loopback, its address. */
static uint64_t owner_of(nng_pipe pipe, const STACK_OF(X509) * chain) {
  char name[TC_IDENTITY_BYTES + 1];
  nng_sockaddr at = { 0 };
  enum tc_role role;
  struct tb_diag diag;
  uint64_t uid = 0;

  tb_diag_clear(&diag);
  if (chain != NULL && tc_identity_of(sk_X509_value(chain, 0), &diag, &role, name) == TB_OK)
    return tb_hash(TB_HASH_START, name, strlen(name));
  if (nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_UID, &uid) == 0) return uid;
  (void)nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &at);
  return at.s_family == NNG_AF_INET6 ? tb_hash(TB_HASH_START, at.s_in6.sa_addr, 8)
                                     : tb_hash(TB_HASH_START, &at.s_in.sa_addr, 4);
}

tb_rc tc__archive_lease(struct tc__worker *w, const Tracecollect__V1__Request *request,
                        struct tb_diag *diag) {
  struct tc_archive *a = w->archive;
  struct tc_lease_ask ask;

  if (a->env.leases == NULL) return tb_fail(diag, TB_UNSUPPORTED, "no leases are given here");
  TB_TRY(read_ask(request, &ask, diag));
  struct tc__line *line = take_line(a);
  if (line == NULL) return tb_fail(diag, TB_BUDGET, "too many readers wait for events");
  nng_ctx mine = w->ctx;
  w->ctx = line->ctx;
  line->ctx = mine;
  ask.reader = tc_nng_tls_chain_of(w->pipe);
  ask.owner = owner_of(w->pipe, ask.reader);
  line->ask = ask;
  tc_leases_ask(a->env.leases, &line->ask);
  return TB_OK;
}
