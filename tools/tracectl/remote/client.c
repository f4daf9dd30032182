/* SPDX-License-Identifier: Apache-2.0 */
/* One question at a time over nng REQ. Whatever ends a wait (an answer, a refusal by either side's
 * TLS, a lost connection, the deadline) is noted under the link's lock and wakes the one waiter. */
#include "tools/tracectl/remote/client.h"

#include <nng/nng.h>

#include <nng/protocol/reqrep0/req.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "proto/unpack.h"
#include "tools/tracectl/remote/link.h"

enum {
  ANSWER_MS = 30000,
  VERIFY_MS = 3600000, /* reads the whole archive */
  LOST_MS = 3000,      /* a collector that restarts is back by then */
  ASKED_MAX = 5,
  ANSWER_BYTES_MAX = 72 << 20,
  UNPACKED_BYTES_MAX = 256 << 20,
};

struct tk_client {
  struct tk_link *link;
  nng_aio *aio;
  struct tb_mem mem;
  struct tb_arena arena; /* the last answer */
  bool done;             /* the aio has called back; under the link's lock */
};

bool tk_client_option(struct tk_client_args *args, int option, const char *value) {
  switch (option) {
  case TK_OPT_SERVER: args->server = value; return true;
  case TK_OPT_CERTS: args->certs = value; return true;
  case TK_OPT_TLS_CA: args->tls_ca = value; return true;
  case TK_OPT_TLS_CERT: args->tls_cert = value; return true;
  case TK_OPT_TLS_KEY: args->tls_key = value; return true;
  case TK_OPT_TLS_CRL: args->tls_crl = value; return true;
  default: return false;
  }
}

/* --- waiting ----------------------------------------------------------------------------------- */

static void note_done(void *self) {
  struct tk_client *c = self;

  pthread_mutex_lock(&c->link->lock);
  c->done = true;
  pthread_cond_broadcast(&c->link->changed);
  pthread_mutex_unlock(&c->link->lock);
}

static tb_rc wait_done(struct tk_client *c, int ms, struct tb_diag *diag) {
  struct timespec deadline = tc_from_now(ms);
  struct tk_link *l = c->link;
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&l->lock);
  while (rc == TB_OK && !c->done) {
    struct timespec until = l->connected ? deadline : tc_after(l->lost_at, LOST_MS);
    pthread_cond_timedwait(&l->changed, &l->lock, &until);
    if (c->done) break;
    if (l->refusal[0] != '\0')
      rc = tk_link_refused(l, diag);
    else if (!l->connected && tc_is_past(tc_after(l->lost_at, LOST_MS)))
      rc = tb_fail(diag, TB_IO, "%.120s: the connection was lost", l->where.shown);
    else if (tc_is_past(deadline))
      rc = tb_fail(diag, TB_IO, "%.120s: no answer within %d s", l->where.shown, ms / 1000);
  }
  pthread_mutex_unlock(&l->lock);
  if (rc != TB_OK) nng_aio_cancel(c->aio);
  nng_aio_wait(c->aio);
  return rc;
}

/* --- open and close ---------------------------------------------------------------------------- */

