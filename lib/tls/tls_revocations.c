/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/tls_revocations.h"

#include <pthread.h>

static pthread_once_t index_once = PTHREAD_ONCE_INIT;
static int revoked_index = -1;

static void free_revoked(void *parent, void *revoked, CRYPTO_EX_DATA *data, int index, long argl,
                         void *argp) {
  (void)parent, (void)data, (void)index, (void)argl, (void)argp;
  tc_revocations_release(revoked);
}

static void make_index(void) {
  revoked_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_revoked);
}

static struct tc_revocations *revoked_of(const SSL_CTX *ctx) {
  pthread_once(&index_once, make_index);
  return revoked_index >= 0 ? SSL_CTX_get_ex_data(ctx, revoked_index) : NULL;
}

/* OpenSSL's verify callback, for each certificate of the chain; a refusal is sent as the alert certificate_revoked. */
static int check_revoked(int fits, X509_STORE_CTX *check) {
  const SSL *ssl = X509_STORE_CTX_get_ex_data(check, SSL_get_ex_data_X509_STORE_CTX_idx());

  if (!fits || !tc_revocations_have(revoked_of(SSL_get_SSL_CTX(ssl)),
                                    X509_STORE_CTX_get_current_cert(check)))
    return fits;
  X509_STORE_CTX_set_error(check, X509_V_ERR_CERT_REVOKED);
  return 0;
}

tb_rc tc_tls_ask_revoked(SSL_CTX *ctx, struct tc_revocations *revoked) {
  pthread_once(&index_once, make_index);
  if (revoked_index < 0 || SSL_CTX_set_ex_data(ctx, revoked_index, revoked) != 1) return TB_NOMEM;
  tc_revocations_hold(revoked);
  SSL_CTX_set_verify(ctx, SSL_CTX_get_verify_mode(ctx), check_revoked);
  return TB_OK;
}

bool tc_tls_is_revoked(const SSL *ssl) {
  return tc_tls_chain_is_revoked(SSL_get_SSL_CTX(ssl), SSL_get0_verified_chain(ssl));
}

bool tc_tls_chain_is_revoked(const SSL_CTX *ctx, const STACK_OF(X509) * chain) {
  return tc_revocations_have_any(revoked_of(ctx), chain);
}
