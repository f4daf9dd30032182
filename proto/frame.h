/* SPDX-License-Identifier: Apache-2.0 */
/* The frame that agent and collector exchange inside TLS (ALPN tracecollect/1).
 *
 * 32 bytes, little endian, then len bytes of payload:
 *
 *   0 u32 len      of the payload, at most TP_FRAME_BYTES_MAX
 *   4 u8  kind     enum tp_kind
 *   5 u8  flags    bit 0 TP_CRITICAL: a receiver that does not know the kind must end the connection
 *   6 u16 reserved 0
 *   8 u64 seq      records: number in the stream, from 1; else 0
 *  16 u64 gen      records: generation, 0 for the stream as a whole; else 0
 *  24 u32 crc      CRC32C of the payload followed by bytes 0..23
 *  28 u32 reserved 0
 *
 * Records (HEADER, BATCH, GENEND, LOSS, CLOSE) are numbered, stored, acked; a BATCH's payload is the program's own bytes.
 * Other kinds are control frames: their payload is a message of frame.proto of at most TP_CONTROL_BYTES_MAX bytes.
 * docs/PROTOCOL.md has the protocol.
 *
 * Memory    none: a frame's payload points into the caller's bytes.
 * Errors    TB_PROTOCOL with a reason in diag: length, unknown critical kind, checksum, reserved
 *           bits, a record without number or a control frame with one.
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

/* Fields of HELLO and WELCOME; majors must be equal. A test defines other values. */
#ifndef TP_MAJOR
#define TP_MAJOR 1
#define TP_MINOR 1
#endif

/* Time of silence after which a peer is gone: 2.75 heartbeats. Two are missing and the third is about to be; so
 * both sides notice within three, and reconnect. */
static inline uint64_t tp_silence(uint64_t heartbeat) {
  return heartbeat / 4 * 11;
}

/* TP_KIND(NAME, number, is a record, sent by) */
#define TP_KINDS(X)                                                                                \
  X(HELLO, 1, false, AGENT)                                                                        \
  X(WELCOME, 2, false, COLLECTOR)                                                                  \
  X(HEADER, 3, true, AGENT)                                                                        \
  X(BATCH, 4, true, AGENT)                                                                         \
  X(GENEND, 5, true, AGENT)                                                                        \
  X(LOSS, 6, true, AGENT)                                                                          \
  X(CLOSE, 7, true, AGENT)                                                                         \
  X(ACK, 8, false, COLLECTOR)                                                                      \
  X(HEARTBEAT, 9, false, BOTH)                                                                     \
  X(GOAWAY, 10, false, COLLECTOR)                                                                  \
  X(REFUSE, 11, false, COLLECTOR)                                                                  \
  X(SNAP, 12, false, COLLECTOR)                                                                    \
  X(SNAPPED, 13, false, AGENT)

#define TP_KIND_CODE(name, num, record, from) TP_##name = (num),
enum tp_kind { TP_KINDS(TP_KIND_CODE) TP_KIND_LIMIT };
#undef TP_KIND_CODE

struct tp_frame {
  enum tp_kind kind;
  uint8_t flags;
  uint64_t seq, gen;
  const unsigned char *payload; /* lent */
  uint32_t len;
  uint32_t payload_crc; /* CRC32C of the payload only; input of GENEND's checksum */
};

bool tp_kind_is_record(unsigned kind);
const char *tp_kind_name(unsigned kind);

/* Writes the header for payload[0..len). The second form uses frame->payload_crc instead of reading the payload,
 * which may then be in several pieces. */
void tp_frame_head(const struct tp_frame *frame, unsigned char out[TP_HEADER_BYTES]);
void tp_frame_head_summed(const struct tp_frame *frame, unsigned char out[TP_HEADER_BYTES]);

/* Changes the sequence number in a record's header without reading its payload. */
void tp_frame_renumber(unsigned char head[TP_HEADER_BYTES], uint64_t seq);

/* Parses one frame at the front of bytes. TB_OK: sets *out and *out_used; TB_AGAIN: at least *out_need bytes in
 * total are required; TB_PROTOCOL. Never reads past n. A kind that is unknown and not critical is returned like
 * others: with seq it is a record to store, without seq a control frame to skip. */
TB_MUST tb_rc tp_frame_take(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                            struct tp_frame *out, size_t *out_used, size_t *out_need);

/* tp_frame_take() in two steps, for a receiver that chooses where the payload goes: open() checks all except the
 * checksum, close() checks the checksum and sets payload and payload_crc. */
TB_MUST tb_rc tp_frame_open(const unsigned char head[TP_HEADER_BYTES], struct tb_diag *diag,
                            struct tp_frame *out);
TB_MUST tb_rc tp_frame_close(struct tp_frame *frame, const unsigned char head[TP_HEADER_BYTES],
                             const unsigned char *payload, struct tb_diag *diag);

#endif
