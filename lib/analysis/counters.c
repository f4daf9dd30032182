/* SPDX-License-Identifier: Apache-2.0 */
/* Packed, a bucket is one word: histogram, bucket and count side by side. */
#include "analysis/counters.h"

#include <string.h>

enum { COUNT_BITS = 42, BUCKET_BITS = 16, CAPACITY_MIN = 16 };
_Static_assert(TO_HISTOGRAMS_MAX <= 1 << (64 - COUNT_BITS - BUCKET_BITS), "a bucket is one word");

struct packed_cell {
  struct to_cell cell;
  uint32_t series;
};

void to_counters_init(struct to_counters *counters, struct tb_mem *mem) {
  *counters = (struct to_counters){ .mem = mem };
  for (unsigned i = 0; i < TO_HISTOGRAMS_MAX; i++) to_histogram_init(&counters->hist[i], mem);
}

void to_counters_fini(struct to_counters *counters) {
  if (counters->mem != NULL) {
    tb_mem_give(counters->mem, counters->cell, counters->capacity * sizeof(*counters->cell));
    tb_mem_give(counters->mem, counters->used, counters->capacity * sizeof(*counters->used));
  }
  for (unsigned i = 0; i < TO_HISTOGRAMS_MAX; i++) to_histogram_fini(&counters->hist[i]);
  *counters = (struct to_counters){ 0 };
}

void to_counters_clear(struct to_counters *counters) {
  for (size_t i = 0; i < counters->used_len; i++) counters->cell[counters->used[i]].count = 0;
  counters->used_len = 0;
  for (unsigned i = 0; i < TO_HISTOGRAMS_MAX; i++) to_histogram_clear(&counters->hist[i]);
}

tb_rc to_counters_reserve(struct to_counters *counters, size_t n) {
  size_t capacity = counters->capacity < CAPACITY_MIN ? CAPACITY_MIN : counters->capacity;
  void *block;

  if (n <= counters->capacity) return TB_OK;
  while (capacity < n) capacity *= 2;

  /* Two blocks grow as one: used is worthless beyond capacity if the second fails. */
  void *used = NULL;
  TB_TRY(tb_mem_take(counters->mem, capacity * sizeof(*counters->used), &used));
  block = counters->cell;
  tb_rc rc = tb_mem_resize(counters->mem, &block, counters->capacity * sizeof(*counters->cell),
                           capacity * sizeof(*counters->cell));
  if (rc != TB_OK) {
    tb_mem_give(counters->mem, used, capacity * sizeof(*counters->used));
    return rc;
  }
  counters->cell = block;
  memset(counters->cell + counters->capacity, 0,
         (capacity - counters->capacity) * sizeof(*counters->cell));
  if (counters->used_len > 0)
    memcpy(used, counters->used, counters->used_len * sizeof(*counters->used));
  tb_mem_give(counters->mem, counters->used, counters->capacity * sizeof(*counters->used));
  counters->used = used;
  counters->capacity = capacity;
  return TB_OK;
}

static void merge_cell(struct to_counters *into, uint32_t series, const struct to_cell *from) {
  struct to_cell *cell = &into->cell[series];

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

tb_rc to_counters_merge(struct to_counters *into, const struct to_counters *from) {
  /* Room first: from there on nothing can fail half way. */
  for (unsigned h = 0; h < TO_HISTOGRAMS_MAX; h++)
    TB_TRY(to_histogram_reserve_like(&into->hist[h], &from->hist[h]));
  for (unsigned h = 0; h < TO_HISTOGRAMS_MAX; h++)
    TB_TRY(to_histogram_merge(&into->hist[h], &from->hist[h]));
  for (size_t i = 0; i < from->used_len; i++)
    merge_cell(into, from->used[i], &from->cell[from->used[i]]);
  return TB_OK;
}

tb_rc to_counters_pack(const struct to_counters *counters, struct to_packed **out) {
  size_t buckets = 0, bytes;
  uint64_t n;
  struct to_packed *packed;

  for (unsigned h = 0; h < TO_HISTOGRAMS_MAX; h++)
    for (unsigned b = 0; to_histogram_next(&counters->hist[h], &b, &n); b++) buckets++;
  bytes = sizeof(struct to_packed) + counters->used_len * sizeof(struct packed_cell) +
          buckets * sizeof(uint64_t);
  TB_TRY(tb_mem_take(counters->mem, bytes, &packed));
  *packed = (struct to_packed){ .bytes = bytes, .cells = counters->used_len, .buckets = buckets };
  struct packed_cell *cell = (struct packed_cell *)(packed + 1);
  for (size_t i = 0; i < counters->used_len; i++)
    *cell++ = (struct packed_cell){ .cell = counters->cell[counters->used[i]],
                                    .series = counters->used[i] };
  uint64_t *word = (uint64_t *)cell;
  for (unsigned h = 0; h < TO_HISTOGRAMS_MAX; h++)
    for (unsigned b = 0; to_histogram_next(&counters->hist[h], &b, &n); b++)
      *word++ = ((uint64_t)h << BUCKET_BITS | b) << COUNT_BITS | n;
  *out = packed;
  return TB_OK;
}

tb_rc to_counters_merge_packed(struct to_counters *into, const struct to_packed *from) {
  const struct packed_cell *cell = (const struct packed_cell *)(from + 1);
  const uint64_t *word = (const uint64_t *)(cell + from->cells);

  for (size_t i = 0; i < from->cells; i++) merge_cell(into, cell[i].series, &cell[i].cell);
  for (size_t i = 0; i < from->buckets; i++) {
    unsigned h = (unsigned)(word[i] >> COUNT_BITS >> BUCKET_BITS);
    unsigned b = (unsigned)(word[i] >> COUNT_BITS) & ((1u << BUCKET_BITS) - 1);
    TB_TRY(to_histogram_add_bucket(&into->hist[h], b, word[i] & ((UINT64_C(1) << COUNT_BITS) - 1)));
  }
  return TB_OK;
}

void to_counters_move(struct to_counters *counters, uint32_t series, uint32_t into) {
  struct to_cell cell = counters->cell[series];

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
  if (packed != NULL) tb_mem_give(mem, packed, packed->bytes);
}
