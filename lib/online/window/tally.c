/* SPDX-License-Identifier: Apache-2.0 */
#include "online/window/tally.h"

#include <string.h>

#include "base/seed.h"
#include "online/window/packed.h"

enum { PLACES_MIN = 256, PLACES_MAX = 32 << 10, SERIES_MIN = 256, BYTES_MIN = 4096 };
_Static_assert(TO_TALLY_WORDS_MAX == PLACES_MAX / 4 * 3, "three quarters are used");

void to_tally_init(struct to_tally *t, struct tb_mem *mem) {
  *t = (struct to_tally){ .mem = mem };
}

static void cells_fini(struct to_cells *c, struct tb_mem *mem, size_t series) {
  tb_mem_free(mem, c->cell, series * sizeof(*c->cell));
  tb_mem_free(mem, c->used, series * sizeof(*c->used));
  *c = (struct to_cells){ 0 };
}

static void view_fini(struct to_tally *t) {
  struct to_viewed *v = &t->viewed;

  cells_fini(&v->sums, t->mem, v->series);
  to_packed_free(v->block, t->mem);
  tb_mem_free(t->mem, v->row, v->rows_room * sizeof(*v->row));
  tb_mem_free(t->mem, v->row_of, v->series * sizeof(*v->row_of));
  tb_mem_free(t->mem, v->met, v->series * sizeof(*v->met));
  tb_mem_free(t->mem, v->chosen, v->series * sizeof(*v->chosen));
  *v = (struct to_viewed){ 0 };
}

void to_tally_fini(struct to_tally *t) {
  if (t->mem == NULL) return;
  view_fini(t);
  tb_mem_free(t->mem, t->word, t->places * sizeof(*t->word));
  cells_fini(&t->open, t->mem, t->series);
  cells_fini(&t->sums, t->mem, t->series);
  tb_mem_free(t->mem, t->list, t->list_room * sizeof(*t->list));
  tb_mem_free(t->mem, t->list_end, t->series * sizeof(*t->list_end));
  tb_mem_free(t->mem, t->bytes, t->bytes_room);
  *t = (struct to_tally){ 0 };
}

/* Allocates room for n series and copies those of from. */
static tb_rc copy_cells(struct tb_mem *mem, const struct to_cells *from, size_t series, size_t n,
                        struct to_cells *out) {
  *out = (struct to_cells){ .used_n = from->used_n };
  TB_TRY(tb_mem_alloc(mem, n * sizeof(*out->cell), &out->cell));
  tb_rc rc = tb_mem_alloc(mem, n * sizeof(*out->used), &out->used);
  if (rc != TB_OK) {
    tb_mem_free(mem, out->cell, n * sizeof(*out->cell));
    out->cell = NULL;
    return rc;
  }
  if (series > 0) memcpy(out->cell, from->cell, series * sizeof(*out->cell));
  if (from->used_n > 0) memcpy(out->used, from->used, from->used_n * sizeof(*out->used));
  return TB_OK;
}

tb_rc to_tally_reserve(struct to_tally *t, size_t n) {
  size_t room = t->series < SERIES_MIN ? SERIES_MIN : t->series;
  struct to_cells open = { 0 }, sums = { 0 };
  uint32_t *list_end = NULL;

  if (n <= t->series) return TB_OK;
  while (room < n) room *= 2;
  tb_rc rc = copy_cells(t->mem, &t->open, t->series, room, &open);
  if (rc == TB_OK) rc = copy_cells(t->mem, &t->sums, t->series, room, &sums);
  if (rc == TB_OK) rc = tb_mem_alloc(t->mem, room * sizeof(*list_end), &list_end);
  if (rc != TB_OK) {
    cells_fini(&open, t->mem, open.cell != NULL ? room : 0);
    cells_fini(&sums, t->mem, sums.cell != NULL ? room : 0);
    return rc;
  }
  cells_fini(&t->open, t->mem, t->series);
  cells_fini(&t->sums, t->mem, t->series);
  tb_mem_free(t->mem, t->list_end, t->series * sizeof(*t->list_end));
  t->open = open;
  t->sums = sums;
  t->list_end = list_end;
  t->series = room;
  return TB_OK;
}

