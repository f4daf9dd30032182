/* SPDX-License-Identifier: Apache-2.0 */
/* A view is a window's sums and its words in one array. The words cost most, so they are joined only when the first quantile is
 * read. A longer window starts from the words of a shorter one, if that was viewed before. */
#include <stddef.h>
#include <string.h>

#include "online/window/join.h"
#include "online/window/private.h"

/* Bytes for each series while the words are joined. */
enum { VIEW_BYTES = 4 * sizeof(uint32_t) };

struct list {
  const uint64_t *word; /* by bucket */
  size_t n;
};

static void drop_words(struct to_windows *w) {
  to_words_fini(&w->view_words);
  tb_mem_free(w->mem, w->view_begin, w->view_begins * VIEW_BYTES);
  w->view_begin = NULL;
  w->view_begins = 0;
  w->viewed_words = false;
}

void to__windows_drop_view(struct to_windows *w) {
  if (!w->viewed) return;
  w->viewed = false;
  to_counters_empty(&w->scratch);
  drop_words(w);
  to_words_fini(&w->base_words);
}

static struct to_stretch view_stretch(const struct to_windows *w, enum to_window window,
                                      to_ns begin) {
  struct to_stretch stretch = { 0 };

  if (window == TO_WINDOW_ALL) stretch = w->closed_stretch;
  for (size_t i = 0; i < w->slots && window != TO_WINDOW_ALL; i++)
    if (w->slot[i].begin >= begin) to__stretch_join(&stretch, &w->slot[i].stretch);
  to__stretch_join(&stretch, &w->open_stretch);
  return stretch;
}

/* Counts each series' parts in the view. A series without own values counts as a part of its parent, too. */
static void count_parts(struct to_windows *w) {
  for (size_t i = 0; i < w->scratch.used_len; i++) {
    uint32_t series = w->scratch.used[i];
    for (bool counts = true; counts && w->series[series].parent != TO_NO_SERIES;) {
      series = w->series[series].parent;
      counts = w->view_parts[series]++ == 0 && w->scratch.cell[series].count == 0;
    }
  }
}

/* Returns the index of the first slot of the window. */
static size_t first_slot(const struct to_windows *w, enum to_window window, to_ns begin) {
  size_t first = window == TO_WINDOW_ALL ? w->slots : 0;

  while (first < w->slots && w->slot[first].begin < begin) first++;
  return first;
}

static tb_rc fill_sums(struct to_windows *w, enum to_window window, to_ns begin) {
  TB_TRY(to_counters_reserve(&w->scratch, w->series_n));
  to_counters_clear(&w->scratch);
  if (window == TO_WINDOW_ALL) to_counters_merge(&w->scratch, &w->closed);
  for (size_t i = first_slot(w, window, begin); i < w->slots; i++)
    to_counters_merge_packed(&w->scratch, w->slot[i].packed);
  to_counters_merge(&w->scratch, &w->open);
  return TB_OK;
}

enum { WORDS_AT_ONCE = TO_WORDS_CLOSED_MAX / 2 * 3 };

static tb_rc join_closed(struct to_windows *w, const struct to_words *open) {
  struct to_join join = { .lists = 0 };

  to__windows_join_closed(w, &join);
  to_join_words(&join, open);
  tb_rc rc = to__windows_sum_lists(&join, WORDS_AT_ONCE, &w->view_words);
  if (rc != TB_BUDGET) return rc;
  TB_TRY(to__windows_closed_words(w, &w->view_words));
  return to_words_join(&w->view_words, open);
}

/* Sums the words of n slots and of `more`. Returns TB_BUDGET also if some would have to be folded. */
static tb_rc sum_slots(const struct to_windows *w, size_t first, size_t n,
                       const struct to_words *more, struct to_words *out) {
  struct to_join join = { .lists = 0 };

  to_join_words(&join, more);
  for (size_t i = first; i < first + n; i++) to_join_runs(&join, w->slot[i].runs);
  TB_TRY(to__windows_sum_lists(&join, WORDS_AT_ONCE, out));
  if (to_words_of_parts(out, w->series) <= TO_WORDS_CLOSED_MAX) return TB_OK;
  to_words_fini(out);
  return TB_BUDGET;
}

