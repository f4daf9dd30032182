/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a trace against its meta: size, CRC32C and content hash, of the file and of each generation. */
#ifndef TC_ARCHIVE_AUDIT_TRACE_H
#define TC_ARCHIVE_AUDIT_TRACE_H

#include "archive/audit/private.h"
#include "archive/walk.h"

/* `file`: the place of the meta. TB_NOTFOUND: there is no trace; TB_END: the sink's stop() returned true. */
TB_MUST tb_rc tc__audit_trace(struct tc__look *look, const struct tc_archive_file *file,
                              const tc_meta *meta);
/* Checks an expired segment: its content hash must result from the hashes of its generations. */
TB_MUST tb_rc tc__audit_hashes(struct tc__look *look, const struct tc_archive_file *file,
                               const tc_meta *meta);

#endif
