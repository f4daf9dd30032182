/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's ingest, with a simulated loop and store. The input is a script: valid frames, invalid frames, raw
 * bytes, a store that is full for a while, credit. For any script records are delivered once each and in order, never
 * more than the credit allows; all memory is released; and the outcome is the same if the bytes arrive one, or seven,
 * at a time. */
#include <string.h>

#include "base/buf.h"
#include "collector/ingest/record_pool.h"
#include "collector/ingest/session.h"
#include "fuzz/fuzz.h"

enum { PAYLOAD_MAX = 3000, HELD_MAX = 1 << 20 };

struct script {
  const uint8_t *at, *end;
};

struct session {
  struct tc_ingest in;
  struct tb_diag diag;
  struct tb_mem mem;
  struct tb_buf said; /* not taken yet */
  size_t piece;
  bool full, over;
  uint64_t said_seq;             /* of the record said last */
  uint64_t heard_seq;            /* of the record heard last */
  uint64_t record_bytes, credit; /* heard and known; allowed */
  uint64_t hash;
};

static void note(struct session *s, uint64_t value) {
  s->hash = (s->hash ^ value) * UINT64_C(0x100000001b3);
}

/* ---- what the loop hears ---- */

static tb_rc on_hello(void *self, const Tracecollect__V1__Hello *hello) {
  struct session *s = self;

  if (s->full) return TB_AGAIN;
  note(s, strlen(hello->service));
  return TB_OK;
}

static void count(struct session *s, uint64_t bytes) {
  s->record_bytes += bytes;
  FUZZ_CHECK(s->record_bytes <= s->credit);
}

static tb_rc on_record(void *self, struct tc_record *record) {
  struct session *s = self;

  if (s->full) return TB_AGAIN;
  FUZZ_CHECK(record->seq == s->heard_seq + 1 && record->len <= TP_RECORD_BYTES_MAX);
  FUZZ_CHECK(tp_kind_is_record(record->kind) || record->kind >= TP_KIND_LIMIT);
  s->heard_seq = record->seq;
  count(s, (uint64_t)TP_HEADER_BYTES + record->len);
  note(s, record->seq << 8 | record->kind);
  for (uint32_t i = 0; i < record->len; i++) note(s, record->payload[i]);
  record->free(record);
  return TB_OK;
}

static void on_known(void *self, uint64_t bytes) {
  count(self, bytes);
  note(self, bytes);
}

static void on_heartbeat(void *self, const Tracecollect__V1__Heartbeat *heartbeat) {
  note(self, heartbeat->mono_ns);
}

/* ---- what the script says ---- */

static uint8_t next_byte(struct script *script) {
  return script->at < script->end ? *script->at++ : 0;
}

static void offer(struct session *s) {
  size_t at = 0;
  tb_rc rc;

  if (s->said.data == NULL) return;
  do {
    size_t left = s->said.len - at, used;
    rc = tc_ingest_bytes(&s->in, s->said.data + at, left < s->piece ? left : s->piece, &used);
    FUZZ_CHECK(used <= left);
    at += used;
  } while (rc == TB_OK && at < s->said.len);
  memmove(s->said.data, s->said.data + at, s->said.len - at);
  s->said.len -= at;
  if (rc == TB_OK || rc == TB_AGAIN) return;
  FUZZ_CHECK((rc == TB_PROTOCOL || rc == TB_BUDGET) && s->diag.text[0] != '\0');
  note(s, rc);
  s->over = true;
}

static void say_raw(struct session *s, struct script *script) {
  for (unsigned n = next_byte(script) % 64; n > 0; n--) {
    unsigned char byte = next_byte(script);
    tb_buf_add(&s->said, &byte, 1);
  }
}

static void say_frame(struct session *s, struct tp_frame *frame, const unsigned char *payload,
                      size_t len) {
  unsigned char head[TP_HEADER_BYTES];

  frame->payload = payload;
  frame->len = (uint32_t)len;
  tp_frame_head(frame, head);
  tb_buf_add(&s->said, head, sizeof head);
  tb_buf_add(&s->said, payload, len);
}

