/* SPDX-License-Identifier: Apache-2.0 */
/* Resumes the file that a checkpoint names: the whole generations of a run, or one open generation. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collector/sealer/checkpoint/checkpoint.h"
#include "collector/sealer/seal/folder.h"
#include "collector/sealer/seal/proof.h"
#include "collector/sealer/seal/recorded.h"
#include "proto/allocator.h"
#include "proto/frame.pb-c.h"
#include "proto/log.pb-c.h"

typedef Tracecollect__V1__LogCheckpoint message_t;
typedef Tracecollect__V1__LogGeneration generation_t;

static bool is_run(const message_t *m) {
  return m->n_whole > 0;
}

/* Takes the checkpoint's losses, except those that a meta reported after it. A reported loss may have grown meanwhile. */
static tb_rc take_losses(struct tc__stream *stream, const message_t *m) {
  for (size_t i = 0; i < m->n_losses; i++) {
    const tc__loss_message *loss = m->losses[i];
    uint64_t reported = tc__reported_of(stream, m->abandoned_gen, loss->seq);
    if (reported > loss->batches) stream->reported.batches = reported - loss->batches;
    if (loss->seq > stream->settled.seq &&
        tc__losses_find(&stream->reported.losses, loss->seq, loss->reason) == NULL)
      TB_TRY(tc__losses_note_messages(&stream->losses, &m->losses[i], 1));
  }
  return TB_OK;
}

/* ---- a file that does not match its checkpoint */

static void put_aside(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen) {
  char name[TC_FILE_NAME_BYTES];

  tc_segment_name(stream->hex, gen, name);
  if (renameat(seal->env->opt.dirs->open, name, seal->env->opt.dirs->quarantine, name) == 0)
    seal->aside.changed = true;
  tc__stream_gives_up(stream, gen); /* further batches cannot make it whole */
  stream->run_broken = true;
}

/* Reports the named generations as lost and moves what is left of the file to quarantine. */
static tb_rc file_is_lost(struct tc__seal *seal, struct tc__stream *stream, const message_t *m,
                          const char *why, struct tb_diag *diag) {
  struct tc__loss loss = { .first_gen = m->gen,
                           .last_gen = is_run(m) ? m->gen + m->n_whole - 1 : m->gen,
                           .batches = m->batches,
                           .bytes = m->part_bytes > m->offset ? m->part_bytes - m->offset : 0,
                           .seq = m->first_seq,
                           .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };

  for (size_t i = 0; i < m->n_whole; i++) loss.batches += m->whole[i]->batches;
  /* The collector may have died after it named the meta and before it named the trace. */
  if (tc_day_valid(m->day))
    TB_TRY(tc__take_back(&seal->aside, stream, m->day, m->gen, m->first_seq, diag));
  put_aside(seal, stream, m->gen);
  tc_count(&seal->env->opt.stats->generations_broken, loss.last_gen - loss.first_gen + 1);
  if (!is_run(m)) {
    tc__note_as(seal->env, TC_ERROR, stream->ref,
                "%s; the log relied on it: generation %" PRIu64 " is lost", why, m->gen);
    return tc__losses_note(&stream->losses, &loss);
  }
  tc__note_as(seal->env, TC_ERROR, stream->ref,
              "%s; the log relied on it: generations %" PRIu64 " to %" PRIu64 " are lost", why,
              loss.first_gen, loss.last_gen);
  tc__stream_gives_up(stream, 0); /* they were whole: no further batches */
  return tc__note_loss(&seal->outbox, stream, &stream->losses, &loss, NULL);
}

/* Reports a loss, unless a meta reported the open generation as lost after the checkpoint. */
static tb_rc give_up(struct tc__seal *seal, struct tc__stream *stream, const message_t *m,
                     const char *why, struct tb_diag *diag) {
  if (!is_run(m)) stream->reported.end_seq = tc__reported_end_of(stream, m->gen, m->seq);
  if (is_run(m) || stream->reported.end_seq == 0) return file_is_lost(seal, stream, m, why, diag);
  put_aside(seal, stream, m->gen);
  return TB_OK;
}

/* ---- a file that does */

/* Moves the file back if it was put into quarantine shortly before a crash, so that the log has no trace of this. The log does
 * have the record that caused it, after the checkpoint: its replay moves the file to quarantine again. */
static tb_rc fetch_back(struct tc__seal *seal, const struct tc__stream *stream, uint64_t gen,
                        struct tb_diag *diag, bool *out_was_aside) {
  char name[TC_FILE_NAME_BYTES];

  tc_segment_name(stream->hex, gen, name);
  *out_was_aside = renameat2(seal->env->opt.dirs->quarantine, name, seal->env->opt.dirs->open, name,
                             RENAME_NOREPLACE) == 0;
  if (*out_was_aside || errno == ENOENT || errno == EEXIST) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "quarantine/%s: %s", name, strerror(errno));
}

