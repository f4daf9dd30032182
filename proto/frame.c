/* SPDX-License-Identifier: Apache-2.0 */
/* The checksum covers the payload first and then the header: computing it also yields the batch's
 * own checksum, which GENEND needs, so each side reads the bytes once. */
#include "proto/frame.h"

#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"

enum { CRC_AT = 24, RESERVED_AT = 28 };

#define TP_KIND_ROW(name, num, record, from) [num] = { #name, record },
static const struct {
  const char *name;
  bool record;
} kinds[TP_KIND_LIMIT] = { TP_KINDS(TP_KIND_ROW) };
#undef TP_KIND_ROW

static void put16(unsigned char *p, uint16_t v) {
  p[0] = (unsigned char)v;
  p[1] = (unsigned char)(v >> 8);
}

static void put32(unsigned char *p, uint32_t v) {
  put16(p, (uint16_t)v);
  put16(p + 2, (uint16_t)(v >> 16));
}

static void put64(unsigned char *p, uint64_t v) {
  put32(p, (uint32_t)v);
  put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const unsigned char *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const unsigned char *p) {
  return (uint64_t)get32(p) | (uint64_t)get32(p + 4) << 32;
}

bool tp_kind_is_record(unsigned kind) {
  return kind < TP_KIND_LIMIT && kinds[kind].record;
}

const char *tp_kind_name(unsigned kind) {
  return kind < TP_KIND_LIMIT && kinds[kind].name != NULL ? kinds[kind].name : "unknown";
}

void tp_frame_head(const struct tp_frame *frame, unsigned char out[TP_HEADER_BYTES]) {
  struct tp_frame whole = *frame;

  whole.payload_crc = tb_crc32c(0, frame->payload, frame->len);
  tp_frame_head_summed(&whole, out);
}

void tp_frame_head_summed(const struct tp_frame *frame, unsigned char out[TP_HEADER_BYTES]) {
  put32(out, frame->len);
  out[4] = (unsigned char)frame->kind;
  out[5] = frame->flags;
  put16(out + 6, 0);
  put64(out + 8, frame->seq);
  put64(out + 16, frame->gen);
  put32(out + CRC_AT, tb_crc32c(frame->payload_crc, out, CRC_AT));
  put32(out + RESERVED_AT, 0);
}

/* CRC is linear: if only the last bytes change, the checksum changes by the XOR of the CRCs of old
 * and new last bytes. */
void tp_frame_renumber(unsigned char head[TP_HEADER_BYTES], uint64_t seq) {
  uint32_t before = tb_crc32c(0, head, CRC_AT);

  put64(head + 8, seq);
  put32(head + CRC_AT, get32(head + CRC_AT) ^ before ^ tb_crc32c(0, head, CRC_AT));
}

/* Checks a header before its payload arrives: a peer must not make us wait for, or hold, more than
 * the kind allows. */
static tb_rc check_head(const struct tp_frame *f, const unsigned char *head, struct tb_diag *diag) {
  bool known = f->kind < TP_KIND_LIMIT && kinds[f->kind].name != NULL;

  if (head[6] != 0 || head[7] != 0 || get32(head + RESERVED_AT) != 0)
    return tb_fail(diag, TB_PROTOCOL, "frame has reserved bits set");
  if (f->flags & ~TP_CRITICAL)
    return tb_fail(diag, TB_PROTOCOL, "frame has unknown flags 0x%02x", f->flags);
  if (!known && (f->flags & TP_CRITICAL))
    return tb_fail(diag, TB_PROTOCOL, "frame of unknown critical kind %u", (unsigned)f->kind);

  uint32_t max = !known                  ? (uint32_t)TP_FRAME_BYTES_MAX
                 : kinds[f->kind].record ? (uint32_t)TP_RECORD_BYTES_MAX
                                         : (uint32_t)TP_CONTROL_BYTES_MAX;
  if (f->len > max)
    return tb_fail(diag, TB_PROTOCOL, "%s frame of %" PRIu32 " bytes, limit %" PRIu32,
                   tp_kind_name(f->kind), f->len, max);
  if (known && kinds[f->kind].record != (f->seq != 0))
    return tb_fail(diag, TB_PROTOCOL, "%s frame with sequence number %" PRIu64,
                   tp_kind_name(f->kind), f->seq);
  return TB_OK;
}

tb_rc tp_frame_open(const unsigned char head[TP_HEADER_BYTES], struct tb_diag *diag,
                    struct tp_frame *out) {
  struct tp_frame f = { .len = get32(head),
                        .kind = head[4],
                        .flags = head[5],
                        .seq = get64(head + 8),
                        .gen = get64(head + 16) };

  TB_TRY(check_head(&f, head, diag));
  *out = f;
  return TB_OK;
}

tb_rc tp_frame_close(struct tp_frame *frame, const unsigned char head[TP_HEADER_BYTES],
                     const unsigned char *payload, struct tb_diag *diag) {
  uint32_t payload_crc = tb_crc32c(0, payload, frame->len);

  if (tb_crc32c(payload_crc, head, CRC_AT) != get32(head + CRC_AT))
    return tb_fail(diag, TB_PROTOCOL, "%s frame fails its checksum", tp_kind_name(frame->kind));
  frame->payload = payload;
  frame->payload_crc = payload_crc;
  return TB_OK;
}

tb_rc tp_frame_take(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                    struct tp_frame *out, size_t *out_used, size_t *out_need) {
  struct tp_frame f;

  if (n < TP_HEADER_BYTES) {
    *out_need = TP_HEADER_BYTES;
    return TB_AGAIN;
  }
  TB_TRY(tp_frame_open(bytes, diag, &f));
  if (n - TP_HEADER_BYTES < f.len) {
    *out_need = (size_t)TP_HEADER_BYTES + f.len;
    return TB_AGAIN;
  }
  TB_TRY(tp_frame_close(&f, bytes, bytes + TP_HEADER_BYTES, diag));
  *out = f;
  *out_used = (size_t)TP_HEADER_BYTES + f.len;
  return TB_OK;
}
