/* SPDX-License-Identifier: Apache-2.0 */
/* The batches that threads write into, and the way of those that are full to the turner.
 *
 * A fixed number of them, one mapping, touched as they are used; the lowest free one is taken first. Taking,
 * giving and posting are a compare-and-swap each, once in 64 KiB of events.
 *
 * Memory    one mapping made at init.
 * Threads   take, give and post: any. collect: one.
 * Errors    TB_NOMEM from init. take answers NULL when all are in use.
 */
#ifndef TA_POOL_H
#define TA_POOL_H

#include <stdatomic.h>

#include "wire/write.h"

enum { TA_BATCHES_MAX = 4096 };

struct ta_batch {
  struct ta_batch *next; /* posted before this one */
  uint32_t turn;         /* what it belongs to */
  struct tw_write write;
  unsigned char room[TW_WRITE_ROOM];
};

struct ta_pool {
  unsigned char *bytes;
  size_t mapped_bytes;
  unsigned max;
  _Atomic(struct ta_batch *) posted;
  atomic_uint taken;
  _Atomic uint64_t free[TA_BATCHES_MAX / 64]; /* bit set */
};

TB_MUST tb_rc ta_pool_init(struct ta_pool *p, uint64_t bytes);
void ta_pool_fini(struct ta_pool *p); /* accepts zeroed memory */

struct ta_batch *ta_pool_take(struct ta_pool *p);
void ta_pool_give(struct ta_pool *p, struct ta_batch *batch);
void ta_pool_post(struct ta_pool *p, struct ta_batch *batch);
/* All that were posted, the oldest first, linked by next. */
struct ta_batch *ta_pool_collect(struct ta_pool *p);

#endif
