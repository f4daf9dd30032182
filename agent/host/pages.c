/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/host/pages.h"

#include <sys/mman.h>

enum { TRIM_SLACK_PAGES = 64 };

tb_rc ta_pages_init(struct ta_pages *p, uint64_t bytes) {
  *p = (struct ta_pages){ 0 };
  if (bytes / TA_PAGE_BYTES > INT32_MAX) return TB_NOMEM;

  uint32_t max = (uint32_t)(bytes / TA_PAGE_BYTES / 64 * 64);
  size_t all = (size_t)max * TA_PAGE_BYTES, used = max / 8, next = max * sizeof *p->next;
  void *map = mmap(NULL, all + used + next, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return TB_NOMEM;
  madvise(map, all + used + next,
          MADV_WIPEONFORK); /* a child does not need them: its fork() is quicker */
  p->bytes = map;
  p->used = (uint64_t *)(void *)(p->bytes + all);
  p->next = (uint32_t *)(void *)(p->bytes + all + used);
  p->mapped_bytes = all + used + next;
  p->max = p->free = max;
  return TB_OK;
}

void ta_pages_fini(struct ta_pages *p) {
  if (p->bytes != NULL) munmap(p->bytes, p->mapped_bytes);
  *p = (struct ta_pages){ 0 };
}

uint32_t ta_pages_acquire(struct ta_pages *p) {
  while (p->used[p->hint] == UINT64_MAX) p->hint++;

  uint32_t page = p->hint * 64 + (uint32_t)__builtin_ctzll(~p->used[p->hint]);
  p->used[page / 64] |= UINT64_C(1) << page % 64;
  p->next[page] = TA_NONE;
  p->free--;
  if (page >= p->peak) p->peak = page + 1;
  return page;
}

void ta_pages_release(struct ta_pages *p, uint32_t page) {
  p->used[page / 64] &= ~(UINT64_C(1) << page % 64);
  p->free++;
  if (page / 64 < p->hint) p->hint = page / 64;
}

void ta_pages_release_chain(struct ta_pages *p, uint32_t page) {
  while (page != TA_NONE) {
    uint32_t next = p->next[page];
    ta_pages_release(p, page);
    page = next;
  }
}

static uint32_t highest_used(const struct ta_pages *p) {
  for (uint32_t word = p->max / 64; word-- > 0;)
    if (p->used[word] != 0) return word * 64 + 63 - (uint32_t)__builtin_clzll(p->used[word]);
  return 0;
}

void ta_pages_trim(struct ta_pages *p) {
  uint32_t keep = p->peak + TRIM_SLACK_PAGES;

  if (p->top < p->peak) p->top = p->peak;
  if (keep < p->top) {
    madvise(ta_page(p, keep), (size_t)(p->top - keep) * TA_PAGE_BYTES, MADV_DONTNEED);
    p->top = keep;
  }
  p->peak = highest_used(p) + 1;
}
