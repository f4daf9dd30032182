/* SPDX-License-Identifier: Apache-2.0 */
#include "online/window/packed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire/varint.h"

enum { FIELDS = 8, ROW_BUCKETS_MIN = TO_ROW_BUCKETS_MAX / 4 };
enum { ROW_BYTES_MAX = 4 * TW_VARINT_BYTES_MAX, WORD_BYTES_MAX = 2 * TW_VARINT_BYTES_MAX };

void to_packed_free(struct to_packed *block, struct tb_mem *mem) {
  if (block != NULL) tb_mem_free(mem, block, block->bytes);
}

static void write_varint(struct to_tally *t, uint64_t value) {
  t->bytes_n += tw_varint_write(t->bytes + t->bytes_n, value);
}

/* Reads our own encoding, which has no errors. */
static inline uint64_t read_varint(const unsigned char **at) {
  uint64_t value = *(*at)++;

  if (TB_LIKELY(value < 0x80)) return value;
  value &= 0x7f;
  for (unsigned shift = 7;; shift += 7) {
    unsigned char byte = *(*at)++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

/* ---- sums ---- */

/* Spans of one stretch begin at about the same time, so the difference is a small number of either sign. */
static uint64_t fold_sign(uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unfold_sign(uint64_t folded) {
  return folded >> 1 ^ (0 - (folded & 1));
}

static tb_rc put_sums(struct to_tally *t, const struct to_cells *c, struct to_packed *block) {
  block->sums = (uint32_t)c->used_n;
  block->base = c->used_n > 0 ? c->cell[c->used[0]].since : 0;
  TB_TRY(to_tally_bytes(t, c->used_n * FIELDS * TW_VARINT_BYTES_MAX));
  for (size_t i = 0; i < c->used_n; i++) {
    const struct to_count *cell = &c->cell[c->used[i]];
    write_varint(t, c->used[i]);
    write_varint(t, cell->count);
    write_varint(t, cell->total_ns);
    write_varint(t, cell->max_ns);
    write_varint(t, cell->min_ns);
    write_varint(t, fold_sign((uint64_t)cell->since - (uint64_t)block->base));
    write_varint(t, cell->tag);
    write_varint(t, cell->lower_bounds);
  }
  block->sums_len = t->bytes_n;
  return TB_OK;
}

static bool is_in(const uint64_t *set, uint32_t series) {
  return set != NULL && (set[series / 64] >> series % 64 & 1) != 0;
}

/* set NULL: no series is moved. */
static void add_sums(const struct to_packed *block, const uint64_t *set, uint32_t into,
                     struct to_cells *c) {
  const unsigned char *at = (const unsigned char *)(block + 1);

  for (uint32_t i = 0; i < block->sums; i++) {
    struct to_count cell;
    uint32_t series = (uint32_t)read_varint(&at);
    cell.count = read_varint(&at);
    cell.total_ns = read_varint(&at);
    cell.max_ns = read_varint(&at);
    cell.min_ns = read_varint(&at);
    cell.since = (to_ns)((uint64_t)block->base + unfold_sign(read_varint(&at)));
    cell.tag = (uint32_t)read_varint(&at);
    cell.lower_bounds = (uint32_t)read_varint(&at);
    to_cells_join(c, is_in(set, series) ? into : series, &cell);
  }
}

void to_packed_sums(const struct to_packed *block, struct to_cells *c) {
  add_sums(block, NULL, 0, c);
}

/* ---- buckets of one series ---- */

/* Returns the lowest used place above 0; 0: none. */
static uint32_t first_place(const struct to_buckets *b) {
  unsigned half = b->words[0] == 0;

  if (b->words[half] == 0) return 0;
  unsigned word = half * 64 + (unsigned)__builtin_ctzll(b->words[half]);
  return word * 64 + (unsigned)__builtin_ctzll(b->used[word]);
}

static uint32_t last_place(const struct to_buckets *b) {
  unsigned half = b->words[1] != 0;

  if (b->words[half] == 0) return 0;
  unsigned word = half * 64 + 63 - (unsigned)__builtin_clzll(b->words[half]);
  return word * 64 + 63 - (unsigned)__builtin_clzll(b->used[word]);
}

/* Returns how many scales lower the used places are at most max buckets. */
static int steps_down(const struct to_buckets *b, int scale, size_t max) {
  uint32_t first = first_place(b), last = last_place(b);
  int steps = 0;

  while (scale - steps > TO_SCALE_MIN && (last >> steps) - (first >> steps) >= max) steps++;
  return steps;
}

/* Lists the used places above 0 in order and takes their bits away; returns how many. */
static size_t list_places(struct to_buckets *b) {
  size_t n = 0;

  for (unsigned half = 0; half < 2; half++)
    for (; b->words[half] != 0; b->words[half] &= b->words[half] - 1) {
      unsigned word = half * 64 + (unsigned)__builtin_ctzll(b->words[half]);
      for (uint64_t used = b->used[word]; used != 0; used &= used - 1)
        b->listed[n++] = (uint16_t)(word * 64 + (unsigned)__builtin_ctzll(used));
      b->used[word] = 0;
    }
  return n;
}

static uint64_t take_count(struct to_buckets *b, uint32_t place) {
  uint64_t n = b->count[place];

  b->count[place] = 0;
  return n;
}

struct to_histogram to_buckets_take(struct to_tally *t, int scale, size_t max, uint64_t *bucket) {
  struct to_buckets *b = &t->buckets;
  int steps = steps_down(b, scale, max);
  uint32_t first = first_place(b) >> steps;
  struct to_histogram h = { .scale = scale - steps, .bucket = bucket, .zero = take_count(b, 0) };

  if (first == 0) return h;
  h.first = to_place_index(first, h.scale);
  h.n = (last_place(b) >> steps) - first + 1;
  memset(bucket, 0, h.n * sizeof(*bucket));
  size_t n = list_places(b);
  for (size_t i = 0; i < n; i++)
    bucket[(b->listed[i] >> steps) - first] += take_count(b, b->listed[i]);
  return h;
}

/* ---- rows ---- */

/* Writes a block's rows. */
struct writer {
  struct to_tally *t;
  const struct to_packed_form *form;
  size_t buckets;       /* at most in a row */
  uint64_t lengths_min; /* rows with fewer have no words */
  uint32_t last;        /* series of the last row + 1 */
  size_t words;         /* in rows */
};

static bool is_whole(const struct to_packed_form *form, uint32_t series) {
  return form->parent[series] == TO_NO_SERIES;
}

static void write_head(struct writer *w, uint32_t series, uint64_t lengths, uint32_t words,
                       int scale, size_t bytes) {
  write_varint(w->t, series - w->last);
  write_varint(w->t, lengths);
  write_varint(w->t, (uint64_t)words << 3 | (unsigned)scale);
  write_varint(w->t, bytes);
  w->last = series + 1;
  if (!is_whole(w->form, series)) w->words += words;
}

static size_t buckets_max(const struct writer *w, uint32_t series) {
  return is_whole(w->form, series) ? TO_BUCKETS_MAX : w->buckets;
}

static inline unsigned char *put_word(unsigned char *at, uint32_t step, uint64_t n) {
  at += tw_varint_write(at, (uint64_t)step << 1 | (n != 1));
  return n == 1 ? at : at + tw_varint_write(at, n);
}

/* Writes the counted buckets as words, and clears them. */
static unsigned char *put_buckets(struct to_buckets *b, int steps, unsigned char *at,
                                  uint32_t *out_words) {
  size_t n = list_places(b);
  uint64_t count = take_count(b, 0); /* at place, whose word is not yet written */
  uint32_t before = 0, place = 0;    /* before: of the last word */

  *out_words = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t next = (uint32_t)b->listed[i] >> steps;
    if (next != place && count > 0) {
      at = put_word(at, place - before, count);
      before = place;
      count = 0;
      ++*out_words;
    }
    place = next;
    count += take_count(b, b->listed[i]);
  }
  ++*out_words;
  return put_word(at, place - before, count);
}

/* Writes a row of the counted buckets, at least one. The head says how many words there are, so they are written first. */
static tb_rc put_row(struct writer *w, uint32_t series, uint64_t lengths, int scale) {
  struct to_tally *t = w->t;
  int steps = steps_down(&t->buckets, scale, buckets_max(w, series));
  uint32_t n;

  TB_TRY(to_tally_bytes(t, ROW_BYTES_MAX + (TO_BUCKETS_MAX + 1) * WORD_BYTES_MAX));
  unsigned char *words = t->bytes + t->bytes_n + ROW_BYTES_MAX;
  size_t bytes = (size_t)(put_buckets(&t->buckets, steps, words, &n) - words);
  write_head(w, series, lengths, n, scale - steps, bytes);
  memmove(t->bytes + t->bytes_n, words, bytes);
  t->bytes_n += bytes;
  return TB_OK;
}

/* Writes a row as it is in another block. */
static tb_rc copy_row(struct writer *w, const struct to_row *row) {
  size_t bytes = (size_t)(row->end - row->at);

  TB_TRY(to_tally_bytes(w->t, ROW_BYTES_MAX + bytes));
  write_head(w, row->series, row->lengths, row->words, row->scale, bytes);
  memcpy(w->t->bytes + w->t->bytes_n, row->at, bytes);
  w->t->bytes_n += bytes;
  return TB_OK;
}

static tb_rc put_lost(struct writer *w, uint32_t series, uint64_t lengths) {
  TB_TRY(to_tally_bytes(w->t, ROW_BYTES_MAX));
  write_head(w, series, lengths, 0, TO_SCALE_MAX, 0);
  return TB_OK;
}

static bool keeps_words(const struct writer *w, uint32_t series, uint64_t lengths) {
  return lengths >= w->lengths_min || is_whole(w->form, series);
}

void to_row_first(const struct to_packed *block, struct to_row *row) {
  const unsigned char *rows =
      block == NULL ? NULL : (const unsigned char *)(block + 1) + block->sums_len;

  *row = (struct to_row){ .series = TO_NO_SERIES, .end = rows };
}

bool to_row_next(const struct to_packed *block, struct to_row *row) {
  const unsigned char *at = row->end;

  if (block == NULL || at == (const unsigned char *)(block + 1) + block->sums_len + block->rows_len)
    return false;
  row->series += 1 + (uint32_t)read_varint(&at);
  row->lengths = read_varint(&at);
  uint64_t words = read_varint(&at);
  size_t bytes = read_varint(&at);
  row->words = (uint32_t)(words >> 3);
  row->scale = (int)(words & 7);
  row->at = at;
  row->end = at + bytes;
  return true;
}

void to_row_count(const struct to_row *row, int scale, struct to_tally *t) {
  const unsigned char *at = row->at;
  int steps = row->scale - scale;
  uint32_t place = 0;

  while (at < row->end) {
    uint64_t word = read_varint(&at);
    place += (uint32_t)(word >> 1);
    to_buckets_add(&t->buckets, place >> steps, (word & 1) != 0 ? read_varint(&at) : 1);
  }
}

/* ---- making a block ---- */

/* Something that has rows. */
struct rows {
  tb_rc (*put)(const struct rows *rows, struct writer *w);
  const struct to_packed *const *block;
  size_t n;
  const uint64_t *set; /* series that become parts of `into` */
  uint32_t into;
};

/* Writes the rows with fewer buckets until they are few enough. */
static tb_rc put_rows(struct to_tally *t, const struct to_packed_form *form,
                      const struct rows *rows, struct to_packed *block) {
  struct writer w = { .t = t, .form = form, .buckets = TO_ROW_BUCKETS_MAX };
  tb_rc rc;

  for (;;) {
    rc = rows->put(rows, &w);
    if (rc != TB_OK) t->buckets = (struct to_buckets){ 0 };
    if (rc != TB_OK || w.words <= form->words_max) break;
    if (w.buckets > ROW_BUCKETS_MIN)
      w.buckets /= 2;
    else
      w.lengths_min = 2 * w.lengths_min + 1;
    t->bytes_n = block->sums_len;
    w.last = 0;
    w.words = 0;
  }
  block->words = (uint32_t)w.words;
  block->rows_len = t->bytes_n - block->sums_len;
  return rc;
}

/* Packs sums and rows. */
static tb_rc make(struct to_tally *t, const struct to_packed_form *form,
                  const struct to_cells *sums, const struct rows *rows, struct to_packed **out) {
  struct to_packed block = { 0 };
  void *made = NULL;

  t->bytes_n = 0;
  tb_rc rc = put_sums(t, sums, &block);
  if (rc == TB_OK) rc = put_rows(t, form, rows, &block);
  block.bytes = sizeof(block) + t->bytes_n;
  if (rc == TB_OK) rc = tb_mem_resize(form->mem, &made, 0, block.bytes);
  if (rc != TB_OK) return rc;
  memcpy(made, &block, sizeof(block));
  if (t->bytes_n > 0) memcpy((struct to_packed *)made + 1, t->bytes, t->bytes_n);
  *out = made;
  return TB_OK;
}

/* ---- from the tally ---- */

static uint32_t word_series(uint64_t word) {
  return (uint32_t)(word >> (32 + TO_PLACE_BITS));
}

/* Lists the words by series, also of what they are parts of. */
static void list_words(struct to_tally *t, const struct to_packed_form *form) {
  const uint64_t all_but_series = (UINT64_C(1) << (32 + TO_PLACE_BITS)) - 1;
  uint32_t end = 0;

  for (size_t i = 0; i < t->places; i++)
    for (uint32_t s = t->word[i] != 0 ? word_series(t->word[i]) : TO_NO_SERIES; s != TO_NO_SERIES;
         s = form->parent[s])
      t->list_end[s]++;
  for (size_t i = 0; i < t->sums.used_n; i++) {
    uint32_t words = t->list_end[t->sums.used[i]];
    t->list_end[t->sums.used[i]] = end;
    end += words;
  }
  for (size_t i = 0; i < t->places; i++)
    for (uint32_t s = t->word[i] != 0 ? word_series(t->word[i]) : TO_NO_SERIES; s != TO_NO_SERIES;
         s = form->parent[s])
      t->list[t->list_end[s]++] = t->word[i] & all_but_series;
}

static tb_rc put_words(const struct rows *rows, struct writer *w) {
  const struct to_tally *t = w->t;
  size_t i = 0;

  (void)rows;
  for (size_t u = 0; u < t->sums.used_n; u++) {
    uint32_t series = t->sums.used[u];
    size_t first = i, end = t->list_end[series];
    uint64_t lengths = 0;
    for (; i < end; i++) lengths += (uint32_t)t->list[i];
    if (lengths == 0) continue; /* only summed */
    if (!keeps_words(w, series, lengths)) {
      TB_TRY(put_lost(w, series, lengths));
      continue;
    }
    for (i = first; i < end; i++)
      to_buckets_add(&w->t->buckets, (uint32_t)(t->list[i] >> 32), (uint32_t)t->list[i]);
    TB_TRY(put_row(w, series, lengths, TO_SCALE_MAX));
  }
  return TB_OK;
}

static int compare_series(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

static tb_rc grow_list(struct to_tally *t, size_t n) {
  size_t room = t->list_room > 0 ? t->list_room : 1024;
  void *list = t->list;

  if (n <= t->list_room) return TB_OK;
  while (room < n) room *= 2;
  TB_TRY(tb_mem_resize(t->mem, &list, t->list_room * sizeof(*t->list), room * sizeof(*t->list)));
  t->list = list;
  t->list_room = room;
  return TB_OK;
}

tb_rc to_packed_of_tally(struct to_tally *t, const struct to_packed_form *form,
                         struct to_packed **out) {
  const struct rows rows = { .put = put_words };

  TB_TRY(grow_list(t, TO_LEVELS_MAX * t->words));
  for (size_t i = 0; i < t->open.used_n; i++)
    for (uint32_t s = t->open.used[i]; s != TO_NO_SERIES; s = form->parent[s])
      to_cells_join(&t->sums, s, &t->open.cell[t->open.used[i]]);
  qsort(t->sums.used, t->sums.used_n, sizeof(*t->sums.used), compare_series);
  list_words(t, form);
  tb_rc rc = make(t, form, &t->sums, &rows, out);
  for (size_t i = 0; i < t->sums.used_n; i++) t->list_end[t->sums.used[i]] = 0;
  to_cells_clear(&t->sums);
  return rc;
}

/* ---- from blocks ---- */

/* Adds rows up into one of the same series. */
static tb_rc put_sum(struct writer *w, uint32_t series, const struct to_row *const *row, size_t n) {
  int scale = TO_SCALE_MAX;
  uint64_t lengths = 0;
  bool lost = false;

  for (size_t i = 0; i < n; i++) {
    lengths += row[i]->lengths;
    lost = lost || row[i]->words == 0;
    if (row[i]->scale < scale) scale = row[i]->scale;
  }
  if (lost || !keeps_words(w, series, lengths)) return put_lost(w, series, lengths);
  if (n == 1 && w->buckets == TO_ROW_BUCKETS_MAX) return copy_row(w, row[0]);
  for (size_t i = 0; i < n; i++) to_row_count(row[i], scale, w->t);
  return put_row(w, series, lengths, scale);
}

/* Rows of several blocks, series by series. */
static tb_rc put_blocks(const struct rows *rows, struct writer *w) {
  struct to_row row[TO_PACKED_MAX];
  const struct to_row *same[TO_PACKED_MAX];
  const struct to_packed *block[TO_PACKED_MAX];
  size_t left = 0;

  for (size_t i = 0; i < rows->n; i++) {
    to_row_first(rows->block[i], &row[left]);
    block[left] = rows->block[i];
    left += to_row_next(block[left], &row[left]);
  }
  while (left > 0) {
    uint32_t series = TO_NO_SERIES;
    size_t n = 0;
    for (size_t i = 0; i < left; i++) {
      if (row[i].series > series) continue;
      if (row[i].series < series) n = 0;
      series = row[i].series;
      same[n++] = &row[i];
    }
    TB_TRY(put_sum(w, series, same, n));
    for (size_t i = left; i-- > 0;) {
      if (row[i].series != series || to_row_next(block[i], &row[i])) continue;
      row[i] = row[--left];
      block[i] = block[left];
    }
  }
  return TB_OK;
}

tb_rc to_packed_add(struct to_tally *t, const struct to_packed_form *form,
                    const struct to_packed *const *block, size_t n, struct to_packed **out) {
  const struct rows rows = { .put = put_blocks, .block = block, .n = n };

  assert(n <= TO_PACKED_MAX);
  for (size_t i = 0; i < n; i++)
    if (block[i] != NULL) to_packed_sums(block[i], &t->sums);
  tb_rc rc = make(t, form, &t->sums, &rows, out);
  to_cells_clear(&t->sums);
  return rc;
}

/* Adds the rows of `into` and of the series that become parts of it. */
static tb_rc put_into(const struct rows *rows, struct writer *w) {
  int scale = TO_SCALE_MAX;
  uint64_t lengths = 0;
  bool lost = false, any = false;
  struct to_row row;

  for (to_row_first(rows->block[0], &row); to_row_next(rows->block[0], &row);) {
    if (row.series != rows->into && !is_in(rows->set, row.series)) continue;
    any = true;
    lengths += row.lengths;
    lost = lost || row.words == 0;
    if (row.scale < scale) scale = row.scale;
  }
  if (!any) return TB_OK;
  if (lost || !keeps_words(w, rows->into, lengths)) return put_lost(w, rows->into, lengths);
  for (to_row_first(rows->block[0], &row); to_row_next(rows->block[0], &row);)
    if (row.series == rows->into || is_in(rows->set, row.series)) to_row_count(&row, scale, w->t);
  return put_row(w, rows->into, lengths, scale);
}

static tb_rc put_moved(const struct rows *rows, struct writer *w) {
  const struct to_row *one;
  struct to_row row;
  bool done = false;

  for (to_row_first(rows->block[0], &row); to_row_next(rows->block[0], &row);) {
    if (!done && row.series >= rows->into) {
      TB_TRY(put_into(rows, w));
      done = true;
    }
    if (row.series == rows->into || is_in(rows->set, row.series)) continue;
    one = &row;
    TB_TRY(put_sum(w, row.series, &one, 1));
  }
  return done ? TB_OK : put_into(rows, w);
}

tb_rc to_packed_move(struct to_tally *t, const struct to_packed_form *form,
                     const struct to_packed *block, const uint64_t *set, uint32_t into,
                     struct to_packed **out) {
  const struct rows rows = { .put = put_moved, .block = &block, .n = 1, .set = set, .into = into };

  add_sums(block, set, into, &t->sums);
  tb_rc rc = make(t, form, &t->sums, &rows, out);
  to_cells_clear(&t->sums);
  return rc;
}
