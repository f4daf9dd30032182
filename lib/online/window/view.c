/* SPDX-License-Identifier: Apache-2.0 */
/* A view is a window's sums and its rows. Rows cost most, so they are added up only when the first quantile is read. */
#include <string.h>

#include "base/grow.h"
#include "online/window/private.h"

static void drop_rows(struct to_tally *t) {
  struct to_viewed *v = &t->viewed;

  for (size_t i = 0; i < v->rows; i++) v->row_of[v->row[i].series] = 0;
  v->rows = 0;
  to_packed_free(v->block, t->mem);
  v->block = NULL;
  v->has_rows = false;
}

void to__view_drop(const struct to_windows *w) {
  struct to_viewed *v = &w->tally->viewed;

  if (v->of != w) return;
  v->of = NULL;
  to_cells_clear(&v->sums);
  drop_rows(w->tally);
}

static bool has_slot(enum to_window window, to_ns begin, const struct to_slot *slot) {
  return window == TO_WINDOW_STRETCH ? !slot->before_mark : slot->begin >= begin;
}

/* Lists the blocks of the window; returns how many. */
static size_t list_blocks(const struct to_windows *w, enum to_window window,
                          const struct to_packed **block) {
  to_ns begin = to__window_begin(window, w->last);
  size_t n = 0;

  if (window == TO_WINDOW_ALL && w->closed != NULL) block[n++] = w->closed;
  if (window == TO_WINDOW_STRETCH && w->mark.block != NULL) block[n++] = w->mark.block;
  for (size_t i = 0; i < w->slots; i++) {
    bool is_in =
        window == TO_WINDOW_ALL ? !w->slot[i].closed : has_slot(window, begin, &w->slot[i]);
    if (is_in && w->slot[i].block != NULL) block[n++] = w->slot[i].block;
  }
  for (size_t i = 0; i < TO_OPEN_BLOCKS; i++)
    if (w->open_block[i] != NULL) block[n++] = w->open_block[i];
  return n;
}

static struct to_stretch view_stretch(const struct to_windows *w, enum to_window window,
                                      to_ns begin) {
  struct to_stretch stretch = { 0 };

  if (window == TO_WINDOW_ALL) stretch = w->closed_stretch;
  if (window == TO_WINDOW_STRETCH) stretch = w->mark.stretch;
  for (size_t i = 0; i < w->slots && window != TO_WINDOW_ALL; i++)
    if (has_slot(window, begin, &w->slot[i])) to__stretch_join(&stretch, &w->slot[i].stretch);
  to__stretch_join(&stretch, &w->open.stretch);
  return stretch;
}

static tb_rc fill_sums(struct to_windows *w, enum to_window window) {
  const struct to_packed *block[TO_PACKED_MAX];
  struct to_viewed *v = &w->tally->viewed;

  if (v->of != NULL) to__view_drop(v->of);
  TB_TRY(to_tally_view(w->tally, w->series_n));
  size_t n = list_blocks(w, window, block);
  for (size_t i = 0; i < n; i++) to_packed_sums(block[i], &v->sums);
  v->of = w;
  v->window = window;
  return TB_OK;
}

/* The begin of the window, or of the stream if that is later. */
static to_ns first_of(const struct to_windows *w, enum to_window window, to_ns begin) {
  if (window == TO_WINDOW_STRETCH) return w->mark.from < w->last ? w->mark.from : w->last;
  to_ns first = window == TO_WINDOW_ALL ? w->first : w->windows_first;
  return begin > first ? begin : first;
}

tb_rc to_windows_view(struct to_windows *w, enum to_window window, struct to_view *out) {
  const struct to_viewed *v = &w->tally->viewed;

  TB_TRY(to_windows_settle(w));
  /* Several reports read the same window in turn. */
  if (v->of != w || v->window != (unsigned)window) TB_TRY(fill_sums(w, window));
  to_ns begin = to__window_begin(window, w->last);
  *out = (struct to_view){ .from = first_of(w, window, begin),
                           .until = w->last,
                           .stretch = view_stretch(w, window, begin),
                           .windows = w };
  return TB_OK;
}

const struct to_count *to_view_cell(const struct to_view *view, uint32_t series) {
  const struct to_count *cell = &view->windows->tally->viewed.sums.cell[series];
  return cell->count > 0 ? cell : NULL;
}

struct to_sum to_view_sum(const struct to_view *view, uint32_t series) {
  const struct to_count *cell = to_view_cell(view, series);

