/* SPDX-License-Identifier: Apache-2.0 */
/* Uses OpenSSL's C interface, not its configuration language, so that names from outside are never parsed. */
#include "tls/issue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"

enum {
  BACKDATE_SECONDS = 300, /* hosts with slightly slow clocks accept the certificate at once */
};

void tc__draft_finip(struct tc__draft *d) {
  if (d->ca != d->cert) X509_free(d->ca);
  if (d->ca_key != d->key) EVP_PKEY_free(d->ca_key);
  X509_free(d->cert);
  EVP_PKEY_free(d->key);
  X509_CRL_free(d->list);
  PKCS12_free(d->pack);
}

static void fclosep(FILE **file) {
  if (*file != NULL) fclose(*file);
}

tb_rc tc__draft_fail(struct tc__draft *d, const char *what) {
  const char *why = ERR_reason_error_string(ERR_peek_last_error());
  tb_rc rc = tb_fail(d->diag, TB_CORRUPT, "%s/%s: %s", d->dir, what, why != NULL ? why : "failed");

  ERR_clear_error();
  return rc;
}

static tb_rc io_fail(struct tc__draft *d, const char *file) {
  return tb_fail(d->diag, TB_IO, "%s/%s: %s", d->dir, file, tb_small_file_fault(errno));
}

/* --- files ------------------------------------------------------------------------------------- */

static int write_as(struct tc__draft *d, FILE *out, enum tc__pem what) {
  switch (what) {
  case TC__PEM_KEY: return PEM_write_PrivateKey(out, d->key, NULL, NULL, 0, NULL, NULL);
  case TC__PEM_CERT: return PEM_write_X509(out, d->cert);
  case TC__PEM_LIST: return PEM_write_X509_CRL(out, d->list);
  case TC__PACK: return i2d_PKCS12_fp(out, d->pack);
  }
  return 0;
}

tb_rc tc__draft_write(struct tc__draft *d, const char *file, enum tc__pem what) {
  char part[TC__CERT_FILE_BYTES + 8];

  snprintf(part, sizeof part, ".%s.part", file);
  unlinkat(d->dir_fd, part, 0);
  int fd = openat(d->dir_fd, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  what == TC__PEM_KEY || what == TC__PACK ? 0600 : 0644);
  TB_CLEANUP(fclosep) FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
  if (out == NULL) {
    tb_rc rc = io_fail(d, part);
    if (fd >= 0) close(fd);
    return rc;
  }
  if (write_as(d, out, what) != 1) return tc__draft_fail(d, part);
  if (fflush(out) != 0 || fsync(fd) != 0) return io_fail(d, part);
  if (renameat(d->dir_fd, part, d->dir_fd, file) != 0) return io_fail(d, file);
  return fsync(d->dir_fd) == 0 ? TB_OK : io_fail(d, file);
}

/* Replaces at most an orphan: a key whose certificate was never written. */
static tb_rc write_pair(struct tc__draft *d, const char *name) {
  char file[TC_CERT_NAME_MAX + 8];

  snprintf(file, sizeof file, "%s.key", name);
  TB_TRY(tc__draft_write(d, file, TC__PEM_KEY));
  snprintf(file, sizeof file, "%s.pem", name);
  return tc__draft_write(d, file, TC__PEM_CERT);
}

tb_rc tc__draft_open(struct tc__draft *d, const char *file, FILE **out) {
  int fd = tb_small_file_open(d->dir_fd, file);
  FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

  if (in == NULL) {
    tb_rc rc = io_fail(d, file);
    if (fd >= 0) close(fd);
    return rc;
  }
  *out = in;
  return TB_OK;
}

tb_rc tc__draft_authority(struct tc__draft *d) {
  TB_CLEANUP(fclosep) FILE *pem = NULL;
  TB_CLEANUP(fclosep) FILE *key = NULL;

  TB_TRY(tc__draft_open(d, "ca.pem", &pem));
  TB_TRY(tc__draft_open(d, "ca.key", &key));
  d->ca = PEM_read_X509(pem, NULL, NULL, NULL);
  if (d->ca == NULL) return tc__draft_fail(d, "ca.pem");
  d->ca_key = PEM_read_PrivateKey(key, NULL, NULL, NULL);
  if (d->ca_key == NULL) return tc__draft_fail(d, "ca.key");
  if (X509_check_private_key(d->ca, d->ca_key) != 1) return tc__draft_fail(d, "ca.key");
  return TB_OK;
}

tb_rc tc__draft_read(struct tc__draft *d, const char *file, X509 **out) {
  TB_CLEANUP(fclosep) FILE *in = NULL;

  TB_TRY(tc__draft_open(d, file, &in));
  *out = PEM_read_X509(in, NULL, NULL, NULL);
  return *out != NULL ? TB_OK : tc__draft_fail(d, file);
}

