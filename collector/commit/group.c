/* SPDX-License-Identifier: Apache-2.0 */
/* A group: settled reports and records are staged, committed together, and only then acked and passed on.
 *
 * If the commit fails nothing of the group counts: its records and all later ones in memory are dropped, every
 * connection is asked to reconnect, and the log continues in a new file. Three failed files in a minute mean that
 * the disk is broken: intake stops for good. A full disk or a shortage of memory or descriptors is waited for
 * (shortage.h). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "collector/commit/private.h"
#include "proto/frame.pb-c.h"

static const uint64_t POISON_WINDOW_NS = UINT64_C(60000000000), TRIM_EVERY_NS = 100000000,
                      ASK_AGAIN_NS = 1000000000;

tb_rc tc__fill_snapshot(void *self, Tracecollect__V1__LogSnapshot *out) {
  /* Valid until the group ends: the memory is in the group's payload list. */
  struct tc_commit *commit = self;
  size_t n = commit->streams.count;
  struct parts {
    Tracecollect__V1__LogStream stream;
    struct tc_settled_message settled;
  } * parts;
  struct tc__payload *memory =
      malloc(sizeof *memory + n * (sizeof *parts + sizeof(void *)) + 2 * _Alignof(max_align_t));

  if (memory == NULL) return TB_NOMEM;
  memory->next = commit->payloads;
  commit->payloads = memory;
  uintptr_t at = ((uintptr_t)memory->bytes + _Alignof(max_align_t) - 1) &
                 ~(uintptr_t)(_Alignof(max_align_t) - 1);
  parts = (struct parts *)at;
  out->streams = (Tracecollect__V1__LogStream **)(parts + n);
  struct tc_stream *stream;

  LIST_FOREACH(stream, &commit->streams.all, all) {
    assert(out->n_streams < n);
    struct parts *part = &parts[out->n_streams];
    tc_stream_to_log(stream, &part->stream, &part->settled);
    stream->logged = true;
    out->streams[out->n_streams++] = &part->stream;
  }
  out->next_ref = commit->streams.next_ref;
  return TB_OK;
}

static void free_payloads(struct tc_commit *commit) {
  while (commit->payloads != NULL) {
    struct tc__payload *next = commit->payloads->next;
    free(commit->payloads);
    commit->payloads = next;
  }
}

static tb_rc stage_message(struct tc_commit *commit, struct tc_wal_head *head,
                           const ProtobufCMessage *message) {
  size_t len = protobuf_c_message_get_packed_size(message);
  struct tc__payload *payload = malloc(sizeof *payload + len);

  if (payload == NULL) return TB_NOMEM;
  payload->next = commit->payloads;
  commit->payloads = payload;
  protobuf_c_message_pack(message, payload->bytes);
  head->len = (uint32_t)len;
  return tc_wal_stage(commit->log, head, payload->bytes, tb_crc32c(0, payload->bytes, len));
}

static tb_rc stage_report(struct tc_commit *commit, struct tc_settled *settled) {
  const struct tc_checkpoint *checkpoint = settled->checkpoint;
  struct tc_settled_message message;
  struct tc_wal_head head = {
    .kind = TC_WAL_SETTLED, .flags = TP_CRITICAL, .ref = settled->stream, .seq = settled->seq
  };

  if (checkpoint == NULL) {
    tc_settled_to_log(settled, &message);
    return stage_message(commit, &head, &message.settled.base);
  }
  head.kind = checkpoint->run ? TC_WAL_RUN : TC_WAL_CHECKPOINT;
  head.seq = checkpoint->seq;
  head.len = (uint32_t)checkpoint->len;
  return tc_wal_stage(commit->log, &head, checkpoint->packed,
                      tb_crc32c(0, checkpoint->packed, checkpoint->len));
}

static tb_rc stage_settled(struct tc_commit *commit) {
  for (; commit->settled_staged < commit->nsettled; commit->settled_staged++) {
    if (tc_wal_group_full(commit->log)) break;
    TB_TRY(stage_report(commit, commit->settled[commit->settled_staged]));
  }
  return TB_OK;
}

static tb_rc stage_stream(struct tc_commit *commit, struct tc_stream *stream) {
  Tracecollect__V1__LogStream message;
  struct tc_settled_message settled;
  struct tc_wal_head head = { .kind = TC_WAL_STREAM, .flags = TP_CRITICAL, .ref = stream->ref };

  tc_stream_to_log(stream, &message, &settled);
  TB_TRY(stage_message(commit, &head, &message.base));
  stream->logged = true;
  return TB_OK;
}

