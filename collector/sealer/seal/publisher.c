/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/publisher.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/sealer/catalog/meta.h"
#include "collector/sealer/seal/folder.h"
#include "collector/sealer/seal/proof.h"
#include "collector/sealer/seal/recorded.h"
#include "collector/sealer/seal/show.h"
#include "proto/frame.pb-c.h"

enum { PUBLISH_AT_ONCE = 256 };

static tb_rc fail_name(struct tb_diag *diag, const struct tc__file *file, const char *name) {
  return tb_fail(diag, tc_errno_rc(errno), "archive/%s/%s/%s: %s", file->day, file->stream->hex,
                 name, strerror(errno));
}

/* why->text begins with the meta's name. */
static tb_rc fail_meta(struct tb_diag *diag, const struct tc__file *file, tb_rc rc,
                       const struct tb_diag *why) {
  return tb_fail(diag, rc, "archive/%s/%s/%s", file->day, file->stream->hex, why->text);
}

static tb_rc put_rows(struct tc__seal *seal, struct tc__file *first, size_t n,
                      struct tb_diag *diag) {
  TB_TRY(tc__catalog_begin(seal->catalog, diag));
  for (size_t i = 0; i < n; i++, first = first->next)
    if (first->meta != NULL) TB_TRY(tc__put_row(seal->catalog, first->meta, diag));
  TB_TRY(tc__catalog_commit(seal->catalog, diag));
  tc__take_totals(seal->catalog);
  return TB_OK;
}

/* ---- the four steps */

/* Returns the list for losses of a file that gets no meta: that of the stream's next file, so that the losses are reported
 * before any later record is settled. */
static struct tc__losses *successor_of(const struct tc__file *file) {
  for (struct tc__file *other = file->next; other != NULL; other = other->next)
    if (other->stream == file->stream && other->state == TC__FILE_WAITS) return &other->losses;
  return file->stream->open != NULL ? &file->stream->open->losses : &file->stream->losses;
}

/* Moves a file to quarantine because the archive has a generation of that number of the stream already. */
static tb_rc refuse(struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  struct tc_segment *segment = file->segment;

  /* After the file is moved nothing may fail: the losses would never be reported. */
  TB_TRY(tc__losses_reserve(&file->losses, segment->ngens));
  bool reports =
      file->end != TC__GOES_ON && file->stream->queued == file; /* becomes a note with the end */
  struct tc__losses *successor = reports ? &file->losses : successor_of(file);
  TB_TRY(tc__losses_reserve(successor, file->losses.n + segment->ngens));
  TB_TRY(tc__hide_open_run(seal->catalog, file, diag));
  TB_TRY(tc__quarantine_file(&seal->aside, segment, diag));
  for (size_t i = 0; i < segment->ngens; i++) {
    const struct tc_segment_gen *gen = &segment->gens[i];
    struct tc__loss loss = { .first_gen = gen->gen,
                             .last_gen = gen->gen,
                             .batches = gen->batches,
                             .bytes = gen->bytes,
                             .seq = gen->last_seq,
                             .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };
    TB_TRY(tc__note_loss(&seal->outbox, file->stream, &file->losses, &loss,
                         "is in the archive already"));
  }
  if (!reports) { /* the log keeps the records until the losses are reported */
    TB_TRY(tc__losses_move(successor, &file->losses));
    file->settle_seq = 0;
  }
  if (file->stream->open != NULL) file->stream->open->new_run = true;
  for (struct tc__file *other = file->next; other != NULL; other = other->next)
    if (other->stream == file->stream) other->new_run = true;
  tc_count(&seal->env->opt.stats->generations_broken, segment->ngens);
  tc__note_as(seal->env, TC_WARN, file->stream->ref,
              "stream=%s gen=%" PRIu64
              ": is in the archive already; the new bytes are in quarantine",
              file->stream->hex, segment->first_gen);
  tc_segment_free(segment);
  file->segment = NULL;
  return TB_OK;
}

/* Checks whether the file's name in the archive is taken. A trace without a meta, or with a note of losses as its meta, is a
 * publication that a power failure interrupted: this file, made again from the log, has all of it, so the trace is removed. */
