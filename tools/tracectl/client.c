/* SPDX-License-Identifier: Apache-2.0 */
/* One question at a time over nng REQ. Whatever ends a wait (an answer, a refusal by either side's
 * TLS, a lost connection, the deadline) is noted under one lock and wakes the one waiter.
 *
 * The dial does not block: nng 1.5.2 may never come back from a blocking one when the peer ends the
 * connection while it is negotiated. */
#include "tools/tracectl/client.h"

#include <errno.h>
#include <nng/nng.h>

#include <nng/protocol/reqrep0/req.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "collector/nng_engine.h"
#include "proto/unpack.h"
#include "tools/tracectl/client_tls.h"
#include "tools/tracectl/probe.h"

enum {
  CONNECT_MS = 5000,
  DIAL_MS = 200, /* at first; doubled each time */
  ANSWER_MS = 30000,
  VERIFY_MS = 3600000, /* reads the whole archive */
  LOST_MS = 3000,      /* a collector that restarts is back by then */
  RECONNECT_MS = 100,
  ANSWER_BYTES_MAX = 72 << 20,
  UNPACKED_BYTES_MAX = 256 << 20,
};

struct tk_client {
  struct tk_where where;
  nng_socket socket;
  bool socket_open;
  struct tc_nng_tls *tls;
  nng_aio *aio;
  struct tb_mem mem;
  struct tb_arena arena; /* the last answer */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool connected, done; /* done: the aio has called back */
  struct timespec lost_at;
  char refusal[256];
};

bool tk_client_option(struct tk_client_args *args, int option, const char *value) {
  switch (option) {
  case TK_OPT_SERVER: args->server = value; return true;
  case TK_OPT_CERTS: args->certs = value; return true;
  case TK_OPT_TLS_CA: args->tls_ca = value; return true;
  case TK_OPT_TLS_CERT: args->tls_cert = value; return true;
  case TK_OPT_TLS_KEY: args->tls_key = value; return true;
  default: return false;
  }
}

/* --- what nng's threads say -------------------------------------------------------------------- */

static void note_refusal(void *self, const char *why) {
  struct tk_client *c = self;

  pthread_mutex_lock(&c->lock);
  if (c->refusal[0] == '\0') snprintf(c->refusal, sizeof c->refusal, "%s", why);
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void note_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  struct tk_client *c = self;

  (void)pipe;
  pthread_mutex_lock(&c->lock);
  c->connected = event == NNG_PIPE_EV_ADD_POST;
  if (!c->connected) clock_gettime(CLOCK_MONOTONIC, &c->lost_at);
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

static void note_done(void *self) {
  struct tk_client *c = self;

  pthread_mutex_lock(&c->lock);
  c->done = true;
  pthread_cond_broadcast(&c->changed);
  pthread_mutex_unlock(&c->lock);
}

/* --- waiting ----------------------------------------------------------------------------------- */

static struct timespec after(struct timespec at, int ms) {
  at.tv_sec += ms / 1000;
  at.tv_nsec += (long)(ms % 1000) * 1000000;
  if (at.tv_nsec >= 1000000000) {
    at.tv_sec++;
    at.tv_nsec -= 1000000000;
  }
  return at;
}

static struct timespec from_now(int ms) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return after(now, ms);
}

static bool is_past(struct timespec at) {
  struct timespec now = from_now(0);

  return now.tv_sec > at.tv_sec || (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec);
}

static tb_rc refused(struct tk_client *c, struct tb_diag *diag) {
  return tb_fail(diag, TB_REFUSED, "the handshake with %.70s failed: %.100s", c->where.shown,
                 c->refusal);
}

static tb_rc wait_done(struct tk_client *c, int ms, struct tb_diag *diag) {
  struct timespec deadline = from_now(ms);
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&c->lock);
  while (rc == TB_OK && !c->done) {
    struct timespec until = c->connected ? deadline : after(c->lost_at, LOST_MS);
    pthread_cond_timedwait(&c->changed, &c->lock, &until);
    if (c->done) break;
    if (c->refusal[0] != '\0')
      rc = refused(c, diag);
    else if (!c->connected && is_past(after(c->lost_at, LOST_MS)))
      rc = tb_fail(diag, TB_IO, "%.120s: the connection was lost", c->where.shown);
    else if (is_past(deadline))
      rc = tb_fail(diag, TB_IO, "%.120s: no answer within %d s", c->where.shown, ms / 1000);
  }
  pthread_mutex_unlock(&c->lock);
  if (rc != TB_OK) nng_aio_cancel(c->aio);
  nng_aio_wait(c->aio);
  return rc;
}

