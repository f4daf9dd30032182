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
 *  24 u32 crc      CRC32C of the payload followed by bytes 0..23
 *  28 u32 reserved 0
 *
 * Records (HEADER, BATCH, GENEND, LOSS, CLOSE) are numbered, stored, acked; a BATCH's payload is
 * the program's own bytes, raw. All other kinds are control: their payload is a message of
 * frame.proto of at most TP_CONTROL_BYTES_MAX bytes. docs/PROTOCOL.md says who sends what when.
 *
 * Memory    none: a frame's payload points into the bytes it was taken from.
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

/* The fields of HELLO and WELCOME; majors must be equal. A test builds programs that say something else. */
#ifndef TP_MAJOR
#define TP_MAJOR 1
#define TP_MINOR 1
#endif

/* A peer that is silent for so long is gone: two heartbeats are missing, and the third is about to. Before its time
 * is up, so that both sides have noticed within three, and a new connection is on its way. */
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
  uint32_t payload_crc; /* CRC32C of the payload alone: what GENEND sums up */
};

bool tp_kind_is_record(unsigned kind);
const char *tp_kind_name(unsigned kind);

/* Writes the header of a frame whose payload is payload[0..len). The second form trusts
 * frame->payload_crc instead of passing over the payload, which may then lie in pieces elsewhere.
 */
void tp_frame_head(const struct tp_frame *frame, unsigned char out[TP_HEADER_BYTES]);
void tp_frame_head_summed(const struct tp_frame *frame, unsigned char out[TP_HEADER_BYTES]);

/* Gives a record another number in its header as it goes out; its payload is not read. */
void tp_frame_renumber(unsigned char head[TP_HEADER_BYTES], uint64_t seq);

/* Takes one frame from the front of bytes. TB_OK: *out and *out_used; TB_AGAIN: at least *out_need
 * bytes in all are wanted; TB_PROTOCOL. Never reads past n. A kind that is not known and not
 * critical comes out like any other: with seq it is a record to store, without it a control frame
 * to skip. */
TB_MUST tb_rc tp_frame_take(const unsigned char *bytes, size_t n, struct tb_diag *diag,
                            struct tp_frame *out, size_t *out_used, size_t *out_need);

/* The same in two steps, for a receiver that wants to choose where the payload goes: open() checks
 * everything but the checksum, close() checks that and sets payload and payload_crc. */
TB_MUST tb_rc tp_frame_open(const unsigned char head[TP_HEADER_BYTES], struct tb_diag *diag,
                            struct tp_frame *out);
TB_MUST tb_rc tp_frame_close(struct tp_frame *frame, const unsigned char head[TP_HEADER_BYTES],
                             const unsigned char *payload, struct tb_diag *diag);

#endif
