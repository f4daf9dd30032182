/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/locks.h"

#include "base/grow.h"
#include "wire/locks.h"

void to_locks_init(struct to_locks *locks, struct tb_mem *mem) {
  *locks = (struct to_locks){ .mem = mem };
  tb_map_init(&locks->by_string, mem, tb_seed());
}

void to_locks_fini(struct to_locks *locks) {
  if (locks->mem == NULL) return;
  tb_mem_free(locks->mem, locks->lock, locks->room * sizeof *locks->lock);
  tb_map_fini(&locks->by_string);
  *locks = (struct to_locks){ 0 };
}

/* Adds a lock. The first of two for one string counts; a program should not write two. */
static tb_rc add_lock(struct to_locks *locks, const struct to_generation *gen,
                      const struct tw_lock *from) {
  uint64_t *place;
  bool fresh;

  if (locks->n == TO_LOCKS_MAX) return TB_OK;
  TB_TRY(TB_MEM_GROW(locks->mem, locks->lock, locks->room, locks->n));
  TB_TRY(tb_map_put(&locks->by_string, from->string, &place, &fresh));
  if (!fresh) return TB_OK;
  struct to_lock *lock = &locks->lock[locks->n];
  *lock = (struct to_lock){ .object = from->object,
                            .holder = from->holder == 0 ? TO_NONE : (int64_t)from->holder };
  if (from->name == 0 || !to_generation_string(gen, from->name, &lock->name))
    lock->name = (struct to_string){ 0 };
  *place = locks->n++;
  return TB_OK;
}

tb_rc to_locks_generation(struct to_locks *locks, const struct to_generation *gen) {
  const struct to_experimental *batch;
  size_t n = to_generation_experimental(gen, &batch);
  struct tw_locks_reading reading;
  struct tw_lock lock;

  if (locks->n > 0) tb_map_clear(&locks->by_string);
  locks->n = 0;
  locks->missed = 0;
  for (; n > 0; n--, batch++) {
    if (batch->experiment != TW_EXPERIMENT_ALLOC_FREE) continue;
    if (!tw_locks_read(batch->data, batch->len, &reading)) continue;
    locks->missed += reading.missed;
    while (tw_lock_next(&reading, &lock)) TB_TRY(add_lock(locks, gen, &lock));
  }
  return TB_OK;
}

const struct to_lock *to_locks_find(const struct to_locks *locks, uint64_t string) {
  const uint64_t *place = locks->n == 0 ? NULL : tb_map_find(&locks->by_string, string);

  return place == NULL ? NULL : &locks->lock[*place];
}