/* --- open and close ---------------------------------------------------------------------------- */

static tb_rc nng_fail(struct tk_client *c, int rv, struct tb_diag *diag) {
  return tb_fail(diag, TB_IO, "%.120s: %s", c->where.shown, nng_strerror(rv));
}

static tb_rc make_tls(struct tk_client *c, struct tb_diag *diag) {
  SSL_CTX *ctx;

  if (!c->where.tls) return TB_OK;
  TB_TRY(tk_client_tls(c->where.ca, c->where.cert, c->where.key, diag, &ctx));
  struct tc_nng_terms terms = { .ctx = ctx,
                                .peer_role = "server",
                                .peer_host = c->where.at.host,
                                .refused = note_refusal,
                                .self = c };
  tb_rc rc = tc_nng_tls_new(&terms, diag, &c->tls);
  SSL_CTX_free(ctx);
  return rc;
}

static int open_socket(struct tk_client *c) {
  int rv = nng_req0_open(&c->socket);

  c->socket_open = rv == 0;
  if (rv == 0) rv = nng_socket_set_size(c->socket, NNG_OPT_RECVMAXSZ, ANSWER_BYTES_MAX);
  if (rv == 0) rv = nng_socket_set_ms(c->socket, NNG_OPT_RECONNMINT, RECONNECT_MS);
  if (rv == 0) rv = nng_socket_set_ms(c->socket, NNG_OPT_REQ_RESENDTIME, NNG_DURATION_INFINITE);
  if (rv == 0) rv = nng_pipe_notify(c->socket, NNG_PIPE_EV_ADD_POST, note_pipe, c);
  if (rv == 0) rv = nng_pipe_notify(c->socket, NNG_PIPE_EV_REM_POST, note_pipe, c);
  if (rv == 0) rv = nng_aio_alloc(&c->aio, note_done, c);
  return rv;
}

static int dial(struct tk_client *c, nng_dialer *dialer) {
  int rv = nng_dialer_create(dialer, c->socket, c->where.url);

  if (rv == 0 && c->tls != NULL)
    rv = nng_dialer_set_ptr(*dialer, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(c->tls));
  return rv == 0 ? nng_dialer_start(*dialer, NNG_FLAG_NONBLOCK) : rv;
}

/* TB_AGAIN: neither connected nor refused within ms. */
static tb_rc wait_connected(struct tk_client *c, int ms, struct tb_diag *diag) {
  struct timespec deadline = from_now(ms);
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&c->lock);
  while (!c->connected && c->refusal[0] == '\0' && !is_past(deadline))
    pthread_cond_timedwait(&c->changed, &c->lock, &deadline);
  if (c->refusal[0] != '\0')
    rc = refused(c, diag);
  else if (!c->connected)
    rc = TB_AGAIN;
  pthread_mutex_unlock(&c->lock);
  return rc;
}

/* What does not work at once is looked into, and dialled anew with more patience: nng's dialer, too,
 * may stop for ever. */
static tb_rc connect_to(struct tk_client *c, struct tb_diag *diag) {
  for (int patience = DIAL_MS, waited = 0; waited < CONNECT_MS; patience *= 2) {
    nng_dialer dialer;
    int rv = dial(c, &dialer);
    if (rv != 0) return nng_fail(c, rv, diag);
    tb_rc rc = wait_connected(c, patience, diag);
    if (rc != TB_AGAIN) return rc;
    TB_TRY(tk_probe(&c->where, CONNECT_MS, diag));
    nng_dialer_close(dialer);
    waited += patience;
  }
  return tb_fail(diag, TB_IO, "%.120s does not speak the archive's protocol", c->where.shown);
}

static tb_rc open_steps(struct tk_client *c, const struct tk_client_args *args,
                        struct tb_diag *diag) {
  TB_TRY(tk_where_find(args, diag, &c->where));
  TB_TRY(make_tls(c, diag));
  int rv = open_socket(c);
  return rv == 0 ? connect_to(c, diag) : nng_fail(c, rv, diag);
}

