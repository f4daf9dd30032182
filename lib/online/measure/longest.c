/* SPDX-License-Identifier: Apache-2.0 */
#include "online/measure/longest.h"

#include <string.h>

#include "base/grow.h"
#include "online/event/top_rows.h"

enum { OLDER_MAX = (TO_SLOTS_MAX + 2) * TO_LONGEST };

void to_longest_fini(struct to_longest *l, struct tb_mem *mem) {
  tb_mem_free(mem, l->older, l->older_room * sizeof(*l->older));
}

static to_ns length(const struct to_long_span *span) {
  return span->until - span->from;
}

static size_t shortest_of(const struct to_long_span *span, size_t n) {
  size_t at = 0;

  for (size_t i = 1; i < n; i++)
    if (length(&span[i]) < length(&span[at])) at = i;
  return at;
}

to_ns to_longest_note(struct to_longest *l, const struct to_long_span *span) {
  size_t at = l->n_open < TO_LONGEST ? l->n_open++ : shortest_of(l->open, TO_LONGEST);

  l->open[at] = *span;
  return l->n_open < TO_LONGEST ? -1 : length(&l->open[shortest_of(l->open, TO_LONGEST)]);
}

/* Returns the number of the slot in which the span ended, from 1; 0 if only the window "all" contains the span. */
static size_t slot_of(const struct to_windows *w, const struct to_long_span *span) {
  size_t n = w->slots;

  while (n > 0 && w->slot[n - 1].begin > span->until) n--;
  return span->past ? 0 : n;
}

/* Keeps the TO_LONGEST longest of n spans, in their order, and returns how many remain. */
static size_t leave_longest(struct to_long_span *span, size_t n) {
  for (; n > TO_LONGEST; n--) {
    size_t at = shortest_of(span, n);
    memmove(&span[at], &span[at + 1], (n - 1 - at) * sizeof(*span));
  }
  return n;
}

/* A window is a sum of slots, so the longest spans of each slot are enough. The spans are in the order of the slots. */
static void keep_longest_of_slots(struct to_longest *l, const struct to_windows *w) {
  size_t kept = 0, end;

  for (size_t begin = 0; begin < l->n_older; begin = end) {
    size_t slot = slot_of(w, &l->older[begin]);
    end = begin + 1;
    while (end < l->n_older && slot_of(w, &l->older[end]) == slot) end++;
    memmove(&l->older[kept], &l->older[begin], (end - begin) * sizeof(*l->older));
    kept += leave_longest(&l->older[kept], end - begin);
  }
  l->n_older = kept;
}

static uint32_t count_longer(const to_ns *lengths, size_t n, to_ns than) {
  uint32_t longer = 0;

  for (size_t i = 0; i < n; i++) longer += lengths[i] > than;
  return longer;
}

/* Drops spans of older slots for which TO_LONGEST later spans are longer. About TO_LONGEST * log(slots)
 * spans remain; many more only if spans get ever shorter. */
static void drop_older(struct to_longest *l, const to_ns *lengths) {
  size_t kept = 0;

  for (size_t i = 0; i < l->n_older; i++) {
    struct to_long_span *older = &l->older[i];
    older->longer += count_longer(lengths, l->n_open, length(older));
    if (older->longer >= TO_LONGEST) continue;
    if (kept < i) l->older[kept] = *older;
    kept++;
  }
  l->n_older = kept;
}

static tb_rc keep_open(struct to_longest *l, const struct to_windows *w) {
  to_ns lengths[TO_LONGEST];

  for (size_t i = 0; i < l->n_open; i++) lengths[i] = length(&l->open[i]);
  drop_older(l, lengths);
  if (l->n_older + l->n_open > OLDER_MAX) keep_longest_of_slots(l, w);
  for (size_t i = 0; i < l->n_open; i++) {
    TB_TRY(TB_MEM_GROW(w->mem, l->older, l->older_room, l->n_older));
    l->open[i].longer = count_longer(lengths + i + 1, l->n_open - i - 1, lengths[i]);
    l->older[l->n_older++] = l->open[i];
  }
  return TB_OK;
}

tb_rc to_longest_slot(struct to_longest *l, const struct to_windows *w) {
  bool has_fallen = l->first != w->windows_first || l->slot > w->open.begin;
  tb_rc rc = keep_open(l, w);

  for (size_t i = 0; i < l->n_older && has_fallen; i++) l->older[i].past = true;
  l->n_open = 0;
  l->slot = w->open.begin;
  l->first = w->windows_first;
  return rc;
}

static bool longer(const void *spans, uint32_t a, uint32_t b) {
  const struct to_long_span *x = (const struct to_long_span *)spans + a;
  const struct to_long_span *y = (const struct to_long_span *)spans + b;

  return length(x) != length(y) ? length(x) > length(y) : a < b;
}

tb_rc to_longest_in(const struct to_longest *l, const struct to_view *view, enum to_window window,
                    struct tb_arena *arena, const struct to_long_span **out, size_t *out_n) {
  struct to_long_span *span, *sorted;
  uint32_t *rank, n = 0;

  TB_TRY(tb_arena_alloc(arena, (l->n_older + TO_LONGEST) * sizeof(*span), &span));
  TB_TRY(tb_arena_alloc(arena, (l->n_older + TO_LONGEST) * sizeof(*rank), &rank));
  TB_TRY(tb_arena_alloc(arena, TO_LONGEST * sizeof(*sorted), &sorted));
  for (size_t i = 0; i < l->n_older + l->n_open; i++) {
    span[n] = i < l->n_older ? l->older[i] : l->open[i - l->n_older];
    rank[n] = n;
    n += window == TO_WINDOW_ALL || (!span[n].past && span[n].until >= view->from);
  }
  to_top_rows(rank, n, TO_LONGEST, longer, span);
  *out_n = n < TO_LONGEST ? n : TO_LONGEST;
  for (size_t i = 0; i < *out_n; i++) sorted[i] = span[rank[i]];
  *out = sorted;
  return TB_OK;
}
