/* SPDX-License-Identifier: Apache-2.0 */
/* From records to files: which file a batch goes to, when a generation is whole, what becomes of one
 * that never will be.
 *
 * A full disk may stop any handler; it is called again with the same record. So whatever can fail comes
 * before whatever is remembered. */
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
#include "collector/sealer/private.h"
#include "proto/allocator.h"
#include "proto/frame.pb-c.h"

tb_rc tc__flush_dirty(struct tc_sealer *sealer, bool to_disk, struct tb_diag *diag) {
  return tc__dirty_flush(&sealer->dirty, to_disk && sealer->opt.durable, diag);
}

/* Once the file is published, all up to this record is settled. */
static void settles(struct tc__file *file, uint64_t seq) {
  file->settle_seq = seq;
  file->abandoned_gen = file->stream->abandoned_gen;
}

static void enqueue(struct tc_sealer *sealer, struct tc__file *file) {
  struct tc__stream *stream = file->stream;

  tc__queue_put(&sealer->queue, file);
  if (stream->queued == NULL) stream->queued_gen_max = 0;
  stream->queued = file;
  if (file->segment != NULL && file->segment->first_gen > stream->queued_gen_max)
    stream->queued_gen_max = file->segment->first_gen;
}

static void seal_open(struct tc_sealer *sealer, struct tc__stream *stream) {
  struct tc__file *file = stream->open;

  assert(!file->segment->in_gen && file->segment->ngens > 0);
  stream->open = NULL;
  settles(file, file->segment->gens[file->segment->ngens - 1].last_seq);
  enqueue(sealer, file);
}

/* A number that comes again: a file that still waits to be sealed has its name in open/, and its place
 * in the archive must be taken before the second one asks for it. And one that is still to be proven: what comes behind
 * it depends on how that ends. */
static tb_rc make_way(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t gen,
                      struct tb_diag *diag) {
  if (stream->queued == NULL || (gen > stream->queued_gen_max && sealer->unproven == 0))
    return TB_OK;
  for (struct tc__file *file = sealer->queue.first; file != NULL; file = file->next) {
    if (file->stream != stream || file->segment == NULL ||
        (file->segment->first_gen != gen && tc__is_proven(file)))
      continue;
    TB_TRY(tc__flush_dirty(sealer, true, diag));
    return tc__publish_queue(sealer, diag);
  }
  return TB_OK;
}