static tb_rc make_view(struct to_tally *t, size_t n) {
  struct to_viewed *v = &t->viewed;

  v->series = n;
  TB_TRY(tb_mem_alloc(t->mem, n * sizeof(*v->sums.cell), &v->sums.cell));
  TB_TRY(tb_mem_alloc(t->mem, n * sizeof(*v->sums.used), &v->sums.used));
  TB_TRY(tb_mem_alloc(t->mem, n * sizeof(*v->row_of), &v->row_of));
  TB_TRY(tb_mem_alloc(t->mem, n * sizeof(*v->met), &v->met));
  return tb_mem_alloc(t->mem, n * sizeof(*v->chosen), &v->chosen);
}

tb_rc to_tally_view(struct to_tally *t, size_t n) {
  size_t room = t->viewed.series < SERIES_MIN ? SERIES_MIN : t->viewed.series;

  if (n <= t->viewed.series) return TB_OK;
  while (room < n) room *= 2;
  view_fini(t);
  tb_rc rc = make_view(t, room);
  if (rc != TB_OK) view_fini(t);
  return rc;
}

static void put_word(uint64_t *table, size_t places, size_t i, uint64_t word) {
  while (table[i] != 0) i = (i + 1) & (places - 1);
  table[i] = word;
}

tb_rc to_tally_grow(struct to_tally *t) {
  size_t places = t->places > 0 ? t->places * 2 : PLACES_MIN;
  uint64_t *word;

  if (places > PLACES_MAX) return TB_AGAIN;
  TB_TRY(tb_mem_alloc(t->mem, places * sizeof(*word), &word));
  if (t->multiplier == 0) t->multiplier = tb_seed() | 1;
  t->shift = 64 - (unsigned)__builtin_ctzll(places);
  for (size_t i = 0; i < t->places; i++)
    if (t->word[i] != 0)
      put_word(word, places, (size_t)(((t->word[i] >> 32) * t->multiplier) >> t->shift),
               t->word[i]);
  tb_mem_free(t->mem, t->word, t->places * sizeof(*t->word));
  t->word = word;
  t->places = places;
  return TB_OK;
}

tb_rc to_tally_bytes(struct to_tally *t, size_t n) {
  size_t room = t->bytes_room < BYTES_MIN ? BYTES_MIN : t->bytes_room;
  void *block = t->bytes;

  if (n <= t->bytes_room) return TB_OK;
  while (room < n) room *= 2;
  TB_TRY(tb_mem_resize(t->mem, &block, t->bytes_room, room));
  t->bytes = block;
  t->bytes_room = room;
  return TB_OK;
}

void to_tally_clear(struct to_tally *t) {
  if (t->words > 0) memset(t->word, 0, t->places * sizeof(*t->word));
  t->words = 0;
  to_cells_clear(&t->open);
}

void to_count_join(struct to_count *sum, const struct to_count *more) {
  if (sum->count == 0) {
    *sum = *more;
    return;
  }
  sum->count += more->count;
  sum->total_ns += more->total_ns;
  sum->lower_bounds += more->lower_bounds;
  if (more->since < sum->since) sum->since = more->since;
  if (more->min_ns < sum->min_ns) sum->min_ns = more->min_ns;
  if (more->max_ns > sum->max_ns) {
    sum->max_ns = more->max_ns;
    sum->tag = more->tag;
  }
}

void to_cells_join(struct to_cells *c, uint32_t series, const struct to_count *more) {
  if (c->cell[series].count == 0) c->used[c->used_n++] = series;
  to_count_join(&c->cell[series], more);
}

void to_cells_clear(struct to_cells *c) {
  for (size_t i = 0; i < c->used_n; i++) c->cell[c->used[i]].count = 0;
  c->used_n = 0;
}
