/* SPDX-License-Identifier: Apache-2.0 */
#include "online/window/histogram.h"

/* 2^(k/64) * 10^9 for all k of one octave. */
const uint64_t to__histogram_bound[TO_SCALE_STEPS + 1] = {
  UINT64_C(0x80992abb83a534a2),
  UINT64_C(0x81ffa7a9549ca6e3),
  UINT64_C(0x836a0bee9d9d5401),
  UINT64_C(0x84d8626d3118d396),
  UINT64_C(0x864ab625376b7b77),
  UINT64_C(0x87c11235836d16a3),
  UINT64_C(0x893b81dbe7ed5966),
  UINT64_C(0x8aba10758e1ea3cf),
  UINT64_C(0x8c3cc97f4cf1aadd),
  UINT64_C(0x8dc3b8960164a7d9),
  UINT64_C(0x8f4ee976e7c8b4cc),
  UINT64_C(0x90de67fff600044c),
  UINT64_C(0x9272403036b7aa56),
  UINT64_C(0x940a7e28259fb382),
  UINT64_C(0x95a72e2a0ca44f7c),
  UINT64_C(0x97485c9a622adb60),
  UINT64_C(0x98ee16002855a076),
  UINT64_C(0x9a9867054d512391),
  UINT64_C(0x9c475c770cade96d),
  UINT64_C(0x9dfb034651c99c68),
  UINT64_C(0x9fb368881b4a8811),
  UINT64_C(0xa1709975dfb06757),
  UINT64_C(0xa332a36df2fd8a6a),
  UINT64_C(0xa4f993f3ed7b61ca),
  UINT64_C(0xa6c578b1139d848c),
  UINT64_C(0xa8965f74bf065071),
  UINT64_C(0xaa6c5634c8b04b16),
  UINT64_C(0xac476b0df43f745f),
  UINT64_C(0xae27ac445c7dc318),
  UINT64_C(0xb00d2843e1060dc2),
  UINT64_C(0xb1f7eda09520aa93),
  UINT64_C(0xb3e80b172fd51af7),
  UINT64_C(0xb5dd8f8d7d341ffd),
  UINT64_C(0xb7d88a12d0dd9ea0),
  UINT64_C(0xb9d909e079c5c456),
  UINT64_C(0xbbdf1e5a373ce5c6),
  UINT64_C(0xbdead70eaf3d9b5a),
  UINT64_C(0xbffc43b7e604a922),
  UINT64_C(0xc213743bb6f64957),
  UINT64_C(0xc43078ac4ed47ae7),
  UINT64_C(0xc6536148a749ff7d),
  UINT64_C(0xc87c3e7d03cdbec3),
  UINT64_C(0xcaab20e36fe24ee5),
  UINT64_C(0xcce019443eb56ce4),
  UINT64_C(0xcf1b38968c2339b8),
  UINT64_C(0xd15c9000bf211c1f),
  UINT64_C(0xd3a430d90d943190),
  UINT64_C(0xd5f22ca6019743e0),
  UINT64_C(0xd846951f0034440a),
  UINT64_C(0xdaa17c2cd19555db),
  UINT64_C(0xdd02f3ea2ab18362),
  UINT64_C(0xdf6b0ea438793a89),
  UINT64_C(0xe1d9dedb2c86c2b2),
  UINT64_C(0xe44f7742cb56e3dd),
  UINT64_C(0xe6cbeac2fc0e04aa),
  UINT64_C(0xe94f4c7859ce1066),
  UINT64_C(0xebd9afb4c6a18262),
  UINT64_C(0xee6b280000000000),
  UINT64_C(0xf103c91834f0f723),
  UINT64_C(0xf3a3a6f29dd0c333),
  UINT64_C(0xf64ad5bc15bce751),
  UINT64_C(0xf8f969d9b5abf948),
  UINT64_C(0xfbaf77e97135e555),
  UINT64_C(0xfe6d14c2b5114024),
  UINT64_MAX,
};

const uint8_t to__histogram_below[128] = {
  0,  1,  2,  2,  3,  4,  4,  5,  6,  6,  7,  8,  8,  9,  10, 10, 11, 12, 12, 13, 13, 14,
  15, 15, 16, 17, 17, 18, 18, 19, 20, 20, 21, 21, 22, 22, 23, 24, 24, 25, 25, 26, 26, 27,
  27, 28, 28, 29, 29, 30, 31, 31, 32, 32, 33, 33, 34, 34, 35, 35, 36, 36, 37, 37, 38, 38,
  38, 39, 39, 40, 40, 41, 41, 42, 42, 43, 43, 44, 44, 44, 45, 45, 46, 46, 47, 47, 48, 48,
  48, 49, 49, 50, 50, 50, 51, 51, 52, 52, 53, 53, 53, 54, 54, 55, 55, 55, 56, 56, 57, 57,
  57, 58, 58, 58, 59, 59, 60, 60, 60, 61, 61, 62, 62, 62, 63, 63, 63, 64,
};

double to_histogram_bound_ns(int32_t index, int scale) {
  enum { OCTAVES = 4 }; /* so that the number is not negative */
  int32_t number = index * (1 << (TO_SCALE_MAX - scale)) + TO_PLACE_OF_SECOND - TO_PLACE_OF_NS - 1 +
                   OCTAVES * TO_SCALE_STEPS;
  double ns = (double)to__histogram_bound[number % TO_SCALE_STEPS] / 0x1p63;

  for (int octave = number / TO_SCALE_STEPS; octave > OCTAVES; octave--) ns *= 2;
  for (int octave = number / TO_SCALE_STEPS; octave < OCTAVES; octave++) ns /= 2;
  return ns;
}

double to_histogram_error(int scale) {
  double low = to_histogram_bound_ns(0, scale), high = to_histogram_bound_ns(1, scale);

  return ((int)((high - low) / (high + low) * 1e4) + 1) / 1e4;
}

/* The harmonic mean of the bounds. */
uint64_t to_histogram_middle_ns(int32_t index, int scale) {
  double low = to_histogram_bound_ns(index, scale), high = to_histogram_bound_ns(index + 1, scale);
  double middle = 2 * low * high / (low + high);

  return middle < 0x1p63 ? (uint64_t)(middle + 0.5) : UINT64_C(1) << 63;
}

uint64_t to_histogram_rank(uint64_t count, unsigned permille) {
  uint64_t rank = count / 1000 * permille + (count % 1000 * permille + 999) / 1000;
  return rank > 0 ? rank : 1;
}

uint64_t to_histogram_length(const struct to_histogram *h, uint64_t rank, uint64_t min,
                             uint64_t max) {
  uint64_t seen = h->zero, ns = 0;
  uint32_t i = 0;

  if (rank == 1) return min;
  while (seen < rank && i < h->n) seen += h->bucket[i++];
  if (i > 0) ns = to_histogram_middle_ns(h->first + (int32_t)i - 1, h->scale);
  while (i < h->n && h->bucket[i] == 0) i++;
  if (seen == rank && i == h->n) return max;
  if (ns < min) return min;
  return ns < max ? ns : max;
}

void to_histogram_quantiles(const struct to_histogram *h, uint64_t count, uint64_t min,
                            uint64_t max, uint64_t *const out[4]) {
  static const unsigned permille[] = { 500, 900, 990, 999 };

  for (unsigned i = 0; i < 4; i++)
    *out[i] = to_histogram_length(h, to_histogram_rank(count, permille[i]), min, max);
}
