/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of runs: the whole generations of an open file need the log no more once they are on the disk where they
 * are. What is open behind them stays in the log, so a cut at the border takes nothing that only the file has. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/sealer/checkpoint/checkpoint.h"
#include "collector/sealer/checkpoint/private.h"
#include "collector/sealer/seal/folder.h"
#include "collector/sealer/seal/proof.h"
#include "collector/sealer/seal/publisher.h"
#include "collector/sealer/seal/recorded.h"
#include "proto/frame.pb-c.h"
#include "proto/log.pb-c.h"

typedef Tracecollect__V1__LogCheckpoint message_t;
typedef Tracecollect__V1__LogGeneration generation_t;

enum { WHOLE_MAX = 2048 }; /* so that a record can hold them, with a reason each */

/* One that has not grown is noted again where that lets more of the log go; else what holds the log is the generation
 * that is open. */
bool tc__run_takes_checkpoint(const struct tc__stream *stream) {
  const struct tc__file *file = stream->open;

  if (file == NULL || file->segment->ngens == 0 || file->segment->ngens > WHOLE_MAX ||
      stream->losses.n > 0)
    return false;
  return !file->segment->in_gen || file->border_lsn > file->noted_lsn;
}

/* ---- to the log */

struct whole {
  generation_t *pointers[WHOLE_MAX];
  struct {
    generation_t generation;
    Tracecollect__V1__Verdict verdict;
  } items[];
};

static void describe_verdict(const struct tc_segment_verdict *from, generation_t *to,
                             Tracecollect__V1__Verdict *verdict) {
  if (from->code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING) return;
  tracecollect__v1__verdict__init(verdict);
  verdict->code = (Tracecollect__V1__VerdictCode)from->code;
  verdict->thread = from->thread;
  verdict->offset = from->offset;
  if (from->reason != NULL) verdict->reason = from->reason;
  to->verdict = verdict;
  to->events = from->events;
  to->first_ns = from->first_ns;
  to->last_ns = from->last_ns;
}

static void describe_generation(const struct tc_segment_gen *from, generation_t *to) {
  tracecollect__v1__log_generation__init(to);
  to->bytes = from->bytes;
  to->batches = from->batches;
  to->crc = from->crc;
  to->first_seq = from->first_seq;
  to->last_seq = from->last_seq;
  to->first_wall_ns = from->first_wall_ns;
  to->end_wall_ns = from->end_wall_ns;
  to->unsafe_experiment = from->unsafe_experiment;
  if (from->has_hash)
    to->hash = (ProtobufCBinaryData){ sizeof from->hash, (unsigned char *)(uintptr_t)from->hash };
  to->has_ticks = from->ticks.any;
  to->first_ticks = from->ticks.first;
  to->last_ticks = from->ticks.last;
  to->frequency = from->ticks.frequency;
  to->snapshot_ticks = from->ticks.snapshot;
  to->snapshot_wall_ns = from->ticks.snapshot_wall_ns;
}

static void describe_file(message_t *m, struct tc__file *file) {
  const struct tc_segment *segment = file->segment;

  m->gen = segment->first_gen;
  m->offset = segment->header_len;
  m->part_bytes = tc_segment_border(segment);
  m->part_crc = segment->in_gen ? segment->border_crc : segment->crc;
  m->first_seq = segment->gens[0].first_seq;
  m->first_wall_ns = segment->first_wall_ns;
  m->last_wall_ns = segment->last_wall_ns;
  m->day = file->day;
  m->new_run = file->new_run;
}

