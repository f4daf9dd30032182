/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a certificate's owner: exactly one SAN URI, tracecollect:ROLE/NAME. Common names are ignored.
 *
 * Errors    TB_REFUSED with the reason in diag.
 */
#ifndef TC_TLS_IDENTITY_H
#define TC_TLS_IDENTITY_H

#include <openssl/x509.h>

#include "tls/role.h"

enum { TC_IDENTITY_BYTES = 127, TC_SERIAL_MAX = 40 };

/* Returns the role (see role.h for its permissions) and the whole URI. TB_NOMEM: out of memory. */
TB_MUST tb_rc tc_identity_of(X509 *cert, struct tb_diag *diag, enum tc_role *out_role,
                             char out[TC_IDENTITY_BYTES + 1]);

/* Writes a serial number in hexadecimal, as `tracectl certs revoke` accepts it; one that is too long is cut. */
void tc_serial_text(const ASN1_INTEGER *serial, char out[TC_SERIAL_MAX + 1]);

#endif
