/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/runs.h"

#include <assert.h>
#include <inttypes.h>

#include "base/clock.h"
#include "collector/sealer/seal/proof.h"
#include "collector/sealer/seal/publisher.h"
#include "collector/sealer/seal/recorded.h"
#include "collector/sealer/seal/rests.h"
#include "proto/frame.pb-c.h"

tb_rc tc__flush_dirty(struct tc__seal *seal, bool to_disk, struct tb_diag *diag) {
  return tc__dirty_flush(&seal->dirty, to_disk && seal->env->opt.durable, diag);
}

void tc__settles(struct tc__file *file, uint64_t seq) {
  file->settle_seq = seq;
  file->abandoned_gen = file->stream->abandoned_gen;
}

void tc__enqueue(struct tc__seal *seal, struct tc__file *file) {
  struct tc__stream *stream = file->stream;

  tc__queue_put(&seal->queue, file);
  if (stream->queued == NULL) stream->queued_gen_max = 0;
  stream->queued = file;
  if (file->segment != NULL && file->segment->first_gen > stream->queued_gen_max)
    stream->queued_gen_max = file->segment->first_gen;
}

void tc__seal_open(struct tc__seal *seal, struct tc__stream *stream) {
  struct tc__file *file = tc__stream_leaves(stream);

  assert(!file->segment->in_gen && file->segment->ngens > 0);
  tc__settles(file, file->segment->gens[file->segment->ngens - 1].last_seq);
  tc__enqueue(seal, file);
}

/* Publishes the queue before a file for gen is opened, in two cases. The queue has a file of the same stream and
 * number, which needs its name in open/ and its place in the archive first. Or it has one that is not verified yet, on
 * whose outcome the stream's next file depends. */
static tb_rc make_way(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen,
                      struct tb_diag *diag) {
  TB_TRY(tc__rest_check(seal, stream, gen, diag));
  if (stream->queued == NULL || (gen > stream->queued_gen_max && seal->unproven == 0)) return TB_OK;
  for (struct tc__file *file = seal->queue.first; file != NULL; file = file->next) {
    if (file->stream != stream || file->segment == NULL ||
        (file->segment->first_gen != gen && tc__is_proven(file)))
      continue;
    TB_TRY(tc__flush_dirty(seal, true, diag));
    return tc__publish_queue(seal, diag);
  }
  return TB_OK;
}