static tb_rc open_file(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t gen,
                       uint64_t wall_ns, struct tb_diag *diag) {
  TB_TRY(make_way(sealer, stream, gen, diag));
  struct tc__file *file = tc__file_new(stream);

  if (file == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory");
  tb_rc rc = tc_segment_new(sealer->opt.dirs->open, stream->hex, gen, stream->header,
                            stream->header_len, sealer->hash_kind, diag, &file->segment);
  if (rc == TB_OK) rc = tc__losses_move(&file->losses, &stream->losses);
  if (rc != TB_OK) {
    tc__file_free(file);
    return rc;
  }
  tc_descriptors_add(&sealer->descriptors, file->segment);
  tc_day(wall_ns, file->day);
  file->segment->first_wall_ns = file->segment->last_wall_ns = wall_ns;
  file->segment->opened_mono_ns = tc_mono_ns();
  file->new_run = stream->run_broken || !stream->begun || gen != stream->last_gen + 1;
  stream->run_broken = false;
  stream->begun = true;
  stream->open = file;
  return TB_OK;
}

/* The last run gave it up, and reported it; the log had no time to. */
static void stays_given_up(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t gen) {
  if (stream->open != NULL && stream->open->segment->ngens > 0) seal_open(sealer, stream);
  stream->abandoned_gen = gen;
  stream->run_broken = true;
}

static tb_rc take_batch(struct tc_sealer *sealer, struct tc__stream *stream,
                        const struct tc__item *item, struct tb_diag *diag) {
  uint64_t gen = item->gen;

  struct tc__file *file = stream->open;
  if (gen != stream->abandoned_gen && (file == NULL || !file->segment->in_gen) &&
      tc__reported_of(stream, gen, item->seq) > 0)
    stays_given_up(sealer, stream, gen);
  if (stream->abandoned_gen != 0 && gen == stream->abandoned_gen)
    return tc__batch_was_reported(stream, item)
               ? TB_OK
               : tc__losses_note_batch(&stream->losses, gen, item->seq, item->len);
  /* Between generations a file goes on only with the next number; one without any was opened for this very batch, by a
   * try that went no further. */
  if (file != NULL && !file->segment->in_gen && file->segment->ngens > 0 &&
      (gen != stream->last_gen + 1 || stream->run_broken)) {
    seal_open(sealer, stream);
    file = NULL;
  }
  if (file == NULL) {
    TB_TRY(open_file(sealer, stream, gen, item->wall_ns, diag));
    file = stream->open;
  }
  /* A batch of another generation inside an open one is the program's fault, not the protocol's: its
   * bytes stay in the order they came, and ordering will say so. */
  TB_TRY(tc__dirty_add(&sealer->dirty, file));
  TB_TRY(
      tc_segment_append(file->segment, gen, item->seq, item->payload, item->len, item->crc, diag));
  file->segment->last_wall_ns = item->wall_ns;
  if (file->segment->now.batches == 1) {
    file->segment->now.first_wall_ns = item->wall_ns;
    file->border_lsn = sealer->work.end_lsn; /* as it was before this record */
  }
  return TB_OK;
}

/* Bytes that were cut off cannot be put back to be tried again. That it is lost counts; its bytes are for salvage
 * only. */
static void put_rest_aside(struct tc_sealer *sealer, struct tc_segment *rest) {
  struct tb_diag why = { 0 };
  tb_rc rc = tc_segment_flush(rest, &why);

  if (rc == TB_OK) rc = tc__quarantine_file(sealer, rest, &why);
  if (rc == TB_OK) return;
  tc__note_as(sealer, TC_WARN, 0, "%s; what was there of an unfinished generation is not kept",
              why.text);
  unlinkat(sealer->opt.dirs->open, rest->name, 0);
}

tb_rc tc__quarantine_open(struct tc_sealer *sealer, struct tc__stream *stream, const char *why,
                          bool note_loss, uint64_t seq, struct tb_diag *diag) {
  if (stream->open == NULL || !stream->open->segment->in_gen) return TB_OK;
  TB_TRY(tc__prove_open(sealer, stream, diag));
  struct tc__file *file = stream->open;
  struct tc_segment_gen *now = &file->segment->now;
  struct tc__loss loss = { .first_gen = now->gen,
                           .last_gen = now->gen,
                           .batches = now->batches,
                           .bytes = now->bytes,
                           .seq = seq,
                           .reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN };
  TB_TRY(tc_segment_flush(file->segment, diag));
  /* Once the bytes are gone from here nothing may fail: the loss would not be reported again. */
  if (file->segment->ngens == 0) TB_TRY(tc__losses_move(&stream->losses, &file->losses));
  if (file->segment->ngens > 0) {
    struct tc_segment *rest;
    TB_TRY(make_way(sealer, stream, now->gen, diag)); /* which may add losses of its own */
    TB_TRY(tc__losses_reserve(&stream->losses, 1));
    TB_TRY(tc_segment_cut(file->segment, stream->hex, diag, &rest));
    put_rest_aside(sealer, rest);
    tc_segment_free(rest);
    tc__dirty_remove(&sealer->dirty, file);
    seal_open(sealer, stream);
  } else {
    TB_TRY(tc__losses_reserve(&stream->losses, 1));
    TB_TRY(tc__quarantine_file(sealer, file->segment, diag));
    tc__dirty_remove(&sealer->dirty, file);
    stream->open = NULL;
    tc__file_free(file);
  }
  stream->run_broken = true;
  tc_count(&sealer->opt.stats->generations_broken, 1);
  tc__note_as(sealer, TC_WARN, stream->ref,
              "stream=%s gen=%" PRIu64 ": %s; its bytes are in quarantine", stream->hex,
              loss.first_gen, why);
  if (!note_loss) return TB_OK;
  stream->abandoned_gen = loss.first_gen;
  return tc__note_loss(sealer, stream, &stream->losses, &loss, why);
}

static bool past_limits(const struct tc_sealer *sealer, const struct tc__stream *stream) {
  const struct tc_segment *segment = stream->open->segment;

  return stream->open->broken || segment->ngens >= sealer->opt.config->segment_generations_max ||
         segment->bytes >= sealer->opt.config->segment_bytes_max ||
         tc_mono_ns() - segment->opened_mono_ns >= tc__run_age_max(sealer, stream);
}

/* It is ordered while the disk is still waited for. A lone generation whose number the archive has seen is
 * offered once it has its place there: it may be refused. */
static void generation_is_whole(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t gen) {
  const struct tc_settled *settled = &stream->settled;
  struct tc__file *file = stream->open;

  stream->last_gen = gen;
  file->border_lsn = sealer->work.end_lsn; /* as it was before this record */
  file->offered = sealer->opt.config->segment_generations_max > 1 || !settled->has_segment ||
                  gen > settled->last_gen;
  if (file->offered && tc__is_proven(file)) { /* else behind those before it */
    char path[192];
    snprintf(path, sizeof path, "open/%s", file->segment->name);
    tc__offer(sealer, file, file->segment->ngens - 1, path);
  }
  if (past_limits(sealer, stream)) seal_open(sealer, stream);
}

static tb_rc fail_memory(struct tb_diag *diag) {
  return tb_fail(diag, TB_NOMEM, "archive: no memory to read a record");
}

/* The end record is invalid; the generation receives no more records. */
static tb_rc give_up_ended(struct tc_sealer *sealer, struct tc__stream *stream, const char *why,
                           uint64_t seq, struct tb_diag *diag) {
  TB_TRY(tc__quarantine_open(sealer, stream, why, true, seq, diag));
  stream->abandoned_gen = 0;
  return TB_OK;
}

static tb_rc take_end(struct tc_sealer *sealer, struct tc__stream *stream,
                      const struct tc__item *item, struct tb_diag *diag) {
  struct tc__file *file = stream->open;

  if (file == NULL || !file->segment->in_gen) {
    /* The end of a generation that was given up, or of one without a batch: nothing to keep. */
    stream->run_broken = true;
    stream->abandoned_gen = 0;
    return TB_OK;
  }
  struct tp_allocator heap;
  tp_allocator_init(&heap);
  Tracecollect__V1__GenerationEnd *end =
      tracecollect__v1__generation_end__unpack(&heap.allocator, item->len, item->payload);
  if (end == NULL && heap.is_short) return fail_memory(diag);
  if (end == NULL) return give_up_ended(sealer, stream, "its end does not parse", item->seq, diag);
  struct tc_segment_claim claim = { .gen = item->gen,
                                    .seq = item->seq,
                                    .batches = end->batches,
                                    .bytes = end->bytes,
                                    .end_wall_ns = end->wall_ns,
                                    .crc = end->crc };
  tracecollect__v1__generation_end__free_unpacked(end, NULL);
  TB_TRY(tc_segment_flush(file->segment, diag)); /* it is read as soon as it is whole */
  struct tb_diag words = { 0 };
  tb_rc rc = tc_segment_end(file->segment, &claim, &words);
  if (rc == TB_BROKEN) return give_up_ended(sealer, stream, words.text, item->seq, diag);
  if (rc != TB_OK) return tb_fail(diag, rc, "%s", words.text);
  file->segment->last_wall_ns = item->wall_ns;
  generation_is_whole(sealer, stream, item->gen);
  return TB_OK;
}

static uint64_t less(uint64_t all, uint64_t part) {
  return all > part ? all - part : 0;
}

/* Of a generation that was given up here as well, what had been sent is reported: each batch when it came. */
static struct tc__loss loss_reported(const struct tc__stream *stream,
                                     const Tracecollect__V1__Loss *reported, uint64_t seq) {
  bool known = reported->first_gen != 0 && reported->first_gen == stream->abandoned_gen;
  struct tc__loss loss = { .first_gen = reported->first_gen,
                           .last_gen = reported->last_gen,
                           .batches = less(reported->batches, known ? reported->sent_batches : 0),
                           .bytes = less(reported->bytes, known ? reported->sent_bytes : 0),
                           .reason = (uint32_t)reported->reason,
                           .seq = seq };

  if (loss.reason == TRACECOLLECT__V1__LOSS_REASON__LOSS_DAMAGED) /* ours to say */
    loss.reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_UNKNOWN;
  return loss;
}

static tb_rc take_loss(struct tc_sealer *sealer, struct tc__stream *stream,
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
  /* An open generation was abandoned by the agent; its loss is what it reports here. */
  TB_TRY(tc__quarantine_open(sealer, stream, "abandoned by the agent", false, item->seq, diag));
  TB_TRY(tc__losses_reserve(&stream->losses, 1));
  TB_TRY(tc__note_loss(sealer, stream, &stream->losses, &loss, ""));
  stream->abandoned_gen = 0;
  if (stream->open != NULL) seal_open(sealer, stream);
  stream->run_broken = true;
  return TB_OK;
}

/* Notes losses, and the end if it is one, in the stream's last meta: the one that is
 * about to be written, or by rewriting it. */
static tb_rc note_end(struct tc_sealer *sealer, struct tc__stream *stream, enum tc__end end,
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
  if (made != NULL) enqueue(sealer, made);
  file->end = end;
  file->produced_batches = stream->counters.produced_batches;
  file->produced_bytes = stream->counters.produced_bytes;
  settles(file, seq);
  return TB_OK;
}

static tb_rc finish(struct tc_sealer *sealer, struct tc__stream *stream, const char *why,
                    enum tc__end end, uint64_t seq, struct tb_diag *diag) {
  TB_TRY(tc__quarantine_open(sealer, stream, why, true, seq, diag));
  if (stream->open != NULL) {
    TB_TRY(tc_segment_flush(stream->open->segment, diag));
    tc__dirty_remove(&sealer->dirty, stream->open);
    seal_open(sealer, stream);
  }
  TB_TRY(note_end(sealer, stream, end, seq)); /* else it is tried again: it is not over yet */
  stream->end = end;
  tc__mark_live(sealer, stream);
  return TB_OK;
}

tb_rc tc__archive_abandon(struct tc_sealer *sealer, struct tc__stream *stream,
                          struct tb_diag *diag) {
  static const char why[] = "its agent did not come back to end it";
  struct tc__file *file = stream->open;

  if (stream->end != TC__GOES_ON) return TB_OK;
  if (file != NULL) /* with the number of its first record, as below */
    TB_TRY(tc__quarantine_open(sealer, stream, why, true, file->segment->now.first_seq, diag));
  return finish(sealer, stream, why, TC__UNCLEAN, stream->last_seq, diag);
}

/* And how the stream ended. */
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

tb_rc tc__archive_record(struct tc_sealer *sealer, struct tc__stream *stream,
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
  case TP_BATCH: rc = take_batch(sealer, stream, item, diag); break;
  case TP_GENEND: rc = take_end(sealer, stream, item, diag); break;
  case TP_LOSS: rc = take_loss(sealer, stream, item, diag); break;
  case TP_CLOSE:
    TB_TRY(take_counters(stream, item, &end, diag));
    rc = finish(sealer, stream, "the stream was closed in its middle", end, item->seq, diag);
    break;
  default:
    break; /* a kind of a later minor version: stored in the log, nothing to do for the archive */
  }
  if (rc != TB_OK) return rc;
  if (item->kind != TP_CLOSE) stream->end = TC__GOES_ON; /* it may have come back after all */
  if (item->seq > stream->last_seq) stream->last_seq = item->seq; /* a replayed header is older */
  return TB_OK;
}

