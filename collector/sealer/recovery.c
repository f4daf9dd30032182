/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery, on the starting thread: the log is replayed before the sealer's own thread runs. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "collector/sealer/checkpoint/checkpoint.h"
#include "collector/sealer/checkpoint/pending.h"
#include "collector/sealer/checkpoint/replay.h"
#include "collector/sealer/private.h"
#include "collector/sealer/seal/runs.h"

static struct tc__stream *find_stream(const struct tc_sealer *sealer, uint32_t ref) {
  struct tc__stream *stream = tc__find_stream(&sealer->seal.streams, ref);

  assert(stream != NULL);
  return stream;
}

tb_rc tc_sealer_add_stream(struct tc_sealer *sealer, const struct tc_stream_intro *intro,
                           struct tb_diag *diag) {
  return tc__streams_add(&sealer->seal.streams, intro, diag);
}

tb_rc tc_sealer_resume(struct tc_sealer *sealer, uint32_t ref, const unsigned char *packed,
                       size_t len, struct tb_diag *diag, uint64_t *out_skip_to) {
  return tc__resume(&sealer->recovery, find_stream(sealer, ref), packed, len, diag, out_skip_to);
}

void tc_sealer_note_checkpoint_lost(struct tc_sealer *sealer, uint32_t ref, uint64_t lsn,
                                    uint64_t seq) {
  tc__note_as(&sealer->env, TC_ERROR, ref,
              "wal: the checkpoint at lsn %" PRIu64 " of stream=%s up to seq=%" PRIu64
              " cannot be read or does not parse; records that only its file had are lost",
              lsn, find_stream(sealer, ref)->hex, seq);
}

bool tc_sealer_has_part(const struct tc_sealer *sealer, const char *name) {
  for (const struct tc__stream *s = sealer->seal.streams.first; s != NULL; s = s->next)
    if (s->open != NULL && strcmp(s->open->segment->name, name) == 0) return true;
  return false;
}

const struct tc_settled *tc_sealer_settled(const struct tc_sealer *sealer, uint32_t ref) {
  return &find_stream(sealer, ref)->settled;
}

void tc_sealer_replay_from(struct tc_sealer *sealer, uint64_t lsn) {
  sealer->seal.end_lsn = lsn;
}

tb_rc tc_sealer_replay(struct tc_sealer *sealer, uint32_t ref, unsigned kind, uint64_t seq,
                       uint64_t gen, const unsigned char *payload, uint32_t len, uint32_t crc,
                       uint64_t wall_ns, struct tb_diag *diag, uint64_t *out_skip_to) {
  struct tc__item item = { .kind = kind,
                           .seq = seq,
                           .gen = gen,
                           .wall_ns = wall_ns,
                           .payload = payload,
                           .len = len,
                           .crc = crc };

  return tc__replay(&sealer->recovery, find_stream(sealer, ref), &item, diag, out_skip_to);
}

tb_rc tc_sealer_replay_flush(struct tc_sealer *sealer, struct tb_diag *diag) {
  return tc__flush_dirty(&sealer->seal, false, diag);
}

tb_rc tc_sealer_replay_gap(struct tc_sealer *sealer, uint32_t ref, uint64_t first_seq,
                           uint64_t last_seq, struct tb_diag *diag) {
  return tc__replay_gap(&sealer->seal, find_stream(sealer, ref), first_seq, last_seq, diag);
}

/* Requests a checkpoint for each stream with a gap, to record the loss: the damaged file will be deleted, and the next start
 * could not explain the hole. */
static tb_rc put_gaps_down(struct tc_sealer *sealer) {
  for (struct tc__stream *s = sealer->seal.streams.first; s != NULL; s = s->next) {
    if (!s->damaged) continue;
    struct tc_work *work = tc_work_new(TC_WORK_CHECKPOINT, s->ref);
    if (work == NULL) return TB_NOMEM;
    work->checkpoint.held_lsn = UINT64_MAX;
    *sealer->work.tail = work;
    sealer->work.tail = &work->next;
    s->damaged = false;
  }
  return TB_OK;
}

tb_rc tc_sealer_replay_done(struct tc_sealer *sealer, uint64_t end_lsn, struct tb_diag *diag) {
  if (put_gaps_down(sealer) != TB_OK) return tb_fail(diag, TB_NOMEM, "recovery: no memory");
  return tc__replay_done(&sealer->recovery, end_lsn, diag);
}

tb_rc tc_sealer_offer_pending(struct tc_sealer *sealer,
                              tb_rc (*stream_of)(void *self, const unsigned char id[16],
                                                 const char *identity, const char *service,
                                                 const char *instance, uint32_t *out_ref),
                              void *self, struct tb_diag *diag) {
  return tc__offer_archived(&sealer->seal, stream_of, self, diag);
}
