/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/audit/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/crc32c.h"

#define problem(look, ...) tc__audit_problem((look)->sink, (look)->out, __VA_ARGS__)

/* Sums over the file's parts in order: the header, then each generation. */
struct sums {
  struct tc__look *look;
  const struct tc_archive_file *file;
  const tc_meta *meta;
  struct tc_hasher *hasher;
  uint32_t crc, gen_crc;
  size_t next;   /* index of the generation after the current part */
  bool in_gen;   /* the current part is a generation */
  uint64_t left; /* bytes of the current part */
};

static void end_generation(struct sums *sums) {
  const Tracecollect__V1__GenerationMeta *gen = sums->meta->generations[sums->next - 1];
  unsigned char hash[TC_GENERATION_HASH_BYTES];
  bool is_xxh3 = tc_hasher_kind(sums->hasher) == TC_HASH_XXH3;

  tc_hasher_end(sums->hasher, hash);
  sums->in_gen = false;
  bool good = sums->gen_crc == gen->crc;
  if (is_xxh3)
    good = good && gen->hash.len == sizeof hash && memcmp(gen->hash.data, hash, sizeof hash) == 0;
  if (!good)
    problem(sums->look, "%.150s: generation %" PRIu64 " is damaged", sums->file->path, gen->gen);
}

static void next_part(struct sums *sums) {
  if (sums->in_gen) end_generation(sums);
  if (sums->next == sums->meta->n_generations) {
    sums->left = UINT64_MAX; /* bytes after the last generation: check_index() reports them */
    return;
  }
  sums->left = sums->meta->generations[sums->next++]->bytes;
  sums->gen_crc = 0;
  sums->in_gen = true;
  tc_hasher_begin(sums->hasher);
}

static tb_rc add_bytes(struct sums *sums, const unsigned char *bytes, size_t n) {
  sums->crc = tb_crc32c(sums->crc, bytes, n);
  while (n > 0) {
    while (sums->left == 0) next_part(sums);
    size_t take = sums->left < n ? (size_t)sums->left : n;
    TB_TRY(tc_hasher_add(sums->hasher, bytes, take));
    if (sums->in_gen) sums->gen_crc = tb_crc32c(sums->gen_crc, bytes, take);
    sums->left -= take;
    bytes += take;
    n -= take;
  }
  return TB_OK;
}

static tb_rc sum_file(struct sums *sums, int fd, struct tb_diag *out_fault) {
  struct tc__look *look = sums->look;
  uint64_t bytes = sums->meta->bytes;

  for (uint64_t at = 0; at < bytes;) {
    size_t n = bytes - at < TC__LOOK_BYTES ? (size_t)(bytes - at) : TC__LOOK_BYTES;
    if (look->sink->stop != NULL && look->sink->stop(look->sink->self)) return TB_END;
    if (tc_read_exactly(fd, "its trace", look->buf, n, at, out_fault) != TB_OK) return TB_OK;
    if (add_bytes(sums, look->buf, n) != TB_OK)
      return tb_fail(look->diag, TB_NOMEM, "no memory for a hash");
    at += n;
    look->done += n;
    if (look->sink->progress != NULL)
      look->sink->progress(look->sink->self, look->done, look->total);
  }
  while (sums->left == 0) next_part(sums);
  return TB_OK;
}

static tb_rc compare(struct sums *sums, const struct tc_content_hash *wanted) {
  struct tc_content_hash got;

  if (sums->crc != sums->meta->crc)
    problem(sums->look, "%.150s: CRC32C of the trace is not the meta's", sums->file->path);
  if (tc_hasher_result(sums->hasher, &got) != TB_OK)
    return tb_fail(sums->look->diag, TB_NOMEM, "no memory for a hash");
  if (!tc_hash_equal(&got, wanted))
    problem(sums->look, "%.150s: %s of the trace is not the meta's", sums->file->path,
            tc_hash_title(got.kind));
  return TB_OK;
}

static tb_rc check_bytes(struct tc__look *look, const struct tc_archive_file *file,
                         const tc_meta *meta, int fd) {
  struct tc_content_hash wanted = tc_meta_hash(meta);
  struct sums sums = { .look = look, .file = file, .meta = meta, .left = meta->trace_header.len };
  struct tb_diag fault = { 0 };

  if (tc_hasher_new(wanted.kind == TC_HASH_NONE ? TC_HASH_SHA256 : wanted.kind, &sums.hasher) !=
      TB_OK)
    return tb_fail(look->diag, TB_NOMEM, "no memory for a hash");
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  tb_rc rc = sum_file(&sums, fd, &fault);
  if (fault.rc != TB_OK)
    problem(look, "%.150s: %s", file->path, fault.text);
  else if (rc == TB_OK)
    rc = compare(&sums, &wanted);
  if (rc == TB_OK) look->out->bytes += meta->bytes;
  tc_hasher_free(sums.hasher);
  return rc;
}

tb_rc tc__audit_trace(struct tc__look *look, const struct tc_archive_file *file,
                      const tc_meta *meta) {
  char name[32];
  struct stat st;
  tb_rc rc = TB_OK;

  tc_trace_name(meta->generations[0]->gen, name);
  int fd = openat(file->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) return TB_NOTFOUND;
  if (fd < 0)
    problem(look, "%.150s: its trace: %s", file->path, strerror(errno));
  else if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != meta->bytes)
    problem(look, "%.150s: the trace has %lld bytes, the meta says %" PRIu64, file->path,
            (long long)st.st_size, meta->bytes);
  else
    rc = check_bytes(look, file, meta, fd);
  if (fd >= 0) close(fd);
  return rc;
}

tb_rc tc__audit_hashes(struct tc__look *look, const struct tc_archive_file *file,
                       const tc_meta *meta) {
  struct tc_content_hash wanted = tc_meta_hash(meta), got;
  struct tc_hasher *hasher;
  bool good = true;

  if (wanted.kind != TC_HASH_XXH3) return TB_OK;
  tb_rc rc = tc_hasher_new(wanted.kind, &hasher);
  if (rc == TB_OK) {
    rc = tc_hasher_add(hasher, meta->trace_header.data, meta->trace_header.len);
    for (size_t i = 0; good && i < meta->n_generations; i++) {
      good = meta->generations[i]->hash.len == TC_GENERATION_HASH_BYTES;
      if (good) tc_hasher_take(hasher, meta->generations[i]->hash.data);
    }
    if (rc == TB_OK) rc = tc_hasher_result(hasher, &got);
    tc_hasher_free(hasher);
  }
  if (rc != TB_OK) return tb_fail(look->diag, rc, "no memory for a hash");
  if (!good || !tc_hash_equal(&got, &wanted))
    problem(look, "%.150s: its content hash is not that of its generations", file->path);
  return TB_OK;
}
