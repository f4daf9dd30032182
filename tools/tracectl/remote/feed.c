/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/feed.h"

#include <errno.h>
#include <libgen.h>
#include <nng/protocol/pubsub0/sub.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "nng/close.h"
#include "nng/tls_engine.h"
#include "tools/tracectl/remote/client_tls.h"
#include "tools/tracectl/remote/endpoint.h"

enum {
  QUEUE_MESSAGES = 8192, /* nng's largest */
  MESSAGE_BYTES_MAX = 32 << 20,
  QUIET_MS = 500,
  CONNECT_MS = 5000,
  DIAL_MS = 200, /* at first; doubled each time */
  RECONNECT_MS = 100,
  LOST_MS = 1500,
};

/* nng's threads store the connection's state under the lock, and signal it. */
struct tk_feed {
  struct tk_endpoint where; /* of the collector; its certificates are those of the feed */
  char url[TK_URL_BYTES];
  nng_socket socket;
  struct tc_nng_tls *tls;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int dialer, pipe; /* ids: the pipes that count, and the latest of them */
  bool connected;
  struct timespec lost_at;
  char refusal[256];
};

/* --- where it is ------------------------------------------------------------------------------- */

static bool starts(const char *text, const char *with) {
  return strncmp(text, with, strlen(with)) == 0;
}

static tb_rc fail_memory(struct tb_diag *diag) {
  return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
}

/* A relative path is the collector's: its sockets are in one folder. */
static void take_socket(struct tk_feed *f, const char *url) {
  char folder[TK_URL_BYTES], name[TK_URL_BYTES];
  const char *path = url + strlen("ipc://");

  snprintf(folder, sizeof folder, "%s", f->where.path);
  snprintf(name, sizeof name, "%s", path);
  if (*path == '/')
    snprintf(f->url, sizeof f->url, "%s", url);
  else
    snprintf(f->url, sizeof f->url, "ipc://%.200s/%.100s", dirname(folder), basename(name));
}

static bool is_any(const char *host) {
  return strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
}

/* The collector may report its host as 0.0.0.0, so the host by which it was reached is used. */
static tb_rc take_address(struct tk_feed *f, const char *url, struct tb_diag *diag) {
  const char *rest = strstr(url, "://") + 3, *host = f->where.at.host;
  struct tb_hostport at;

  TB_TRY(tb_hostport_parse(rest, diag, &at));
  if (f->where.path[0] != '\0') host = is_any(at.host) ? "127.0.0.1" : at.host;
  bool is_ipv6 = strchr(host, ':') != NULL;
  snprintf(f->url, sizeof f->url, "%.*s%s%s%s:%u", (int)(rest - url), url, is_ipv6 ? "[" : "", host,
           is_ipv6 ? "]" : "", at.port);
  return TB_OK;
}

/* Chooses one of its URLs: a socket if the collector was reached over its own, else a network address. */
static const char *choose(const struct tk_feed *f, const Tracecollect__V1__StatusReply *status) {
  const char *of_network = NULL;

  for (size_t i = 0; i < status->n_feed_urls; i++) {
    const char *url = status->feed_urls[i];
    if (f->where.path[0] != '\0' && starts(url, "ipc://")) return url;
    if (of_network == NULL && !starts(url, "ipc://")) of_network = url;
  }
  return of_network;
}

static tb_rc ask_address(struct tk_feed *f, struct tk_client *client, struct tb_diag *diag) {
  const Tracecollect__V1__StatusReply *status;

  f->where = *tk_client_where(client);
  TB_TRY(tk_client_ask(client, TP_ROUTE_STREAMS, "", NULL, diag, &status));
  const char *url = choose(f, status);
  if (url == NULL)
    return tb_fail(diag, TB_NOTFOUND,
                   "%.60s: the feed is not open to it: listen.feed has only %.80s%s",
                   f->where.shown, status->n_feed_urls > 0 ? status->feed_urls[0] : "nothing",
                   status->n_feed_urls > 1 ? ", ..." : "");
  if (!starts(url, "ipc://")) return take_address(f, url, diag);
  take_socket(f, url);
  if (access(f->url + strlen("ipc://"), W_OK) == 0) return TB_OK;
  return tb_fail(diag, TB_IO, "%.120s: %s", f->url, strerror(errno));
}

