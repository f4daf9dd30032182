/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

enum { SLOT_BYTES = 2 * sizeof(uint64_t) + 1, SLOTS_MIN = 16, SLOTS_KEPT = 256, SPARSE = 16 };

void tb_map_init(struct tb_map *map, struct tb_mem *mem, uint64_t seed) {
  *map = (struct tb_map){ .mem = mem, .seed = seed | 1 };
}

void tb_map_fini(struct tb_map *map) {
  if (map->mem != NULL) tb_mem_free(map->mem, map->keys, map->slots * SLOT_BYTES);
  *map = (struct tb_map){ 0 };
}

/* Frees a table that is much too large now, so that a peer's past peak does not slow down later clears and walks. */
void tb_map_clear(struct tb_map *map) {
  if (map->slots > SLOTS_KEPT && map->count < map->slots / SPARSE) {
    tb_mem_free(map->mem, map->keys, map->slots * SLOT_BYTES);
    *map = (struct tb_map){ .mem = map->mem, .seed = map->seed };
    return;
  }
  if (map->slots > 0) memset(map->full, 0, map->slots);
  map->count = 0;
}

size_t tb_map_held(const struct tb_map *map) {
  return map->slots * SLOT_BYTES;
}

/* Uses the highest bits of the product: only they depend on every bit of the key and, for keys whose low bits are
 * zero, on the seed. */
static size_t home_slot(const struct tb_map *map, uint64_t key) {
  uint64_t h = (key ^ (key >> 32)) * (map->seed * UINT64_C(0x9E3779B97F4A7C15) | 1);
  return (size_t)(h >> __builtin_clzll(map->slots - 1));
}

uint64_t *tb_map_find(const struct tb_map *map, uint64_t key) {
  if (map->count == 0) return NULL;
  for (size_t i = home_slot(map, key); map->full[i]; i = (i + 1) & (map->slots - 1))
    if (map->keys[i] == key) return &map->values[i];
  return NULL;
}

/* Requires that the key is absent and that there is room. */
static uint64_t *insert_fresh(struct tb_map *map, uint64_t key, uint64_t value) {
  size_t i = home_slot(map, key);

  while (map->full[i]) i = (i + 1) & (map->slots - 1);
  map->full[i] = 1;
  map->keys[i] = key;
  map->values[i] = value;
  map->count++;
  return &map->values[i];
}

static tb_rc map_grow(struct tb_map *map) {
  size_t slots = map->slots == 0 ? SLOTS_MIN : map->slots * 2;
  void *block = NULL;

  if (slots > SIZE_MAX / SLOT_BYTES / 2) return TB_BUDGET;
  TB_TRY(tb_mem_resize(map->mem, &block, 0, slots * SLOT_BYTES));

  struct tb_map bigger = *map;
  bigger.slots = slots;
  bigger.count = 0;
  bigger.keys = block;
  bigger.values = bigger.keys + slots;
  bigger.full = (uint8_t *)(bigger.values + slots);
  memset(bigger.full, 0, slots);
  for (size_t i = 0; i < map->slots; i++)
    if (map->full[i]) insert_fresh(&bigger, map->keys[i], map->values[i]);
  tb_mem_free(map->mem, map->keys, map->slots * SLOT_BYTES);
  *map = bigger;
  return TB_OK;
}

tb_rc tb_map_put(struct tb_map *map, uint64_t key, uint64_t **out_value, bool *out_fresh) {
  uint64_t *found = tb_map_find(map, key);

  if (out_fresh != NULL) *out_fresh = found == NULL;
  if (found == NULL) {
    if ((map->count + 1) * 4 > map->slots * 3) TB_TRY(map_grow(map));
    found = insert_fresh(map, key, 0);
  }
  *out_value = found;
  return TB_OK;
}

tb_rc tb_map_claim(struct tb_map *map, uint64_t key, size_t bytes, void *out, bool *out_fresh) {
  void *block = tb_map_at(map, key);
  uint64_t *value;

  *out_fresh = block == NULL;
  if (block == NULL) {
    TB_TRY(tb_mem_alloc(map->mem, bytes, &block));
    tb_rc rc = tb_map_put(map, key, &value, NULL);
    if (rc != TB_OK) {
      tb_mem_free(map->mem, block, bytes);
      return rc;
    }
    *value = (uintptr_t)block;
  }
  memcpy(out, &block, sizeof block);
  return TB_OK;
}

bool tb_map_remove(struct tb_map *map, uint64_t key) {
  uint64_t *found = tb_map_find(map, key);
  if (found == NULL) return false;

  size_t mask = map->slots - 1;
  size_t hole = (size_t)(found - map->values);
  for (size_t i = (hole + 1) & mask; map->full[i]; i = (i + 1) & mask) {
    size_t home = home_slot(map, map->keys[i]);
    /* An entry may move into the hole unless its home lies between the hole and itself. */
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    map->keys[hole] = map->keys[i];
    map->values[hole] = map->values[i];
    hole = i;
  }
  map->full[hole] = 0;
  map->count--;
  return true;
}

bool tb_map_next(const struct tb_map *map, size_t *pos, uint64_t *key, uint64_t *value) {
  while (*pos < map->slots && !map->full[*pos]) ++*pos;
  if (*pos >= map->slots) return false;
  *key = map->keys[*pos];
  *value = map->values[*pos];
  ++*pos;
  return true;
}
