/* SPDX-License-Identifier: Apache-2.0 */
/* With SSE4.2 about 8 bytes in 3 cycles, 0.1 ms a MB: far below TLS's 0.22. Without it bit by
 * bit, which only an old machine pays. */
#include "base/crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t crc_hw(uint32_t crc, const unsigned char *p, size_t n) {
  uint64_t c = crc;

  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    memcpy(&word, p, 8);
    c = _mm_crc32_u64(c, word);
  }
  for (; n > 0; p++, n--) c = _mm_crc32_u8((uint32_t)c, *p);
  return (uint32_t)c;
}

static int have_hw(void) { return __builtin_cpu_supports("sse4.2"); }
#else
static uint32_t crc_hw(uint32_t crc, const unsigned char *p, size_t n) {
  (void)p;
  (void)n;
  return crc;
}

static int have_hw(void) { return 0; }
#endif

static uint32_t crc_bits(uint32_t crc, const unsigned char *p, size_t n) {
  for (; n > 0; p++, n--) {
    crc ^= *p;
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ UINT32_C(0x82F63B78) : crc >> 1;
  }
  return crc;
}

uint32_t tb_crc32c(uint32_t crc, const void *bytes, size_t n) {
  crc = ~crc;
  crc = have_hw() ? crc_hw(crc, bytes, n) : crc_bits(crc, bytes, n);
  return ~crc;
}
