/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/aside.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tb_rc tc__quarantine_file(struct tc__aside *aside, const struct tc_segment *segment,
                          struct tb_diag *diag) {
  if (renameat(aside->env->opt.dirs->open, segment->name, aside->env->opt.dirs->quarantine,
               segment->name) != 0)
    return tb_fail(diag, tc_errno_rc(errno), "quarantine/%s: %s", segment->name, strerror(errno));
  aside->changed = true;
  return TB_OK;
}

tb_rc tc__put_trace_aside(struct tc__aside *aside, const struct tc__stream *stream, int dir_fd,
                          uint64_t gen, const char *why, struct tb_diag *diag) {
  char trace[32], name[TC_FILE_NAME_BYTES];

  tc_trace_name(gen, trace);
  tc_segment_name(stream->hex, gen, name);
  if (renameat(dir_fd, trace, aside->env->opt.dirs->quarantine, name) != 0)
    return errno == ENOENT
               ? TB_OK
               : tb_fail(diag, tc_errno_rc(errno), "quarantine/%s: %s", name, strerror(errno));
  aside->changed = true;
  tc__note_as(aside->env, TC_ERROR, stream->ref,
              "stream=%s gen=%" PRIu64 ": %s; its trace was moved to quarantine/%s and is rebuilt "
              "from the log",
              stream->hex, gen, why, name);
  return TB_OK;
}
