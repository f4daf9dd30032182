/* SPDX-License-Identifier: Apache-2.0 */
/* TLS contexts of the daemon's servers, and the identity of a peer.
 *
 * TLS 1.3 only, no tickets, no session cache, no early data; the peer's chain is at most 3 deep and signs with ECDSA or
 * Ed25519.
 *
 * Memory    contexts are reference-counted (SSL_CTX_up_ref, SSL_CTX_free): connections keep theirs after a reload.
 * Threads   build anywhere; a built context may be used from any thread.
 * Errors    TB_IO, TB_CORRUPT with the file and OpenSSL's message in diag. TB_REFUSED: the peer's name is invalid.
 */
#ifndef TC_NET_TLS_CONTEXT_H
#define TC_NET_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "base/result.h"
#include "tls/identity.h"
#include "tls/tls_revocations.h"

struct tc_tls_terms {
  const char *alpn;               /* the only protocol offered; NULL: not negotiated */
  bool alpn_may_be_none;          /* accept peers that offer no protocol at all */
  bool peer_may_be_none;          /* request a certificate, but do not require it */
  struct tc_revocations *revoked; /* checked at each handshake; the context keeps it; NULL: none */
};

/* Reads DIR/ca.pem, DIR/server.pem and DIR/server.key, or the other names of base/text/cert_path.h. The key must match the certificate, and the authority must have
 * issued it. */
TB_MUST tb_rc tc_tls_context_new(const char *dir, const struct tc_tls_terms *terms,
                                 struct tb_diag *diag, SSL_CTX **out);

/* Return when the certificate of the context, and the first of its authorities, expires, in Unix time. */
uint64_t tc_tls_context_expires_s(const SSL_CTX *ctx);
uint64_t tc_tls_context_authority_expires_s(const SSL_CTX *ctx);

/* Returns whether host is a name or an address of the context's certificate. */
bool tc_tls_context_has_name(const SSL_CTX *ctx, const char *host);

/* Returns the serial number of the peer's certificate; "" if the peer has none. */
void tc_tls_peer_serial(const SSL *ssl, char out[TC_SERIAL_MAX + 1]);

/* Returns when the peer's certificate expires, in Unix time; 0: the peer has none. */
uint64_t tc_tls_peer_expires_s(const SSL *ssl);

/* Reads identity and role from the peer's certificate (lib/tls/identity.h); TB_REFUSED also if the peer sent none. */
TB_MUST tb_rc tc_tls_identity(const SSL *ssl, struct tb_diag *diag, enum tc_role *out_role,
                              char out[TC_IDENTITY_BYTES + 1]);

/* Returns the peer's verified certificates, for the caller to free; NULL: the peer has none, or ssl is NULL. */
STACK_OF(X509) * tc_tls_chain_of(const SSL *ssl);

/* Describes why the last call on ssl failed, by OpenSSL's or the verifier's message. Clears the error queue. */
void tc_tls_why(const SSL *ssl, char *out, size_t out_bytes);

#endif
