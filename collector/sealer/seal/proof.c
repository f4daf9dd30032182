/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/proof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/sealer/seal/folder.h"
#include "collector/sealer/seal/recorded.h"
#include "collector/sealer/seal/rests.h"
#include "collector/segment/proof.h"
#include "proto/frame.pb-c.h"

void tc__offer_pending(struct tc__outbox *outbox, const struct tc__file *file) {
  const struct tc_segment *segment = file->segment;
  char path[192];

  snprintf(path, sizeof path, "open/%s", segment->name);
  for (size_t i = 0; i < segment->ngens; i++)
    if (segment->gens[i].verdict.code == TRACECOLLECT__V1__VERDICT_CODE__VERDICT_PENDING)
      tc__offer(outbox, file, i, path);
}

static struct tc__loss loss_of(const struct tc_segment *segment) {
  const struct tc_segment_gen *gens = segment->gens;
  size_t n = segment->owed.ngens;
  struct tc__loss loss = { .first_gen = gens[0].gen,
                           .last_gen = gens[n - 1].gen,
                           .bytes = segment->owed.bytes - segment->header_len,
                           .seq = gens[0].first_seq,
                           .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };

  for (size_t i = 0; i < n; i++) loss.batches += gens[i].batches;
  return loss;
}

/* ENOENT is not an error: an earlier attempt may have moved the file. */
static tb_rc put_aside(struct tc__seal *seal, const struct tc_segment *segment,
                       struct tb_diag *diag) {
  if (renameat(seal->env->opt.dirs->open, segment->name, seal->env->opt.dirs->quarantine,
               segment->name) == 0)
    seal->aside.changed = true;
  else if (errno != ENOENT)
    return tb_fail(diag, tc_errno_rc(errno), "quarantine/%s: %s", segment->name, strerror(errno));
  return TB_OK;
}

/* Drops a file of which nothing is left. Its losses are put before the stream's next generation, as at a start. */
static tb_rc leave_nothing(struct tc__seal *seal, struct tc__file *file,
                           struct tc__losses *losses) {
  struct tc__stream *stream = file->stream;

  stream->run_broken = true;
  if (stream->open == file) {
    TB_TRY(tc__losses_move(losses, &file->losses));
    tc__dirty_remove(&seal->dirty, file);
    tc__file_free(tc__stream_leaves(stream));
    return TB_OK;
  }
  tc_segment_free(TB_MOVE(file->segment));
  if (losses == &file->losses) return TB_OK; /* the file is now a note with the stream's end */
  file->settle_seq = 0; /* the log keeps the records until the losses are reported */
  return tc__losses_move(losses, &file->losses);
}

static void go_on_with(struct tc__file *file, struct tc_segment *rest) {
  tc_segment_free(file->segment);
  file->segment = rest;
  file->new_run = true;
  file->checkpointed = false;
  file->noted_lsn = 0;
  tc_day(rest->first_wall_ns, file->day);
}

/* Steps that can fail come first and can be repeated. */
static tb_rc lose(struct tc__seal *seal, struct tc__file *file, const struct tb_diag *why,
                  struct tb_diag *diag) {
  struct tc__stream *stream = file->stream;
  struct tc__loss loss = loss_of(file->segment);
  size_t ngens = file->segment->owed.ngens;
  bool goes_on = file->segment->ngens > ngens || file->segment->in_gen;
  bool has_end = stream->queued == file && file->end != TC__GOES_ON;
  struct tc__losses *losses = goes_on || has_end ? &file->losses : &stream->losses;
  struct tc_segment *rest;

  if (tc__losses_reserve(losses, file->losses.n + 1) != TB_OK)
    return tb_fail(diag, TB_NOMEM, "archive: no memory for losses");
  /* The collector may have died after it named the meta and before it named the trace. */
  TB_TRY(tc__take_back(&seal->aside, stream, file->day, loss.first_gen, loss.seq, diag));
  TB_TRY(put_aside(seal, file->segment, diag));
  tb_rc rc = tc_segment_part_off(file->segment, stream->hex, stream->header, stream->header_len,
                                 diag, &rest);
  if (rc != TB_OK) {
    tc__keep_rest(seal, rest);
    return rc == TB_UNREADABLE ? TB_IO : rc;
  }
  tc__note_as(seal->env, TC_ERROR, stream->ref,
              "%s; the log relied on it: generations %" PRIu64 " to %" PRIu64 " are lost",
              why->text, loss.first_gen, loss.last_gen);
  tc_count(&seal->env->opt.stats->generations_broken, ngens);
  seal->unproven--;
  if (goes_on)
    go_on_with(file, rest);
  else
    TB_TRY(leave_nothing(seal, file, losses));
  TB_TRY(tc__note_loss(&seal->outbox, stream, losses, &loss, NULL));
  if (goes_on) tc__offer_pending(&seal->outbox, file);
  return TB_OK;
}

/* Returns TB_AGAIN after until_ns or the deadline of a stop. */
static tb_rc prove(struct tc__seal *seal, struct tc__file *file, uint64_t until_ns,
                   struct tb_diag *diag) {
  struct tb_diag why = { 0 };
  tb_rc rc;

  if (tc__is_proven(file)) return TB_OK;
  while ((rc = tc_segment_prove(file->segment, &why)) == TB_AGAIN) {
    tc_count(&seal->env->opt.stats->sealer_turns, 1);
    if (tc__is_late(seal->env) || tc_mono_ns() >= until_ns) return TB_AGAIN;
  }
  if (rc == TB_CORRUPT || rc == TB_UNREADABLE) return lose(seal, file, &why, diag);
  if (rc != TB_OK) return tb_fail(diag, rc, "%s", why.text);
  seal->unproven--;
  tc__offer_pending(&seal->outbox, file);
  return TB_OK;
}

tb_rc tc__prove_open(struct tc__seal *seal, const struct tc__stream *stream, struct tb_diag *diag) {
  return stream->open == NULL ? TB_OK : prove(seal, stream->open, UINT64_MAX, diag);
}

tb_rc tc__prove_queue(struct tc__seal *seal, struct tb_diag *diag) {
  if (seal->unproven == 0) return TB_OK;
  for (struct tc__file *file = seal->queue.first; file != NULL; file = file->next)
    TB_TRY(prove(seal, file, UINT64_MAX, diag));
  return TB_OK;
}

tb_rc tc__prove_some(struct tc__seal *seal, uint64_t until_ns, struct tb_diag *diag) {
  for (struct tc__stream *stream = seal->streams.first; stream != NULL && seal->unproven > 0;
       stream = stream->next) {
    if (stream->open == NULL || tc__is_proven(stream->open)) continue;
    TB_TRY(prove(seal, stream->open, until_ns, diag));
    if (tc__is_late(seal->env) || tc_mono_ns() >= until_ns) return TB_AGAIN;
  }
  return TB_OK;
}
