/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/checkpoint/published.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/generation_time.h"
#include "collector/sealer/seal/folder.h"
#include "collector/sealer/seal/recorded.h"
#include "proto/frame.pb-c.h"

static tb_rc trace_matches(int dir_fd, const tc_meta *meta, uint64_t first_gen,
                           struct tb_diag *diag, bool *out) {
  char trace[32];
  struct stat st;

  tc_trace_name(first_gen, trace);
  bool there = fstatat(dir_fd, trace, &st, AT_SYMLINK_NOFOLLOW) == 0;
  if (!there && errno != ENOENT)
    return tb_fail(diag, tc_errno_rc(errno), "%s: %s", trace, strerror(errno));
  *out = there && (uint64_t)st.st_size == meta->bytes;
  return TB_OK;
}

/* *out: meta is of a segment of this stream, and the segment's whole trace is beside it. Then syncs the names: the collector
 * may have died before it synced them, and the log is about to release the records. */
static tb_rc is_published(const struct tc__env *env, const struct tc__stream *stream, int dir_fd,
                          const tc_meta *meta, uint64_t gen, struct tb_diag *diag, bool *out) {
  *out = meta->n_generations > 0 && memcmp(meta->stream.data, stream->id, 16) == 0 &&
         tc_meta_hash(meta).kind != TC_HASH_NONE;
  if (*out && !meta->expired) TB_TRY(trace_matches(dir_fd, meta, gen, diag, out));
  if (!*out || !env->opt.durable || tc__sync_names(dir_fd)) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", meta->day, stream->hex,
                 strerror(errno));
}

/* Finds the meta of a segment of this stream that begins with gen; *out is NULL if there is none. A file that exists
 * but cannot be read is an error. */
static tb_rc find_published(const struct tc__env *env, struct tc__stream *stream, const char *day,
                            uint64_t gen, struct tb_diag *diag, tc_meta **out) {
  struct tb_diag why = { 0 };
  char name[32];
  bool published = false;
  int dir_fd = tc_statedir_stream(env->opt.dirs->archive, day, stream->hex, false);

  *out = NULL;
  if (dir_fd < 0 && errno == ENOENT) return TB_OK;
  if (dir_fd < 0)
    return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", day, stream->hex,
                   strerror(errno));
  tc_meta_name(gen, name);
  tb_rc rc = tc_meta_read(dir_fd, name, &why, out);
  if (rc == TB_OK) rc = is_published(env, stream, dir_fd, *out, gen, &why, &published);
  close(dir_fd);
  if (rc != TB_OK || !published) {
    tc_meta_free(*out);
    *out = NULL;
  }
  if (rc == TB_OK || rc == TB_NOTFOUND || rc == TB_CORRUPT || rc == TB_UNREADABLE) return TB_OK;
  return tb_fail(diag, rc, "%s", why.text);
}

static tb_rc adopt(struct tc__seal *seal, struct tc__stream *stream, const tc_meta *meta,
                   uint64_t *out_skip_to, struct tb_diag *diag) {
  const Tracecollect__V1__GenerationMeta *first = meta->generations[0],
                                         *last = meta->generations[meta->n_generations - 1];
  struct tc_settled *settled = &stream->settled;

  TB_TRY(tc__put_row(seal->catalog, meta, diag));
  memcpy(settled->day, meta->day, TC_DAY_BYTES);
  settled->hash = tc_meta_hash(meta);
  settled->has_segment = true;
  settled->first_gen = first->gen;
  settled->last_gen = last->gen;
  settled->seq = last->last_seq;
  settled->abandoned_gen = 0;
  tc__stream_gives_up(stream, 0); /* an abandoned generation was before this segment */
  stream->last_gen = last->gen;
  stream->last_seq = last->last_seq;
  stream->losses.n = stream->reported.losses.n = 0; /* the segment's meta has the earlier ones */
  TB_TRY(tc__reported_by(stream, meta));
  *out_skip_to = last->last_seq;
  return tc__settle(&seal->outbox, stream);
}

