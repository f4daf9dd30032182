/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for threads' events: batches of three sizes, and the queue of full ones to the flusher.
 *
 * A thread holds a batch for each generation in which it writes. Most threads write little, so batches of one size would
 * waste nearly all of the memory. Thousands of threads fit because a quiet thread has a small batch. The format allows
 * any size up to 64 KiB.
 *
 *   size                block    of one larger block
 *   TA_BATCH_LARGE      68 KiB
 *   TA_BATCH_MEDIUM     8.5 KiB   8
 *   TA_BATCH_SMALL      576 B    15
 *
 * A larger block is split when no smaller one is free, and becomes whole again when all of its parts are free. Bit maps
 * record the free blocks; take, give and post are a compare-and-swap each, and none of them waits.
 *
 * Memory    one mapping made at init, touched as it is used; the lowest free block is taken first.
 * Threads   take, give and post: any. collect: one.
 * Errors    TB_NOMEM from init. take returns NULL if no block of that size or a smaller one is free.
 */
#ifndef TA_EMIT_CORE_POOL_H
#define TA_EMIT_CORE_POOL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "wire/write.h"

enum ta_batch_size { TA_BATCH_SMALL, TA_BATCH_MEDIUM, TA_BATCH_LARGE, TA_BATCH_SIZES };

enum { TA_LARGE_BATCHES_MAX = 4096 };

struct ta_batch {
  struct ta_batch *next; /* posted before this one */
  uint32_t gen;          /* generation */
  uint8_t size;          /* enum ta_batch_size */
  struct tw_write write;
  unsigned char room[];
};

/* The free blocks of one size: one bit each, set while free. */
struct ta_blocks {
  _Atomic uint64_t *free;
  uint32_t words;
  _Atomic uint32_t hint; /* word in which a free bit was last seen */
  atomic_uint count;     /* free blocks, approximately */
};

struct ta_pool {
  unsigned char *bytes;
  size_t mapped_bytes;
  unsigned max; /* large blocks */
  _Atomic(struct ta_batch *) posted;
  atomic_uint taken; /* large blocks that are taken or split */
  struct ta_blocks blocks[TA_BATCH_SIZES];
};

TB_MUST tb_rc ta_pool_init(struct ta_pool *p, uint64_t bytes);
void ta_pool_fini(struct ta_pool *p); /* accepts zeroed memory */

/* Takes a batch of that size, or of a smaller one that has need_bytes after its header. */
struct ta_batch *ta_pool_acquire(struct ta_pool *p, enum ta_batch_size size, size_t need_bytes);
void ta_pool_release(struct ta_pool *p, struct ta_batch *batch);
void ta_pool_post(struct ta_pool *p, struct ta_batch *batch);
/* Takes all posted batches, oldest first, linked by next. */
struct ta_batch *ta_pool_collect(struct ta_pool *p);

/* Bytes of a block, and of the batch in it including the batch's header. */
size_t ta_batch_block_bytes(enum ta_batch_size size);
size_t ta_batch_room_bytes(enum ta_batch_size size);
bool ta_batch_has_room(enum ta_batch_size size, size_t bytes); /* bytes after the batch's header */

#endif
