/* SPDX-License-Identifier: Apache-2.0 */
/* nng passes an engine a configuration of strings. Certificates in these strings could not be replaced while connections are
 * open. So a configuration has only the number of its terms, as "server name", and the terms have an SSL_CTX that can be
 * replaced.
 *
 * nng registers its own engine when it initialises, and would replace this one: so a socket is opened and closed first. */
#include "nng/tls_engine.h"

#include <arpa/inet.h>
#include <nng/protocol/pubsub0/sub.h>
#include <nng/supplemental/tls/engine.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "nng/arrivals.h"
#include "nng/stream.h"
#include "tls/identity.h"
#include "tls/tls_revocations.h"

#define TERMS_PREFIX "tracecollect-terms="

struct tc_nng_tls {
  struct tc_nng_tls *next; /* in all_terms */
  unsigned number, refs;
  nng_tls_config *config;
  SSL_CTX *ctx;
  bool server;
  enum tc_act peer_act;
  char *peer_host;
  void (*refused)(void *self, const char *peer, const char *why);
  void *self;
  uint64_t greeting_ns;
  unsigned greeting_max;
};

/* For all fields of terms that change after tc_nng_tls_new(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tc_nng_tls *all_terms;
/* Connections of all listeners whose handshake is finished. */
static nng_tls_engine_conn *verified_conns;
static unsigned last_number;
static BIO_METHOD *wire_method;

struct nng_tls_engine_config {
  struct tc_nng_tls *terms; /* NULL: nng's default configuration, never used */
};

struct nng_tls_engine_conn {
  SSL *ssl;
  struct tc_nng_tls *terms;
  char address[INET6_ADDRSTRLEN + 8]; /* with port */
  char refusal[160];                  /* reason why the peer's certificate was refused */
  bool verified, reported;
  STACK_OF(X509) * chain;                 /* the peer's, after verification; set under lock */
  uint32_t pipe;                          /* 0: none yet; under lock */
  struct nng_tls_engine_conn *next, **at; /* in verified_conns; at NULL: not there */
  struct tc__arrival arrival;             /* under lock; in the list until there is a pipe */
  int failure;                            /* handshake error to return after the alert is sent */
  bool closed;                            /* this and the following fields: under lock */
  void (*left)(void *self);
  void *left_self;
};

/* --- terms ------------------------------------------------------------------------------------- */

static struct tc_nng_tls *hold_terms(struct tc_nng_tls *terms) {
  pthread_mutex_lock(&lock);
  if (terms != NULL) terms->refs++;
  pthread_mutex_unlock(&lock);
  return terms;
}

static struct tc_nng_tls *find_terms(const char *name) {
  struct tc_nng_tls *terms = NULL;

  if (strncmp(name, TERMS_PREFIX, strlen(TERMS_PREFIX)) != 0) return NULL;
  unsigned number = (unsigned)strtoul(name + strlen(TERMS_PREFIX), NULL, 10);
  pthread_mutex_lock(&lock);
  for (terms = all_terms; terms != NULL && terms->number != number;) terms = terms->next;
  if (terms != NULL) terms->refs++;
  pthread_mutex_unlock(&lock);
  return terms;
}

static void drop_terms(struct tc_nng_tls *terms) {
  if (terms == NULL) return;
  pthread_mutex_lock(&lock);
  bool last = --terms->refs == 0;
  if (last)
    for (struct tc_nng_tls **at = &all_terms; *at != NULL; at = &(*at)->next)
      if (*at == terms) {
        *at = terms->next;
        break;
      }
  pthread_mutex_unlock(&lock);
  if (!last) return;

  SSL_CTX_free(terms->ctx);
  free(terms->peer_host);
  free(terms);
}

/* --- bytes: OpenSSL's BIO over nng's stream ---------------------------------------------------- */

static int wire_write(BIO *bio, const char *bytes, int n) {
  size_t len = (size_t)n;
  int rv = nng_tls_engine_send(BIO_get_data(bio), (const uint8_t *)bytes, &len);

  BIO_clear_retry_flags(bio);
  if (rv == 0) return (int)len;
  if (rv == NNG_EAGAIN) BIO_set_retry_write(bio);
  return -1;
}

/* nng reads a stream by the same operation all its life. */
static void note_reads(nng_tls_engine_conn *conn) {
  pthread_mutex_lock(&lock);
  conn->arrival.reads = tc_nng_stream_last_recv();
  pthread_mutex_unlock(&lock);
}

