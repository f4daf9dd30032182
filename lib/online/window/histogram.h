/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets of nanoseconds with three significant digits (HDR: high dynamic range).
 *
 * Values below 2048 have a bucket each; above, every power of two is cut into 1024 equal buckets. A
 * bucket is read back as the largest value it holds, so a quantile is never below the true one and
 * at most 1/1024 of it (0.1 %) above, from 1 ns to 2^63 ns.
 */
#ifndef TO_WINDOW_HISTOGRAM_H
#define TO_WINDOW_HISTOGRAM_H

#include <stdint.h>

enum {
  TO_HISTOGRAM_DIGIT_BITS = 10, /* 2^10 buckets a power of two: each is at most 0.1 % wide */
  TO_HISTOGRAM_BUCKETS = (65 - TO_HISTOGRAM_DIGIT_BITS) * (1 << TO_HISTOGRAM_DIGIT_BITS),
};
_Static_assert(TO_HISTOGRAM_BUCKETS <= 1 << 16, "a bucket's number fits in 16 bits");

/* Combines the exponent with the value's leading eleven bits. value >> shift keeps its top bit, so the numbers of
 * neighbouring powers of two follow each other without a gap. */
static inline unsigned to_histogram_bucket(uint64_t value) {
  uint64_t at_least = UINT64_C(1) << TO_HISTOGRAM_DIGIT_BITS;
  unsigned shift = 63 - TO_HISTOGRAM_DIGIT_BITS - (unsigned)__builtin_clzll(value | at_least);
  return (shift << TO_HISTOGRAM_DIGIT_BITS) + (unsigned)(value >> shift);
}

/* Returns the largest value of a bucket. */
static inline uint64_t to_histogram_bucket_top(unsigned bucket) {
  unsigned shift = bucket >> TO_HISTOGRAM_DIGIT_BITS;

  if (shift > 0) shift--; /* values below 2048 are exact */
  uint64_t leading = bucket - ((uint64_t)shift << TO_HISTOGRAM_DIGIT_BITS);
  return (leading << shift) | ((UINT64_C(1) << shift) - 1);
}

#endif
