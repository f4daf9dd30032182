/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and opens a segment's file by its row in the catalog. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/meta.h"
#include "collector/query/private.h"

enum { OPEN_TRIES = 3 };

struct found {
  struct tc_segment_row row;
  bool any;
};

static tb_rc keep_row(void *self, const struct tc_segment_row *row) {
  struct found *found = self;

  found->row = *row;
  found->any = true;
  return TB_OK;
}

static tb_rc fail_expired(struct tb_diag *diag, uint64_t id) {
  return tb_fail(diag, TB_NOTFOUND, "segment %" PRIu64 " has expired: retention took its bytes",
                 id);
}

static tb_rc find_row(struct tc_query_session *s, uint64_t id, struct found *found,
                      struct tb_diag *diag) {
  struct tc_select select = { .segment = id, .limit = 1 };

  found->any = false;
  TB_TRY(tc__query_catalog(s, diag));
  TB_TRY(tc_catalog_segments(s->catalog, &select, keep_row, found, diag));
  if (!found->any) return tb_fail(diag, TB_NOTFOUND, "no segment %" PRIu64, id);
  return found->row.expired ? fail_expired(diag, id) : TB_OK;
}

/* Retention marks the meta, then removes the trace, and updates the row last. */
static bool is_expired_now(int state_fd, const char *trace_path) {
  char path[sizeof((struct tc_segment_row *)0)->path];
  size_t len = strlen(trace_path), end = strlen(".trace");
  tc_meta *meta;

  if (len < end || strcmp(trace_path + len - end, ".trace") != 0) return false;
  snprintf(path, sizeof path, "%.*s.meta", (int)(len - end), trace_path);
  if (tc_meta_read(state_fd, path, NULL, &meta) != TB_OK) return false;
  bool expired = meta->expired;
  tc_meta_free(meta);
  return expired;
}

tb_rc tc__query_open(struct tc_query_session *s, uint64_t id, struct tb_diag *diag,
                     struct tc_segment_row *out_row, int *out_fd) {
  int state_fd = tc_store_dirfd(s->query->env.store), fd = -1;
  struct found found;

  if (id == 0) return tb_fail(diag, TB_NOTFOUND, "no segment was named");
  /* A run that is sealed between query and open gets another path, which its row will have. */
  for (int tries = 0; fd < 0 && tries < OPEN_TRIES; tries++) {
    TB_TRY(find_row(s, id, &found, diag));
    fd = openat(state_fd, found.row.path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno != ENOENT || !found.row.open)) break;
    if (fd < 0) tc_store_show_runs(s->query->env.store);
  }
  if (fd < 0 && errno == ENOENT) {
    if (is_expired_now(state_fd, found.row.path)) return fail_expired(diag, id);
    errno = ENOENT;
  }
  if (fd < 0)
    return tb_fail(diag, errno == ENOENT ? TB_NOTFOUND : TB_IO, "%s: %s", found.row.path,
                   strerror(errno));
  *out_row = found.row;
  *out_fd = fd;
  return TB_OK;
}
