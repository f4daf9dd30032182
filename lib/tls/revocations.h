/* SPDX-License-Identifier: Apache-2.0 */
/* Revoked certificates: the revocation lists (CRL, PEM) of one file.
 *
 * The same object is used in each handshake (tls_context.h) and for connected peers: agents, readers' pipes, leases, HTTP.
 * New lists apply from the next query on; the caller must then recheck all connected peers.
 *
 * A list must be signed by an authority of the authority file. Lists with a critical extension (partial or delta lists) are
 * refused. A list past its next update stays in use: a forgotten update must not lock out all agents.
 *
 * Memory    counted references; TLS contexts hold some. A file has at most TC_CRL_BYTES_MAX.
 * Threads   changed, read and take on one thread; the rest any.
 * Errors    read: TB_IO, TB_CORRUPT, TB_BUDGET with the file and the reason; TB_NOMEM.
 */
#ifndef TC_TLS_REVOCATIONS_H
#define TC_TLS_REVOCATIONS_H

#include <openssl/x509.h>

#include "base/result.h"

enum { TC_CRL_BYTES_MAX = 64 << 20 };

struct tc_revocations;

/* optional: path may be missing until it was read once. */
TB_MUST tb_rc tc_revocations_new(const char *path, bool optional, const char *authorities,
                                 struct tb_diag *diag, struct tc_revocations **out);
struct tc_revocations *tc_revocations_hold(struct tc_revocations *r);
void tc_revocations_release(struct tc_revocations *r); /* accepts NULL */

const char *tc_revocations_path(const struct tc_revocations *r);
/* Has the file changed since the last call or read? */
bool tc_revocations_changed(struct tc_revocations *r);
/* Reads the file; the lists apply only after take. */
TB_MUST tb_rc tc_revocations_read(struct tc_revocations *r, struct tb_diag *diag,
                                  STACK_OF(X509_CRL) * *out);
void tc_revocations_take(struct tc_revocations *r, STACK_OF(X509_CRL) * lists); /* owns lists */
void tc_revocations_drop(STACK_OF(X509_CRL) * lists);                           /* accepts NULL */

/* Is the certificate revoked? False if r or cert is NULL. */
bool tc_revocations_have(struct tc_revocations *r, const X509 *cert);
bool tc_revocations_have_any(struct tc_revocations *r, const STACK_OF(X509) * chain);

struct tc_revocations_facts {
  uint64_t certificates;  /* revoked certificates */
  uint64_t next_update_s; /* earliest of all lists, Unix time; 0: none */
};
void tc_revocations_facts(struct tc_revocations *r, struct tc_revocations_facts *out);

/* Returns Unix time; 0: none. */
uint64_t tc_asn1_time_s(const ASN1_TIME *time);

#endif
