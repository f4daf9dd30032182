/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: small allocations that are freed together, such as all of a generation's.
 *
 * Memory    chunks from mem, released by tb_arena_fini(); tb_arena_reset() keeps the first chunk, so
 *           a steady stream allocates nothing.
 * Errors    TB_BUDGET, TB_NOMEM from mem.
 */
#ifndef TB_ARENA_H
#define TB_ARENA_H

#include "base/mem.h"

struct tb_arena_chunk;

struct tb_arena {
  struct tb_mem *mem;
  struct tb_arena_chunk *top;
  size_t used;  /* in top */
  size_t bytes; /* allocated since the last reset */
  size_t chunk_bytes;
  bool is_short; /* mem returned TB_NOMEM since the last reset */
};

void tb_arena_init(struct tb_arena *arena, struct tb_mem *mem, size_t chunk_bytes);
void tb_arena_reset(struct tb_arena *arena);
void tb_arena_fini(struct tb_arena *arena);         /* accepts a zeroed arena */
size_t tb_arena_held(const struct tb_arena *arena); /* bytes of its chunks, charged to mem */

/* Allocates bytes aligned to 16, not zeroed, valid until reset or fini. out: the address of a pointer of any type,
 * untouched on failure. */
TB_MUST tb_rc tb_arena_alloc(struct tb_arena *arena, size_t bytes, void *out);
TB_MUST tb_rc tb_arena_copy(struct tb_arena *arena, const void *bytes, size_t n, void *out);
/* Makes room for one more item after the n items of a list in the arena, which may move. An empty list is NULL with room 0. */
#define TB_ARENA_GROW(arena, items, room, n)                                                       \
  tb_arena_grow((arena), &(items), &(room), (n), sizeof *(items))
TB_MUST tb_rc tb_arena_grow(struct tb_arena *arena, void *items, size_t *room, size_t n,
                            size_t item_bytes);

#endif
