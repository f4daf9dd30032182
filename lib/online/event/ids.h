/* SPDX-License-Identifier: Apache-2.0 */
/* Maps a table's ids to positions: an array for dense ids (Go counts from 1), a hash map for the rest.
 * A peer chooses the ids, so the array grows only while at least half of it is used.
 *
 * Memory    both parts from mem; clear keeps them.
 * Errors    TB_BUDGET, TB_NOMEM from mem.
 */
#ifndef TO_EVENT_IDS_H
#define TO_EVENT_IDS_H

#include "base/map.h"

struct to_ids {
  struct tb_mem *mem;
  uint32_t *dense; /* position + 1; 0: absent */
  size_t dense_len;
  struct tb_map
      sparse; /* ids from dense_len on; older entries that the array covers now are not read */
  size_t count;
  uint64_t all_below; /* after to__ids_settle(): every id from 1 to all_below - 1 is present */
};

enum { TO_IDS_NONE = UINT32_MAX };

void to__ids_init(struct to_ids *ids, struct tb_mem *mem);
void to__ids_fini(struct to_ids *ids);
void to__ids_clear(struct to_ids *ids);

/* Adds an id, which must be absent. */
TB_MUST tb_rc to__ids_put(struct to_ids *ids, uint64_t id, uint32_t position);
void to__ids_settle(struct to_ids *ids);

static inline uint32_t to__ids_find(const struct to_ids *ids, uint64_t id) {
  if (TB_LIKELY(id < ids->dense_len)) return ids->dense[id] - 1; /* 0 - 1 is TO_IDS_NONE */
  if (ids->sparse.count == 0) return TO_IDS_NONE;
  const uint64_t *found = tb_map_find(&ids->sparse, id);
  return found == NULL ? TO_IDS_NONE : (uint32_t)*found;
}

/* Prefetches the entry of an id. */
static inline void to__ids_fetch(const struct to_ids *ids, uint64_t id) {
  if (id < ids->dense_len) __builtin_prefetch(&ids->dense[id], 1);
}

/* Id 0 always exists: the empty string, the empty stack. */
static inline bool to__ids_has(const struct to_ids *ids, uint64_t id) {
  return id < ids->all_below || id == 0 || to__ids_find(ids, id) != TO_IDS_NONE;
}

#endif
