/* SPDX-License-Identifier: Apache-2.0 */
/* A slot is coarsened together with its neighbours only when all of them are older than the window
 * that needs them fine, so every window begins on the border of a slot, whatever has been merged.
 * Each sum is packed once and merged at most twice: the cost of aging is O(1) a span. */
#include "analysis/window.h"

#include <assert.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define TIME_MIN  (INT64_MIN / 2)

static const struct {
  const char *name;
  to_ns length_ns; /* 0: since ever */
  to_ns slot_ns;   /* of slots this old or younger */
} windows[TO_WINDOWS] = {
  [TO_WINDOW_10S] = { "10s", 10 * SECOND_NS, 1 * SECOND_NS },
  [TO_WINDOW_1MIN] = { "1m", 60 * SECOND_NS, 5 * SECOND_NS },
  [TO_WINDOW_5MIN] = { "5m", 300 * SECOND_NS, 30 * SECOND_NS },
  [TO_WINDOW_ALL] = { "all", 0, 0 },
};

const char *to_window_name(enum to_window window) {
  return windows[window].name;
}

bool to_window_find(const char *name, enum to_window *out) {
  for (unsigned i = 0; i < TO_WINDOWS; i++)
    if (strcmp(windows[i].name, name) == 0) {
      *out = (enum to_window)i;
      return true;
    }
  return false;
}

void to_windows_init(struct to_windows *w, struct tb_mem *mem) {
  *w = (struct to_windows){ .mem = mem };
  to_counters_init(&w->open, mem);
  to_counters_init(&w->closed, mem);
  to_counters_init(&w->scratch, mem);
}

void to_windows_fini(struct to_windows *w) {
  for (size_t i = 0; i < w->slots; i++) to_packed_free(w->slot[i].packed, w->mem);
  to_counters_fini(&w->open);
  to_counters_fini(&w->closed);
  to_counters_fini(&w->scratch);
  *w = (struct to_windows){ 0 };
}

tb_rc to_windows_series(struct to_windows *w, uint32_t *out_series) {
  TB_TRY(to_counters_reserve(&w->open, w->series + 1));
  TB_TRY(to_counters_reserve(&w->closed, w->series + 1));
  TB_TRY(to_counters_reserve(&w->scratch, w->series + 1));
  *out_series = (uint32_t)w->series++;
  return TB_OK;
}

unsigned to_windows_hist(struct to_windows *w) {
  assert(w->hists < TO_HISTOGRAMS_MAX);
  return w->hists++;
}

static to_ns round_down(to_ns time, to_ns step) {
  to_ns rest = time % step;
  return time - (rest < 0 ? rest + step : rest);
}

/* Where the window that ends at time begins, rounded to its slots. */
static to_ns window_begin(enum to_window window, to_ns time) {
  if (windows[window].length_ns == 0 || time < TIME_MIN) return INT64_MIN;
  return round_down(time - windows[window].length_ns, windows[window].slot_ns);
}

static void stretch_join(struct to_stretch *into, const struct to_stretch *from) {
  into->events += from->events;
  if (into->first_gen == 0) into->first_gen = from->first_gen;
  if (from->last_gen != 0) into->last_gen = from->last_gen;
}

/* Makes one slot of slots first to first+n-1. */
static tb_rc join_slots(struct to_windows *w, size_t first, size_t n) {
  struct to_slot joined = w->slot[first];

  w->viewed = false;
  to_counters_clear(&w->scratch);
  for (size_t i = first; i < first + n; i++) {
    TB_TRY(to_counters_merge_packed(&w->scratch, w->slot[i].packed));
    if (i > first) stretch_join(&joined.stretch, &w->slot[i].stretch);
    joined.end = w->slot[i].end;
  }
  TB_TRY(to_counters_pack(&w->scratch, &joined.packed));
  for (size_t i = first; i < first + n; i++) to_packed_free(w->slot[i].packed, w->mem);
  w->slot[first] = joined;
  memmove(&w->slot[first + 1], &w->slot[first + n], (w->slots - first - n) * sizeof(*w->slot));
  w->slots -= n - 1;
  return TB_OK;
}

/* Joins what lies in one slot of the next window and is too old for this one. */
static tb_rc thin_out(struct to_windows *w, enum to_window window, to_ns now) {
  to_ns old = window_begin(window, now), step = windows[window + 1].slot_ns;

  for (size_t i = 0; i < w->slots; i++) {
    to_ns begin = round_down(w->slot[i].begin, step);
    size_t n = 1;
    if (begin > INT64_MAX - step || begin + step > old) return TB_OK;
    while (i + n < w->slots && w->slot[i + n].begin < begin + step) n++;
    if (n > 1) TB_TRY(join_slots(w, i, n));
  }
  return TB_OK;
}

static void drop_old(struct to_windows *w, to_ns now) {
  to_ns begin = window_begin(TO_WINDOW_ALL - 1, now);
  size_t n = 0;

  while (n < w->slots && w->slot[n].begin < begin) to_packed_free(w->slot[n++].packed, w->mem);
  if (n == 0) return;
  memmove(w->slot, w->slot + n, (w->slots - n) * sizeof(*w->slot));
  w->slots -= n;
}