/* Joins slots by halves and folds each result to the limit. Without folding, the result is the same as in one pass.
 * folds: skip the attempt in one pass. */
static tb_rc join_halves(struct to_windows *w, size_t first, size_t n, bool folds,
                         struct to_words *words) {
  static const struct to_words none;
  struct to_words half;
  tb_rc rc = TB_BUDGET;

  if (n == 0) return TB_OK;
  if (n == 1) return to__windows_join_runs(words, w->slot[first].runs);
  if (!folds) rc = sum_slots(w, first, n, &none, words);
  if (rc != TB_BUDGET) return rc;
  TB_TRY(join_halves(w, first, n / 2, false, words));
  to_words_init(&half, w->mem);
  rc = join_halves(w, first + n / 2, n - n / 2, false, &half);
  if (rc == TB_OK) rc = to_words_join(words, &half);
  if (rc == TB_OK) rc = to_words_fold(words, w->series, TO_WORDS_CLOSED_MAX, NULL);
  to_words_fini(&half);
  return rc;
}

static tb_rc join_slots(struct to_windows *w, const struct to_words *open, size_t first) {
  bool *folds = &w->folds[w->viewed_window]; /* windows folded last time likely fold again */
  bool has_base = w->base_words.n > 0;
  struct to_words *words = &w->view_words;
  tb_rc rc = TB_BUDGET;

  if (!*folds)
    rc = sum_slots(w, first, (has_base ? w->base_first : w->slots) - first,
                   has_base ? &w->base_words : open, words);
  w->view_exact = rc == TB_OK;
  if (rc != TB_BUDGET) return rc;
  TB_TRY(join_halves(w, first, w->slots - first, true, words));
  *folds = to_words_of_parts(words, w->series) >= TO_WORDS_CLOSED_MAX / 2;
  return to_words_join(words, open);
}

static tb_rc join_all(struct to_windows *w, size_t first) {
  struct to_words open;

  to_words_init(&open, w->mem);
  tb_rc rc = to_words_take(&open, &w->open_buckets);
  if (rc == TB_OK)
    rc = w->viewed_window == TO_WINDOW_ALL ? join_closed(w, &open) : join_slots(w, &open, first);
  to_words_fini(&open);
  to_words_fini(&w->base_words);
  return rc;
}

static void take_base(struct to_windows *w) {
  w->view_words = w->base_words;
  w->view_exact = w->base_exact;
  to_words_init(&w->base_words, w->mem);
}

static tb_rc join_words(struct to_windows *w) {
  size_t first = first_slot(w, w->viewed_window, to__window_begin(w->viewed_window, w->last));

  to_words_init(&w->view_words, w->mem);
  w->view_first = first;
  if (w->base_words.n > 0 && w->base_first == first)
    take_base(w);
  else
    TB_TRY(join_all(w, first));
  TB_TRY(tb_mem_alloc(w->mem, (w->series_n + 1) * VIEW_BYTES, &w->view_begin));
  w->view_begins = w->series_n + 1;
  w->view_row = w->view_begin + w->view_begins;
  w->view_parts = w->view_row + w->view_begins;
  w->view_met = w->view_parts + w->view_begins;
  to_words_begins(&w->view_words, w->view_begin, w->series_n);
  count_parts(w);
  return TB_OK;
}

static tb_rc fill_words(struct to_windows *w) {
  if (w->viewed_words) return TB_OK;
  tb_rc rc = join_words(w);
  if (rc == TB_OK)
    w->viewed_words = true;
  else
    to_words_fini(&w->view_words);
  return rc;
}

