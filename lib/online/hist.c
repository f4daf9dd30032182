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

tb_rc to_hist_reserve(struct to_hist *hist, unsigned bucket) {
  void *block;

  if (hist->page == NULL) {
    TB_TRY(tb_mem_take(hist->mem, DIRECTORY_BYTES, &block));
    hist->page = block;
  }
  if (hist->page[bucket / TO_HIST_PAGE] == NULL) {
    TB_TRY(tb_mem_take(hist->mem, PAGE_BYTES, &block));
    hist->page[bucket / TO_HIST_PAGE] = block;
  }
  return TB_OK;
}

tb_rc to_hist_reserve_like(struct to_hist *into, const struct to_hist *from) {
  if (from->count == 0) return TB_OK;
  for (unsigned i = 0; i < TO_HIST_PAGES; i++)
    if (from->page[i] != NULL) TB_TRY(to_hist_reserve(into, i * TO_HIST_PAGE));
  return TB_OK;
}

tb_rc to_hist_merge(struct to_hist *into, const struct to_hist *from) {
  TB_TRY(to_hist_reserve_like(into, from));
  if (from->count == 0) return TB_OK;
  for (unsigned i = 0; i < TO_HIST_PAGES; i++) {
    if (from->page[i] == NULL) continue;
    uint64_t *restrict to = into->page[i];
    const uint64_t *restrict values = from->page[i];
    for (unsigned j = 0; j < TO_HIST_PAGE; j++) to[j] += values[j];
  }
  into->count += from->count;
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

static uint64_t page_count(const uint64_t *page) {
  uint64_t n = 0;
  for (unsigned i = 0; i < TO_HIST_PAGE; i++) n += page[i];
  return n;
}

/* The rank of a quantile, rounded up, from 1. */
static uint64_t quantile_rank(const struct to_hist *hist, unsigned permille) {
  uint64_t rank = hist->count / 1000 * permille + (hist->count % 1000 * permille + 999) / 1000;
  return rank > 0 ? rank : 1;
}

void to_hist_quantiles(const struct to_hist *hist, const unsigned *permille, size_t n,
                       uint64_t *out) {
  uint64_t before = 0; /* values on the pages before this one */
  size_t next = 0;

  for (size_t i = 0; i < n; i++) out[i] = 0;
  for (unsigned i = 0; i < TO_HIST_PAGES && hist->count > 0; i++) {
    const uint64_t *page = hist->page[i];
    if (page == NULL) continue;
    uint64_t after = before + page_count(page);
    for (; next < n && quantile_rank(hist, permille[next]) <= after; next++) {
      uint64_t rank = quantile_rank(hist, permille[next]), seen = before;
      unsigned j = 0;
      while ((seen += page[j]) < rank) j++;
      out[next] = to_hist_bucket_top(i * TO_HIST_PAGE + j);
    }
    before = after;
  }
}
