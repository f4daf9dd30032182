/* SPDX-License-Identifier: Apache-2.0 */
/* The crc32 instruction takes 3 cycles for 8 bytes, but one can start each cycle. So three stretches are
 * summed in parallel and joined: 0.05 ms a MB instead of 0.13. Without SSE4.2: bit by bit. */
#include "base/crc32c.h"

#include <stdbool.h>
#include <string.h>

#include "base/cpu.h"

/* The effect of 2^k zero bytes on a checksum: x^(8 * 2^k - 33) modulo the polynomial; bit 31 is x^0. times()
 * explains the 33. The order of x is 2^31 - 1, so x^(8 * 2^31) equals x^(8 * 2^0) and the table wraps around. */
static const uint32_t zero_bytes[31] = {
  0xbf818109, 0x780d5a4d, 0x05ec76f1, 0x00000001, 0x493c7d27, 0xba4fc28e, 0x9e4addf8, 0x0d3b6092,
  0xb9e02b86, 0xdd7e3b0c, 0x170076fa, 0xa51b6135, 0x82f89c77, 0x54a86326, 0x1dc403cc, 0x5ae703ab,
  0xc5013a36, 0xac2ac6dd, 0x9b4615a9, 0x688d1c61, 0xf6af14e6, 0xb6ffe386, 0xb717425b, 0x478b0d30,
  0x54cc62e5, 0x7b2102ee, 0x8a99adef, 0xa7568c8f, 0xd610d67e, 0x6b086b3f, 0xd94f3c0b,
};

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>

#define HW __attribute__((target("sse4.2,pclmul"))) static inline

enum { LANE_BYTES = 1024, ONE_LANE = 10, TWO_LANES = 11 }; /* the last two index zero_bytes */

HW uint64_t load_word(const unsigned char *p) {
  uint64_t word;

  memcpy(&word, p, sizeof word);
  return word;
}

/* Multiplies by x^n; factor is x^(n - 33). In this bit order the carry-less product is one power of x
 * too high, and the instruction that reduces the product multiplies by x^32. */
HW uint32_t times(uint64_t crc, uint32_t factor) {
  __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                         _mm_cvtsi64_si128((long long)factor), 0);
  return (uint32_t)_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

HW uint32_t crc_hw(uint32_t crc, const unsigned char *p, size_t n) {
  uint64_t c = crc;

  for (; n >= 3 * LANE_BYTES; p += 3 * LANE_BYTES, n -= 3 * LANE_BYTES) {
    uint64_t second = 0, third = 0;
    for (const unsigned char *q = p; q < p + LANE_BYTES; q += 8) {
      c = _mm_crc32_u64(c, load_word(q));
      second = _mm_crc32_u64(second, load_word(q + LANE_BYTES));
      third = _mm_crc32_u64(third, load_word(q + 2 * LANE_BYTES));
    }
    c = times(c, zero_bytes[TWO_LANES]) ^ times(second, zero_bytes[ONE_LANE]) ^ third;
  }
  for (; n >= 8; p += 8, n -= 8) c = _mm_crc32_u64(c, load_word(p));
  for (; n > 0; p++, n--) c = _mm_crc32_u8((uint32_t)c, *p);
  return (uint32_t)c;
}

HW uint32_t shift_hw(uint32_t crc, uint64_t bytes) {
  for (unsigned k = 0; bytes != 0; bytes >>= 1, k = (k + 1) % 31)
    if (bytes & 1) crc = times(crc, zero_bytes[k]);
  return crc;
}

static bool have_hw(void) {
  return (tb_cpu() & TB_CPU_CRC32) != 0;
}
#else
static uint32_t crc_hw(uint32_t crc, const unsigned char *p, size_t n) {
  (void)p;
  (void)n;
  return crc;
}

static uint32_t shift_hw(uint32_t crc, uint64_t bytes) {
  (void)bytes;
  return crc;
}

static bool have_hw(void) {
  return false;
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

static uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;

  for (; a != 0; a <<= 1) {
    if (a & UINT32_C(0x80000000)) product ^= b;
    b = b >> 1 ^ (UINT32_C(0x82F63B78) & -(b & 1));
  }
  return product;
}

static uint32_t shift_bits(uint32_t crc, uint64_t bytes) {
  const uint32_t x_33 = 0x417b1dbc;

  for (unsigned k = 0; bytes != 0; bytes >>= 1, k = (k + 1) % 31)
    if (bytes & 1) crc = multiply(x_33, multiply(zero_bytes[k], crc));
  return crc;
}

uint32_t tb_crc32c_join(uint32_t crc_a, uint32_t crc_b, uint64_t b_bytes) {
  return (have_hw() ? shift_hw(crc_a, b_bytes) : shift_bits(crc_a, b_bytes)) ^ crc_b;
}
