/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction takes 8 bytes in 3 cycles but begins a new one each cycle: so three stretches are
 * summed side by side and joined, 0.05 ms a MB against 0.13 one after the other. Without SSE4.2 it goes
 * bit by bit, which only an old machine pays. */
#include "base/crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>

#define HW __attribute__((target("sse4.2,pclmul"))) static inline

enum { LANE_BYTES = 1024 };

HW uint64_t load_word(const unsigned char *p) {
  uint64_t word;

  memcpy(&word, p, sizeof word);
  return word;
}

/* Times x^n, where factor is x^(n - 33): the product without carries counts one power of x too many in
 * this bit order, and the instruction that reduces it multiplies by x^32. */
HW uint32_t times(uint64_t crc, uint32_t factor) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                         _mm_cvtsi64_si128((long long)factor), 0);
  return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

HW uint32_t crc_hw(uint32_t crc, const unsigned char *p, size_t n) {
  const uint32_t one_lane = 0x170076fa,
                 two_lanes = 0xa51b6135; /* x^(8 * 1024 - 33), x^(8 * 2048 - 33) */
  uint64_t c = crc;

  for (; n >= 3 * LANE_BYTES; p += 3 * LANE_BYTES, n -= 3 * LANE_BYTES) {
    uint64_t second = 0, third = 0;
    for (const unsigned char *q = p; q < p + LANE_BYTES; q += 8) {
      c = _mm_crc32_u64(c, load_word(q));
      second = _mm_crc32_u64(second, load_word(q + LANE_BYTES));
      third = _mm_crc32_u64(third, load_word(q + 2 * LANE_BYTES));
    }
    c = times(c, two_lanes) ^ times(second, one_lane) ^ third;
  }
  for (; n >= 8; p += 8, n -= 8) c = _mm_crc32_u64(c, load_word(p));
  for (; n > 0; p++, n--) c = _mm_crc32_u8((uint32_t)c, *p);
  return (uint32_t)c;
}

static int have_hw(void) {
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}
#else
static uint32_t crc_hw(uint32_t crc, const unsigned char *p, size_t n) {
  (void)p;
  (void)n;
  return crc;
}

static int have_hw(void) {
  return 0;
}
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

/* x^(8 * 2^k) modulo the polynomial, bit 31 standing for x^0: what 2^k zero bytes do to a checksum. */
static const uint32_t zero_bytes[31] = {
  0x00800000, 0x00008000, 0x82f63b78, 0x6ea2d55c, 0x18b8ea18, 0x510ac59a, 0xb82be955, 0xb8fdb1e7,
  0x88e56f72, 0x74c360a4, 0xe4172b16, 0x0d65762a, 0x35d73a62, 0x28461564, 0xbf455269, 0xe2ea32dc,
  0xfe7740e6, 0xf946610b, 0x3c204f8f, 0x538586e3, 0x59726915, 0x734d5309, 0xbc1ac763, 0x7d0722cc,
  0xd289cabe, 0xe94ca9bc, 0x05b74f3f, 0xa51e1f42, 0x40000000, 0x20000000, 0x08000000,
};

static uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;

  for (; a != 0; a <<= 1) {
    if (a & UINT32_C(0x80000000)) product ^= b;
    b = b >> 1 ^ (UINT32_C(0x82F63B78) & -(b & 1));
  }
  return product;
}

uint32_t tb_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t b_bytes) {
  /* The order of x is 2^31 - 1, so x^(8 * 2^31) is x^(8 * 2^0): the table starts again. */
  for (unsigned k = 0; b_bytes != 0; b_bytes >>= 1, k = (k + 1) % 31)
    if (b_bytes & 1) crc_a = multiply(zero_bytes[k], crc_a);
  return crc_a ^ crc_b;
}
