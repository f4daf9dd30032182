/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/catalog/meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void tc__free_meta(tc_meta *meta) {
  if (meta == NULL) return;
  for (size_t i = 0; i < meta->n_generations; i++) free(meta->generations[i]);
  for (size_t i = 0; i < meta->n_losses; i++) free(meta->losses[i]);
  free(meta->generations);
  free(meta->losses);
  free(meta);
}

struct built {
  tc_meta meta; /* must be first: freed by this address */
  Tracecollect__V1__ContentHash hash, previous;
};

struct generation_parts {
  Tracecollect__V1__GenerationMeta meta;
  Tracecollect__V1__Verdict verdict;
};

static bool add_generation(tc_meta *meta, const struct tc_segment_gen *gen) {
  struct generation_parts *parts = calloc(1, sizeof *parts);

  if (parts == NULL) return false;
  tracecollect__v1__generation_meta__init(&parts->meta);
  tracecollect__v1__verdict__init(&parts->verdict);
  parts->meta.gen = gen->gen;
  parts->meta.offset = gen->offset;
  parts->meta.bytes = gen->bytes;
  parts->meta.batches = gen->batches;
  parts->meta.events = gen->verdict.events;
  parts->meta.first_ns = gen->verdict.first_ns;
  parts->meta.last_ns = gen->verdict.last_ns;
  parts->meta.end_wall_ns = gen->end_wall_ns;
  parts->meta.crc = gen->crc;
  parts->meta.first_seq = gen->first_seq;
  parts->meta.last_seq = gen->last_seq;
  if (gen->has_hash)
    parts->meta.hash =
        (ProtobufCBinaryData){ sizeof gen->hash, (unsigned char *)(uintptr_t)gen->hash };
  parts->meta.verdict = &parts->verdict;
  tc_clock_ticks_put(&gen->ticks, &parts->meta);
  parts->verdict.code = (Tracecollect__V1__VerdictCode)gen->verdict.code;
  parts->verdict.thread = gen->verdict.thread;
  parts->verdict.offset = gen->verdict.offset;
  if (gen->verdict.reason != NULL) parts->verdict.reason = gen->verdict.reason;
  meta->generations[meta->n_generations++] = &parts->meta;
  meta->unsafe_experiment |= gen->unsafe_experiment;
  return true;
}

tc_meta *tc__build_meta(const struct tc__env *env, struct tc__file *file) {
  return tc__build_meta_of(env, file, 0, file->segment != NULL ? file->segment->ngens : 0);
}

tc_meta *tc__build_meta_of(const struct tc__env *env, struct tc__file *file, size_t from,
                           size_t upto) {
  struct tc__stream *stream = file->stream;
  size_t nlosses = from == 0 ? file->losses.n : 0; /* they are before the first generation */
  struct built *built = calloc(1, sizeof *built);

  if (built == NULL) return NULL;
  tc_meta *meta = &built->meta;
  tracecollect__v1__segment_meta__init(meta);
  meta->generations = calloc(upto - from + 1, sizeof(void *));
  meta->losses = calloc(nlosses + 1, sizeof(void *));
  bool good = meta->generations != NULL && meta->losses != NULL;
  for (size_t i = from; good && i < upto; i++) good = add_generation(meta, &file->segment->gens[i]);
  if (good && nlosses > 0)
    good = tc__losses_to_messages(&file->losses, meta->losses, &meta->n_losses) == TB_OK;
  if (!good) {
    tc__free_meta(meta);
    return NULL;
  }
  meta->format = 1;
  meta->stream = (ProtobufCBinaryData){ sizeof stream->id, stream->id };
  meta->identity = stream->identity;
  meta->service = stream->service;
  meta->instance = stream->instance;
  meta->trace_header = (ProtobufCBinaryData){ stream->header_len, stream->header };
  meta->go_version = stream->go_version;
  meta->level = (char *)(uintptr_t)(env->opt.durable ? "durable" : "process");
  meta->run = (char *)(uintptr_t)env->opt.run;
  meta->day = file->day;
  if (file->end != TC__GOES_ON) meta->ended = (char *)(uintptr_t)tc__end_name(file->end);
  meta->produced_batches = file->produced_batches;
  meta->produced_bytes = file->produced_bytes;
  meta->stream_closed = tc__is_whole(file->end);
  if (file->segment == NULL) return meta;
  meta->bytes = file->segment->bytes;
  meta->crc = file->segment->crc;
  meta->hash = tc_hash_put(&file->hash, &built->hash);
  if (stream->settled.has_segment)
    meta->previous = tc_hash_put(&stream->settled.hash, &built->previous);
  meta->first_wall_ns = file->segment->first_wall_ns;
  meta->last_wall_ns = file->segment->last_wall_ns;
  return meta;
}

