/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of as many bits as they need, one behind the other.
 *
 *   gamma    of v > 0 with z bits after the leading one: z zeros, a one, the z bits. 1 takes one bit, 2 and 3 take three. From 2^28 on:
 *            28 zeros, a one, 64 bits.
 *   number   six bits say how many bits it has; then those after the leading one. From 2^57 on: 63, then 64 bits.
 *
 * A reader loads eight bytes at once, and a writer stores as many: TO_BITS_PADDING bytes after the last bit must exist. */
#ifndef TO_WINDOW_BITS_H
#define TO_WINDOW_BITS_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/result.h"

enum {
  TO_BITS_PADDING = 8,
  TO_BITS_AT_ONCE = 57, /* to_bits_get(), to_bits_put() */
  TO_BITS_GAMMA_FAR = 28,
  TO_BITS_NUMBER_FAR = 63
};

struct to_bits {
  const unsigned char *bytes;
  size_t at;
};
struct to_bits_out {
  unsigned char *bytes;
  size_t at;
};

static inline uint64_t to__bits_peek(const struct to_bits *in) {
  uint64_t word;

  memcpy(&word, in->bytes + in->at / 8, sizeof(word));
  return le64toh(word) >> in->at % 8;
}

static inline uint64_t to_bits_get(struct to_bits *in, unsigned n) {
  uint64_t value = to__bits_peek(in) & ((UINT64_C(1) << n) - 1);

  in->at += n;
  return value;
}

static inline uint64_t to__bits_get_far(struct to_bits *in) {
  uint64_t low = to_bits_get(in, 32);

  return to_bits_get(in, 32) << 32 | low;
}

static inline uint64_t to_bits_gamma(struct to_bits *in) {
  uint64_t word = to__bits_peek(in);
  unsigned zeros = (unsigned)__builtin_ctzll(word | UINT64_C(1) << TO_BITS_GAMMA_FAR);

  if (TB_UNLIKELY(zeros == TO_BITS_GAMMA_FAR)) {
    in->at += TO_BITS_GAMMA_FAR + 1;
    return to__bits_get_far(in);
  }
  in->at += 2 * zeros + 1;
  uint64_t leading = UINT64_C(1) << zeros;
  return leading | (word >> (zeros + 1) & (leading - 1));
}

static inline uint64_t to_bits_number(struct to_bits *in) {
  unsigned bits = (unsigned)to_bits_get(in, 6);

  if (bits == 0) return 0;
  if (TB_UNLIKELY(bits == TO_BITS_NUMBER_FAR)) return to__bits_get_far(in);
  return UINT64_C(1) << (bits - 1) | to_bits_get(in, bits - 1);
}

/* value < 2^n, n <= TO_BITS_AT_ONCE */
static inline void to_bits_put(struct to_bits_out *out, uint64_t value, unsigned n) {
  unsigned char *byte = out->bytes + out->at / 8;
  unsigned used = out->at % 8;
  uint64_t word = htole64((*byte & ((1U << used) - 1)) | value << used);

  memcpy(byte, &word, sizeof(word));
  out->at += n;
}

static inline void to__bits_put_far(struct to_bits_out *out, uint64_t value) {
  to_bits_put(out, value & UINT32_MAX, 32);
  to_bits_put(out, value >> 32, 32);
}

static inline void to_bits_put_gamma(struct to_bits_out *out, uint64_t value) {
  unsigned zeros = 63 - (unsigned)__builtin_clzll(value);
  uint64_t leading = UINT64_C(1) << zeros;

  if (TB_LIKELY(zeros < TO_BITS_GAMMA_FAR)) {
    to_bits_put(out, leading | (value & (leading - 1)) << (zeros + 1), 2 * zeros + 1);
    return;
  }
  to_bits_put(out, UINT64_C(1) << TO_BITS_GAMMA_FAR, TO_BITS_GAMMA_FAR + 1);
  to__bits_put_far(out, value);
}

static inline void to_bits_put_number(struct to_bits_out *out, uint64_t value) {
  unsigned bits = value == 0 ? 0 : 64 - (unsigned)__builtin_clzll(value);

  if (TB_UNLIKELY(bits > TO_BITS_AT_ONCE)) {
    to_bits_put(out, TO_BITS_NUMBER_FAR, 6);
    to__bits_put_far(out, value);
    return;
  }
  to_bits_put(out, bits, 6);
  if (bits > 1) to_bits_put(out, value & ((UINT64_C(1) << (bits - 1)) - 1), bits - 1);
}

#endif
