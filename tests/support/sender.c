/* SPDX-License-Identifier: Apache-2.0 */
#include "support/sender.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/crc32c.h"
#include "proto/frame.pb-c.h"

static const unsigned char zeroes[TT_SENDER_BATCH_MAX];

static bool take_welcome(struct tt_sender *s, const struct tp_frame *frame) {
  Tracecollect__V1__Welcome *m =
      tracecollect__v1__welcome__unpack(NULL, frame->len, frame->payload);

  if (m == NULL) return false;
  s->credit = m->credit_bytes;
  s->heartbeat_ms = (int)m->heartbeat_ms;
  tracecollect__v1__welcome__free_unpacked(m, NULL);
  return true;
}

static bool take_ack(struct tt_sender *s, const struct tp_frame *frame) {
  Tracecollect__V1__Ack *m = tracecollect__v1__ack__unpack(NULL, frame->len, frame->payload);

  if (m == NULL) return false;
  s->credit = m->credit_bytes;
  s->durable = m->durable_seq;
  s->holds |= 1U << m->hold;
  tracecollect__v1__ack__free_unpacked(m, NULL);
  return true;
}

static bool take_refusal(struct tt_sender *s, const struct tp_frame *frame) {
  Tracecollect__V1__Refuse *m = tracecollect__v1__refuse__unpack(NULL, frame->len, frame->payload);

  snprintf(s->refusal, sizeof s->refusal, "%s", m != NULL ? m->reason : "");
  snprintf(s->peer.why, sizeof s->peer.why, "refused: %.180s", s->refusal);
  if (m != NULL) tracecollect__v1__refuse__free_unpacked(m, NULL);
  return false;
}

static bool read_one(struct tt_sender *s) {
  struct tp_frame frame;

  if (!tt_peer_read_frame(&s->peer, &frame)) return false;
  switch (frame.kind) {
  case TP_WELCOME: return take_welcome(s, &frame);
  case TP_ACK: return take_ack(s, &frame);
  case TP_REFUSE: return take_refusal(s, &frame);
  default: return true;
  }
}

/* Sends heartbeats while the collector waits for its disk. */
static bool await_one(struct tt_sender *s) {
  struct pollfd fd = { .fd = s->peer.fd, .events = POLLIN };

  while (SSL_pending(s->peer.ssl) == 0 && poll(&fd, 1, s->heartbeat_ms) == 0)
    if (!tt_peer_send_frame(&s->peer, TP_HEARTBEAT, 0, 0, NULL, 0)) return false;
  return read_one(s);
}

static bool say_hello(struct tt_sender *s, const char *service, const char *instance) {
  Tracecollect__V1__Hello m = TRACECOLLECT__V1__HELLO__INIT;
  Tracecollect__V1__Counters counters = TRACECOLLECT__V1__COUNTERS__INIT;
  unsigned char bytes[512];
  char names[2][65], version[] = "test";

  snprintf(names[0], sizeof names[0], "%s", service);
  snprintf(names[1], sizeof names[1], "%s", instance);
  m.major = 1;
  m.stream = (ProtobufCBinaryData){ sizeof s->stream, s->stream };
  m.service = names[0];
  m.instance = names[1];
  m.agent_version = version;
  m.counters = &counters;
  return tt_peer_send_frame(&s->peer, TP_HELLO, 0, 0, bytes,
                            tracecollect__v1__hello__pack(&m, bytes));
}

bool tt_sender_open(struct tt_sender *s, const struct tt_peer_terms *terms, const char *service,
                    const char *instance) {
  *s = (struct tt_sender){ 0 };
  if (getrandom(s->stream, sizeof s->stream, 0) != (ssize_t)sizeof s->stream) return false;
  if (!tt_peer_open(&s->peer, terms) || !say_hello(s, service, instance)) return false;
  while (s->credit == 0)
    if (!read_one(s)) return false;
  return true;
}

bool tt_sender_flush(struct tt_sender *s) {
  while (s->sent + s->n > s->credit)
    if (!await_one(s)) return false;
  if (!tt_peer_send(&s->peer, s->chunk, s->n)) return false;
  s->sent += s->n;
  s->n = 0;
  return true;
}

static bool add(struct tt_sender *s, enum tp_kind kind, uint64_t gen, const void *payload,
                size_t n) {
  struct tp_frame frame = { .kind = kind,
                            .flags = TP_CRITICAL,
                            .seq = ++s->seq,
                            .gen = gen,
                            .payload = payload,
                            .len = (uint32_t)n };

  if (s->n + TP_HEADER_BYTES + n > TT_SENDER_CHUNK_BYTES && !tt_sender_flush(s)) return false;
  tp_frame_head(&frame, s->chunk + s->n);
  if (n > 0) memcpy(s->chunk + s->n + TP_HEADER_BYTES, payload, n);
  s->n += TP_HEADER_BYTES + n;
  return true;
}