static tb_rc find_feed(struct tk_feed *f, const struct tk_client_args *args, struct tb_diag *diag) {
  struct tk_client *client;

  TB_TRY(tk_client_open(args, diag, &client));
  tb_rc rc = ask_address(f, client, diag);
  tk_client_close(client);
  return rc;
}

/* --- what nng's threads say -------------------------------------------------------------------- */

static void note_refusal(void *self, const char *peer, const char *why) {
  struct tk_feed *f = self;

  (void)peer; /* the one that was dialled */
  pthread_mutex_lock(&f->lock);
  if (f->refusal[0] == '\0') snprintf(f->refusal, sizeof f->refusal, "%s", why);
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
}

/* An abandoned dialer may still connect and close, before or after its successor. */
static void note_pipe(nng_pipe pipe, nng_pipe_ev event, void *self) {
  struct tk_feed *f = self;
  int dialer = event == NNG_PIPE_EV_ADD_POST ? nng_dialer_id(nng_pipe_dialer(pipe)) : 0;

  pthread_mutex_lock(&f->lock);
  if (event == NNG_PIPE_EV_ADD_POST && dialer == f->dialer) {
    f->pipe = nng_pipe_id(pipe);
    f->connected = true;
  } else if (event == NNG_PIPE_EV_REM_POST && nng_pipe_id(pipe) == f->pipe) {
    f->connected = false;
    clock_gettime(CLOCK_MONOTONIC, &f->lost_at);
  }
  pthread_cond_broadcast(&f->changed);
  pthread_mutex_unlock(&f->lock);
}

/* --- connecting -------------------------------------------------------------------------------- */

static tb_rc fail_nng(const struct tk_feed *f, int rv, struct tb_diag *diag) {
  return rv == 0 ? TB_OK : tb_fail(diag, TB_IO, "%.120s: %s", f->url, nng_strerror(rv));
}

static tb_rc make_tls(struct tk_feed *f, struct tb_diag *diag) {
  const struct tk_endpoint *w = &f->where;
  struct tb_hostport at;
  SSL_CTX *ctx;

  if (!starts(f->url, "tls+tcp://")) return TB_OK;
  if (*w->ca == '\0' || *w->cert == '\0' || *w->key == '\0')
    return tb_fail(diag, TB_BROKEN,
                   "%.100s needs certificates: give --certs DIR with ca.pem, reader.pem and "
                   "reader.key",
                   f->url);
  TB_TRY(tb_hostport_parse(f->url + strlen("tls+tcp://"), diag, &at));
  TB_TRY(tk_client_tls(w->ca, w->cert, w->key, w->crl, diag, &ctx));
  struct tc_nng_terms terms = {
    .ctx = ctx, .peer_act = TC_ACT_SERVE, .peer_host = at.host, .refused = note_refusal, .self = f
  };
  tb_rc rc = tc_nng_tls_new(&terms, diag, &f->tls);
  SSL_CTX_free(ctx);
  return rc;
}

static int make_socket(struct tk_feed *f, const char *topic) {
  int rv = nng_sub0_open(&f->socket);

  if (rv == 0) rv = nng_socket_set_size(f->socket, NNG_OPT_RECVMAXSZ, MESSAGE_BYTES_MAX);
  if (rv == 0) rv = nng_socket_set_int(f->socket, NNG_OPT_RECVBUF, QUEUE_MESSAGES);
  if (rv == 0) rv = nng_socket_set_ms(f->socket, NNG_OPT_RECVTIMEO, QUIET_MS);
  if (rv == 0) rv = nng_socket_set_ms(f->socket, NNG_OPT_RECONNMINT, RECONNECT_MS);
  if (rv == 0) rv = nng_socket_set(f->socket, NNG_OPT_SUB_SUBSCRIBE, topic, strlen(topic));
  if (rv == 0) rv = nng_pipe_notify(f->socket, NNG_PIPE_EV_ADD_POST, note_pipe, f);
  return rv == 0 ? nng_pipe_notify(f->socket, NNG_PIPE_EV_REM_POST, note_pipe, f) : rv;
}

static int dial(struct tk_feed *f, nng_dialer *dialer) {
  int rv = nng_dialer_create(dialer, f->socket, f->url);

  if (rv == 0 && f->tls != NULL)
    rv = nng_dialer_set_ptr(*dialer, NNG_OPT_TLS_CONFIG, tc_nng_tls_config(f->tls));
  pthread_mutex_lock(&f->lock);
  f->dialer = nng_dialer_id(*dialer);
  pthread_mutex_unlock(&f->lock);
  return rv == 0 ? nng_dialer_start(*dialer, NNG_FLAG_NONBLOCK) : rv;
}