static int wire_read(BIO *bio, char *bytes, int n) {
  size_t len = (size_t)n;
  nng_tls_engine_conn *conn = BIO_get_app_data(bio);
  int rv = nng_tls_engine_recv(BIO_get_data(bio), (uint8_t *)bytes, &len);

  if (rv == NNG_EAGAIN && conn->arrival.reads == NULL) note_reads(conn);

  BIO_clear_retry_flags(bio);
  if (rv == 0) return (int)len;
  if (rv == NNG_EAGAIN) BIO_set_retry_read(bio);
  return -1;
}

static long wire_ctrl(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static int wire_create(BIO *bio) {
  BIO_set_init(bio, 1);
  return 1;
}

/* --- connections ------------------------------------------------------------------------------- */

/* Reports once why this connection ended, with the most specific reason. */
static void report(nng_tls_engine_conn *conn) {
  const char *why = ERR_reason_error_string(ERR_peek_error());
  long verdict = SSL_get_verify_result(conn->ssl);
  char text[256];

  if (conn->reported) return;
  conn->reported = true;
  if (conn->refusal[0] != '\0')
    snprintf(text, sizeof text, "%s", conn->refusal);
  else if (verdict != X509_V_OK)
    snprintf(text, sizeof text, "certificate refused: %s", X509_verify_cert_error_string(verdict));
  else
    snprintf(text, sizeof text, "%s", why != NULL ? why : "connection ended in the handshake");
  pthread_mutex_lock(&lock);
  if (conn->terms->refused != NULL) conn->terms->refused(conn->terms->self, conn->address, text);
  pthread_mutex_unlock(&lock);
}

/* OpenSSL's verify callback, called for each certificate of the peer's chain, the peer's own last. A refusal here is sent as
 * an alert. The context's callback, which checks revocation, is called first. */
static int check_peer(int fits, X509_STORE_CTX *store) {
  SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
  nng_tls_engine_conn *conn = SSL_get_app_data(ssl);
  char identity[TC_IDENTITY_BYTES + 1];
  SSL_verify_cb ask = SSL_CTX_get_verify_callback(SSL_get_SSL_CTX(ssl));
  enum tc_role role;
  struct tb_diag diag;

  if (ask != NULL) fits = ask(fits, store);
  if (!fits || X509_STORE_CTX_get_error_depth(store) != 0) return fits;
  tb_diag_clear(&diag);
  if (tc_identity_of(X509_STORE_CTX_get_current_cert(store), &diag, &role, identity) == TB_OK &&
      tc_role_check(role, conn->terms->peer_act, identity, &diag) == TB_OK)
    return 1;
  snprintf(conn->refusal, sizeof conn->refusal, "%.159s", diag.text);
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
  return 0;
}

static bool expect_host(SSL *ssl, const char *host) {
  if (host == NULL) return true;
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1) return true;
  return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}

/* --- finding the pipe --------------------------------------------------------------------------
 * nng tells neither a connection its pipe nor a pipe its certificate. But a query of NNG_OPT_TLS_VERIFIED on a pipe calls
 * conn_verified() on the same thread: that stores the connection in `asked`. */

static _Thread_local nng_tls_engine_conn *asked;

static bool conn_verified(nng_tls_engine_conn *conn) {
  asked = conn;
  return conn->verified;
}

static void keep_chain(nng_tls_engine_conn *conn) {
  STACK_OF(X509) *chain = SSL_get0_verified_chain(conn->ssl);

  pthread_mutex_lock(&lock);
  conn->chain = chain != NULL ? X509_chain_up_ref(chain) : NULL;
  conn->next = verified_conns;
  if (conn->next != NULL) conn->next->at = &conn->next;
  conn->at = &verified_conns;
  verified_conns = conn;
  pthread_mutex_unlock(&lock);
}

/* Called with the lock. */
static void on_arrival_ended(struct tc__arrival *arrival, const char *why) {
  nng_tls_engine_conn *conn =
      (nng_tls_engine_conn *)((char *)arrival - offsetof(nng_tls_engine_conn, arrival));

  if (conn->terms->refused != NULL) conn->terms->refused(conn->terms->self, conn->address, why);
}

static void expect_arrival(nng_tls_engine_conn *conn) {
  if (!conn->terms->server || conn->terms->greeting_ns == 0) return;
  conn->arrival.of = conn->terms;
  conn->arrival.expires_ns = tc_mono_ns() + conn->terms->greeting_ns;
  conn->arrival.ended = on_arrival_ended;
  pthread_mutex_lock(&lock);
  tc__arrival_put(&conn->arrival, conn->terms->greeting_max);
  pthread_mutex_unlock(&lock);
}

