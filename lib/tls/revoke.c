/* SPDX-License-Identifier: Apache-2.0 */
/* Each revocation signs a new list with the old entries and the next number. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/small_file.h"
#include "tls/issue.h"

enum { SERIAL_BYTES_MAX = 20 }; /* RFC 5280 */

static void closep(int *fd) {
  if (*fd >= 0) close(*fd);
}

static void closedirp(DIR **dir) {
  if (*dir != NULL) closedir(*dir);
}

static void fclosep(FILE **file) {
  if (*file != NULL) fclose(*file);
}

static void x509_freep(X509 **cert) {
  X509_free(*cert);
}

static void serial_freep(ASN1_INTEGER **serial) {
  ASN1_INTEGER_free(*serial);
}

/* --- the list ---------------------------------------------------------------------------------- */

static bool copy_entries(X509_CRL *to, X509_CRL *from) {
  STACK_OF(X509_REVOKED) *entries = from != NULL ? X509_CRL_get_REVOKED(from) : NULL;

  for (int i = 0; i < sk_X509_REVOKED_num(entries); i++) {
    X509_REVOKED *copy = X509_REVOKED_dup(sk_X509_REVOKED_value(entries, i));

    if (copy != NULL && X509_CRL_add0_revoked(to, copy) == 1) continue;
    X509_REVOKED_free(copy);
    return false;
  }
  return true;
}

static bool set_number(X509_CRL *list, X509_CRL *before) {
  ASN1_INTEGER *number =
      before != NULL ? X509_CRL_get_ext_d2i(before, NID_crl_number, NULL, NULL) : NULL;
  BIGNUM *next = number != NULL ? ASN1_INTEGER_to_BN(number, NULL) : BN_new();
  bool ok = next != NULL && BN_add_word(next, 1) == 1;
  ASN1_INTEGER *written = ok ? BN_to_ASN1_INTEGER(next, NULL) : NULL;

  ok = written != NULL && X509_CRL_add1_ext_i2d(list, NID_crl_number, written, 0, 0) == 1;
  ASN1_INTEGER_free(number);
  ASN1_INTEGER_free(written);
  BN_free(next);
  return ok;
}

static bool set_authority(X509_CRL *list, X509 *ca) {
  X509V3_CTX ctx;

  X509V3_set_ctx(&ctx, ca, NULL, NULL, list, 0);
  X509_EXTENSION *key =
      X509V3_EXT_conf_nid(NULL, &ctx, NID_authority_key_identifier, "keyid:always");
  bool ok = key != NULL && X509_CRL_set_issuer_name(list, X509_get_subject_name(ca)) == 1 &&
            X509_CRL_add_ext(list, key, -1) == 1;
  X509_EXTENSION_free(key);
  return ok;
}

/* days 0: the list is valid as long as its authority. */
static bool set_times(X509_CRL *list, X509 *ca, long days) {
  ASN1_TIME *now = X509_gmtime_adj(NULL, 0), *next = NULL;
  bool ok = now != NULL && X509_CRL_set1_lastUpdate(list, now) == 1;

  if (ok && days > 0) next = X509_time_adj_ex(NULL, (int)days, 0, NULL);
  if (ok && days > 0) ok = next != NULL && X509_CRL_set1_nextUpdate(list, next) == 1;
  if (ok && days == 0) ok = X509_CRL_set1_nextUpdate(list, X509_get0_notAfter(ca)) == 1;
  ASN1_TIME_free(now);
  ASN1_TIME_free(next);
  return ok;
}

/* Replaces d->list, which may be NULL. */
static tb_rc begin_list(struct tc__draft *d, long days) {
  X509_CRL *list = X509_CRL_new();

  if (list != NULL && X509_CRL_set_version(list, X509_CRL_VERSION_2) == 1 &&
      set_authority(list, d->ca) && set_times(list, d->ca, days) && set_number(list, d->list) &&
      copy_entries(list, d->list)) {
    X509_CRL_free(d->list);
    d->list = list;
    return TB_OK;
  }
  X509_CRL_free(list);
  return tc__draft_fail(d, "crl.pem");
}

