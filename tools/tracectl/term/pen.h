/* SPDX-License-Identifier: Apache-2.0 */
/* Writes text directly to memory, for lines that are printed by the million: the caller reserves room (tk_out_room()) for the
 * longest possible line, so that no part checks again.
 *
 * Each function returns the end of the text. Whole words are copied: up to TK_PEN_SLACK bytes after the end may be
 * overwritten.
 */
#ifndef TK_TERM_PEN_H
#define TK_TERM_PEN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum { TK_PEN_SLACK = 32, TK_PEN_DECIMAL_MAX = 20 };

/* A string literal. */
#define TK_PEN(at, literal)                                                                        \
  ((char *)memcpy((at), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

/* A short text with its length, copied in one piece. */
struct tk_word {
  char text[TK_PEN_SLACK - 1];
  uint8_t len;
};

/* Joins three texts to a word, cut off if they are too long. */
struct tk_word tk_word(const char *before, const char *text, const char *behind);

static inline char *tk_pen_word(char *at, const struct tk_word *word) {
  memcpy(at, word, sizeof *word);
  return at + word->len;
}

static inline char *tk_pen_byte(char *at, char byte) {
  *at = byte;
  return at + 1;
}

/* Returns the eight digits of a number below 100 000 000, the first in the lowest byte. Halves, quarters
 * and digits are divided in parallel, by multiplication. */
static inline uint64_t tk_pen_eight(uint64_t value) {
  uint64_t halves = value / 10000 | value % 10000 << 32;
  uint64_t hundreds = (halves * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
  uint64_t pairs = hundreds | (halves - 100 * hundreds) << 16;
  uint64_t tens = (pairs * 103 >> 10) & UINT64_C(0x000f000f000f000f);

  return tens | (pairs - 10 * tens) << 8;
}

/* Writes the digits without leading zeros, `zeros` in number. */
static inline char *tk_pen_digits(char *at, uint64_t digits, unsigned zeros) {
  uint64_t text = htole64((digits | UINT64_C(0x3030303030303030)) >> 8 * zeros);

  memcpy(at, &text, sizeof text);
  return at + sizeof text - zeros;
}

/* For 0 < value < 100 000 000, mostly four digits at most. */
static inline char *tk_pen_short(char *at, uint64_t value) {
  uint64_t digits;

  if (value < 10000) {
    uint64_t hundreds = value * 10486 >> 20, pairs = hundreds | (value - 100 * hundreds) << 16;
    uint64_t tens = (pairs * 103 >> 10) & 0x000f000f;
    digits = (tens | (pairs - 10 * tens) << 8) << 32;
  } else {
    digits = tk_pen_eight(value);
  }
  return tk_pen_digits(at, digits, (unsigned)__builtin_ctzll(digits) / 8);
}

static inline char *tk_pen_u64(char *at, uint64_t value) {
  const uint64_t eight = 100000000;

  if (value < 10) return tk_pen_byte(at, (char)('0' + value));
  if (value < eight) return tk_pen_short(at, value);
  uint64_t high = value / eight;
  if (high < eight) {
    at = tk_pen_short(at, high);
  } else {
    at = tk_pen_short(at, high / eight);
    at = tk_pen_digits(at, tk_pen_eight(high % eight), 0);
  }
  return tk_pen_digits(at, tk_pen_eight(value % eight), 0);
}

static inline char *tk_pen_i64(char *at, int64_t value) {
  if (value >= 0) return tk_pen_u64(at, (uint64_t)value);
  return tk_pen_u64(tk_pen_byte(at, '-'), -(uint64_t)value);
}

static inline char *tk_pen_hex(char *at, uint64_t value) {
  unsigned digits = value == 0 ? 1 : (unsigned)(67 - __builtin_clzll(value)) / 4;

  for (unsigned i = digits; i > 0; value >>= 4) at[--i] = "0123456789abcdef"[value & 15];
  return at + digits;
}

#endif
