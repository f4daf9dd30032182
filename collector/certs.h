/* SPDX-License-Identifier: Apache-2.0 */
/* A private certificate authority and its certificates, for `tracectl certs` and a daemon's first run.
 *
 * DIR holds ca.pem, ca.key and, for each certificate, NAME.pem and NAME.key (0600). Keys are ECDSA
 * P-256. A certificate's identity is its one SAN URI, tracecollect:ROLE/NAME; a server's also lists
 * the names it is dialled by: localhost, this host's name, NAME where it is a host's, 127.0.0.1, ::1.
 * Nothing that exists is ever overwritten; a key is on disk before its certificate, so that a
 * NAME.pem always has its NAME.key, whenever the process is killed.
 *
 * Errors    TB_REFUSED: it exists already, or NAME is no name. TB_NOTFOUND: no authority in DIR.
 *           TB_IO, TB_CORRUPT with path and reason. TB_NOMEM.
 */
#ifndef TC_CERTS_H
#define TC_CERTS_H

#include "base/result.h"

enum tc_role { TC_ROLE_SERVER, TC_ROLE_AGENT, TC_ROLE_READER };
enum { TC_ROLES = 3, TC_CERT_NAME_MAX = 64 };

const char *tc_role_name(enum tc_role role); /* "server": also the file's name in DIR */

/* Makes DIR if missing, the authority and one certificate for each role, named after it. */
TB_MUST tb_rc tc_certs_init(const char *dir, struct tb_diag *diag);

/* As init, but completes what is there: a daemon that was killed during its first run goes on. An
 * authority whose key lies elsewhere is fine as long as server.pem is there. */
TB_MUST tb_rc tc_certs_ensure(const char *dir, struct tb_diag *diag);

/* One more certificate of the authority in DIR. name "" takes the role's, then ROLE-2, ROLE-3, ...;
 * out_name says which. */
TB_MUST tb_rc tc_certs_add(const char *dir, enum tc_role role, const char *name,
                           struct tb_diag *diag, char out_name[TC_CERT_NAME_MAX + 1]);

#endif
