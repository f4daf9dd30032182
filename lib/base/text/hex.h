/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as hexadecimal digits: lower case when written, either when read. */
#ifndef TB_BASE_HEX_H
#define TB_BASE_HEX_H

#include <stdbool.h>
#include <stddef.h>

/* Writes 2 n digits and NUL; returns out. */
static inline char *tb_hex(const void *bytes, size_t n, char *out) {
  static const char digits[] = "0123456789abcdef";
  const unsigned char *byte = bytes;

  for (size_t i = 0; i < n; i++) {
    out[2 * i] = digits[byte[i] >> 4];
    out[2 * i + 1] = digits[byte[i] & 15];
  }
  out[2 * n] = '\0';
  return out;
}

/* Returns the digit's value, or -1. */
static inline int tb_hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns false if text does not begin with 2 n digits. */
static inline bool tb_unhex(const char *text, unsigned char *out, size_t n) {
  for (size_t i = 0; i < n; i++) {
    int high = tb_hex_digit(text[2 * i]), low = high < 0 ? -1 : tb_hex_digit(text[2 * i + 1]);
    if (low < 0) return false;
    out[i] = (unsigned char)(high << 4 | low);
  }
  return true;
}

#endif
