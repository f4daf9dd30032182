/* SPDX-License-Identifier: Apache-2.0 */
/* Scans 64 bytes of numbers (LEB128) at a time. The results are words with one bit for each byte: where numbers end, how many
 * end, and which ones are the n-th of each four. */
#ifndef TW_BLOCK_H
#define TW_BLOCK_H

#include <stdbool.h>

#include "wire/varint.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { TW_BLOCK_BYTES = 64 };
#define TW_EACH_BYTE UINT64_C(0x0101010101010101)

/* The lowest bit stands for the first byte. */
struct tw_block {
  uint64_t ends;  /* bytes that end a number: their top bit is clear */
  uint64_t large; /* bytes that end a number and are at least the limit */
};

/* Returns the top bits of eight bytes as the lowest eight bits. */
static inline uint64_t tw_top_bits(uint64_t word) {
  return ((word >> 7 & TW_EACH_BYTE) * UINT64_C(0x0102040810204080)) >> 56;
}

/* For processors without vector instructions. limit: 0 to 128. */
static inline struct tw_block tw_block_by_words(const unsigned char *bytes, unsigned limit) {
  struct tw_block block = { 0, 0 };

  for (unsigned i = 0; i < TW_BLOCK_BYTES; i += 8) {
    uint64_t word = tw_load8(bytes + i), low = word & 0x7f * TW_EACH_BYTE;
    block.ends |= tw_top_bits(~word) << i;
    block.large |= tw_top_bits(~word & (low + (0x80 - limit) * TW_EACH_BYTE)) << i;
  }
  return block;
}

/* Masks for comparisons, made once and used for many blocks. limit: 0 to 128. */
#ifdef __SSE2__
struct tw_limit {
  __m128i below;
};

static inline struct tw_limit tw_limit(unsigned limit) {
  return (struct tw_limit){ _mm_set1_epi8((char)((int)limit - 1)) };
}

static inline uint64_t tw_block_tops(const unsigned char *bytes, __m128i below, uint64_t *large) {
  __m128i some = _mm_loadu_si128((const __m128i *)(const void *)bytes);

  /* Bytes with their top bit set are negative in this comparison, so they are never large. */
  *large = (unsigned)_mm_movemask_epi8(_mm_cmpgt_epi8(some, below));
  return (unsigned)_mm_movemask_epi8(some);
}

static inline struct tw_block tw_block(const unsigned char *bytes, struct tw_limit limit) {
  const __m128i below = limit.below;
  uint64_t large[4], tops[4];

  tops[0] = tw_block_tops(bytes, below, &large[0]);
  tops[1] = tw_block_tops(bytes + 16, below, &large[1]);
  tops[2] = tw_block_tops(bytes + 32, below, &large[2]);
  tops[3] = tw_block_tops(bytes + 48, below, &large[3]);
  return (struct tw_block){ ~(tops[0] | tops[1] << 16 | tops[2] << 32 | tops[3] << 48),
                            large[0] | large[1] << 16 | large[2] << 32 | large[3] << 48 };
}
#else
struct tw_limit {
  unsigned limit;
};

static inline struct tw_limit tw_limit(unsigned limit) {
  return (struct tw_limit){ limit };
}

static inline struct tw_block tw_block(const unsigned char *bytes, struct tw_limit limit) {
  return tw_block_by_words(bytes, limit.limit);
}
#endif

/* Byte i of the result is the number of bits set in bytes 0 to i; so the top byte is the total. */
static inline uint64_t tw_count_up(uint64_t bits) {
  bits -= bits >> 1 & 0x55 * TW_EACH_BYTE;
  bits = (bits & 0x33 * TW_EACH_BYTE) + (bits >> 2 & 0x33 * TW_EACH_BYTE);
  return ((bits + (bits >> 4)) & 0x0f * TW_EACH_BYTE) * TW_EACH_BYTE;
}

/* Returns the position of the nth set bit, n from 1. counts: tw_count_up(bits). */
static inline unsigned tw_nth_bit(uint64_t bits, uint64_t counts, unsigned n) {
  uint64_t reached = ((counts | 0x80 * TW_EACH_BYTE) - n * TW_EACH_BYTE) & 0x80 * TW_EACH_BYTE;
  unsigned byte = (unsigned)__builtin_ctzll(reached) & ~7u;
  unsigned before = (unsigned)(counts << 8 >> byte) & 0x7f;

  for (bits >>= byte; ++before < n;) bits &= bits - 1;
  return byte + (unsigned)__builtin_ctzll(bits);
}

/* Moves the lowest bits of `bits` to the positions of the bits set in `places` (the instruction PDEP). */
static inline uint64_t tw_deposit(uint64_t bits, uint64_t places) {
#ifdef __x86_64__
  __asm__("pdepq %2, %1, %0" : "=r"(bits) : "r"(bits), "r"(places));
#else
  (void)places;
#endif
  return bits;
}

/* Moves the bits at those positions to the lowest bits (the instruction PEXT); the inverse of tw_deposit(). */
static inline uint64_t tw_extract(uint64_t bits, uint64_t places) {
#ifdef __x86_64__
  __asm__("pextq %2, %1, %0" : "=r"(bits) : "r"(bits), "r"(places));
#else
  (void)places;
#endif
  return bits;
}

static inline unsigned tw_count(uint64_t bits) {
#ifdef __x86_64__
  __asm__("popcntq %1, %0" : "=r"(bits) : "r"(bits) : "cc");
#endif
  return (unsigned)bits;
}

/* Bit i of the result is set if an odd number of bits 0 to i is set. */
static inline uint64_t tw_odd_up(uint64_t bits) {
  bits ^= bits << 1;
  bits ^= bits << 2;
  bits ^= bits << 4;
  bits ^= bits << 8;
  bits ^= bits << 16;
  return bits ^ bits << 32;
}

#endif
