/* SPDX-License-Identifier: Apache-2.0 */
/* A private certificate authority and its certificates, for `tracectl certs` and a daemon's first run.
 *
 * DIR holds ca.pem, ca.key and, for each certificate, NAME.pem and NAME.key (0600). Keys are ECDSA
 * P-256. A certificate's identity is its one SAN URI, tracecollect:ROLE/NAME; a server's also lists
 * the names it is dialled by: localhost, this host's name, NAME where it is a host's, 127.0.0.1, ::1.
 * crl.pem lists what the authority has taken back.
 *
 * Nothing that exists is ever overwritten but by renewing and revoking; a key is on disk before its certificate, so
 * that a NAME.pem always has its NAME.key, whenever the process is killed.
 *
 * Errors    TB_REFUSED: it exists already, or NAME is no name. TB_NOTFOUND: no authority in DIR.
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

/* How long what is made is valid, and never longer than its authority. 0: as above. */
struct tc_cert_days {
  long authority, certificate;
};

/* Makes DIR if missing, the authority and one certificate for each role, named after it. */
TB_MUST tb_rc tc_certs_init(const char *dir, struct tc_cert_days days, struct tb_diag *diag);

enum {
  TC_FINGERPRINT_BYTES = 3 * 32
}; /* SHA-256 as openssl x509 -fingerprint prints it: "AB:CD:...", and a NUL */

/* As init, but completes what is there: a daemon that was killed during its first run goes on. An
 * authority whose key lies elsewhere is fine as long as server.pem is there. out_made: the fingerprint of an
 * authority that was made; empty if there was one. */
TB_MUST tb_rc tc_certs_ensure(const char *dir, struct tb_diag *diag,
                              char out_made[TC_FINGERPRINT_BYTES]);

/* DIR holds what a collector needs, and makes nothing: ca.pem, server.pem and server.key, all readable.
 * TB_NOTFOUND: it does not, with the file and the reason. */
TB_MUST tb_rc tc_certs_require(const char *dir, struct tb_diag *diag);

/* One more certificate of the authority in DIR. name "" takes the role's, then ROLE-2, ROLE-3, ...;
 * out_name says which. */
TB_MUST tb_rc tc_certs_add(const char *dir, enum tc_role role, const char *name, long days,
                           struct tb_diag *diag, char out_name[TC_CERT_NAME_MAX + 1]);

/* NAME.pem again, valid from now for so many days (0: as above): the same names, and the same key unless new_key.
 * The old one is kept as NAME.SERIAL.pem, and stays valid. "ca" renews the authority itself; its certificates stay
 * valid. TB_REFUSED: it was revoked, and the key would be the same. */
TB_MUST tb_rc tc_certs_renew(const char *dir, const char *name, long days, bool new_key,
                             struct tb_diag *diag);

struct tc_certs_revoked {
  unsigned added, listed;         /* certificates now, and those that the list has */
  char serial[TC_SERIAL_MAX + 1]; /* of the last one */
};

/* Takes back, in DIR/crl.pem: NAME, with all certificates of its identity that DIR holds, renewed ones too; the one
 * in a FILE (with a "/", or ending in .pem); or a serial number in hexadecimal. A certificate that is listed already
 * is no error. days: until the next list is due; 0: when the authority ends. */
TB_MUST tb_rc tc_certs_revoke(const char *dir, const char *what, long days, struct tb_diag *diag,
                              struct tc_certs_revoked *out);

#endif