tb_rc tc__checkpoint_run(struct tc__seal *seal, struct tc__stream *stream, struct tb_diag *diag) {
  struct tc__file *file = stream->open;
  const struct tc_segment *segment = file->segment;
  size_t n = segment->ngens;
  message_t m;

  assert(tc__run_takes_checkpoint(stream));
  /* The log lets go of all records before the checkpoint: what waits to be sealed must be published by then (sim_seeds,
   * 91621, while these were written). */
  TB_TRY(tc__publish_queue(seal, diag));
  TB_TRY(tc__sync_part(seal->env, file, diag));
  struct whole *whole = malloc(sizeof *whole + n * sizeof whole->items[0]);
  if (whole == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory for a checkpoint");
  tracecollect__v1__log_checkpoint__init(&m);
  m.seq = segment->in_gen ? segment->gens[n - 1].last_seq : stream->last_seq;
  m.lsn = segment->in_gen ? file->border_lsn : seal->end_lsn;
  m.last_gen = segment->gens[n - 1].gen;
  m.abandoned_gen = stream->abandoned_gen;
  describe_file(&m, file);
  for (size_t i = 0; i < n; i++) {
    describe_generation(&segment->gens[i], &whole->items[i].generation);
    describe_verdict(&segment->gens[i].verdict, &whole->items[i].generation,
                     &whole->items[i].verdict);
    whole->pointers[i] = &whole->items[i].generation;
  }
  m.whole = whole->pointers;
  m.n_whole = n;
  tb_rc rc = tc__report_checkpoint(&seal->outbox, stream, &m, diag);
  free(whole);
  if (rc != TB_OK) return rc;
  file->checkpointed = true;
  file->noted_lsn = m.lsn;
  return TB_OK;
}

/* ---- the next start */

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

static bool is_consistent(const message_t *m) {
  uint64_t seq = m->first_seq, offset = m->offset;

  if (!tc_day_valid(m->day) || m->has_part || seq == 0 || m->whole[0]->first_seq != seq)
    return false;
  for (size_t i = 0; i < m->n_whole; i++) {
    const generation_t *g = m->whole[i];
    if (g->first_seq < seq || g->last_seq < g->first_seq || g->bytes > m->part_bytes) return false;
    seq = g->last_seq + 1;
    offset += g->bytes;
  }
  return seq <= m->seq + 1 && offset == m->part_bytes;
}

/* As for an open generation: what of the file is there is kept aside. */
static tb_rc run_is_lost(struct tc__seal *seal, struct tc__stream *stream, const message_t *m,
                         const char *why, struct tb_diag *diag) {
  struct tc__loss loss = { .first_gen = m->gen,
                           .last_gen = m->gen + m->n_whole - 1,
                           .bytes = m->part_bytes > m->offset ? m->part_bytes - m->offset : 0,
                           .seq = m->first_seq,
                           .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };

  for (size_t i = 0; i < m->n_whole; i++) loss.batches += m->whole[i]->batches;
  /* The last run may have died between its meta's name and its trace's. */
  if (tc_day_valid(m->day))
    TB_TRY(tc__take_back(&seal->aside, stream, m->day, m->gen, m->first_seq, diag));
  tc__note_as(seal->env, TC_ERROR, stream->ref,
              "%s; the log relied on it: generations %" PRIu64 " to %" PRIu64 " are lost", why,
              loss.first_gen, loss.last_gen);
  tc__put_part_aside(seal, stream, m->gen);
  tc__stream_gives_up(stream, 0); /* nothing more comes of them */
  tc_count(&seal->env->opt.stats->generations_broken, m->n_whole);
  return tc__note_loss(&seal->outbox, stream, &stream->losses, &loss, NULL);
}

static void take_up(struct tc__stream *stream, const message_t *m, struct tc__file *file) {
  file->segment->first_wall_ns = m->first_wall_ns;
  file->segment->last_wall_ns = m->last_wall_ns;
  file->segment->opened_mono_ns = tc_mono_ns();
  file->new_run = m->new_run;
  file->checkpointed = true;
  file->noted_lsn = m->lsn;
  file->offered = true; /* by tc__offer_resumed() */
  memcpy(file->day, m->day, sizeof file->day);
  tc__stream_opens(stream, file);
  stream->run_broken = false;
  stream->resumed = true;
}

tb_rc tc__resume_run(struct tc__recovery *recovery, struct tc__stream *stream, const message_t *m,
                     struct tb_diag *diag, uint64_t *out_skip_to) {
  struct tc__seal *seal = recovery->seal;
  struct tb_diag why = { 0 };
  bool was_aside;

  if (!is_consistent(m)) {
    snprintf(why.text, sizeof why.text,
             "the checkpoint of stream=%s up to seq=%" PRIu64 " contradicts itself", stream->hex,
             m->seq);
    return run_is_lost(seal, stream, m, why.text, diag);
  }
  TB_TRY(tc__adopt_published(recovery, stream, m->day, m->gen, m->first_seq, diag, out_skip_to));
  if (*out_skip_to != 0) return TB_OK;
  TB_TRY(tc__fetch_part_back(seal, stream, m->gen, diag, &was_aside));
  struct tc_segment_part part = { .first_gen = m->gen,
                                  .bytes = m->part_bytes,
                                  .header_len = m->offset,
                                  .crc = m->part_crc,
                                  .ngens = m->n_whole,
                                  /* It lies in quarantine where it was found to be wrong. */
                                  .is_vouched_for = !was_aside };
  struct tc__file *file = tc__file_new(stream);
  tb_rc rc = file != NULL ? take_generations(m, &part.gens) : TB_NOMEM;
  if (rc != TB_OK)
    tb_fail(&why, rc, "archive: no memory");
  else
    rc = tc_segment_resume(seal->env->opt.dirs->open, stream->hex, &part, seal->env->hash_kind,
                           &why, &file->segment);
  if (rc != TB_OK) {
    free_generations(part.gens, part.ngens);
    tc__file_free(file);
    if (rc != TB_CORRUPT && rc != TB_UNREADABLE) return tb_fail(diag, rc, "%s", why.text);
    return run_is_lost(seal, stream, m, why.text, diag);
  }
  tc_descriptors_add(&seal->descriptors, file->segment);
  take_up(stream, m, file);
  seal->unproven += !tc__is_proven(file);
  return tc__losses_move(&file->losses, &stream->losses);
}

void tc__offer_resumed(struct tc__seal *seal) {
  for (struct tc__stream *stream = seal->streams.first; stream != NULL; stream = stream->next)
    if (stream->open != NULL && stream->resumed && tc__is_proven(stream->open))
      tc__offer_pending(&seal->outbox, stream->open);
}
