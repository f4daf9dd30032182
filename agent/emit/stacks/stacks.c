/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/stacks/stacks.h"

#include <string.h>
#include <sys/mman.h>

enum { PROBES = 64 };

struct ta_stacks *ta_stacks;

tb_rc ta_stacks_make(void) {
  if (ta_stacks != NULL) return TB_OK;
  void *map = mmap(NULL, 2 * sizeof *ta_stacks, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return TB_NOMEM;
  ta_stacks = map;
  ta_stacks_clear(0);
  ta_stacks_clear(1);
  return TB_OK;
}

void ta_stacks_clear(uint32_t gen) {
  struct ta_stacks *table = &ta_stacks[gen & 1];

  if (atomic_load_explicit(&table->words_used, memory_order_relaxed) == 1) return;
  for (unsigned i = 0; i < TA_STACKS_SLOTS; i++)
    atomic_store_explicit(&table->slots[i], 0, memory_order_relaxed);
  atomic_store_explicit(&table->words_used, 1, memory_order_relaxed);
}

static uint64_t hash_of(const uint64_t *pcs, unsigned n) {
  uint64_t hash = n;

  for (unsigned i = 0; i < n; i++) {
    hash = (hash ^ pcs[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
  }
  return hash;
}

static bool is_same(const struct ta_stacks *table, uint64_t slot, const uint64_t *pcs, unsigned n) {
  const uint64_t *kept = &table->words[(uint32_t)slot];

  return kept[0] == n && memcmp(kept + 1, pcs, n * sizeof *pcs) == 0;
}

/* Returns the index in words, or 0 if there is no room. */
static uint32_t write_pcs(struct ta_stacks *table, const uint64_t *pcs, unsigned n) {
  if (atomic_load_explicit(&table->words_used, memory_order_relaxed) + n >= TA_STACKS_WORDS)
    return 0;
  uint32_t at = atomic_fetch_add_explicit(&table->words_used, n + 1, memory_order_relaxed);
  if (at + n >= TA_STACKS_WORDS) return 0;
  table->words[at] = n;
  memcpy(&table->words[at + 1], pcs, n * sizeof *pcs);
  return at;
}

uint32_t ta_stacks_put(uint32_t gen, const uint64_t *pcs, unsigned n) {
  struct ta_stacks *table = &ta_stacks[gen & 1];
  uint64_t hash = hash_of(pcs, n), mine = 0;
  uint32_t at = hash % TA_STACKS_SLOTS;

  for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % TA_STACKS_SLOTS) {
    uint64_t slot = atomic_load_explicit(&table->slots[at], memory_order_acquire);
    if (slot == 0) {
      if (mine == 0) mine = write_pcs(table, pcs, n);
      if (mine == 0) break;
      if (atomic_compare_exchange_strong_explicit(&table->slots[at], &slot,
                                                  hash >> 32 << 32 | (uint32_t)mine,
                                                  memory_order_acq_rel, memory_order_acquire))
        return ta_stacks_id(at);
    }
    if (slot >> 32 == hash >> 32 && is_same(table, slot, pcs, n)) return ta_stacks_id(at);
  }
  atomic_fetch_add_explicit(&ta_emit.lost_stacks, 1, memory_order_relaxed);
  return 0;
}

const uint64_t *ta_stacks_at(uint32_t gen, uint32_t slot, unsigned *out_n) {
  struct ta_stacks *table = &ta_stacks[gen & 1];
  uint32_t at = (uint32_t)atomic_load_explicit(&table->slots[slot], memory_order_acquire);
  uint64_t n = table->words[at];

  /* A thread that was left behind in the middle of write_pcs() may overwrite another stack. */
  if (at == 0 || n > TA_FRAMES_MAX || n > TA_STACKS_WORDS - at - 1) return NULL;
  *out_n = (unsigned)n;
  return &table->words[at + 1];
}
