/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of three sizes from one memory: no batch is handed out twice, and parts are joined to
 * whole blocks again. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "agent/emit/core/pool.h"

enum { LARGE = 4, MEDIUM_IN_LARGE = 8, SMALL_IN_MEDIUM = 15, MOST = 1024 };

static struct ta_pool pool_of(unsigned large) {
  struct ta_pool pool;

  cr_assert_eq(ta_pool_init(&pool, large * ta_batch_block_bytes(TA_BATCH_LARGE)), TB_OK);
  cr_assert_eq(pool.max, large);
  return pool;
}

static void fill(struct ta_batch *batch, int value) {
  memset(batch->room, value, ta_batch_room_bytes(batch->size));
}

static bool holds(const struct ta_batch *batch, int value) {
  const unsigned char *room = batch->room;
  size_t n = ta_batch_room_bytes(batch->size);

  return room[0] == value && memcmp(room, room + 1, n - 1) == 0;
}

/* Takes all batches of that size that are left and no other, and fills each with its number. */
static unsigned take_all(struct ta_pool *pool, enum ta_batch_size size, struct ta_batch **out) {
  size_t need = size == TA_BATCH_SMALL ? 0 : ta_batch_room_bytes(size - 1);
  unsigned n = 0;

  for (; (out[n] = ta_pool_acquire(pool, size, need)) != NULL; n++) {
    cr_assert_eq(out[n]->size, size);
    fill(out[n], (int)(n & 0xff));
  }
  return n;
}

static void give_all(struct ta_pool *pool, struct ta_batch **batch, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    cr_assert(holds(batch[i], (int)(i & 0xff)), "batch %u was written by another", i);
    ta_pool_release(pool, batch[i]);
  }
  cr_assert_eq(atomic_load(&pool->taken), 0, "not every large block is whole again");
}

Test(emit_pool, all_of_the_memory_serves_any_size_again_and_again) {
  static const unsigned due[] = { [TA_BATCH_SMALL] = LARGE * MEDIUM_IN_LARGE * SMALL_IN_MEDIUM,
                                  [TA_BATCH_MEDIUM] = LARGE * MEDIUM_IN_LARGE,
                                  [TA_BATCH_LARGE] = LARGE };
  struct ta_batch *batch[MOST];
  struct ta_pool pool = pool_of(LARGE);

  for (int round = 0; round < 3; round++)
    for (enum ta_batch_size size = 0; size < TA_BATCH_SIZES; size++) {
      unsigned n = take_all(&pool, size, batch);
      cr_assert_eq(n, due[size], "%u of size %d", n, (int)size);
      give_all(&pool, batch, n);
    }
  ta_pool_fini(&pool);
}

Test(emit_pool, a_smaller_batch_serves_where_no_larger_one_is_left) {
  struct ta_pool pool = pool_of(1);
  struct ta_batch *small = ta_pool_acquire(&pool, TA_BATCH_SMALL, 0);
  struct ta_batch *medium = ta_pool_acquire(&pool, TA_BATCH_LARGE, 100);

  cr_assert_eq(small->size, TA_BATCH_SMALL);
  cr_assert_eq(medium->size, TA_BATCH_MEDIUM);
  cr_assert_null(ta_pool_acquire(&pool, TA_BATCH_LARGE, ta_batch_room_bytes(TA_BATCH_MEDIUM)),
                 "too small for what is to be written");
  ta_pool_release(&pool, small);
  ta_pool_release(&pool, medium);
  struct ta_batch *large = ta_pool_acquire(&pool, TA_BATCH_LARGE, 100);
  cr_assert_eq(large->size, TA_BATCH_LARGE);
  cr_assert_null(ta_pool_acquire(&pool, TA_BATCH_SMALL, 0));
  ta_pool_release(&pool, large);
  ta_pool_fini(&pool);
}

Test(emit_pool, batches_begin_on_lines_of_their_own) {
  struct ta_batch *batch[MOST];
  struct ta_pool pool = pool_of(1);

  for (enum ta_batch_size size = 0; size < TA_BATCH_SIZES; size++) {
    unsigned n = take_all(&pool, size, batch);
    for (unsigned i = 0; i < n; i++) cr_assert_eq((uintptr_t)batch[i] % 64, 0);
    give_all(&pool, batch, n);
  }
  ta_pool_fini(&pool);
}

/* Threads that take and return batches at random: a thread that finds another's bytes in its
 * batch has shared the batch. */

enum { THREADS = 4, HELD = 24, ROUNDS = 20000 };
static struct ta_pool shared;

static void *take_and_give(void *self) {
  struct ta_batch *held[HELD] = { 0 };
  int mine = (int)(uintptr_t)self;
  uint64_t random = 88172645463325252u + (uintptr_t)self;
  uintptr_t faults = 0;

  for (int i = 0; i < ROUNDS; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    struct ta_batch **slot = &held[random % HELD];
    if (*slot != NULL) {
      faults += (*slot)->room[0] != mine || (*slot)->room[100] != mine;
      ta_pool_release(&shared, *slot);
      *slot = NULL;
    } else if ((*slot = ta_pool_acquire(&shared, random >> 32 & 1, 0)) != NULL) {
      (*slot)->room[0] = (*slot)->room[100] = (unsigned char)mine;
    }
  }
  for (int i = 0; i < HELD; i++)
    if (held[i] != NULL) ta_pool_release(&shared, held[i]);
  return (void *)faults;
}

Test(emit_pool, threads_never_share_a_batch) {
  pthread_t thread[THREADS];
  void *faults;

  shared = pool_of(2);
  for (uintptr_t i = 0; i < THREADS; i++)
    pthread_create(&thread[i], NULL, take_and_give, (void *)(i + 1));
  for (int i = 0; i < THREADS; i++) {
    pthread_join(thread[i], &faults);
    cr_assert_null(faults);
  }
  struct ta_batch *batch[MOST];
  cr_assert_eq(take_all(&shared, TA_BATCH_LARGE, batch), 2, "a part was lost");
  give_all(&shared, batch, 2);
  ta_pool_fini(&shared);
}
