/* SPDX-License-Identifier: Apache-2.0 */
/* Unsigned LEB128: seven bits a byte, low ones first, the top bit means that another byte follows.
 *
 * At most ten bytes, the tenth at most 1. Padding (trailing zero groups) is allowed: Go's runtime
 * pads lengths that it fills in later.
 */
#ifndef TW_VARINT_H
#define TW_VARINT_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { TW_VARINT_BYTES_MAX = 10 };

/* Returns the bytes used; 0 if cut off at end; -1 if wider than 64 bits. */
static inline int tw_varint_read(const unsigned char *pos, const unsigned char *end,
                                 uint64_t *out) {
  uint64_t value = 0;

  if (pos < end && *pos < 0x80) { /* most are small */
    *out = *pos;
    return 1;
  }
  for (int i = 0; i < TW_VARINT_BYTES_MAX; i++) {
    if (pos + i == end) return 0;
    unsigned char byte = pos[i];
    if (i == TW_VARINT_BYTES_MAX - 1 && byte > 1) return -1;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *out = value;
      return i + 1;
    }
  }
  return -1;
}

/* Loads eight bytes, all of which must be readable, as a little-endian number. */
static inline uint64_t tw_load8(const unsigned char *pos) {
  uint64_t word;

  memcpy(&word, pos, sizeof word);
  return le64toh(word);
}

/* Returns the top bit of each byte that ends a number. */
static inline uint64_t tw_ends(uint64_t word) {
  return ~word & UINT64_C(0x8080808080808080);
}

/* Joins the groups of seven bits in each byte to a number. */
static inline uint64_t tw_join_sevens(uint64_t word) {
  word &= UINT64_C(0x7f7f7f7f7f7f7f7f);
  word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
  word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
  return (word & UINT64_C(0x0fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* Works as tw_join_sevens(), for four bytes. */
static inline unsigned tw_join_four(unsigned word) {
  return (word & 0x7f) | (word >> 1 & 0x7f << 7) | (word >> 2 & 0x7f << 14) |
         (word >> 3 & 0x7f << 21);
}

/* Returns how many bytes tw_varint_write() writes, at most TW_VARINT_BYTES_MAX. */
static inline size_t tw_varint_bytes(uint64_t value) {
  return (70u - (unsigned)__builtin_clzll(value | 1)) / 7;
}

static inline size_t tw_varint_write(unsigned char *out, uint64_t value) {
  size_t n = 0;

  for (; value >= 0x80; value >>= 7) out[n++] = (unsigned char)(value | 0x80);
  out[n++] = (unsigned char)value;
  return n;
}

#endif
