/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as lower case hexadecimal digits. */
#ifndef TB_BASE_HEX_H
#define TB_BASE_HEX_H

#include <stddef.h>

/* Writes 2 n digits and NUL; answers out. */
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

#endif
