/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbouring slots are merged only when all of them are older than the window that needs the finer
 * slots, so every window begins on the border of a slot. Each sum is packed once and merged at most
 * twice: the cost of aging is O(1) a span. */
#include "online/window/private.h"

#include <assert.h>
#include <string.h>

#include "base/grow.h"

#define SECOND_NS INT64_C(1000000000)
#define TIME_MIN  (INT64_MIN / 2)

static const struct {
  const char *name;
  to_ns length_ns; /* 0: since the start */
  to_ns slot_ns;   /* length of the window's slots */
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

static void slot_fini(struct to_windows *w, struct to_slot *slot) {
  to_packed_free(slot->packed, w->mem);
  to_runs_free(slot->runs, w->mem);
}

void to_windows_fini(struct to_windows *w) {
  for (size_t i = 0; i < w->slots; i++) slot_fini(w, &w->slot[i]);
  to_counters_fini(&w->open);
  to_counters_fini(&w->closed);
  to_counters_fini(&w->scratch);
  to__windows_drop_view(w);
  if (w->mem != NULL) {
    to_buckets_fini(&w->open_buckets, w->mem);
    to_runs_free(w->closed_runs, w->mem);
    tb_mem_free(w->mem, w->series, w->series_room * sizeof(*w->series));
  }
  *w = (struct to_windows){ 0 };
}

tb_rc to_windows_series(struct to_windows *w, uint32_t parent, uint32_t *out_series) {
  uint32_t number = (uint32_t)w->series_n;
  bool has_words = number < TO_BUCKET_SERIES_MAX;

  assert(parent == TO_NO_SERIES ? has_words : parent < number);
  TB_TRY(to_counters_reserve(&w->open, number + 1));
  TB_TRY(to_counters_reserve(&w->closed, number + 1));
  if (w->viewed) TB_TRY(to_counters_reserve(&w->scratch, number + 1));
  TB_TRY(TB_MEM_GROW(w->mem, w->series, w->series_room, w->series_n));
  w->series[number] = (struct to_series){
    .parent = parent,
    .home = has_words ? number : w->series[parent].home,
    .place = has_words ? number : w->series[parent].place,
  };
  if (parent != TO_NO_SERIES) w->series[parent].is_parent = true;
  w->series_n++;
  *out_series = number;
  return TB_OK;
}

static to_ns round_down(to_ns time, to_ns step) {
  to_ns rest = time % step;
  return time - (rest < 0 ? rest + step : rest);
}

to_ns to__window_begin(enum to_window window, to_ns time) {
  if (windows[window].length_ns == 0 || time < TIME_MIN) return INT64_MIN;
  return round_down(time - windows[window].length_ns, windows[window].slot_ns);
}

void to__stretch_join(struct to_stretch *into, const struct to_stretch *from) {
  into->events += from->events;
  if (into->first_gen == 0) into->first_gen = from->first_gen;
  if (from->last_gen != 0) into->last_gen = from->last_gen;
}

static void free_slots(struct to_windows *w, size_t first, size_t n) {
  for (size_t i = first; i < first + n; i++) slot_fini(w, &w->slot[i]);
}

/* Lists with few words are joined one by one, which costs less than a table for their sums. */
tb_rc to__windows_sum_lists(struct to_join *join, size_t max, struct to_words *out) {
  enum { FEW_WORDS = 2048 };

  return join->words < FEW_WORDS ? TB_BUDGET : to_join_sum(join, max, out);
}

tb_rc to__windows_join_runs(struct to_words *words, const struct to_runs *runs) {
  struct to_words more;

  if (runs == NULL) return TB_OK;
  if (words->n == 0) return to_words_unpack(words, runs);

  to_words_init(&more, words->mem);
  tb_rc rc = to_words_unpack(&more, runs);
  if (rc == TB_OK) rc = to_words_join(words, &more);
  to_words_fini(&more);
  return rc;
}

enum { FULL_RATE = 1000000, WORDS_MIN = 2 << 10 };

/* Returns how many of max words a stretch with so many events keeps. */
static size_t spared_words(const struct to_windows *w, size_t max, uint64_t events, to_ns length) {
  uint64_t seconds = length > SECOND_NS ? (uint64_t)length / SECOND_NS : 1;

  if (!w->sparing) return max;
  for (uint64_t rate = FULL_RATE / 4; rate > 0 && events / seconds < rate; rate /= 4) max /= 2;
  return max > WORDS_MIN ? max : WORDS_MIN;
}

static size_t slot_words_max(const struct to_windows *w, const struct to_slot *slot) {
  return spared_words(w, TO_WORDS_SLOT_MAX, slot->stretch.events,
                      (to_ns)((uint64_t)slot->end - (uint64_t)slot->begin));
}

/* Folds words to at most max, and packs them. */
static tb_rc pack_words(struct to_windows *w, struct to_words *words, size_t max,
                        struct to_runs **out) {
  TB_TRY(to_words_fold(words, w->series, max, NULL));
  return to_words_pack(words, out);
}

static tb_rc join_slot_runs(struct to_windows *w, size_t first, size_t n, size_t max,
                            struct to_runs **out) {
  struct to_words words;
  tb_rc rc = TB_OK;

  to_words_init(&words, w->mem);
  for (size_t i = first; i < first + n && rc == TB_OK; i++)
    rc = to__windows_join_runs(&words, w->slot[i].runs);
  if (rc == TB_OK) rc = pack_words(w, &words, max, out);
  to_words_fini(&words);
  return rc;
}

/* Merges n slots into one. */
static tb_rc join_slots(struct to_windows *w, size_t first, size_t n) {
  struct to_slot joined = w->slot[first];

  to__windows_drop_view(w);
  TB_TRY(to_counters_reserve(&w->scratch, w->series_n));
  for (size_t i = first; i < first + n; i++) {
    to_counters_merge_packed(&w->scratch, w->slot[i].packed);
    if (i > first) to__stretch_join(&joined.stretch, &w->slot[i].stretch);
    joined.end = w->slot[i].end;
  }
  joined.runs = NULL;
  tb_rc rc = join_slot_runs(w, first, n, slot_words_max(w, &joined), &joined.runs);
  if (rc == TB_OK) rc = to_counters_pack(&w->scratch, &joined.packed);
  to_counters_empty(&w->scratch);
  if (rc != TB_OK) {
    to_runs_free(joined.runs, w->mem);
    return rc;
  }
  free_slots(w, first, n);
  w->slot[first] = joined;
  memmove(&w->slot[first + 1], &w->slot[first + n], (w->slots - first - n) * sizeof(*w->slot));
  w->slots -= n - 1;
  return TB_OK;
}

/* Joins slots that are too old for this window and in the same slot of the next one. */
static tb_rc thin_out(struct to_windows *w, enum to_window window, to_ns now) {
  to_ns old = to__window_begin(window, now), step = windows[window + 1].slot_ns;

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
  to_ns begin = to__window_begin(TO_WINDOW_ALL - 1, now);
  size_t n = 0;

  while (n < w->slots && w->slot[n].begin < begin) n++;
  if (n == 0) return;
  free_slots(w, 0, n);
  memmove(w->slot, w->slot + n, (w->slots - n) * sizeof(*w->slot));
  w->slots -= n;
}

/* ---- words since the start ---- */

void to__windows_join_closed(const struct to_windows *w, struct to_join *join) {
  to_join_runs(join, w->closed_runs);
  for (size_t i = w->slots - w->loose; i < w->slots; i++) to_join_runs(join, w->slot[i].runs);
}

tb_rc to__windows_closed_words(const struct to_windows *w, struct to_words *words) {
  TB_TRY(to_words_unpack(words, w->closed_runs));
  for (size_t i = w->slots - w->loose; i < w->slots; i++)
    TB_TRY(to__windows_join_runs(words, w->slot[i].runs));
  return TB_OK;
}

static tb_rc sum_closed(struct to_windows *w, struct to_words *out) {
  struct to_join join = { .lists = 0 };

  to__windows_join_closed(w, &join);
  tb_rc rc = to__windows_sum_lists(&join, SIZE_MAX, out);
  return rc == TB_BUDGET ? to__windows_closed_words(w, out) : rc;
}

static void take_closed(struct to_windows *w, struct to_runs *closed) {
  to_runs_free(w->closed_runs, w->mem);
  w->closed_runs = closed;
}

static size_t closed_words_max(const struct to_windows *w) {
  return spared_words(w, TO_WORDS_CLOSED_MAX, w->closed_stretch.events,
                      (to_ns)((uint64_t)w->open_begin - (uint64_t)w->first));
}

/* Adds the words of the loose slots to those since the start. */
static tb_rc close_loose(struct to_windows *w) {
  struct to_runs *closed = NULL;
  struct to_words words;

  if (w->loose == 0) return TB_OK;
  to_words_init(&words, w->mem);
  tb_rc rc = sum_closed(w, &words);
  if (rc == TB_OK) rc = pack_words(w, &words, closed_words_max(w), &closed);
  to_words_fini(&words);
  if (rc != TB_OK) return rc;
  take_closed(w, closed);
  w->loose = w->loose_words = 0;
  return TB_OK;
}

/* Slots stay loose until closing them costs little in proportion, but are closed before they are thinned out or dropped. */
static bool closes_loose(const struct to_windows *w, to_ns now) {
  size_t closed = w->closed_runs != NULL ? w->closed_runs->words : 0;

  if (w->loose == 0) return false;
  if (w->slot[w->slots - w->loose].begin < to__window_begin(TO_WINDOW_10S, now)) return true;
  if (closed > TO_WORDS_CLOSED_MAX / 2) closed = TO_WORDS_CLOSED_MAX / 2;
  return w->loose_words > TO_WORDS_LOOSE_MIN && w->loose_words > closed;
}

static void clear_open(struct to_windows *w) {
  to_counters_clear(&w->open);
  to_buckets_clear(&w->open_buckets, w->mem);
  for (size_t i = 0; w->folded && i < w->series_n; i++) w->series[i].place = w->series[i].home;
  w->folded = false;
  w->open_stretch = (struct to_stretch){ 0 };
}

/* Packs the open slot; does everything that can fail. */
static tb_rc pack_open(struct to_windows *w, struct to_slot *slot) {
  struct to_words words;

  to_words_init(&words, w->mem);
  tb_rc rc = to_words_take(&words, &w->open_buckets);
  if (rc == TB_OK) rc = pack_words(w, &words, slot_words_max(w, slot), &slot->runs);
  if (rc == TB_OK) rc = to_counters_pack(&w->open, &slot->packed);
  to_words_fini(&words);
  return rc;
}

static tb_rc close_slot(struct to_windows *w, to_ns now) {
  struct to_slot slot = { .begin = w->open_begin, .end = w->open_end, .stretch = w->open_stretch };

  to__windows_drop_view(w);
  if (closes_loose(w, now)) TB_TRY(close_loose(w));
  drop_old(w, now);
  for (unsigned i = 0; i + 1 < TO_WINDOW_ALL; i++) TB_TRY(thin_out(w, (enum to_window)i, now));
  assert(w->slots < TO_SLOTS_MAX);
  tb_rc rc = pack_open(w, &slot);
  if (rc != TB_OK) {
    slot_fini(w, &slot);
    return rc;
  }
  to_counters_merge(&w->closed, &w->open);
  for (size_t i = 0; i < w->open.used_len; i++)
    w->series[w->open.used[i]].values += w->open.cell[w->open.used[i]].count;
  to__stretch_join(&w->closed_stretch, &w->open_stretch);
  w->slot[w->slots++] = slot;
  w->loose++;
  w->loose_words += slot.runs->words;
  clear_open(w);
  return TB_OK;
}

static void open_slot(struct to_windows *w, to_ns time) {
  to_ns length = windows[0].slot_ns;

  w->open_begin = round_down(time, length);
  w->open_end = w->open_begin > INT64_MAX - length ? INT64_MAX : w->open_begin + length;
}

tb_rc to_windows_move(struct to_windows *w, to_ns time) {
  if (time < TIME_MIN) time = TIME_MIN; /* forged: the begin of a window must not overflow */
  if (w->open_begin == w->open_end) {   /* the first event */
    w->first = w->windows_first = time;
    open_slot(w, time);
  } else if (time >= w->open_end) {
    TB_TRY(close_slot(w, time));
    open_slot(w, time);
  } else if (time < w->open_begin) {
    TB_TRY(close_slot(w, w->open_end));
    TB_TRY(close_loose(w));
    free_slots(w, 0, w->slots);
    w->slots = 0;
    w->windows_first = time;
    if (time < w->first) w->first = time;
    open_slot(w, time);
  }
  return TB_OK;
}

void to_windows_note(struct to_windows *w, uint64_t n, uint64_t gen, to_ns last) {
  to__stretch_join(&w->open_stretch,
                   &(struct to_stretch){ .events = n, .first_gen = gen, .last_gen = gen });
  w->last = last;
  to__windows_drop_view(w);
}

/* Folds the words of the open slot to half of their limit. */
static tb_rc fold_open(struct to_windows *w) {
  uint64_t folded[TO_BUCKET_SERIES_MAX / 64] = { 0 };
  struct to_words words;

  to_words_init(&words, w->mem);
  tb_rc rc = to_words_take(&words, &w->open_buckets);
  if (rc == TB_OK) rc = to_words_fold(&words, w->series, TO_WORDS_OPEN_MAX / 2, folded);
  if (rc == TB_OK) {
    to_buckets_clear(&w->open_buckets, w->mem);
    for (size_t i = 0; i < words.n; i++) to_buckets_put(&w->open_buckets, words.word[i]);
    w->folded = true;
  }
  to_words_fini(&words);
  for (size_t i = 0; rc == TB_OK && i < w->series_n; i++) {
    uint32_t *place = &w->series[i].place;
    while (folded[*place / 64] >> *place % 64 & 1)
      *place = w->series[w->series[*place].parent].home;
  }
  return rc;
}

/* If nothing can be folded the table exceeds its limit, by the words of the few series without a parent. */
tb_rc to_windows_grow(struct to_windows *w) {
  size_t used = w->open_buckets.used;

  if (used >= TO_WORDS_OPEN_MAX) {
    TB_TRY(fold_open(w));
    if (w->open_buckets.used < used / 4 * 3) return TB_OK;
  }
  return to_buckets_grow(&w->open_buckets, w->mem);
}

bool to_windows_retire(struct to_windows *w, uint32_t series, uint32_t into, to_ns last,
                       struct to_series_set *retired) {
  to_ns oldest = w->slots > 0 ? w->slot[0].begin : w->open_begin;

  /* last > w->last: last was before the clock went back. */
  if (last >= oldest && last <= w->last) return false;
  to_counters_move(&w->closed, series, into);
  to__windows_drop_view(w);
  if (series < TO_BUCKET_SERIES_MAX) retired->bits[series / 64] |= UINT64_C(1) << series % 64;
  return true;
}

tb_rc to_windows_retired(struct to_windows *w, const struct to_series_set *retired) {
  struct to_runs *closed = NULL;
  struct to_words words;

  to_words_init(&words, w->mem);
  tb_rc rc = to_words_unpack(&words, w->closed_runs);
  if (rc == TB_OK) rc = to_words_give_parents(&words, w->series, retired->bits);
  if (rc == TB_OK) rc = to_words_pack(&words, &closed);
  to_words_fini(&words);
  if (rc != TB_OK) return rc;
  take_closed(w, closed);
  return TB_OK;
}