/* Sends a record: mostly the next one; some are repeated, some leave a gap. */
static void say_record(struct session *s, struct script *script) {
  static const uint8_t kinds[] = { TP_HEADER, TP_BATCH, TP_GENEND, TP_LOSS, TP_CLOSE, 200 };
  unsigned char payload[PAYLOAD_MAX];
  uint8_t kind = kinds[next_byte(script) % sizeof kinds], jump = next_byte(script);
  size_t len = (next_byte(script) | (size_t)next_byte(script) << 8) % PAYLOAD_MAX;

  if (jump < 16)
    s->said_seq -= s->said_seq > jump ? jump : 0;
  else if (jump < 24)
    s->said_seq += jump - 14;
  else
    s->said_seq++;
  if (s->said_seq == 0) s->said_seq = 1;
  struct tp_frame frame = { .kind = kind, .seq = s->said_seq, .gen = next_byte(script) };
  for (size_t i = 0; i < len; i++) payload[i] = (unsigned char)(s->said_seq * 31 + i);
  say_frame(s, &frame, payload, len);
}

static void say_control(struct session *s, struct script *script) {
  struct tp_frame frame = { .kind = next_byte(script) % 16, .flags = next_byte(script) & 1 };
  unsigned char payload[64];
  size_t len = next_byte(script) % sizeof payload;

  for (size_t i = 0; i < len; i++) payload[i] = next_byte(script);
  say_frame(s, &frame, payload, len);
}

static void say_hello(struct session *s) {
  Tracecollect__V1__Hello hello = TRACECOLLECT__V1__HELLO__INIT;
  struct tp_frame frame = { .kind = TP_HELLO, .flags = TP_CRITICAL };
  unsigned char payload[64];
  char service[] = "shop";

  hello.major = 1;
  hello.service = service;
  say_frame(s, &frame, payload, tracecollect__v1__hello__pack(&hello, payload));
}

static void say_heartbeat(struct session *s, struct script *script) {
  Tracecollect__V1__Heartbeat heartbeat = TRACECOLLECT__V1__HEARTBEAT__INIT;
  struct tp_frame frame = { .kind = TP_HEARTBEAT };
  unsigned char payload[64];

  heartbeat.mono_ns = next_byte(script);
  say_frame(s, &frame, payload, tracecollect__v1__heartbeat__pack(&heartbeat, payload));
}

/* Answers HELLO as the store does; each later call grants more credit. */
static void answer(struct session *s, struct script *script) {
  uint64_t durable = next_byte(script) & 3, credit = (uint64_t)next_byte(script) << 6;

  s->credit += credit;
  if (s->in.state == TC_INGEST_ATTACHING) {
    s->heard_seq = durable;
    tc_ingest_attached(&s->in, 5, durable, s->credit);
  } else if (s->in.state == TC_INGEST_STREAMING) {
    tc_ingest_credit(&s->in, s->credit);
  }
}

static void play(struct session *s, struct script script) {
  while (script.at < script.end && !s->over) {
    switch (next_byte(&script) & 7) {
    case 0: say_raw(s, &script); break;
    case 1:
    case 2: say_record(s, &script); break;
    case 3: say_control(s, &script); break;
    case 4: say_hello(s); break;
    case 5: say_heartbeat(s, &script); break;
    case 6: s->full = !s->full; break;
    default: answer(s, &script); break;
    }
    offer(s);
  }
}

static uint64_t story(const uint8_t *data, size_t size, size_t piece) {
  struct tc_ingest_sink sink = { NULL, on_hello, on_record, on_known, on_heartbeat, NULL };
  struct session s = { .piece = piece };

  sink.self = &s;
  tb_mem_init(&s.mem, tb_mem_libc, NULL, SIZE_MAX);
  tb_buf_init(&s.said, &s.mem);
  tb_diag_clear(&s.diag);
  tc_ingest_init(&s.in, 1, HELD_MAX, sink, &s.diag);
  play(&s, (struct script){ data, data + size });
  tc_ingest_fini(&s.in);
  tb_buf_fini(&s.said);
  FUZZ_CHECK(tc_records_held_bytes() == 0);
  return s.hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint64_t whole = story(data, size, SIZE_MAX);

  FUZZ_CHECK(story(data, size, 7) == whole);
  FUZZ_CHECK(story(data, size, 1) == whole);
  return 0;
}
