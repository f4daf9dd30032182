/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a size are numbered from the start of the mapping; the parts of one larger block form a group. A group's
 * bits are adjacent in one word, so that "all parts are free" is one comparison. While a larger block is not split, the
 * bits of its parts are zero, so no part of it can be taken. */
#include "agent/emit/core/pool.h"

#include <sys/mman.h>

/* Whole cache lines, so that two batches never share one. */
enum {
  LINE = 64,
  PAGE = 4096,
  SMALL_BYTES = 576,
  MEDIUM_BYTES = 8704,
  LARGE_BYTES = 8 * MEDIUM_BYTES,
  WORD_BITS = 64,
};

_Static_assert(LARGE_BYTES >= sizeof(struct ta_batch) + TW_WRITE_ROOM, "a batch may be 64 KiB");
_Static_assert(LARGE_BYTES % PAGE == 0 && MEDIUM_BYTES % LINE == 0 && SMALL_BYTES % LINE == 0,
               "blocks are whole lines");
_Static_assert(15 * SMALL_BYTES <= MEDIUM_BYTES, "a medium block holds its parts");

static const struct size {
  uint32_t bytes;
  uint32_t parts;      /* blocks in one of the next larger size */
  uint32_t group_bits; /* bits of a group in the map: a power of two */
} sizes[TA_BATCH_SIZES] = {
  [TA_BATCH_SMALL] = { SMALL_BYTES, 15, 16 },
  [TA_BATCH_MEDIUM] = { MEDIUM_BYTES, 8, 8 },
  [TA_BATCH_LARGE] = { LARGE_BYTES, 1, 1 },
};

size_t ta_batch_block_bytes(enum ta_batch_size size) {
  return sizes[size].bytes;
}

size_t ta_batch_room_bytes(enum ta_batch_size size) {
  size_t bytes = sizes[size].bytes - sizeof(struct ta_batch);

  return bytes < TW_WRITE_ROOM ? bytes : TW_WRITE_ROOM;
}

/* Number of groups of a size: blocks of the next larger size. */
static uint64_t groups(unsigned large, enum ta_batch_size size) {
  return size == TA_BATCH_LARGE    ? large
         : size == TA_BATCH_MEDIUM ? large
                                   : (uint64_t)large * sizes[TA_BATCH_MEDIUM].parts;
}

static uint32_t words(unsigned large, enum ta_batch_size size) {
  return (uint32_t)((groups(large, size) * sizes[size].group_bits + WORD_BITS - 1) / WORD_BITS);
}

