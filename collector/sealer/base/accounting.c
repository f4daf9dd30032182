/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/base/accounting.h"

#include "proto/frame.pb-c.h"

/* Returns false if a loss cannot be counted or has a number that is settled already. */
static bool add_losses(const struct tc__losses *losses, uint64_t settled_seq, struct tc_sum *sum) {
  for (size_t i = 0; i < losses->n; i++) {
    const struct tc__loss *loss = &losses->items[i];
    if (loss->reason == TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED || loss->seq <= settled_seq)
      return false;
    tc_sum_add(sum, (struct tc_sum){ loss->batches, loss->bytes });
  }
  return true;
}

static bool add_file(const struct tc__file *file, uint64_t settled_seq, struct tc_sum *sum) {
  if (!add_losses(&file->losses, settled_seq, sum)) return false;
  if (file->segment == NULL) return true;
  for (size_t i = 0; i < file->segment->ngens; i++) {
    const struct tc_segment_gen *gen = &file->segment->gens[i];
    if (gen->last_seq <= settled_seq) return false;
    tc_sum_add(sum, (struct tc_sum){ gen->batches, gen->bytes });
  }
  if (file->segment->in_gen)
    tc_sum_add(sum, (struct tc_sum){ file->segment->now.batches, file->segment->now.bytes });
  return true;
}

/* Adds losses that a meta has already, but that are above settled.seq: the audit does not count them there. */
static void add_reported(const struct tc__stream *stream, struct tc_sum *sum) {
  for (size_t i = 0; i < stream->reported.losses.n; i++) {
    const struct tc__loss *loss = &stream->reported.losses.items[i];
    if (loss->seq > stream->settled.seq)
      tc_sum_add(sum, (struct tc_sum){ loss->batches, loss->bytes });
  }
}

static bool count_open(const struct tc__file_queue *queue, const struct tc__stream *stream,
                       struct tc_sum *sum) {
  uint64_t settled_seq = stream->settled.seq;

  for (const struct tc__file *file = stream->queued == NULL ? NULL : queue->first; file != NULL;
       file = file->next)
    if (file->stream == stream && !add_file(file, settled_seq, sum)) return false;
  if (stream->open != NULL && !add_file(stream->open, settled_seq, sum)) return false;
  add_reported(stream, sum);
  return add_losses(&stream->losses, settled_seq, sum);
}

void tc__cut_accounting(const struct tc__file_queue *queue, struct tc__stream *stream) {
  const struct tc_counters *counted = &stream->counted;
  struct tc_stream_cut cut = { .seq = counted->reported_seq,
                               .settled_seq = stream->settled.seq,
                               .produced = { counted->produced_batches, counted->produced_bytes },
                               .reported = { counted->reported_batches, counted->reported_bytes } };

  if (counted->reported_seq == 0 || stream->last_seq < counted->reported_seq) return;
  /* A record above reported_seq arrived: the sums no longer match what the agent counted. */
  if (stream->last_seq == counted->reported_seq && count_open(queue, stream, &cut.open))
    stream->cut = cut;
  stream->counted.reported_seq = 0;
}

void tc__count_in(const struct tc__file_queue *queue, struct tc__stream *stream,
                  const struct tc_counters *counters) {
  uint32_t last_loss = stream->counters.last_loss;

  stream->counters = *counters;
  if (stream->counters.last_loss == 0)
    stream->counters.last_loss = last_loss; /* an older agent's */
  /* Keep the oldest counters until their records have arrived: taking newer ones would postpone the snapshot forever. */
  if (stream->counted.reported_seq != 0) return;
  stream->counted = *counters;
  tc__cut_accounting(queue, stream);
}
