/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/frame.h"

#define SERVER_ROLE "tracecollect:server/"
#define OTHER_PORT  "; is it the port for agents?"

enum {
  RECORD_SLACK = 1 << 10,   /* bytes that encryption adds to each record */
  CONTROL_BYTES = 16 << 10, /* the handshake, heartbeats, alerts */
  OUT_BYTES = TA_TLS_WRITE_BYTES + RECORD_SLACK + CONTROL_BYTES,
};

struct ta_tls {
  SSL *ssl;
  BIO *in; /* owned by ssl, like the BIO that writes to out */
  const struct ta_tls_files *files;
  struct tb_diag *diag;
  char host[256];
  size_t out_n, out_sent; /* bytes in out, and how many of them were sent */
  unsigned char out[OUT_BYTES];
};

tb_rc (*ta_tls_before_first)(struct tb_diag *diag);

static OSSL_LIB_CTX *library;
static BIO_METHOD *out_method;

/* A BIO for the bytes that OpenSSL writes. OpenSSL's own memory BIO copies its content when it grows, and zeroes its memory
 * whenever it is emptied; this one does neither. */

static int out_write(BIO *bio, const char *bytes, size_t n, size_t *out_written) {
  struct ta_tls *tls = BIO_get_data(bio);

  BIO_clear_retry_flags(bio);
  if (n > sizeof tls->out - tls->out_n) {
    BIO_set_retry_write(bio);
    return 0;
  }
  memcpy(tls->out + tls->out_n, bytes, n);
  tls->out_n += n;
  *out_written = n;
  return 1;
}

static long out_control(BIO *bio, int command, long number, void *pointer) {
  (void)bio, (void)number, (void)pointer;
  return command == BIO_CTRL_FLUSH;
}

static bool make_out_method(void) {
  out_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "traceagent");
  return out_method != NULL && BIO_meth_set_write_ex(out_method, out_write) == 1 &&
         BIO_meth_set_ctrl(out_method, out_control) == 1;
}

static void library_start(void) {
  OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, NULL);
  if (make_out_method()) library = OSSL_LIB_CTX_new();
}

void ta_tls_thread_end(void) {
  if (library == NULL) return; /* OpenSSL was never called, and may not be installed */
  OPENSSL_thread_stop_ex(library);
  OPENSSL_thread_stop();
}

static const char *error_text(unsigned long error) {
  const char *text = ERR_reason_error_string(error);

  return text != NULL ? text : "unknown TLS error";
}

/* The peer. */

static bool is_server_uri(const GENERAL_NAME *name) {
  const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
  const char *text = (const char *)ASN1_STRING_get0_data(uri);
  size_t n = (size_t)ASN1_STRING_length(uri), role = strlen(SERVER_ROLE);

  return n > role && memcmp(text, SERVER_ROLE, role) == 0 && memchr(text, 0, n) == NULL;
}

static bool host_fits(X509 *cert, const char *host) {
  return X509_check_ip_asc(cert, host, 0) == 1 || X509_check_host(cert, host, 0, 0, NULL) == 1;
}

static bool is_collector(struct ta_tls *tls, X509 *cert) {
  GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
  int uris = 0;
  bool server = false;

  for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    uris++;
    server = is_server_uri(name);
  }
  GENERAL_NAMES_free(names);
  if (uris == 0 ? host_fits(cert, tls->host) : uris == 1 && server) return true;
  tb_fail(tls->diag, TB_REFUSED,
          uris == 0 ? "collector's certificate is not for %s"
                    : "collector's certificate has no single SAN URI " SERVER_ROLE "NAME (%s)",
          tls->host);
  return false;
}

static bool is_revoked(SSL *ssl, X509 *cert);

static bool is_of_another_authority(int error) {
  switch (error) {
  case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
  case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
  case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
  case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: return true;
  default: return false;
  }
}

static int not_trusted(struct ta_tls *tls, const X509_STORE_CTX *store) {
  int error = X509_STORE_CTX_get_error(store);
  const char *text = X509_verify_cert_error_string(error), *ca = tls->files->path[TA_PEM_CA];
  bool is_authority = X509_STORE_CTX_get_error_depth(store) > 0;

  if (is_of_another_authority(error))
    tb_fail(tls->diag, TB_REFUSED, "collector's certificate: not signed by %s %.80s (%s)",
            ta_pem_names[TA_PEM_CA], ca, text);
  else
    tb_fail(tls->diag, TB_REFUSED, "collector's %s: %s (by %s %.80s)",
            is_authority ? "authority" : "certificate", text, ta_pem_names[TA_PEM_CA], ca);
  return 0;
}