/* The mapping holds the blocks first, then the bit maps. */
tb_rc ta_pool_init(struct ta_pool *p, uint64_t bytes) {
  uint64_t large = bytes / LARGE_BYTES;
  size_t map_words = 0;

  *p = (struct ta_pool){ .max = large > TA_LARGE_BATCHES_MAX ? TA_LARGE_BATCHES_MAX
                                                             : (unsigned)large };
  for (enum ta_batch_size size = 0; size < TA_BATCH_SIZES; size++) map_words += words(p->max, size);
  size_t blocks_bytes = (size_t)p->max * LARGE_BYTES;
  p->mapped_bytes = blocks_bytes + map_words * sizeof(uint64_t);
  void *map = mmap(NULL, p->mapped_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return TB_NOMEM;
  madvise(map, p->mapped_bytes,
          MADV_WIPEONFORK); /* a child does not need it: its fork() is quicker */
  p->bytes = map;
  _Atomic uint64_t *at = (_Atomic uint64_t *)(void *)(p->bytes + blocks_bytes);
  for (enum ta_batch_size size = 0; size < TA_BATCH_SIZES; size++) {
    p->blocks[size].free = at;
    p->blocks[size].words = words(p->max, size);
    at += p->blocks[size].words;
  }
  struct ta_blocks *whole = &p->blocks[TA_BATCH_LARGE];
  for (unsigned i = 0; i < p->max; i++)
    atomic_fetch_or_explicit(&whole->free[i / WORD_BITS], UINT64_C(1) << i % WORD_BITS,
                             memory_order_relaxed);
  atomic_store(&whole->count, p->max);
  return TB_OK;
}

void ta_pool_fini(struct ta_pool *p) {
  if (p->bytes == NULL) return;
  munmap(p->bytes, p->mapped_bytes);
  p->bytes = NULL;
}

/* Blocks. */

static const uint32_t no_block = UINT32_MAX;

/* Convert a bit of the map to a block's number, and back: small groups have 16 bits for 15 blocks. */
static uint32_t block_of_bit(enum ta_batch_size size, uint32_t bit) {
  return bit / sizes[size].group_bits * sizes[size].parts + bit % sizes[size].group_bits;
}

static uint32_t bit_of_block(enum ta_batch_size size, uint32_t block) {
  return block / sizes[size].parts * sizes[size].group_bits + block % sizes[size].parts;
}

/* Address of a block. A block's first part begins at the same address as the block. */
static unsigned char *place_of(const struct ta_pool *p, enum ta_batch_size size, uint32_t block) {
  size_t at = 0;

  for (; size < TA_BATCH_LARGE; size++) {
    at += (size_t)(block % sizes[size].parts) * sizes[size].bytes;
    block /= sizes[size].parts;
  }
  return p->bytes + at + (size_t)block * LARGE_BYTES;
}

static uint32_t block_at(const struct ta_pool *p, enum ta_batch_size size,
                         const unsigned char *place) {
  size_t at = (size_t)(place - p->bytes), in_medium;
  uint32_t large = (uint32_t)(at / LARGE_BYTES), medium;

  if (size == TA_BATCH_LARGE) return large;
  at %= LARGE_BYTES;
  medium = large * sizes[TA_BATCH_MEDIUM].parts + (uint32_t)(at / MEDIUM_BYTES);
  if (size == TA_BATCH_MEDIUM) return medium;
  in_medium = at % MEDIUM_BYTES;
  return medium * sizes[TA_BATCH_SMALL].parts + (uint32_t)(in_medium / SMALL_BYTES);
}

static uint64_t group_mask(enum ta_batch_size size, uint32_t bit) {
  uint64_t ones = (UINT64_C(1) << sizes[size].parts) - 1;

  return ones << bit % WORD_BITS / sizes[size].group_bits * sizes[size].group_bits;
}

/* Takes a free block of that size without splitting a larger one. */
static uint32_t take_free(struct ta_blocks *b, enum ta_batch_size size) {
  if (atomic_load_explicit(&b->count, memory_order_relaxed) == 0) return no_block;
  uint32_t first =
      size == TA_BATCH_LARGE ? 0 : atomic_load_explicit(&b->hint, memory_order_relaxed);

  for (uint32_t i = 0; i < b->words; i++) {
    uint32_t word = first + i < b->words ? first + i : first + i - b->words;
    uint64_t free = atomic_load_explicit(&b->free[word], memory_order_relaxed);
    while (free != 0) {
      if (!atomic_compare_exchange_weak_explicit(&b->free[word], &free, free & (free - 1),
                                                 memory_order_acquire, memory_order_relaxed))
        continue;
      atomic_fetch_sub_explicit(&b->count, 1, memory_order_relaxed);
      if (word != first) atomic_store_explicit(&b->hint, word, memory_order_relaxed);
      return block_of_bit(size, word * WORD_BITS + (uint32_t)__builtin_ctzll(free));
    }
  }
  return no_block;
}

/* Takes a block; if none is free, splits a larger one, returns its first part and frees the others. */
static uint32_t take_block(struct ta_pool *p, enum ta_batch_size size) {
  struct ta_blocks *b = &p->blocks[size];
  uint32_t block = take_free(b, size);

  if (block != no_block || size == TA_BATCH_LARGE) {
    if (block != no_block && size == TA_BATCH_LARGE)
      atomic_fetch_add_explicit(&p->taken, 1, memory_order_relaxed);
    return block;
  }
  uint32_t whole = take_block(p, size + 1);
  if (whole == no_block) return no_block;
  block = whole * sizes[size].parts;
  uint32_t bit = bit_of_block(size, block);
  uint64_t first = UINT64_C(1) << bit % WORD_BITS;
  atomic_fetch_add_explicit(&b->count, sizes[size].parts - 1, memory_order_relaxed);
  atomic_fetch_or_explicit(&b->free[bit / WORD_BITS], group_mask(size, bit) & ~first,
                           memory_order_release);
  atomic_store_explicit(&b->hint, bit / WORD_BITS, memory_order_relaxed);
  return block;
}

/* Frees a block. When all parts of a larger block are free, their bits are cleared and the larger one is freed; if several
 * threads try that, one succeeds. */
static void give_block(struct ta_pool *p, enum ta_batch_size size, uint32_t block) {
  struct ta_blocks *b = &p->blocks[size];
  uint32_t bit = bit_of_block(size, block);
  _Atomic uint64_t *word = &b->free[bit / WORD_BITS];
  uint64_t mask = group_mask(size, bit);

  if (size == TA_BATCH_LARGE) atomic_fetch_sub_explicit(&p->taken, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&b->count, 1, memory_order_relaxed);
  uint64_t free =
      atomic_fetch_or_explicit(word, UINT64_C(1) << bit % WORD_BITS, memory_order_acq_rel) |
      UINT64_C(1) << bit % WORD_BITS;
  if (size == TA_BATCH_LARGE) return;
  while ((free & mask) == mask) {
    if (!atomic_compare_exchange_weak_explicit(word, &free, free & ~mask, memory_order_acq_rel,
                                               memory_order_relaxed))
      continue;
    atomic_fetch_sub_explicit(&b->count, sizes[size].parts, memory_order_relaxed);
    give_block(p, size + 1, block / sizes[size].parts);
    return;
  }
}

/* Batches. */

bool ta_batch_has_room(enum ta_batch_size size, size_t bytes) {
  return bytes + TW_BATCH_HEADER_BYTES_MAX <= ta_batch_room_bytes(size);
}

struct ta_batch *ta_pool_acquire(struct ta_pool *p, enum ta_batch_size size, size_t need_bytes) {
  for (;; size--) {
    if (!ta_batch_has_room(size, need_bytes)) return NULL;
    uint32_t block = take_block(p, size);
    if (block != no_block) {
      struct ta_batch *batch = (struct ta_batch *)(void *)place_of(p, size, block);
      batch->size = (uint8_t)size;
      return batch;
    }
    if (size == TA_BATCH_SMALL) return NULL;
  }
}

void ta_pool_release(struct ta_pool *p, struct ta_batch *batch) {
  enum ta_batch_size size = batch->size;

  give_block(p, size, block_at(p, size, (const unsigned char *)batch));
}

/* Sequentially consistent, to be ordered with the flusher's store of its sleep state. */
void ta_pool_post(struct ta_pool *p, struct ta_batch *batch) {
  batch->next = atomic_load_explicit(&p->posted, memory_order_relaxed);
  while (!atomic_compare_exchange_weak(&p->posted, &batch->next, batch))
    ;
}

struct ta_batch *ta_pool_collect(struct ta_pool *p) {
  struct ta_batch *newest = atomic_exchange_explicit(&p->posted, NULL, memory_order_acquire);
  struct ta_batch *oldest = NULL;

  while (newest != NULL) {
    struct ta_batch *before = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = before;
  }
  return oldest;
}
