/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the loops' messages, one at a time. Only a stream's own connection may write it, and only the next sequence number;
 * an earlier number is acked again, but not stored again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "collector/commit/private.h"
#include "proto/frame.pb-c.h"

/* No credit limits these, and they pile up while the archive waits for its disk. */
enum { COUNTERS_WAIT_MAX = 256, ATTACHES_WAIT_MAX = 65536 };

struct tc_work *tc__commit_work(struct tc_commit *commit, enum tc_work_kind kind, uint32_t stream) {
  struct tc_work *work = tc_work_new(kind, stream);

  if (work == NULL) return NULL;
  *commit->work_tail = work;
  commit->work_tail = &work->next;
  commit->nwork++;
  return work;
}

/* Returns false if memory cannot be allocated. The refusal must then be sent later: without an answer the stream would wait as
 * long as its connection lasts. */
static bool refuse(struct tc_commit *commit, uint64_t conn, uint32_t stream, unsigned loop,
                   uint32_t code, const char *text) {
  struct tc_reply *reply = tc_reply_new(TC_REPLY_REFUSED, conn, stream, loop);

  if (reply != NULL) {
    reply->code = code;
    snprintf(reply->text, sizeof reply->text, "%s", text);
  }
  return tc_reply_queue_put(&commit->replies, reply);
}

/* Sets the gauge from the table: with increments, one step that fails for lack of memory would leave it wrong forever. */
static void count_live(struct tc_commit *commit) {
  tc_gauge(&commit->opt.stats->streams_live, commit->streams.by_conn.count);
}

void tc__drop_conn(struct tc_commit *commit, struct tc_stream *stream) {
  tc_reply_queue_unjoin(&stream->acked);
  tc_reply_queue_unjoin(&stream->released);
  tc_streams_disconnect(&commit->streams, stream);
  count_live(commit);
  stream->attach_waits = false;
  stream->contact_mono_ns = tc_mono_ns();
  stream->contact_wall_ns = tc_wall_ns();
  tc__commit_work(commit, TC_WORK_DETACHED, stream->ref);
}

void tc__send_away_writer(struct tc_commit *commit, struct tc_stream *stream, uint32_t code,
                          const char *text) {
  stream->refusal.conn = stream->conn;
  stream->refusal.code = code;
  stream->refusal.text = text;
  if (!tc__say_refusal(commit, stream)) tc__due_ack(commit, stream);
  tc__drop_conn(commit, stream);
}

bool tc__say_refusal(struct tc_commit *commit, struct tc_stream *stream) {
  if (!refuse(commit, stream->refusal.conn, stream->ref, stream->loop, stream->refusal.code,
              stream->refusal.text))
    return false;
  stream->refusal.conn = 0;
  return true;
}

void tc__answer_attach(struct tc_commit *commit, struct tc_stream *stream) {
  struct tc_reply *reply = tc_reply_new(TC_REPLY_ATTACHED, stream->conn, stream->ref, stream->loop);

  if (reply != NULL) reply->seq = stream->durable_seq;
  stream->attach_waits = !tc_reply_queue_put(&commit->replies, reply);
  if (stream->attach_waits) tc__due_ack(commit, stream);
}

void tc__due_ack(struct tc_commit *commit, struct tc_stream *stream) {
  if (stream->ack_due) return;
  stream->ack_due = true;
  stream->ack_next = commit->acks;
  commit->acks = stream;
}

static struct tc_stream *new_stream(struct tc_commit *commit, const struct tc_attach *attach) {
  struct tc_stream_intro intro = { .ref = 0,
                                   .home = attach->loop < commit->opt.loops ? attach->loop : 0 };
  struct tc_stream *stream = NULL;

  memcpy(intro.id, attach->stream, sizeof intro.id);
  snprintf(intro.identity, sizeof intro.identity, "%.*s", TC_IDENTITY_MAX, attach->identity);
  memcpy(intro.service, attach->service, sizeof intro.service);
  memcpy(intro.instance, attach->instance, sizeof intro.instance);
  if (tc_streams_add(&commit->streams, &intro, &stream) != TB_OK) return NULL;
  struct tc_stream_intro *copy = malloc(sizeof *copy);
  struct tc_work *work = copy == NULL ? NULL : tc__commit_work(commit, TC_WORK_STREAM, stream->ref);
  if (work == NULL) {
    free(copy);
    tc_streams_remove(&commit->streams, stream);
    return NULL;
  }
  *copy = stream->intro;
  work->intro = copy;
  return stream;
}

