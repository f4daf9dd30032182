/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/certs.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DAY_S = 24 * 60 * 60 };

struct signer {
  X509 *cert; /* NULL: it signs itself */
  EVP_PKEY *key;
};

static void must(int ok, const char *what) {
  if (ok) return;
  fprintf(stderr, "test certificates: %s failed\n", what);
  ERR_print_errors_fp(stderr);
  exit(1);
}

static FILE *open_file(const char *dir, const char *name, const char *ext, const char *mode) {
  char path[4096];

  must(snprintf(path, sizeof path, "%s/%s.%s", dir, name, ext) < (int)sizeof path, "path");
  FILE *file = fopen(path, mode);
  must(file != NULL, path);
  return file;
}

static void extend(X509 *cert, X509 *issuer, int nid, const char *value) {
  X509V3_CTX ctx;

  X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
  X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
  must(ext != NULL && X509_add_ext(cert, ext, -1), value);
  X509_EXTENSION_free(ext);
}

static X509 *certify(const char *name, const char *san, long seconds, EVP_PKEY *key,
                     struct signer by) {
  X509 *cert = X509_new();
  uint64_t serial;

  must(cert != NULL, "certificate");
  must(RAND_bytes((unsigned char *)&serial, sizeof serial), "serial number");
  must(X509_set_version(cert, X509_VERSION_3), "version");
  must(ASN1_INTEGER_set_uint64(X509_get_serialNumber(cert), serial >> 1), "serial number");
  must(X509_gmtime_adj(X509_getm_notBefore(cert), -DAY_S) != NULL, "start");
  must(X509_gmtime_adj(X509_getm_notAfter(cert), seconds) != NULL, "end");
  must(X509_set_pubkey(cert, key), "key");

  X509_NAME *subject = X509_get_subject_name(cert);
  must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1,
                                  0),
       "name");
  X509 *issuer = by.cert != NULL ? by.cert : cert;
  must(X509_set_issuer_name(cert, X509_get_subject_name(issuer)), "issuer");
  extend(cert, issuer, NID_basic_constraints,
         by.cert != NULL ? "critical,CA:FALSE" : "critical,CA:TRUE");
  extend(cert, issuer, NID_key_usage,
         by.cert != NULL ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign");
  if (san != NULL) extend(cert, issuer, NID_subject_alt_name, san);
  must(X509_sign(cert, by.key, EVP_sha256()), "signature");
  return cert;
}

static void issue(const char *dir, const char *name, const char *san, long seconds,
                  struct signer by) {
  EVP_PKEY *key = EVP_EC_gen("P-256");
  must(key != NULL, "key");
  if (by.key == NULL) by.key = key;
  X509 *cert = certify(name, san, seconds, key, by);

  FILE *file = open_file(dir, name, "pem", "w");
  must(PEM_write_X509(file, cert), "certificate file");
  fclose(file);
  file = open_file(dir, name, "key", "w");
  must(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), "key file");
  fclose(file);
  X509_free(cert);
  EVP_PKEY_free(key);
}

void tt_certs_issue(const char *dir, const char *name, const char *san, long seconds) {
  struct signer ca;

  FILE *file = open_file(dir, "ca", "pem", "r");
  ca.cert = PEM_read_X509(file, NULL, NULL, NULL);
  fclose(file);
  file = open_file(dir, "ca", "key", "r");
  ca.key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
  fclose(file);
  must(ca.cert != NULL && ca.key != NULL, "reading the CA");
  issue(dir, name, san, seconds, ca);
  X509_free(ca.cert);
  EVP_PKEY_free(ca.key);
}

void tt_certs_make(const char *dir) {
  mkdir(dir, 0700);
  issue(dir, "ca", NULL, DAY_S, (struct signer){ NULL, NULL });
  tt_certs_issue(
      dir, "server",
      "URI:tracecollect:server/test,DNS:localhost,DNS:collector.test,IP:127.0.0.1,IP:::1", DAY_S);
  tt_certs_issue(dir, "agent", "URI:tracecollect:agent/test", DAY_S);
  tt_certs_issue(dir, "reader", "URI:tracecollect:reader/test", DAY_S);
}