  if (cell == NULL) return (struct to_sum){ 0 };
  return (struct to_sum){ .count = cell->count,
                          .total_ns = cell->total_ns,
                          .min_ns = cell->min_ns,
                          .max_ns = cell->max_ns,
                          .lower_bounds = cell->lower_bounds };
}

/* ---- quantiles ---- */

static tb_rc fill_rows(struct to_windows *w) {
  const struct to_packed *block[TO_PACKED_MAX];
  struct to_tally *t = w->tally;
  struct to_viewed *v = &t->viewed;
  const struct to_packed_form form = { .mem = t->mem, .parent = w->parent, .words_max = SIZE_MAX };

  if (v->has_rows) return TB_OK;
  TB_TRY(
      to_packed_add(t, &form, block, list_blocks(w, (enum to_window)v->window, block), &v->block));
  struct to_row row;
  for (to_row_first(v->block, &row); to_row_next(&row);) {
    if (row.lengths == 0) continue;
    tb_rc rc = TB_MEM_GROW(t->mem, v->row, v->rows_room, v->rows);
    if (rc != TB_OK) {
      drop_rows(t);
      return rc;
    }
    v->row[v->rows++] = row;
    v->row_of[row.series] = (uint32_t)v->rows;
  }
  v->has_rows = true;
  return TB_OK;
}

static const struct to_row *row_of(const struct to_viewed *v, uint32_t series) {
  uint32_t place = v->row_of[series];
  return place == 0 ? NULL : &v->row[place - 1];
}

#define CHOSEN UINT64_MAX

/* Returns the highest series of which all lengths are in the list; TO_NO_SERIES: one that was chosen before has them. */
static uint32_t choose(const struct to_windows *w, uint32_t series) {
  const struct to_viewed *v = &w->tally->viewed;
  uint32_t highest = series;

  for (uint32_t s = series; s != TO_NO_SERIES; s = w->parent[s]) {
    const struct to_row *row = row_of(v, s);
    if (v->met[s] == CHOSEN) return TO_NO_SERIES;
    if (row != NULL && row->lengths == v->met[s] && row->words > 0) highest = s;
  }
  return highest;
}

/* Chooses the series whose buckets together are those of the list; returns how many. */
static size_t choose_rows(const struct to_windows *w, const struct to_view_part *part,
                          uint32_t first) {
  struct to_viewed *v = &w->tally->viewed;
  size_t n = 0;

  for (uint32_t p = first; p != 0; p = part[p - 1].next) {
    const struct to_row *row = row_of(v, part[p - 1].series);
    for (uint32_t s = part[p - 1].series; s != TO_NO_SERIES && row != NULL; s = w->parent[s])
      v->met[s] += row->lengths;
  }
  for (uint32_t p = first; p != 0; p = part[p - 1].next) {
    if (row_of(v, part[p - 1].series) == NULL) continue;
    uint32_t series = choose(w, part[p - 1].series);
    if (series == TO_NO_SERIES) continue;
    v->met[series] = CHOSEN;
    v->chosen[n++] = series;
  }
  for (uint32_t p = first; p != 0; p = part[p - 1].next)
    for (uint32_t s = part[p - 1].series; s != TO_NO_SERIES; s = w->parent[s]) v->met[s] = 0;
  return n;
}

static void set_quantiles(struct to_distribution *d) {
  uint64_t *const out[] = { &d->p50_ns, &d->p90_ns, &d->p99_ns, &d->p999_ns };

  to_histogram_quantiles(&d->histogram, d->sum.count, d->sum.min_ns, d->sum.max_ns, out);
}

tb_rc to_view_quantiles(const struct to_view *view, const struct to_view_part *part, uint32_t first,
                        uint64_t *bucket, struct to_distribution *d) {
  struct to_tally *t = view->windows->tally;
  struct to_viewed *v = &t->viewed;
  int scale = TO_SCALE_MAX;
  uint64_t lengths = 0;
  bool lost = false;

  TB_TRY(fill_rows(view->windows));
  size_t n = choose_rows(view->windows, part, first);
  for (size_t i = 0; i < n; i++) {
    const struct to_row *row = row_of(v, v->chosen[i]);
    lengths += row->lengths;
    lost = lost || row->words == 0;
    if (row->scale < scale) scale = row->scale;
  }
  d->has_quantiles = !lost && lengths == d->sum.count;
  d->histogram = (struct to_histogram){ .scale = scale };
  if (!d->has_quantiles || lengths == 0) return TB_OK;
  for (size_t i = 0; i < n; i++) to_row_count(row_of(v, v->chosen[i]), scale, t);
  d->histogram = to_buckets_take(t, scale, TO_BUCKETS_MAX, bucket);
  set_quantiles(d);
  return TB_OK;
}
