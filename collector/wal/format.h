/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the log, 8-aligned, little endian:
 *
 *   0 u32 magic    TC_WAL_MAGIC; 0: preallocated and never written
 *   4 u32 len      of the payload
 *   8 u64 lsn      the record's position: number of bytes before it in all files ever written
 *  16 u32 ref      stream, 0 for none
 *  20 u8  kind     enum tp_kind of a stream's record, or enum tc_wal_kind
 *  21 u8  flags    bit 0: a reader that does not know the kind must stop
 *  22 u16 reserved 0
 *  24 u64 seq      number in the stream; GROUP: lsn up to which the log was durable before it
 *  32 u64 gen      generation; GROUP: wall clock in ns
 *  40 payload
 *     u32 crc      CRC32C of all before, with the file's salt as the initial value
 *     zeros up to a multiple of 8
 *
 * A file is named <lsn of its first byte, 16 hex digits>.wal and begins with a SNAPSHOT, whose payload begins with the
 * salt. Records that are committed together begin with a GROUP and are padded to a multiple of 4 KiB in the file. */
#ifndef TC_WAL_FORMAT_H
#define TC_WAL_FORMAT_H

#include <endian.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/result.h"

#define TC_WAL_MAGIC UINT32_C(0x314c4354) /* "TCL1" */

enum { TC_WAL_HEAD_BYTES = 40 };

enum tc_wal_kind {
  TC_WAL_SNAPSHOT = 64,   /* the salt (4 bytes) and a LogSnapshot */
  TC_WAL_GROUP = 65,      /* no payload */
  TC_WAL_STREAM = 66,     /* LogStream: ref and identity of a new stream */
  TC_WAL_SETTLED = 67,    /* LogSettled */
  TC_WAL_PAD = 68,        /* zeros, up to the next group */
  TC_WAL_CHECKPOINT = 69, /* LogCheckpoint */
  TC_WAL_RUN = 70,        /* LogCheckpoint with whole generations; critical */
};

struct tc_wal_head {
  uint64_t lsn, seq, gen;
  uint32_t ref, len;
  uint8_t kind, flags;
};

static inline uint64_t tc_wal_record_bytes(uint32_t len) {
  return (TC_WAL_HEAD_BYTES + (uint64_t)len + 4 + 7) & ~UINT64_C(7);
}

static inline void tc_wal_head_put(const struct tc_wal_head *head,
                                   unsigned char out[TC_WAL_HEAD_BYTES]) {
  uint32_t words[2] = { htole32(TC_WAL_MAGIC), htole32(head->len) };
  uint64_t lsn = htole64(head->lsn), seq = htole64(head->seq), gen = htole64(head->gen);
  uint32_t ref = htole32(head->ref);

  memcpy(out, words, 8);
  memcpy(out + 8, &lsn, 8);
  memcpy(out + 16, &ref, 4);
  out[20] = head->kind;
  out[21] = head->flags;
  out[22] = out[23] = 0;
  memcpy(out + 24, &seq, 8);
  memcpy(out + 32, &gen, 8);
}

static inline uint32_t tc_wal_u32(const unsigned char *p) {
  uint32_t v;
  memcpy(&v, p, 4);
  return le32toh(v);
}

static inline uint64_t tc_wal_u64(const unsigned char *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return le64toh(v);
}

static inline void tc_wal_head_get(const unsigned char *p, struct tc_wal_head *out) {
  *out = (struct tc_wal_head){ .len = tc_wal_u32(p + 4),
                               .lsn = tc_wal_u64(p + 8),
                               .ref = tc_wal_u32(p + 16),
                               .kind = p[20],
                               .flags = p[21],
                               .seq = tc_wal_u64(p + 24),
                               .gen = tc_wal_u64(p + 32) };
}

#endif
