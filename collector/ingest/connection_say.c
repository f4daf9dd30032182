/* SPDX-License-Identifier: Apache-2.0 */
/* Sends control frames. They are small: each is packed on the stack and sent in one TLS record. */
#include <assert.h>
#include <string.h>
#include <time.h>

#include "collector/base/logger.h"
#include "collector/ingest/connection_private.h"

enum { FRAME_BYTES_MAX = 1024, CREDIT_STEPS = 8 };

static void send_message(struct connection *c, enum tp_kind kind, const ProtobufCMessage *message) {
  unsigned char bytes[TP_HEADER_BYTES + FRAME_BYTES_MAX];
  size_t len = protobuf_c_message_get_packed_size(message);

  assert(len <= FRAME_BYTES_MAX && "our own messages are small");
  protobuf_c_message_pack(message, bytes + TP_HEADER_BYTES);
  struct tp_frame frame = {
    .kind = kind, .flags = TP_CRITICAL, .payload = bytes + TP_HEADER_BYTES, .len = (uint32_t)len
  };
  tp_frame_head(&frame, bytes);
  c->spoke_ms = tc__now_ms(c->set);
  tc_tls_send(c->tls, bytes, TP_HEADER_BYTES + len);
}

static uint64_t credit_now(const struct connection *c) {
  return c->released + c->credit;
}

void tc__say_welcome(struct connection *c) {
  const struct tc_config *config = c->set->env.config;
  Tracecollect__V1__Welcome m = TRACECOLLECT__V1__WELCOME__INIT;

  m.major = TP_MAJOR;
  m.minor = TP_MINOR;
  m.durable_seq = c->durable_seq;
  m.credit_bytes = c->credit_reported = credit_now(c);
  m.heartbeat_ms = (uint32_t)c->heartbeat_ms;
  m.level = config->top_sync;
  m.generation_bytes_max = config->agents_generation_bytes_max;
  send_message(c, TP_WELCOME, &m.base);
}

/* Acks also report credit; credit alone gets a frame only in steps of an eighth. This cannot starve an agent. While an agent
 * has no credit, its records in our memory are larger than the unreported rest; when they are freed, the credit is reported. */
static bool credit_is_worth_a_frame(const struct connection *c) {
  return credit_now(c) - c->credit_reported >= c->credit / CREDIT_STEPS;
}

void tc__say_ack(struct connection *c) {
  Tracecollect__V1__Ack m = TRACECOLLECT__V1__ACK__INIT;

  if (!c->ack_due && !credit_is_worth_a_frame(c)) return;
  if (tc__is_over(c) || tc_tls_unsent(c->tls) > 0) return; /* on_drained() sends it */
  c->ack_due = false;
  c->credit_reported = m.credit_bytes = credit_now(c);
  m.durable_seq = c->durable_seq;
  m.hold = c->hold;
  c->hold = TRACECOLLECT__V1__HOLD__HOLD_NONE;
  tc_ingest_credit(&c->ingest, m.credit_bytes);
  tc_metric_add(&c->set->env.metrics->acks_sent_total, 1);
  send_message(c, TP_ACK, &m.base);
}

void tc__say_heartbeat(struct connection *c) {
  Tracecollect__V1__Heartbeat m = TRACECOLLECT__V1__HEARTBEAT__INIT;
  struct timespec wall;

  clock_gettime(CLOCK_REALTIME, &wall);
  m.wall_ns = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
  m.mono_ns = uv_hrtime();
  send_message(c, TP_HEARTBEAT, &m.base);
}

void tc__say_snap(struct connection *c, const struct tc_snap_order *order) {
  Tracecollect__V1__Snap m = TRACECOLLECT__V1__SNAP__INIT;

  if (c->state >= TC__DRAINING) return; /* answered with TC_SNAP_GONE when the connection ends */
  m.id = order->id;
  m.last_ns = order->last_ns;
  send_message(c, TP_SNAP, &m.base);
}

void tc__say_goaway(struct connection *c, const char *reason) {
  Tracecollect__V1__Goaway m = TRACECOLLECT__V1__GOAWAY__INIT;
  char text[32];

  snprintf(text, sizeof text, "%s", reason);
  m.reason = text;
  send_message(c, TP_GOAWAY, &m.base);
}

void tc__end(struct connection *c, const char *why) {
  tc__connection_becomes(c, TC__CLOSING);
  tc__waits_no_more(c);
  tc_tls_close(c->tls, why);
}

void tc__say_refuse(struct connection *c, Tracecollect__V1__RefuseCode code, bool permanent,
                    const char *reason) {
  Tracecollect__V1__Refuse m = TRACECOLLECT__V1__REFUSE__INIT;
  char text[TC_ESCAPE_MAX + 1], who[TC_ESCAPE_MAX + 1];

  tc_escape(text, reason, strlen(reason));
  tc_log_about(tc_log_subject_of(c->identity), TC_WARN, "agents",
               "peer=%s identity=\"%s\": refused: %s", c->peer,
               tc_escape(who, c->identity, strlen(c->identity)), text);
  tc_metric_add(&c->set->env.metrics->peers_refused_total, 1);
  m.code = code;
  m.permanent = permanent;
  m.reason = text;
  send_message(c, TP_REFUSE, &m.base);
  tc__end(c, text);
}
