/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that a collector writes at this moment, against what its catalog says of them: size, order of the
 * generations, CRC32C of each. Runs that are sealed or given up meanwhile are left out: the next look finds them
 * elsewhere. */
#ifndef TC_ARCHIVE_AUDIT_OPEN_H
#define TC_ARCHIVE_AUDIT_OPEN_H

#include "archive/audit/audit.h"

/* Adds to out's open_runs, open_generations, bytes and problems. buf has n bytes. A catalog that cannot be read is
 * left to the look at its rows. */
TB_MUST tb_rc tc_audit_open_runs(int state_fd, const struct tc_audit_sink *sink, unsigned char *buf,
                                 size_t n, struct tb_diag *diag, struct tc_audited *out);

#endif