bool tc__draft_is_ours(const struct tc__draft *d, X509 *cert) {
  bool is = X509_NAME_cmp(X509_get_issuer_name(cert), X509_get_subject_name(d->ca)) == 0 &&
            X509_verify(cert, d->ca_key) == 1;

  ERR_clear_error();
  return is;
}

tb_rc tc__draft_list(struct tc__draft *d) {
  TB_CLEANUP(fclosep) FILE *in = NULL;

  if (!tc__certs_has(d->dir_fd, "crl", ".pem")) return TB_OK;
  TB_TRY(tc__draft_open(d, "crl.pem", &in));
  d->list = PEM_read_X509_CRL(in, NULL, NULL, NULL);
  if (d->list == NULL) return tc__draft_fail(d, "crl.pem");
  if (X509_CRL_verify(d->list, d->ca_key) == 1) return TB_OK;
  ERR_clear_error();
  return tb_fail(d->diag, TB_CORRUPT, "%s/crl.pem: not signed by the authority of this folder",
                 d->dir);
}

/* --- certificate ------------------------------------------------------------------------------- */

static bool set_serial(X509 *cert) {
  unsigned char bytes[16];
  BIGNUM *number = NULL;
  bool ok = RAND_bytes(bytes, sizeof bytes) == 1;

  bytes[0] = (unsigned char)((bytes[0] & 0x7f) | 0x40); /* positive and of full length */
  if (ok) number = BN_bin2bn(bytes, sizeof bytes, NULL);
  ok = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert)) != NULL;
  BN_free(number);
  return ok;
}

static bool set_subject(X509 *cert, const char *common_name) {
  X509_NAME *name = X509_get_subject_name(cert);

  return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_UTF8, (const unsigned char *)"tracecollect",
                                    -1, -1, 0) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name,
                                    -1, -1, 0) == 1;
}

tb_rc tc__draft_new_key(struct tc__draft *d, const char *name) {
  EVP_PKEY_free(d->key);
  d->key = EVP_EC_gen("P-256");
  if (d->key == NULL || X509_set_pubkey(d->cert, d->key) != 1) return tc__draft_fail(d, name);
  return TB_OK;
}

tb_rc tc__draft_number(struct tc__draft *d, const char *name) {
  return set_serial(d->cert) ? TB_OK : tc__draft_fail(d, name);
}

tb_rc tc__draft_times(struct tc__draft *d, const char *name, bool authority, long days) {
  const ASN1_TIME *last = authority ? NULL : X509_get0_notAfter(d->ca);

  if (X509_gmtime_adj(X509_getm_notBefore(d->cert), -BACKDATE_SECONDS) == NULL ||
      X509_time_adj_ex(X509_getm_notAfter(d->cert), (int)days, 0, NULL) == NULL)
    return tc__draft_fail(d, name);
  if (last == NULL || ASN1_TIME_compare(X509_get0_notAfter(d->cert), last) <= 0) return TB_OK;
  return X509_set1_notAfter(d->cert, last) == 1 ? TB_OK : tc__draft_fail(d, name);
}

static tb_rc begin_cert(struct tc__draft *d, const char *common_name, bool authority, long days) {
  d->cert = X509_new();
  if (d->cert == NULL || X509_set_version(d->cert, X509_VERSION_3) != 1 ||
      !set_subject(d->cert, common_name))
    return tc__draft_fail(d, common_name);
  TB_TRY(tc__draft_new_key(d, common_name));
  TB_TRY(tc__draft_number(d, common_name));
  return tc__draft_times(d, common_name, authority, days);
}