bool tc__commit_forget(struct tc_commit *commit, struct tc_stream *stream) {
  if (tc__commit_work(commit, TC_WORK_FORGET, stream->ref) == NULL) return false;
  tc_streams_remove(&commit->streams, stream);
  return true;
}

/* If an owner has its maximum of streams, removes the oldest one that is over. A program that is killed repeatedly leaves a
 * stream each time. Such streams are remembered for a day, and must not block new ones. */
static bool has_place(struct tc_commit *commit, const char identity[TC_IDENTITY_MAX]) {
  if (tc_streams_of(&commit->streams, identity) < commit->opt.config->agents_identity_streams_max)
    return true;
  struct tc_stream *over = tc_streams_oldest_over(&commit->streams, identity);
  return over != NULL && tc__commit_forget(commit, over);
}

/* Reports to the stream's connection that another one takes over. (The one that takes over may be the older, if a HELLO
 * overtook another.) Returns false if memory cannot be allocated. */
static bool supersede(struct tc_commit *commit, const struct tc_stream *stream) {
  if (stream->conn == 0) return true;
  return tc_reply_queue_put(
      &commit->replies, tc_reply_new(TC_REPLY_SUPERSEDED, stream->conn, stream->ref, stream->loop));
}

/* Makes conn the stream's connection. Returns NULL if memory cannot be allocated; the stream then has none. */
static struct tc_work *take_over(struct tc_commit *commit, struct tc_stream *stream,
                                 uint64_t conn) {
  tc_reply_queue_unjoin(&stream->acked);
  tc_reply_queue_unjoin(&stream->released);
  struct tc_work *work = NULL;
  if (tc_streams_connect(&commit->streams, stream, conn) == TB_OK)
    work = tc__commit_work(commit, TC_WORK_ATTACHED, stream->ref);
  count_live(commit);
  if (work == NULL) tc__drop_conn(commit, stream);
  return work;
}

/* Returns false if memory for an answer cannot be allocated. */
static bool attach(struct tc_commit *commit, const struct tc_submit *msg) {
  const struct tc_attach *attach = &msg->attach;
  struct tc_stream *stream = tc_streams_by_id(&commit->streams, attach->stream);
  char text[96];

  if (commit->failed)
    return refuse(commit, msg->conn, 0, attach->loop, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE,
                  "the log cannot be written");
  if (stream != NULL && strncmp(stream->intro.identity, attach->identity, TC_IDENTITY_MAX) != 0)
    return refuse(commit, msg->conn, stream->ref, attach->loop,
                  TRACECOLLECT__V1__REFUSE_CODE__REFUSE_IDENTITY,
                  "this stream belongs to another certificate");
  if (stream != NULL && stream->refusal.conn != 0 && !tc__say_refusal(commit, stream))
    return false; /* a stream can have only one unsent refusal */
  if (commit->nwork >= ATTACHES_WAIT_MAX)
    return refuse(commit, msg->conn, 0, attach->loop, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE,
                  "the archive is blocked and too many new agents are queued");
  if (stream == NULL && !has_place(commit, attach->identity)) {
    snprintf(text, sizeof text,
             "agents.identity_streams_max is %" PRIu64 " for one certificate name",
             commit->opt.config->agents_identity_streams_max);
    return refuse(commit, msg->conn, 0, attach->loop, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET,
                  text);
  }
  if (stream != NULL && !supersede(commit, stream)) return false;
  if (stream == NULL) stream = new_stream(commit, attach);
  struct tc_work *work = stream == NULL ? NULL : take_over(commit, stream, msg->conn);
  if (work == NULL)
    return refuse(commit, msg->conn, 0, attach->loop, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_BUDGET,
                  "no memory for another stream");
  stream->loop = attach->loop;
  stream->abandoned = false;
  work->attached.conn = msg->conn;
  work->attached.loop = attach->loop;
  memcpy(work->attached.peer, attach->peer, sizeof work->attached.peer);
  /* Records of an older connection must be durable first, as the answer names the last durable one. */
  if (stream->staged_seq > stream->durable_seq)
    stream->attach_waits = true;
  else
    tc__answer_attach(commit, stream);
  return true;
}

static const char *record_fault(const struct tc_stream *stream, const struct tc_record *record) {
  if (record->seq != stream->staged_seq + 1) return "a record's number is not the next one";
  if (record->len > TP_FRAME_BYTES_MAX) return "a record is too large";
  if (record->kind == TP_HEADER && record->len > sizeof stream->intro.header)
    return "the trace header is too long";
  return NULL;
}

