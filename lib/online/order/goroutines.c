/* SPDX-License-Identifier: Apache-2.0 */
#include "online/order/goroutines.h"

#include "base/grow.h"
#include "base/seed.h"

#include <string.h>

enum { BLOCK_GS = 64, EMPTY_MAX = 64 };

struct to_g_block {
  struct to_g_block *above, *below; /* in the list of blocks with room */
  struct to_g *spare;               /* released goroutines */
  uint32_t used, fresh;             /* fresh: index of the first never used */
  uint32_t number;
  struct to_g gs[BLOCK_GS];
};

static void set_buckets(struct to_goroutines *gs, struct to_g **buckets, size_t count) {
  gs->buckets = buckets;
  gs->mask = count - 1;
}

void to__goroutines_init(struct to_goroutines *gs, struct tb_mem *mem) {
  *gs = (struct to_goroutines){ .mem = mem, .factor = tb_seed() | 1 };
  set_buckets(gs, gs->few, TO_G_BUCKETS_MIN);
}

static void give_buckets(struct to_goroutines *gs) {
  if (gs->buckets == gs->few) return;
  tb_mem_free(gs->mem, gs->buckets, (gs->mask + 1) * sizeof *gs->buckets);
}

static void unlist_block(struct to_goroutines *gs, struct to_g_block *block) {
  if (block->above == NULL)
    gs->roomy = block->below;
  else
    block->above->below = block->below;
  if (block->below != NULL) block->below->above = block->above;
}

static void list_block(struct to_goroutines *gs, struct to_g_block *block) {
  block->above = NULL;
  block->below = gs->roomy;
  if (gs->roomy != NULL) gs->roomy->above = block;
  gs->roomy = block;
}

void to__goroutines_fini(struct to_goroutines *gs) {
  if (gs->mem == NULL) return;
  for (struct to_g_block *block; (block = gs->roomy) != NULL;) {
    unlist_block(gs, block);
    tb_mem_free(gs->mem, block, sizeof *block);
  }
  give_buckets(gs);
  tb_mem_free(gs->mem, gs->free_numbers, gs->free_room * sizeof *gs->free_numbers);
  gs->mem = NULL;
  gs->buckets = NULL;
}

/* Takes a block number, with room in free_numbers, so that releasing the number cannot fail. */
static tb_rc take_number(struct to_goroutines *gs, uint32_t *out) {
  if (gs->free_count > 0) {
    *out = gs->free_numbers[--gs->free_count];
    return TB_OK;
  }
  if (gs->numbers == UINT32_MAX / BLOCK_GS) return TB_BUDGET;
  TB_TRY(TB_MEM_GROW(gs->mem, gs->free_numbers, gs->free_room, gs->numbers));
  *out = gs->numbers++;
  return TB_OK;
}

static __attribute__((noinline)) tb_rc add_block(struct to_goroutines *gs) {
  struct to_g_block *block;
  uint32_t number;

  TB_TRY(take_number(gs, &number));
  void *bytes = NULL;
  tb_rc rc = tb_mem_resize(gs->mem, &bytes, 0, sizeof *block);
  if (rc != TB_OK) {
    gs->free_numbers[gs->free_count++] = number;
    return rc;
  }
  block = bytes;
  block->spare = NULL;
  block->used = block->fresh = 0;
  block->number = number;
  gs->empty++;
  list_block(gs, block);
  return TB_OK;
}

/* Takes a goroutine from a block with room; there must be one. */
static struct to_g *take_goroutine(struct to_goroutines *gs) {
  struct to_g_block *block = gs->roomy;
  struct to_g *g = block->spare;

  if (g != NULL) {
    block->spare = g->next;
  } else {
    g = &block->gs[block->fresh];
    g->slot = 1 + block->number * BLOCK_GS + block->fresh++;
  }
  if (block->used == 0) gs->empty--;
  if (++block->used == BLOCK_GS) unlist_block(gs, block);
  return g;
}

/* Releases a goroutine. Some empty blocks stay: if goroutines begin and end in waves, a
 * block would be allocated for every few dozen of them. */
static void release_goroutine(struct to_goroutines *gs, struct to_g *g) {
  struct to_g *first = g - (g->slot - 1) % BLOCK_GS;
  struct to_g_block *block = (void *)((char *)first - offsetof(struct to_g_block, gs));

  g->next = block->spare;
  block->spare = g;
  if (block->used-- == BLOCK_GS) list_block(gs, block);
  if (block->used > 0) return;
  if (gs->empty < EMPTY_MAX) {
    gs->empty++;
    return;
  }
  unlist_block(gs, block);
  gs->free_numbers[gs->free_count++] = block->number;
  tb_mem_free(gs->mem, block, sizeof *block);
}

static void put_in_bucket(struct to_goroutines *gs, struct to_g *g) {
  struct to_g **bucket = &gs->buckets[to__goroutines_bucket(gs, g->id)];

  g->next = *bucket;
  *bucket = g;
}

static __attribute__((noinline)) tb_rc grow_buckets(struct to_goroutines *gs) {
  size_t old_count = gs->mask + 1, count = old_count * 2;
  struct to_g **old = gs->buckets;
  void *buckets = NULL;

  if (count > SIZE_MAX / sizeof *gs->buckets) return TB_BUDGET;
  TB_TRY(tb_mem_resize(gs->mem, &buckets, 0, count * sizeof *gs->buckets));
  memset(buckets, 0, count * sizeof *gs->buckets);
  set_buckets(gs, buckets, count);
  for (size_t i = 0; i < old_count; i++) {
    for (struct to_g *g = old[i], *next; g != NULL; g = next) {
      next = g->next;
      put_in_bucket(gs, g);
    }
  }
  if (old != gs->few) tb_mem_free(gs->mem, old, old_count * sizeof *old);
  return TB_OK;
}

static __attribute__((noinline)) tb_rc add_with_room_made(struct to_goroutines *gs, int64_t id,
                                                          struct to_g **out) {
  if (gs->count > gs->mask) TB_TRY(grow_buckets(gs));
  if (gs->roomy == NULL) TB_TRY(add_block(gs));
  return to__goroutines_add(gs, id, out);
}

tb_rc to__goroutines_add(struct to_goroutines *gs, int64_t id, struct to_g **out) {
  if (TB_UNLIKELY(gs->count > gs->mask || gs->roomy == NULL))
    return add_with_room_made(gs, id, out); /* a tail call, so no registers are saved */
  struct to_g *g = take_goroutine(gs);
  g->id = id;
  g->seq = 0;
  g->more = NULL;
  g->seq_gen = 0;
  g->bound = 0;
  g->status = TO_G_GONE;
  put_in_bucket(gs, g);
  gs->count++;
  *out = g;
  return TB_OK;
}

void to__goroutines_remove(struct to_goroutines *gs, struct to_g *g) {
  struct to_g **link = &gs->buckets[to__goroutines_bucket(gs, g->id)];

  while (*link != g) link = &(*link)->next;
  *link = g->next;
  gs->count--;
  release_goroutine(gs, g);
}

struct to_g *to__goroutines_any(const struct to_goroutines *gs, size_t *from) {
  if (gs->count == 0) return NULL; /* walking empty buckets would be most of a short trace's cost */
  while (*from <= gs->mask && gs->buckets[*from] == NULL) ++*from;
  return *from <= gs->mask ? gs->buckets[*from] : NULL;
}