tb_rc tc__sync_name(const struct tc__env *env, int dir_fd, const char *name, struct tb_diag *diag) {
  if (!env->opt.durable || fsync(dir_fd) == 0) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "%s: %s", name, strerror(errno));
}

tb_rc tc__read_to_change(const struct tc__env *env, int dir_fd, const char *name,
                         struct tb_diag *diag, tc_meta **out, const struct tc_keys **out_signer) {
  enum tc_signed by = TC_SIGNED_NOT;

  TB_TRY(tc_meta_read_signed(dir_fd, name, env->signer, diag, out, &by));
  *out_signer = by == TC_SIGNED_RIGHT ? env->signer : NULL;
  if (by == TC_SIGNED_WRONG)
    tc__note_as(env, TC_ERROR, 0, "archive/%s/%s: its signature is wrong; it is not signed again",
                (*out)->day, name);
  return TB_OK;
}

/* Reads a meta, calls change(), and replaces the file by rename. *out: the changed meta, owned by the caller. */
static tb_rc change_meta(const struct tc__env *env, int dir_fd, const char *name,
                         tc__meta_change_fn *change, void *self, struct tb_diag *diag,
                         tc_meta **out) {
  const struct tc_keys *signer;
  tc_meta *meta;

  TB_TRY(tc__read_to_change(env, dir_fd, name, diag, &meta, &signer));
  tb_rc rc = change(self, meta);
  if (rc != TB_OK) rc = tb_fail(diag, rc, "%s: %s", name, tb_rc_text(rc));
  if (rc == TB_OK) rc = tc_meta_write(dir_fd, name, meta, signer, env->opt.durable, diag);
  if (rc == TB_OK) rc = tc_meta_publish(dir_fd, name, diag);
  if (rc != TB_OK) {
    tc_meta_free(meta);
    return rc;
  }
  *out = meta;
  return TB_OK;
}

tb_rc tc__amend(struct tc__catalog_sync *sync, const char *stream_hex, const char *day,
                uint64_t first_gen, tc__meta_change_fn *change, void *self, int *out_dir_fd,
                struct tb_diag *diag) {
  char name[32];
  tc_meta *meta;
  int dir_fd = tc_statedir_stream(sync->env->opt.dirs->archive, day, stream_hex, false);

  if (out_dir_fd != NULL) *out_dir_fd = -1;
  tc_meta_name(first_gen, name);
  if (dir_fd < 0)
    return tb_fail(diag, errno == ENOENT ? TB_NOTFOUND : tc_errno_rc(errno), "archive/%s/%s: %s",
                   day, stream_hex, strerror(errno));
  tb_rc rc = change_meta(sync->env, dir_fd, name, change, self, diag, &meta);
  if (rc == TB_OK) {
    /* Sync first: the catalog must not have what the disk could still lose. */
    if (out_dir_fd == NULL) rc = tc__sync_name(sync->env, dir_fd, name, diag);
    if (rc == TB_OK) rc = tc__put_row(sync, meta, diag);
    tc_meta_free(meta);
  }
  if (rc == TB_OK && out_dir_fd != NULL)
    *out_dir_fd = dir_fd;
  else
    close(dir_fd);
  return rc;
}