static tb_rc add_entry(struct tc__draft *d, const ASN1_INTEGER *serial,
                       struct tc_certs_revoked *out) {
  X509_REVOKED *entry;

  tc_serial_text(serial, out->serial);
  if (X509_CRL_get0_by_serial(d->list, &entry, (ASN1_INTEGER *)(uintptr_t)serial) != 0)
    return TB_OK;
  entry = X509_REVOKED_new();
  ASN1_TIME *now = X509_gmtime_adj(NULL, 0);
  bool ok = entry != NULL && now != NULL &&
            X509_REVOKED_set_serialNumber(entry, (ASN1_INTEGER *)(uintptr_t)serial) == 1 &&
            X509_REVOKED_set_revocationDate(entry, now) == 1 &&
            X509_CRL_add0_revoked(d->list, entry) == 1;
  ASN1_TIME_free(now);
  if (!ok) {
    X509_REVOKED_free(entry);
    return tc__draft_fail(d, "crl.pem");
  }
  out->added++;
  return TB_OK;
}

static tb_rc write_list(struct tc__draft *d, bool again, struct tc_certs_revoked *out) {
  out->listed = (unsigned)sk_X509_REVOKED_num(X509_CRL_get_REVOKED(d->list));
  if (out->added == 0 && !again) return TB_OK;
  if (X509_CRL_sort(d->list) != 1 || X509_CRL_sign(d->list, d->ca_key, EVP_sha256()) == 0)
    return tc__draft_fail(d, "crl.pem");
  return tc__draft_write(d, "crl.pem", TC__PEM_LIST);
}

/* --- which certificates ------------------------------------------------------------------------ */

static bool ends_in_pem(const char *text) {
  size_t n = strlen(text);

  return n > 4 && strcmp(text + n - 4, ".pem") == 0;
}

static tb_rc add_file(struct tc__draft *d, const char *path, struct tc_certs_revoked *out) {
  TB_CLEANUP(fclosep) FILE *in = tb_small_file(path);
  TB_CLEANUP(x509_freep) X509 *cert = NULL;

  if (in == NULL) return tb_fail(d->diag, TB_IO, "%.300s: %s", path, tb_small_file_fault(errno));
  cert = PEM_read_X509(in, NULL, NULL, NULL);
  ERR_clear_error();
  if (cert == NULL) return tb_fail(d->diag, TB_CORRUPT, "%.300s: holds no certificate", path);
  if (X509_NAME_cmp(X509_get_subject_name(cert), X509_get_subject_name(d->ca)) == 0)
    return tb_fail(
        d->diag, TB_REFUSED,
        "an authority cannot revoke itself: make another one, and distribute its ca.pem");
  if (!tc__draft_is_ours(d, cert))
    return tb_fail(d->diag, TB_REFUSED, "%.300s was not issued by the authority in %s", path,
                   d->dir);
  return add_entry(d, X509_get0_serialNumber(cert), out);
}

/* Compares the encoded SANs, which a renewal does not change. */
static bool same_identity(const X509 *a, const X509 *b) {
  int in_a = X509_get_ext_by_NID(a, NID_subject_alt_name, -1);
  int in_b = X509_get_ext_by_NID(b, NID_subject_alt_name, -1);

  return in_a >= 0 && in_b >= 0 &&
         ASN1_OCTET_STRING_cmp(X509_EXTENSION_get_data(X509_get_ext(a, in_a)),
                               X509_EXTENSION_get_data(X509_get_ext(b, in_b))) == 0;
}

