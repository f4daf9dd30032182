/* SPDX-License-Identifier: Apache-2.0 */
/* TLS 1.3 for nng by OpenSSL: Debian's nng speaks TLS 1.2 at most and never says who its peer is.
 *
 * Terms are an SSL_CTX and the role the peer's certificate must name, checked inside the handshake:
 * a peer that does not fit gets an alert and never becomes a pipe. Ours is the process's only engine;
 * the first tc_nng_tls_new() registers it.
 *
 * Memory    nng's connections keep the terms alive after tc_nng_tls_free().
 * Threads   any. refused() is called on nng's threads.
 * Errors    TB_IO: nng will not take the engine. TB_NOMEM.
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
  enum tc_act peer_act;  /* what the role in the peer's certificate must allow */
  const char *peer_host; /* name or address the peer's certificate must carry; NULL: any */
  /* A handshake failed or a peer ended it: whose, an address and port, and why, for people. May be NULL. */
  void (*refused)(void *self, const char *peer, const char *why);
  void *self;
  /* What a peer of ours has for its handshake and nng's greeting; tc_nng_tls_expire() ends it then. nng's own 10 s begin
   * anew with each byte of the greeting, and are lost in a handshake. 0: no limit. */
  unsigned greeting_ms;
  /* So many of ours at once, with greeting_ms: one more ends the oldest of the address that has the most. Their handshakes
   * cost them nothing, so these must not be all that nng/accept.h lets in. 0: no limit. */
  unsigned greeting_max;
};

struct tc_nng_tls;

TB_MUST tb_rc tc_nng_tls_new(const struct tc_nng_terms *terms, struct tb_diag *diag,
                             struct tc_nng_tls **out);
void tc_nng_tls_free(struct tc_nng_tls *tls);

/* To be called on NNG_PIPE_EV_ADD_PRE of a socket that listens with terms: from here on the pipe can be
 * closed, and named, by its certificate. left, which may be NULL, is called once when the pipe is closed, at once
 * where it is already: on any thread, with locks of nng held, and before nng_close() returns. nng's own
 * NNG_PIPE_EV_REM_POST comes later. False: a pipe without TLS. */
bool tc_nng_tls_pipe_came(nng_pipe pipe, void (*left)(void *self), void *self);
/* Ends all pipes whose certificate has been taken back; how many. */
unsigned tc_nng_tls_recheck(void);
/* Ends the peers that have had their greeting_ms and are no pipe yet; to be called about once a second, on any thread. */
void tc_nng_tls_expire(void);

/* New connections use ctx from here on, old ones keep theirs. */
void tc_nng_tls_swap(struct tc_nng_tls *tls, SSL_CTX *ctx);

/* For NNG_OPT_TLS_CONFIG of a listener or dialer; freed with tls. */
nng_tls_config *tc_nng_tls_config(struct tc_nng_tls *tls);

#endif