static tb_rc stage_records(struct tc_commit *commit) {
  while (commit->backlog != NULL && !tc_wal_group_full(commit->log)) {
    struct tc_record *record = commit->backlog;
    struct tc_stream *stream = tc_streams_by_ref(&commit->streams, record->stream);
    assert(stream != NULL);
    if (!stream->logged) TB_TRY(stage_stream(commit, stream));
    struct tc_wal_head head = { .kind = record->kind,
                                .ref = record->stream,
                                .seq = record->seq,
                                .gen = record->gen,
                                .len = record->len };
    TB_TRY(TB_GROW(commit->lsns, commit->lsns_cap, commit->nlsns));
    TB_TRY(tc_wal_stage(commit->log, &head, record->payload, record->crc));
    commit->lsns[commit->nlsns++] = head.lsn;
    commit->backlog = record->next;
    if (record->next == NULL) commit->backlog_tail = &commit->backlog;
    commit->backlog_bytes -= tc_wal_record_bytes(record->len);
    record->next = NULL;
    *commit->group_tail = record;
    commit->group_tail = &record->next;
  }
  return TB_OK;
}

static bool ends_unit(unsigned kind) {
  return kind == TP_GENEND || kind == TP_LOSS || kind == TP_CLOSE;
}

/* Called when the record is durable. */
static void record_done(struct tc_commit *commit, const struct tc_record *record, uint64_t lsn) {
  struct tc_stream *stream = tc_streams_by_ref(&commit->streams, record->stream);

  assert(stream != NULL && record->seq == stream->durable_seq + 1);
  stream->durable_seq = record->seq;
  tc_streams_hold(&commit->streams, stream, lsn, record->seq, ends_unit(record->kind));
  stream->closed = record->kind == TP_CLOSE;
  if (record->kind == TP_HEADER) {
    memcpy(stream->intro.header, record->payload, record->len);
    stream->intro.header_len = record->len;
  }
  tc_count(&commit->opt.stats->records, 1);
  tc_count(&commit->opt.stats->record_bytes, record->len);
  tc__due_ack(commit, stream);
}

static void settled_done(struct tc_commit *commit) {
  for (size_t i = 0; i < commit->settled_staged; i++) {
    struct tc_settled *settled = commit->settled[i];
    struct tc_stream *stream = tc_streams_by_ref(&commit->streams, settled->stream);
    if (stream != NULL && settled->checkpoint != NULL)
      tc_streams_checkpoint(&commit->streams, stream, settled->checkpoint);
    else if (stream != NULL)
      tc_streams_settle(&commit->streams, stream, settled);
    tc_settled_free(settled);
  }
  commit->nsettled -= commit->settled_staged;
  memmove(commit->settled, commit->settled + commit->settled_staged,
          commit->nsettled * sizeof *commit->settled);
  commit->settled_staged = 0;
}

static void hand_on(struct tc_commit *commit, uint64_t wall_ns) {
  struct tc_record *record = commit->group;

  settled_done(commit); /* first, as they are staged before the records */
  for (size_t i = 0; i < commit->nlsns; i++, record = record->next)
    record_done(commit, record, commit->lsns[i]);
  commit->done += commit->nlsns;
  if (commit->group == NULL) return;
  /* The records are durable and will be acked: without this item they and all later ones would reach the archive only at the
   * next start. So retry until the few bytes can be allocated. */
  struct tc_work *work;
  while ((work = tc__commit_work(commit, TC_WORK_RECORDS, 0)) == NULL)
    tc_wakeup_sleep(&commit->wakeup, 1000000, NULL, NULL);
  work->records.head = commit->group;
  work->records.wall_ns = wall_ns;
  work->records.end_lsn = tc_wal_durable_lsn(commit->log);
  commit->group = NULL;
  commit->group_tail = &commit->group;
}

static void free_records(struct tc_record **head, struct tc_record ***tail) {
  while (*head != NULL) {
    struct tc_record *record = *head;
    *head = record->next;
    record->free(record);
  }
  *tail = head;
}

