/* SPDX-License-Identifier: Apache-2.0 */
#include "online/measure/totals.h"

#include <string.h>

static void free_note(struct to_totals_note *note, struct tb_mem *mem) {
  tb_mem_free(mem, note->total, note->n * sizeof(*note->total));
}

void to_totals_fini(struct to_totals *t, struct tb_mem *mem) {
  for (size_t i = 0; i < t->notes; i++) free_note(&t->note[i], mem);
  free_note(&t->mark, mem);
  tb_mem_free(mem, t->now, t->n * sizeof(*t->now));
}

tb_rc to_totals_reserve(struct to_totals *t, struct tb_mem *mem, size_t n) {
  void *block = t->now;

  if (n <= t->n) return TB_OK;
  TB_TRY(tb_mem_resize(mem, &block, t->n * sizeof(*t->now), n * sizeof(*t->now)));
  t->now = block;
  memset(t->now + t->n, 0, (n - t->n) * sizeof(*t->now));
  t->n = n;
  return TB_OK;
}

static bool is_begin(const struct to_windows *w, int64_t at) {
  for (size_t i = 0; i < w->slots; i++)
    if (w->slot[i].begin == at) return true;
  return false;
}

/* Drops notes at times that are no longer the begin of a slot. */
static void drop_old(struct to_totals *t, const struct to_windows *w) {
  size_t kept = 0;

  for (size_t i = 0; i < t->notes; i++) {
    if (t->windows_first == w->windows_first && is_begin(w, t->note[i].at))
      t->note[kept++] = t->note[i];
    else
      free_note(&t->note[i], w->mem);
  }
  t->notes = kept;
}

static tb_rc make_note(const struct to_totals *t, const struct to_windows *w, int64_t at,
                       struct to_totals_note *out) {
  struct to_totals_note note = { .at = at, .n = t->n };

  TB_TRY(tb_mem_alloc(w->mem, t->n * sizeof(*note.total), &note.total));
  memcpy(note.total, t->now, t->n * sizeof(*note.total));
  *out = note;
  return TB_OK;
}

tb_rc to_totals_slot(struct to_totals *t, const struct to_windows *w) {
  drop_old(t, w);
  t->windows_first = w->windows_first;
  if (t->n == 0) return TB_OK;
  TB_TRY(make_note(t, w, w->open.begin, &t->note[t->notes]));
  t->notes++;
  return TB_OK;
}

tb_rc to_totals_mark(struct to_totals *t, const struct to_windows *w) {
  struct to_totals_note mark;

  if (t->n == 0) return TB_OK;
  TB_TRY(make_note(t, w, w->mark.from, &mark));
  free_note(&t->mark, w->mem);
  t->mark = mark;
  return TB_OK;
}

uint64_t to_totals_in(const struct to_totals *t, const struct to_view *view, enum to_window window,
                      size_t figure) {
  uint64_t before = 0;

  if (window == TO_WINDOW_STRETCH)
    return t->now[figure] - (figure < t->mark.n ? t->mark.total[figure] : 0);
  for (size_t i = 0; i < t->notes && window != TO_WINDOW_ALL; i++)
    if (t->note[i].at <= view->from && figure < t->note[i].n) before = t->note[i].total[figure];
  return t->now[figure] - before;
}