/* Called during the handshake, so that the collector gets a refusal as an alert. */
static int on_verify(int ok, X509_STORE_CTX *store) {
  SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
  struct ta_tls *tls = SSL_get_app_data(ssl);

  if (!ok) return not_trusted(tls, store);
  if (is_revoked(ssl, X509_STORE_CTX_get_current_cert(store))) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REVOKED);
    tb_fail(tls->diag, TB_REFUSED, "collector's certificate: %s (by %s %.100s)",
            X509_verify_cert_error_string(X509_V_ERR_CERT_REVOKED), ta_pem_names[TA_PEM_CRL],
            tls->files->path[TA_PEM_CRL]);
    return 0;
  }
  if (X509_STORE_CTX_get_error_depth(store) > 0) return 1;
  if (is_collector(tls, X509_STORE_CTX_get_current_cert(store))) return 1;
  X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

/* Opening. */

static bool is_at_end(void) {
  unsigned long error = ERR_peek_last_error();

  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static tb_rc wrong(struct tb_diag *diag, int which, const struct ta_tls_files *files) {
  static const char *const wanted[TA_PEMS] = {
    [TA_PEM_CA] = "certificate in PEM",
    [TA_PEM_CERT] = "certificate in PEM",
    [TA_PEM_KEY] = "private key in PEM",
    [TA_PEM_CRL] = "whole list in PEM that the CA has signed",
  };
  unsigned long error = ERR_peek_last_error();
  char why[100] = "";

  if (which != TA_PEM_CRL && !is_at_end() && ERR_GET_REASON(error) != ERR_R_UNSUPPORTED)
    snprintf(why, sizeof why, " (%s)", error_text(error));
  return tb_fail(diag, TB_NOTFOUND, "%s %.100s: no %s%s", ta_pem_names[which], files->path[which],
                 wanted[which], why);
}

static tb_rc mismatch(struct tb_diag *diag, const struct ta_tls_files *files) {
  return tb_fail(diag, TB_NOTFOUND, "%s %.80s does not fit %s %.80s", ta_pem_names[TA_PEM_KEY],
                 files->path[TA_PEM_KEY], ta_pem_names[TA_PEM_CERT], files->path[TA_PEM_CERT]);
}

/* Returns the next certificate in a file; NULL: there is none. */
static X509 *next_certificate(BIO *bio) {
  X509 *made = X509_new_ex(library, NULL), *cert = made;

  if (made != NULL && PEM_read_bio_X509(bio, &cert, NULL, NULL) != NULL) return cert;
  X509_free(cert);
  return NULL;
}

static bool take_ca(SSL_CTX *ctx, BIO *bio) {
  X509_STORE *store = SSL_CTX_get_cert_store(ctx);
  bool any = false;

  for (X509 *cert; (cert = next_certificate(bio)) != NULL; X509_free(cert))
    any |= X509_STORE_add_cert(store, cert) == 1;
  return any;
}

/* Uses the first certificate of the file; those after it are the chain that signed it. */
static bool take_cert(SSL_CTX *ctx, BIO *bio) {
  X509 *cert = next_certificate(bio);
  bool taken = cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1;

  X509_free(cert);
  while (taken && (cert = next_certificate(bio)) != NULL) {
    taken = SSL_CTX_add0_chain_cert(ctx, cert) == 1;
    if (!taken) X509_free(cert);
  }
  return taken;
}

/* Replaces OpenSSL's function, which would ask for the passphrase at the terminal and wait for an answer. */
static int no_passphrase(char *out, int max, int writing, void *asked) {
  (void)out, (void)max, (void)writing;
  *(bool *)asked = true;
  return -1;
}

static tb_rc take_key(SSL_CTX *ctx, BIO *bio, const struct ta_tls_files *files,
                      struct tb_diag *diag) {
  bool asked = false;
  EVP_PKEY *key = PEM_read_bio_PrivateKey_ex(bio, NULL, no_passphrase, &asked, library, NULL);
  bool taken = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1;
  bool read = key != NULL;

  EVP_PKEY_free(key);
  if (taken) return TB_OK;
  if (asked)
    return tb_fail(diag, TB_NOTFOUND, "%s %.100s: encrypted, and the agent takes no passphrase",
                   ta_pem_names[TA_PEM_KEY], files->path[TA_PEM_KEY]);
  return read ? mismatch(diag, files) : wrong(diag, TA_PEM_KEY, files);
}

/* --- revocation --------------------------------------------------------------------------------
 * The lists lie in the context's store, which is this connection's own. OpenSSL's check is not used: it refuses
 * everybody once a list is past its next update. */

static bool is_signed(X509_CRL *list, STACK_OF(X509_OBJECT) * authorities) {
  for (int i = 0; i < sk_X509_OBJECT_num(authorities); i++) {
    X509 *ca = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(authorities, i));

    if (ca != NULL && (X509_get_key_usage(ca) & KU_CRL_SIGN) != 0 &&
        X509_NAME_cmp(X509_CRL_get_issuer(list), X509_get_subject_name(ca)) == 0 &&
        X509_CRL_verify(list, X509_get0_pubkey(ca)) == 1)
      return true;
  }
  return false;
}

