/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbouring slots are added up only when all of them are older than the window that needs the finer slots, so every
 * window begins on the border of a slot. Each count is added to a block at most four times: the cost of aging is O(1) a
 * span. */
#include "online/window/window.h"

#include <assert.h>
#include <string.h>

#include "base/grow.h"
#include "online/window/private.h"

#define SECOND_NS INT64_C(1000000000)
#define TIME_MIN  (INT64_MIN / 2)

static const struct {
  const char *name;
  to_ns length_ns; /* 0: since the start */
  to_ns slot_ns;   /* length of the window's slots */
} windows[TO_WINDOWS + 1] = {
  [TO_WINDOW_10S] = { "10s", 10 * SECOND_NS, 2 * SECOND_NS },
  [TO_WINDOW_1MIN] = { "1m", 60 * SECOND_NS, 10 * SECOND_NS },
  [TO_WINDOW_5MIN] = { "5m", 300 * SECOND_NS, 60 * SECOND_NS },
  [TO_WINDOW_ALL] = { "all", 0, 0 },
  [TO_WINDOW_STRETCH] = { "stretch", 0, 0 },
};

const char *to_window_name(enum to_window window) {
  return windows[window].name;
}

to_ns to_window_length(enum to_window window) {
  return windows[window].length_ns;
}

to_ns to_window_slot(enum to_window window) {
  return windows[window].slot_ns;
}

bool to_window_find(const char *name, enum to_window *out) {
  for (unsigned i = 0; i < TO_WINDOWS; i++)
    if (strcmp(windows[i].name, name) == 0) {
      *out = (enum to_window)i;
      return true;
    }
  return false;
}

void to_windows_init(struct to_windows *w, struct tb_mem *mem, struct to_tally *tally) {
  *w = (struct to_windows){ .mem = mem, .tally = tally };
}

void to_windows_fini(struct to_windows *w) {
  if (w->mem == NULL) return;
  if (w->tally->owner == w) {
    to_tally_clear(w->tally);
    w->tally->owner = NULL;
  }
  to__view_drop(w);
  for (size_t i = 0; i < w->slots; i++) to_packed_free(w->slot[i].block, w->mem);
  for (size_t i = 0; i < TO_OPEN_BLOCKS; i++) to_packed_free(w->open_block[i], w->mem);
  to_packed_free(w->closed, w->mem);
  to_packed_free(w->mark.block, w->mem);
  tb_mem_free(w->mem, w->parent, w->series_room * sizeof(*w->parent));
  *w = (struct to_windows){ 0 };
}

tb_rc to_windows_series(struct to_windows *w, uint32_t parent, uint32_t *out_series) {
  uint32_t number = (uint32_t)w->series_n;

  assert(parent == TO_NO_SERIES || parent < number);
  if (number == TO_SERIES_MAX) return TB_BUDGET;
  TB_TRY(to_tally_reserve(w->tally, number + 1));
  TB_TRY(TB_MEM_GROW(w->mem, w->parent, w->series_room, w->series_n));
  to__view_drop(w);
  w->parent[w->series_n++] = parent;
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
  into->thinned += from->thinned;
  if (into->first_gen == 0) into->first_gen = from->first_gen;
  if (from->last_gen != 0) into->last_gen = from->last_gen;
}

/* ---- blocks ---- */

enum {
  WORDS_SLOT_MAX = 64 << 10,
  WORDS_CLOSED_MAX = 160 << 10,
  WORDS_MIN = 2 << 10,
  MARK_SLOTS = 8, /* that a mark leaves to others */
  FULL_RATE = 1000000,
};

/* Returns how many of max words a stretch with so many events keeps. */
static size_t spared_words(const struct to_windows *w, size_t max, uint64_t events, to_ns length) {
  uint64_t seconds = length > SECOND_NS ? (uint64_t)length / SECOND_NS : 1;

  if (!w->sparing) return max;
  for (uint64_t rate = FULL_RATE / 4; rate > 0 && events / seconds < rate; rate /= 4) max /= 2;
  return max > WORDS_MIN ? max : WORDS_MIN;
}

static struct to_packed_form form_of(const struct to_windows *w, size_t words_max) {
  return (struct to_packed_form){ .mem = w->mem, .parent = w->parent, .words_max = words_max };
}

