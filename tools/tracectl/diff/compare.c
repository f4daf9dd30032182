/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/diff/compare.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  bool is_ns;
  unsigned permille; /* of a quantile; 0: none */
} fields[TK_DIFF_FIELDS] = { [TK_DIFF_PER_SECOND] = { "per_second", false, 0 },
                             [TK_DIFF_TIME] = { "time", true, 0 },
                             [TK_DIFF_MEAN] = { "mean", true, 0 },
                             [TK_DIFF_P50] = { "p50", true, 500 },
                             [TK_DIFF_P99] = { "p99", true, 990 } };

const char *tk_diff_field_name(enum tk_diff_field field) {
  return fields[field].name;
}

bool tk_diff_field_is_ns(enum tk_diff_field field) {
  return fields[field].is_ns;
}

double tk_diff_field_error(enum tk_diff_field field) {
  return fields[field].permille > 0 ? to_histogram_error(TK_DIFF_SCALE) : 0;
}

bool tk_change_is_significant(const struct tk_change *change) {
  if (!change->has_interval || change->may_be_error) return false;
  return (change->share > 0 && change->low > 0) || (change->share < 0 && change->high < 0);
}

const char *tk_change_explanation(const struct tk_change *change) {
  if (change->may_be_error) return "error";
  return change->has_interval && !tk_change_is_significant(change) ? "chance" : NULL;
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
  c->low = calloc(TK_DRAWS, sizeof *c->low);
  c->high = calloc(TK_DRAWS, sizeof *c->high);
  c->count = calloc(TK_DIFF_PLACES, sizeof *c->count);
  if (c->weight_a != NULL && c->weight_b != NULL && c->low != NULL && c->high != NULL &&
      c->count != NULL)
    return true;
  tk_comparison_fini(c);
  return false;
}

void tk_comparison_fini(struct tk_comparison *c) {
  free(c->weight_a);
  free(c->weight_b);
  free(c->low);
  free(c->high);
  free(c->count);
}

static unsigned weight_of(const uint8_t *weight, unsigned sample) {
  return weight == NULL ? 1 : weight[sample];
}

/* A figure of one side: the true one is between low and high. */
struct figure {
  double value, low, high;
};

static struct figure figure_of_place(unsigned place) {
  if (place == 0) return (struct figure){ 0 };
  int32_t index = to_place_index(place, TK_DIFF_SCALE);
  return (struct figure){ (double)to_histogram_middle_ns(index, TK_DIFF_SCALE),
                          to_histogram_bound_ns(index, TK_DIFF_SCALE),
                          to_histogram_bound_ns(index + 1, TK_DIFF_SCALE) };
}

static struct figure quantile(struct tk_comparison *c, const struct tk_diff_row *row,
                              const uint8_t *weight, unsigned permille) {
  uint64_t all = 0, so_far = 0;
  unsigned place = 0;

  memset(c->count, 0, TK_DIFF_PLACES * sizeof *c->count);
  for (size_t i = 0; i < row->buckets; i++) {
    const struct tk_bucket_count *b = &row->bucket[i];
    uint64_t n = (uint64_t)b->count * weight_of(weight, b->sample);
    c->count[b->place] += n;
    all += n;
  }
  if (all == 0) return (struct figure){ 0 };
  uint64_t rank = to_histogram_rank(all, permille);
  while ((so_far += c->count[place]) < rank) place++;
  return figure_of_place(place);
}

static double exact(const struct tk_samples *s, const struct tk_diff_row *row,
                    const uint8_t *weight, enum tk_diff_field field) {
  double count = 0, total = 0, ns = 0;

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

/* weight: of each sample in a draw; NULL: 1 each. */
static struct figure figure(struct tk_comparison *c, const struct tk_samples *s,
                            const struct tk_diff_row *row, const uint8_t *weight,
                            enum tk_diff_field field) {
  if (row == NULL) return (struct figure){ 0 };
  if (fields[field].permille > 0) return quantile(c, row, weight, fields[field].permille);
  double value = exact(s, row, weight, field);
  return (struct figure){ value, value, value };
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
    struct figure of_a = figure(c, c->a, a, c->weight_a + d * TK_SAMPLES_MAX, field);
    struct figure of_b = figure(c, c->b, b, c->weight_b + d * TK_SAMPLES_MAX, field);
    if (of_a.value <= 0) continue;
    c->low[n] = of_b.low / of_a.high - 1;
    c->high[n++] = of_b.high / of_a.low - 1;
  }
  if (n < TK_DRAWS * 9 / 10) return; /* too many draws have nothing to compare with */
  qsort(c->low, n, sizeof *c->low, compare_shares);
  qsort(c->high, n, sizeof *c->high, compare_shares);
  out->has_interval = true;
  out->low = c->low[n * 25 / 1000];
  out->high = c->high[n - 1 - n * 25 / 1000];
}

struct tk_change tk_compare(struct tk_comparison *c, const struct tk_diff_row *a,
                            const struct tk_diff_row *b, enum tk_diff_field field) {
  struct figure of_a = figure(c, c->a, a, NULL, field), of_b = figure(c, c->b, b, NULL, field);
  struct tk_change out = { .a = of_a.value, .b = of_b.value };

  out.has_share = out.a > 0;
  if (!out.has_share) return out;
  out.share = out.b / out.a - 1;
  out.may_be_error = fields[field].permille > 0 && of_a.low <= of_b.high && of_b.low <= of_a.high;
  if (c->a->samples > 1 && c->b->samples > 1) find_interval(c, a, b, field, &out);
  return out;
}
