/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/diff/compare.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  bool is_ns;
  double quantile; /* 0: none */
} fields[TK_DIFF_FIELDS] = { [TK_DIFF_PER_SECOND] = { "per_second", false, 0 },
                             [TK_DIFF_TIME] = { "time", true, 0 },
                             [TK_DIFF_MEAN] = { "mean", true, 0 },
                             [TK_DIFF_P50] = { "p50", true, 0.5 },
                             [TK_DIFF_P99] = { "p99", true, 0.99 } };

const char *tk_diff_field_name(enum tk_diff_field field) {
  return fields[field].name;
}

bool tk_diff_field_is_ns(enum tk_diff_field field) {
  return fields[field].is_ns;
}

/* xorshift64*, with a fixed seed: results are reproducible. */
static uint64_t next_random(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return *state * UINT64_C(2685821657736338717);
}

static uint8_t *draw(unsigned samples, uint64_t *state) {
  uint8_t *weight = calloc((size_t)TK_DRAWS * TK_SAMPLES_MAX, 1);

  for (unsigned d = 0; weight != NULL && d < TK_DRAWS; d++)
    for (unsigned i = 0; i < samples; i++) {
      uint8_t *at = &weight[d * TK_SAMPLES_MAX + (next_random(state) >> 33) % samples];
      if (*at < UINT8_MAX) ++*at;
    }
  return weight;
}

bool tk_comparison_new(struct tk_comparison *c, const struct tk_samples *a,
                       const struct tk_samples *b) {
  uint64_t state = UINT64_C(0x9E3779B97F4A7C15);

  *c = (struct tk_comparison){ .a = a, .b = b };
  c->weight_a = draw(a->samples, &state);
  c->weight_b = draw(b->samples, &state);
  c->share = calloc(TK_DRAWS, sizeof *c->share);
  c->bucket = calloc(TK_BUCKETS, sizeof *c->bucket);
  if (c->weight_a != NULL && c->weight_b != NULL && c->share != NULL && c->bucket != NULL)
    return true;
  tk_comparison_fini(c);
  return false;
}

void tk_comparison_fini(struct tk_comparison *c) {
  free(c->weight_a);
  free(c->weight_b);
  free(c->share);
  free(c->bucket);
}

static unsigned weight_of(const uint8_t *weight, unsigned sample) {
  return weight == NULL ? 1 : weight[sample];
}

static double quantile(struct tk_comparison *c, const struct tk_diff_row *row,
                       const uint8_t *weight, double q) {
  uint64_t all = 0, so_far = 0;

  memset(c->bucket, 0, TK_BUCKETS * sizeof *c->bucket);
  for (size_t i = 0; i < row->buckets; i++) {
    const struct tk_bucket_count *b = &row->bucket[i];
    uint64_t n = (uint64_t)b->count * weight_of(weight, b->sample);
    c->bucket[b->bucket] += n;
    all += n;
  }
  if (all == 0) return 0;
  for (unsigned i = 0; i < TK_BUCKETS; i++) {
    so_far += c->bucket[i];
    if ((double)so_far >= q * (double)all) return tk_bucket_ns(i);
  }
  return 0;
}

/* weight: of each sample in a draw; NULL: 1 each. */
static double figure(struct tk_comparison *c, const struct tk_samples *s,
                     const struct tk_diff_row *row, const uint8_t *weight,
                     enum tk_diff_field field) {
  double count = 0, total = 0, ns = 0;

  if (row == NULL) return 0;
  if (fields[field].quantile > 0) return quantile(c, row, weight, fields[field].quantile);
  for (unsigned i = 0; i < s->samples; i++) {
    unsigned n = weight_of(weight, i);
    count += (double)row->count[i] * n;
    total += (double)row->total_ns[i] * n;
    ns += (double)s->ns[i] * n;
  }
  switch (field) {
  case TK_DIFF_PER_SECOND: return ns > 0 ? count / ns * 1e9 : 0;
  case TK_DIFF_TIME: return ns > 0 ? total / ns * 1e9 : 0;
  default: return count > 0 ? total / count : 0;
  }
}

static int compare_shares(const void *a, const void *b) {
  double one = *(const double *)a, other = *(const double *)b;

  return (one > other) - (one < other);
}

static void find_interval(struct tk_comparison *c, const struct tk_diff_row *a,
                          const struct tk_diff_row *b, enum tk_diff_field field,
                          struct tk_change *out) {
  unsigned n = 0;

  for (unsigned d = 0; d < TK_DRAWS; d++) {
    double of_a = figure(c, c->a, a, c->weight_a + d * TK_SAMPLES_MAX, field);
    double of_b = figure(c, c->b, b, c->weight_b + d * TK_SAMPLES_MAX, field);
    if (of_a > 0) c->share[n++] = of_b / of_a - 1;
  }
  if (n < TK_DRAWS * 9 / 10) return; /* too many draws have nothing to compare with */
  qsort(c->share, n, sizeof *c->share, compare_shares);
  out->has_interval = true;
  out->low = c->share[n * 25 / 1000];
  out->high = c->share[n - 1 - n * 25 / 1000];
}

struct tk_change tk_compare(struct tk_comparison *c, const struct tk_diff_row *a,
                            const struct tk_diff_row *b, enum tk_diff_field field) {
  struct tk_change out = { .a = figure(c, c->a, a, NULL, field),
                           .b = figure(c, c->b, b, NULL, field) };

  out.has_share = out.a > 0;
  if (!out.has_share) return out;
  out.share = out.b / out.a - 1;
  if (c->a->samples > 1 && c->b->samples > 1) find_interval(c, a, b, field, &out);
  return out;
}