static tb_rc add_blocks(struct to_windows *w, const struct to_packed *const *block, size_t n,
                        size_t words_max, struct to_packed **out) {
  const struct to_packed_form form = form_of(w, words_max);

  to__view_drop(w); /* its sums use the same room */
  TB_TRY(to_tally_reserve(w->tally, w->series_n));
  return to_packed_add(w->tally, &form, block, n, out);
}

/* Replaces a sum by that of n blocks, of which it is the first. */
static tb_rc replace_sum(struct to_windows *w, struct to_packed **sum,
                         const struct to_packed *const *block, size_t n, uint64_t events,
                         to_ns since) {
  to_ns length = (to_ns)((uint64_t)w->open.begin - (uint64_t)since);
  struct to_packed *more;

  if (n == 1) return TB_OK;
  TB_TRY(add_blocks(w, block, n, spared_words(w, WORDS_CLOSED_MAX, events, length), &more));
  to_packed_free(*sum, w->mem);
  *sum = more;
  return TB_OK;
}

/* Adds those of n slots that are not yet in the sum since the start to it. */
static tb_rc close_slots(struct to_windows *w, size_t first, size_t n) {
  const struct to_packed *block[TO_SLOTS_MAX + 1] = { w->closed };
  size_t blocks = 1;

  for (size_t i = first; i < first + n; i++)
    if (!w->slot[i].closed && w->slot[i].block != NULL) block[blocks++] = w->slot[i].block;
  TB_TRY(replace_sum(w, &w->closed, block, blocks, w->closed_stretch.events, w->first));
  for (size_t i = first; i < first + n; i++) w->slot[i].closed = true;
  return TB_OK;
}

/* Drops the first n slots, but keeps the sum of those after the mark. */
static tb_rc drop_slots(struct to_windows *w, size_t n) {
  const struct to_packed *block[TO_SLOTS_MAX + 1] = { w->mark.block };
  struct to_stretch stretch = w->mark.stretch;
  size_t blocks = 1;

  for (size_t i = 0; i < n && w->has_stretches; i++) {
    if (w->slot[i].before_mark) continue;
    if (w->slot[i].block != NULL) block[blocks++] = w->slot[i].block;
    to__stretch_join(&stretch, &w->slot[i].stretch);
  }
  TB_TRY(replace_sum(w, &w->mark.block, block, blocks, stretch.events, w->mark.from));
  w->mark.stretch = stretch;
  for (size_t i = 0; i < n; i++) to_packed_free(w->slot[i].block, w->mem);
  memmove(w->slot, w->slot + n, (w->slots - n) * sizeof(*w->slot));
  w->slots -= n;
  return TB_OK;
}

/* Makes one slot of n. After a silence, some of them may be closed already. */
static tb_rc join_slots(struct to_windows *w, size_t first, size_t n, to_ns length) {
  const struct to_packed *block[TO_SLOTS_MAX];
  size_t blocks = 0;
  bool is_any_closed = false;

  for (size_t i = first; i < first + n; i++) is_any_closed |= w->slot[i].closed;
  if (is_any_closed) TB_TRY(close_slots(w, first, n));
  struct to_slot joined = w->slot[first];
  joined.block = NULL;
  for (size_t i = first; i < first + n; i++) {
    if (w->slot[i].block != NULL) block[blocks++] = w->slot[i].block;
    if (i > first) to__stretch_join(&joined.stretch, &w->slot[i].stretch);
  }
  size_t max = spared_words(w, WORDS_SLOT_MAX, joined.stretch.events, length);
  if (blocks > 0) TB_TRY(add_blocks(w, block, blocks, max, &joined.block));
  for (size_t i = first; i < first + n; i++) to_packed_free(w->slot[i].block, w->mem);
  w->slot[first] = joined;
  memmove(&w->slot[first + 1], &w->slot[first + n], (w->slots - first - n) * sizeof(*w->slot));
  w->slots -= n - 1;
  return TB_OK;
}

