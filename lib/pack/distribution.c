/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/distribution.h"

#include <string.h>

#include "online/window/histogram.h"

typedef Tracecollect__V1__Distribution Distribution;

/* Buckets of a distribution by place, at the scale of the sum. */
struct ends {
  uint32_t first, last; /* places; first > last: none */
};

static bool is_valid(const Distribution *d) {
  if (d->scale < TO_SCALE_MIN || d->scale > TO_SCALE_MAX) return d->n_buckets == 0;
  int64_t first = (int64_t)d->offset + (TO_PLACE_OF_SECOND >> (TO_SCALE_MAX - d->scale));
  return first > 0 && d->n_buckets <= TO_PLACES && first + (int64_t)d->n_buckets <= TO_PLACES;
}

static struct ends ends_of(const Distribution *d, int scale) {
  if (d->n_buckets == 0) return (struct ends){ .first = TO_PLACES };
  uint32_t first = to_index_place(d->offset, d->scale);
  int steps = d->scale - scale;

  return (struct ends){ first >> steps, (first + (uint32_t)d->n_buckets - 1) >> steps };
}

static struct ends ends_of_both(const Distribution *a, const Distribution *b, int scale) {
  struct ends x = ends_of(a, scale), y = ends_of(b, scale);

  return (struct ends){ x.first < y.first ? x.first : y.first, x.last > y.last ? x.last : y.last };
}

static int lower_scale(const Distribution *a, const Distribution *b) {
  if (a->n_buckets == 0) return b->n_buckets == 0 ? TO_SCALE_MAX : b->scale;
  return b->n_buckets == 0 || a->scale < b->scale ? a->scale : b->scale;
}

static void add_buckets(uint64_t *bucket, uint32_t first, const Distribution *d, int scale) {
  uint32_t place = d->n_buckets > 0 ? to_index_place(d->offset, d->scale) : 0;

  for (size_t i = 0; i < d->n_buckets; i++)
    bucket[((place + (uint32_t)i) >> (d->scale - scale)) - first] += d->buckets[i];
}

static bool has_buckets(const Distribution *d, uint32_t first, size_t n, int scale) {
  if (n == 0) return d->n_buckets == 0;
  return d->n_buckets == n && d->scale == scale && to_index_place(d->offset, scale) == first;
}

/* Gives the sum n buckets from this place on, at this scale. */
static tb_rc grow(struct tb_arena *arena, Distribution *d, uint32_t first, size_t n, int scale) {
  uint64_t *bucket;

  TB_TRY(tb_arena_alloc(arena, (n + 1) * sizeof(*bucket), &bucket));
  memset(bucket, 0, (n + 1) * sizeof(*bucket));
  if (n > 0) add_buckets(bucket, first, d, scale);
  d->scale = scale;
  d->offset = n > 0 ? to_place_index(first, scale) : 0;
  d->buckets = bucket;
  d->n_buckets = n;
  return TB_OK;
}

static void set_quantiles(Distribution *d) {
  const struct to_histogram h = { .scale = d->scale,
                                  .first = d->offset,
                                  .n = (uint32_t)d->n_buckets,
                                  .bucket = d->buckets,
                                  .zero = d->zeros };
  uint64_t *const out[] = { &d->p50_ns, &d->p90_ns, &d->p99_ns, &d->p999_ns };

  for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++) *out[i] = 0;
  if (d->count > 0 && !d->no_quantiles)
    to_histogram_quantiles(&h, d->count, d->min_ns, d->max_ns, out);
}

bool tp_distribution_is_whole(const Distribution *d) {
  uint64_t lengths = d->zeros;

  for (size_t i = 0; i < d->n_buckets; i++) lengths += d->buckets[i];
  return lengths == d->count;
}

tb_rc tp_distribution_add(struct tb_arena *arena, Distribution *into, const Distribution *from) {
  if (!is_valid(into) || !is_valid(from)) return TB_CORRUPT;
  if (from->count == 0) return TB_OK;
  bool no_quantiles = (into->count > 0 && into->no_quantiles) || from->no_quantiles ||
                      !tp_distribution_is_whole(from);
  int scale = lower_scale(into, from);
  struct ends ends = ends_of_both(into, from, scale);
  while (scale > TO_SCALE_MIN && ends.first <= ends.last &&
         ends.last - ends.first >= TO_BUCKETS_MAX)
    ends = ends_of_both(into, from, --scale);
  size_t n = no_quantiles || ends.first > ends.last ? 0 : ends.last - ends.first + 1;
  if (!has_buckets(into, ends.first, n, scale)) TB_TRY(grow(arena, into, ends.first, n, scale));
  if (n > 0) add_buckets(into->buckets, ends.first, from, scale);
  into->min_ns = into->count == 0 || from->min_ns < into->min_ns ? from->min_ns : into->min_ns;
  into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
  into->count += from->count;
  into->total_ns += from->total_ns;
  into->lower_bounds += from->lower_bounds;
  into->no_quantiles = no_quantiles;
  into->zeros = no_quantiles ? 0 : into->zeros + from->zeros;
  set_quantiles(into);
  return TB_OK;
}

double tp_distribution_error(const Distribution *d) {
  return d->n_buckets == 0 || !is_valid(d) ? 0 : to_histogram_error(d->scale);
}