static int make_socket(nng_socket *socket, void *self) {
  struct tk_client *c = self;
  int rv = nng_req0_open(socket);

  if (rv == 0) rv = nng_socket_set_size(*socket, NNG_OPT_RECVMAXSZ, ANSWER_BYTES_MAX);
  if (rv == 0) rv = nng_socket_set_ms(*socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
  if (rv == 0) rv = nng_aio_alloc(&c->aio, note_done, c);
  return rv;
}

tb_rc tk_client_open(const struct tk_client_args *args, struct tb_diag *diag,
                     struct tk_client **out) {
  struct tk_client *c = calloc(1, sizeof *c);

  if (c == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  tb_mem_init(&c->mem, tb_mem_libc, NULL, UNPACKED_BYTES_MAX);
  tb_arena_init(&c->arena, &c->mem, 1 << 20);
  tb_rc rc = tk_link_open(args, TK_SOCKET_ARCHIVE, make_socket, c, diag, &c->link);
  if (rc != TB_OK) {
    tk_client_close(c);
    return rc;
  }
  *out = c;
  return TB_OK;
}

void tk_client_close(struct tk_client *c) {
  if (c == NULL) return;
  tk_link_close(c->link);
  if (c->aio != NULL) nng_aio_free(c->aio);
  tb_arena_fini(&c->arena);
  free(c);
}

/* --- questions --------------------------------------------------------------------------------- */

static void arm(struct tk_client *c) {
  pthread_mutex_lock(&c->link->lock);
  c->done = false;
  pthread_mutex_unlock(&c->link->lock);
}

/* The connection went with the question: the collector's nng cuts all of a listener's when it has to start
 * that again, and a collector that restarts does. Every question may be asked again. */
static tb_rc fail(struct tk_client *c, int rv, struct tb_diag *diag) {
  return rv == NNG_ECONNRESET ? TB_AGAIN : tk_link_fail(c->link, rv, diag);
}

static tb_rc send_question(struct tk_client *c, const Tracecollect__V1__Request *request, int ms,
                           struct tb_diag *diag) {
  nng_msg *msg;

  if (nng_msg_alloc(&msg, tracecollect__v1__request__get_packed_size(request)) != 0)
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  tracecollect__v1__request__pack(request, nng_msg_body(msg));
  arm(c);
  nng_aio_set_msg(c->aio, msg);
  nng_send_aio(c->link->socket, c->aio);
  tb_rc rc = wait_done(c, ms, diag);
  if (nng_aio_result(c->aio) == 0) return rc;
  nng_msg_free(msg);
  return rc != TB_OK ? rc : fail(c, nng_aio_result(c->aio), diag);
}

static tb_rc take_answer(struct tk_client *c, int ms, struct tb_diag *diag, nng_msg **out) {
  arm(c);
  nng_recv_aio(c->link->socket, c->aio);
  tb_rc rc = wait_done(c, ms, diag);
  if (nng_aio_result(c->aio) != 0) return rc != TB_OK ? rc : fail(c, nng_aio_result(c->aio), diag);
  *out = nng_aio_get_msg(c->aio);
  return TB_OK;
}

static tb_rc ask_once(struct tk_client *c, const Tracecollect__V1__Request *request, int ms,
                      struct tb_diag *diag, nng_msg **out) {
  TB_TRY(send_question(c, request, ms, diag));
  return take_answer(c, ms, diag, out);
}

/* Requests and replies name their kinds alike, but number them apart. */
static Tracecollect__V1__Reply__AnswerCase wanted(const Tracecollect__V1__Request *request) {
  switch ((int)request->ask_case) {
  case TRACECOLLECT__V1__REQUEST__ASK_STATUS: return TRACECOLLECT__V1__REPLY__ANSWER_STATUS;
  case TRACECOLLECT__V1__REQUEST__ASK_LIST: return TRACECOLLECT__V1__REPLY__ANSWER_LIST;
  case TRACECOLLECT__V1__REQUEST__ASK_READ: return TRACECOLLECT__V1__REPLY__ANSWER_READ;
  case TRACECOLLECT__V1__REQUEST__ASK_REPORT: return TRACECOLLECT__V1__REPLY__ANSWER_REPORT;
  case TRACECOLLECT__V1__REQUEST__ASK_VERIFY: return TRACECOLLECT__V1__REPLY__ANSWER_VERIFY;
  case TRACECOLLECT__V1__REQUEST__ASK_SNAP: return TRACECOLLECT__V1__REPLY__ANSWER_SNAP;
  case TRACECOLLECT__V1__REQUEST__ASK_FIRINGS: return TRACECOLLECT__V1__REPLY__ANSWER_FIRINGS;
  case TRACECOLLECT__V1__REQUEST__ASK_HISTORY: return TRACECOLLECT__V1__REPLY__ANSWER_HISTORY;
  case TRACECOLLECT__V1__REQUEST__ASK_TRIGGER: return TRACECOLLECT__V1__REPLY__ANSWER_TRIGGER;
  case TRACECOLLECT__V1__REQUEST__ASK_LEASE: return TRACECOLLECT__V1__REPLY__ANSWER_LEASE;
  case TRACECOLLECT__V1__REQUEST__ASK_NEXT: return TRACECOLLECT__V1__REPLY__ANSWER_NEXT;
  case TRACECOLLECT__V1__REQUEST__ASK_RELEASE: return TRACECOLLECT__V1__REPLY__ANSWER_RELEASE;
  default: return TRACECOLLECT__V1__REPLY__ANSWER__NOT_SET;
  }
}

tb_rc tk_client_ask(struct tk_client *c, const Tracecollect__V1__Request *request,
                    struct tb_diag *diag, const Tracecollect__V1__Reply **out) {
  bool verify = request->ask_case == TRACECOLLECT__V1__REQUEST__ASK_VERIFY;
  int ms = verify ? VERIFY_MS : ANSWER_MS;
  ProtobufCAllocator allocator = tp_arena_allocator(&c->arena);
  nng_msg *msg;
  int times = 0;
  tb_rc rc;

  do {
    rc = ask_once(c, request, ms, diag, &msg);
  } while (rc == TB_AGAIN && ++times < ASKED_MAX);
  if (rc == TB_AGAIN) return tk_link_fail(c->link, NNG_ECONNRESET, diag);
  TB_TRY(rc);
  tb_arena_reset(&c->arena);
  Tracecollect__V1__Reply *reply =
      tracecollect__v1__reply__unpack(&allocator, nng_msg_len(msg), nng_msg_body(msg));
  nng_msg_free(msg);
  if (reply == NULL)
    return tb_fail(diag, TB_PROTOCOL, "%.120s: the answer cannot be read", c->link->where.shown);
  if (reply->rc != TB_OK) return tb_fail(diag, (tb_rc)reply->rc, "%.190s", reply->error);
  if (reply->answer_case != wanted(request))
    return tb_fail(diag, TB_PROTOCOL, "%.120s: the answer is of another kind",
                   c->link->where.shown);
  *out = reply;
  return TB_OK;
}

tb_rc tk_client_report(struct tk_client *c, const char *kind, const char *window,
                       const struct tk_selector *selector, struct tb_diag *diag,
                       const Tracecollect__V1__ReportReply **out) {
  Tracecollect__V1__Request request = TRACECOLLECT__V1__REQUEST__INIT;
  Tracecollect__V1__ReportRequest ask = TRACECOLLECT__V1__REPORT_REQUEST__INIT;
  Tracecollect__V1__Selector which;
  const Tracecollect__V1__Reply *reply;

  tk_selector_message(selector, &which);
  ask.kind = (char *)(uintptr_t)kind; /* packing only reads it */
  ask.window = (char *)(uintptr_t)window;
  ask.service = which.service;
  ask.instance = which.instance;
  ask.stream = which.stream;
  request.ask_case = TRACECOLLECT__V1__REQUEST__ASK_REPORT;
  request.report = &ask;
  TB_TRY(tk_client_ask(c, &request, diag, &reply));
  *out = reply->report;
  return TB_OK;
}