/* Joins slots that are too old for this window, in the same slot of the next one, and on the same side of the mark. */
static tb_rc thin_out(struct to_windows *w, enum to_window window, to_ns now) {
  to_ns old = to__window_begin(window, now), step = windows[window + 1].slot_ns;

  for (size_t i = 0; i < w->slots; i++) {
    to_ns begin = round_down(w->slot[i].begin, step);
    size_t n = 1;
    if (begin > INT64_MAX - step || begin + step > old) return TB_OK;
    while (i + n < w->slots && w->slot[i + n].begin < begin + step &&
           w->slot[i + n].before_mark == w->slot[i].before_mark)
      n++;
    if (n > 1) TB_TRY(join_slots(w, i, n, step));
    if (window + 1 == TO_WINDOW_5MIN) TB_TRY(close_slots(w, i, 1));
  }
  return TB_OK;
}

static tb_rc drop_old(struct to_windows *w, to_ns now) {
  to_ns begin = to__window_begin(TO_WINDOW_ALL - 1, now);
  size_t n = 0;

  while (n < w->slots && w->slot[n].begin < begin) n++;
  if (n == 0) return TB_OK;
  TB_TRY(close_slots(w, 0, n));
  return drop_slots(w, n);
}

/* ---- the open slot ---- */

static tb_rc take_tally(struct to_windows *w) {
  const struct to_packed_form form =
      form_of(w, spared_words(w, WORDS_SLOT_MAX, w->open.stretch.events, windows[0].slot_ns));
  struct to_packed **last = &w->open_block[0], *more, *sum;

  while (*last != NULL && last < &w->open_block[TO_OPEN_BLOCKS - 1]) last++;
  if (w->tally->open.used_n == 0 && w->tally->words == 0) return TB_OK;
  TB_TRY(to_packed_of_tally(w->tally, &form, &more));
  if (*last != NULL) {
    const struct to_packed *const both[] = { *last, more };
    tb_rc rc = add_blocks(w, both, 2, form.words_max, &sum);
    to_packed_free(more, w->mem);
    if (rc != TB_OK) return rc;
    to_packed_free(*last, w->mem);
    more = sum;
  }
  *last = more;
  to_tally_clear(w->tally);
  to__view_drop(w);
  return TB_OK;
}

tb_rc to_windows_settle(struct to_windows *w) {
  return w->tally->owner == w ? take_tally(w) : TB_OK;
}

tb_rc to_windows_attach(struct to_windows *w) {
  struct to_windows *owner = w->tally->owner;

  if (owner == w) return TB_OK;
  if (owner != NULL) {
    tb_rc rc = take_tally(owner);
    if (rc != TB_OK) owner->failed = rc;
    to_tally_clear(w->tally);
    w->tally->owner = NULL;
  }
  TB_TRY(to_tally_reserve(w->tally, w->series_n));
  w->tally->owner = w;
  return TB_OK;
}

tb_rc to_windows_grow(struct to_windows *w) {
  tb_rc rc = to_tally_grow(w->tally);

  return rc == TB_AGAIN ? take_tally(w) : rc;
}

static tb_rc join_open_blocks(struct to_windows *w) {
  const struct to_packed *block[TO_OPEN_BLOCKS];
  struct to_packed *sum;
  size_t n = 0;

  for (; n < TO_OPEN_BLOCKS && w->open_block[n] != NULL; n++) block[n] = w->open_block[n];
  if (n <= 1) return TB_OK;
  size_t max = spared_words(w, WORDS_SLOT_MAX, w->open.stretch.events, windows[0].slot_ns);
  TB_TRY(add_blocks(w, block, n, max, &sum));
  for (size_t i = 0; i < n; i++) to_packed_free(TB_MOVE(w->open_block[i]), w->mem);
  w->open_block[0] = sum;
  return TB_OK;
}

/* Moves the open slot to the closed ones. */
static void shelve(struct to_windows *w) {
  assert(w->slots < TO_SLOTS_MAX);
  to__view_drop(w);
  to__stretch_join(&w->closed_stretch, &w->open.stretch);
  w->open.block = TB_MOVE(w->open_block[0]);
  w->slot[w->slots++] = w->open;
  w->open = (struct to_slot){ .begin = w->open.begin };
}

static tb_rc close_slot(struct to_windows *w, to_ns now) {
  TB_TRY(take_tally(w));
  TB_TRY(join_open_blocks(w));
  TB_TRY(drop_old(w, now));
  for (unsigned i = 0; i + 1 < TO_WINDOW_ALL; i++) TB_TRY(thin_out(w, (enum to_window)i, now));
  shelve(w);
  return TB_OK;
}

