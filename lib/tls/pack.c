/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate, its key and its authority in one file with a password: PKCS #12, as browsers import it. The algorithms are OpenSSL 3's
 * own choice (PBES2 with AES-256, a MAC by SHA-256), which current browsers read. */
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <stdio.h>
#include <unistd.h>

#include "tls/issue.h"

static void closep(int *fd) {
  if (*fd >= 0) close(*fd);
}

static void fclosep(FILE **file) {
  if (*file != NULL) fclose(*file);
}

static tb_rc read_key(struct tc__draft *d, const char *file) {
  TB_CLEANUP(fclosep) FILE *in = NULL;

  TB_TRY(tc__draft_open(d, file, &in));
  d->key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
  return d->key != NULL ? TB_OK : tc__draft_fail(d, file);
}

static tb_rc check_role(struct tc__draft *d, const char *name) {
  char identity[TC_IDENTITY_BYTES + 1];
  enum tc_role role;

  TB_TRY(tc_identity_of(d->cert, d->diag, &role, identity));
  if (role == TC_ROLE_READER) return TB_OK;
  return tb_fail(d->diag, TB_REFUSED,
                 "%s/%s.pem is %s, which may not read: a browser needs a reader's", d->dir, name,
                 identity);
}

static tb_rc read_all(struct tc__draft *d, const char *name) {
  char file[TC__CERT_FILE_BYTES];

  TB_TRY(tc__draft_read(d, "ca.pem", &d->ca));
  d->ca_key = X509_get_pubkey(d->ca);
  if (d->ca_key == NULL) return tc__draft_fail(d, "ca.pem");
  snprintf(file, sizeof file, "%s.pem", name);
  TB_TRY(tc__draft_read(d, file, &d->cert));
  TB_TRY(check_role(d, name));
  if (!tc__draft_is_ours(d, d->cert))
    return tb_fail(d->diag, TB_REFUSED, "%s/%s was not issued by the authority of this folder",
                   d->dir, file);
  snprintf(file, sizeof file, "%s.key", name);
  TB_TRY(read_key(d, file));
  return X509_check_private_key(d->cert, d->key) == 1 ? TB_OK : tc__draft_fail(d, file);
}

static tb_rc make_pack(struct tc__draft *d, const char *name, const char *password) {
  STACK_OF(X509) *chain = sk_X509_new_null();

  if (chain != NULL && sk_X509_push(chain, d->ca) > 0)
    d->pack = PKCS12_create(password, name, d->key, d->cert, chain, 0, 0, 0, 0, 0);
  sk_X509_free(chain);
  return d->pack != NULL ? TB_OK : tc__draft_fail(d, name);
}

tb_rc tc_certs_pack(const char *dir, const char *name, const char *password, struct tb_diag *diag) {
  TB_CLEANUP(closep) int fd = -1;
  TB_CLEANUP(tc__draft_finip) struct tc__draft d = { .dir = dir, .diag = diag };
  char file[TC__CERT_FILE_BYTES];

  TB_TRY(tc__certs_lock(dir, diag, &fd));
  d.dir_fd = fd;
  if (!tc__certs_name_fits(name) || !tc__certs_has(fd, name, ".pem"))
    return tb_fail(diag, TB_NOTFOUND, "%s holds no certificate \"%.80s\"", dir, name);
  if (tc__certs_has(fd, name, ".p12"))
    return tb_fail(diag, TB_REFUSED, "%s holds %s.p12; nothing was changed", dir, name);
  TB_TRY(read_all(&d, name));
  TB_TRY(make_pack(&d, name, password));
  snprintf(file, sizeof file, "%s.p12", name);
  return tc__draft_write(&d, file, TC__PACK);
}
