/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/answers.h"

#include <string.h>
#include <sys/random.h>

#include "agent/host/clock.h"
#include "agent/net/snaps.h"
#include "proto/frame.pb-c.h"
#include "proto/unpack.h"

#define MS UINT64_C(1000000)

enum { HOLD_STAYS_MS = 5000 };

/* Memory for unpacking stays within the arena's budget. */
static void *unpack(struct ta_client *c, const ProtobufCMessageDescriptor *type,
                    const struct tp_frame *frame) {
  ProtobufCAllocator allocator = tp_arena_allocator(&c->arena);

  tb_arena_reset(&c->arena);
  void *message = protobuf_c_message_unpack(type, &allocator, frame->len, frame->payload);
  if (message == NULL)
    tb_fail(&c->diag, TB_PROTOCOL, "collector's %s cannot be read", tp_kind_name(frame->kind));
  return message;
}

/* This connection was the old stream's: the next one is the new stream's. */
static tb_rc restart(struct ta_client *c, struct tb_diag *forgot) {
  unsigned char stream[sizeof c->reported.stream];

  if (getrandom(stream, sizeof stream, GRND_NONBLOCK) != sizeof stream)
    return tb_fail(&c->diag, TB_IO, "%s; no random bytes for a new stream", forgot->text);
  if (ta_spool_restart(c->spool) != TB_OK) /* the writer is at it: at the next try, then */
    return tb_fail(&c->diag, TB_IO, "%s", forgot->text);
  c->started_wall_ns = ta_wall_ns();
  pthread_mutex_lock(&c->lock);
  memcpy(c->reported.stream, stream, sizeof stream);
  c->reported.restarted++;
  pthread_mutex_unlock(&c->lock);
  if (c->disk != NULL) ta_spool_writer_begin(c->disk, stream, c->started_wall_ns);
  return tb_fail(&c->diag, TB_IO, "%s: goes on as a new stream, what was acked counts as lost",
                 forgot->text);
}

static tb_rc on_welcome(struct ta_client *c, const struct tp_frame *frame) {
  const Tracecollect__V1__Welcome *welcome =
      unpack(c, &tracecollect__v1__welcome__descriptor, frame);

  if (welcome == NULL) return TB_PROTOCOL;
  if (c->state != TA_AT_GREETING) return tb_fail(&c->diag, TB_PROTOCOL, "second WELCOME");
  if (welcome->major != TP_MAJOR)
    return tb_fail(&c->diag, TB_PROTOCOL, "collector speaks protocol %u, not %d", welcome->major,
                   TP_MAJOR);
  /* Reported first: an ack that resume finds may end a thread's sync(), which then reads the status. */
  pthread_mutex_lock(&c->lock);
  c->reported.welcomes++;
  c->reported.last_error[0] = 0;
  pthread_mutex_unlock(&c->lock);
  struct tb_diag diag;
  tb_diag_clear(&diag);
  tb_rc rc = ta_spool_resume(c->spool, welcome->durable_seq, &diag);
  if (rc == TB_NOTFOUND) return restart(c, &diag);
  c->refused = rc == TB_REFUSED;
  if (rc != TB_OK) return tb_fail(&c->diag, rc, "%s", diag.text);
  c->credit_bytes = welcome->credit_bytes;
  c->acked_seq = welcome->durable_seq;
  c->hold_text = NULL;
  c->heartbeat_ns = (welcome->heartbeat_ms != 0 ? welcome->heartbeat_ms : TA_HEARTBEAT_MS) * MS;
  ta__client_input(c, TA_IN_WELCOME);
  return TB_OK;
}

static const char *const hold_texts[] = {
  [TRACECOLLECT__V1__HOLD__HOLD_STREAM_RATE] =
      "collector slows this stream down: more generations a second than "
      "agents.stream_generations_rate allows",
  [TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_RATE] =
      "collector slows this certificate name down: more generations a second than "
      "agents.identity_generations_rate allows",
  [TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_SHARE] =
      "collector slows this certificate name down: more generations than its share of the "
      "archive's work (agents.generations_max)",
  [TRACECOLLECT__V1__HOLD__HOLD_IDENTITY_MEMORY] =
      "collector slows this certificate name down: its records take "
      "agents.identity_records_max of memory",
  [TRACECOLLECT__V1__HOLD__HOLD_MEMORY] =
      "collector slows all agents down: their records take agents.records_max of memory",
  [TRACECOLLECT__V1__HOLD__HOLD_DISK_FULL] = "collector stores nothing: its disk is full",
  [TRACECOLLECT__V1__HOLD__HOLD_STORE] = "collector stores nothing: its log says why",
  [TRACECOLLECT__V1__HOLD__HOLD_ARCHIVE] =
      "collector slows all agents down: its archive does not keep up with the disk",
};

/* The reason stays for a while: the collector repeats it every two seconds while it lasts. */
static void hold_ends(struct ta_client *c) {
  if (c->hold_text == NULL || ta_mono_ns() < c->hold_ns + HOLD_STAYS_MS * MS) return;
  ta__client_forgive(c, c->hold_text);
  c->hold_text = NULL;
}