void tc_nng_tls_expire(void) {
  pthread_mutex_lock(&lock);
  tc__arrivals_expire(tc_mono_ns());
  pthread_mutex_unlock(&lock);
}

static void drop_chain(nng_tls_engine_conn *conn) {
  pthread_mutex_lock(&lock);
  tc__arrival_take_out(&conn->arrival);
  if (conn->at != NULL) {
    *conn->at = conn->next;
    if (conn->next != NULL) conn->next->at = conn->at;
  }
  pthread_mutex_unlock(&lock);
  sk_X509_pop_free(conn->chain, X509_free);
}

/* Reads only the SSL's context, which never changes: other fields belong to the nng thread. */
static bool is_revoked(const nng_tls_engine_conn *conn) {
  return tc_tls_chain_is_revoked(SSL_get_SSL_CTX(conn->ssl), conn->chain);
}

bool tc_nng_tls_pipe_came(nng_pipe pipe, void (*left)(void *self), void *self) {
  bool verified, revoked, closed;

  asked = NULL;
  if (nng_pipe_get_bool(pipe, NNG_OPT_TLS_VERIFIED, &verified) != 0 || asked == NULL) return false;
  pthread_mutex_lock(&lock);
  asked->pipe = pipe.id;
  tc__arrival_take_out(&asked->arrival);
  closed = asked->closed;
  if (!closed) {
    asked->left = left;
    asked->left_self = self;
  }
  revoked = is_revoked(asked); /* revoked after the handshake? */
  pthread_mutex_unlock(&lock);
  asked = NULL;
  if (closed && left != NULL) left(self);
  if (revoked) nng_pipe_close(pipe);
  return true;
}

/* Returns each revoked pipe once. */
static bool take_revoked(nng_pipe *out) {
  pthread_mutex_lock(&lock);
  nng_tls_engine_conn *conn = verified_conns;
  while (conn != NULL && (conn->pipe == 0 || !is_revoked(conn))) conn = conn->next;
  if (conn != NULL) {
    out->id = conn->pipe;
    conn->pipe = 0;
  }
  pthread_mutex_unlock(&lock);
  return conn != NULL;
}

/* Closes pipes without the lock: nng's locks must be taken before it. */
unsigned tc_nng_tls_recheck(void) {
  unsigned ended = 0;
  nng_pipe pipe;

  for (; take_revoked(&pipe); ended++) nng_pipe_close(pipe);
  return ended;
}

static void conn_fini(nng_tls_engine_conn *conn) {
  drop_chain(conn);
  SSL_free(conn->ssl);
  drop_terms(conn->terms);
  *conn = (nng_tls_engine_conn){ 0 };
}

/* nng does not document nng_stream, but in all versions 1.x (Debian: 1.5.2) it is the TLS stream, which returns the address
 * of the TCP stream. The pipe, which has the address officially, exists only after the handshake. */
static void keep_address(nng_tls_engine_conn *conn, void *nng_stream) {
  char host[INET6_ADDRSTRLEN] = "";
  nng_sockaddr at;

  strcpy(conn->address, "unknown");
  if (strncmp(nng_version(), "1.", 2) != 0 ||
      nng_stream_get_addr(nng_stream, NNG_OPT_REMADDR, &at) != 0)
    return;
  if (at.s_family == NNG_AF_INET) {
    conn->arrival.source = at.s_in.sa_addr;
    inet_ntop(AF_INET, &at.s_in.sa_addr, host, sizeof host);
    snprintf(conn->address, sizeof conn->address, "%s:%u", host, ntohs(at.s_in.sa_port));
  } else if (at.s_family == NNG_AF_INET6) {
    memcpy(&conn->arrival.source, at.s_in6.sa_addr, sizeof conn->arrival.source);
    inet_ntop(AF_INET6, at.s_in6.sa_addr, host, sizeof host);
    snprintf(conn->address, sizeof conn->address, "[%s]:%u", host, ntohs(at.s_in6.sa_port));
  }
}

