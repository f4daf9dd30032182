/* SPDX-License-Identifier: Apache-2.0 */
/* A reader's side of TLS 1.3.
 *
 * Errors    TB_IO, TB_CORRUPT, TB_BUDGET with the file and reason in diag.
 */
#ifndef TK_REMOTE_CLIENT_TLS_H
#define TK_REMOTE_CLIENT_TLS_H

#include <openssl/ssl.h>

#include "base/result.h"

/* "" leaves a setting unchanged: without ca the context's authorities stay. cert and key belong together; crl
 * needs ca. */
TB_MUST tb_rc tk_client_tls_fill(SSL_CTX *ctx, const char *ca, const char *cert, const char *key,
                                 const char *crl, struct tb_diag *diag);
/* Makes a context for nng. */
TB_MUST tb_rc tk_client_tls(const char *ca, const char *cert, const char *key, const char *crl,
                            struct tb_diag *diag, SSL_CTX **out);

#endif
