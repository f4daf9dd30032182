/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collector/sealer/catalog/meta.h"

bool tc__sync_names(int dir_fd) {
  static const char *const folders[] = { ".", "..", "../.." };

  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    int fd = openat(dir_fd, folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    if (!good) return false;
  }
  return true;
}

tb_rc tc__take_back(struct tc__aside *aside, const struct tc__stream *stream, const char *day,
                    uint64_t gen, uint64_t first_seq, struct tb_diag *diag) {
  char name[32], trace[32];
  tc_meta *meta = NULL;
  int dir_fd = tc_statedir_stream(aside->env->opt.dirs->archive, day, stream->hex, false);

  if (dir_fd < 0 && errno == ENOENT) return TB_OK;
  if (dir_fd < 0)
    return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", day, stream->hex,
                   strerror(errno));
  tc_meta_name(gen, name);
  tc_trace_name(gen, trace);
  tb_rc rc = tc_meta_read(dir_fd, name, diag, &meta);
  bool has_meta = rc == TB_OK && meta->n_generations > 0;
  bool ours = has_meta ? meta->generations[0]->first_seq == first_seq : rc != TB_OK;
  tc_meta_free(meta);
  if (rc == TB_UNREADABLE) {
    rc = tc__put_trace_aside(aside, stream, dir_fd, gen, diag->text, diag);
    if (rc == TB_OK) tb_diag_clear(diag);
    close(dir_fd);
    return rc;
  }
  if (rc == TB_NOTFOUND || rc == TB_CORRUPT) {
    tb_diag_clear(diag);
    rc = TB_OK;
  }
  if (rc == TB_OK && ours && has_meta && unlinkat(dir_fd, name, 0) != 0 && errno != ENOENT)
    rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", name, strerror(errno));
  if (rc == TB_OK && ours && unlinkat(dir_fd, trace, 0) != 0 && errno != ENOENT)
    rc = tb_fail(diag, tc_errno_rc(errno), "%s: %s", trace, strerror(errno));
  if (rc == TB_OK && ours && has_meta) rc = tc__sync_name(aside->env, dir_fd, name, diag);
  close(dir_fd);
  return rc;
}
