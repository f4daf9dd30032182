/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/net/answers.h"

#include <sys/random.h>

#include "agent/host/clock.h"
#include "agent/net/snaps.h"

#define MS UINT64_C(1000000)

/* Turns the spool into a new stream. This connection belongs to the old stream and ends; the next one sends the new stream. */
static tb_rc restart(struct ta_client *c, struct tb_diag *forgot) {
  unsigned char stream[sizeof c->report.status.stream];

  if (getrandom(stream, sizeof stream, GRND_NONBLOCK) != sizeof stream)
    return tb_fail(&c->diag, TB_IO, "%s; no random bytes for a new stream", forgot->text);
  if (ta_spool_restart(c->spool) != TB_OK) /* the writer is copying: the next try will do it */
    return tb_fail(&c->diag, TB_IO, "%s", forgot->text);
  c->started_wall_ns = ta_wall_ns();
  ta_report_restart(&c->report, stream);
  if (c->disk != NULL) ta_spool_writer_begin(c->disk, stream, c->started_wall_ns);
  return tb_fail(&c->diag, TB_IO, "%s: goes on as a new stream, what was acked counts as lost",
                 forgot->text);
}

static tb_rc on_welcome(struct ta_client *c, const Tracecollect__V1__Welcome *welcome,
                        enum ta_client_input *out) {
  if (c->state != TA_AT_GREETING) return tb_fail(&c->diag, TB_PROTOCOL, "second WELCOME");
  if (welcome->major != TP_MAJOR)
    return tb_fail(&c->diag, TB_PROTOCOL, "collector speaks protocol %u, not %d", welcome->major,
                   TP_MAJOR);
  /* Must come first: ta_spool_resume() may free records, which ends a thread's sync(); that thread then reads the status. */
  ta_report_welcome(&c->report);
  struct tb_diag diag;
  tb_diag_clear(&diag);
  tb_rc rc = ta_spool_resume(c->spool, welcome->durable_seq, &diag);
  if (rc == TB_NOTFOUND) return restart(c, &diag);
  c->refused = rc == TB_REFUSED;
  if (rc != TB_OK) return tb_fail(&c->diag, rc, "%s", diag.text);
  c->credit_bytes = welcome->credit_bytes;
  c->acked_seq = welcome->durable_seq;
  c->hold.text = NULL;
  c->heartbeat_ns = (welcome->heartbeat_ms != 0 ? welcome->heartbeat_ms : TA_HEARTBEAT_MS) * MS;
  *out = TA_IN_WELCOME;
  return TB_OK;
}

/* While the collector delays us, the connection continues, but more slowly. */
static tb_rc on_ack(struct ta_client *c, const Tracecollect__V1__Ack *ack) {
  uint64_t now = ta_mono_ns();

  if (c->state == TA_AT_GREETING) return tb_fail(&c->diag, TB_PROTOCOL, "ACK before WELCOME");
  if (ack->credit_bytes > c->credit_bytes) c->credit_bytes = ack->credit_bytes;
  const char *over = ack->durable_seq > c->acked_seq ? ta_hold_over(&c->hold, now) : NULL;
  if (over != NULL) ta_report_error_over(&c->report, over);
  c->acked_seq = ack->durable_seq;
  const char *held = ta_hold_note(&c->hold, ack->hold, now);
  if (held != NULL) ta_report_error(&c->report, held);
  return ta_spool_ack(c->spool, ack->durable_seq, &c->diag);
}

static tb_rc on_goaway(struct ta_client *c, const Tracecollect__V1__Goaway *goaway,
                       enum ta_client_input *out) {
  c->away_ns = ta_mono_ns() + goaway->wait_ms * MS;
  tb_fail(&c->diag, TB_END, "collector goes away: %.100s", goaway->reason);
  if (c->state != TA_AT_LEAVING) *out = TA_IN_GOAWAY;
  return TB_OK;
}

static tb_rc on_refuse(struct ta_client *c, const Tracecollect__V1__Refuse *refuse) {
  const ProtobufCEnumValue *code = protobuf_c_enum_descriptor_get_value(
      &tracecollect__v1__refuse_code__descriptor, (int)refuse->code);

  tb_diag_clear(&c->diag);
  if (!refuse->permanent)
    return tb_fail(&c->diag, TB_IO, "collector refuses at present: %s: %.100s",
                   code != NULL ? code->name : "?", refuse->reason);
  c->refused = true;
  return tb_fail(&c->diag, TB_REFUSED, "collector refuses: %s: %.100s",
                 code != NULL ? code->name : "?", refuse->reason);
}

static tb_rc on_snap(struct ta_client *c, const Tracecollect__V1__Snap *snap) {
  if (c->state == TA_AT_GREETING) return tb_fail(&c->diag, TB_PROTOCOL, "SNAP before WELCOME");
  if (snap->id == 0) return tb_fail(&c->diag, TB_PROTOCOL, "SNAP without an id");
  ta__snaps_begin(c, snap->id, snap->last_ns);
  return TB_OK;
}

tb_rc ta__client_act_on(struct ta_client *c, const struct ta_message *message,
                        enum ta_client_input *out) {
  *out = TA_CLIENT_INPUT_COUNT;
  switch (message->kind) {
  case TP_WELCOME: return on_welcome(c, message->welcome, out);
  case TP_ACK: return on_ack(c, message->ack);
  case TP_GOAWAY: return on_goaway(c, message->goaway, out);
  case TP_REFUSE: return on_refuse(c, message->refuse);
  case TP_SNAP: return on_snap(c, message->snap);
  default: break; /* ta_inbound_next() returns no other kinds */
  }
  (void)TB_CHECK(message->kind == TP_SNAP);
  return TB_PROTOCOL;
}
