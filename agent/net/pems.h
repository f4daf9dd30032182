/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of the PEM files: three, and the revocation lists if they are configured.
 *
 * The files are read again for each connection, so that a renewed certificate is used. If the host has dropped the rights
 * to read them or changed its root folder meanwhile, the contents read at the start are used.
 *
 * Memory    the files' bytes, at most TB_SMALL_FILE_MAX each.
 * Threads   one at a time.
 * Errors    TB_NOTFOUND, with the file's name and the reason in diag. TB_NOMEM.
 */
#ifndef TA_NET_PEMS_H
#define TA_NET_PEMS_H

#include <stddef.h>

#include "base/result.h"

enum { TA_PEM_CA, TA_PEM_CERT, TA_PEM_KEY, TA_PEM_CRL, TA_PEMS };

/* bytes NULL: not configured. */
struct ta_pems {
  char *bytes[TA_PEMS];
  size_t n[TA_PEMS];
};

extern const char *const ta_pem_names[TA_PEMS];

/* paths[TA_PEM_CRL] may be NULL. */
TB_MUST tb_rc ta_pems_read(const char *const paths[TA_PEMS], struct tb_diag *diag,
                           struct ta_pems *out);
void ta_pems_free(struct ta_pems *pems); /* accepts zeroed memory; a key's bytes are wiped */

#endif
