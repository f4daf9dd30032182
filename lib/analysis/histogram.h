/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of nanoseconds with three significant digits (HDR: high dynamic range).
 *
 * Values below 2048 have a bucket each; above, every power of two is cut into 1024 equal buckets. A
 * bucket is read back as the largest value it holds, so a quantile is never below the true one and
 * at most 1/1024 of it (0.1 %) above, from 1 ns to 2^63 ns.
 *
 * Memory    pages of 256 buckets, 2 KiB each, taken from mem when a value first falls into one: durations from 1 us
 *           to 10 ms take about 100 KiB, an empty one takes nothing.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; the value is then not counted.
 */
#ifndef TO_ANALYSIS_HISTOGRAM_H
#define TO_ANALYSIS_HISTOGRAM_H

#include "base/mem.h"

enum {
  TO_HISTOGRAM_DIGIT_BITS = 10, /* 2^10 buckets a power of two: half a bucket is below 0.05 % */
  TO_HISTOGRAM_PAGE = 256,
  TO_HISTOGRAM_PAGES =
      (65 - TO_HISTOGRAM_DIGIT_BITS) * (1 << TO_HISTOGRAM_DIGIT_BITS) / TO_HISTOGRAM_PAGE,
  TO_HISTOGRAM_BUCKETS = TO_HISTOGRAM_PAGES * TO_HISTOGRAM_PAGE,
};
_Static_assert(TO_HISTOGRAM_BUCKETS <= 1 << 16, "a bucket's number fits in 16 bits");

enum { TO_HISTOGRAM_WORDS = (TO_HISTOGRAM_PAGES + 63) / 64 };

struct to_histogram {
  struct tb_mem *mem;
  uint64_t **page; /* NULL until the first value; of a page: nothing since the clear */
  uint64_t count;
  uint64_t in_use[TO_HISTOGRAM_WORDS]; /* a bit a page that is not NULL */
  uint64_t *spare;                     /* pages of zeros; the first word of each is the next one */
};

void to_histogram_init(struct to_histogram *hist, struct tb_mem *mem);
void to_histogram_fini(struct to_histogram *hist); /* accepts a zeroed one */
/* Keeps the memory. Its cost, like that of a merge or a walk, follows from the pages with values in them,
 * not from those that an earlier trace has filled. */
void to_histogram_clear(struct to_histogram *hist);

static inline unsigned to_histogram_bucket(uint64_t value) {
  unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
  unsigned shift = bits <= TO_HISTOGRAM_DIGIT_BITS + 1 ? 0 : bits - (TO_HISTOGRAM_DIGIT_BITS + 1);
  return (shift << TO_HISTOGRAM_DIGIT_BITS) + (unsigned)(value >> shift);
}
uint64_t to_histogram_bucket_top(unsigned bucket); /* the largest value in it */

/* Makes room for values in this bucket. */
TB_MUST tb_rc to_histogram_reserve(struct to_histogram *hist, unsigned bucket);
/* n more values in this bucket. */
TB_MUST static inline tb_rc to_histogram_add_bucket(struct to_histogram *hist, unsigned bucket,
                                                    uint64_t n) {
  if (TB_UNLIKELY(hist->page == NULL || hist->page[bucket / TO_HISTOGRAM_PAGE] == NULL))
    TB_TRY(to_histogram_reserve(hist, bucket));
  hist->page[bucket / TO_HISTOGRAM_PAGE][bucket % TO_HISTOGRAM_PAGE] += n;
  hist->count += n;
  return TB_OK;
}
TB_MUST static inline tb_rc to_histogram_add(struct to_histogram *hist, uint64_t value) {
  return to_histogram_add_bucket(hist, to_histogram_bucket(value), 1);
}

/* Adds all of from; cannot fail after to_histogram_reserve_like(). */
TB_MUST tb_rc to_histogram_reserve_like(struct to_histogram *into, const struct to_histogram *from);
TB_MUST tb_rc to_histogram_merge(struct to_histogram *into, const struct to_histogram *from);

/* for (unsigned b = 0; to_histogram_next(h, &b, &n); b++) over the buckets that are not empty, rising. */
bool to_histogram_next(const struct to_histogram *hist, unsigned *bucket, uint64_t *out_n);

/* The smallest values that at least permille[i]/1000 of all values do not exceed, for n rising
 * permilles; 0 of an empty one. */
void to_histogram_quantiles(const struct to_histogram *hist, const unsigned *permille, size_t n,
                            uint64_t *out);

#endif
