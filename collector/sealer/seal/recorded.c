/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/recorded.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/walk.h"
#include "collector/sealer/catalog/meta.h"
#include "proto/frame.pb-c.h"

tb_rc tc__note_loss(struct tc__outbox *outbox, const struct tc__stream *stream,
                    struct tc__losses *losses, const struct tc__loss *loss, const char *why) {
  if (tc__losses_find(&stream->reported.losses, loss->seq, loss->reason) != NULL) return TB_OK;
  bool is_new = tc__losses_find(losses, loss->seq, loss->reason) == NULL;
  TB_TRY(tc__losses_note(losses, loss));
  if (is_new && why != NULL) tc__report_lost(outbox, stream, loss, why);
  return TB_OK;
}

uint64_t tc__reported_of(const struct tc__stream *stream, uint64_t gen, uint64_t first_seq) {
  const struct tc__loss *reported = tc__losses_find(&stream->reported.losses, first_seq,
                                                    TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN);

  return reported != NULL && reported->first_gen == gen && reported->last_gen == gen
             ? reported->batches
             : 0;
}

uint64_t tc__reported_end_of(const struct tc__stream *stream, uint64_t gen, uint64_t seq) {
  uint64_t end = 0;

  for (size_t i = 0; i < stream->reported.losses.n; i++) {
    const struct tc__loss *reported = &stream->reported.losses.items[i];
    if (reported->seq > seq && reported->first_gen <= gen && gen <= reported->last_gen &&
        (end == 0 || reported->seq < end))
      end = reported->seq;
  }
  return end;
}

bool tc__batch_was_reported(struct tc__stream *stream, uint64_t gen, uint64_t seq) {
  uint64_t batches = tc__reported_of(stream, gen, seq);

  if (seq < stream->reported.end_seq) return true;
  if (batches > 0) stream->reported.batches = batches;
  if (stream->reported.batches == 0) return false;
  stream->reported.batches--;
  return true;
}

tb_rc tc__reported_by(struct tc__stream *stream, const tc_meta *meta) {
  for (size_t i = 0; i < meta->n_losses; i++)
    if (meta->losses[i]->seq > stream->settled.seq)
      TB_TRY(tc__losses_note_messages(&stream->reported.losses, &meta->losses[i], 1));
  return TB_OK;
}

/* A missing or damaged meta reports nothing (*out is NULL); one that cannot be read is an error. */
static tb_rc read_meta(int dir_fd, const char *name, struct tb_diag *diag, tc_meta **out) {
  struct tb_diag why = { 0 };
  tb_rc rc = tc_meta_read(dir_fd, name, &why, out);

  if (rc == TB_OK) return TB_OK;
  *out = NULL;
  return rc == TB_NOTFOUND || rc == TB_CORRUPT ? TB_OK : tb_fail(diag, rc, "%s", why.text);
}

