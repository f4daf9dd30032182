/* SPDX-License-Identifier: Apache-2.0 */
/* Revocation (revocations.h) in TLS: a context holds what its handshakes ask, and a connection finds it there.
 *
 * Threads   as revocations.h; an SSL's own thread for tc_tls_is_revoked().
 * Errors    TB_NOMEM.
 */
#ifndef TC_TLS_TLS_REVOCATIONS_H
#define TC_TLS_TLS_REVOCATIONS_H

#include <openssl/ssl.h>

#include "tls/revocations.h"

/* Sets ctx's verify callback. From here on a chain with a certificate that was taken back gets the alert
 * certificate_revoked. */
TB_MUST tb_rc tc_tls_ask_revoked(SSL_CTX *ctx, struct tc_revocations *revoked);

/* A certificate of the peer's verified chain has been taken back, as is known at this moment. */
bool tc_tls_is_revoked(const SSL *ssl);
bool tc_tls_chain_is_revoked(const SSL_CTX *ctx, const STACK_OF(X509) * chain);

#endif
