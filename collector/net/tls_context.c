/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/net/tls_context.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text/cert_path.h"
#include "tls/pem_fault.h"

enum {
  CHAIN_DEPTH_MAX = 3,
  CHAIN_BYTES_MAX = 32 << 10,
  /* Four TLS records a read: with read_ahead this halves the number of system calls. */
  READ_AHEAD_BYTES = 66 << 10,
};

static tb_rc pem_fail(struct tb_diag *diag, const char *path, const char *wanted) {
  return tb_fail(diag, TB_CORRUPT, "%s: %s", path, tc_pem_fault(path, wanted));
}

/* --- ALPN --------------------------------------------------------------------------------------
 * OpenSSL does not call the select callback if a client offers no protocol at all, so a client hello callback checks this
 * first. Both refuse with the alert no_application_protocol. */

static int require_alpn(SSL *ssl, int *alert, void *arg) {
  const unsigned char *bytes;
  size_t n;

  (void)arg;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &bytes,
                                &n))
    return SSL_CLIENT_HELLO_SUCCESS;
  *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
  ERR_raise(ERR_LIB_SSL, SSL_R_NO_APPLICATION_PROTOCOL);
  return SSL_CLIENT_HELLO_ERROR;
}

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *arg) {
  const char *want = arg;
  size_t len = strlen(want);

  (void)ssl;
  for (unsigned at = 0; at < in_len && in[at] <= in_len - at - 1; at += in[at] + 1u) {
    if (in[at] != len || memcmp(in + at + 1, want, len) != 0) continue;
    *out = in + at + 1;
    *out_len = in[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void context_freep(SSL_CTX **ctx) {
  SSL_CTX_free(*ctx);
}

static void set_terms(SSL_CTX *ctx, const struct tc_tls_terms *terms) {
  int verify = SSL_VERIFY_PEER | (terms->peer_may_be_none ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT);

  SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(
      ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set1_client_sigalgs_list(ctx, "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:ed25519");
  SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(ctx, 0);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(ctx, 0);
  SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(ctx, 1);
  SSL_CTX_set_default_read_buffer_len(ctx, READ_AHEAD_BYTES);
  SSL_CTX_set_max_cert_list(ctx, CHAIN_BYTES_MAX);
  SSL_CTX_set_verify_depth(ctx, CHAIN_DEPTH_MAX);
  SSL_CTX_set_verify(ctx, verify, NULL);
  if (terms->alpn != NULL) {
    if (!terms->alpn_may_be_none) SSL_CTX_set_client_hello_cb(ctx, require_alpn, NULL);
    SSL_CTX_set_alpn_select_cb(ctx, select_alpn, (void *)(uintptr_t)terms->alpn);
  }
}

static tb_rc path_of(char out[PATH_MAX], const char *dir, enum tb_cert_file file,
                     struct tb_diag *diag) {
  TB_TRY(tb_cert_path(dir, "server", file, diag, out));
  const char *unfit = tc_pem_unfit(out);
  return unfit == NULL ? TB_OK : tb_fail(diag, TB_IO, "%s: %s", out, unfit);
}

/* Checks that peers with our authority accept our certificate, so that a reload with files of two authorities fails. */
static tb_rc check_chain(SSL_CTX *ctx, const char *path, struct tb_diag *diag) {
  X509_STORE_CTX *check = X509_STORE_CTX_new();
  STACK_OF(X509) *extra = NULL;
  tb_rc rc = TB_OK;

  if (check == NULL) return TB_NOMEM;
  SSL_CTX_get_extra_chain_certs(ctx, &extra);
  if (X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(ctx), SSL_CTX_get0_certificate(ctx),
                          extra) != 1)
    rc = pem_fail(diag, path, "certificate");
  else if (X509_verify_cert(check) != 1)
    rc = tb_fail(diag, TB_CORRUPT, "%s: %s", path,
                 X509_verify_cert_error_string(X509_STORE_CTX_get_error(check)));
  X509_STORE_CTX_free(check);
  ERR_clear_error();
  return rc;
}

tb_rc tc_tls_context_new(const char *dir, const struct tc_tls_terms *terms, struct tb_diag *diag,
                         SSL_CTX **out) {
  TB_CLEANUP(context_freep) SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
  char ca[PATH_MAX], cert[PATH_MAX], key[PATH_MAX];

  if (ctx == NULL) return tb_fail(diag, TB_NOMEM, "no memory for a TLS context");
  ERR_clear_error();
  set_terms(ctx, terms);
  if (terms->revoked != NULL && tc_tls_ask_revoked(ctx, terms->revoked) != TB_OK)
    return tb_fail(diag, TB_NOMEM, "no memory for a TLS context");
  TB_TRY(path_of(ca, dir, TB_CERT_CA, diag));
  TB_TRY(path_of(cert, dir, TB_CERT_CHAIN, diag));
  TB_TRY(path_of(key, dir, TB_CERT_KEY, diag));

  if (SSL_CTX_load_verify_file(ctx, ca) != 1) return pem_fail(diag, ca, "certificate");
  SSL_CTX_set_client_CA_list(ctx, SSL_load_client_CA_file(ca));
  if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
    return pem_fail(diag, cert, "certificate");
  if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(ctx) != 1)
    return pem_fail(diag, key, "private key");
  TB_TRY(check_chain(ctx, cert, diag));
  *out = TB_MOVE(ctx);
  return TB_OK;
}

uint64_t tc_tls_context_expires_s(const SSL_CTX *ctx) {
  const X509 *cert = SSL_CTX_get0_certificate(ctx);

  return cert != NULL ? tc_asn1_time_s(X509_get0_notAfter(cert)) : 0;
}

uint64_t tc_tls_context_authority_expires_s(const SSL_CTX *ctx) {
  STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(ctx));
  uint64_t first_s = 0;

  for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
    const X509 *cert = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i));
    uint64_t s = cert != NULL ? tc_asn1_time_s(X509_get0_notAfter(cert)) : 0;

    if (s != 0 && (first_s == 0 || s < first_s)) first_s = s;
  }
  return first_s;
}

