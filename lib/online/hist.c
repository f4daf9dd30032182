/* SPDX-License-Identifier: Apache-2.0 */
/* The bucket's number is the value's leading eleven bits below its exponent: the shift counts the
 * powers of two above the exact range, and because value >> shift keeps its top bit, the numbers of
 * neighbouring powers join without a gap. */
#include "online/hist.h"

#include <string.h>

enum {
  DIRECTORY_BYTES = TO_HIST_PAGES * sizeof(uint64_t *),
  PAGE_BYTES = TO_HIST_PAGE * sizeof(uint64_t),
};

void to_hist_init(struct to_hist *hist, struct tb_mem *mem) {
  *hist = (struct to_hist){ .mem = mem };
}

void to_hist_fini(struct to_hist *hist) {
  if (hist->page != NULL) {
    for (unsigned i = 0; i < TO_HIST_PAGES; i++) tb_mem_give(hist->mem, hist->page[i], PAGE_BYTES);
    tb_mem_give(hist->mem, hist->page, DIRECTORY_BYTES);
  }
  *hist = (struct to_hist){ 0 };
}

void to_hist_clear(struct to_hist *hist) {
  if (hist->count == 0) return;
  for (unsigned i = 0; i < TO_HIST_PAGES; i++)
    if (hist->page[i] != NULL) memset(hist->page[i], 0, PAGE_BYTES);
  hist->count = 0;
}

uint64_t to_hist_bucket_top(unsigned bucket) {
  unsigned shift = bucket >> TO_HIST_DIGIT_BITS;

  if (shift <= 1)
    shift = 0; /* the first two thousand are exact */
  else
    shift--;
  uint64_t leading = bucket - ((uint64_t)shift << TO_HIST_DIGIT_BITS);
  return (leading << shift) | ((UINT64_C(1) << shift) - 1);
}

tb_rc to_hist_add_bucket(struct to_hist *hist, unsigned bucket, uint64_t n) {
  if (hist->page == NULL) {
    void *directory;
    TB_TRY(tb_mem_take(hist->mem, DIRECTORY_BYTES, &directory));
    hist->page = directory;
  }
  uint64_t **page = &hist->page[bucket / TO_HIST_PAGE];
  if (*page == NULL) {
    void *fresh;
    TB_TRY(tb_mem_take(hist->mem, PAGE_BYTES, &fresh));
    *page = fresh;
  }
  (*page)[bucket % TO_HIST_PAGE] += n;
  hist->count += n;
  return TB_OK;
}

bool to_hist_next(const struct to_hist *hist, unsigned *bucket, uint64_t *out_n) {
  if (hist->count == 0) return false;
  while (*bucket < TO_HIST_BUCKETS) {
    const uint64_t *page = hist->page[*bucket / TO_HIST_PAGE];
    if (page == NULL) {
      *bucket = (*bucket / TO_HIST_PAGE + 1) * TO_HIST_PAGE;
      continue;
    }
    if (page[*bucket % TO_HIST_PAGE] > 0) {
      *out_n = page[*bucket % TO_HIST_PAGE];
      return true;
    }
    ++*bucket;
  }
  return false;
}

uint64_t to_hist_quantile(const struct to_hist *hist, unsigned permille) {
  /* The rank, rounded up without overflow: count is below 2^63 by far, but a product is not. */
  uint64_t rank = hist->count / 1000 * permille + (hist->count % 1000 * permille + 999) / 1000;
  uint64_t seen = 0, n;

  if (rank == 0) rank = 1;
  for (unsigned bucket = 0; to_hist_next(hist, &bucket, &n); bucket++) {
    seen += n;
    if (seen >= rank) return to_hist_bucket_top(bucket);
  }
  return 0;
}
