/* SPDX-License-Identifier: Apache-2.0 */
/* Revocation checks in TLS: an SSL_CTX holds the struct tc_revocations for its handshakes and connections.
 *
 * Threads   as revocations.h; tc_tls_is_revoked(): the SSL's own thread.
 * Errors    TB_NOMEM.
 */
#ifndef TC_TLS_TLS_REVOCATIONS_H
#define TC_TLS_TLS_REVOCATIONS_H

#include <openssl/ssl.h>

#include "tls/revocations.h"

/* Sets ctx's verify callback: a chain with a revoked certificate gets the alert certificate_revoked. */
TB_MUST tb_rc tc_tls_ask_revoked(SSL_CTX *ctx, struct tc_revocations *revoked);

/* Is a certificate of the peer's verified chain revoked now? */
bool tc_tls_is_revoked(const SSL *ssl);
bool tc_tls_chain_is_revoked(const SSL_CTX *ctx, const STACK_OF(X509) * chain);

#endif
