/* SPDX-License-Identifier: Apache-2.0 */
/* Moves files that do not become part of the archive to quarantine/. */
#ifndef TC_SEALER_SEAL_ASIDE_H
#define TC_SEALER_SEAL_ASIDE_H

#include "collector/sealer/base/stream.h"

struct tc__aside {
  const struct tc__env *env;
  bool changed; /* a file was moved since retention last read quarantine/ */
};

/* Moves an open file. */
TB_MUST tb_rc tc__quarantine_file(struct tc__aside *aside, const struct tc_segment *segment,
                                  struct tb_diag *diag);
/* Moves the trace of a generation away whose meta cannot be read, so that the generation can be published under this
 * name. (Without the meta nobody knows which segment the trace belongs to.) */
TB_MUST tb_rc tc__put_trace_aside(struct tc__aside *aside, const struct tc__stream *stream,
                                  int dir_fd, uint64_t gen, const char *why, struct tb_diag *diag);

#endif