/* Returns false if a critical extension marks the list as a part of a list, or as a change to one. */
static bool is_whole(const X509_CRL *list) {
  for (int i = 0; i < X509_CRL_get_ext_count(list); i++)
    if (X509_EXTENSION_get_critical(X509_CRL_get_ext(list, i))) return false;
  return true;
}

static X509_CRL *next_list(BIO *bio) {
  X509_CRL *made = X509_CRL_new_ex(library, NULL), *list = made;

  if (made != NULL && PEM_read_bio_X509_CRL(bio, &list, NULL, NULL) != NULL) return list;
  X509_CRL_free(list);
  return NULL;
}

static bool take_lists(SSL_CTX *ctx, BIO *bio) {
  X509_STORE *store = SSL_CTX_get_cert_store(ctx);
  bool any = false, good = true;

  for (X509_CRL *list; good && (list = next_list(bio)) != NULL; X509_CRL_free(list)) {
    good = is_whole(list) && is_signed(list, X509_STORE_get0_objects(store)) &&
           X509_STORE_add_crl(store, list) == 1;
    any = true;
  }
  return any && good && is_at_end();
}

static bool is_revoked(SSL *ssl, X509 *cert) {
  X509_STORE *store = SSL_CTX_get_cert_store(SSL_get_SSL_CTX(ssl));
  STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(store);
  X509_REVOKED *entry;

  for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
    X509_CRL *list = X509_OBJECT_get0_X509_CRL(sk_X509_OBJECT_value(all, i));
    if (list != NULL && X509_CRL_get0_by_cert(list, &entry, cert) == 1) return true;
  }
  return false;
}

static tb_rc take_files(SSL_CTX *ctx, BIO *bio, int which, const struct ta_tls_files *files,
                        struct tb_diag *diag) {
  switch (which) {
  case TA_PEM_CA: return take_ca(ctx, bio) ? TB_OK : wrong(diag, which, files);
  case TA_PEM_CERT: return take_cert(ctx, bio) ? TB_OK : wrong(diag, which, files);
  case TA_PEM_KEY: return take_key(ctx, bio, files, diag);
  default: return take_lists(ctx, bio) ? TB_OK : wrong(diag, which, files);
  }
}

static tb_rc take_all(SSL_CTX *ctx, const struct ta_tls_files *files, const struct ta_pems *pems,
                      struct tb_diag *diag) {
  for (int i = 0; i < TA_PEMS; i++) {
    if (pems->bytes[i] == NULL) continue;
    BIO *bio = BIO_new_mem_buf(pems->bytes[i], (int)pems->n[i]);
    tb_rc rc = bio == NULL ? TB_NOMEM : take_files(ctx, bio, i, files, diag);
    BIO_free(bio);
    if (rc != TB_OK) return rc;
  }
  return SSL_CTX_check_private_key(ctx) == 1 ? TB_OK : mismatch(diag, files);
}