static tb_rc open_folder(const struct tc__env *env, const struct tc__stream *stream,
                         const char *day, struct tb_diag *diag, int *out) {
  *out = tc_statedir_stream(env->opt.dirs->archive, day, stream->hex, false);
  if (*out >= 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s: %s", day, stream->hex, strerror(errno));
}

/* ---- notes: the losses of a stream without a segment are in a meta of their own. The log does not have its name; the catalog
 * does. If the catalog fails or may lack rows, the stream's folders are searched. A file that cannot be read is only
 * logged: better a loss reported twice than no start. */

struct search {
  const struct tc__env *env;
  struct tc__stream *stream;
  struct tb_diag *diag;
  bool missed; /* something could not be read */
};

static void miss(void *self, const char *text) {
  struct search *search = self;

  search->missed = true;
  tc__note_as(search->env, TC_WARN, search->stream->ref,
              "%s; losses of stream=%s that were reported may be reported again", text,
              search->stream->hex);
}

/* Keeps the note with the highest generation, as the catalog does. */
static tb_rc look_at(void *self, const struct tc_archive_file *file) {
  struct search *search = self;
  struct tc__stream *stream = search->stream;
  struct tb_diag why = { 0 };
  char text[480];
  tc_meta *meta;

  if (!tc_name_ends(file->name, ".meta")) return TB_OK;
  tb_rc rc = read_meta(file->dir_fd, file->name, &why, &meta);
  if (tc_rc_is_short(rc))
    return tb_fail(search->diag, rc, "archive/%s/%s/%.100s", file->day, file->stream_hex, why.text);
  if (rc != TB_OK) {
    snprintf(text, sizeof text, "archive/%s/%s/%s", file->day, file->stream_hex, why.text);
    miss(search, text);
    return TB_OK;
  }
  uint64_t gen = strtoull(file->name, NULL, 16);
  if (meta != NULL && meta->n_generations == 0 &&
      (stream->note.day[0] == '\0' || gen >= stream->note.gen)) {
    memcpy(stream->note.day, file->day, TC_DAY_BYTES);
    stream->note.gen = gen;
  }
  tc_meta_free(meta);
  return TB_OK;
}

static tb_rc walk_days(struct tc__catalog_sync *sync, struct tc__stream *stream,
                       struct tb_diag *diag) {
  struct tb_diag why = { 0 };
  struct search search = { .env = sync->env, .stream = stream, .diag = &why };
  tb_rc rc = tc_archive_walk_stream(sync->env->opt.dirs->archive, stream->hex, look_at, miss,
                                    &search, &why);

  if (tc_rc_is_short(rc)) return tb_fail(diag, rc, "%s", why.text);
  if (rc != TB_OK) miss(&search, why.text);
  stream->note.is_known = !search.missed;
  return TB_OK;
}

tb_rc tc__find_note(struct tc__catalog_sync *sync, struct tc__stream *stream,
                    struct tb_diag *diag) {
  struct tb_diag why = { 0 };

  if (stream->note.is_known || stream->note.day[0] != '\0') return TB_OK;
  if (!tc__catalog_takes_rows(sync)) return walk_days(sync, stream, diag);
  tb_rc rc = tc_catalog_note(sync->db, stream->id, &why, stream->note.day, &stream->note.gen);
  if (rc != TB_OK && (rc != TB_NOTFOUND || sync->is_marked)) return walk_days(sync, stream, diag);
  stream->note.is_known = true;
  return TB_OK;
}

tb_rc tc__learn_reported(struct tc__catalog_sync *sync, struct tc__stream *stream,
                         struct tb_diag *diag) {
  const struct tc_settled *settled = &stream->settled;
  tc_meta *meta = NULL;
  char name[32];
  int dir_fd;

  if (stream->reported.is_known) return TB_OK;
  if (!settled->has_segment) TB_TRY(tc__find_note(sync, stream, diag));
  stream->reported.is_known = true;
  if (!settled->has_segment && stream->note.day[0] == '\0') return TB_OK;
  const char *day = settled->has_segment ? settled->day : stream->note.day;
  TB_TRY(open_folder(sync->env, stream, day, diag, &dir_fd));
  if (dir_fd < 0) return TB_OK;
  tc_meta_name(settled->has_segment ? settled->first_gen : stream->note.gen, name);
  struct tb_diag why = { 0 };
  tb_rc rc = read_meta(dir_fd, name, &why, &meta);
  if (rc == TB_OK && meta != NULL) rc = tc__reported_by(stream, meta);
  /* The collector may have died before the meta's name was synced (sim_seeds 712228) or its row was written. From here on we
   * rely on both. */
  if (rc == TB_OK && stream->reported.losses.n > 0) {
    rc = tc__sync_name(sync->env, dir_fd, name, &why);
    if (rc == TB_OK) rc = tc__put_row(sync, meta, &why);
  }
  tc_meta_free(meta);
  close(dir_fd);
  if (rc == TB_UNREADABLE) { /* better a loss reported twice than no start */
    tc__note_as(sync->env, TC_ERROR, stream->ref,
                "archive/%s/%s/%s; losses that this meta reports may be reported again", day,
                stream->hex, why.text);
    return TB_OK;
  }
  return rc == TB_OK ? TB_OK
                     : tb_fail(diag, rc, "%s", rc == TB_NOMEM ? "recovery: no memory" : why.text);
}
