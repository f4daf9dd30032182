/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the audit. */
#ifndef TC_ARCHIVE_AUDIT_PRIVATE_H
#define TC_ARCHIVE_AUDIT_PRIVATE_H

#include "archive/audit/audit.h"

enum { TC__LOOK_BYTES = 1 << 20 };

/* State of an audit. */
struct tc__look {
  const struct tc_audit_sink *sink;
  struct tc_audited *out;
  struct tb_diag *diag;
  unsigned char *buf; /* TC__LOOK_BYTES long */
  uint64_t done, total;
};

/* Counts a problem and passes its text to the sink. */
void TB_PRINTF(3, 4) tc__audit_problem(const struct tc_audit_sink *sink, struct tc_audited *out,
                                       const char *fmt, ...);

TB_MUST tb_rc tc__open_archive(int state_fd, struct tb_diag *diag, int *out);
/* While the lock is held, no collector starts in the folder. TB_REFUSED: a collector is running. */
TB_MUST tb_rc tc__take_lock(int state_fd, struct tb_diag *diag, struct tc_statedir_lock *out);
/* The caller holds the lock. */
TB_MUST tb_rc tc__rebuild_locked(int state_fd, int archive_fd, const struct tc_audit_sink *sink,
                                 struct tb_diag *diag, uint64_t *out_segments);

#endif