/* Keeps the words for the next window. Folded words are kept only if the next window has the same slots. */
static void leave_window(struct to_windows *w, enum to_window next, to_ns begin) {
  size_t first = first_slot(w, next, begin);
  bool is_base = w->viewed_words && w->viewed_window != TO_WINDOW_ALL && next != TO_WINDOW_ALL &&
                 (first == w->view_first || (first < w->view_first && w->view_exact));

  to_words_fini(&w->base_words);
  if (is_base) {
    w->base_words = w->view_words;
    w->base_first = w->view_first;
    w->base_exact = w->view_exact;
    to_words_init(&w->view_words, w->mem);
  }
  drop_words(w);
}

tb_rc to_windows_view(struct to_windows *w, enum to_window window, struct to_view *out) {
  to_ns begin = to__window_begin(window, w->last);
  to_ns first = window == TO_WINDOW_ALL ? w->first : w->windows_first;

  /* Several reports read the same window in turn. */
  if (!w->viewed || w->viewed_window != window) {
    leave_window(w, window, begin);
    w->viewed = true;
    w->viewed_window = window;
    tb_rc rc = fill_sums(w, window, begin);
    if (rc != TB_OK) {
      to__windows_drop_view(w);
      return rc;
    }
  }
  *out = (struct to_view){ .from = begin > first ? begin : first,
                           .until = w->last,
                           .stretch = view_stretch(w, window, begin),
                           .windows = w };
  return TB_OK;
}

const struct to_count *to_view_cell(const struct to_view *view, uint32_t series) {
  const struct to_count *cell = &view->windows->scratch.cell[series];
  return cell->count > 0 ? cell : NULL;
}

struct to_sum to_view_sum(const struct to_view *view, uint32_t series) {
  const struct to_count *cell = to_view_cell(view, series);

  if (cell == NULL) return (struct to_sum){ 0 };
  return (struct to_sum){ .count = cell->count,
                          .total_ns = cell->total_ns,
                          .max_ns = cell->max_ns,
                          .lower_bounds = cell->lower_bounds };
}

/* Returns the rank of a quantile, rounded up, from 1. */
static uint64_t rank_of(uint64_t count, unsigned permille) {
  uint64_t rank = count / 1000 * permille + (count % 1000 * permille + 999) / 1000;
  return rank > 0 ? rank : 1;
}

enum { QUANTILES = 4, BYTE = 256 };
static const unsigned permille[QUANTILES] = { 500, 900, 990, 999 };

static void set_quantile(struct to_distribution *d, unsigned q, unsigned bucket) {
  uint64_t *const out[QUANTILES] = { &d->p50_ns, &d->p90_ns, &d->p99_ns, &d->p999_ns };
  uint64_t top = to_histogram_bucket_top(bucket);

  *out[q] = top < d->sum.max_ns ? top : d->sum.max_ns; /* a bucket's top can exceed the maximum */
}

static struct list list_of(const struct to_windows *w, uint32_t series) {
  return (struct list){ w->view_words.word + w->view_begin[series],
                        w->view_begin[series + 1] - w->view_begin[series] };
}

static void quantiles_of_sorted(struct list list, struct to_distribution *d) {
  uint64_t count = 0, seen = 0;
  unsigned q = 0;

  for (size_t i = 0; i < list.n; i++) count += (uint32_t)list.word[i];
  d->has_quantiles = count == d->sum.count;
  if (!d->has_quantiles) return;
  for (size_t i = 0; q < QUANTILES; i++) {
    seen += (uint32_t)list.word[i];
    for (; q < QUANTILES && rank_of(d->sum.count, permille[q]) <= seen; q++)
      set_quantile(d, q, to_word_bucket(list.word[i]));
  }
}

/* Returns the counter that contains the rank; *rank becomes the rank within this counter. */
static unsigned find_rank(const uint64_t counter[BYTE], uint64_t *rank) {
  unsigned i = 0;

  for (; *rank > counter[i]; i++) *rank -= counter[i];
  return i;
}

/* Counts values by the upper byte of their bucket, and those near a quantile by the lower byte, instead of sorting. */
struct row_counts {
  uint64_t upper[BYTE];
  uint8_t place[BYTE]; /* by upper byte: index in lower, from 1; 0: no quantile */
  unsigned places;
  uint64_t lower[QUANTILES][BYTE]; /* cleared when their place is assigned */
};

