/* SPDX-License-Identifier: Apache-2.0 */
#include "online/window/counters.h"

#include <string.h>

#include "wire/varint.h"

enum { CAPACITY_MIN = 16 };

enum { FIELDS = 7 };

void to_counters_init(struct to_counters *counters, struct tb_mem *mem) {
  *counters = (struct to_counters){ .mem = mem };
}

void to_counters_fini(struct to_counters *counters) {
  if (counters->mem != NULL) {
    tb_mem_free(counters->mem, counters->cell, counters->capacity * sizeof(*counters->cell));
    tb_mem_free(counters->mem, counters->used, counters->capacity * sizeof(*counters->used));
  }
  *counters = (struct to_counters){ 0 };
}

void to_counters_empty(struct to_counters *counters) {
  struct tb_mem *mem = counters->mem;

  to_counters_fini(counters);
  to_counters_init(counters, mem);
}

void to_counters_clear(struct to_counters *counters) {
  for (size_t i = 0; i < counters->used_len; i++) counters->cell[counters->used[i]].count = 0;
  counters->used_len = 0;
}

tb_rc to_counters_reserve(struct to_counters *counters, size_t n) {
  size_t capacity = counters->capacity < CAPACITY_MIN ? CAPACITY_MIN : counters->capacity;
  void *block;

  if (n <= counters->capacity) return TB_OK;
  while (capacity < n) capacity *= 2;

  /* Both blocks must grow, or neither: capacity is the size of both. */
  void *used = NULL;
  TB_TRY(tb_mem_alloc(counters->mem, capacity * sizeof(*counters->used), &used));
  block = counters->cell;
  tb_rc rc = tb_mem_resize(counters->mem, &block, counters->capacity * sizeof(*counters->cell),
                           capacity * sizeof(*counters->cell));
  if (rc != TB_OK) {
    tb_mem_free(counters->mem, used, capacity * sizeof(*counters->used));
    return rc;
  }
  counters->cell = block;
  memset(counters->cell + counters->capacity, 0,
         (capacity - counters->capacity) * sizeof(*counters->cell));
  if (counters->used_len > 0)
    memcpy(used, counters->used, counters->used_len * sizeof(*counters->used));
  tb_mem_free(counters->mem, counters->used, counters->capacity * sizeof(*counters->used));
  counters->used = used;
  counters->capacity = capacity;
  return TB_OK;
}

static void merge_cell(struct to_counters *into, uint32_t series, const struct to_count *from) {
  struct to_count *cell = &into->cell[series];

  if (cell->count == 0) {
    into->used[into->used_len++] = series;
    *cell = *from;
    return;
  }
  cell->count += from->count;
  cell->total_ns += from->total_ns;
  cell->lower_bounds += from->lower_bounds;
  if (from->since < cell->since) cell->since = from->since;
  if (from->max_ns > cell->max_ns) {
    cell->max_ns = from->max_ns;
    cell->tag = from->tag;
  }
}

void to_counters_merge(struct to_counters *into, const struct to_counters *from) {
  for (size_t i = 0; i < from->used_len; i++)
    merge_cell(into, from->used[i], &from->cell[from->used[i]]);
}

/* Cells of one slot begin at about the same time, so the difference is a small number of either sign. */
static uint64_t fold_sign(uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unfold_sign(uint64_t folded) {
  return folded >> 1 ^ (0 - (folded & 1));
}

static void list_fields(uint64_t field[FIELDS], uint32_t series, const struct to_count *cell,
                        to_ns base) {
  field[0] = series;
  field[1] = cell->count;
  field[2] = cell->total_ns;
  field[3] = cell->max_ns;
  field[4] = cell->tag;
  field[5] = fold_sign((uint64_t)cell->since - (uint64_t)base);
  field[6] = cell->lower_bounds;
}

tb_rc to_counters_pack(const struct to_counters *counters, struct to_packed **out) {
  size_t bytes = sizeof(struct to_packed);
  uint64_t field[FIELDS];
  void *block = NULL;
  to_ns base = 0;

  if (counters->used_len > 0) base = counters->cell[counters->used[0]].since;
  for (size_t i = 0; i < counters->used_len; i++) {
    list_fields(field, counters->used[i], &counters->cell[counters->used[i]], base);
    for (unsigned k = 0; k < FIELDS; k++) bytes += tw_varint_bytes(field[k]);
  }
  TB_TRY(tb_mem_resize(counters->mem, &block, 0, bytes));
  struct to_packed *packed = block;
  *packed = (struct to_packed){ .bytes = bytes, .cells = counters->used_len, .base = base };
  unsigned char *at = (unsigned char *)(packed + 1);
  for (size_t i = 0; i < counters->used_len; i++) {
    list_fields(field, counters->used[i], &counters->cell[counters->used[i]], base);
    for (unsigned k = 0; k < FIELDS; k++) at += tw_varint_write(at, field[k]);
  }
  *out = packed;
  return TB_OK;
}

void to_counters_merge_packed(struct to_counters *into, const struct to_packed *from) {
  const unsigned char *at = (const unsigned char *)(from + 1);
  const unsigned char *end = (const unsigned char *)from + from->bytes;

  for (size_t i = 0; i < from->cells; i++) {
    uint64_t field[FIELDS] = { 0 };
    for (unsigned k = 0; k < FIELDS; k++) at += tw_varint_read(at, end, &field[k]);
    struct to_count cell = { .count = field[1],
                             .total_ns = field[2],
                             .max_ns = field[3],
                             .tag = (uint32_t)field[4],
                             .since = (to_ns)((uint64_t)from->base + unfold_sign(field[5])),
                             .lower_bounds = (uint32_t)field[6] };
    merge_cell(into, (uint32_t)field[0], &cell);
  }
}

void to_counters_move(struct to_counters *counters, uint32_t series, uint32_t into) {
  struct to_count cell = counters->cell[series];

  if (cell.count == 0) return;
  counters->cell[series].count = 0;
  for (size_t i = 0; i < counters->used_len; i++)
    if (counters->used[i] == series) {
      counters->used[i] = counters->used[--counters->used_len];
      break;
    }
  merge_cell(counters, into, &cell);
}

void to_packed_free(struct to_packed *packed, struct tb_mem *mem) {
  if (packed != NULL) tb_mem_free(mem, packed, packed->bytes);
}
