/* SPDX-License-Identifier: Apache-2.0 */
/* Writes protobuf fields straight to memory, for messages of which there are hundreds of thousands a second. Numbers that are
 * zero are left out, as proto3 does. The caller reserves the room: a number takes at most TP_FIELD_BYTES; a bytes field takes
 * at most TP_FIELD_BYTES and its length. */
#ifndef TP_PUT_H
#define TP_PUT_H

#include <string.h>

#include "wire/varint.h"

enum {
  TP_FIELD_BYTES = 2 * TW_VARINT_BYTES_MAX,
  TP_FIELD_NUMBER = 0,
  TP_FIELD_FIXED64 = 1,
  TP_FIELD_BYTES_OF = 2
};

static inline unsigned char *tp_put_varint(unsigned char *out, uint64_t value) {
  return out + tw_varint_write(out, value);
}

static inline unsigned char *tp_put_key(unsigned char *out, unsigned field, unsigned kind) {
  return tp_put_varint(out, field << 3 | kind);
}

static inline unsigned char *tp_put_number(unsigned char *out, unsigned field, uint64_t value) {
  if (value == 0) return out;
  return tp_put_varint(tp_put_key(out, field, TP_FIELD_NUMBER), value);
}

/* sint64: -1 takes one byte. */
static inline unsigned char *tp_put_signed(unsigned char *out, unsigned field, int64_t value) {
  return tp_put_number(out, field, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline unsigned char *tp_put_length(unsigned char *out, unsigned field, size_t n) {
  return tp_put_varint(tp_put_key(out, field, TP_FIELD_BYTES_OF), n);
}

static inline unsigned char *tp_put_bytes(unsigned char *out, unsigned field, const void *bytes,
                                          size_t n) {
  out = tp_put_length(out, field, n);
  if (n > 0) memcpy(out, bytes, n);
  return out + n;
}

static inline size_t tp_varint_bytes(uint64_t value) {
  size_t n = 1;

  for (; value >= 0x80; value >>= 7) n++;
  return n;
}

#endif