/* Returns the number of values. */
static uint64_t count_upper(struct row_counts *c, const struct to_windows *w, size_t lists) {
  uint64_t count = 0;

  memset(c, 0, offsetof(struct row_counts, lower));
  for (size_t l = 0; l < lists; l++) {
    struct list list = list_of(w, w->view_row[l]);
    for (size_t i = 0; i < list.n; i++)
      c->upper[to_word_bucket(list.word[i]) / BYTE] += (uint32_t)list.word[i];
  }
  for (unsigned i = 0; i < BYTE; i++) count += c->upper[i];
  return count;
}

static void count_lower(struct row_counts *c, const struct to_windows *w, size_t lists) {
  for (size_t l = 0; l < lists; l++) {
    struct list list = list_of(w, w->view_row[l]);
    for (size_t i = 0; i < list.n; i++) {
      unsigned bucket = to_word_bucket(list.word[i]), place = c->place[bucket / BYTE];
      if (place > 0) c->lower[place - 1][bucket % BYTE] += (uint32_t)list.word[i];
    }
  }
}

static void quantiles_of_lists(const struct to_windows *w, size_t lists,
                               struct to_distribution *d) {
  uint64_t rank[QUANTILES];
  unsigned upper[QUANTILES];
  struct row_counts c;

  d->has_quantiles = count_upper(&c, w, lists) == d->sum.count;
  if (!d->has_quantiles) return;
  for (unsigned q = 0; q < QUANTILES; q++) {
    rank[q] = rank_of(d->sum.count, permille[q]);
    upper[q] = find_rank(c.upper, &rank[q]);
    if (c.place[upper[q]] > 0) continue;
    memset(c.lower[c.places], 0, sizeof c.lower[0]);
    c.place[upper[q]] = (uint8_t)++c.places;
  }
  count_lower(&c, w, lists);
  for (unsigned q = 0; q < QUANTILES; q++)
    set_quantile(d, q, upper[q] * BYTE + find_rank(c.lower[c.place[upper[q]] - 1], &rank[q]));
}

/* ---- the words of a row ---- */

static size_t add_list(struct to_windows *w, size_t lists, uint32_t series) {
  if (w->view_begin[series + 1] == w->view_begin[series]) return lists;
  w->view_row[lists] = series;
  return lists + 1;
}

/* Adds the series, and each parent without own values of which all parts are in the row now. A parent with own values is in
 * the caller's list itself, or does not belong to the row. */
static size_t add_with_parents(struct to_windows *w, size_t lists, uint32_t series) {
  lists = add_list(w, lists, series);
  for (;;) {
    series = w->series[series].parent;
    if (series == TO_NO_SERIES || ++w->view_met[series] < w->view_parts[series] ||
        w->scratch.cell[series].count > 0)
      return lists;
    lists = add_list(w, lists, series);
  }
}

static void forget_met(const struct to_windows *w, const struct to_view_part *part,
                       uint32_t first) {
  for (uint32_t p = first; p != 0; p = part[p - 1].next)
    for (uint32_t series = w->series[part[p - 1].series].parent; series != TO_NO_SERIES;
         series = w->series[series].parent)
      w->view_met[series] = 0;
}

static size_t find_lists(struct to_windows *w, const struct to_view_part *part, uint32_t first) {
  size_t lists = 0;

  for (uint32_t p = first; p != 0; p = part[p - 1].next)
    lists = add_with_parents(w, lists, part[p - 1].series);
  forget_met(w, part, first);
  return lists;
}

tb_rc to_view_quantiles(const struct to_view *view, const struct to_view_part *part, uint32_t first,
                        struct to_distribution *d) {
  struct to_windows *w = view->windows;

  TB_TRY(fill_words(w));
  size_t lists = find_lists(w, part, first);
  if (lists == 0)
    d->has_quantiles = d->sum.count == 0;
  else if (lists == 1)
    quantiles_of_sorted(list_of(w, w->view_row[0]), d);
  else
    quantiles_of_lists(w, lists, d);
  return TB_OK;
}