static tb_rc close_slot(struct to_windows *w, to_ns now) {
  struct to_slot slot = { .begin = w->open_begin, .end = w->open_end, .stretch = w->open_stretch };

  drop_old(w, now);
  for (unsigned i = 0; i + 1 < TO_WINDOW_ALL; i++) TB_TRY(thin_out(w, (enum to_window)i, now));
  assert(w->slots < TO_SLOTS_MAX);
  TB_TRY(to_counters_pack(&w->open, &slot.packed));
  tb_rc rc = to_counters_merge(&w->closed, &w->open);
  if (rc != TB_OK) {
    to_packed_free(slot.packed, w->mem);
    return rc;
  }
  stretch_join(&w->closed_stretch, &w->open_stretch);
  w->slot[w->slots++] = slot;
  to_counters_clear(&w->open);
  w->open_stretch = (struct to_stretch){ 0 };
  return TB_OK;
}

static void open_slot(struct to_windows *w, to_ns time) {
  to_ns length = windows[0].slot_ns;

  w->open_begin = round_down(time, length);
  w->open_end = w->open_begin > INT64_MAX - length ? INT64_MAX : w->open_begin + length;
}

tb_rc to_windows_move(struct to_windows *w, to_ns time) {
  if (time < TIME_MIN) time = TIME_MIN; /* a made-up trace: no room for a window before it */
  if (w->open_begin == w->open_end) {   /* the first event */
    w->first = w->windows_first = time;
    open_slot(w, time);
  } else if (time >= w->open_end) {
    TB_TRY(close_slot(w, time));
    open_slot(w, time);
  } else if (time < w->open_begin) {
    TB_TRY(close_slot(w, w->open_end));
    while (w->slots > 0) to_packed_free(w->slot[--w->slots].packed, w->mem);
    w->windows_first = time;
    if (time < w->first) w->first = time;
    open_slot(w, time);
  }
  return TB_OK;
}

void to_windows_note(struct to_windows *w, uint64_t n, uint64_t gen, to_ns last) {
  stretch_join(&w->open_stretch,
               &(struct to_stretch){ .events = n, .first_gen = gen, .last_gen = gen });
  w->last = last;
  w->viewed = false;
}

bool to_windows_retire(struct to_windows *w, uint32_t series, uint32_t into, to_ns last) {
  to_ns oldest = w->slots > 0 ? w->slot[0].begin : w->open_begin;

  if (last >= oldest) return false;
  to_counters_move(&w->closed, series, into);
  return true;
}

static struct to_stretch view_stretch(const struct to_windows *w, enum to_window window,
                                      to_ns begin) {
  struct to_stretch stretch = { 0 };

  if (window == TO_WINDOW_ALL) stretch = w->closed_stretch;
  for (size_t i = 0; i < w->slots && window != TO_WINDOW_ALL; i++)
    if (w->slot[i].begin >= begin) stretch_join(&stretch, &w->slot[i].stretch);
  stretch_join(&stretch, &w->open_stretch);
  return stretch;
}

static tb_rc fill_scratch(struct to_windows *w, enum to_window window, to_ns begin) {
  w->viewed = false;
  to_counters_clear(&w->scratch);
  if (window == TO_WINDOW_ALL) TB_TRY(to_counters_merge(&w->scratch, &w->closed));
  for (size_t i = 0; i < w->slots && window != TO_WINDOW_ALL; i++)
    if (w->slot[i].begin >= begin) TB_TRY(to_counters_merge_packed(&w->scratch, w->slot[i].packed));
  TB_TRY(to_counters_merge(&w->scratch, &w->open));
  w->viewed = true;
  w->viewed_window = window;
  return TB_OK;
}

tb_rc to_windows_view(struct to_windows *w, enum to_window window, struct to_view *out) {
  to_ns begin = window_begin(window, w->last);
  to_ns first = window == TO_WINDOW_ALL ? w->first : w->windows_first;

  /* Reports of several kinds look at the same window one after the other. */
  if (!w->viewed || w->viewed_window != window) TB_TRY(fill_scratch(w, window, begin));
  *out = (struct to_view){ .from = begin > first ? begin : first,
                           .until = w->last,
                           .stretch = view_stretch(w, window, begin),
                           .windows = w };
  return TB_OK;
}

const struct to_cell *to_view_cell(const struct to_view *view, uint32_t series) {
  const struct to_cell *cell = &view->windows->scratch.cell[series];
  return cell->count > 0 ? cell : NULL;
}

struct to_sum to_view_sum(const struct to_view *view, uint32_t series) {
  const struct to_cell *cell = to_view_cell(view, series);

  if (cell == NULL) return (struct to_sum){ 0 };
  return (struct to_sum){ .count = cell->count,
                          .total_ns = cell->total_ns,
                          .max_ns = cell->max_ns,
                          .lower_bounds = cell->lower_bounds };
}

struct to_distribution to_view_distribution(const struct to_view *view, unsigned hist,
                                            struct to_sum sum) {
  static const unsigned permille[] = { 500, 900, 990 };
  uint64_t ns[3];

  to_histogram_quantiles(&view->windows->scratch.hist[hist], permille, 3, ns);
  for (unsigned i = 0; i < 3; i++) /* a bucket's top may lie above the largest value */
    if (ns[i] > sum.max_ns) ns[i] = sum.max_ns;
  return (struct to_distribution){ .sum = sum, .p50_ns = ns[0], .p90_ns = ns[1], .p99_ns = ns[2] };
}