/* Returns false if it has connected meanwhile. */
static bool give_up(struct tk_feed *f, nng_dialer dialer) {
  pthread_mutex_lock(&f->lock);
  bool late = f->connected;
  if (!late) f->dialer = 0;
  pthread_mutex_unlock(&f->lock);
  if (!late) nng_dialer_close(dialer);
  return !late;
}

/* Returns TB_AGAIN if it is neither connected nor refused within ms. */
static tb_rc wait_connected(struct tk_feed *f, int ms, struct tb_diag *diag) {
  struct timespec deadline = tc_from_now(ms);
  tb_rc rc = TB_OK;

  pthread_mutex_lock(&f->lock);
  while (!f->connected && f->refusal[0] == '\0' && !tc_is_past(deadline))
    pthread_cond_timedwait(&f->changed, &f->lock, &deadline);
  if (f->refusal[0] != '\0')
    rc = tb_fail(diag, TB_REFUSED, "the handshake with %.70s failed: %.100s", f->url, f->refusal);
  else if (!f->connected)
    rc = TB_AGAIN;
  pthread_mutex_unlock(&f->lock);
  return rc;
}

/* In nng 1.5.2 a blocking dial may never return if the peer ends the connection during the handshake, and a dialer may hang
 * for ever: a dialer that does not connect soon is replaced by one with a longer timeout. */
static tb_rc connect_to(struct tk_feed *f, struct tb_diag *diag) {
  for (int patience = DIAL_MS, waited = 0; waited < CONNECT_MS; patience *= 2) {
    nng_dialer dialer = NNG_DIALER_INITIALIZER;
    TB_TRY(fail_nng(f, dial(f, &dialer), diag));
    tb_rc rc = wait_connected(f, patience, diag);
    if (rc != TB_AGAIN) return rc;
    if (!give_up(f, dialer)) return TB_OK;
    waited += patience;
  }
  return tb_fail(diag, TB_IO, "the feed is at %.120s, and does not answer from here", f->url);
}

static tb_rc open_steps(struct tk_feed *f, const struct tk_client_args *args, const char *topic,
                        struct tb_diag *diag) {
  TB_TRY(find_feed(f, args, diag));
  TB_TRY(make_tls(f, diag));
  TB_TRY(fail_nng(f, make_socket(f, topic), diag));
  return connect_to(f, diag);
}

tb_rc tk_feed_open(const struct tk_client_args *args, const char *topic, struct tb_diag *diag,
                   struct tk_feed **out) {
  struct tk_feed *f = calloc(1, sizeof *f);

  if (f == NULL) return fail_memory(diag);
  pthread_mutex_init(&f->lock, NULL);
  tc_cond_init(&f->changed);
  tb_rc rc = open_steps(f, args, topic, diag);
  if (rc == TB_OK)
    *out = f;
  else
    tk_feed_close(f);
  return rc;
}

/* If nng cannot close the socket the feed is not freed: nng's threads may still use it. */
void tk_feed_close(struct tk_feed *f) {
  if (f == NULL || (f->socket.id != 0 && !tc_nng_close(f->socket))) return;
  tc_nng_tls_free(f->tls);
  pthread_cond_destroy(&f->changed);
  pthread_mutex_destroy(&f->lock);
  free(f);
}

static tb_rc look_at_it(struct tk_feed *f, struct tb_diag *diag) {
  pthread_mutex_lock(&f->lock);
  bool lost = !f->connected && tc_is_past(tc_after(f->lost_at, LOST_MS));
  pthread_mutex_unlock(&f->lock);
  return lost ? tb_fail(diag, TB_IO, "%.120s: the connection was lost", f->url) : TB_AGAIN;
}

tb_rc tk_feed_receive(struct tk_feed *f, bool wait, struct tb_diag *diag, nng_msg **out) {
  int rv = nng_recvmsg(f->socket, out, wait ? 0 : NNG_FLAG_NONBLOCK);

  return rv == NNG_EAGAIN || rv == NNG_ETIMEDOUT ? look_at_it(f, diag) : fail_nng(f, rv, diag);
}
