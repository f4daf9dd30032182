/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from u64 to u64, safe for keys that a peer chooses.
 *
 * Multiplicative hash with a secret seed, linear probing, at most 3/4 full; removal shifts entries
 * back, so there are no tombstones. Pointers are stored as uintptr_t.
 *
 * Memory    one table, charged to mem: 17 bytes a slot.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM from mem; lookups cannot fail.
 */
#ifndef TB_MAP_H
#define TB_MAP_H

#include "base/mem.h"
#include "base/seed.h"

struct tb_map {
  struct tb_mem *mem;
  uint64_t seed; /* odd */
  uint64_t *keys, *values;
  uint8_t *full; /* 1: the slot holds an entry */
  size_t slots, count;
};

/* seed: tb_seed(), unless every key is a number of our own. */
void tb_map_init(struct tb_map *map, struct tb_mem *mem, uint64_t seed);
void tb_map_fini(struct tb_map *map);         /* accepts a zeroed map */
void tb_map_clear(struct tb_map *map);        /* keeps the table, unless it was almost empty */
size_t tb_map_held(const struct tb_map *map); /* bytes of the table, charged to mem */

/* Returns the value's address, valid until the next put or remove, or NULL. */
uint64_t *tb_map_find(const struct tb_map *map, uint64_t key);
/* Finds or adds the entry; a fresh value is 0. out_fresh may be NULL. */
TB_MUST tb_rc tb_map_put(struct tb_map *map, uint64_t key, uint64_t **out_value, bool *out_fresh);
bool tb_map_remove(struct tb_map *map, uint64_t key);

/* Maps of pointers. tb_map_at() returns NULL if the key is absent. tb_map_claim() finds the key's block or adds one of
 * `bytes` zeros from the map's mem, which the caller releases after tb_map_remove(). out: the address of any pointer. */
static inline void *tb_map_at(const struct tb_map *map, uint64_t key) {
  const uint64_t *value = tb_map_find(map, key);

  return value == NULL ? NULL : (void *)(uintptr_t)*value;
}
TB_MUST tb_rc tb_map_claim(struct tb_map *map, uint64_t key, size_t bytes, void *out,
                           bool *out_fresh);

/* for (size_t i = 0; tb_map_next(map, &i, &key, &value);) in no order; the map must not change. */
bool tb_map_next(const struct tb_map *map, size_t *pos, uint64_t *key, uint64_t *value);

#endif
