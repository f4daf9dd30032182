/* SPDX-License-Identifier: Apache-2.0 */
/* The collector's bytes, in pieces of every size, are read as the messages that the collector
 * packed. */
#include <criterion/criterion.h>
#include <string.h>

#include "agent/net/inbound.h"

struct wire {
  unsigned char bytes[16 << 10];
  size_t n;
};

static void put(struct wire *w, unsigned kind, const void *payload, size_t len) {
  struct tp_frame frame = { .kind = kind, .payload = payload, .len = (uint32_t)len };

  cr_assert_leq(w->n + TP_HEADER_BYTES + len, sizeof w->bytes);
  tp_frame_head(&frame, w->bytes + w->n);
  if (len > 0) memcpy(w->bytes + w->n + TP_HEADER_BYTES, payload, len);
  w->n += TP_HEADER_BYTES + len;
}

static void put_message(struct wire *w, enum tp_kind kind, const ProtobufCMessage *message) {
  unsigned char payload[8 << 10];

  cr_assert_leq(protobuf_c_message_get_packed_size(message), sizeof payload);
  put(w, kind, payload, protobuf_c_message_pack(message, payload));
}

static void put_ack(struct wire *w, uint64_t seq) {
  Tracecollect__V1__Ack ack = TRACECOLLECT__V1__ACK__INIT;

  ack.durable_seq = seq;
  put_message(w, TP_ACK, &ack.base);
}

static void add(struct ta_inbound *in, const unsigned char *bytes, size_t n) {
  size_t room;
  unsigned char *at = ta_inbound_room(in, &room);

  cr_assert_geq(room, n);
  memcpy(at, bytes, n);
  ta_inbound_add(in, n);
}

/* Expects the first message to be refused with these words. */
static void refused(const struct wire *w, const char *words) {
  struct ta_inbound in;
  struct ta_message message;
  struct tb_diag diag;

  tb_diag_clear(&diag);
  ta_inbound_init(&in);
  add(&in, w->bytes, w->n < sizeof in.bytes ? w->n : sizeof in.bytes);
  cr_assert_eq(ta_inbound_next(&in, &diag, &message), TB_PROTOCOL);
  cr_assert_str_eq(diag.text, words);
  ta_inbound_fini(&in);
}

Test(inbound, messages_come_whole_from_pieces_of_any_size) {
  Tracecollect__V1__Refuse refuse = TRACECOLLECT__V1__REFUSE__INIT;
  struct wire w = { .n = 0 };

  refuse.reason = (char[]){ "not today" };
  put_ack(&w, 7);
  put(&w, TP_HEARTBEAT, NULL, 0);
  put(&w, TP_KIND_LIMIT + 3, "later", 5);
  put_ack(&w, 8);
  put_message(&w, TP_REFUSE, &refuse.base);
  for (size_t piece = 1; piece <= w.n; piece++) {
    struct ta_inbound in;
    struct ta_message message;
    struct tb_diag diag;
    unsigned count = 0;

    ta_inbound_init(&in);
    for (size_t at = 0; at < w.n; at += piece) {
      tb_rc rc;
      add(&in, w.bytes + at, at + piece < w.n ? piece : w.n - at);
      while ((rc = ta_inbound_next(&in, &diag, &message)) == TB_OK) {
        count++;
        cr_assert_eq(message.kind, count < 3 ? TP_ACK : TP_REFUSE);
        if (count < 3)
          cr_assert_eq(message.ack->durable_seq, 6 + count);
        else
          cr_assert_str_eq(message.refuse->reason, "not today");
      }
      cr_assert_eq(rc, TB_AGAIN);
    }
    cr_assert_eq(count, 3, "%u messages from pieces of %zu bytes", count, piece);
    ta_inbound_fini(&in);
    cr_assert_eq(in.mem.bytes, 0);
  }
}

Test(inbound, a_new_connection_begins_with_nothing_of_the_old) {
  struct wire w = { .n = 0 };
  struct ta_inbound in;
  struct ta_message message;
  struct tb_diag diag;

  put_ack(&w, 1);
  ta_inbound_init(&in);
  add(&in, w.bytes, w.n - 1);
  ta_inbound_clear(&in);
  add(&in, w.bytes, w.n);
  cr_assert_eq(ta_inbound_next(&in, &diag, &message), TB_OK);
  cr_assert_eq(message.ack->durable_seq, 1);
  cr_assert_eq(ta_inbound_next(&in, &diag, &message), TB_AGAIN);
  ta_inbound_fini(&in);
}

Test(inbound, the_largest_frame_fits_and_one_byte_more_is_refused) {
  unsigned char bytes[TA_INBOUND_BYTES + 1] = { 0 };
  struct wire fits = { .n = 0 }, large = { .n = 0 };

  put(&fits, TP_ACK, bytes, TA_INBOUND_BYTES);
  /* field 0 is invalid: the frame was read whole */
  refused(&fits, "collector's ACK cannot be read");
  put(&large, TP_ACK, bytes, sizeof bytes);
  refused(&large, "collector's frame of 4097 bytes, limit 4096");
}

Test(inbound, kinds_that_only_an_agent_sends_are_refused) {
  struct wire w = { .n = 0 };

  put(&w, TP_HELLO, NULL, 0);
  refused(&w, "collector sends HELLO");
}

/* 4 KiB of empty unknown fields would take 96 KiB unpacked. */
Test(inbound, unpacking_takes_no_more_than_its_budget) {
  unsigned char bytes[TA_INBOUND_BYTES];
  struct wire w = { .n = 0 };

  for (size_t i = 0; i + 2 < sizeof bytes; i += 3) {
    bytes[i] = 0xfa; /* field 999, no bytes */
    bytes[i + 1] = 0x3e;
    bytes[i + 2] = 0;
  }
  put(&w, TP_ACK, bytes, sizeof bytes / 3 * 3);
  refused(&w, "collector's ACK cannot be read");
}
