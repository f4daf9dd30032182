/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/pool.h"

#include <sys/mman.h>

/* Whole pages, so that two batches never share a cache line. */
enum { PAGE = 4096, SLOT_BYTES = (sizeof(struct ta_batch) + PAGE - 1) / PAGE * PAGE };

tb_rc ta_pool_init(struct ta_pool *p, uint64_t bytes) {
  uint64_t max = bytes / SLOT_BYTES;

  *p = (struct ta_pool){ .max = max > TA_BATCHES_MAX ? TA_BATCHES_MAX : (unsigned)max };
  p->mapped_bytes = (size_t)p->max * SLOT_BYTES;
  void *map = mmap(NULL, p->mapped_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return TB_NOMEM;
  p->bytes = map;
  for (unsigned i = 0; i < p->max; i++)
    atomic_fetch_or_explicit(&p->free[i / 64], UINT64_C(1) << i % 64, memory_order_relaxed);
  return TB_OK;
}

void ta_pool_fini(struct ta_pool *p) {
  if (p->bytes == NULL) return;
  munmap(p->bytes, p->mapped_bytes);
  p->bytes = NULL;
}

struct ta_batch *ta_pool_take(struct ta_pool *p) {
  for (unsigned word = 0; word * 64 < p->max; word++) {
    uint64_t free = atomic_load_explicit(&p->free[word], memory_order_relaxed);
    while (free != 0) {
      if (!atomic_compare_exchange_weak_explicit(&p->free[word], &free, free & (free - 1),
                                                 memory_order_acquire, memory_order_relaxed))
        continue;
      atomic_fetch_add_explicit(&p->taken, 1, memory_order_relaxed);
      size_t slot = word * 64 + (unsigned)__builtin_ctzll(free);
      return (struct ta_batch *)(void *)(p->bytes + slot * SLOT_BYTES);
    }
  }
  return NULL;
}

void ta_pool_give(struct ta_pool *p, struct ta_batch *batch) {
  size_t slot = (size_t)((unsigned char *)batch - p->bytes) / SLOT_BYTES;

  atomic_fetch_sub_explicit(&p->taken, 1, memory_order_relaxed);
  atomic_fetch_or_explicit(&p->free[slot / 64], UINT64_C(1) << slot % 64, memory_order_release);
}

/* In one order with what the turner says about its sleep. */
void ta_pool_post(struct ta_pool *p, struct ta_batch *batch) {
  batch->next = atomic_load_explicit(&p->posted, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&p->posted, &batch->next, batch))
    ;
}

struct ta_batch *ta_pool_collect(struct ta_pool *p) {
  struct ta_batch *newest = atomic_exchange_explicit(&p->posted, NULL, memory_order_acquire);
  struct ta_batch *oldest = NULL;

  while (newest != NULL) {
    struct ta_batch *before = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = before;
  }
  return oldest;
}
