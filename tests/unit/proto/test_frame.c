/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "base/crc32c.h"
#include "proto/frame.h"

static const unsigned char trace_bytes[] = "a batch as the program wrote it";

static size_t build(enum tp_kind kind, uint64_t seq, uint64_t gen, unsigned char *out) {
  struct tp_frame f = {
    .kind = kind, .seq = seq, .gen = gen, .payload = trace_bytes, .len = sizeof trace_bytes
  };

  tp_frame_head(&f, out);
  memcpy(out + TP_HEADER_BYTES, trace_bytes, sizeof trace_bytes);
  return TP_HEADER_BYTES + sizeof trace_bytes;
}

/* Gives a frame with a changed header the right checksum. */
static void seal(unsigned char *frame, size_t len) {
  uint32_t crc = tb_crc32c(tb_crc32c(0, frame + TP_HEADER_BYTES, len), frame, 24);

  for (int i = 0; i < 4; i++) frame[24 + i] = (unsigned char)(crc >> 8 * i);
}

static tb_rc take(const unsigned char *bytes, size_t n, struct tb_diag *diag, struct tp_frame *f) {
  size_t used = 0, need = 0;

  tb_diag_clear(diag);
  return tp_frame_take(bytes, n, diag, f, &used, &need);
}

Test(frame, what_goes_in_comes_out) {
  unsigned char bytes[200];
  struct tb_diag diag;
  struct tp_frame f;
  size_t used, need, n = build(TP_BATCH, 77, UINT64_C(1) << 40, bytes);

  tb_diag_clear(&diag);
  cr_assert_eq(tp_frame_take(bytes, sizeof bytes, &diag, &f, &used, &need), TB_OK);
  cr_assert_eq(used, n);
  cr_assert_eq(f.kind, TP_BATCH);
  cr_assert_eq(f.seq, 77);
  cr_assert_eq(f.gen, UINT64_C(1) << 40);
  cr_assert_eq(f.len, sizeof trace_bytes);
  cr_assert_eq(memcmp(f.payload, trace_bytes, f.len), 0);
  cr_assert_eq(f.payload_crc, tb_crc32c(0, trace_bytes, sizeof trace_bytes));
}

Test(frame, the_bytes_on_the_wire_never_change) {
  static const unsigned char expected[TP_HEADER_BYTES] = {
    32, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
  };
  unsigned char bytes[200], sealed[TP_HEADER_BYTES];

  cr_assert_eq(sizeof trace_bytes, 32);
  build(TP_BATCH, 2, 3, bytes);
  memcpy(sealed, expected, sizeof sealed);
  uint32_t crc = tb_crc32c(tb_crc32c(0, trace_bytes, sizeof trace_bytes), expected, 24);
  for (int i = 0; i < 4; i++) sealed[24 + i] = (unsigned char)(crc >> 8 * i);
  cr_assert_eq(memcmp(bytes, sealed, sizeof sealed), 0);
}

Test(frame, a_frame_gets_another_number_without_its_payload) {
  static const uint64_t numbers[] = { 1, 2, 255, UINT64_C(1) << 40, UINT64_MAX };
  unsigned char bytes[200], other[200];

  build(TP_BATCH, 77, 3, bytes);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    tp_frame_renumber(bytes, numbers[i]);
    size_t n = build(TP_BATCH, numbers[i], 3, other);
    cr_assert_eq(memcmp(bytes, other, n), 0);
  }
}

Test(frame, a_short_frame_asks_for_what_it_needs_and_nothing_else) {
  unsigned char bytes[200];
  struct tb_diag diag;
  struct tp_frame f;
  size_t used, need, n = build(TP_BATCH, 1, 1, bytes);

  tb_diag_clear(&diag);
  for (size_t have = 0; have < n; have++) {
    cr_assert_eq(tp_frame_take(bytes, have, &diag, &f, &used, &need), TB_AGAIN);
    cr_assert_eq(need, have < TP_HEADER_BYTES ? (size_t)TP_HEADER_BYTES : n);
  }
}

Test(frame, every_flipped_bit_is_seen) {
  unsigned char bytes[200];
  struct tb_diag diag;
  struct tp_frame f;
  size_t n = build(TP_BATCH, 9, 4, bytes);

  for (size_t bit = 0; bit < n * 8; bit++) {
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    tb_rc rc = take(bytes, n, &diag, &f);
    cr_assert(rc == TB_PROTOCOL || (rc == TB_AGAIN && bit < 32), "bit %zu went through", bit);
    bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
  }
}

Test(frame, a_length_over_the_limit_is_refused_before_its_bytes_come) {
  unsigned char bytes[TP_HEADER_BYTES];
  struct tb_diag diag;
  struct tp_frame f = { .kind = TP_BATCH, .seq = 1, .gen = 1, .len = TP_RECORD_BYTES_MAX + 1 };

  tp_frame_head_summed(&f, bytes);
  cr_assert_eq(take(bytes, sizeof bytes, &diag, &f), TB_PROTOCOL);
  cr_assert_str_eq(diag.text, "BATCH frame of 73729 bytes, limit 73728");

  f = (struct tp_frame){ .kind = TP_ACK, .len = TP_CONTROL_BYTES_MAX + 1 };
  tp_frame_head_summed(&f, bytes);
  cr_assert_eq(take(bytes, sizeof bytes, &diag, &f), TB_PROTOCOL);
  cr_assert_str_eq(diag.text, "ACK frame of 16385 bytes, limit 16384");
}

Test(frame, records_carry_a_number_and_control_frames_none) {
  unsigned char bytes[200];
  struct tb_diag diag;
  struct tp_frame f;
  size_t n = build(TP_BATCH, 0, 1, bytes);

  cr_assert_eq(take(bytes, n, &diag, &f), TB_PROTOCOL);
  n = build(TP_ACK, 5, 0, bytes);
  cr_assert_eq(take(bytes, n, &diag, &f), TB_PROTOCOL);
  cr_assert_str_eq(diag.text, "ACK frame with sequence number 5");
}

Test(frame, an_unknown_kind_passes_unless_it_is_critical) {
  unsigned char bytes[200];
  struct tb_diag diag;
  struct tp_frame f;
  size_t n = build((enum tp_kind)200, 5, 0, bytes);

  cr_assert_eq(take(bytes, n, &diag, &f), TB_OK);
  cr_assert_eq((unsigned)f.kind, 200);
  cr_assert_str_eq(tp_kind_name(f.kind), "unknown");
  bytes[5] = TP_CRITICAL;
  seal(bytes, sizeof trace_bytes);
  cr_assert_eq(take(bytes, n, &diag, &f), TB_PROTOCOL);
  cr_assert_str_eq(diag.text, "frame of unknown critical kind 200");
}

Test(frame, reserved_bits_must_be_zero) {
  static const size_t places[] = { 5, 6, 7, 28, 29, 30, 31 };
  unsigned char bytes[200];
  struct tb_diag diag;
  struct tp_frame f;

  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    size_t n = build(TP_BATCH, 1, 1, bytes);
    bytes[places[i]] = 0x80;
    seal(bytes, sizeof trace_bytes);
    cr_assert_eq(take(bytes, n, &diag, &f), TB_PROTOCOL, "byte %zu", places[i]);
  }
}

Test(frame, only_the_five_records_are_records) {
  for (unsigned kind = 0; kind < 300; kind++)
    cr_assert_eq(tp_kind_is_record(kind), kind >= TP_HEADER && kind <= TP_CLOSE, "%u", kind);
}
