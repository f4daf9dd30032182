/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the audit. */
#ifndef TC_ARCHIVE_AUDIT_PRIVATE_H
#define TC_ARCHIVE_AUDIT_PRIVATE_H

#include "archive/audit.h"

/* Counts a problem, and passes its text on. */
void TB_PRINTF(3, 4) tc__audit_problem(const struct tc_audit_sink *sink, struct tc_audited *out,
                                       const char *fmt, ...);

#endif
