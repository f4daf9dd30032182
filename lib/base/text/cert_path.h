/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the PEM files in a folder of certificates. A file may have one of two names:
 *
 *   ca.pem  ROLE.pem  ROLE.key    as `tracectl certs` makes them
 *   ca.crt  tls.crt   tls.key     as cert-manager and Kubernetes' TLS secrets have them
 *
 * Threads   any.
 * Errors    TB_CORRUPT: both names exist. TB_IO: the path is too long.
 */
#ifndef TB_BASE_CERT_PATH_H
#define TB_BASE_CERT_PATH_H

#include <limits.h>

#include "base/result.h"

enum tb_cert_file { TB_CERT_CA, TB_CERT_CHAIN, TB_CERT_KEY, TB_CERT_FILES };

/* Writes the path of the one that exists; if none does, the path of the first name. */
TB_MUST tb_rc tb_cert_path(const char *dir, const char *role, enum tb_cert_file file,
                           struct tb_diag *diag, char out[PATH_MAX]);

#endif