static tb_rc clear_place(struct tc__seal *seal, struct tc__file *file, bool *out_taken,
                         struct tb_diag *diag) {
  struct tb_diag why = { 0 };
  char trace[32], name[32];
  tc_meta *meta = NULL;

  tc_trace_name(file->segment->first_gen, trace);
  tc_meta_name(file->segment->first_gen, name);
  *out_taken = false;
  bool exists = faccessat(file->dir_fd, trace, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists && errno != ENOENT) return fail_name(diag, file, trace);
  tb_rc rc = tc_meta_read(file->dir_fd, name, &why, &meta);
  if (rc == TB_UNREADABLE)
    return tc__put_trace_aside(&seal->aside, file->stream, file->dir_fd, file->segment->first_gen,
                               why.text, diag);
  if (rc != TB_OK && rc != TB_NOTFOUND && rc != TB_CORRUPT) return fail_meta(diag, file, rc, &why);
  if (rc == TB_OK) {
    *out_taken = meta->expired || (exists && meta->n_generations > 0);
    if (!*out_taken && meta->n_generations == 0)
      rc = tc__losses_note_messages(&file->losses, meta->losses, meta->n_losses);
    tc_meta_free(meta);
    if (rc != TB_OK) return tb_fail(diag, rc, "archive: no memory for the losses of a note");
  }
  if (!exists || *out_taken) return TB_OK;
  tc__note_as(seal->env, TC_WARN, file->stream->ref,
              "archive/%s/%s/%s: has no valid meta; it is rebuilt from the log", file->day,
              file->stream->hex, trace);
  return unlinkat(file->dir_fd, trace, 0) == 0 ? TB_OK : fail_name(diag, file, trace);
}

/* Advances `settled` before the commit: the next segment's meta names this one's hash and may be built in the same batch. */
static void advance(struct tc__file *file) {
  struct tc_settled *settled = &file->stream->settled;

  if (file->segment == NULL) return;
  memcpy(settled->day, file->day, sizeof settled->day);
  settled->first_gen = file->segment->first_gen;
  settled->last_gen = file->segment->gens[file->segment->ngens - 1].gen;
  settled->hash = file->hash;
  settled->has_segment = true;
}

/* Opens the file's folder. An existing folder may be unsynced, too: an earlier process may have been killed after mkdir(). */
static tb_rc open_place(struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  struct tc__stream *stream = file->stream;

  if (file->dir_fd >= 0) return TB_OK;
  int fd = tc_statedir_stream(seal->env->opt.dirs->archive, file->day, stream->hex, true);
  if (fd < 0) return fail_name(diag, file, "");
  if (seal->env->opt.durable && strcmp(stream->synced_day, file->day) != 0) {
    if (!tc__sync_names(fd)) {
      tb_rc rc = fail_name(diag, file, "");
      close(fd);
      return rc;
    }
    memcpy(stream->synced_day, file->day, sizeof stream->synced_day);
  }
  file->dir_fd = fd;
  return TB_OK;
}