bool tc_tls_context_has_name(const SSL_CTX *ctx, const char *host) {
  X509 *cert = SSL_CTX_get0_certificate(ctx);
  bool has = X509_check_host(cert, host, 0, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, NULL) == 1 ||
             X509_check_ip_asc(cert, host, 0) == 1;

  ERR_clear_error(); /* X509_check_ip_asc() fails on a host that is not an address */
  return has;
}

void tc_tls_peer_serial(const SSL *ssl, char out[TC_SERIAL_MAX + 1]) {
  const X509 *cert = SSL_get0_peer_certificate(ssl);

  out[0] = '\0';
  if (cert != NULL) tc_serial_text(X509_get0_serialNumber(cert), out);
}

STACK_OF(X509) * tc_tls_chain_of(const SSL *ssl) {
  STACK_OF(X509) *chain = ssl != NULL ? SSL_get0_verified_chain(ssl) : NULL;

  return chain != NULL ? X509_chain_up_ref(chain) : NULL;
}

uint64_t tc_tls_peer_expires_s(const SSL *ssl) {
  const X509 *cert = SSL_get0_peer_certificate(ssl);

  return cert != NULL ? tc_asn1_time_s(X509_get0_notAfter(cert)) : 0;
}

static void x509_freep(X509 **cert) {
  X509_free(*cert);
}

tb_rc tc_tls_identity(const SSL *ssl, struct tb_diag *diag, enum tc_role *out_role,
                      char out[TC_IDENTITY_BYTES + 1]) {
  TB_CLEANUP(x509_freep) X509 *cert = SSL_get1_peer_certificate(ssl);

  if (cert == NULL) return tb_fail(diag, TB_REFUSED, "no certificate");
  return tc_identity_of(cert, diag, out_role, out);
}

void tc_tls_why(const SSL *ssl, char *out, size_t out_bytes) {
  long verdict = SSL_get_verify_result(ssl);
  unsigned long code = ERR_peek_error();
  const char *why = ERR_reason_error_string(code);

  if (verdict != X509_V_OK)
    snprintf(out, out_bytes, "certificate refused: %s", X509_verify_cert_error_string(verdict));
  else if (why != NULL)
    snprintf(out, out_bytes, "%s", why);
  else
    snprintf(out, out_bytes, "%s", errno != 0 ? strerror(errno) : "connection ended");
  ERR_clear_error();
}
