/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nng/close.h"
#include "nng/tls_engine.h"
#include "tools/tracectl/remote/client_tls.h"
#include "tools/tracectl/remote/find_feed.h"
#include "tools/tracectl/remote/probe.h"

#define READERS_PORTS " Readers use 7072 (archive) and 7071 (feed), or what listen.* says"

enum {
  CONNECT_MS = 5000,
  DIAL_MS = 200, /* at first; doubled each time */
  RECONNECT_MS = 100,
};

/* --- what nng's threads say -------------------------------------------------------------------- */

static void note_refusal(void *self, const char *peer, const char *why) {
  struct tk_link *l = self;

  (void)peer; /* the one that was dialled */
  pthread_mutex_lock(&l->lock);
  if (l->refusal[0] == '\0') snprintf(l->refusal, sizeof l->refusal, "%s", why);
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
}

/* A dialer that was given up may still connect and be closed, in any order with its successor. */
static void note_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  struct tk_link *l = self;
  int dialer = event == NNG_PIPE_EV_ADD_POST ? nng_dialer_id(nng_pipe_dialer(pipe)) : 0;

  pthread_mutex_lock(&l->lock);
  if (event == NNG_PIPE_EV_ADD_POST && dialer == l->dialer) {
    l->pipe = nng_pipe_id(pipe);
    l->connected = true;
  } else if (event == NNG_PIPE_EV_REM_POST && nng_pipe_id(pipe) == l->pipe) {
    l->connected = false;
    clock_gettime(CLOCK_MONOTONIC, &l->lost_at);
  }
  pthread_cond_broadcast(&l->changed);
  pthread_mutex_unlock(&l->lock);
}

/* --- open -------------------------------------------------------------------------------------- */

/* OpenSSL's words for a port that is not for readers. */
static const char *other_port(const char *refusal) {
  if (strstr(refusal, "no application protocol") != NULL)
    return "; is it the port for agents?" READERS_PORTS;
  if (strstr(refusal, "wrong version number") != NULL)
    return "; is it the port for HTTP?" READERS_PORTS;
  return "";
}

tb_rc tk_link_refused(const struct tk_link *l, struct tb_diag *diag) {
  return tb_fail(diag, TB_REFUSED, "the handshake with %.70s failed: %.100s%s", l->where.shown,
                 l->refusal, other_port(l->refusal));
}

tb_rc tk_link_fail(const struct tk_link *l, int rv, struct tb_diag *diag) {
  return tb_fail(diag, TB_IO, "%.120s: %s", l->where.shown, nng_strerror(rv));
}

static tb_rc make_tls(struct tk_link *l, struct tb_diag *diag) {
  SSL_CTX *ctx;

  if (!l->where.tls) return TB_OK;
  TB_TRY(tk_client_tls(l->where.ca, l->where.cert, l->where.key, l->where.crl, diag, &ctx));
  struct tc_nng_terms terms = { .ctx = ctx,
                                .peer_act = TC_ACT_SERVE,
                                .peer_host = l->where.at.host,
                                .refused = note_refusal,
                                .self = l };
  tb_rc rc = tc_nng_tls_new(&terms, diag, &l->tls);
  SSL_CTX_free(ctx);
  return rc;
}

static int prepare_socket(struct tk_link *l, int (*make)(nng_socket *socket, void *self),
                          void *self) {
  int rv = make(&l->socket, self);

  l->socket_open = l->socket.id != 0;
  if (rv == 0) rv = nng_socket_set_ms(l->socket, NNG_OPT_RECONNMINT, RECONNECT_MS);
  if (rv == 0) rv = nng_pipe_notify(l->socket, NNG_PIPE_EV_ADD_POST, note_pipe, l);
  return rv == 0 ? nng_pipe_notify(l->socket, NNG_PIPE_EV_REM_POST, note_pipe, l) : rv;
}

