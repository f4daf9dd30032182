/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the runs that a collector is writing against its catalog: size, order of the generations, checksum of each.
 * Runs that are sealed or abandoned meanwhile are skipped; the next audit finds their files. */
#ifndef TC_ARCHIVE_AUDIT_OPEN_H
#define TC_ARCHIVE_AUDIT_OPEN_H

#include "archive/audit/audit.h"

/* Adds to out's open_runs, open_generations, bytes and problems. buf has n bytes. Returns TB_OK if the catalog cannot
 * be opened: tc_audit() reports that. */
TB_MUST tb_rc tc_audit_open_runs(int state_fd, const struct tc_audit_sink *sink, unsigned char *buf,
                                 size_t n, struct tb_diag *diag, struct tc_audited *out);

#endif