/* Ignores files that cannot be read: DIR may have other files. */
static tb_rc add_if_same(struct tc__draft *d, const char *file, const X509 *like,
                         struct tc_certs_revoked *out) {
  TB_CLEANUP(x509_freep) X509 *cert = NULL;
  struct tc__draft quiet = { .dir_fd = d->dir_fd, .dir = d->dir, .diag = NULL };
  struct tb_diag ignored;

  tb_diag_clear(&ignored);
  quiet.diag = &ignored;
  if (tc__draft_read(&quiet, file, &cert) != TB_OK) return TB_OK;
  if (!tc__draft_is_ours(d, cert) || !same_identity(cert, like)) return TB_OK;
  return add_entry(d, X509_get0_serialNumber(cert), out);
}

/* Revokes all certificates of the name: a renewed one may have the same key. */
static tb_rc add_name(struct tc__draft *d, const char *name, struct tc_certs_revoked *out) {
  TB_CLEANUP(x509_freep) X509 *newest = NULL;
  TB_CLEANUP(closedirp) DIR *all = opendir(d->dir);
  char file[TC__CERT_FILE_BYTES], path[4096];

  if (all == NULL) return tb_fail(d->diag, TB_IO, "%s: %s", d->dir, strerror(errno));
  snprintf(file, sizeof file, "%s.pem", name);
  TB_TRY(tc__draft_read(d, file, &newest));
  for (struct dirent *e; (e = readdir(all)) != NULL;)
    if (ends_in_pem(e->d_name)) TB_TRY(add_if_same(d, e->d_name, newest, out));
  if (snprintf(path, sizeof path, "%s/%s", d->dir, file) >= (int)sizeof path)
    return tb_fail(d->diag, TB_IO, "%.300s: path too long", d->dir);
  return add_file(d, path, out); /* last: reports errors of NAME.pem itself */
}

/* Accepts "0x" and colons, as other tools print them. Returns NULL if text is not a serial number. */
static ASN1_INTEGER *parse_serial(const char *text) {
  char digits[2 * SERIAL_BYTES_MAX + 1];
  size_t n = 0;

  if (strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0) text += 2;
  for (; *text != '\0'; text++) {
    if (*text == ':') continue;
    if (!isxdigit((unsigned char)*text) || n == sizeof digits - 1) return NULL;
    digits[n++] = *text;
  }
  digits[n] = '\0';
  BIGNUM *number = NULL;
  if (n == 0 || BN_hex2bn(&number, digits) == 0) return NULL;
  ASN1_INTEGER *serial = BN_is_zero(number) ? NULL : BN_to_ASN1_INTEGER(number, NULL);
  BN_free(number);
  return serial;
}

static tb_rc add_what(struct tc__draft *d, const char *what, struct tc_certs_revoked *out) {
  TB_CLEANUP(serial_freep) ASN1_INTEGER *serial = NULL;

  if (strchr(what, '/') != NULL || ends_in_pem(what)) return add_file(d, what, out);
  if (tc__certs_name_fits(what) && tc__certs_has(d->dir_fd, what, ".pem"))
    return add_name(d, what, out);
  serial = parse_serial(what);
  if (serial == NULL)
    return tb_fail(d->diag, TB_NOTFOUND,
                   "\"%.80s\" is neither a certificate in %s, nor a file, nor a serial number",
                   what, d->dir);
  return add_entry(d, serial, out);
}

tb_rc tc_certs_revoke(const char *dir, const char *what, long days, struct tb_diag *diag,
                      struct tc_certs_revoked *out) {
  TB_CLEANUP(closep) int fd = -1;
  TB_CLEANUP(tc__draft_finip) struct tc__draft d = { .dir = dir, .diag = diag };

  *out = (struct tc_certs_revoked){ 0 };
  TB_TRY(tc__certs_lock(dir, diag, &fd));
  d.dir_fd = fd;
  TB_TRY(tc__draft_authority(&d));
  TB_TRY(tc__draft_list(&d));
  TB_TRY(begin_list(&d, days));
  TB_TRY(add_what(&d, what, out));
  return write_list(&d, days > 0, out);
}
