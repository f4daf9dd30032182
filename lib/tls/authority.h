/* SPDX-License-Identifier: Apache-2.0 */
/* A private certificate authority and its certificates, for `tracectl certs` and the first start of a daemon.
 *
 * DIR has ca.pem, ca.key and, for each certificate, NAME.pem and NAME.key (0600). Keys are ECDSA P-256. A certificate has
 * exactly one SAN URI, tracecollect:ROLE/NAME, which identifies the owner. A server's also lists the names that clients
 * dial: localhost, this host's name, NAME if it is a host name, 127.0.0.1, ::1. crl.pem lists revoked certificates, NAME.p12 is a
 * reader's for a browser.
 *
 * Only renewing and revoking overwrite files. A key is written before its certificate, so that a NAME.pem always has its
 * NAME.key, even if the process is killed.
 *
 * Errors    TB_REFUSED: the certificate exists, or NAME is invalid. TB_NOTFOUND: no authority in DIR.
 *           TB_IO, TB_CORRUPT with path and reason. TB_NOMEM.
 */
#ifndef TC_TLS_AUTHORITY_H
#define TC_TLS_AUTHORITY_H

#include "tls/identity.h"

enum {
  TC_CERT_NAME_MAX = 64,
  TC_AUTHORITY_DAYS = 3650,
  TC_CERTIFICATE_DAYS = 730,
  TC_DAYS_MAX = 36500,
};

/* Validity of new certificates, never longer than that of the authority. 0: the defaults above. */
struct tc_cert_days {
  long authority, certificate;
};

/* Makes DIR if missing, the authority, and one certificate for each role, with the role's name. */
TB_MUST tb_rc tc_certs_init(const char *dir, struct tc_cert_days days, struct tb_diag *diag);

/* SHA-256 as openssl x509 -fingerprint prints it: "AB:CD:...", with NUL. */
enum { TC_FINGERPRINT_BYTES = 3 * 32 };

/* Like init, but completes an existing folder, such as that of a daemon that was killed during its first start. ca.key may be
 * stored elsewhere if server.pem exists. out_made: the fingerprint of a new authority, or "". */
TB_MUST tb_rc tc_certs_ensure(const char *dir, struct tb_diag *diag,
                              char out_made[TC_FINGERPRINT_BYTES]);

/* Checks that DIR has ca.pem, server.pem and server.key (or the other names of base/text/cert_path.h), all readable. TB_NOTFOUND: with the file and the reason. */
TB_MUST tb_rc tc_certs_require(const char *dir, struct tb_diag *diag);

/* Makes another certificate. name "": the role's name, or ROLE-2, ROLE-3, ... out_name: the chosen name. */
TB_MUST tb_rc tc_certs_add(const char *dir, enum tc_role role, const char *name, long days,
                           struct tb_diag *diag, char out_name[TC_CERT_NAME_MAX + 1]);

/* Renews NAME.pem, valid from now for so many days (0: default), with the same names and, unless new_key, the same key. The
 * old one is kept as NAME.SERIAL.pem and stays valid. "ca" renews the authority; existing certificates stay valid.
 * TB_REFUSED: NAME was revoked, and the key would be the same. */
TB_MUST tb_rc tc_certs_renew(const char *dir, const char *name, long days, bool new_key,
                             struct tb_diag *diag);

/* Writes NAME.p12: NAME's certificate and key, and the authority's certificate, for a browser. NAME must be a reader's. ca.key is not
 * needed. TB_REFUSED: NAME.p12 exists, or NAME is of another role or authority. */
TB_MUST tb_rc tc_certs_pack(const char *dir, const char *name, const char *password,
                            struct tb_diag *diag);

struct tc_certs_revoked {
  unsigned added, listed;         /* newly revoked certificates, and all in the list */
  char serial[TC_SERIAL_MAX + 1]; /* of the last certificate */
};

/* Revokes, in DIR/crl.pem: NAME, with all certificates in DIR of the same SAN, renewed ones too; or the certificate in a FILE
 * (with a "/", or ending in .pem); or a hexadecimal serial number. A certificate may be listed already. days: until the next
 * list is due; 0: at the authority's end. */
TB_MUST tb_rc tc_certs_revoke(const char *dir, const char *what, long days, struct tb_diag *diag,
                              struct tc_certs_revoked *out);

#endif
