/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/checkpoint/replay.h"

#include <assert.h>
#include <inttypes.h>

#include "collector/sealer/seal/folder.h"
#include "collector/sealer/seal/publisher.h"
#include "collector/sealer/seal/recorded.h"
#include "collector/sealer/seal/runs.h"
#include "proto/frame.pb-c.h"

enum { REPLAY_QUEUE_MAX = 512 };

/* Publishes during the replay, as a log may hold more whole generations than there are descriptors. If the disk is full
 * the files stay queued. */
static tb_rc publish_replayed(struct tc__seal *seal, struct tb_diag *diag) {
  tb_rc rc = tc__flush_dirty(seal, true, diag);

  if (rc == TB_OK) rc = tc__publish_queue(seal, diag);
  if (!tc_rc_is_full(rc)) return rc;
  tb_diag_clear(diag);
  return TB_OK;
}

tb_rc tc__replay(struct tc__recovery *recovery, struct tc__stream *stream,
                 const struct tc__item *item, struct tb_diag *diag, uint64_t *out_skip_to) {
  struct tc__seal *seal = recovery->seal;

  *out_skip_to = 0;
  if (item->kind != TP_HEADER)
    TB_TRY(tc__learn_reported(seal->catalog, stream, diag)); /* not needed for an idle stream */
  if (item->kind == TP_BATCH && stream->state != TC__INSIDE) {
    char day[TC_DAY_BYTES];
    tc_day(item->wall_ns, day);
    if (stream->open == NULL && stream->queued == NULL)
      TB_TRY(tc__adopt_published(recovery, stream, day, item->gen, item->seq, diag, out_skip_to));
    if (*out_skip_to != 0) return TB_OK;
    TB_TRY(tc__take_back(&seal->aside, stream, day, item->gen, item->seq, diag));
  }
  TB_TRY(tc__archive_record(seal, stream, item, diag));
  assert(tc__stream_check(stream) == NULL);
  return seal->queue.n < REPLAY_QUEUE_MAX ? TB_OK : publish_replayed(seal, diag);
}

tb_rc tc__replay_gap(struct tc__seal *seal, struct tc__stream *stream, uint64_t first_seq,
                     uint64_t last_seq, struct tb_diag *diag) {
  TB_TRY(tc__learn_reported(seal->catalog, stream, diag));
  tc__note_as(seal->env, TC_ERROR, stream->ref,
              "stream=%s seq=%" PRIu64 "..%" PRIu64
              ": these records are damaged in the log; their generations are lost",
              stream->hex, first_seq, last_seq);
  struct tc__loss gap = { .first_gen = stream->last_gen + 1,
                          .last_gen = stream->last_gen + 1,
                          .first_seq = first_seq,
                          .seq = last_seq,
                          .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED };
  if (stream->state == TC__INSIDE) gap.first_gen = gap.last_gen = stream->open->segment->now.gen;
  TB_TRY(tc__quarantine_open(seal, stream, "some of its records are damaged in the log", true,
                             last_seq, diag));
  stream->run_broken = stream->damaged = true;
  return tc__note_loss(&seal->outbox, stream, &stream->losses, &gap, NULL);
}

tb_rc tc__replay_done(struct tc__recovery *recovery, uint64_t end_lsn, struct tb_diag *diag) {
  struct tc__seal *seal = recovery->seal;

  seal->end_lsn = end_lsn;
  tc__forget_folded(recovery->folding);
  tc__take_totals(seal->catalog); /* includes adopted segments */
  for (struct tc__stream *stream = seal->streams.first; stream != NULL; stream = stream->next)
    if (stream->state == TC__BETWEEN) stream->open->border_lsn = end_lsn;
  /* A resumed generation continues an analysis of the last start; this start's analysis begins with it. */
  for (struct tc__stream *stream = seal->streams.first; stream != NULL; stream = stream->next)
    if (stream->open != NULL && !stream->begun) stream->open->new_run = stream->begun = true;
  /* Not to the disk: it is busy enough with reading the log. */
  return tc__flush_dirty(seal, false, diag);
}
