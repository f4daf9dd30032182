/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/sealer/seal/records.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/grow.h"
#include "collector/sealer/seal/recorded.h"
#include "collector/sealer/seal/runs.h"
#include "proto/allocator.h"
#include "proto/frame.pb-c.h"

/* Gives a replayed generation up again: a meta reports it as lost, but the log does not. */
static void stays_given_up(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen) {
  if (stream->open != NULL && stream->open->segment->ngens > 0) tc__seal_open(seal, stream);
  tc__stream_gives_up(stream, gen);
  stream->run_broken = true;
}

static tb_rc take_batch(struct tc__seal *seal, struct tc__stream *stream,
                        const struct tc__item *item, struct tb_diag *diag) {
  uint64_t gen = item->gen;

  struct tc__file *file = stream->open;
  if (gen != stream->abandoned_gen && stream->state != TC__INSIDE &&
      tc__reported_of(stream, gen, item->seq) > 0)
    stays_given_up(seal, stream, gen);
  if (stream->abandoned_gen != 0 && gen == stream->abandoned_gen)
    return tc__batch_was_reported(stream, gen, item->seq)
               ? TB_OK
               : tc__losses_note_batch(&stream->losses, gen, item->seq, item->len);
  /* A run continues only with the next generation number. A file without a generation was opened for this batch by an
   * earlier attempt. */
  if (stream->state == TC__BETWEEN && file->segment->ngens > 0 &&
      (gen != stream->last_gen + 1 || stream->run_broken)) {
    tc__seal_open(seal, stream);
    file = NULL;
  }
  if (file == NULL) {
    TB_TRY(tc__open_run(seal, stream, gen, item->wall_ns, diag));
    file = stream->open;
  }
  /* A batch of another generation inside an open one is an error in the trace, not in the protocol: store it in the order
   * of arrival; ordering reports it. */
  TB_TRY(tc__dirty_add(&seal->dirty, file));
  tb_rc rc =
      tc_segment_append(file->segment, gen, item->seq, item->payload, item->len, item->crc, diag);
  tc__stream_appended(stream);
  if (rc != TB_OK) return rc;
  file->segment->last_wall_ns = item->wall_ns;
  if (file->segment->now.batches == 1) {
    file->segment->now.first_wall_ns = item->wall_ns;
    file->border_lsn = seal->end_lsn; /* the end before this record */
  }
  return TB_OK;
}

static bool past_limits(const struct tc__seal *seal, const struct tc__stream *stream) {
  const struct tc_segment *segment = stream->open->segment;

  return stream->open->broken || segment->ngens >= seal->env->opt.config->segment_generations_max ||
         segment->bytes >= seal->env->opt.config->segment_bytes_max ||
         tc_mono_ns() - segment->opened_mono_ns >= tc__run_age_max(seal->env, stream);
}

/* Offers the generation before it is published, so that analysis need not wait for the disk. With one generation a segment, one
 * whose number the archive may have is offered only after it is published: it may be refused. */
static void generation_is_whole(struct tc__seal *seal, struct tc__stream *stream, uint64_t gen) {
  const struct tc_settled *settled = &stream->settled;
  struct tc__file *file = stream->open;

  stream->last_gen = gen;
  file->border_lsn = seal->end_lsn; /* the end before this record */
  file->offered = seal->env->opt.config->segment_generations_max > 1 || !settled->has_segment ||
                  gen > settled->last_gen;
  if (file->offered && tc__is_proven(file)) { /* otherwise tc__offer_pending() does, in order */
    char path[192];
    snprintf(path, sizeof path, "open/%s", file->segment->name);
    tc__offer(&seal->outbox, file, file->segment->ngens - 1, path);
  }
  if (past_limits(seal, stream)) tc__seal_open(seal, stream);
}

static tb_rc fail_memory(struct tb_diag *diag) {
  return tb_fail(diag, TB_NOMEM, "archive: no memory to read a record");
}

/* The end record is invalid; the generation receives no more records. */
static tb_rc give_up_ended(struct tc__seal *seal, struct tc__stream *stream, const char *why,
                           uint64_t seq, struct tb_diag *diag) {
  TB_TRY(tc__quarantine_open(seal, stream, why, true, seq, diag));
  tc__stream_gives_up(stream, 0);
  return TB_OK;
}

