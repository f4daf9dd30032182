/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of the daemon's TLS servers for a peer, and the peer's identity.
 *
 * TLS 1.3 only, no tickets, no session cache, no early data; the peer's chain is at most 3 deep and
 * signs with ECDSA or Ed25519.
 *
 * Memory    a context is counted (SSL_CTX_up_ref, SSL_CTX_free): connections keep theirs over a reload.
 * Threads   build anywhere; a built context may be used from any thread.
 * Errors    TB_IO, TB_CORRUPT with the file and OpenSSL's words in diag. TB_REFUSED: a peer's name.
 */
#ifndef TC_NET_TLS_CONTEXT_H
#define TC_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "base/result.h"
#include "tls/identity.h"
#include "tls/tls_revocations.h"

struct tc_tls_terms {
  const char *alpn;               /* the only protocol spoken; NULL: not negotiated */
  bool alpn_may_be_none;          /* a peer that offers no protocol is fine: it speaks this one */
  bool peer_may_be_none;          /* a certificate is asked for but not required */
  struct tc_revocations *revoked; /* asked at each handshake, and held by the context; NULL: none */
};

/* From DIR/ca.pem, DIR/server.pem and DIR/server.key; key and certificate must belong together, the
 * certificate must be the authority's. */
TB_MUST tb_rc tc_tls_context_new(const char *dir, const struct tc_tls_terms *terms,
                                 struct tb_diag *diag, SSL_CTX **out);

/* When the context's certificate expires, in Unix time. */
uint64_t tc_tls_context_expires_s(const SSL_CTX *ctx);
/* When the first of its authorities does. */
uint64_t tc_tls_context_authority_expires_s(const SSL_CTX *ctx);

/* Is it a name or an address of the context's certificate? */
bool tc_tls_context_has_name(const SSL_CTX *ctx, const char *host);

/* The serial number of the peer's certificate; "" if it has none. */
void tc_tls_peer_serial(const SSL *ssl, char out[TC_SERIAL_MAX + 1]);

/* When the peer's certificate expires, in Unix time; 0: it has none. */
uint64_t tc_tls_peer_expires_s(const SSL *ssl);

/* lib/tls/identity.h for the peer's certificate; TB_REFUSED too if it sent none. */
TB_MUST tb_rc tc_tls_identity(const SSL *ssl, struct tb_diag *diag, enum tc_role *out_role,
                              char out[TC_IDENTITY_BYTES + 1]);

/* The peer's certificates, once they are verified, for the caller to free; NULL: it has none, or ssl is NULL. */
STACK_OF(X509) * tc_tls_chain_of(const SSL *ssl);

/* Why the last call on ssl failed, in OpenSSL's words and the verifier's. Clears the error queue. */
void tc_tls_why(const SSL *ssl, char *out, size_t out_bytes);

#endif
