/* SPDX-License-Identifier: Apache-2.0 */
/* Makes keys, certificates and revocation lists; private to this room. dir: for messages; dialled: the name of a server is a
 * host name, too. */
#ifndef TC_TLS_ISSUE_H
#define TC_TLS_ISSUE_H

#include <openssl/pkcs12.h>
#include <openssl/x509.h>
#include <stdio.h>

#include "tls/authority.h"

struct tc__draft {
  int dir_fd;
  const char *dir;
  struct tb_diag *diag;
  X509 *cert;
  EVP_PKEY *key;
  X509 *ca; /* the issuer; cert itself for an authority */
  EVP_PKEY *ca_key;
  X509_CRL *list;
  PKCS12 *pack;
};

void tc__draft_finip(struct tc__draft *d);
TB_MUST tb_rc tc__draft_fail(struct tc__draft *d, const char *file); /* with OpenSSL's reason */
TB_MUST tb_rc tc__draft_authority(struct tc__draft *d);              /* reads ca and ca_key */
TB_MUST tb_rc tc__draft_open(struct tc__draft *d, const char *file, FILE **out);
TB_MUST tb_rc tc__draft_new_key(struct tc__draft *d, const char *name);
TB_MUST tb_rc tc__draft_number(struct tc__draft *d,
                               const char *name); /* sets a new serial number */
/* Sets the validity from now, at most to the authority's end. */
TB_MUST tb_rc tc__draft_times(struct tc__draft *d, const char *name, bool authority, long days);
/* value: a constant in OpenSSL's configuration language, never text from outside. */
bool tc__draft_extend(struct tc__draft *d, int nid, const char *value);

enum { TC__CERT_FILE_BYTES = 2 * TC_CERT_NAME_MAX + 16 }; /* name, serial number, suffix */

enum tc__pem { TC__PEM_KEY, TC__PEM_CERT, TC__PEM_LIST, TC__PACK };
/* Writes a file atomically: another name, fsync, rename. */
TB_MUST tb_rc tc__draft_write(struct tc__draft *d, const char *file, enum tc__pem what);

/* Reads the certificate in a file of dir. */
TB_MUST tb_rc tc__draft_read(struct tc__draft *d, const char *file, X509 **out);
/* Was the certificate signed by the authority? */
bool tc__draft_is_ours(const struct tc__draft *d, X509 *cert);
/* Reads the authority's list; list stays NULL if there is none. */
TB_MUST tb_rc tc__draft_list(struct tc__draft *d);

/* authority.c. No other process changes the folder until the caller closes *out. */
TB_MUST tb_rc tc__certs_lock(const char *dir, struct tb_diag *diag, int *out);
bool tc__certs_has(int dir_fd, const char *name, const char *suffix);
bool tc__certs_name_fits(const char *name);

TB_MUST tb_rc tc__certs_authority(int dir_fd, const char *dir, long days, struct tb_diag *diag);
/* Returns the fingerprint of the folder's authority. */
TB_MUST tb_rc tc__certs_fingerprint(int dir_fd, const char *dir, struct tb_diag *diag,
                                    char out[TC_FINGERPRINT_BYTES]);
TB_MUST tb_rc tc__certs_issue(int dir_fd, const char *dir, enum tc_role role, const char *name,
                              bool dialled, long days, struct tb_diag *diag);

#endif
