/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/checkpoint/checkpoint.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/sealer/seal/proof.h"
#include "collector/sealer/seal/publisher.h"
#include "collector/sealer/seal/records.h"
#include "collector/sealer/seal/runs.h"
#include "proto/frame.pb-c.h"
#include "proto/log.pb-c.h"

typedef Tracecollect__V1__LogCheckpoint message_t;
typedef Tracecollect__V1__LogGeneration generation_t;

enum { WHOLE_MAX = 2048 }; /* this many fit into a record, with a reason each */

/* While a generation is open, a checkpoint of the run frees log only if border_lsn has moved since the last one. */
static bool run_takes_checkpoint(const struct tc__stream *stream) {
  const struct tc__file *file = stream->open;

  if (file == NULL || file->segment->ngens == 0 || file->segment->ngens > WHOLE_MAX ||
      stream->losses.n > 0)
    return false;
  return !file->segment->in_gen || file->border_lsn > file->noted_lsn;
}

/* Syncs an open file and its name. */
static tb_rc sync_part(const struct tc__env *env, const struct tc__file *file,
                       struct tb_diag *diag) {
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

/* Adds the losses that no meta has yet. */
static tb_rc report_checkpoint(struct tc__outbox *outbox, struct tc__stream *stream, message_t *m,
                               struct tb_diag *diag) {
  tb_rc rc = fill_losses(m, stream);

  if (rc == TB_OK) rc = report(outbox, stream, m);
  for (size_t i = 0; i < m->n_losses; i++) free(m->losses[i]);
  free(m->losses);
  return rc == TB_OK ? TB_OK : tb_fail(diag, rc, "archive: no memory for a checkpoint");
}

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

static void describe_run(message_t *m, struct tc__file *file) {
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

static tb_rc checkpoint_run(struct tc__seal *seal, struct tc__stream *stream,
                            struct tb_diag *diag) {
  struct tc__file *file = stream->open;
  const struct tc_segment *segment = file->segment;
  size_t n = segment->ngens;
  message_t m;

  assert(run_takes_checkpoint(stream));
  /* The log drops all records before the checkpoint, so files that are queued must be published first (found by
   * sim_seeds 91621). */
  TB_TRY(tc__publish_queue(seal, diag));
  TB_TRY(sync_part(seal->env, file, diag));
  struct whole *whole = malloc(sizeof *whole + n * sizeof whole->items[0]);
  if (whole == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory for a checkpoint");
  tracecollect__v1__log_checkpoint__init(&m);
  m.seq = segment->in_gen ? segment->gens[n - 1].last_seq : stream->last_seq;
  m.lsn = segment->in_gen ? file->border_lsn : seal->end_lsn;
  m.last_gen = segment->gens[n - 1].gen;
  m.abandoned_gen = stream->abandoned_gen;
  describe_run(&m, file);
  for (size_t i = 0; i < n; i++) {
    describe_generation(&segment->gens[i], &whole->items[i].generation);
    describe_verdict(&segment->gens[i].verdict, &whole->items[i].generation,
                     &whole->items[i].verdict);
    whole->pointers[i] = &whole->items[i].generation;
  }
  m.whole = whole->pointers;
  m.n_whole = n;
  tb_rc rc = report_checkpoint(&seal->outbox, stream, &m, diag);
  free(whole);
  if (rc != TB_OK) return rc;
  file->checkpointed = true;
  file->noted_lsn = m.lsn;
  return TB_OK;
}

tb_rc tc__archive_checkpoint(struct tc__seal *seal, struct tc__stream *stream, uint64_t held_lsn,
                             struct tb_diag *diag) {
  message_t m;

  if (stream->end != TC__GOES_ON) return TB_OK; /* the end settles the stream */
  /* On a slow disk the next request arrives before the last checkpoint is in the log. */
  if (stream->open != NULL && stream->open->noted_lsn > held_lsn) return TB_OK;
  TB_TRY(tc__prove_open(seal, stream, diag));
  if (run_takes_checkpoint(stream)) return checkpoint_run(seal, stream, diag);
  /* Otherwise publish the whole generations. */
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
    TB_TRY(sync_part(seal->env, file, diag));
    describe_part(&m, file);
  }
  TB_TRY(report_checkpoint(&seal->outbox, stream, &m, diag));
  if (file != NULL) file->checkpointed = true;
  return TB_OK;
}