tb_rc tk_client_open(const struct tk_client_args *args, struct tb_diag *diag,
                     struct tk_client **out) {
  struct tk_client *c = calloc(1, sizeof *c);
  pthread_condattr_t clock;

  if (c == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  pthread_mutex_init(&c->lock, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&c->changed, &clock);
  pthread_condattr_destroy(&clock);
  tb_mem_init(&c->mem, tb_mem_libc, NULL, UNPACKED_BYTES_MAX);
  tb_arena_init(&c->arena, &c->mem, 1 << 20);

  tb_rc rc = open_steps(c, args, diag);
  if (rc != TB_OK) {
    tk_client_close(c);
    return rc;
  }
  *out = c;
  return TB_OK;
}

void tk_client_close(struct tk_client *c) {
  if (c == NULL) return;
  if (c->socket_open) nng_close(c->socket);
  if (c->aio != NULL) nng_aio_free(c->aio);
  tc_nng_tls_free(c->tls);
  tb_arena_fini(&c->arena);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  free(c);
}

/* --- questions --------------------------------------------------------------------------------- */

static void arm(struct tk_client *c) {
  pthread_mutex_lock(&c->lock);
  c->done = false;
  pthread_mutex_unlock(&c->lock);
}

static tb_rc send_question(struct tk_client *c, const Tracecollect__V1__Request *request, int ms,
                           struct tb_diag *diag) {
  nng_msg *msg;

  if (nng_msg_alloc(&msg, tracecollect__v1__request__get_packed_size(request)) != 0)
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  tracecollect__v1__request__pack(request, nng_msg_body(msg));
  arm(c);
  nng_aio_set_msg(c->aio, msg);
  nng_send_aio(c->socket, c->aio);
  tb_rc rc = wait_done(c, ms, diag);
  if (nng_aio_result(c->aio) == 0) return rc;
  nng_msg_free(msg);
  return rc != TB_OK ? rc : nng_fail(c, nng_aio_result(c->aio), diag);
}

static tb_rc take_answer(struct tk_client *c, int ms, struct tb_diag *diag, nng_msg **out) {
  arm(c);
  nng_recv_aio(c->socket, c->aio);
  tb_rc rc = wait_done(c, ms, diag);
  if (nng_aio_result(c->aio) != 0)
    return rc != TB_OK ? rc : nng_fail(c, nng_aio_result(c->aio), diag);
  *out = nng_aio_get_msg(c->aio);
  return TB_OK;
}

/* Requests and replies name their kinds alike, but number them apart. */
static Tracecollect__V1__Reply__AnswerCase wanted(const Tracecollect__V1__Request *request) {
  switch ((int)request->ask_case) {
  case TRACECOLLECT__V1__REQUEST__ASK_STATUS: return TRACECOLLECT__V1__REPLY__ANSWER_STATUS;
  case TRACECOLLECT__V1__REQUEST__ASK_LIST: return TRACECOLLECT__V1__REPLY__ANSWER_LIST;
  case TRACECOLLECT__V1__REQUEST__ASK_READ: return TRACECOLLECT__V1__REPLY__ANSWER_READ;
  case TRACECOLLECT__V1__REQUEST__ASK_REPORT: return TRACECOLLECT__V1__REPLY__ANSWER_REPORT;
  case TRACECOLLECT__V1__REQUEST__ASK_VERIFY: return TRACECOLLECT__V1__REPLY__ANSWER_VERIFY;
  default: return TRACECOLLECT__V1__REPLY__ANSWER__NOT_SET;
  }
}

tb_rc tk_client_ask(struct tk_client *c, const Tracecollect__V1__Request *request,
                    struct tb_diag *diag, const Tracecollect__V1__Reply **out) {
  bool verify = request->ask_case == TRACECOLLECT__V1__REQUEST__ASK_VERIFY;
  int ms = verify ? VERIFY_MS : ANSWER_MS;
  ProtobufCAllocator allocator = tp_arena_allocator(&c->arena);
  nng_msg *msg;

  TB_TRY(send_question(c, request, ms, diag));
  TB_TRY(take_answer(c, ms, diag, &msg));
  tb_arena_reset(&c->arena);
  Tracecollect__V1__Reply *reply =
      tracecollect__v1__reply__unpack(&allocator, nng_msg_len(msg), nng_msg_body(msg));
  nng_msg_free(msg);
  if (reply == NULL)
    return tb_fail(diag, TB_PROTOCOL, "%.120s: the answer cannot be read", c->where.shown);
  if (reply->rc != TB_OK) return tb_fail(diag, (tb_rc)reply->rc, "%.190s", reply->error);
  if (reply->answer_case != wanted(request))
    return tb_fail(diag, TB_PROTOCOL, "%.120s: the answer is of another kind", c->where.shown);
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