tb_rc tc__open_run(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen, uint64_t wall_ns,
                   struct tb_diag *diag) {
  TB_TRY(make_way(seal, stream, gen, diag));
  struct tc__file *file = tc__file_new(stream);

  if (file == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory");
  tb_rc rc = tc_segment_new(seal->env->opt.dirs->open, stream->hex, gen, stream->header,
                            stream->header_len, seal->env->hash_kind, diag, &file->segment);
  if (rc != TB_OK) {
    tc__keep_rest(seal, TB_MOVE(file->segment));
    tc__file_free(file);
    return rc;
  }
  rc = tc__losses_move(&file->losses, &stream->losses);
  if (rc != TB_OK) {
    tc__keep_rest(seal, tc_segment_discard(TB_MOVE(file->segment)));
    tc__file_free(file);
    return rc;
  }
  tc_descriptors_add(&seal->descriptors, file->segment);
  tc_day(wall_ns, file->day);
  file->segment->first_wall_ns = file->segment->last_wall_ns = wall_ns;
  file->segment->opened_mono_ns = tc_mono_ns();
  file->new_run = stream->run_broken || !stream->begun || gen != stream->last_gen + 1;
  stream->run_broken = false;
  stream->begun = true;
  tc__stream_opens(stream, file);
  return TB_OK;
}

tb_rc tc__quarantine_open(struct tc__seal *seal, struct tc__stream *stream, const char *why,
                          bool note_loss, uint64_t seq, struct tb_diag *diag) {
  if (stream->state != TC__INSIDE) return TB_OK;
  TB_TRY(tc__prove_open(seal, stream, diag));
  struct tc__file *file = stream->open;
  struct tc_segment_gen *now = &file->segment->now;
  struct tc__loss loss = { .first_gen = now->gen,
                           .last_gen = now->gen,
                           .batches = now->batches,
                           .bytes = now->bytes,
                           .seq = seq,
                           .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };
  TB_TRY(tc_segment_flush(file->segment, diag));
  /* After the file is moved nothing may fail: the loss would never be reported. */
  if (file->segment->ngens == 0) TB_TRY(tc__losses_move(&stream->losses, &file->losses));
  if (file->segment->ngens > 0) {
    struct tc_segment *rest;
    TB_TRY(make_way(seal, stream, now->gen, diag)); /* before the reserve: it may add losses */
    TB_TRY(tc__losses_reserve(&stream->losses, 1));
    tb_rc rc = tc_segment_cut(file->segment, stream->hex, diag, &rest);
    tc__keep_rest(seal, rest); /* bytes that were cut off cannot be put back */
    if (rc != TB_OK) return rc;
    rest->for_quarantine = true;
    tc__clear_rests(seal);
    tc__dirty_remove(&seal->dirty, file);
    tc__seal_open(seal, stream);
  } else {
    TB_TRY(tc__losses_reserve(&stream->losses, 1));
    TB_TRY(tc__quarantine_file(&seal->aside, file->segment, diag));
    tc__dirty_remove(&seal->dirty, file);
    tc__file_free(tc__stream_leaves(stream));
  }
  stream->run_broken = true;
  tc_count(&seal->env->opt.stats->generations_broken, 1);
  tc__note_as(seal->env, TC_WARN, stream->ref,
              "stream=%s gen=%" PRIu64 ": %s; its bytes are in quarantine", stream->hex,
              loss.first_gen, why);
  if (!note_loss) return TB_OK;
  tc__stream_gives_up(stream, loss.first_gen);
  return tc__note_loss(&seal->outbox, stream, &stream->losses, &loss, why);
}

tb_rc tc__seal_border(struct tc__seal *seal, struct tc__stream *stream, struct tb_diag *diag) {
  struct tc__file *file = stream->open, *rest = NULL;

  if (stream->state == TC__INSIDE) {
    TB_TRY(tc__prove_open(seal, stream, diag));
    file = stream->open;
  }
  if (file == NULL || file->segment->ngens == 0) return TB_OK;
  TB_TRY(tc_segment_flush(file->segment, diag));
  if (stream->state == TC__INSIDE) {
    TB_TRY(make_way(seal, stream, file->segment->now.gen, diag));
    rest = tc__file_new(stream);
    if (rest == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory");
    tb_rc rc = tc_segment_cut(file->segment, stream->hex, diag, &rest->segment);
    if (rc != TB_OK) {
      tc__keep_rest(seal, TB_MOVE(rest->segment));
      tc__file_free(rest);
      return rc;
    }
    tc_day(rest->segment->first_wall_ns, rest->day);
    rest->segment->opened_mono_ns = tc_mono_ns();
  }
  tc__dirty_remove(&seal->dirty, file);
  tc__seal_open(seal, stream);
  if (rest != NULL) tc__stream_opens(stream, rest);
  return TB_OK;
}

tb_rc tc__seal_borders(struct tc__seal *seal, struct tb_diag *diag) {
  if (seal->env->opt.config->segment_generations_max <= 1)
    return TB_OK; /* no run stays open at a border */
  for (struct tc__stream *stream = seal->streams.first; stream != NULL; stream = stream->next)
    TB_TRY(tc__seal_border(seal, stream, diag));
  return TB_OK;
}

uint64_t tc__run_age_max(const struct tc__env *env, const struct tc__stream *stream) {
  uint64_t max = env->opt.config->segment_seconds_max, parts = 1024;

  return max - stream->ref * UINT64_C(2654435761) % parts * (max / 4 / parts);
}

/* INSIDE a generation its end usually closes the run, so wait twice as long. */
tb_rc tc__seal_old_runs(struct tc__seal *seal, struct tb_diag *diag) {
  uint64_t now = tc_mono_ns();

  for (struct tc__stream *stream = seal->streams.first; stream != NULL; stream = stream->next) {
    const struct tc__file *file = stream->open;
    if (file == NULL || file->segment->ngens == 0) continue;
    uint64_t age = now - file->segment->opened_mono_ns, max = tc__run_age_max(seal->env, stream);
    if (file->broken || age >= (stream->state == TC__INSIDE ? 2 * max : max))
      TB_TRY(tc__seal_border(seal, stream, diag));
  }
  return TB_OK;
}
