/* SPDX-License-Identifier: Apache-2.0 */
#include "online/event/ids.h"

#include <string.h>

enum { DENSE_MIN = 256, DENSE_SPARSE = 16 };

void to__ids_init(struct to_ids *ids, struct tb_mem *mem) {
  *ids = (struct to_ids){ .mem = mem };
  tb_map_init(&ids->sparse, mem, tb_seed());
}

void to__ids_fini(struct to_ids *ids) {
  if (ids->mem == NULL) return;
  tb_mem_free(ids->mem, ids->dense, ids->dense_len * sizeof *ids->dense);
  tb_map_fini(&ids->sparse);
  *ids = (struct to_ids){ 0 };
}

/* Frees the array if one generation made it large and later ones are small, as tb_map_clear() does. */
void to__ids_clear(struct to_ids *ids) {
  if (ids->dense_len > DENSE_MIN && ids->count < ids->dense_len / DENSE_SPARSE) {
    tb_mem_free(ids->mem, ids->dense, ids->dense_len * sizeof *ids->dense);
    ids->dense = NULL;
    ids->dense_len = 0;
  }
  if (ids->dense_len > 0) memset(ids->dense, 0, ids->dense_len * sizeof *ids->dense);
  tb_map_clear(&ids->sparse);
  ids->count = 0;
  ids->all_below = 0;
}

static tb_rc grow_dense(struct to_ids *ids, uint64_t id) {
  size_t len = ids->dense_len < DENSE_MIN ? DENSE_MIN : ids->dense_len;
  void *dense = ids->dense;
  uint64_t key, position;

  while (len <= id) len *= 2;
  TB_TRY(tb_mem_resize(ids->mem, &dense, ids->dense_len * sizeof *ids->dense,
                       len * sizeof *ids->dense));
  ids->dense = dense;
  memset(ids->dense + ids->dense_len, 0, (len - ids->dense_len) * sizeof *ids->dense);
  for (size_t i = 0; tb_map_next(&ids->sparse, &i, &key, &position);)
    if (key >= ids->dense_len && key < len) ids->dense[key] = (uint32_t)position + 1;
  ids->dense_len = len;
  return TB_OK;
}

tb_rc to__ids_put(struct to_ids *ids, uint64_t id, uint32_t position) {
  if (id >= ids->dense_len && id / 2 < ids->count + DENSE_MIN) TB_TRY(grow_dense(ids, id));
  if (id < ids->dense_len) {
    ids->dense[id] = position + 1;
  } else {
    uint64_t *value;
    TB_TRY(tb_map_put(&ids->sparse, id, &value, NULL));
    *value = position;
  }
  ids->count++;
  return TB_OK;
}

void to__ids_settle(struct to_ids *ids) {
  uint64_t id = 1;

  while (to__ids_find(ids, id) != TO_IDS_NONE) id++;
  ids->all_below = id;
}
