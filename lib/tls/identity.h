/* SPDX-License-Identifier: Apache-2.0 */
/* The subject of a certificate: exactly one SAN URI, tracecollect:ROLE/NAME. Common names are never
 * looked at.
 *
 * Errors    TB_REFUSED with the reason in diag.
 */
#ifndef TC_TLS_IDENTITY_H
#define TC_TLS_IDENTITY_H

#include <openssl/x509.h>

#include "tls/role.h"

enum { TC_IDENTITY_BYTES = 127, TC_SERIAL_MAX = 40 };

/* The role and the whole URI; what it may do is role.h's to say. TB_NOMEM: it could not be read now. */
TB_MUST tb_rc tc_identity_of(X509 *cert, struct tb_diag *diag, enum tc_role *out_role,
                             char out[TC_IDENTITY_BYTES + 1]);

/* A serial number in hexadecimal, as `tracectl certs revoke` takes it; a longer one than there may be is cut. */
void tc_serial_text(const ASN1_INTEGER *serial, char out[TC_SERIAL_MAX + 1]);

#endif