static bool is_pending(const Tracecollect__V1__GenerationMeta *gen) {
  return gen->verdict == NULL ||
         gen->verdict->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING;
}

size_t tc__count_pending(const tc_meta *meta) {
  size_t n = 0;

  for (size_t i = 0; i < meta->n_generations; i++) n += is_pending(meta->generations[i]);
  return n;
}

tb_rc tc__offer_meta(struct tc__outbox *outbox, struct tc__stream *stream, const tc_meta *meta) {
  if (tc__count_pending(meta) == 0) {
    stream->begun = false; /* see below */
    return TB_OK;
  }
  struct tc__recent *recent =
      tc__recent_add(stream, meta->day, meta->generations[0]->gen, meta->n_generations);
  if (recent == NULL) return TB_NOMEM;
  for (size_t i = 0; i < meta->n_generations; i++) {
    const Tracecollect__V1__GenerationMeta *gen = meta->generations[i];
    if (!is_pending(gen)) {
      stream->begun = false; /* analysed before this start: the next one begins a new run */
      continue;
    }
    struct tc_reply *reply = tc__stream_reply(stream, TC_REPLY_STORED);
    if (reply == NULL) return TB_NOMEM;
    recent->pending++;
    reply->gen = gen->gen;
    reply->offset = gen->offset;
    reply->len = gen->bytes;
    reply->new_run = !stream->begun || gen->gen != stream->last_gen + 1;
    tc__archive_path(meta->day, stream->hex, recent->first_gen, reply->path);
    memcpy(reply->final_path, reply->path, sizeof reply->final_path);
    struct tc_wall wall = tc_generation_wall(gen, meta->last_wall_ns);
    reply->first_wall_ns = wall.first_ns;
    reply->end_wall_ns = wall.last_ns;
    tc_reply_queue_put(&outbox->replies, reply);
    stream->begun = true;
    stream->last_gen = gen->gen;
  }
  return TB_OK;
}

/* Adopts a segment that expired since and whose meta was folded: the ledger's record holds the last sequence number. */
static tb_rc adopt_folded(struct tc__recovery *recovery, struct tc__stream *stream, const char *day,
                          uint64_t seq, uint64_t *out_skip_to, struct tb_diag *diag) {
  struct tc_settled *settled = &stream->settled;
  const tc_meta *record;

  TB_TRY(tc__find_folded(recovery->folding, stream->id, day, seq, diag, &record));
  if (record == NULL) return TB_OK;
  memcpy(settled->day, record->day, TC_DAY_BYTES);
  settled->hash = tc_meta_hash(record);
  settled->has_segment = true;
  settled->first_gen = settled->last_gen = stream->last_gen = record->folded->last_gen;
  settled->seq = stream->last_seq = *out_skip_to = tc_meta_last_seq(record);
  settled->abandoned_gen = 0;
  tc__stream_gives_up(stream, 0);
  stream->losses.n = stream->reported.losses.n = 0;
  stream->begun = false;
  return tc__settle(&recovery->seal->outbox, stream);
}

tb_rc tc__adopt_published(struct tc__recovery *recovery, struct tc__stream *stream, const char *day,
                          uint64_t gen, uint64_t first_seq, struct tb_diag *diag,
                          uint64_t *out_skip_to) {
  tc_meta *meta;
  tb_rc rc = TB_OK;

  TB_TRY(find_published(recovery->seal->env, stream, day, gen, diag, &meta));
  if (meta == NULL) return adopt_folded(recovery, stream, day, first_seq, out_skip_to, diag);
  if (meta->generations[0]->first_seq == first_seq) {
    rc = adopt(recovery->seal, stream, meta, out_skip_to, diag);
    if (rc == TB_OK && !meta->expired) rc = tc__offer_meta(&recovery->seal->outbox, stream, meta);
  }
  tc_meta_free(meta);
  return rc;
}