static tb_rc take_end(struct tc__seal *seal, struct tc__stream *stream, const struct tc__item *item,
                      struct tb_diag *diag) {
  struct tc__file *file = stream->open;

  if (stream->state != TC__INSIDE) {
    /* The generation was given up or has no batches. */
    stream->run_broken = true;
    tc__stream_gives_up(stream, 0);
    return TB_OK;
  }
  struct tp_allocator heap;
  tp_allocator_init(&heap);
  Tracecollect__V1__GenerationEnd *end =
      tracecollect__v1__generation_end__unpack(&heap.allocator, item->len, item->payload);
  if (end == NULL && heap.is_short) return fail_memory(diag);
  if (end == NULL) return give_up_ended(seal, stream, "its end does not parse", item->seq, diag);
  struct tc_segment_claim claim = { .gen = item->gen,
                                    .seq = item->seq,
                                    .batches = end->batches,
                                    .bytes = end->bytes,
                                    .end_wall_ns = end->wall_ns,
                                    .crc = end->crc };
  tracecollect__v1__generation_end__free_unpacked(end, NULL);
  TB_TRY(tc_segment_flush(file->segment, diag)); /* analysis reads the file next */
  struct tb_diag words = { 0 };
  tb_rc rc = tc_segment_end(file->segment, &claim, &words);
  if (rc == TB_BROKEN) return give_up_ended(seal, stream, words.text, item->seq, diag);
  if (rc != TB_OK) return tb_fail(diag, rc, "%s", words.text);
  tc__stream_ends(stream);
  file->segment->last_wall_ns = item->wall_ns;
  generation_is_whole(seal, stream, item->gen);
  return TB_OK;
}

static uint64_t subtract(uint64_t all, uint64_t part) {
  return all > part ? all - part : 0;
}

/* Takes the loss that an agent reports. If the sealer gave that generation up, too, it has counted the batches that were
 * sent. */
static struct tc__loss loss_reported(const struct tc__stream *stream,
                                     const Tracecollect__V1__Loss *reported, uint64_t seq) {
  bool known = reported->first_gen != 0 && reported->first_gen == stream->abandoned_gen;
  struct tc__loss loss = { .first_gen = reported->first_gen,
                           .last_gen = reported->last_gen,
                           .batches =
                               subtract(reported->batches, known ? reported->sent_batches : 0),
                           .bytes = subtract(reported->bytes, known ? reported->sent_bytes : 0),
                           .reason = (uint32_t)reported->reason,
                           .seq = seq };

  if (loss.reason == TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED) /* only for the collector */
    loss.reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN;
  return loss;
}

static tb_rc take_loss(struct tc__seal *seal, struct tc__stream *stream,
                       const struct tc__item *item, struct tb_diag *diag) {
  struct tc__loss loss = { .seq = item->seq };
  struct tp_allocator heap;

  tp_allocator_init(&heap);
  Tracecollect__V1__Loss *reported =
      tracecollect__v1__loss__unpack(&heap.allocator, item->len, item->payload);
  if (reported == NULL && heap.is_short) return fail_memory(diag);
  if (reported != NULL) {
    loss = loss_reported(stream, reported, item->seq);
    stream->counters.last_loss = loss.reason;
    tracecollect__v1__loss__free_unpacked(reported, NULL);
  }
  /* The agent abandoned its open generation; this record reports the loss. */
  TB_TRY(tc__quarantine_open(seal, stream, "abandoned by the agent", false, item->seq, diag));
  TB_TRY(tc__losses_reserve(&stream->losses, 1));
  TB_TRY(tc__note_loss(&seal->outbox, stream, &stream->losses, &loss, ""));
  tc__stream_gives_up(stream, 0);
  if (stream->open != NULL) tc__seal_open(seal, stream);
  stream->run_broken = true;
  return TB_OK;
}

/* Puts losses, and the stream's end if there is one, into its last meta: a queued file's, or by a note that rewrites the
 * published one. */
static tb_rc note_end(struct tc__seal *seal, struct tc__stream *stream, enum tc__end end,
                      uint64_t seq) {
  struct tc__file *file = stream->queued, *made = NULL;

  if (file == NULL || file->state != TC__FILE_WAITS) {
    file = made = tc__file_new(stream);
    if (file == NULL) return TB_NOMEM;
    tc_day(tc_wall_ns(), file->day);
  }
  tb_rc rc = tc__losses_move(&file->losses, &stream->losses);
  if (rc != TB_OK) {
    tc__file_free(made);
    return rc;
  }
  if (made != NULL) tc__enqueue(seal, made);
  file->end = end;
  file->produced_batches = stream->counters.produced_batches;
  file->produced_bytes = stream->counters.produced_bytes;
  tc__settles(file, seq);
  return TB_OK;
}

