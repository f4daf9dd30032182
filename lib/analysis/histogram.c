/* SPDX-License-Identifier: Apache-2.0 */
/* The bucket's number is the value's leading eleven bits below its exponent: the shift counts the
 * powers of two above the exact range, and because value >> shift keeps its top bit, the numbers of
 * neighbouring powers join without a gap. */
#include "analysis/histogram.h"

#include <string.h>

enum {
  DIRECTORY_BYTES = TO_HIST_PAGES * sizeof(uint64_t *),
  PAGE_BYTES = TO_HIST_PAGE * sizeof(uint64_t),
};

void to_hist_init(struct to_hist *hist, struct tb_mem *mem) {
  *hist = (struct to_hist){ .mem = mem };
}

/* Pages with values, rising: the first one from page on, or TO_HIST_PAGES. */
static unsigned next_page(const struct to_hist *hist, unsigned page) {
  while (page < TO_HIST_PAGES) {
    uint64_t left = hist->in_use[page / 64] >> (page % 64);
    if (left != 0) return page + (unsigned)__builtin_ctzll(left);
    page = (page / 64 + 1) * 64;
  }
  return TO_HIST_PAGES;
}

static uint64_t *next_spare(const uint64_t *spare) {
  return (uint64_t *)(uintptr_t)spare[0];
}

void to_hist_fini(struct to_hist *hist) {
  if (hist->page != NULL) {
    for (unsigned i = 0; (i = next_page(hist, i)) < TO_HIST_PAGES; i++)
      tb_mem_give(hist->mem, hist->page[i], PAGE_BYTES);
    for (uint64_t *spare = hist->spare, *next; spare != NULL; spare = next) {
      next = next_spare(spare);
      tb_mem_give(hist->mem, spare, PAGE_BYTES);
    }
    tb_mem_give(hist->mem, hist->page, DIRECTORY_BYTES);
  }
  *hist = (struct to_hist){ 0 };
}

void to_hist_clear(struct to_hist *hist) {
  if (hist->page == NULL) return;
  for (unsigned i = 0; (i = next_page(hist, i)) < TO_HIST_PAGES; i++) {
    uint64_t *page = hist->page[i];
    memset(page, 0, PAGE_BYTES);
    page[0] = (uintptr_t)hist->spare;
    hist->spare = page;
    hist->page[i] = NULL;
  }
  memset(hist->in_use, 0, sizeof hist->in_use);
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

static tb_rc take_page(struct to_hist *hist, uint64_t **out) {
  void *block;

  if (hist->spare != NULL) {
    *out = hist->spare;
    hist->spare = next_spare(*out);
    (*out)[0] = 0;
    return TB_OK;
  }
  TB_TRY(tb_mem_take(hist->mem, PAGE_BYTES, &block));
  *out = block;
  return TB_OK;
}

tb_rc to_hist_reserve(struct to_hist *hist, unsigned bucket) {
  unsigned page = bucket / TO_HIST_PAGE;
  void *block;

  if (hist->page == NULL) {
    TB_TRY(tb_mem_take(hist->mem, DIRECTORY_BYTES, &block));
    hist->page = block;
  }
  if (hist->page[page] != NULL) return TB_OK;
  TB_TRY(take_page(hist, &hist->page[page]));
  hist->in_use[page / 64] |= UINT64_C(1) << (page % 64);
  return TB_OK;
}

tb_rc to_hist_reserve_like(struct to_hist *into, const struct to_hist *from) {
  if (from->count == 0) return TB_OK;
  for (unsigned i = 0; (i = next_page(from, i)) < TO_HIST_PAGES; i++)
    TB_TRY(to_hist_reserve(into, i * TO_HIST_PAGE));
  return TB_OK;
}

tb_rc to_hist_merge(struct to_hist *into, const struct to_hist *from) {
  TB_TRY(to_hist_reserve_like(into, from));
  if (from->count == 0) return TB_OK;
  for (unsigned i = 0; (i = next_page(from, i)) < TO_HIST_PAGES; i++) {
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
    unsigned page = next_page(hist, *bucket / TO_HIST_PAGE);
    if (page == TO_HIST_PAGES) break;
    if (page > *bucket / TO_HIST_PAGE) *bucket = page * TO_HIST_PAGE;
    const uint64_t *values = hist->page[page];
    for (unsigned i = *bucket % TO_HIST_PAGE; i < TO_HIST_PAGE; i++) {
      if (values[i] == 0) continue;
      *bucket = page * TO_HIST_PAGE + i;
      *out_n = values[i];
      return true;
    }
    *bucket = (page + 1) * TO_HIST_PAGE;
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
  for (unsigned i = 0; hist->count > 0 && (i = next_page(hist, i)) < TO_HIST_PAGES; i++) {
    const uint64_t *page = hist->page[i];
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