/* Joins slots before the mark that have one begin. */
static tb_rc join_twins(struct to_windows *w) {
  for (size_t i = 0; i < w->slots; i++) {
    size_t n = 1;
    while (i + n < w->slots && w->slot[i + n].begin == w->slot[i].begin) n++;
    if (n > 1) TB_TRY(join_slots(w, i, n, windows[0].slot_ns));
  }
  return TB_OK;
}

/* Cuts the open slot in two. */
tb_rc to_windows_mark(struct to_windows *w) {
  if (w->open.begin == w->open_end) return TB_OK; /* no event yet */
  TB_TRY(to_windows_settle(w));
  TB_TRY(join_open_blocks(w));
  if (w->slots + MARK_SLOTS > TO_SLOTS_MAX) return TB_BUDGET; /* twins could not be joined */
  shelve(w);
  for (size_t i = 0; i < w->slots; i++) w->slot[i].before_mark = true;
  to_packed_free(w->mark.block, w->mem);
  w->mark = (struct to_mark){ .from = w->last + 1 };
  return join_twins(w);
}

static void open_slot(struct to_windows *w, to_ns time) {
  to_ns length = windows[0].slot_ns;

  w->open.begin = round_down(time, length);
  w->open_end = w->open.begin > INT64_MAX - length ? INT64_MAX : w->open.begin + length;
}

tb_rc to_windows_move(struct to_windows *w, to_ns time) {
  tb_rc failed = w->failed;

  w->failed = TB_OK;
  TB_TRY(failed);
  if (time < TIME_MIN) time = TIME_MIN; /* forged: the begin of a window must not overflow */
  if (w->open.begin == w->open_end) {   /* the first event */
    w->first = w->windows_first = w->mark.from = time;
    open_slot(w, time);
  } else if (time >= w->open_end) {
    TB_TRY(close_slot(w, time));
    open_slot(w, time);
  } else if (time < w->open.begin) {
    TB_TRY(close_slot(w, w->open_end));
    TB_TRY(close_slots(w, 0, w->slots));
    TB_TRY(drop_slots(w, w->slots));
    w->windows_first = time;
    if (time < w->mark.from) w->mark.from = time;
    if (time < w->first) w->first = time;
    open_slot(w, time);
  }
  return TB_OK;
}

void to_windows_note(struct to_windows *w, uint64_t n, uint64_t gen, to_ns last) {
  to__stretch_join(&w->open.stretch,
                   &(struct to_stretch){ .events = n, .first_gen = gen, .last_gen = gen });
  w->last = last;
  to__view_drop(w);
}

/* ---- retired series ---- */

bool to_windows_show(const struct to_windows *w, to_ns last) {
  to_ns oldest = w->slots > 0 ? w->slot[0].begin : w->open.begin;

  /* last > w->last: last was before the clock went back. */
  return last >= oldest && last <= w->last;
}

tb_rc to_windows_retire(struct to_windows *w, const uint32_t *series, size_t n, uint32_t into) {
  const struct to_packed_form form = form_of(w, WORDS_CLOSED_MAX);
  size_t bytes = (w->series_n + 63) / 64 * sizeof(uint64_t);
  struct to_packed *closed = NULL, *marked = NULL;
  uint64_t *set;
  tb_rc rc = TB_OK;

  if (n == 0 || (w->closed == NULL && w->mark.block == NULL)) return TB_OK;
  to__view_drop(w);
  TB_TRY(to_tally_reserve(w->tally, w->series_n));
  TB_TRY(tb_mem_alloc(w->mem, bytes, &set));
  for (size_t i = 0; i < n; i++) set[series[i] / 64] |= UINT64_C(1) << series[i] % 64;
  if (w->closed != NULL) rc = to_packed_move(w->tally, &form, w->closed, set, into, &closed);
  if (w->mark.block != NULL && rc == TB_OK)
    rc = to_packed_move(w->tally, &form, w->mark.block, set, into, &marked);
  tb_mem_free(w->mem, set, bytes);
  if (rc != TB_OK) {
    to_packed_free(closed, w->mem);
    return rc;
  }
  to_packed_free(w->closed, w->mem);
  to_packed_free(w->mark.block, w->mem);
  w->closed = closed;
  w->mark.block = marked;
  return TB_OK;
}
