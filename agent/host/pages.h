/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded pool of memory pages, chained by those who take them.
 *
 * The lowest free page is taken first, so that a quiet stream keeps using the same few, warm ones, and the
 * pages of a chain mostly lie side by side.
 *
 * Memory    one mapping made at init; the kernel gets back what trim() finds out of use.
 * Threads   one at a time; the bytes of a page taken are the taker's.
 * Errors    TB_NOMEM from init.
 */
#ifndef TA_HOST_PAGES_H
#define TA_HOST_PAGES_H

#include "base/result.h"

enum { TA_PAGE_BYTES = 4096 };

#define TA_NONE UINT32_MAX

struct ta_pages {
  unsigned char *bytes;
  uint32_t *next; /* of each page: the one behind it in its chain, or TA_NONE */
  uint64_t *used; /* bit set */
  size_t mapped_bytes;
  uint32_t max, free, hint;
  uint32_t top, peak; /* pages below top may be backed by memory; peak: of this interval */
};

TB_MUST tb_rc ta_pages_init(struct ta_pages *p, uint64_t bytes);
void ta_pages_fini(struct ta_pages *p); /* accepts zeroed memory */

uint32_t ta_pages_take(struct ta_pages *p); /* the caller has seen to it that one is free */
void ta_pages_give(struct ta_pages *p, uint32_t page);
void ta_pages_give_chain(struct ta_pages *p, uint32_t page); /* from page on; TA_NONE: nothing */
/* To be called about once a second: what lay above the last interval's peak is not wanted soon. */
void ta_pages_trim(struct ta_pages *p);

static inline unsigned char *ta_page(const struct ta_pages *p, uint32_t page) {
  return p->bytes + (size_t)page * TA_PAGE_BYTES;
}

#endif