static tb_rc load(SSL_CTX *ctx, const struct ta_tls_files *files, struct tb_diag *diag) {
  struct ta_pems fresh;
  tb_rc rc = ta_pems_read(files->path, diag, &fresh);

  if (rc != TB_OK && files->kept == NULL) return rc;
  if (rc != TB_OK) tb_diag_clear(diag);
  rc = take_all(ctx, files, rc == TB_OK ? &fresh : files->kept, diag);
  ta_pems_free(&fresh);
  return rc;
}

static tb_rc configure(SSL_CTX *ctx) {
  static const unsigned char alpn[] = "\x0e" TP_ALPN;

  _Static_assert(sizeof TP_ALPN - 1 == 0x0e, "ALPN length byte");
  if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                    "TLS_CHACHA20_POLY1305_SHA256") != 1 ||
      SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1) != 0)
    return TB_NOMEM;
  SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, on_verify);
  SSL_CTX_set_verify_depth(ctx, 3);
  SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
  return TB_OK;
}

/* Returns true for a name: SNI does not allow addresses. */
static bool is_host_name(const char *host) {
  unsigned char addr[16];

  return host[0] != 0 && inet_pton(AF_INET, host, addr) != 1 &&
         inet_pton(AF_INET6, host, addr) != 1;
}

static tb_rc start(struct ta_tls *tls, SSL_CTX *ctx) {
  tls->ssl = SSL_new(ctx);
  tls->in = BIO_new(BIO_s_mem());
  BIO *out = BIO_new(out_method);
  if (tls->ssl == NULL || tls->in == NULL || out == NULL) {
    BIO_free(tls->in);
    BIO_free(out);
    return TB_NOMEM;
  }
  BIO_set_mem_eof_return(tls->in, -1);
  BIO_set_data(out, tls);
  BIO_set_init(out, 1);
  SSL_set_bio(tls->ssl, tls->in, out);
  SSL_set_app_data(tls->ssl, tls);
  SSL_set_connect_state(tls->ssl);
  if (is_host_name(tls->host) && SSL_set_tlsext_host_name(tls->ssl, tls->host) != 1)
    return TB_NOMEM;
  return TB_OK;
}

tb_rc ta_tls_new(const struct ta_tls_files *files, const char *host, struct tb_diag *diag,
                 struct ta_tls **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;

  if (ta_tls_before_first != NULL) TB_TRY(ta_tls_before_first(diag));
  pthread_once(&once, library_start);
  ERR_clear_error();
  struct ta_tls *tls = calloc(1, sizeof *tls);
  SSL_CTX *ctx = library == NULL ? NULL : SSL_CTX_new_ex(library, NULL, TLS_client_method());
  tb_rc rc = tls == NULL || ctx == NULL ? TB_NOMEM : configure(ctx);
  if (rc == TB_OK) rc = load(ctx, files, diag);
  if (rc == TB_OK) {
    tls->files = files;
    tls->diag = diag;
    strncpy(tls->host, host, sizeof tls->host - 1);
    rc = start(tls, ctx);
  }
  SSL_CTX_free(ctx); /* ssl holds its own reference */
  ERR_clear_error();
  if (rc == TB_NOMEM) tb_fail(diag, rc, "no memory for TLS");
  if (rc == TB_OK)
    *out = tls;
  else
    ta_tls_free(tls);
  return rc;
}

void ta_tls_free(struct ta_tls *tls) {
  if (tls == NULL) return;
  SSL_free(tls->ssl);
  free(tls);
}

/* Running. */

/* Returns true for alerts that refuse this certificate or this protocol; the cause of other alerts may pass by itself. */
static bool is_refusal(int alert) {
  switch (alert) {
  case SSL_AD_HANDSHAKE_FAILURE:
  case SSL_AD_BAD_CERTIFICATE:
  case SSL_AD_UNSUPPORTED_CERTIFICATE:
  case SSL_AD_CERTIFICATE_REVOKED:
  case SSL_AD_CERTIFICATE_EXPIRED:
  case SSL_AD_CERTIFICATE_UNKNOWN:
  case SSL_AD_UNKNOWN_CA:
  case SSL_AD_ACCESS_DENIED:
  case SSL_AD_PROTOCOL_VERSION:
  case SSL_AD_CERTIFICATE_REQUIRED:
  case SSL_AD_NO_APPLICATION_PROTOCOL: return true;
  default: return false;
  }
}

