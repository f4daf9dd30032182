/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/merge_index.h"

#include <string.h>

#include "base/hash.h"

uint64_t tp_hash_text(uint64_t hash, const char *text) {
  return tb_hash(hash, text, strlen(text) + 1);
}

void tp_index_init(struct tp_index *index, struct tb_arena *arena, uint64_t seed) {
  *index = (struct tp_index){ .arena = arena };
  tb_map_init(&index->first, arena->mem, seed | 1);
}

void tp_index_fini(struct tp_index *index) {
  tb_map_fini(&index->first);
}

tb_rc tp_index_find(struct tp_index *index, uint64_t hash, tp_same_fn *same, const void *list,
                    const void *key, size_t *out, bool *out_fresh) {
  uint64_t *first;

  TB_TRY(tb_map_put(&index->first, hash, &first, NULL));
  *out_fresh = false;
  for (uint64_t i = *first; i != 0; i = index->next[i - 1]) {
    *out = i - 1;
    if (same(list, i - 1, key)) return TB_OK;
  }
  TB_TRY(TB_ARENA_GROW(index->arena, index->next, index->room, index->n));
  index->next[index->n] = (uint32_t)*first;
  *out = index->n++;
  *first = index->n;
  *out_fresh = true;
  return TB_OK;
}
