/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/remote/client_tls.h"

#include <openssl/err.h>
#include <unistd.h>

#include "tls/pem_fault.h"
#include "tls/tls_revocations.h"

static void context_freep(SSL_CTX **ctx) {
  SSL_CTX_free(*ctx);
}

static tb_rc check_file(const char *path, struct tb_diag *diag) {
  const char *unfit = tc_pem_unfit(path);

  return unfit == NULL ? TB_OK : tb_fail(diag, TB_IO, "%.120s: %s", path, unfit);
}

static tb_rc check(int fits, const char *path, const char *wanted, struct tb_diag *diag) {
  if (fits == 1) return TB_OK;
  return tb_fail(diag, TB_CORRUPT, "%.120s: %s", path, tc_pem_fault(path, wanted));
}

static void revocations_freep(struct tc_revocations **revoked) {
  tc_revocations_release(*revoked);
}

static tb_rc take_lists(SSL_CTX *ctx, const char *ca, const char *crl, struct tb_diag *diag) {
  TB_CLEANUP(revocations_freep) struct tc_revocations *revoked = NULL;
  STACK_OF(X509_CRL) * lists;

  TB_TRY(tc_revocations_new(crl, false, ca, diag, &revoked));
  TB_TRY(tc_revocations_read(revoked, diag, &lists));
  tc_revocations_take(revoked, lists);
  if (tc_tls_ask_revoked(ctx, revoked) == TB_OK) return TB_OK;
  return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
}

/* Uses a new store, because curl shares its own between connections. */
static tb_rc take_authorities(SSL_CTX *ctx, const char *ca, struct tb_diag *diag) {
  X509_STORE *store = X509_STORE_new();

  if (store == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  SSL_CTX_set_cert_store(ctx, store);
  TB_TRY(check_file(ca, diag));
  return check(SSL_CTX_load_verify_file(ctx, ca), ca, "certificate", diag);
}

static tb_rc take_certificate(SSL_CTX *ctx, const char *cert, const char *key,
                              struct tb_diag *diag) {
  TB_TRY(check_file(cert, diag));
  TB_TRY(check_file(key, diag));
  TB_TRY(check(SSL_CTX_use_certificate_chain_file(ctx, cert), cert, "certificate", diag));
  TB_TRY(check(SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM), key, "private key", diag));
  return check(SSL_CTX_check_private_key(ctx), key, "private key", diag);
}

tb_rc tk_client_tls_fill(SSL_CTX *ctx, const char *ca, const char *cert, const char *key,
                         const char *crl, struct tb_diag *diag) {
  ERR_clear_error();
  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
  if (*ca != '\0') TB_TRY(take_authorities(ctx, ca, diag));
  if (*cert != '\0') TB_TRY(take_certificate(ctx, cert, key, diag));
  return *crl != '\0' ? take_lists(ctx, ca, crl, diag) : TB_OK;
}

tb_rc tk_client_tls(const char *ca, const char *cert, const char *key, const char *crl,
                    struct tb_diag *diag, SSL_CTX **out) {
  TB_CLEANUP(context_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

  if (ctx == NULL) return tb_fail(diag, TB_NOMEM, "%s", tb_rc_text(TB_NOMEM));
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  TB_TRY(tk_client_tls_fill(ctx, ca, cert, key, crl, diag));
  *out = TB_MOVE(ctx);
  return TB_OK;
}