/* Takes ownership of the record on every path. */
static void take_record(struct tc_commit *commit, struct tc_record *record) {
  TB_MAGIC_CHECK(record, TC_RECORD_MAGIC);
  struct tc_stream *stream = tc_streams_by_ref(&commit->streams, record->stream);

  if (stream == NULL || stream->conn == 0 || stream->conn != record->conn) {
    record->free(record); /* the connection was refused or superseded */
    return;
  }
  if (record->seq <= stream->staged_seq) {
    tc_reply_queue_released(&commit->replies, &stream->released, stream->conn, stream->ref,
                            stream->loop, (uint64_t)record->len + TP_HEADER_BYTES);
    record->free(record);
    if (stream->staged_seq == stream->durable_seq) tc__due_ack(commit, stream);
    return;
  }
  const char *fault = record_fault(stream, record);
  if (fault != NULL) {
    tc__send_away_writer(commit, stream, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_PROTOCOL, fault);
    record->free(record);
    return;
  }
  stream->staged_seq = record->seq;
  record->next = NULL;
  *commit->backlog_tail = record;
  commit->backlog_tail = &record->next;
  commit->backlog_bytes += tc_wal_record_bytes(record->len);
  commit->taken++;
}

static void detach(struct tc_commit *commit, uint64_t conn) {
  struct tc_stream *stream = tc_streams_by_conn(&commit->streams, conn);

  if (stream != NULL) tc__drop_conn(commit, stream); /* NULL: superseded */
}

static bool take_barrier(struct tc_commit *commit, const struct tc_submit *msg) {
  struct tc__barrier *barrier = calloc(1, sizeof *barrier);

  if (barrier == NULL) return false;
  *barrier =
      (struct tc__barrier){ .after = commit->taken, .cookie = msg->barrier, .loop = msg->loop };
  *commit->barriers_tail = barrier;
  commit->barriers_tail = &barrier->next;
  return true;
}

void tc__pass_barriers(struct tc_commit *commit) {
  /* While the log waits nothing is acked: a reader need not wait for records that are not acked. */
  bool stuck = tc__commit_waits(commit) || commit->failed;

  while (commit->barriers != NULL && (stuck || commit->barriers->after <= commit->done)) {
    struct tc__barrier *barrier = commit->barriers;
    struct tc_work *work = tc__commit_work(commit, TC_WORK_BARRIER, 0);
    if (work == NULL) return;
    work->barrier.cookie = barrier->cookie;
    work->barrier.loop = barrier->loop;
    commit->barriers = barrier->next;
    if (barrier->next == NULL) commit->barriers_tail = &commit->barriers;
    free(barrier);
  }
}

bool tc__intake(struct tc_commit *commit, struct tc_submit *msg) {
  struct tc_work *work;

  TB_MAGIC_CHECK(msg, TC_SUBMIT_MAGIC);
  switch (msg->kind) {
  case TC_SUBMIT_ATTACH:
    if (!attach(commit, msg)) return false;
    break;
  case TC_SUBMIT_RECORD:
    if (msg->record == NULL) break;
    take_record(commit, msg->record);
    msg->record = NULL;
    break;
  case TC_SUBMIT_DETACH:
    if (msg->conn != 0) detach(commit, msg->conn);
    break;
  case TC_SUBMIT_VERDICT: {
    struct tc_verdict *verdict = malloc(sizeof *verdict);
    work = verdict == NULL ? NULL : tc__commit_work(commit, TC_WORK_VERDICT, msg->verdict.stream);
    if (work == NULL) {
      free(verdict); /* the verdict stays pending: the next start offers the generation again */
      break;
    }
    *verdict = msg->verdict;
    verdict->reason[sizeof verdict->reason - 1] = '\0';
    work->verdict = verdict;
    break;
  }
  case TC_SUBMIT_BARRIER:
    if (!take_barrier(commit, msg)) return false;
    break;
  case TC_SUBMIT_HEARTBEAT:
    if (commit->nwork >= COUNTERS_WAIT_MAX) break; /* the next heartbeat has newer counters */
    work = tc__commit_work(commit, TC_WORK_COUNTERS, msg->counters.stream);
    if (work != NULL) work->counters = msg->counters;
    break;
  }
  tc_submit_free(msg);
  return true;
}
