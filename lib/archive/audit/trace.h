/* SPDX-License-Identifier: Apache-2.0 */
/* One trace against its meta: size, CRC32C and content hash of all of it and of each generation. */
#ifndef TC_ARCHIVE_AUDIT_TRACE_H
#define TC_ARCHIVE_AUDIT_TRACE_H

#include "archive/audit/private.h"
#include "archive/walk.h"

/* file: the meta's. TB_NOTFOUND: there is no trace; TB_END: the sink says stop. */
TB_MUST tb_rc tc__audit_trace(struct tc__look *look, const struct tc_archive_file *file,
                              const tc_meta *meta);
/* Of a segment that expired: whether its content hash is that of its generations' hashes. */
TB_MUST tb_rc tc__audit_hashes(struct tc__look *look, const struct tc_archive_file *file,
                               const tc_meta *meta);

#endif
