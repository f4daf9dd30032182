/* SPDX-License-Identifier: Apache-2.0 */
/* RFC 1952 around RFC 1951's stored blocks. */
#include "agent/probe/gzip.h"

#include <stdint.h>

enum { BLOCK_BYTES_MAX = 65535 };

static uint32_t crc32_of(const unsigned char *bytes, size_t n) {
  uint32_t crc = UINT32_MAX;

  for (size_t i = 0; i < n; i++) {
    crc ^= bytes[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (UINT32_C(0xedb88320) & -(crc & 1));
  }
  return ~crc;
}

/* Writes width bytes of a number, little-endian. */
static void write_number(FILE *out, uint32_t value, int width) {
  for (int i = 0; i < width; i++) fputc((int)(value >> 8 * i & 0xff), out);
}

bool ta_gzip_store(FILE *out, const void *bytes, size_t n) {
  static const unsigned char head[10] = { 0x1f, 0x8b, 8, [9] = 3 }; /* deflate; Unix */
  const unsigned char *pos = bytes;
  size_t left = n;

  fwrite(head, 1, sizeof head, out);
  do {
    uint32_t block = left < BLOCK_BYTES_MAX ? (uint32_t)left : BLOCK_BYTES_MAX;
    fputc(block == left ? 1 : 0, out); /* 1: the last block */
    write_number(out, block, 2);
    write_number(out, ~block, 2);
    fwrite(pos, 1, block, out);
    pos += block;
    left -= block;
  } while (left > 0);
  write_number(out, crc32_of(bytes, n), 4);
  write_number(out, (uint32_t)n, 4);
  return ferror(out) == 0;
}
