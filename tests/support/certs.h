/* SPDX-License-Identifier: Apache-2.0 */
/* Throw-away certificates: a private CA and one certificate a role, ECDSA P-256, valid for a day.
 *
 * Errors    a failed step ends the test program with a message: without certificates nothing can be
 *           tested.
 */
#ifndef TT_CERTS_H
#define TT_CERTS_H

/* Makes dir if missing and writes ca, server, agent and reader as .pem and .key. The SAN URIs are
 * tracecollect:ROLE/test; the server's certificate also names localhost, 127.0.0.1 and ::1. */
void tt_certs_make(const char *dir);

/* Issues another certificate of the CA in dir, NAME.pem and NAME.key. san is the value that an
 * openssl configuration has after subjectAltName=, e.g. "URI:tracecollect:agent/shop", or NULL for
 * none. seconds counts from now to its end; negative: it has expired. */
void tt_certs_issue(const char *dir, const char *name, const char *san, long seconds);

#endif
