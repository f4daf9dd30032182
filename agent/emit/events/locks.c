/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/events/locks.h"

#include "agent/emit/events/put.h"

enum { SLOTS = 2 * TA_LOCKS_MAX, PROBES = 64, HASH_SHIFT = 32 };

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

/* A thread that was left behind may yet put a row of its generation into the table of a newer one: no event may name a row
 * that is not counted there, because the flusher writes no string for it. */
static bool is_same(const struct table *table, uint32_t row, uint64_t object, uint64_t of) {
  const struct row *at = &table->row[row - 1];

  return row <= atomic_load_explicit(&table->used, memory_order_relaxed) &&
         atomic_load_explicit(&at->object, memory_order_relaxed) == object &&
         atomic_load_explicit(&at->of, memory_order_relaxed) == of;
}

/* From 1; 0: there is no room. A row that another thread then makes, too, stays as one that no event names. */
static uint32_t write_down(struct table *table, uint64_t object, uint64_t of) {
  if (atomic_load_explicit(&table->used, memory_order_relaxed) >= TA_LOCKS_MAX) return 0;
  uint32_t at = atomic_fetch_add_explicit(&table->used, 1, memory_order_relaxed);
  if (at >= TA_LOCKS_MAX) return 0;
  atomic_store_explicit(&table->row[at].object, object, memory_order_relaxed);
  atomic_store_explicit(&table->row[at].of, of, memory_order_relaxed);
  return at + 1;
}

/* A row, from 1; 0: there is no room. */
static uint32_t find(struct table *table, uint64_t object, uint64_t of) {
  uint64_t hash = hash_of(object, of);
  uint32_t at = hash % SLOTS, mine = 0;

  for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % SLOTS) {
    uint64_t slot = atomic_load_explicit(&table->slot[at], memory_order_acquire);
    if (slot == 0) {
      if (mine == 0) mine = write_down(table, object, of);
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
  struct table *table = &tables[ta_gen(t) & 1];
  uint64_t of = (uint64_t)reason << 32;
  uint32_t row = find(table, object, of | holder);

  if (TB_UNLIKELY(row == 0) && holder != 0) row = find(table, object, of);
  if (TB_LIKELY(row != 0)) return TA_LOCKS_FIRST_ID + row - 1;
  atomic_fetch_add_explicit(&table->missed, 1, memory_order_relaxed);
  return ta_string(t, reason);
}

bool ta_locks_at(uint32_t gen, uint32_t i, struct ta_lock *out) {
  struct table *table = &tables[gen & 1];

  if (i >= TA_LOCKS_MAX || i >= atomic_load_explicit(&table->used, memory_order_acquire))
    return false;
  uint64_t of = atomic_load_explicit(&table->row[i].of, memory_order_relaxed);
  *out = (struct ta_lock){ atomic_load_explicit(&table->row[i].object, memory_order_relaxed),
                           (uint32_t)(of >> 32), (uint32_t)of };
  return true;
}

uint64_t ta_locks_missed(uint32_t gen) {
  return atomic_load_explicit(&tables[gen & 1].missed, memory_order_relaxed);
}

void ta_locks_clear(uint32_t gen) {
  struct table *table = &tables[gen & 1];

  atomic_store_explicit(&table->missed, 0, memory_order_relaxed);
  if (atomic_load_explicit(&table->used, memory_order_relaxed) == 0) return;
  for (unsigned i = 0; i < SLOTS; i++)
    atomic_store_explicit(&table->slot[i], 0, memory_order_relaxed);
  atomic_store_explicit(&table->used, 0, memory_order_relaxed);
}
