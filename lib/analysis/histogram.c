/* SPDX-License-Identifier: Apache-2.0 */
/* The bucket's number is the value's leading eleven bits below its exponent: the shift counts the
 * powers of two above the exact range, and because value >> shift keeps its top bit, the numbers of
 * neighbouring powers join without a gap. */
#include "analysis/histogram.h"

#include <string.h>

enum {
  DIRECTORY_BYTES = TO_HISTOGRAM_PAGES * sizeof(uint64_t *),
  PAGE_BYTES = TO_HISTOGRAM_PAGE * sizeof(uint64_t),
};

void to_histogram_init(struct to_histogram *hist, struct tb_mem *mem) {
  *hist = (struct to_histogram){ .mem = mem };
}

/* Pages with values, rising: the first one from page on, or TO_HISTOGRAM_PAGES. */
static unsigned next_page(const struct to_histogram *hist, unsigned page) {
  while (page < TO_HISTOGRAM_PAGES) {
    uint64_t left = hist->in_use[page / 64] >> (page % 64);
    if (left != 0) return page + (unsigned)__builtin_ctzll(left);
    page = (page / 64 + 1) * 64;
  }
  return TO_HISTOGRAM_PAGES;
}

static uint64_t *next_spare(const uint64_t *spare) {
  return (uint64_t *)(uintptr_t)spare[0];
}

void to_histogram_fini(struct to_histogram *hist) {
  if (hist->page != NULL) {
    for (unsigned i = 0; (i = next_page(hist, i)) < TO_HISTOGRAM_PAGES; i++)
      tb_mem_give(hist->mem, hist->page[i], PAGE_BYTES);
    for (uint64_t *spare = hist->spare, *next; spare != NULL; spare = next) {
      next = next_spare(spare);
      tb_mem_give(hist->mem, spare, PAGE_BYTES);
    }
    tb_mem_give(hist->mem, hist->page, DIRECTORY_BYTES);
  }
  *hist = (struct to_histogram){ 0 };
}

void to_histogram_clear(struct to_histogram *hist) {
  if (hist->page == NULL) return;
  for (unsigned i = 0; (i = next_page(hist, i)) < TO_HISTOGRAM_PAGES; i++) {
    uint64_t *page = hist->page[i];
    memset(page, 0, PAGE_BYTES);
    page[0] = (uintptr_t)hist->spare;
    hist->spare = page;
    hist->page[i] = NULL;
  }
  memset(hist->in_use, 0, sizeof hist->in_use);
  hist->count = 0;
}

uint64_t to_histogram_bucket_top(unsigned bucket) {
  unsigned shift = bucket >> TO_HISTOGRAM_DIGIT_BITS;

  if (shift <= 1)
    shift = 0; /* the first two thousand are exact */
  else
    shift--;
  uint64_t leading = bucket - ((uint64_t)shift << TO_HISTOGRAM_DIGIT_BITS);
  return (leading << shift) | ((UINT64_C(1) << shift) - 1);
}

static tb_rc take_page(struct to_histogram *hist, uint64_t **out) {

  if (hist->spare != NULL) {
    *out = hist->spare;
    hist->spare = next_spare(*out);
    (*out)[0] = 0;
    return TB_OK;
  }
  TB_TRY(tb_mem_take(hist->mem, PAGE_BYTES, out));
  return TB_OK;
}

tb_rc to_histogram_reserve(struct to_histogram *hist, unsigned bucket) {
  unsigned page = bucket / TO_HISTOGRAM_PAGE;

  if (hist->page == NULL) {
    TB_TRY(tb_mem_take(hist->mem, DIRECTORY_BYTES, &hist->page));
  }
  if (hist->page[page] != NULL) return TB_OK;
  TB_TRY(take_page(hist, &hist->page[page]));
  hist->in_use[page / 64] |= UINT64_C(1) << (page % 64);
  return TB_OK;
}

tb_rc to_histogram_reserve_like(struct to_histogram *into, const struct to_histogram *from) {
  if (from->count == 0) return TB_OK;
  for (unsigned i = 0; (i = next_page(from, i)) < TO_HISTOGRAM_PAGES; i++)
    TB_TRY(to_histogram_reserve(into, i * TO_HISTOGRAM_PAGE));
  return TB_OK;
}

tb_rc to_histogram_merge(struct to_histogram *into, const struct to_histogram *from) {
  TB_TRY(to_histogram_reserve_like(into, from));
  if (from->count == 0) return TB_OK;
  for (unsigned i = 0; (i = next_page(from, i)) < TO_HISTOGRAM_PAGES; i++) {
    uint64_t *restrict to = into->page[i];
    const uint64_t *restrict values = from->page[i];
    for (unsigned j = 0; j < TO_HISTOGRAM_PAGE; j++) to[j] += values[j];
  }
  into->count += from->count;
  return TB_OK;
}

bool to_histogram_next(const struct to_histogram *hist, unsigned *bucket, uint64_t *out_n) {
  if (hist->count == 0) return false;
  while (*bucket < TO_HISTOGRAM_BUCKETS) {
    unsigned page = next_page(hist, *bucket / TO_HISTOGRAM_PAGE);
    if (page == TO_HISTOGRAM_PAGES) break;
    if (page > *bucket / TO_HISTOGRAM_PAGE) *bucket = page * TO_HISTOGRAM_PAGE;
    const uint64_t *values = hist->page[page];
    for (unsigned i = *bucket % TO_HISTOGRAM_PAGE; i < TO_HISTOGRAM_PAGE; i++) {
      if (values[i] == 0) continue;
      *bucket = page * TO_HISTOGRAM_PAGE + i;
      *out_n = values[i];
      return true;
    }
    *bucket = (page + 1) * TO_HISTOGRAM_PAGE;
  }
  return false;
}

static uint64_t page_count(const uint64_t *page) {
  uint64_t n = 0;
  for (unsigned i = 0; i < TO_HISTOGRAM_PAGE; i++) n += page[i];
  return n;
}

/* The rank of a quantile, rounded up, from 1. */
static uint64_t quantile_rank(const struct to_histogram *hist, unsigned permille) {
  uint64_t rank = hist->count / 1000 * permille + (hist->count % 1000 * permille + 999) / 1000;
  return rank > 0 ? rank : 1;
}

void to_histogram_quantiles(const struct to_histogram *hist, const unsigned *permille, size_t n,
                            uint64_t *out) {
  uint64_t before = 0; /* values on the pages before this one */
  size_t next = 0;

  for (size_t i = 0; i < n; i++) out[i] = 0;
  for (unsigned i = 0; hist->count > 0 && (i = next_page(hist, i)) < TO_HISTOGRAM_PAGES; i++) {
    const uint64_t *page = hist->page[i];
    uint64_t after = before + page_count(page);
    for (; next < n && quantile_rank(hist, permille[next]) <= after; next++) {
      uint64_t rank = quantile_rank(hist, permille[next]), seen = before;
      unsigned j = 0;
      while ((seen += page[j]) < rank) j++;
      out[next] = to_histogram_bucket_top(i * TO_HISTOGRAM_PAGE + j);
    }
    before = after;
  }
}
