/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <string.h>

enum { FIRST_ROOM = 16 };

struct tb_arena_chunk {
  struct tb_arena_chunk *below;
  size_t size; /* of data */
  _Alignas(16) unsigned char data[];
};

void tb_arena_init(struct tb_arena *arena, struct tb_mem *mem, size_t chunk_bytes) {
  *arena = (struct tb_arena){ .mem = mem, .chunk_bytes = chunk_bytes };
}

static void drop_chunk(struct tb_arena *arena, struct tb_arena_chunk *chunk) {
  tb_mem_free(arena->mem, chunk, sizeof *chunk + chunk->size);
}

void tb_arena_reset(struct tb_arena *arena) {
  struct tb_arena_chunk *chunk = arena->top;

  /* Keep the oldest chunk: it has the ordinary size, later ones may be outliers. */
  while (chunk != NULL && chunk->below != NULL) {
    struct tb_arena_chunk *below = chunk->below;
    drop_chunk(arena, chunk);
    chunk = below;
  }
  arena->top = chunk;
  arena->used = 0;
  arena->bytes = 0;
  arena->is_short = false;
}

void tb_arena_fini(struct tb_arena *arena) {
  if (arena->mem == NULL) return;
  tb_arena_reset(arena);
  if (arena->top != NULL) drop_chunk(arena, arena->top);
  *arena = (struct tb_arena){ 0 };
}

size_t tb_arena_held(const struct tb_arena *arena) {
  size_t bytes = 0;

  for (const struct tb_arena_chunk *c = arena->top; c != NULL; c = c->below)
    bytes += sizeof *c + c->size;
  return bytes;
}

static tb_rc arena_grow(struct tb_arena *arena, size_t bytes) {
  size_t size = bytes > arena->chunk_bytes ? bytes : arena->chunk_bytes;
  void *block = NULL;

  if (size > SIZE_MAX - sizeof(struct tb_arena_chunk)) return TB_BUDGET;
  tb_rc rc = tb_mem_resize(arena->mem, &block, 0, sizeof(struct tb_arena_chunk) + size);
  arena->is_short |= rc == TB_NOMEM;
  if (rc != TB_OK) return rc;
  struct tb_arena_chunk *chunk = block;
  chunk->below = arena->top;
  chunk->size = size;
  arena->top = chunk;
  arena->used = 0;
  return TB_OK;
}

tb_rc tb_arena_alloc(struct tb_arena *arena, size_t bytes, void *out) {
  if (bytes > SIZE_MAX - 15) return TB_BUDGET; /* first, so the rounding cannot wrap */
  bytes = (bytes + 15) & ~(size_t)15;
  if (arena->top == NULL || bytes > arena->top->size - arena->used)
    TB_TRY(arena_grow(arena, bytes));
  void *block = arena->top->data + arena->used;
  memcpy(out, &block, sizeof block);
  arena->used += bytes;
  arena->bytes += bytes;
  return TB_OK;
}

tb_rc tb_arena_copy(struct tb_arena *arena, const void *bytes, size_t n, void *out) {
  void *copy = NULL;

  TB_TRY(tb_arena_alloc(arena, n, &copy));
  if (n > 0) memcpy(copy, bytes, n);
  memcpy(out, &copy, sizeof copy);
  return TB_OK;
}

tb_rc tb_arena_grow(struct tb_arena *arena, void *items, size_t *room, size_t n,
                    size_t item_bytes) {
  size_t wanted = *room == 0 ? FIRST_ROOM : 2 * *room;
  void *old, *more = NULL;

  if (n < *room) return TB_OK;
  TB_TRY(tb_arena_alloc(arena, wanted * item_bytes, &more));
  memcpy(&old, items, sizeof old);
  if (n > 0) memcpy(more, old, n * item_bytes);
  memcpy(items, &more, sizeof more);
  *room = wanted;
  return TB_OK;
}
