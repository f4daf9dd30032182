/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/checkpoint/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/sealer/checkpoint/private.h"
#include "collector/sealer/seal/folder.h"
#include "collector/sealer/seal/proof.h"
#include "collector/sealer/seal/publisher.h"
#include "collector/sealer/seal/recorded.h"
#include "collector/sealer/seal/records.h"
#include "collector/sealer/seal/runs.h"
#include "proto/allocator.h"
#include "proto/frame.pb-c.h"
#include "proto/log.pb-c.h"

typedef Tracecollect__V1__LogCheckpoint message_t;

tb_rc tc__sync_part(const struct tc__env *env, const struct tc__file *file, struct tb_diag *diag) {
  TB_TRY(tc_segment_flush(file->segment, diag));
  if (!env->opt.durable) return TB_OK;
  TB_TRY(tc_segment_sync(file->segment, diag));
  if (fsync(env->opt.dirs->open) == 0) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "open/%s: %s", file->segment->name, strerror(errno));
}

static void describe_part(message_t *m, struct tc__file *file) {
  const struct tc_segment *segment = file->segment;
  const struct tc_segment_gen *now = &segment->now;

  assert(segment->in_gen && segment->ngens == 0);
  m->has_part = true;
  m->gen = now->gen;
  m->offset = now->offset;
  m->part_bytes = segment->bytes;
  m->part_crc = segment->crc;
  m->batches = now->batches;
  m->crc = now->crc;
  m->crc_of_crcs = now->crc_of_crcs;
  m->first_seq = now->first_seq;
  m->first_wall_ns = segment->first_wall_ns;
  m->last_wall_ns = segment->last_wall_ns;
  m->day = file->day;
  m->unsafe_experiment = now->unsafe_experiment;
  m->new_run = file->new_run;
  m->has_ticks = now->ticks.any;
  m->first_ticks = now->ticks.first;
  m->last_ticks = now->ticks.last;
  m->frequency = now->ticks.frequency;
  m->snapshot_ticks = now->ticks.snapshot;
  m->snapshot_wall_ns = now->ticks.snapshot_wall_ns;
}

static tb_rc fill_losses(message_t *m, const struct tc__stream *stream) {
  size_t open = stream->open != NULL ? stream->open->losses.n : 0;

  m->losses = calloc(open + stream->losses.n + 1, sizeof(void *));
  if (m->losses == NULL) return TB_NOMEM;
  if (open > 0) TB_TRY(tc__losses_to_messages(&stream->open->losses, m->losses, &m->n_losses));
  return tc__losses_to_messages(&stream->losses, m->losses, &m->n_losses);
}

static tb_rc report(struct tc__outbox *outbox, struct tc__stream *stream, const message_t *m) {
  size_t len = tracecollect__v1__log_checkpoint__get_packed_size(m);
  struct tc_checkpoint *checkpoint = malloc(sizeof *checkpoint + len);
  struct tc_settled *settled = calloc(1, sizeof *settled);

  if (checkpoint == NULL || settled == NULL || len > TP_FRAME_BYTES_MAX ||
      tc__reserve_settled(outbox) != TB_OK) {
    free(checkpoint);
    free(settled);
    return TB_NOMEM;
  }
  *checkpoint =
      (struct tc_checkpoint){ .seq = m->seq, .lsn = m->lsn, .run = m->n_whole > 0, .len = len };
  tracecollect__v1__log_checkpoint__pack(m, checkpoint->packed);
  *settled = (struct tc_settled){ .stream = stream->ref, .checkpoint = checkpoint };
  outbox->settled.items[outbox->settled.n++] = settled;
  return TB_OK;
}

tb_rc tc__report_checkpoint(struct tc__outbox *outbox, struct tc__stream *stream, message_t *m,
                            struct tb_diag *diag) {
  tb_rc rc = fill_losses(m, stream);

  if (rc == TB_OK) rc = report(outbox, stream, m);
  for (size_t i = 0; i < m->n_losses; i++) free(m->losses[i]);
  free(m->losses);
  return rc == TB_OK ? TB_OK : tb_fail(diag, rc, "archive: no memory for a checkpoint");
}

tb_rc tc__archive_checkpoint(struct tc__seal *seal, struct tc__stream *stream, uint64_t held_lsn,
                             struct tb_diag *diag) {
  message_t m;

  if (stream->end != TC__GOES_ON) return TB_OK; /* settled with its end */
  /* On a slow disk it is asked again before the answer to the last time is in the log. */
  if (stream->open != NULL && stream->open->noted_lsn > held_lsn) return TB_OK;
  TB_TRY(tc__prove_open(seal, stream, diag));
  if (tc__run_takes_checkpoint(stream)) return tc__checkpoint_run(seal, stream, diag);
  /* Else a whole generation leaves the log by being published. */
  TB_TRY(tc__seal_border(seal, stream, diag));
  TB_TRY(tc__publish_queue(seal, diag));
  struct tc__file *file = stream->open;
  if (file != NULL && file->segment->bytes > seal->env->opt.config->log_held_bytes_max)
    return tc__archive_give_up(seal, stream, stream->last_seq, diag);
  tracecollect__v1__log_checkpoint__init(&m);
  m.seq = stream->last_seq;
  m.lsn = seal->end_lsn;
  m.last_gen = stream->last_gen;
  m.new_run = stream->run_broken;
  m.abandoned_gen = stream->abandoned_gen;
  if (file != NULL) {
    TB_TRY(tc__sync_part(seal->env, file, diag));
    describe_part(&m, file);
  }
  TB_TRY(tc__report_checkpoint(&seal->outbox, stream, &m, diag));
  if (file != NULL) file->checkpointed = true;
  return TB_OK;
}

/* ---- the next start */

