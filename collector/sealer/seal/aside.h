/* SPDX-License-Identifier: Apache-2.0 */
/* Files that will not be part of the archive: they are moved to quarantine/. */
#ifndef TC_SEALER_SEAL_ASIDE_H
#define TC_SEALER_SEAL_ASIDE_H

#include "collector/sealer/base/stream.h"

struct tc__aside {
  const struct tc__env *env;
  bool changed; /* a file came since retention looked at quarantine/ */
};

/* Moves an open file to quarantine/. */
TB_MUST tb_rc tc__quarantine_file(struct tc__aside *aside, const struct tc_segment *segment,
                                  struct tb_diag *diag);
/* The meta of a generation that is about to be published cannot be read: the owner of the trace under that name is
 * not known. It is kept in quarantine/, and the place is free. */
TB_MUST tb_rc tc__put_trace_aside(struct tc__aside *aside, const struct tc__stream *stream,
                                  int dir_fd, uint64_t gen, const char *why, struct tb_diag *diag);

#endif