/* The connection goes on, only slower. */
static void note_hold(struct ta_client *c, Tracecollect__V1__Hold hold) {
  unsigned at = (unsigned)hold;

  if (at >= sizeof hold_texts / sizeof hold_texts[0] || hold_texts[at] == NULL) return;
  c->hold_text = hold_texts[at];
  c->hold_ns = ta_mono_ns();
  ta__client_warn(c, c->hold_text);
}

static tb_rc on_ack(struct ta_client *c, const struct tp_frame *frame) {
  const Tracecollect__V1__Ack *ack = unpack(c, &tracecollect__v1__ack__descriptor, frame);

  if (ack == NULL) return TB_PROTOCOL;
  if (c->state == TA_AT_GREETING) return tb_fail(&c->diag, TB_PROTOCOL, "ACK before WELCOME");
  if (ack->credit_bytes > c->credit_bytes) c->credit_bytes = ack->credit_bytes;
  if (ack->durable_seq > c->acked_seq) hold_ends(c);
  c->acked_seq = ack->durable_seq;
  note_hold(c, ack->hold);
  return ta_spool_ack(c->spool, ack->durable_seq, &c->diag);
}

static tb_rc on_goaway(struct ta_client *c, const struct tp_frame *frame) {
  const Tracecollect__V1__Goaway *goaway = unpack(c, &tracecollect__v1__goaway__descriptor, frame);

  if (goaway == NULL) return TB_PROTOCOL;
  c->away_ns = ta_mono_ns() + goaway->wait_ms * MS;
  tb_fail(&c->diag, TB_END, "collector goes away: %.100s", goaway->reason);
  if (c->state != TA_AT_LEAVING) ta__client_input(c, TA_IN_GOAWAY);
  return TB_OK;
}

static tb_rc on_refuse(struct ta_client *c, const struct tp_frame *frame) {
  const Tracecollect__V1__Refuse *refuse = unpack(c, &tracecollect__v1__refuse__descriptor, frame);

  if (refuse == NULL) return TB_PROTOCOL;
  const ProtobufCEnumValue *code = protobuf_c_enum_descriptor_get_value(
      &tracecollect__v1__refuse_code__descriptor, (int)refuse->code);
  tb_diag_clear(&c->diag);
  if (!refuse->permanent)
    return tb_fail(&c->diag, TB_IO, "collector refuses for now: %s: %.100s",
                   code != NULL ? code->name : "?", refuse->reason);
  c->refused = true;
  return tb_fail(&c->diag, TB_REFUSED, "collector refuses: %s: %.100s",
                 code != NULL ? code->name : "?", refuse->reason);
}

static tb_rc on_snap(struct ta_client *c, const struct tp_frame *frame) {
  const Tracecollect__V1__Snap *snap = unpack(c, &tracecollect__v1__snap__descriptor, frame);

  if (snap == NULL) return TB_PROTOCOL;
  if (c->state == TA_AT_GREETING) return tb_fail(&c->diag, TB_PROTOCOL, "SNAP before WELCOME");
  if (snap->id == 0) return tb_fail(&c->diag, TB_PROTOCOL, "SNAP without an id");
  ta__snaps_begin(c, snap->id, snap->last_ns);
  return TB_OK;
}

static tb_rc on_frame(struct ta_client *c, const struct tp_frame *frame) {
  switch (frame->kind) {
  case TP_WELCOME: return on_welcome(c, frame);
  case TP_ACK: return on_ack(c, frame);
  case TP_GOAWAY: return on_goaway(c, frame);
  case TP_REFUSE: return on_refuse(c, frame);
  case TP_SNAP: return on_snap(c, frame);
  case TP_HEARTBEAT: return TB_OK; /* heard_ns has seen it */
  default: break;
  }
  if (frame->seq == 0 && frame->kind >= TP_KIND_LIMIT) return TB_OK; /* of a later minor version */
  return tb_fail(&c->diag, TB_PROTOCOL, "collector sends %s", tp_kind_name(frame->kind));
}

tb_rc ta__answers_read(struct ta_client *c) {
  size_t got, at = 0, used, need;
  struct tp_frame frame;

  for (;;) {
    tb_rc rc = ta_tls_read(c->tls, c->in + c->in_n, sizeof c->in - c->in_n, &got);
    if (rc == TB_AGAIN) return TB_OK;
    TB_TRY(rc);
    c->heard_ns = ta_mono_ns();
    c->in_n += got;
    for (at = 0;; at += used) {
      rc = tp_frame_take(c->in + at, c->in_n - at, &c->diag, &frame, &used, &need);
      if (rc == TB_AGAIN) break;
      TB_TRY(rc);
      TB_TRY(on_frame(c, &frame));
      if (c->state == TA_AT_ENDED) return TB_OK;
    }
    if (need > sizeof c->in)
      return tb_fail(&c->diag, TB_PROTOCOL, "collector's frame of %zu bytes, limit %d", need,
                     TA_INBOUND_BYTES);
    memmove(c->in, c->in + at, c->in_n - at);
    c->in_n -= at;
  }
}
