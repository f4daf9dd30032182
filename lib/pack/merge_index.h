/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the items of a list by a hash of what they contain.
 *
 * Memory    from the arena, and its mem.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TP_PACK_MERGE_INDEX_H
#define TP_PACK_MERGE_INDEX_H

#include "base/arena.h"
#include "base/map.h"

struct tp_index {
  struct tb_arena *arena;
  struct tb_map first; /* number + 1 by hash */
  uint32_t *next;      /* by item: number + 1 of another one with the same hash; 0: none */
  size_t room, n;
};
typedef bool tp_same_fn(const void *list, size_t item, const void *key);

uint64_t tp_hash_text(uint64_t hash, const char *text);
void tp_index_init(struct tp_index *index, struct tb_arena *arena, uint64_t seed);
void tp_index_fini(struct tp_index *index);
/* Finds the item that is the same as key. *out_fresh: there is none; the caller adds it to the list as item *out. */
TB_MUST tb_rc tp_index_find(struct tp_index *index, uint64_t hash, tp_same_fn *same,
                            const void *list, const void *key, size_t *out, bool *out_fresh);

#endif