bool tc__draft_extend(struct tc__draft *d, int nid, const char *value) {
  X509V3_CTX ctx;

  X509V3_set_ctx(&ctx, d->ca, d->cert, NULL, NULL, 0);
  X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
  bool ok = extension != NULL && X509_add_ext(d->cert, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return ok;
}

static bool add_text_name(GENERAL_NAMES *names, int type, const char *text) {
  GENERAL_NAME *name = GENERAL_NAME_new();
  ASN1_IA5STRING *value = ASN1_IA5STRING_new();

  if (name == NULL || value == NULL || ASN1_STRING_set(value, text, -1) != 1) {
    ASN1_IA5STRING_free(value);
    GENERAL_NAME_free(name);
    return false;
  }
  GENERAL_NAME_set0_value(name, type, value);
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

static bool add_address(GENERAL_NAMES *names, const char *address) {
  GENERAL_NAME *name = GENERAL_NAME_new();
  ASN1_OCTET_STRING *value = a2i_IPADDRESS(address);

  if (name == NULL || value == NULL) {
    ASN1_OCTET_STRING_free(value);
    GENERAL_NAME_free(name);
    return false;
  }
  GENERAL_NAME_set0_value(name, GEN_IPADD, value);
  if (sk_GENERAL_NAME_push(names, name) > 0) return true;
  GENERAL_NAME_free(name);
  return false;
}

static bool is_host_name(const char *text) {
  size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-");

  return n > 0 && n <= 253 && text[n] == '\0' && text[0] != '.' && text[0] != '-';
}

static bool is_address(const char *text) {
  unsigned char bytes[sizeof(struct in6_addr)];

  return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Adds the names that clients may dial: localhost, the loopback addresses, the host's name and `name`. */
static bool add_server_names(GENERAL_NAMES *names, const char *name) {
  char host[254] = "";

  if (gethostname(host, sizeof host - 1) != 0 || !is_host_name(host)) host[0] = '\0';
  if (!add_text_name(names, GEN_DNS, "localhost")) return false;
  if (*host != '\0' && strcmp(host, "localhost") != 0 && !add_text_name(names, GEN_DNS, host))
    return false;
  if (!add_address(names, "127.0.0.1") || !add_address(names, "::1")) return false;

  if (is_address(name))
    return strcmp(name, "127.0.0.1") == 0 || strcmp(name, "::1") == 0 || add_address(names, name);
  if (!is_host_name(name) || strcmp(name, host) == 0 || strcmp(name, "localhost") == 0) return true;
  return add_text_name(names, GEN_DNS, name);
}

static bool add_names(struct tc__draft *d, enum tc_role role, const char *name, bool dialled) {
  GENERAL_NAMES *names = GENERAL_NAMES_new();
  char uri[32 + TC_CERT_NAME_MAX];
  bool ok = names != NULL;

  snprintf(uri, sizeof uri, "tracecollect:%s/%s", tc_role_name(role), name);
  ok = ok && add_text_name(names, GEN_URI, uri);
  if (role == TC_ROLE_SERVER) ok = ok && add_server_names(names, dialled ? name : "");
  ok = ok && X509_add1_ext_i2d(d->cert, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
  GENERAL_NAMES_free(names);
  return ok;
}

static tb_rc sign(struct tc__draft *d, const char *name) {
  if (X509_set_issuer_name(d->cert, X509_get_subject_name(d->ca)) != 1 ||
      X509_sign(d->cert, d->ca_key, EVP_sha256()) == 0)
    return tc__draft_fail(d, name);
  return write_pair(d, name);
}

tb_rc tc__certs_authority(int dir_fd, const char *dir, long days, struct tb_diag *diag) {
  TB_CLEANUP(tc__draft_finip) struct tc__draft d = { .dir_fd = dir_fd, .dir = dir, .diag = diag };
  unsigned char random[4];
  char common_name[40];

  /* A random name lets error messages distinguish authorities of several folders. */
  if (RAND_bytes(random, sizeof random) != 1) return tc__draft_fail(&d, "ca.key");
  snprintf(common_name, sizeof common_name, "private CA %02x%02x%02x%02x", random[0], random[1],
           random[2], random[3]);
  TB_TRY(begin_cert(&d, common_name, true, days));
  d.ca = d.cert;
  d.ca_key = d.key;
  if (!tc__draft_extend(&d, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !tc__draft_extend(&d, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !tc__draft_extend(&d, NID_subject_key_identifier, "hash") ||
      !tc__draft_extend(&d, NID_authority_key_identifier, "keyid:always"))
    return tc__draft_fail(&d, "ca.pem");
  return sign(&d, "ca");
}

tb_rc tc__certs_fingerprint(int dir_fd, const char *dir, struct tb_diag *diag,
                            char out[TC_FINGERPRINT_BYTES]) {
  TB_CLEANUP(tc__draft_finip) struct tc__draft d = { .dir_fd = dir_fd, .dir = dir, .diag = diag };
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;

  TB_TRY(tc__draft_read(&d, "ca.pem", &d.cert));
  if (X509_digest(d.cert, EVP_sha256(), digest, &n) != 1) return tc__draft_fail(&d, "ca.pem");
  for (unsigned i = 0; i < n; i++)
    snprintf(out + 3 * i, TC_FINGERPRINT_BYTES - 3 * i, "%02X%s", digest[i], i + 1 < n ? ":" : "");
  return TB_OK;
}

tb_rc tc__certs_issue(int dir_fd, const char *dir, enum tc_role role, const char *name,
                      bool dialled, long days, struct tb_diag *diag) {
  TB_CLEANUP(tc__draft_finip) struct tc__draft d = { .dir_fd = dir_fd, .dir = dir, .diag = diag };

  TB_TRY(tc__draft_authority(&d));
  TB_TRY(begin_cert(&d, name, false, days));
  if (!tc__draft_extend(&d, NID_basic_constraints, "critical,CA:FALSE") ||
      !tc__draft_extend(&d, NID_key_usage, "critical,digitalSignature") ||
      !tc__draft_extend(&d, NID_ext_key_usage,
                        role == TC_ROLE_SERVER ? "serverAuth" : "clientAuth") ||
      !tc__draft_extend(&d, NID_subject_key_identifier, "hash") ||
      !tc__draft_extend(&d, NID_authority_key_identifier, "keyid:always") ||
      !add_names(&d, role, name, dialled))
    return tc__draft_fail(&d, name);
  return sign(&d, name);
}