static int conn_init(nng_tls_engine_conn *conn, void *nng_stream, nng_tls_engine_config *config) {
  if (config->terms == NULL) return NNG_ECRYPTO;

  conn->terms = hold_terms(config->terms);
  pthread_mutex_lock(&lock);
  conn->ssl = SSL_new(conn->terms->ctx);
  pthread_mutex_unlock(&lock);
  BIO *bio = BIO_new(wire_method);
  if (conn->ssl == NULL || bio == NULL || !expect_host(conn->ssl, conn->terms->peer_host)) {
    BIO_free(bio);
    conn_fini(conn);
    return NNG_ENOMEM;
  }
  keep_address(conn, nng_stream);
  BIO_set_data(bio, nng_stream);
  BIO_set_app_data(bio, conn);
  SSL_set_bio(conn->ssl, bio, bio);
  SSL_set_app_data(conn->ssl, conn);
  SSL_set_verify(conn->ssl, SSL_get_verify_mode(conn->ssl), check_peer);
  if (conn->terms->server)
    SSL_set_accept_state(conn->ssl);
  else
    SSL_set_connect_state(conn->ssl);
  expect_arrival(conn);
  return 0;
}

/* nng calls this as soon as a pipe is closed, and perhaps a second time. */
static void conn_close(nng_tls_engine_conn *conn) {
  ERR_clear_error();
  if (conn->verified) (void)SSL_shutdown(conn->ssl);
  ERR_clear_error();
  pthread_mutex_lock(&lock);
  void (*left)(void *self) = conn->left;
  void *self = conn->left_self;
  conn->left = NULL;
  conn->closed = true;
  pthread_mutex_unlock(&lock);
  if (left != NULL) left(self);
}

/* Maps a failed OpenSSL call to an nng error; nng calls again after NNG_EAGAIN. A peer's close is never NNG_ECLOSED: nng's
 * listeners and dialers would treat it as their own close and stop. */
static int map_error(nng_tls_engine_conn *conn, int answer) {
  switch (SSL_get_error(conn->ssl, answer)) {
  case SSL_ERROR_WANT_READ:
  case SSL_ERROR_WANT_WRITE: return NNG_EAGAIN;
  case SSL_ERROR_ZERO_RETURN: return NNG_ECONNRESET;
  case SSL_ERROR_SYSCALL: /* stream closed; a peer that sent nothing only probed the port */
    if (!conn->verified && SSL_get_state(conn->ssl) != TLS_ST_BEFORE) report(conn);
    return NNG_ECONNRESET;
  default: report(conn); return conn->verified ? NNG_ECRYPTO : NNG_EPEERAUTH;
  }
}

/* nng closes a connection at once when its handshake fails, and drops the unsent alert that has the reason. So the failure is
 * returned by the next call, which nng makes after the alert was sent. */
static int conn_handshake(nng_tls_engine_conn *conn) {
  BIO *wire = SSL_get_wbio(conn->ssl);
  uint64_t written = BIO_number_written(wire);

  if (conn->failure != 0) return conn->failure;
  ERR_clear_error();
  int answer = SSL_do_handshake(conn->ssl);
  if (answer == 1) {
    if (conn->terms->server) keep_chain(conn);
    conn->verified = true;
    return 0;
  }
  int rv = map_error(conn, answer);
  if (rv == NNG_EAGAIN || BIO_number_written(wire) == written) return rv;
  conn->failure = rv;
  return NNG_EAGAIN;
}

static int conn_recv(nng_tls_engine_conn *conn, uint8_t *bytes, size_t *n) {
  ERR_clear_error();
  int answer = SSL_read_ex(conn->ssl, bytes, *n, n);
  return answer == 1 ? 0 : map_error(conn, answer);
}

static int conn_send(nng_tls_engine_conn *conn, const uint8_t *bytes, size_t *n) {
  ERR_clear_error();
  int answer = SSL_write_ex(conn->ssl, bytes, *n, n);
  return answer == 1 ? 0 : map_error(conn, answer);
}

/* --- configurations ---------------------------------------------------------------------------- */

static int config_init(nng_tls_engine_config *config, nng_tls_mode mode) {
  (void)mode;
  config->terms = NULL;
  return 0;
}

static void config_fini(nng_tls_engine_config *config) {
  drop_terms(config->terms);
}

/* For its default configurations nng passes the dialled host, which finds no terms. */
static int config_server(nng_tls_engine_config *config, const char *name) {
  drop_terms(config->terms);
  config->terms = find_terms(name);
  return 0;
}

/* nng requests "none" in a listener's default configuration, which is then replaced. */
static int config_auth(nng_tls_engine_config *config, nng_tls_auth_mode mode) {
  (void)config, (void)mode;
  return 0;
}

static int config_ca_chain(nng_tls_engine_config *config, const char *certs, const char *crl) {
  (void)config, (void)certs, (void)crl;
  return NNG_ENOTSUP;
}

