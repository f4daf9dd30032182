/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/events/locks.h"

#include "agent/emit/events/put.h"

enum { SLOTS = 2 * TA_LOCKS_MAX, PROBES = 64, HASH_SHIFT = 32, FREE = 0xffff, FREE_SHIFT = 48 };

/* A free word contains the generation that may use it: FREE << 48 | the generation, which no address of a program and no
 * reason equals. A thread that was stopped inside add_row() while the table passed to a newer generation finds another
 * word than it expects, and changes nothing. */
struct row {
  _Atomic uint64_t object, of; /* of: reason << 32 | holder */
};

static struct table {
  _Atomic uint32_t used;
  _Atomic uint64_t missed;
  _Atomic uint64_t slot[SLOTS]; /* half a hash << HASH_SHIFT | a row, from 1; 0: free */
  struct row row[TA_LOCKS_MAX];
} tables[2];

static uint64_t hash_of(uint64_t object, uint64_t of) {
  uint64_t hash = (object ^ of * UINT64_C(0xff51afd7ed558ccd)) * UINT64_C(0x9e3779b97f4a7c15);

  return hash ^ hash >> 29;
}

static bool is_free(uint64_t word) {
  return word >> FREE_SHIFT == FREE || word == 0;
}

static uint64_t free_for(uint32_t gen) {
  return (uint64_t)FREE << FREE_SHIFT | gen;
}

/* Fills a free word. Returns false if the word belongs to a newer generation than gen. */
static bool fill_word(_Atomic uint64_t *word, uint32_t gen, uint64_t value) {
  uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

  if (!is_free(seen) || (seen != 0 && (int32_t)((uint32_t)seen - gen) > 0)) return false;
  return atomic_compare_exchange_strong_explicit(word, &seen, value, memory_order_relaxed,
                                                 memory_order_relaxed);
}

/* A thread that was left behind may still add a slot for a row of its generation to a newer one's table: no event may name
 * a row beyond `used`, because the flusher writes no string for it. */
static bool is_same(const struct table *table, uint32_t row, uint64_t object, uint64_t of) {
  const struct row *at = &table->row[row - 1];

  return row <= atomic_load_explicit(&table->used, memory_order_relaxed) &&
         atomic_load_explicit(&at->object, memory_order_relaxed) == object &&
         atomic_load_explicit(&at->of, memory_order_relaxed) == of;
}

/* Adds a row and returns its number from 1; 0: no room. If another thread adds the same row first, this one stays unused. */
static uint32_t add_row(struct table *table, uint32_t gen, uint64_t object, uint64_t of) {
  if (atomic_load_explicit(&table->used, memory_order_relaxed) >= TA_LOCKS_MAX) return 0;
  uint32_t at = atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed);
  if (at >= TA_LOCKS_MAX) return 0;
  struct row *row = &table->row[at];
  return fill_word(&row->object, gen, object) && fill_word(&row->of, gen, of) ? at + 1 : 0;
}

/* Finds or adds a row and returns its number from 1; 0: no room. */
static uint32_t find_row(struct table *table, uint32_t gen, uint64_t object, uint64_t of) {
  uint64_t hash = hash_of(object, of);
  uint32_t at = hash % SLOTS, mine = 0;

  for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % SLOTS) {
    uint64_t slot = atomic_load_explicit(&table->slot[at], memory_order_acquire);
    if (slot == 0) {
      if (mine == 0) mine = add_row(table, gen, object, of);
      if (mine == 0) return 0;
      if (atomic_compare_exchange_strong_explicit(&table->slot[at], &slot,
                                                  hash >> HASH_SHIFT << HASH_SHIFT | mine,
                                                  memory_order_acq_rel, memory_order_acquire))
        return mine;
    }
    uint32_t row = (uint32_t)slot;
    if (slot >> HASH_SHIFT == hash >> HASH_SHIFT && is_same(table, row, object, of)) return row;
  }
  return 0;
}

uint64_t ta_locks_put(const struct ta_thread *t, uint32_t reason, uintptr_t object,
                      uint32_t holder) {
  uint32_t gen = ta_gen(t), row = 0;
  struct table *table = &tables[gen & 1];
  uint64_t of = (uint64_t)reason << 32;

  if (TB_LIKELY(!is_free(object))) row = find_row(table, gen, object, of | holder);
  if (TB_UNLIKELY(row == 0) && holder != 0 && !is_free(object))
    row = find_row(table, gen, object, of);
  if (TB_LIKELY(row != 0)) return TA_LOCKS_FIRST_ID + row - 1;
  atomic_fetch_add_explicit(&table->missed, 1, memory_order_relaxed);
  return ta_string(t, reason);
}

uint32_t ta_locks_end(uint32_t gen) {
  uint32_t used = atomic_load_explicit(&tables[gen & 1].used, memory_order_acquire);

  return used < TA_LOCKS_MAX ? used : TA_LOCKS_MAX;
}

bool ta_locks_at(uint32_t gen, uint32_t i, struct ta_lock *out) {
  struct row *row = &tables[gen & 1].row[i];
  uint64_t object = atomic_load_explicit(&row->object, memory_order_relaxed);
  uint64_t of = atomic_load_explicit(&row->of, memory_order_relaxed);

  if (is_free(object) || is_free(of)) return false;
  *out = (struct ta_lock){ object, (uint32_t)(of >> 32), (uint32_t)of };
  return true;
}

uint64_t ta_locks_missed(uint32_t gen) {
  return atomic_load_explicit(&tables[gen & 1].missed, memory_order_relaxed);
}

void ta_locks_clear(uint32_t gen) {
  struct table *table = &tables[gen & 1];
  uint32_t end = ta_locks_end(gen);

  atomic_store_explicit(&table->missed, 0, memory_order_relaxed);
  if (end == 0) return;
  for (unsigned i = 0; i < SLOTS; i++)
    atomic_store_explicit(&table->slot[i], 0, memory_order_relaxed);
  for (uint32_t i = 0; i < end; i++) {
    atomic_store_explicit(&table->row[i].object, free_for(gen + 2), memory_order_relaxed);
    atomic_store_explicit(&table->row[i].of, free_for(gen + 2), memory_order_relaxed);
  }
  atomic_store_explicit(&table->used, 0, memory_order_release);
}
