/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTelemetry's base-2 exponential histogram, as a mapping of lengths to buckets and as counts.
 *
 * At scale s a bucket ends at a power of 2^(1/2^s) seconds: index i holds lengths in (2^(i/2^s), 2^((i+1)/2^s)] seconds. One scale lower,
 * two neighbours are one bucket. A length of 0 has a bucket of its own. Prometheus' native histograms have the same
 * buckets (its schema is the scale, and its index is greater by 1).
 *
 * Inside the windows a bucket is a place: at scale 6 the index plus TO_PLACE_OF_SECOND, at lower scales that
 * shifted right once per scale. Place 0 is the bucket of 0 ns. */
#ifndef TO_WINDOW_HISTOGRAM_H
#define TO_WINDOW_HISTOGRAM_H

#include <stdint.h>

enum {
  TO_SCALE_MAX = 6, /* a quantile is at most 0.55 % off here; rows may have a lower scale */
  TO_SCALE_MIN = 1, /* 128 buckets are enough for all lengths */
  TO_SCALE_STEPS = 1 << TO_SCALE_MAX,
  TO_PLACE_OF_SECOND = 2048, /* scale 6: the bucket that begins at 1 s */
  TO_PLACES = 4352,          /* all are below */
  TO_PLACE_OF_NS = 134,      /* scale 6: the bucket of 1 ns */
  TO_BUCKETS_MAX = 2048,     /* in one histogram: all lengths at scale 5, 32 octaves at scale 6 */
};

struct to_histogram {
  int scale;
  int32_t first; /* index of bucket[0] */
  uint32_t n;    /* buckets; 0: no length above 0 ns */
  const uint64_t *bucket;
  uint64_t zero; /* lengths of 0 ns */
};

/* Bounds in one octave: the ends of buckets in ns, shifted left until bit 63 is set, rounded down. Every octave has the
 * same ones, as they are powers of two times the first. */
extern const uint64_t to__histogram_bound[TO_SCALE_STEPS + 1];
/* Number of bounds below the lowest of the lengths that have the same seven bits after the leading one. No two bounds
 * have the same seven bits. */
extern const uint8_t to__histogram_below[128];

/* Returns the place of a length at scale 6. */
static inline uint32_t to_histogram_place(uint64_t ns) {
  if (ns == 0) return 0;
  unsigned zeros = (unsigned)__builtin_clzll(ns);
  uint64_t mantissa = ns << zeros;
  unsigned below = to__histogram_below[mantissa >> 56 & 127];

  return (63 - zeros) * TO_SCALE_STEPS + below + (mantissa > to__histogram_bound[below]) +
         TO_PLACE_OF_NS;
}

/* Converts a place other than 0 to an index, and back. */
static inline int32_t to_place_index(uint32_t place, int scale) {
  return (int32_t)place - (TO_PLACE_OF_SECOND >> (TO_SCALE_MAX - scale));
}
static inline uint32_t to_index_place(int32_t index, int scale) {
  return (uint32_t)(index + (TO_PLACE_OF_SECOND >> (TO_SCALE_MAX - scale)));
}

/* Returns the greatest possible error of a quantile as a share of it, rounded up at the fourth digit: 0.0055 at scale 6. */
double to_histogram_error(int scale);
/* Returns the lower bound of a bucket in ns, which is not in the bucket. */
double to_histogram_bound_ns(int32_t index, int scale);
/* Returns the length that is off by the least share from all lengths of the bucket, in ns. */
uint64_t to_histogram_middle_ns(int32_t index, int scale);
/* Returns the rank of a quantile among count lengths, rounded up, from 1. */
uint64_t to_histogram_rank(uint64_t count, unsigned permille);
/* Writes p50, p90, p99 and p99.9 of count > 0 lengths, within [min, max]. */
void to_histogram_quantiles(const struct to_histogram *h, uint64_t count, uint64_t min,
                            uint64_t max, uint64_t *const out[4]);
/* Returns the length of this rank, within [min, max]: the first is min, the last max. rank: from 1 to the number of lengths. */
uint64_t to_histogram_length(const struct to_histogram *h, uint64_t rank, uint64_t min,
                             uint64_t max);

#endif