static tb_rc finish(struct tc__seal *seal, struct tc__stream *stream, const char *why,
                    enum tc__end end, uint64_t seq, struct tb_diag *diag) {
  TB_TRY(tc__quarantine_open(seal, stream, why, true, seq, diag));
  if (stream->open != NULL) {
    TB_TRY(tc_segment_flush(stream->open->segment, diag));
    tc__dirty_remove(&seal->dirty, stream->open);
    tc__seal_open(seal, stream);
  }
  TB_TRY(note_end(seal, stream, end, seq));
  stream->end = end;
  tc__mark_live(&seal->streams, stream);
  return TB_OK;
}

tb_rc tc__archive_abandon(struct tc__seal *seal, struct tc__stream *stream, struct tb_diag *diag) {
  static const char why[] = "its agent did not come back to end it";
  struct tc__file *file = stream->open;

  if (stream->end != TC__GOES_ON) return TB_OK;
  if (file != NULL) /* its first_seq identifies the loss after a crash (recorded.h) */
    TB_TRY(tc__quarantine_open(seal, stream, why, true, file->segment->now.first_seq, diag));
  return finish(seal, stream, why, TC__UNCLEAN, stream->last_seq, diag);
}

/* Takes the counters of a CLOSE record, and how the stream ended. */
static tb_rc take_counters(struct tc__stream *stream, const struct tc__item *item,
                           enum tc__end *out_end, struct tb_diag *diag) {
  struct tp_allocator heap;

  tp_allocator_init(&heap);
  Tracecollect__V1__Close *reported =
      tracecollect__v1__close__unpack(&heap.allocator, item->len, item->payload);
  *out_end = TC__CLEAN;
  if (reported == NULL) return heap.is_short ? fail_memory(diag) : TB_OK;
  if (strcmp(reported->reason, "exec") == 0) *out_end = TC__EXEC;
  if (reported->counters != NULL) {
    stream->counters.produced_batches = reported->counters->produced_batches;
    stream->counters.produced_bytes = reported->counters->produced_bytes;
    stream->counters.spool_batches = stream->counters.spool_bytes = 0;
  }
  tracecollect__v1__close__free_unpacked(reported, NULL);
  return TB_OK;
}

tb_rc tc__archive_record(struct tc__seal *seal, struct tc__stream *stream,
                         const struct tc__item *item, struct tb_diag *diag) {
  enum tc__end end;
  tb_rc rc = TB_OK;

  switch (item->kind) {
  case TP_HEADER:
    if (item->len <= sizeof stream->header) {
      memcpy(stream->header, item->payload, item->len);
      stream->header_len = item->len;
      stream->go_version = tc_go_version(item->payload, item->len);
    }
    break;
  case TP_BATCH: rc = take_batch(seal, stream, item, diag); break;
  case TP_GENEND: rc = take_end(seal, stream, item, diag); break;
  case TP_LOSS: rc = take_loss(seal, stream, item, diag); break;
  case TP_CLOSE:
    TB_TRY(take_counters(stream, item, &end, diag));
    rc = finish(seal, stream, "the stream was closed inside the generation", end, item->seq, diag);
    break;
  default: break; /* a kind of a later minor version: only the log stores it */
  }
  if (rc != TB_OK) return rc;
  if (item->kind != TP_CLOSE) stream->end = TC__GOES_ON;          /* its agent may have returned */
  if (item->seq > stream->last_seq) stream->last_seq = item->seq; /* a replayed header is older */
  return TB_OK;
}

tb_rc tc__archive_give_up(struct tc__seal *seal, struct tc__stream *stream, uint64_t seq,
                          struct tb_diag *diag) {
  uint64_t upto = stream->last_seq;

  if (stream->end != TC__GOES_ON) return TB_OK; /* the end settles the stream */
  TB_TRY(tc__seal_border(seal, stream, diag));
  struct tc__file *file = stream->open;
  if (file != NULL && file->segment->now.first_seq <= seq) {
    /* first_seq identifies the loss if these records are replayed after a crash (recorded.h). */
    TB_TRY(tc__quarantine_open(seal, stream, "its end did not come in time", true,
                               file->segment->now.first_seq, diag));
  } else if (file != NULL) { /* the open generation began after seq: keep it */
    TB_TRY(tc__losses_move(&stream->losses, &file->losses));
    upto = file->segment->now.first_seq - 1;
  }
  return note_end(seal, stream, TC__GOES_ON, upto);
}