static tb_rc take_generation(const generation_t *from, uint64_t gen, uint64_t offset,
                             struct tc_segment_gen *to) {
  const Tracecollect__V1__Verdict *verdict = from->verdict;

  *to = (struct tc_segment_gen){ .gen = gen,
                                 .offset = offset,
                                 .bytes = from->bytes,
                                 .batches = from->batches,
                                 .crc = from->crc,
                                 .first_seq = from->first_seq,
                                 .last_seq = from->last_seq,
                                 .first_wall_ns = from->first_wall_ns,
                                 .end_wall_ns = from->end_wall_ns,
                                 .unsafe_experiment = from->unsafe_experiment,
                                 .ticks = { from->first_ticks, from->last_ticks, from->frequency,
                                            from->snapshot_ticks, from->snapshot_wall_ns,
                                            from->has_ticks },
                                 .verdict.thread = TB_NO_THREAD };
  to->has_hash = from->hash.len == sizeof to->hash;
  if (to->has_hash) memcpy(to->hash, from->hash.data, sizeof to->hash);
  if (verdict == NULL) return TB_OK;
  to->verdict = (struct tc_segment_verdict){ .code = verdict->code,
                                             .events = from->events,
                                             .offset = verdict->offset,
                                             .first_ns = from->first_ns,
                                             .last_ns = from->last_ns,
                                             .thread = verdict->thread };
  if (*verdict->reason == '\0') return TB_OK;
  to->verdict.reason = strdup(verdict->reason);
  return to->verdict.reason != NULL ? TB_OK : TB_NOMEM;
}

static void free_generations(struct tc_segment_gen *gens, size_t n) {
  for (size_t i = 0; gens != NULL && i < n; i++) free(gens[i].verdict.reason);
  free(gens);
}

static tb_rc take_generations(const message_t *m, struct tc_segment_gen **out) {
  struct tc_segment_gen *gens = calloc(m->n_whole, sizeof *gens);
  uint64_t offset = m->offset;
  tb_rc rc = gens != NULL ? TB_OK : TB_NOMEM;

  for (size_t i = 0; rc == TB_OK && i < m->n_whole; i++) {
    rc = take_generation(m->whole[i], m->gen + i, offset, &gens[i]);
    offset += m->whole[i]->bytes;
  }
  if (rc != TB_OK) {
    free_generations(gens, m->n_whole);
    return rc;
  }
  *out = gens;
  return TB_OK;
}

static struct tc_segment_gen describe_open(const message_t *m) {
  return (struct tc_segment_gen){ .gen = m->gen,
                                  .offset = m->offset,
                                  .bytes = m->part_bytes - m->offset,
                                  .batches = m->batches,
                                  .first_wall_ns = m->first_wall_ns,
                                  .first_seq = m->first_seq,
                                  .last_seq = m->seq,
                                  .crc = m->crc,
                                  .crc_of_crcs = m->crc_of_crcs,
                                  .unsafe_experiment = m->unsafe_experiment,
                                  .ticks = { m->first_ticks, m->last_ticks, m->frequency,
                                             m->snapshot_ticks, m->snapshot_wall_ns, m->has_ticks },
                                  .verdict.thread = TB_NO_THREAD };
}

/* Returns whether the whole generations follow one another and fill the file. */
static bool are_consistent(const message_t *m) {
  uint64_t seq = m->first_seq, offset = m->offset;

  if (m->has_part || m->whole[0]->first_seq != seq) return false;
  for (size_t i = 0; i < m->n_whole; i++) {
    const generation_t *g = m->whole[i];
    if (g->first_seq < seq || g->last_seq < g->first_seq || g->bytes > m->part_bytes) return false;
    seq = g->last_seq + 1;
    offset += g->bytes;
  }
  return seq <= m->seq + 1 && offset == m->part_bytes;
}

static bool is_consistent(const message_t *m) {
  if (!tc_day_valid(m->day) || m->first_seq == 0) return false;
  return is_run(m) ? are_consistent(m) : m->part_bytes >= m->offset && m->first_seq <= m->seq;
}

static tb_rc open_file(struct tc__seal *seal, struct tc__stream *stream, const message_t *m,
                       bool was_aside, struct tb_diag *why, struct tc__file **out) {
  const struct tc_segment_gen now = describe_open(m);
  struct tc_segment_part part = { .first_gen = m->gen,
                                  .bytes = m->part_bytes,
                                  .header_len = m->offset,
                                  .crc = m->part_crc,
                                  .now = is_run(m) ? NULL : &now,
                                  .ngens = m->n_whole,
                                  /* A file from quarantine may have wrong bytes. */
                                  .is_vouched_for = is_run(m) && !was_aside };
  struct tc__file *file = tc__file_new(stream);
  tb_rc rc = file == NULL ? TB_NOMEM : is_run(m) ? take_generations(m, &part.gens) : TB_OK;

  if (rc != TB_OK)
    tb_fail(why, rc, "archive: no memory");
  else
    rc = tc_segment_resume(seal->env->opt.dirs->open, stream->hex, &part, seal->env->hash_kind, why,
                           &file->segment);
  if (rc == TB_OK) {
    *out = file;
    return TB_OK;
  }
  free_generations(part.gens, part.ngens);
  tc__file_free(file);
  return rc;
}

