/* SPDX-License-Identifier: Apache-2.0 */
/* The frame: what agent and collector say to each other inside TLS (ALPN tracecollect/1).
 *
 * 32 bytes, little endian, then len bytes of payload:
 *
 *   0 u32 len      of the payload, at most TP_FRAME_BYTES_MAX
 *   4 u8  kind     enum tp_kind
 *   5 u8  flags    bit 0 TP_CRITICAL: a receiver that does not know the kind must end the connection
 *   6 u16 reserved 0
 *   8 u64 seq      records: their number in the stream, from 1; else 0
 *  16 u64 gen      records: the generation they belong to, 0 for the stream as a whole; else 0
 *  24 u32 crc      CRC32C of bytes 0..23 and of the payload
 *  28 u32 reserved 0
 *
 * Records (HEADER, BATCH, GENEND, LOSS, CLOSE) are numbered, stored, acked; a BATCH's payload is the
 * program's own bytes, raw. All other kinds are control: their payload is a message of frame.proto of
 * at most TP_CONTROL_BYTES_MAX bytes. docs/PROTOCOL.md says who sends what when.
 *
 * Memory    tp_frame_reader borrows a buffer of its owner; frames point into it until the next call.
 * Errors    TB_PROTOCOL with a reason in diag: length, unknown critical kind, checksum, reserved bits.
 */
#ifndef TP_FRAME_H
#define TP_FRAME_H

#include "base/result.h"

enum {
  TP_HEADER_BYTES = 32,
  TP_FRAME_BYTES_MAX = 1 << 20,
  TP_CONTROL_BYTES_MAX = 16 << 10,
  TP_RECORD_BYTES_MAX = 72 << 10, /* a batch with its header is at most 64 KiB + 41 */
  TP_CRITICAL = 1,
};

#define TP_ALPN "tracecollect/1"

/* TP_KIND(NAME, number, is a record, sent by) */
#define TP_KINDS(X)            \
  X(HELLO, 1, false, AGENT)    \
  X(WELCOME, 2, false, COLLECTOR) \
  X(HEADER, 3, true, AGENT)    \
  X(BATCH, 4, true, AGENT)     \
  X(GENEND, 5, true, AGENT)    \
  X(LOSS, 6, true, AGENT)      \
  X(CLOSE, 7, true, AGENT)     \
  X(ACK, 8, false, COLLECTOR)  \
  X(HEARTBEAT, 9, false, BOTH) \
  X(GOAWAY, 10, false, COLLECTOR) \
  X(REFUSE, 11, false, COLLECTOR)

#define TP_KIND_CODE(name, num, record, from) TP_##name = (num),
enum tp_kind { TP_KINDS(TP_KIND_CODE) TP_KIND_LIMIT };
#undef TP_KIND_CODE

struct tp_frame {
  enum tp_kind kind;
  uint8_t flags;
  uint64_t seq, gen;
  const unsigned char *payload; /* lent */
  uint32_t len;
};

bool tp_kind_is_record(unsigned kind);
const char *tp_kind_name(unsigned kind);

/* Writes the header for a frame whose payload is len bytes; payload may be in pieces elsewhere: crc is
 * taken over payload[0..len). */
void tp_frame_head(const struct tp_frame *frame, unsigned char out[TP_HEADER_BYTES]);

/* Takes one frame from the front of bytes. TB_OK: *out and *out_used; TB_AGAIN: *out_need more bytes
 * are wanted than n (at least); TB_PROTOCOL. Never reads past n. */
TB_MUST tb_rc tp_frame_take(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                            struct tp_frame *out, size_t *out_used, size_t *out_need);

#endif