static int dial(struct tk_link *l, nng_dialer *dialer) {
  int rv = nng_dialer_create(dialer, l->socket, l->where.url);

  if (rv == 0 && l->tls != NULL)
    rv = nng_dialer_set_ptr(*dialer, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(l->tls));
  pthread_mutex_lock(&l->lock);
  l->dialer = nng_dialer_id(*dialer);
  pthread_mutex_unlock(&l->lock);
  return rv == 0 ? nng_dialer_start(*dialer, NNG_FLAG_NONBLOCK) : rv;
}

/* False: it has connected after all. */
static bool give_up(struct tk_link *l, nng_dialer dialer) {
  pthread_mutex_lock(&l->lock);
  bool late = l->connected;
  if (!late) l->dialer = 0;
  pthread_mutex_unlock(&l->lock);
  if (!late) nng_dialer_close(dialer);
  return !late;
}

/* TB_AGAIN: neither connected nor refused within ms. */
static tb_rc wait_connected(struct tk_link *l, int ms, struct tb_diag *diag) {
  struct timespec deadline = tc_from_now(ms);
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&l->lock);
  while (!l->connected && l->refusal[0] == '\0' && !tc_is_past(deadline))
    pthread_cond_timedwait(&l->changed, &l->lock, &deadline);
  if (l->refusal[0] != '\0')
    rc = tk_link_refused(l, diag);
  else if (!l->connected)
    rc = TB_AGAIN;
  pthread_mutex_unlock(&l->lock);
  return rc;
}

/* A call that does not work at once is looked into, and dialled again with more patience: nng's dialer, too,
 * may stop for ever. */
static tb_rc connect_to(struct tk_link *l, struct tb_diag *diag) {
  for (int patience = DIAL_MS, waited = 0; waited < CONNECT_MS; patience *= 2) {
    nng_dialer dialer = NNG_DIALER_INITIALIZER;
    int rv = dial(l, &dialer);
    if (rv != 0) return tk_link_fail(l, rv, diag);
    tb_rc rc = wait_connected(l, patience, diag);
    if (rc != TB_AGAIN) return rc;
    TB_TRY(tk_probe(&l->where, CONNECT_MS, diag));
    if (!give_up(l, dialer)) return TB_OK;
    waited += patience;
  }
  return tb_fail(diag, TB_IO,
                 "%.90s does not speak this protocol; is it another port?" READERS_PORTS,
                 l->where.shown);
}

static tb_rc open_steps(struct tk_link *l, const struct tk_client_args *args, enum tk_socket which,
                        int (*make)(nng_socket *socket, void *self), void *self,
                        struct tb_diag *diag) {
  TB_TRY(tk_endpoint_find(args, which, diag, &l->where));
  if (l->where.of_archive) TB_TRY(tk_find_feed(args, diag, &l->where));
  TB_TRY(make_tls(l, diag));
  int rv = prepare_socket(l, make, self);
  return rv == 0 ? connect_to(l, diag) : tk_link_fail(l, rv, diag);
}

tb_rc tk_link_open(const struct tk_client_args *args, enum tk_socket which,
                   int (*make)(nng_socket *socket, void *self), void *self, struct tb_diag *diag,
                   struct tk_link **out) {
  struct tk_link *l = calloc(1, sizeof *l);

  if (l == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  pthread_mutex_init(&l->lock, NULL);
  tc_cond_init(&l->changed);
  tb_rc rc = open_steps(l, args, which, make, self, diag);
  if (rc == TB_OK)
    *out = l;
  else
    tk_link_close(l);
  return rc;
}

/* A link whose socket nng will not let go of stays: nng's threads may still speak to it. */
void tk_link_close(struct tk_link *l) {
  if (l == NULL || (l->socket_open && !tc_nng_close(l->socket))) return;
  tc_nng_tls_free(l->tls);
  pthread_cond_destroy(&l->changed);
  pthread_mutex_destroy(&l->lock);
  free(l);
}