static int config_own_cert(nng_tls_engine_config *config, const char *cert, const char *key,
                           const char *password) {
  (void)config, (void)cert, (void)key, (void)password;
  return NNG_ENOTSUP;
}

static int config_version(nng_tls_engine_config *config, nng_tls_version low,
                          nng_tls_version high) {
  (void)config, (void)low;
  return high < NNG_TLS_1_3 ? NNG_ENOTSUP : 0;
}

static nng_tls_engine_config_ops config_ops = {
  .size = sizeof(struct nng_tls_engine_config),
  .init = config_init,
  .fini = config_fini,
  .server = config_server,
  .auth = config_auth,
  .ca_chain = config_ca_chain,
  .own_cert = config_own_cert,
  .version = config_version,
};

static nng_tls_engine_conn_ops conn_ops = {
  .size = sizeof(struct nng_tls_engine_conn),
  .init = conn_init,
  .fini = conn_fini,
  .close = conn_close,
  .handshake = conn_handshake,
  .recv = conn_recv,
  .send = conn_send,
  .verified = conn_verified,
};

static const nng_tls_engine engine = {
  .version = NNG_TLS_ENGINE_VERSION,
  .config_ops = &config_ops,
  .conn_ops = &conn_ops,
  .name = "tracecollect",
  .description = "OpenSSL, TLS 1.3",
};

static void register_engine(void) {
  nng_socket first;

  tc_nng_streams_init();
  if (nng_sub0_open(&first) != 0) return;
  nng_close(first);
  wire_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "nng");
  if (wire_method == NULL) return;
  BIO_meth_set_write(wire_method, wire_write);
  BIO_meth_set_read(wire_method, wire_read);
  BIO_meth_set_ctrl(wire_method, wire_ctrl);
  BIO_meth_set_create(wire_method, wire_create);
  nng_tls_engine_register(&engine);
}

/* --- public ------------------------------------------------------------------------------------ */

tb_rc tc_nng_tls_new(const struct tc_nng_terms *terms, struct tb_diag *diag,
                     struct tc_nng_tls **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  struct tc_nng_tls *tls = calloc(1, sizeof *tls);
  char name[sizeof TERMS_PREFIX + 16];

  pthread_once(&once, register_engine);
  if (strcmp(nng_tls_engine_name(), engine.name) != 0) {
    free(tls);
    return tb_fail(diag, TB_IO, "nng keeps its own TLS engine %s", nng_tls_engine_name());
  }
  if (tls == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));

  SSL_CTX_up_ref(terms->ctx);
  *tls = (struct tc_nng_tls){ .refs = 1,
                              .ctx = terms->ctx,
                              .server = terms->server,
                              .peer_act = terms->peer_act,
                              .refused = terms->refused,
                              .self = terms->self,
                              .greeting_ns = terms->greeting_ms * UINT64_C(1000000),
                              .greeting_max = terms->greeting_max };
  if (terms->peer_host != NULL) tls->peer_host = strdup(terms->peer_host);
  pthread_mutex_lock(&lock);
  tls->number = ++last_number;
  tls->next = all_terms;
  all_terms = tls;
  pthread_mutex_unlock(&lock);

  snprintf(name, sizeof name, TERMS_PREFIX "%u", tls->number);
  nng_tls_mode mode = terms->server ? NNG_TLS_MODE_SERVER : NNG_TLS_MODE_CLIENT;
  if ((tls->peer_host == NULL) != (terms->peer_host == NULL) ||
      nng_tls_config_alloc(&tls->config, mode) != 0 ||
      nng_tls_config_server_name(tls->config, name) != 0) {
    tc_nng_tls_free(tls);
    return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  }
  *out = tls;
  return TB_OK;
}

void tc_nng_tls_free(struct tc_nng_tls *tls) {
  if (tls == NULL) return;
  pthread_mutex_lock(&lock);
  tls->refused = NULL; /* connections may outlive self */
  pthread_mutex_unlock(&lock);
  if (tls->config != NULL) nng_tls_config_free(tls->config);
  drop_terms(tls);
}

void tc_nng_tls_swap(struct tc_nng_tls *tls, SSL_CTX *ctx) {
  SSL_CTX_up_ref(ctx);
  pthread_mutex_lock(&lock);
  SSL_CTX *old = tls->ctx;
  tls->ctx = ctx;
  pthread_mutex_unlock(&lock);
  SSL_CTX_free(old);
}

nng_tls_config *tc_nng_tls_config(struct tc_nng_tls *tls) {
  return tls->config;
}