/* The whole generations in the open file are sealed; what is not goes on in a file of its own. */
tb_rc tc__seal_border(struct tc_sealer *sealer, struct tc__stream *stream, struct tb_diag *diag) {
  struct tc__file *file = stream->open, *rest = NULL;

  if (file != NULL && file->segment->in_gen) {
    TB_TRY(tc__prove_open(sealer, stream, diag));
    file = stream->open;
  }
  if (file == NULL || file->segment->ngens == 0) return TB_OK;
  TB_TRY(tc_segment_flush(file->segment, diag));
  if (file->segment->in_gen) {
    TB_TRY(make_way(sealer, stream, file->segment->now.gen, diag));
    rest = tc__file_new(stream);
    if (rest == NULL) return tb_fail(diag, TB_NOMEM, "archive: no memory");
    tb_rc rc = tc_segment_cut(file->segment, stream->hex, diag, &rest->segment);
    if (rc != TB_OK) {
      tc__file_free(rest);
      return rc;
    }
    tc_day(rest->segment->first_wall_ns, rest->day);
    rest->segment->opened_mono_ns = tc_mono_ns();
  }
  tc__dirty_remove(&sealer->dirty, file);
  seal_open(sealer, stream);
  stream->open = rest;
  return TB_OK;
}

tb_rc tc__seal_borders(struct tc_sealer *sealer, struct tb_diag *diag) {
  if (sealer->opt.config->segment_generations_max <= 1) return TB_OK; /* never open at a border */
  for (struct tc__stream *stream = sealer->streams; stream != NULL; stream = stream->next)
    TB_TRY(tc__seal_border(sealer, stream, diag));
  return TB_OK;
}

tb_rc tc__archive_give_up(struct tc_sealer *sealer, struct tc__stream *stream, uint64_t seq,
                          struct tb_diag *diag) {
  uint64_t upto = stream->last_seq;

  if (stream->end != TC__GOES_ON) return TB_OK; /* settled with its end */
  TB_TRY(tc__seal_border(sealer, stream, diag));
  struct tc__file *file = stream->open;
  if (file != NULL && file->segment->now.first_seq <= seq) {
    /* By this number the loss is known, if a crash brings these records again (recorded.c). */
    TB_TRY(tc__quarantine_open(sealer, stream, "its end did not come in time", true,
                               file->segment->now.first_seq, diag));
  } else if (file != NULL) { /* a younger one: only what lies before it is meant */
    TB_TRY(tc__losses_move(&stream->losses, &file->losses));
    upto = file->segment->now.first_seq - 1;
  }
  return note_end(sealer, stream, TC__GOES_ON, upto);
}
