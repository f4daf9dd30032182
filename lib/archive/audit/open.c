/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/audit/open.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/audit/private.h"
#include "archive/meta.h"
#include "archive/state_dir.h"
#include "base/crc32c.h"
#include "base/grow.h"

struct open_run {
  uint64_t id;
  char path[192];
};

struct look {
  int state_fd;
  const struct tc_audit_sink *sink;
  struct tc_audited *out;
  struct tc_catalog *catalog;
  struct open_run *runs;
  size_t nruns, cap;
  struct tc_hasher *hasher; /* reused for each generation */
  unsigned char *buf;
  size_t buf_bytes;
};

/* All rows are read before any file: an open SQLite read transaction holds up the checkpoints of its WAL. */
static tb_rc note_run(void *self, const struct tc_segment_row *row) {
  struct look *look = self;

  if (!row->open) return TB_OK;
  TB_TRY(TB_GROW(look->runs, look->cap, look->nruns));
  struct open_run *run = &look->runs[look->nruns++];
  run->id = row->id;
  memcpy(run->path, row->path, sizeof run->path);
  return TB_OK;
}

static tb_rc sum_generation(struct look *look, int fd, const char *path,
                            const Tracecollect__V1__GenerationMeta *gen, struct tb_diag *why,
                            uint32_t *out_crc, unsigned char out_hash[TC_GENERATION_HASH_BYTES]) {
  *out_crc = 0;
  tc_hasher_begin(look->hasher);
  tb_rc rc = TB_OK;
  for (uint64_t at = gen->offset, end = at + gen->bytes; rc == TB_OK && at < end;) {
    size_t n = end - at < look->buf_bytes ? (size_t)(end - at) : look->buf_bytes;
    if (look->sink->stop != NULL && look->sink->stop(look->sink->self))
      rc = TB_END;
    else
      rc = tc_read_exactly(fd, path, look->buf, n, at, why);
    if (rc == TB_OK) rc = tc_hasher_add(look->hasher, look->buf, n);
    if (rc == TB_OK) *out_crc = tb_crc32c(*out_crc, look->buf, n);
    at += n;
  }
  tc_hasher_end(look->hasher, out_hash);
  return rc;
}

/* With SHA-256 generations have no hash of their own: then only the CRC counts. */
static bool is_right(const Tracecollect__V1__GenerationMeta *gen, uint32_t crc,
                     const unsigned char hash[TC_GENERATION_HASH_BYTES]) {
  if (crc != gen->crc) return false;
  return gen->hash.len == 0 || (gen->hash.len == TC_GENERATION_HASH_BYTES &&
                                memcmp(gen->hash.data, hash, TC_GENERATION_HASH_BYTES) == 0);
}

/* Complete generations do not change, however much the file grows meanwhile. */
static tb_rc check_generations(struct look *look, int fd, const char *path, const tc_meta *meta) {
  uint64_t at = meta->trace_header.len;

  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    struct tb_diag why = { 0 };
    unsigned char hash[TC_GENERATION_HASH_BYTES];
    uint32_t crc;
    if (gen->offset != at || (i > 0 && gen->gen != meta->generations[i - 1]->gen + 1)) {
      tc__audit_problem(look->sink, look->out,
                        "%s: generation %" PRIu64 " does not follow the one before it", path,
                        gen->gen);
      return TB_OK;
    }
    tb_rc rc = sum_generation(look, fd, path, gen, &why, &crc, hash);
    if (rc == TB_END) return rc;
    if (rc != TB_OK)
      tc__audit_problem(look->sink, look->out, "%s", why.text);
    else if (!is_right(gen, crc, hash))
      tc__audit_problem(look->sink, look->out, "%s: generation %" PRIu64 " is damaged", path,
                        gen->gen);
    at += gen->bytes;
    look->out->open_generations++;
  }
  if (at != meta->bytes)
    tc__audit_problem(look->sink, look->out,
                      "%s: the generations end at byte %" PRIu64 ", the catalog says %" PRIu64,
                      path, at, meta->bytes);
  look->out->bytes += at;
  look->out->open_runs++;
  return TB_OK;
}

static tb_rc check_run(struct look *look, const struct open_run *run) {
  struct tb_diag ignored = { 0 };
  tc_meta *meta;

  int fd = openat(look->state_fd, run->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return TB_OK; /* renamed meanwhile */
  if (fd < 0) {
    tc__audit_problem(look->sink, look->out, "%s: %s", run->path, strerror(errno));
    return TB_OK;
  }
  tb_rc rc = tc_catalog_open_meta(look->catalog, run->id, &ignored, &meta);
  if (rc == TB_OK) {
    rc = check_generations(look, fd, run->path, meta);
    tc_meta_free(meta);
  }
  close(fd);
  return rc == TB_NOTFOUND ? TB_OK : rc;
}

tb_rc tc_audit_open_runs(int state_fd, const struct tc_audit_sink *sink, unsigned char *buf,
                         size_t n, struct tb_diag *diag, struct tc_audited *out) {
  struct look look = { .state_fd = state_fd, .sink = sink, .out = out, .buf = buf, .buf_bytes = n };
  const struct tc_select open_runs = { .only_open = true, .limit = UINT32_MAX };
  struct tb_diag why = { 0 };

  if (tc_catalog_open(state_fd, false, &why, &look.catalog) != TB_OK) return TB_OK;
  tb_rc rc = tc_hasher_new(TC_HASH_XXH3, &look.hasher);
  if (rc == TB_OK) rc = tc_catalog_segments(look.catalog, &open_runs, note_run, &look, &why);
  for (size_t i = 0; rc == TB_OK && i < look.nruns; i++) rc = check_run(&look, &look.runs[i]);
  tc_catalog_close(look.catalog);
  tc_hasher_free(look.hasher);
  free(look.runs);
  if (rc == TB_NOMEM) return tb_fail(diag, rc, "no memory for the open runs");
  return rc == TB_END ? rc : TB_OK;
}
