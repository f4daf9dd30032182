/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/lock_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"

void to_lock_table_init(struct to_lock_table *t, struct tb_mem *mem) {
  *t = (struct to_lock_table){ .mem = mem };
  to_locks_init(&t->here, mem);
  tb_map_init(&t->by_object, mem, tb_seed());
  tb_map_init(&t->by_name, mem, tb_seed());
}

static uint64_t hash_of(const struct to_lock_table *t, struct to_string name) {
  return tb_hash(t->by_name.seed, name.data, name.len);
}

static void forget_name(struct to_lock_table *t, uint32_t number) {
  struct to_known_lock *lock = &t->lock[number];

  if (lock->name.len == 0) return;
  if (!lock->is_namesake) tb_map_remove(&t->by_name, hash_of(t, lock->name));
  tb_mem_free(t->mem, (void *)(uintptr_t)lock->name.data, lock->name.len);
  lock->name = (struct to_string){ 0 };
}

void to_lock_table_fini(struct to_lock_table *t) {
  if (t->mem == NULL) return;
  to_locks_fini(&t->here);
  for (uint32_t i = 0; i < t->n; i++) forget_name(t, i);
  tb_mem_free(t->mem, t->lock, t->room * sizeof *t->lock);
  tb_map_fini(&t->by_object);
  tb_map_fini(&t->by_name);
  *t = (struct to_lock_table){ 0 };
}

tb_rc to_lock_table_generation(struct to_lock_table *t, const struct to_generation *gen) {
  if (gen == NULL) return TB_OK;
  TB_TRY(to_locks_generation(&t->here, gen));
  t->missed += t->here.missed;
  return TB_OK;
}

/* Replaces a lock's name: the program may name a lock late. */
static tb_rc set_name(struct to_lock_table *t, uint32_t number, struct to_string name) {
  struct to_known_lock *lock = &t->lock[number];
  uint64_t *first;
  void *copy;
  bool fresh;

  if (name.len > TO_LOCK_NAME_MAX) name.len = TO_LOCK_NAME_MAX;
  if (name.len == 0) return TB_OK;
  if (name.len == lock->name.len && memcmp(name.data, lock->name.data, name.len) == 0) return TB_OK;
  TB_TRY(tb_mem_alloc(t->mem, name.len, &copy));
  memcpy(copy, name.data, name.len);
  forget_name(t, number);
  tb_rc rc = tb_map_put(&t->by_name, hash_of(t, name), &first, &fresh);
  if (rc != TB_OK) {
    tb_mem_free(t->mem, copy, name.len);
    return rc;
  }
  if (fresh) *first = number;
  lock->name = (struct to_string){ copy, name.len };
  lock->is_namesake = *first != number;
  return TB_OK;
}

static tb_rc find_number(struct to_lock_table *t, uint64_t object, uint32_t *out) {
  uint64_t *place;
  bool fresh;

  *out = TO_LOCK_OTHER;
  while (t->n <= TO_LOCK_OTHER) {
    TB_TRY(TB_MEM_GROW(t->mem, t->lock, t->room, t->n));
    t->lock[t->n++] = (struct to_known_lock){ 0 };
  }
  if (t->n == TO_LOCK_NUMBERS && tb_map_find(&t->by_object, object) == NULL) return TB_OK;
  TB_TRY(TB_MEM_GROW(t->mem, t->lock, t->room, t->n));
  TB_TRY(tb_map_put(&t->by_object, object, &place, &fresh));
  if (fresh) {
    t->lock[t->n] = (struct to_known_lock){ .object = object };
    *place = t->n++;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

tb_rc to_lock_table_find(struct to_lock_table *t, uint64_t string, uint32_t *out,
                         int64_t *out_holder) {
  const struct to_lock *lock = to_locks_find(&t->here, string);

  *out = TO_LOCK_NONE;
  *out_holder = TO_NONE;
  if (lock == NULL) return TB_OK;
  *out_holder = lock->holder;
  TB_TRY(find_number(t, lock->object, out));
  return *out == TO_LOCK_OTHER ? TB_OK : set_name(t, *out, lock->name);
}

size_t to_lock_table_label(const struct to_lock_table *t, uint32_t number,
                           char out[TO_LOCK_LABEL_MAX]) {
  const struct to_known_lock *lock = number < t->n ? &t->lock[number] : NULL;
  int n;

  if (lock == NULL || number == TO_LOCK_NONE)
    n = snprintf(out, TO_LOCK_LABEL_MAX, "%s", "");
  else if (number == TO_LOCK_OTHER)
    n = snprintf(out, TO_LOCK_LABEL_MAX, "other");
  else if (lock->name.len == 0)
    n = snprintf(out, TO_LOCK_LABEL_MAX, "0x%" PRIx64, lock->object);
  else if (lock->is_namesake)
    n = snprintf(out, TO_LOCK_LABEL_MAX, "%.*s@0x%" PRIx64, (int)lock->name.len, lock->name.data,
                 lock->object);
  else
    n = snprintf(out, TO_LOCK_LABEL_MAX, "%.*s", (int)lock->name.len, lock->name.data);
  return (size_t)n;
}
