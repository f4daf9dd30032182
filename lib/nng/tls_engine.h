/* SPDX-License-Identifier: Apache-2.0 */
/* A TLS engine for nng: TLS 1.3 by OpenSSL. Debian's nng supports at most TLS 1.2 and does not give access to the peer's
 * certificate.
 *
 * Terms are an SSL_CTX and what the peer's role must allow, which is checked in the handshake: a refused peer gets an alert
 * and never becomes a pipe. The first tc_nng_tls_new() registers the engine, which is the only one of the process.
 *
 * Memory    nng's connections keep the terms alive after tc_nng_tls_free().
 * Threads   any. refused() is called on nng's threads.
 * Errors    TB_IO: nng does not accept the engine. TB_NOMEM.
 */
#ifndef TC_NNG_TLS_ENGINE_H
#define TC_NNG_TLS_ENGINE_H

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <openssl/ssl.h>

#include "tls/role.h"

struct tc_nng_terms {
  SSL_CTX *ctx; /* counted: the caller keeps its own reference */
  bool server;
  enum tc_act peer_act;  /* act that the role in the peer's certificate must allow */
  const char *peer_host; /* required name or address in the peer's certificate; NULL: any */
  /* Called when a handshake failed or the peer ended it; peer: address and port, why: for people. May be NULL. */
  void (*refused)(void *self, const char *peer, const char *why);
  void *self;
  /* Time for handshake and nng's greeting, enforced by tc_nng_tls_expire(); 0: no limit. nng's own 10 s start again with each
   * byte of the greeting and do not apply to the handshake. */
  unsigned greeting_ms;
  /* Limit of peers in handshake or greeting (needs greeting_ms; 0: no limit): a further peer ends the oldest connection of the
   * address that has the most. Handshakes cost a peer nothing, so they must not use all places of nng/accept.h. */
  unsigned greeting_max;
};

struct tc_nng_tls;

TB_MUST tb_rc tc_nng_tls_new(const struct tc_nng_terms *terms, struct tb_diag *diag,
                             struct tc_nng_tls **out);
void tc_nng_tls_free(struct tc_nng_tls *tls);

/* Call it on NNG_PIPE_EV_ADD_PRE of a socket that listens with terms: from then on the pipe is closed when its certificate is
 * revoked. left (may be NULL) is called once when the pipe is closed, or at once if it is closed already: on any thread, with
 * locks of nng held, and before nng_close() returns; NNG_PIPE_EV_REM_POST comes later. Returns false if the pipe does not use
 * TLS. */
bool tc_nng_tls_pipe_came(nng_pipe pipe, void (*left)(void *self), void *self);
/* Closes all pipes whose certificate was revoked; returns how many. */
unsigned tc_nng_tls_recheck(void);
/* Ends peers that exceed greeting_ms. Call it about once a second, on any thread. */
void tc_nng_tls_expire(void);

/* Sets ctx for new connections; existing ones keep the old one. */
void tc_nng_tls_swap(struct tc_nng_tls *tls, SSL_CTX *ctx);

/* For NNG_OPT_TLS_CONFIG of a listener or dialer; freed with tls. */
nng_tls_config *tc_nng_tls_config(struct tc_nng_tls *tls);

#endif