static tb_rc prepare(struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  char name[32];
  bool taken;

  if (file->segment == NULL || file->state != TC__FILE_WAITS) return TB_OK;
  TB_TRY(tc_segment_flush(file->segment, diag));
  TB_TRY(open_place(seal, file, diag));
  TB_TRY(clear_place(seal, file, &taken, diag));
  if (taken) return refuse(seal, file, diag);
  if (seal->env->opt.durable) tc_segment_to_disk(file->segment, true);
  TB_TRY(tc_segment_hash(file->segment, &file->hash));
  tc_meta *meta = tc__build_meta(seal->env, file);
  if (meta == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory for a meta");
  tc_meta_name(file->segment->first_gen, name);
  tb_rc rc = tc_meta_write(file->dir_fd, name, meta, seal->env->signer, false, diag);
  if (rc == TB_OK) {
    /* Keep a deep copy: the stream's fields that the meta borrows change with the next segment. */
    size_t len = tracecollect__v1__segment_meta__get_packed_size(meta);
    unsigned char *packed = malloc(len + 1);
    if (packed != NULL)
      file->meta = tracecollect__v1__segment_meta__unpack(
          NULL, tracecollect__v1__segment_meta__pack(meta, packed), packed);
    free(packed);
    if (file->meta == NULL) rc = tb_fail(diag, TB_NOMEM, "archive: no memory for a meta");
  }
  tc__free_meta(meta);
  if (rc != TB_OK) return rc;
  tc__file_becomes(file, TC__FILE_HAS_META);
  advance(file);
  return TB_OK;
}

static tb_rc give_names(struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  char name[32], temp[48], trace[32];

  if (file->state != TC__FILE_HAS_META) return TB_OK;
  tc_meta_name(file->segment->first_gen, name);
  tc_trace_name(file->segment->first_gen, trace);
  snprintf(temp, sizeof temp, "%s.new", name);
  tb_rc rc = tc_meta_publish(file->dir_fd, name, diag);
  /* Without the temporary file the meta was renamed by an earlier attempt. (The final name alone does not prove this: it may
   * be that of a note, which is to be replaced.) */
  if (rc != TB_OK &&
      (faccessat(file->dir_fd, temp, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT))
    return rc;
  if (rc != TB_OK) tb_diag_clear(diag);
  /* The log no longer has the records that a checkpoint named: the trace must never be found without a meta. */
  if (file->checkpointed && seal->env->opt.durable && fsync(file->dir_fd) != 0)
    return fail_name(diag, file, name);
  if (renameat2(seal->env->opt.dirs->open, file->segment->name, file->dir_fd, trace,
                RENAME_NOREPLACE) != 0)
    return fail_name(diag, file, trace);
  tc__file_becomes(file, TC__FILE_HAS_NAMES);
  return TB_OK;
}

/* The first sync waits for the disk. Its journal commit includes the other files' metadata, so their syncs cost little.
 * (syncfs(2) would wait for the writes of every other program, too.) */
static tb_rc sync_file(const struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  struct tb_diag why = { 0 };
  char name[32];

  if (file->state != TC__FILE_HAS_META) return TB_OK;
  tc_meta_name(file->segment->first_gen, name);
  TB_TRY(tc_segment_sync(file->segment, diag));
  if (file->meta_unsure)
    TB_TRY(tc_meta_write(file->dir_fd, name, file->meta, seal->env->signer, false, diag));
  tb_rc rc = tc_meta_sync(file->dir_fd, name, &why);
  if (rc == TB_NOTFOUND) return TB_OK; /* renamed by an earlier attempt */
  file->meta_unsure = rc != TB_OK;
  return rc == TB_OK ? TB_OK : fail_meta(diag, file, rc, &why);
}

static tb_rc to_disk(struct tc__seal *seal, struct tc__file *first, size_t n,
                     struct tb_diag *diag) {
  bool durable = seal->env->opt.durable;
  struct tc__file *file = first;

  for (size_t i = 0; i < n; i++, file = file->next) TB_TRY(prepare(seal, file, diag));
  file = first;
  for (size_t i = 0; durable && i < n; i++, file = file->next) TB_TRY(sync_file(seal, file, diag));
  file = first;
  for (size_t i = 0; i < n; i++, file = file->next) TB_TRY(give_names(seal, file, diag));
  file = first;
  for (size_t i = 0; durable && i < n; i++, file = file->next)
    if (file->dir_fd >= 0 && fsync(file->dir_fd) != 0) return fail_name(diag, file, "");
  return TB_OK;
}

/* ---- notes: the stream's end or losses, if no segment is queued whose meta could have them */

/* Fails if memory cannot be allocated: otherwise the end would be settled but never written. */
static tb_rc change_end(void *self, tc_meta *meta) {
  const struct tc__file *file = self;

  if (file->end != TC__GOES_ON) {
    char *ended = strdup(tc__end_name(file->end));
    if (ended == NULL) return TB_NOMEM;
    if (meta->ended != NULL && *meta->ended != '\0') free(meta->ended);
    meta->ended = ended;
    meta->stream_closed = tc__is_whole(file->end);
    meta->produced_batches = file->produced_batches;
    meta->produced_bytes = file->produced_bytes;
  }
  return tc__losses_into_meta(&file->losses, meta);
}

/* Looks for a note of that name, or the meta of a segment. A segment's meta without a trace does not count: the segment is
 * rebuilt. */
static tb_rc find_meta(const struct tc__file *file, uint64_t gen, bool *out_is_there,
                       struct tb_diag *diag) {
  struct tb_diag why = { 0 };
  char name[32], trace[32];
  tc_meta *meta = NULL;

  tc_meta_name(gen, name);
  tc_trace_name(gen, trace);
  tb_rc rc = tc_meta_read(file->dir_fd, name, &why, &meta);
  bool looks = rc == TB_OK && meta->n_generations > 0 && !meta->expired;
  *out_is_there = rc == TB_OK;
  tc_meta_free(meta);
  if (rc != TB_OK && rc != TB_NOTFOUND && rc != TB_CORRUPT && rc != TB_UNREADABLE)
    return fail_meta(diag, file, rc, &why);
  if (!looks || faccessat(file->dir_fd, trace, F_OK, AT_SYMLINK_NOFOLLOW) == 0) return TB_OK;
  *out_is_there = false;
  return errno == ENOENT ? TB_OK : fail_name(diag, file, trace);
}

static tb_rc make_note(struct tc__seal *seal, struct tc__file *file, uint64_t gen,
                       struct tb_diag *diag) {
  char name[32];
  tc_meta *meta = tc__build_meta(seal->env, file);

  if (meta == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory for a meta");
  tc_meta_name(gen, name);
  tb_rc rc = tc_meta_write(file->dir_fd, name, meta, seal->env->signer, true, diag);
  if (rc == TB_OK) rc = tc__mark_stale(seal->catalog, diag);
  if (rc == TB_OK) rc = tc_meta_publish(file->dir_fd, name, diag);
  if (rc == TB_OK && fsync(file->dir_fd) != 0) rc = fail_name(diag, file, name);
  if (rc == TB_OK) rc = tc__put_row(seal->catalog, meta, diag);
  tc__free_meta(meta);
  return rc;
}

static tb_rc add_to_note(struct tc__seal *seal, struct tc__file *file, uint64_t gen,
                         struct tb_diag *diag) {
  TB_TRY(tc__mark_stale(seal->catalog, diag));
  return tc__amend(seal->catalog, file->stream->hex, file->day, gen, change_end, file, NULL, diag);
}

/* Writes a meta without a trace, for losses of a stream that has no segment, or whose last meta is damaged. If there is such a
 * meta already that could not be read before, adds the losses to it. The catalog is marked until it has the row, because
 * the next start finds the note by that row. */
static tb_rc leave_note(struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  struct tc__stream *stream = file->stream;
  bool was_marked = seal->catalog->is_marked, is_there;

  if (file->losses.n == 0) return TB_OK;
  uint64_t gen = file->losses.items[0].first_gen;
  TB_TRY(open_place(seal, file, diag));
  TB_TRY(find_meta(file, gen, &is_there, diag));
  TB_TRY(is_there ? add_to_note(seal, file, gen, diag) : make_note(seal, file, gen, diag));
  if (!was_marked && tc__catalog_takes_rows(seal->catalog)) tc__unmark_stale(seal->catalog);
  memcpy(stream->note.day, file->day, sizeof file->day);
  stream->note.gen = gen;
  return TB_OK;
}

static tb_rc write_end(struct tc__seal *seal, struct tc__file *file, struct tb_diag *diag) {
  struct tc__stream *stream = file->stream;
  struct tb_diag why = { 0 };
  const struct tc_settled *last = &stream->settled;

  if (stream->queued != file)
    file->end = TC__GOES_ON; /* the stream went on; a later file may have another end */
  if (file->end == TC__GOES_ON && file->losses.n == 0) return TB_OK;
  /* Look for a note of an earlier start. If nothing is settled there is none, unless the start has searched already and could
   * not read everything. */
  if (!last->has_segment && (last->seq > 0 || stream->reported.is_known))
    TB_TRY(tc__find_note(seal->catalog, stream, diag));
  if (!last->has_segment && stream->note.day[0] == '\0') return leave_note(seal, file, diag);
  tb_rc rc = tc__amend(seal->catalog, stream->hex, last->has_segment ? last->day : stream->note.day,
                       last->has_segment ? last->first_gen : stream->note.gen, change_end, file,
                       NULL, &why);
  if (rc == TB_OK) return TB_OK;
  if (rc != TB_NOTFOUND && rc != TB_CORRUPT && rc != TB_UNREADABLE)
    return tb_fail(diag, rc, "%s", why.text);
  /* A note must not have the name of a segment: it would replace the segment's row. */
  bool has_name = file->losses.n > 0 && file->losses.items[0].first_gen > last->last_gen;
  if (has_name) TB_TRY(leave_note(seal, file, diag));
  tc__note_as(seal->env, TC_WARN, file->stream->ref, "%s; the stream's %s", why.text,
              has_name             ? "losses have a meta of their own"
              : file->losses.n > 0 ? "losses are not noted"
                                   : "end is not noted");
  return TB_OK;
}

/* ---- the whole queue */

static tb_rc remember_recent(struct tc__file *file) {
  const struct tc_segment *segment = file->segment;
  size_t pending = 0;

  for (size_t i = 0; i < segment->ngens; i++)
    pending += segment->gens[i].verdict.code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING;
  if (pending == 0) return TB_OK;
  struct tc__recent *recent =
      tc__recent_add(file->stream, file->day, segment->first_gen, segment->ngens);
  if (recent == NULL) return TB_NOMEM;
  recent->pending = pending;
  return TB_OK;
}

/* Reports the first file of the queue as published, and frees it. */
static tb_rc finish_first(struct tc__seal *seal, struct tc__file *file) {
  struct tc__stream *stream = file->stream;

  if (file->settle_seq > stream->settled.seq) {
    stream->settled.seq = file->settle_seq;
    stream->settled.abandoned_gen = file->abandoned_gen;
  }
  TB_TRY(tc__settle(&seal->outbox, stream)); /* a repeated report is harmless */
  if (file->segment != NULL) TB_TRY(remember_recent(file));
  if (file->segment != NULL) {
    char path[192];
    tc__archive_path(file->day, stream->hex, file->segment->first_gen, path);
    tc__report_archived(&seal->outbox, file, path);
    if (!file->offered) tc__offer(&seal->outbox, file, file->segment->ngens - 1, path);
    tc_count(&seal->env->opt.stats->segments_sealed, 1);
    tc_count(&seal->env->opt.stats->segment_bytes, file->segment->bytes);
  }
  if (tc__is_whole(file->end)) tc__report_closed(&seal->outbox, stream);
  if (stream->queued == file) stream->queued = NULL;
  (void)tc__queue_take(&seal->queue);
  tc__take_late(&seal->verdicts, file);
  tc__mark_live(&seal->streams, stream);
  tc__file_free(file);
  return TB_OK;
}

static tb_rc publish_some(struct tc__seal *seal, size_t n, struct tb_diag *diag) {
  TB_TRY(to_disk(seal, seal->queue.first, n, diag));
  TB_TRY(put_rows(seal, seal->queue.first, n, diag));
  for (size_t i = 0; i < n; i++) {
    struct tc__file *file = seal->queue.first;
    if (file->segment == NULL) TB_TRY(write_end(seal, file, diag));
    TB_TRY(finish_first(seal, file));
  }
  return TB_OK;
}

static bool is_behind_losses(const struct tc__seal *seal, const struct tc__file *file) {
  for (const struct tc__file *before = seal->queue.first; before != file; before = before->next)
    if (before->segment == NULL && before->losses.n > 0 && before->stream == file->stream)
      return true;
  return false;
}

/* Counts the files to publish at once: up to a segment that has losses of its stream before it in the queue. They must be in the
 * stream's last meta before that segment is published: a start that finds the segment takes all losses before it as
 * reported (sim_seeds 77241), and a repeated attempt would find another last meta (72125). */
static size_t count_next(const struct tc__seal *seal) {
  size_t n = 0;

  for (const struct tc__file *file = seal->queue.first; file != NULL && n < PUBLISH_AT_ONCE;
       file = file->next, n++)
    if (file->segment != NULL && is_behind_losses(seal, file)) break;
  return n;
}

tb_rc tc__publish_queue(struct tc__seal *seal, struct tb_diag *diag) {
  while (seal->queue.n > 0) {
    if (tc__is_late(seal->env)) return TB_AGAIN;
    TB_TRY(tc__prove_queue(seal, diag));
    TB_TRY(publish_some(seal, count_next(seal), diag));
    tc_count(&seal->env->opt.stats->sealer_turns, 1);
  }
  return TB_OK;
}