void tc__drop_backlog(struct tc_commit *commit) {
  free_records(&commit->group, &commit->group_tail);
  free_records(&commit->backlog, &commit->backlog_tail);
  commit->backlog_bytes = 0;
  commit->done = commit->taken;
}

static void stop_intake(struct tc_commit *commit, const struct tb_diag *diag) {
  commit->failed = true;
  atomic_store(&commit->opt.stats->failed, true);
  commit->failed_unreported = commit->opt.loops;
  snprintf(commit->failed_text, sizeof commit->failed_text, "%s", diag->text);
}

/* Reports to every loop that the store has failed, which ends the program. If a reply cannot be allocated, a later turn
 * sends it. */
void tc__report_failed(struct tc_commit *commit) {
  while (commit->failed_unreported > 0) {
    struct tc_reply *reply = tc_reply_new(TC_REPLY_FAILED, 0, 0, commit->failed_unreported - 1);
    if (reply != NULL) snprintf(reply->text, sizeof reply->text, "%s", commit->failed_text);
    if (!tc_reply_queue_put(&commit->replies, reply)) return;
    commit->failed_unreported--;
  }
}

static void group_failed(struct tc_commit *commit, tb_rc rc, const struct tb_diag *diag) {
  uint64_t now = tc_mono_ns();

  (void)tc__commit_wait_for(commit, tc_shortage_of(rc, commit->opt.dirs->state));
  if (rc == TB_IO) tc_wait_no_pause(&commit->wait); /* the next file may be good */
  tc__commit_note_as(commit, TC_ERROR, 0, "%s; connections are closed, agents send again",
                     diag->text);
  tc__drop_backlog(commit);
  commit->settled_staged = 0; /* to be staged again in the next file */
  struct tc_stream *stream;

  LIST_FOREACH(stream, &commit->streams.all, all) {
    stream->staged_seq = stream->durable_seq;
    if (stream->conn == 0) continue;
    tc__send_away_writer(commit, stream, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE,
                         "storing failed; send again what is not acked");
  }
  if (tc_rc_is_full(rc)) return; /* a full disk is not a broken one */
  bool often = commit->poison_mono_ns[0] != 0 && now - commit->poison_mono_ns[0] < POISON_WINDOW_NS;
  commit->poison_mono_ns[0] = commit->poison_mono_ns[1];
  commit->poison_mono_ns[1] = now;
  if (often) stop_intake(commit, diag);
}

/* Handles a shortage before anything is staged. */
static void wait_to_begin(struct tc_commit *commit, tb_rc rc, const struct tb_diag *diag) {
  enum tc_shortage why = tc_shortage_of(rc, commit->opt.dirs->state);

  free_payloads(commit);
  if (tc__commit_wait_for(commit, why))
    tc__commit_note_as(commit, TC_ERROR, 0, "%s: %s; nothing is acked until the log can be written",
                       tc_shortage_text(why), diag->text);
}

static void wait_for_memory(struct tc_commit *commit) {
  if (tc__commit_wait_for(commit, TC_SHORT_MEMORY))
    tc__commit_note_as(commit, TC_ERROR, 0,
                       "%s: log: a record cannot be staged; nothing is acked until there is memory",
                       tc_shortage_text(TC_SHORT_MEMORY));
}

static void count_commit(struct tc_commit *commit, uint64_t began_ns) {
  struct tc_stats *stats = commit->opt.stats;
  uint64_t took = tc_mono_ns() - began_ns;

  tc_count(&stats->commits, 1);
  tc_count(&stats->commit_ns_total, took);
  if (took > atomic_load(&stats->commit_ns_max)) tc_gauge(&stats->commit_ns_max, took);
}

/* Requests checkpoints of streams that hold the log for long: their data goes to files, so that the log can be deleted. */
static void ask_checkpoints(struct tc_commit *commit, uint64_t now) {
  uint64_t end = tc_wal_durable_lsn(commit->log), max = commit->opt.config->log_checkpoint_bytes;

  for (struct tc_unit *unit = TAILQ_FIRST(&commit->streams.held);
       unit != NULL && end - unit->first_lsn > max; unit = TAILQ_NEXT(unit, in_log)) {
    struct tc_stream *stream = unit->stream;
    if (TAILQ_FIRST(&stream->units) != unit) continue; /* handled with the stream's first unit */
    if (stream->asked_mono_ns != 0 && now - stream->asked_mono_ns < ASK_AGAIN_NS) continue;
    struct tc_work *work = tc__commit_work(commit, TC_WORK_CHECKPOINT, stream->ref);
    if (work == NULL) return;
    work->checkpoint.held_lsn = unit->first_lsn;
    stream->asked_mono_ns = now;
  }
}

