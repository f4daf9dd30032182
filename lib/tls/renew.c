/* SPDX-License-Identifier: Apache-2.0 */
/* A renewed certificate is a copy with a new serial number and new times, so that names and rights do not change. */
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tls/issue.h"

static void closep(int *fd) {
  if (*fd >= 0) close(*fd);
}

static void x509_freep(X509 **cert) {
  X509_free(*cert);
}

static tb_rc check_old(struct tc__draft *d, const char *name, X509 *old, bool new_key) {
  X509_REVOKED *entry;

  if (!tc__draft_is_ours(d, old))
    return tb_fail(d->diag, TB_REFUSED, "%s/%s.pem was not issued by the authority of this folder",
                   d->dir, name);
  TB_TRY(tc__draft_list(d));
  if (new_key || d->list == NULL || X509_CRL_get0_by_cert(d->list, &entry, old) != 1) return TB_OK;
  return tb_fail(d->diag, TB_REFUSED,
                 "%s/%s.pem was revoked, others may have its key: renew it with --new-key", d->dir,
                 name);
}

static tb_rc keep_old(struct tc__draft *d, const char *name, X509 *old) {
  char file[TC__CERT_FILE_BYTES], serial[TC_SERIAL_MAX + 1];
  X509 *fresh = d->cert;

  tc_serial_text(X509_get0_serialNumber(old), serial);
  snprintf(file, sizeof file, "%s.%s.pem", name, serial);
  d->cert = old;
  tb_rc rc = tc__draft_write(d, file, TC__PEM_CERT);
  d->cert = fresh;
  return rc;
}

static tb_rc take_new_key(struct tc__draft *d, const char *name) {
  int at = X509_get_ext_by_NID(d->cert, NID_subject_key_identifier, -1);

  TB_TRY(tc__draft_new_key(d, name));
  if (at >= 0) X509_EXTENSION_free(X509_delete_ext(d->cert, at));
  if (!tc__draft_extend(d, NID_subject_key_identifier, "hash")) return tc__draft_fail(d, name);
  return TB_OK;
}

/* If the process is killed between key and certificate, another renewal with a new key repairs the pair. */
static tb_rc write_new(struct tc__draft *d, const char *name, bool new_key) {
  char file[TC__CERT_FILE_BYTES];

  if (X509_sign(d->cert, d->ca_key, EVP_sha256()) == 0) return tc__draft_fail(d, name);
  snprintf(file, sizeof file, "%s.key", name);
  if (new_key) TB_TRY(tc__draft_write(d, file, TC__PEM_KEY));
  snprintf(file, sizeof file, "%s.pem", name);
  return tc__draft_write(d, file, TC__PEM_CERT);
}

tb_rc tc_certs_renew(const char *dir, const char *name, long days, bool new_key,
                     struct tb_diag *diag) {
  TB_CLEANUP(closep) int fd = -1;
  TB_CLEANUP(x509_freep) X509 *old = NULL;
  TB_CLEANUP(tc__draft_finip) struct tc__draft d = { .dir = dir, .diag = diag };
  bool authority = strcmp(name, "ca") == 0;
  char file[TC__CERT_FILE_BYTES];

  TB_TRY(tc__certs_lock(dir, diag, &fd));
  d.dir_fd = fd;
  if (!tc__certs_name_fits(name) || !tc__certs_has(fd, name, ".pem"))
    return tb_fail(diag, TB_NOTFOUND, "%s holds no certificate \"%.80s\": there is no %.80s.pem",
                   dir, name, name);
  if (authority && new_key)
    return tb_fail(diag, TB_REFUSED,
                   "an authority with another key is another authority: make it "
                   "with tracectl certs init, in a folder of its own");
  snprintf(file, sizeof file, "%s.pem", name);
  TB_TRY(tc__draft_authority(&d));
  TB_TRY(tc__draft_read(&d, file, &old));
  TB_TRY(check_old(&d, name, old, new_key));
  d.cert = X509_dup(old);
  if (d.cert == NULL) return tc__draft_fail(&d, file);
  if (days == 0) days = authority ? TC_AUTHORITY_DAYS : TC_CERTIFICATE_DAYS;
  TB_TRY(tc__draft_number(&d, name));
  TB_TRY(tc__draft_times(&d, name, authority, days));
  if (new_key) TB_TRY(take_new_key(&d, name));
  TB_TRY(keep_old(&d, name, old));
  return write_new(&d, name, new_key);
}
