/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded pool of memory pages, which callers link into chains.
 *
 * The lowest free page is taken first, so that a quiet stream keeps using the same few, warm ones, and the
 * pages of a chain are mostly adjacent.
 *
 * Memory    one mapping made at init; trim() returns unused pages to the kernel.
 * Threads   one at a time; the bytes of a page belong to the caller that took it.
 * Errors    TB_NOMEM from init.
 */
#ifndef TA_HOST_PAGES_H
#define TA_HOST_PAGES_H

#include "base/result.h"

enum { TA_PAGE_BYTES = 4096 };

#define TA_NONE UINT32_MAX

struct ta_pages {
  unsigned char *bytes;
  uint32_t *next; /* for each page: the next one in its chain, or TA_NONE */
  uint64_t *used; /* bit set */
  size_t mapped_bytes;
  uint32_t max, free, hint;
  uint32_t top, peak; /* pages below top may be backed by memory; peak: of this interval */
};

TB_MUST tb_rc ta_pages_init(struct ta_pages *p, uint64_t bytes);
void ta_pages_fini(struct ta_pages *p); /* accepts zeroed memory */

uint32_t ta_pages_acquire(struct ta_pages *p); /* requires p->free > 0 */
void ta_pages_release(struct ta_pages *p, uint32_t page);
void ta_pages_release_chain(struct ta_pages *p, uint32_t page); /* from page on; TA_NONE: nothing */
/* Call about once a second: frees pages above the last interval's peak, which are not needed soon. */
void ta_pages_trim(struct ta_pages *p);

static inline unsigned char *ta_page(const struct ta_pages *p, uint32_t page) {
  return p->bytes + (size_t)page * TA_PAGE_BYTES;
}

#endif