bool tt_sender_header(struct tt_sender *s) {
  return add(s, TP_HEADER, 0, "go 1.26 trace\0\0\0", 16);
}

bool tt_sender_batch(struct tt_sender *s, uint64_t gen, unsigned bytes) {
  s->produced_batches++;
  s->produced_bytes += bytes;
  return add(s, TP_BATCH, gen, zeroes, bytes);
}

bool tt_sender_end(struct tt_sender *s, uint64_t gen, uint64_t batches, unsigned bytes) {
  Tracecollect__V1__GenerationEnd end = TRACECOLLECT__V1__GENERATION_END__INIT;
  unsigned char buf[64], sum[4];
  uint32_t crc = tb_crc32c(0, zeroes, bytes);

  for (int i = 0; i < 4; i++) sum[i] = (unsigned char)(crc >> 8 * i);
  for (uint64_t i = 0; i < batches; i++) end.crc = tb_crc32c(end.crc, sum, 4);
  end.batches = batches;
  end.bytes = batches * bytes;
  return add(s, TP_GENEND, gen, buf, tracecollect__v1__generation_end__pack(&end, buf));
}

bool tt_sender_generation(struct tt_sender *s, uint64_t gen, unsigned batches, unsigned bytes) {
  for (unsigned i = 0; i < batches; i++)
    if (!tt_sender_batch(s, gen, bytes)) return false;
  return tt_sender_end(s, gen, batches, bytes);
}

bool tt_sender_loss(struct tt_sender *s, uint64_t gen, unsigned batches, unsigned bytes) {
  Tracecollect__V1__Loss loss = TRACECOLLECT__V1__LOSS__INIT;
  unsigned char buf[128];

  loss.first_gen = loss.last_gen = gen;
  loss.batches = batches;
  loss.bytes = bytes;
  loss.reason = TRACECOLLECT__V1__LOSS_REASON__LOSS_SPOOL_FULL;
  s->produced_batches += batches;
  s->produced_bytes += bytes;
  s->lost_batches += batches;
  s->lost_bytes += bytes;
  return add(s, TP_LOSS, gen, buf, tracecollect__v1__loss__pack(&loss, buf));
}

static Tracecollect__V1__Counters counters_of(const struct tt_sender *s) {
  Tracecollect__V1__Counters counters = TRACECOLLECT__V1__COUNTERS__INIT;

  counters.produced_batches = counters.reported_batches = s->produced_batches;
  counters.produced_bytes = counters.reported_bytes = s->produced_bytes;
  counters.lost_batches = s->lost_batches;
  counters.lost_bytes = s->lost_bytes;
  counters.reported_seq = s->seq;
  return counters;
}

bool tt_sender_end_stream(struct tt_sender *s) {
  Tracecollect__V1__Close m = TRACECOLLECT__V1__CLOSE__INIT;
  Tracecollect__V1__Counters counters = counters_of(s);
  unsigned char buf[256];
  char reason[] = "closed";

  counters.reported_seq = counters.reported_batches = counters.reported_bytes = 0;
  m.counters = &counters;
  m.reason = reason;
  return add(s, TP_CLOSE, 0, buf, tracecollect__v1__close__pack(&m, buf));
}

bool tt_sender_sync(struct tt_sender *s) {
  Tracecollect__V1__Heartbeat m = TRACECOLLECT__V1__HEARTBEAT__INIT;
  Tracecollect__V1__Counters counters = counters_of(s);
  unsigned char buf[256];

  m.counters = &counters;
  if (!tt_sender_flush(s)) return false;
  while (s->durable < s->seq)
    if (!await_one(s)) return false;
  return tt_peer_send_frame(&s->peer, TP_HEARTBEAT, 0, 0, buf,
                            tracecollect__v1__heartbeat__pack(&m, buf));
}

void tt_sender_leave(struct tt_sender *s) {
  struct tp_frame frame;

  SSL_shutdown(s->peer.ssl);
  shutdown(s->peer.fd, SHUT_WR);
  while (tt_peer_read_frame(&s->peer, &frame)) continue;
  tt_peer_close(&s->peer);
}

void tt_sender_close(struct tt_sender *s) {
  tt_peer_close(&s->peer);
}
