/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/utf8.h"

#include <stdint.h>
#include <string.h>

/* Returns the size of the UTF-8 character at s; 0 if it is not one. NUL is not allowed. */
static size_t character_bytes(const unsigned char *s, size_t n) {
  static const uint32_t least[] = { 0, 1, 0x80, 0x800, 0x10000 };
  size_t len = s[0] < 0x80 ? 1 : s[0] < 0xC0 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
  uint32_t point = len == 1 ? s[0] : s[0] & (0x7Fu >> len);

  if (len == 0 || len > n || s[0] >= 0xF8) return 0;
  for (size_t i = 1; i < len; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
    point = point << 6 | (s[i] & 0x3F);
  }
  if (point < least[len] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return 0;
  return len;
}

size_t tp_utf8_whole(const void *text, size_t n) {
  const unsigned char *s = text;
  size_t at = 0, len;

  while (at < n && (len = character_bytes(s + at, n - at)) > 0) at += len;
  return at;
}

size_t tp_utf8_repair(const void *text, size_t n, char *out) {
  static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */
  const unsigned char *s = text;
  const char *begin = out;

  for (size_t at = 0; at < n;) {
    size_t len = character_bytes(s + at, n - at);

    memcpy(out, len > 0 ? (const char *)s + at : replacement, len > 0 ? len : 3);
    out += len > 0 ? len : 3;
    at += len > 0 ? len : 1;
  }
  return (size_t)(out - begin);
}