/* Some were reported after the checkpoint: they are settled since, or not even that, and may have grown by then. */
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

void tc__put_part_aside(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen) {
  char name[TC_FILE_NAME_BYTES];

  tc_segment_name(stream->hex, gen, name);
  if (renameat(seal->env->opt.dirs->open, name, seal->env->opt.dirs->quarantine, name) == 0)
    seal->aside.changed = true;
  tc__stream_gives_up(stream, gen); /* what still comes of it cannot make it whole */
  stream->run_broken = true;
}

/* The part that the file should have held is lost; what of it is there is kept aside. */
static tb_rc part_is_lost(struct tc__seal *seal, struct tc__stream *stream, const message_t *m,
                          const char *why, struct tb_diag *diag) {
  struct tc__loss loss = { .first_gen = m->gen,
                           .last_gen = m->gen,
                           .batches = m->batches,
                           .bytes = m->part_bytes > m->offset ? m->part_bytes - m->offset : 0,
                           .seq = m->first_seq,
                           .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };

  /* The last run may have died between its meta's name and its trace's. */
  if (tc_day_valid(m->day))
    TB_TRY(tc__take_back(&seal->aside, stream, m->day, m->gen, m->first_seq, diag));
  tc__note_as(seal->env, TC_ERROR, stream->ref,
              "%s; the log relied on it: generation %" PRIu64 " is lost", why, m->gen);
  tc__put_part_aside(seal, stream, m->gen);
  tc_count(&seal->env->opt.stats->generations_broken, 1);
  return tc__losses_note(&stream->losses, &loss);
}

/* The last run put it aside, and died before the log could say so: what made it do that stands in the log behind the
 * checkpoint, and will again. */
tb_rc tc__fetch_part_back(struct tc__seal *seal, const struct tc__stream *stream, uint64_t gen,
                          struct tb_diag *diag, bool *out_was_aside) {
  char name[TC_FILE_NAME_BYTES];

  tc_segment_name(stream->hex, gen, name);
  *out_was_aside = renameat2(seal->env->opt.dirs->quarantine, name, seal->env->opt.dirs->open, name,
                             RENAME_NOREPLACE) == 0;
  if (*out_was_aside || errno == ENOENT || errno == EEXIST) return TB_OK;
  return tb_fail(diag, tc_errno_rc(errno), "quarantine/%s: %s", name, strerror(errno));
}

/* Lost, unless it was reported as lost later on. */
static tb_rc give_part_up(struct tc__seal *seal, struct tc__stream *stream, const message_t *m,
                          const char *why, struct tb_diag *diag) {
  stream->reported.end_seq = tc__reported_end_of(stream, m->gen, m->seq);
  if (stream->reported.end_seq == 0) return part_is_lost(seal, stream, m, why, diag);
  tc__put_part_aside(seal, stream, m->gen); /* where it was, before retention took it */
  return TB_OK;
}

static bool is_consistent(const message_t *m) {
  return m->part_bytes >= m->offset && tc_day_valid(m->day) && m->first_seq > 0 &&
         m->first_seq <= m->seq;
}

static tb_rc resume_part(struct tc__recovery *recovery, struct tc__stream *stream,
                         const message_t *m, struct tb_diag *diag, uint64_t *out_skip_to) {
  struct tc_segment_gen now = { .gen = m->gen,
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
  struct tc__seal *seal = recovery->seal;
  struct tb_diag why = { 0 };
  uint64_t reported = tc__reported_of(stream, m->gen, m->first_seq);
  bool was_aside;

  if (reported > 0) { /* given up after the checkpoint */
    tc__put_part_aside(seal, stream, m->gen);
    stream->reported.batches = reported > m->batches ? reported - m->batches : 0;
    return TB_OK;
  }
  if (!is_consistent(m)) {
    snprintf(why.text, sizeof why.text,
             "the checkpoint of stream=%s up to seq=%" PRIu64 " contradicts itself", stream->hex,
             m->seq);
    return give_part_up(seal, stream, m, why.text, diag);
  }
  /* First of all: what an earlier run gave up of the same generation may lie in quarantine, and be as good. */
  TB_TRY(tc__adopt_published(recovery, stream, m->day, m->gen, m->first_seq, diag, out_skip_to));
  if (*out_skip_to != 0) return TB_OK;
  TB_TRY(tc__fetch_part_back(seal, stream, m->gen, diag, &was_aside));
  struct tc__file *file = tc__file_new(stream);
  if (file == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory");
  struct tc_segment_part part = { .first_gen = m->gen,
                                  .bytes = m->part_bytes,
                                  .header_len = m->offset,
                                  .crc = m->part_crc,
                                  .now = &now };
  tb_rc rc = tc_segment_resume(seal->env->opt.dirs->open, stream->hex, &part, seal->env->hash_kind,
                               &why, &file->segment);
  if (rc != TB_OK) {
    tc__file_free(file);
    if (rc != TB_CORRUPT && rc != TB_UNREADABLE) return tb_fail(diag, rc, "%s", why.text);
    return give_part_up(seal, stream, m, why.text, diag);
  }
  tc_descriptors_add(&seal->descriptors, file->segment);
  file->segment->first_wall_ns = m->first_wall_ns;
  file->segment->last_wall_ns = m->last_wall_ns;
  file->segment->opened_mono_ns = tc_mono_ns();
  file->new_run = m->new_run;
  file->checkpointed = true;
  memcpy(file->day, m->day, sizeof file->day);
  tc__stream_opens(stream, file);
  return tc__losses_move(&file->losses, &stream->losses);
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
    rc = (m->n_whole > 0 ? tc__resume_run : resume_part)(recovery, stream, m, diag, out_skip_to);
  tracecollect__v1__log_checkpoint__free_unpacked(m, NULL);
  return rc;
}