static bool names_our_certificate(int alert) {
  switch (alert) {
  case SSL_AD_BAD_CERTIFICATE:
  case SSL_AD_UNSUPPORTED_CERTIFICATE:
  case SSL_AD_CERTIFICATE_REVOKED:
  case SSL_AD_CERTIFICATE_EXPIRED:
  case SSL_AD_CERTIFICATE_UNKNOWN:
  case SSL_AD_UNKNOWN_CA: return true;
  default: return false;
  }
}

static tb_rc refused(struct ta_tls *tls, int alert) {
  const char *text = SSL_alert_desc_string_long(alert);
  tb_rc rc = is_refusal(alert) ? TB_REFUSED : TB_PROTOCOL;

  if (names_our_certificate(alert))
    return tb_fail(tls->diag, rc, "collector refuses %s %.100s: TLS alert %d, %s",
                   ta_pem_names[TA_PEM_CERT], tls->files->path[TA_PEM_CERT], alert, text);
  return tb_fail(tls->diag, rc, "collector refuses: TLS alert %d, %s%s", alert, text,
                 alert == SSL_AD_NO_APPLICATION_PROTOCOL ? OTHER_PORT : "");
}

static tb_rc broken(struct ta_tls *tls, unsigned long error) {
  int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
  bool is_alert = ERR_GET_LIB(error) == ERR_LIB_SSL && alert >= 0 && alert <= 255;
  bool is_plain =
      ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER;

  if (is_alert) return refused(tls, alert);
  return tb_fail(tls->diag, TB_PROTOCOL, "TLS: %s%s", error_text(error),
                 is_plain ? OTHER_PORT : "");
}

static tb_rc outcome(struct ta_tls *tls, int answer) {
  int what = SSL_get_error(tls->ssl, answer);

  if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) return TB_AGAIN;
  if (what == SSL_ERROR_ZERO_RETURN)
    return tb_fail(tls->diag, TB_END, "collector closed the connection");
  if (tls->diag->rc == TB_REFUSED) return TB_REFUSED; /* on_verify() has stored the reason */

  return broken(tls, ERR_peek_error());
}

tb_rc ta_tls_feed(struct ta_tls *tls, const void *bytes, size_t n) {
  return BIO_write(tls->in, bytes, (int)n) == (int)n ? TB_OK : TB_NOMEM;
}

tb_rc ta_tls_shake(struct ta_tls *tls) {
  const unsigned char *alpn;
  unsigned alpn_len;

  ERR_clear_error();
  int answer = SSL_do_handshake(tls->ssl);
  if (answer != 1) return outcome(tls, answer);
  SSL_get0_alpn_selected(tls->ssl, &alpn, &alpn_len);
  if (alpn_len != sizeof TP_ALPN - 1 || memcmp(alpn, TP_ALPN, alpn_len) != 0)
    return tb_fail(tls->diag, TB_REFUSED, "%s does not speak " TP_ALPN " (no ALPN)" OTHER_PORT,
                   tls->host);
  return TB_OK;
}

tb_rc ta_tls_read(struct ta_tls *tls, void *out, size_t max, size_t *out_n) {
  ERR_clear_error();
  int answer = SSL_read_ex(tls->ssl, out, max, out_n);
  return answer == 1 ? TB_OK : outcome(tls, answer);
}

tb_rc ta_tls_write(struct ta_tls *tls, const void *bytes, size_t n) {
  size_t written;

  ERR_clear_error();
  int answer = SSL_write_ex(tls->ssl, bytes, n, &written);
  return answer == 1 ? TB_OK : outcome(tls, answer);
}

void ta_tls_goodbye(struct ta_tls *tls) {
  ERR_clear_error();
  if (SSL_is_init_finished(tls->ssl)) SSL_shutdown(tls->ssl);
}

size_t ta_tls_pending(struct ta_tls *tls, const unsigned char **out_bytes) {
  *out_bytes = tls->out + tls->out_sent;
  return tls->out_n - tls->out_sent;
}

void ta_tls_sent(struct ta_tls *tls, size_t n) {
  tls->out_sent += n;
  if (tls->out_sent == tls->out_n) tls->out_sent = tls->out_n = 0;
}