/* Gives up units that hold too much of the log: a single stream that never ends its generation, or sends only losses, would hold
 * the log for all. */
static void give_up_holders(struct tc_commit *commit, uint64_t now) {
  uint64_t end = tc_wal_durable_lsn(commit->log), max = commit->opt.config->log_held_bytes_max;

  for (struct tc_unit *unit = TAILQ_FIRST(&commit->streams.held);
       unit != NULL && end - unit->first_lsn > max; unit = TAILQ_NEXT(unit, in_log)) {
    struct tc_stream *stream = unit->stream;
    if (TAILQ_FIRST(&stream->units) != unit) continue; /* handled with the stream's first unit */
    tc_stream_end_unit(stream);
    if (unit->asked_mono_ns != 0 && now - unit->asked_mono_ns < ASK_AGAIN_NS) continue;
    struct tc_work *work = tc__commit_work(commit, TC_WORK_GIVE_UP, stream->ref);
    if (work == NULL) return;
    work->give_up_seq = unit->last_seq;
    unit->asked_mono_ns = now;
  }
}

static void trim_log(struct tc_commit *commit, uint64_t now) {
  if (tc_wal_file_count(commit->log) < 2 || now - commit->trim_mono_ns < TRIM_EVERY_NS) return;
  commit->trim_mono_ns = now;
  ask_checkpoints(commit, now);
  give_up_holders(commit, now);
  tc_wal_trim(commit->log, tc_streams_hold_lsn(&commit->streams));
}

void tc__commit_group(struct tc_commit *commit) {
  struct tb_diag diag = { 0 };
  uint64_t wall = tc_wall_ns(), began = tc_mono_ns();

  if (commit->failed) return;
  commit->nlsns = 0;
  tb_rc rc = tc_wal_begin(commit->log, wall, &diag);
  if (tc_rc_is_full(rc) || tc_rc_is_short(rc)) {
    wait_to_begin(commit, rc, &diag);
    return;
  }
  /* If memory runs out, commit the records that are staged so far. */
  bool whole = rc == TB_OK && stage_settled(commit) == TB_OK && stage_records(commit) == TB_OK;
  if (rc == TB_OK) rc = tc_wal_commit(commit->log, &diag);
  free_payloads(commit);
  if (rc == TB_OK) {
    hand_on(commit, wall);
    tc_wait_wrote(&commit->wait);
  } else {
    group_failed(commit, rc, &diag);
  }
  if (rc == TB_OK && !whole) wait_for_memory(commit);
  commit->group_mono_ns = tc_mono_ns();
  if (rc == TB_OK) count_commit(commit, began);
  trim_log(commit, commit->group_mono_ns);
  tc_gauge(&commit->opt.stats->log_bytes, tc_wal_bytes(commit->log));
}

void tc__take_settled(struct tc_commit *commit) {
  struct tc_settled *settled;

  for (;;) {
    if (TB_GROW(commit->settled, commit->settled_cap, commit->nsettled) != TB_OK) return;
    settled = tc_sealer_take_settled(commit->sealer);
    if (settled == NULL) return;
    if (commit->nsettled == 0) commit->settled_mono_ns = tc_mono_ns();
    commit->settled[commit->nsettled++] = settled;
  }
}

void tc__send_acks(struct tc_commit *commit) {
  struct tc_stream *next, *stream = commit->acks;

  commit->acks = NULL; /* streams whose ack cannot be allocated are retried on the next turn */
  for (; stream != NULL; stream = next) {
    next = stream->ack_next;
    stream->ack_due = false;
    if (stream->refusal.conn != 0 && !tc__say_refusal(commit, stream)) tc__due_ack(commit, stream);
    if (stream->conn == 0) continue;
    if (stream->attach_waits) {
      if (stream->staged_seq == stream->durable_seq) tc__answer_attach(commit, stream);
    } else if (!tc_reply_queue_acked(&commit->replies, &stream->acked, stream->conn, stream->ref,
                                     stream->loop, stream->durable_seq)) {
      tc__due_ack(commit, stream);
    }
  }
}
