/* SPDX-License-Identifier: Apache-2.0 */
/* Which certificates the authority has taken back: the revocation lists (CRL, PEM) of one file.
 *
 * One object is asked in each handshake (tls_context.h) and wherever something is kept for a peer that
 * is already in: agents' connections, readers' pipes, their leases, HTTP. Lists that are taken over count
 * from the next question on; the caller then has all of these look again.
 *
 * A list must be signed by an authority of the authority file, and whole: a critical extension says that it
 * is a part of one or a change to one, and it is refused. A list past its next update stays in use: what
 * was taken back stays so, and a forgotten file does not shut all agents out.
 *
 * Memory    counted: TLS contexts keep theirs. A file has TC_CRL_BYTES_MAX at most.
 * Threads   changed, read and take on one thread; the rest any.
 * Errors    read: TB_IO, TB_CORRUPT, TB_BUDGET with the file and the reason; TB_NOMEM.
 */
#ifndef TC_TLS_REVOCATIONS_H
#define TC_TLS_REVOCATIONS_H

#include <openssl/x509.h>

#include "base/result.h"

enum { TC_CRL_BYTES_MAX = 64 << 20 };

struct tc_revocations;

/* path may be missing if optional, until it has been read once. */
TB_MUST tb_rc tc_revocations_new(const char *path, bool optional, const char *authorities,
                                 struct tb_diag *diag, struct tc_revocations **out);
struct tc_revocations *tc_revocations_hold(struct tc_revocations *r);
void tc_revocations_let_go(struct tc_revocations *r); /* NULL is fine */

const char *tc_revocations_path(const struct tc_revocations *r);
/* The file is another than at the last question or reading. */
bool tc_revocations_changed(struct tc_revocations *r);
/* The file's content now; it does not count yet. */
TB_MUST tb_rc tc_revocations_read(struct tc_revocations *r, struct tb_diag *diag,
                                  STACK_OF(X509_CRL) * *out);
void tc_revocations_take(struct tc_revocations *r, STACK_OF(X509_CRL) * lists); /* owns lists */
void tc_revocations_drop(STACK_OF(X509_CRL) * lists);                           /* NULL is fine */

/* NULL is no certificate, and no revocations. */
bool tc_revocations_have(struct tc_revocations *r, const X509 *cert);
bool tc_revocations_have_any(struct tc_revocations *r, const STACK_OF(X509) * chain);

struct tc_revocations_facts {
  uint64_t certificates;  /* that were taken back */
  uint64_t next_update_s; /* the earliest of all lists', in Unix time; 0: none says one */
};
void tc_revocations_facts(struct tc_revocations *r, struct tc_revocations_facts *out);

/* A certificate's time in Unix time; 0: none. */
uint64_t tc_asn1_time_s(const ASN1_TIME *time);

#endif