static tb_rc take_up(struct tc__seal *seal, struct tc__stream *stream, const message_t *m,
                     struct tc__file *file) {
  tc_descriptors_add(&seal->descriptors, file->segment);
  file->segment->first_wall_ns = m->first_wall_ns;
  file->segment->last_wall_ns = m->last_wall_ns;
  file->segment->opened_mono_ns = tc_mono_ns();
  file->new_run = m->new_run;
  file->checkpointed = true;
  memcpy(file->day, m->day, sizeof file->day);
  tc__stream_opens(stream, file);
  if (is_run(m)) {
    file->noted_lsn = m->lsn;
    file->offered = true; /* by tc__offer_resumed() */
    stream->run_broken = false;
    stream->resumed = true;
    seal->unproven += !tc__is_proven(file);
  }
  return tc__losses_move(&file->losses, &stream->losses);
}

static tb_rc resume_file(struct tc__recovery *recovery, struct tc__stream *stream,
                         const message_t *m, struct tb_diag *diag, uint64_t *out_skip_to) {
  struct tc__seal *seal = recovery->seal;
  uint64_t reported = is_run(m) ? 0 : tc__reported_of(stream, m->gen, m->first_seq);
  struct tb_diag why = { 0 };
  struct tc__file *file;
  bool was_aside;

  if (reported > 0) { /* given up after the checkpoint */
    put_aside(seal, stream, m->gen);
    stream->reported.batches = reported > m->batches ? reported - m->batches : 0;
    return TB_OK;
  }
  if (!is_consistent(m)) {
    snprintf(why.text, sizeof why.text,
             "the checkpoint of stream=%s up to seq=%" PRIu64 " contradicts itself", stream->hex,
             m->seq);
    return give_up(seal, stream, m, why.text, diag);
  }
  /* Check the archive first: quarantine may hold an abandoned file of the same generation that looks valid, too. */
  TB_TRY(tc__adopt_published(recovery, stream, m->day, m->gen, m->first_seq, diag, out_skip_to));
  if (*out_skip_to != 0) return TB_OK;
  TB_TRY(fetch_back(seal, stream, m->gen, diag, &was_aside));
  tb_rc rc = open_file(seal, stream, m, was_aside, &why, &file);
  if (rc == TB_OK) return take_up(seal, stream, m, file);
  if (rc != TB_CORRUPT && rc != TB_UNREADABLE) return tb_fail(diag, rc, "%s", why.text);
  return give_up(seal, stream, m, why.text, diag);
}

tb_rc tc__resume(struct tc__recovery *recovery, struct tc__stream *stream,
                 const unsigned char *packed, size_t len, struct tb_diag *diag,
                 uint64_t *out_skip_to) {
  struct tp_allocator heap;

  *out_skip_to = 0;
  assert(stream->open == NULL);
  tp_allocator_init(&heap);
  message_t *m = tracecollect__v1__log_checkpoint__unpack(&heap.allocator, len, packed);
  if (m == NULL && heap.is_short) return tb_fail(diag, TB_NOMEM, "recovery: no memory");
  if (m == NULL || ((m->has_part || m->n_whole > 0) && m->gen == TB_NO_GEN)) {
    if (m != NULL) tracecollect__v1__log_checkpoint__free_unpacked(m, NULL);
    return TB_BROKEN;
  }
  tb_rc rc = tc__learn_reported(recovery->seal->catalog, stream, diag);
  if (rc == TB_OK) rc = take_losses(stream, m);
  stream->last_gen = m->last_gen;
  stream->last_seq = m->seq;
  if (m->has_part || m->abandoned_gen != 0) tc__stream_gives_up(stream, m->abandoned_gen);
  if (!m->has_part && m->n_whole == 0)
    stream->run_broken = m->new_run;
  else if (rc == TB_OK)
    rc = resume_file(recovery, stream, m, diag, out_skip_to);
  tracecollect__v1__log_checkpoint__free_unpacked(m, NULL);
  return rc;
}

void tc__offer_resumed(struct tc__seal *seal) {
  for (struct tc__stream *stream = seal->streams.first; stream != NULL; stream = stream->next)
    if (stream->open != NULL && stream->resumed && tc__is_proven(stream->open))
      tc__offer_pending(&seal->outbox, stream->open);
}
