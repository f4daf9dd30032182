/* SPDX-License-Identifier: Apache-2.0 */
#include "online/window/packed.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "online/window/bits.h"
#include "wire/varint.h"

enum {
  ROW_BUCKETS_MIN = TO_ROW_BUCKETS_MAX / 4,
  SCALE_BITS = 3,
  /* Bits of step - 1 and of the count in a word. STEP_FAR: the step follows; a count of 0: the count follows. */
  STEP_BITS = 2,
  COUNT_BITS = 6,
  STEP_FAR = (1 << STEP_BITS) - 1,
  /* Bytes at most: a row without its words, twice so that words can be moved; a word. */
  ROW_BYTES_MAX = 128,
  WORD_BYTES_MAX = 1 + 2 * TW_VARINT_BYTES_MAX,
};
_Static_assert(TO_SCALE_MAX < 1 << SCALE_BITS, "it fits");

/* Bits of a row. */
enum {
  SAME_SINCE = 1,
  HAS_TAG = 2,
  HAS_LOWER = 4,
  HAS_LENGTHS = 8,
  ALL_LENGTHS = 16,
  ROW_BITS = 5
};

void to_packed_free(struct to_packed *block, struct tb_mem *mem) {
  if (block != NULL) tb_mem_free(mem, block, block->bytes);
}

/* Begins of neighbouring series are near each other, so the difference is a small number of either sign. */
static uint64_t fold_sign(uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}

static uint64_t unfold_sign(uint64_t folded) {
  return folded >> 1 ^ (0 - (folded & 1));
}

static bool is_in(const uint64_t *set, uint32_t series) {
  return (set[series / 64] >> series % 64 & 1) != 0;
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

/* ---- reading rows ---- */

void to_row_first(const struct to_packed *block, struct to_row *row) {
  *row = (struct to_row){ .series = TO_NO_SERIES, .left = block == NULL ? 0 : block->rows };
  if (block != NULL) row->bits = (struct to_bits){ (const unsigned char *)(block + 1), 0 };
}

static void get_sum(struct to_bits *bits, unsigned flags, struct to_count *sum) {
  uint64_t since = (uint64_t)sum->since;

  if ((flags & SAME_SINCE) == 0) since += unfold_sign(to_bits_number(bits));
  sum->since = (to_ns)since;
  sum->max_ns = to_bits_number(bits);
  sum->min_ns = sum->count > 1 ? to_bits_number(bits) : sum->max_ns;
  sum->total_ns = sum->count > 2 ? to_bits_number(bits) : sum->max_ns;
  if (sum->count == 2) sum->total_ns += sum->min_ns;
  sum->tag = (flags & HAS_TAG) != 0 ? (uint32_t)to_bits_number(bits) : 0;
  sum->lower_bounds = (flags & HAS_LOWER) != 0 ? (uint32_t)to_bits_number(bits) : 0;
}

bool to_row_next(struct to_row *row) {
  struct to_bits bits = row->bits;

  if (row->left == 0) return false;
  row->left--;
  bits.at += 8 * row->words_bytes;
  row->series += (uint32_t)to_bits_gamma(&bits);
  row->sum.count = to_bits_gamma(&bits);
  unsigned flags = (unsigned)to_bits_get(&bits, ROW_BITS);
  get_sum(&bits, flags, &row->sum);
  row->lengths = row->words = 0;
  row->scale = TO_SCALE_MAX;
  row->words_bytes = 0;
  if ((flags & HAS_LENGTHS) != 0) {
    row->lengths = (flags & ALL_LENGTHS) != 0 ? row->sum.count : to_bits_gamma(&bits);
    row->words = (uint32_t)to_bits_gamma(&bits) - 1;
  }
  if (row->words > 0) {
    row->scale = (int)to_bits_get(&bits, SCALE_BITS);
    row->words_bytes = to_bits_number(&bits);
    bits.at = (bits.at + 7) / 8 * 8;
    row->word = bits.bytes + bits.at / 8;
  }
  row->bits = bits;
  return true;
}

/* Reads our own encoding, which has no errors. */
static uint64_t read_varint(const unsigned char **at) {
  uint64_t value = 0;

  for (unsigned shift = 0;; shift += 7) {
    unsigned char byte = *(*at)++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

void to_row_count(const struct to_row *row, int scale, struct to_tally *t) {
  const unsigned char *at = row->word, *end = at + row->words_bytes;
  int steps = row->scale - scale;
  uint32_t place = 0;

  while (at < end) {
    unsigned word = *at++;
    uint64_t n = word >> STEP_BITS;
    place += TB_LIKELY((word & STEP_FAR) != STEP_FAR) ? (word & STEP_FAR) + 1
                                                      : (uint32_t)read_varint(&at);
    to_buckets_add(&t->buckets, place >> steps, TB_LIKELY(n != 0) ? n : read_varint(&at));
  }
}

void to_packed_sums(const struct to_packed *block, struct to_cells *c) {
  struct to_row row;

  for (to_row_first(block, &row); to_row_next(&row);) to_cells_join(c, row.series, &row.sum);
}

/* ---- writing rows ---- */

/* Writes a block's rows into bytes of the tally. */
struct writer {
  struct to_tally *t;
  const struct to_packed_form *form;
  size_t buckets;       /* at most in a row */
  uint64_t lengths_min; /* rows with fewer have no words */
  struct to_bits_out out;
  uint32_t last; /* series of the last row */
  to_ns since;   /* its since */
  uint32_t rows;
  size_t words; /* without those of wholes */
};

/* The words of a row. */
struct words {
  uint32_t n;
  int scale;
  const unsigned char *at;
  size_t bytes;
};

static bool is_whole(const struct to_packed_form *form, uint32_t series) {
  return form->parent[series] == TO_NO_SERIES;
}

/* Makes room for n more bytes after a row without words. */
static tb_rc make_room(struct writer *w, size_t n) {
  TB_TRY(to_tally_bytes(w->t, w->out.at / 8 + ROW_BYTES_MAX + n));
  w->out.bytes = w->t->bytes;
  return TB_OK;
}

static void put_sum(struct writer *w, unsigned flags, const struct to_count *sum) {
  if ((flags & SAME_SINCE) == 0)
    to_bits_put_number(&w->out, fold_sign((uint64_t)sum->since - (uint64_t)w->since));
  to_bits_put_number(&w->out, sum->max_ns);
  if (sum->count > 1) to_bits_put_number(&w->out, sum->min_ns);
  if (sum->count > 2) to_bits_put_number(&w->out, sum->total_ns);
  if ((flags & HAS_TAG) != 0) to_bits_put_number(&w->out, sum->tag);
  if ((flags & HAS_LOWER) != 0) to_bits_put_number(&w->out, sum->lower_bounds);
  w->since = sum->since;
}

/* words: may be in the tally's bytes, after room for the row. */
static void put_row(struct writer *w, uint32_t series, const struct to_count *sum, uint64_t lengths,
                    const struct words *words) {
  unsigned flags = (sum->since == w->since ? SAME_SINCE : 0) | (sum->tag != 0 ? HAS_TAG : 0) |
                   (sum->lower_bounds != 0 ? HAS_LOWER : 0) | (lengths > 0 ? HAS_LENGTHS : 0) |
                   (lengths == sum->count ? ALL_LENGTHS : 0);

  to_bits_put_gamma(&w->out, series - w->last);
  to_bits_put_gamma(&w->out, sum->count);
  to_bits_put(&w->out, flags, ROW_BITS);
  put_sum(w, flags, sum);
  w->last = series;
  w->rows++;
  if (lengths == 0) return;
  if (lengths != sum->count) to_bits_put_gamma(&w->out, lengths);
  to_bits_put_gamma(&w->out, words->n + 1);
  if (words->n == 0) return;
  to_bits_put(&w->out, (uint64_t)words->scale, SCALE_BITS);
  to_bits_put_number(&w->out, words->bytes);
  w->out.at = (w->out.at + 7) / 8 * 8;
  memmove(w->out.bytes + w->out.at / 8, words->at, words->bytes);
  w->out.at += 8 * words->bytes;
  if (!is_whole(w->form, series)) w->words += words->n;
}

static inline unsigned char *put_word(unsigned char *at, uint32_t step, uint64_t n) {
  bool is_near = step - 1 < STEP_FAR, is_few = n < 1 << COUNT_BITS;

  *at++ = (unsigned char)((is_near ? step - 1 : STEP_FAR) | (is_few ? n << STEP_BITS : 0));
  if (TB_UNLIKELY(!is_near)) at += tw_varint_write(at, step);
  if (TB_UNLIKELY(!is_few)) at += tw_varint_write(at, n);
  return at;
}

/* Writes the counted buckets as words, at least one, and clears them. */
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

/* Writes a row of the counted buckets. Its words are written first, as it says how many they are. */
static tb_rc put_counted(struct writer *w, uint32_t series, const struct to_count *sum,
                         uint64_t lengths, int scale) {
  size_t max = is_whole(w->form, series) ? TO_BUCKETS_MAX : w->buckets;
  int steps = steps_down(&w->t->buckets, scale, max);
  struct words words = { .scale = scale - steps };

  TB_TRY(make_room(w, (TO_BUCKETS_MAX + 1) * WORD_BYTES_MAX));
  unsigned char *at = w->out.bytes + w->out.at / 8 + ROW_BYTES_MAX;
  words.at = at;
  words.bytes = (size_t)(put_buckets(&w->t->buckets, steps, at, &words.n) - at);
  put_row(w, series, sum, lengths, &words);
  return TB_OK;
}

static tb_rc put_without_words(struct writer *w, uint32_t series, const struct to_count *sum,
                               uint64_t lengths) {
  TB_TRY(make_room(w, 0));
  put_row(w, series, sum, lengths, &(struct words){ 0 });
  return TB_OK;
}

/* Writes a row with the words that it has in another block. */
static tb_rc put_copied(struct writer *w, const struct to_row *row, const struct to_count *sum) {
  const struct words words = { row->words, row->scale, row->word, row->words_bytes };

  TB_TRY(make_room(w, row->words_bytes));
  put_row(w, row->series, sum, row->lengths, &words);
  return TB_OK;
}

static bool keeps_words(const struct writer *w, uint32_t series, uint64_t lengths) {
  return lengths >= w->lengths_min || is_whole(w->form, series);
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

static struct writer begin(struct to_tally *t, const struct to_packed_form *form) {
  return (
      struct writer){ .t = t, .form = form, .buckets = TO_ROW_BUCKETS_MAX, .last = TO_NO_SERIES };
}

/* Writes the rows with fewer buckets until they are few enough. */
static tb_rc put_rows(const struct rows *rows, struct writer *w) {
  for (;;) {
    TB_TRY(rows->put(rows, w));
    if (w->words <= w->form->words_max) return TB_OK;
    struct writer again = begin(w->t, w->form);
    again.buckets = w->buckets > ROW_BUCKETS_MIN ? w->buckets / 2 : w->buckets;
    again.lengths_min = w->buckets > ROW_BUCKETS_MIN ? 0 : 2 * w->lengths_min + 1;
    *w = again;
  }
}

static tb_rc make(struct to_tally *t, const struct to_packed_form *form, const struct rows *rows,
                  struct to_packed **out) {
  struct writer w = begin(t, form);
  void *made = NULL;
  tb_rc rc = put_rows(rows, &w);

  if (rc != TB_OK) t->buckets = (struct to_buckets){ 0 };
  size_t bytes = (w.out.at + 7) / 8;
  struct to_packed block = { .bytes = sizeof(block) + bytes + TO_BITS_PADDING, .rows = w.rows };
  if (rc == TB_OK) rc = tb_mem_resize(form->mem, &made, 0, block.bytes);
  if (rc != TB_OK) return rc;
  memcpy(made, &block, sizeof(block));
  if (bytes > 0) memcpy((struct to_packed *)made + 1, t->bytes, bytes);
  memset((unsigned char *)made + sizeof(block) + bytes, 0, TO_BITS_PADDING);
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
    const struct to_count *sum = &t->sums.cell[series];
    size_t first = i, end = t->list_end[series];
    uint64_t lengths = 0;
    for (; i < end; i++) lengths += (uint32_t)t->list[i];
    if (lengths == 0 || !keeps_words(w, series, lengths)) {
      TB_TRY(put_without_words(w, series, sum, lengths));
      continue;
    }
    for (i = first; i < end; i++)
      to_buckets_add(&w->t->buckets, (uint32_t)(t->list[i] >> 32), (uint32_t)t->list[i]);
    TB_TRY(put_counted(w, series, sum, lengths, TO_SCALE_MAX));
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
  tb_rc rc = make(t, form, &rows, out);
  for (size_t i = 0; i < t->sums.used_n; i++) t->list_end[t->sums.used[i]] = 0;
  to_cells_clear(&t->sums);
  return rc;
}

/* ---- from blocks ---- */

/* Rows of one series that are being added up. */
struct joined {
  struct to_count sum;
  uint64_t lengths;
  int scale;
  bool lost;
  const struct to_row *only; /* the one with lengths */
  size_t with_lengths;
};

static void join(struct joined *j, const struct to_row *row) {
  to_count_join(&j->sum, &row->sum);
  j->lengths += row->lengths;
  if (row->lengths == 0) return;
  j->only = row;
  j->with_lengths++;
  j->lost |= row->words == 0;
  if (row->words > 0 && row->scale < j->scale) j->scale = row->scale;
}

static bool has_words(const struct writer *w, uint32_t series, const struct joined *j) {
  return j->lengths > 0 && !j->lost && keeps_words(w, series, j->lengths);
}

/* Adds rows up into one of the same series. */
static tb_rc put_joined(struct writer *w, const struct to_row *const *row, size_t n) {
  struct joined j = { .scale = TO_SCALE_MAX };

  for (size_t i = 0; i < n; i++) join(&j, row[i]);
  if (!has_words(w, row[0]->series, &j))
    return put_without_words(w, row[0]->series, &j.sum, j.lengths);
  if (j.with_lengths == 1 && w->buckets == TO_ROW_BUCKETS_MAX) return put_copied(w, j.only, &j.sum);
  for (size_t i = 0; i < n; i++) to_row_count(row[i], j.scale, w->t);
  return put_counted(w, row[0]->series, &j.sum, j.lengths, j.scale);
}

/* Rows of several blocks, series by series. */
static tb_rc put_blocks(const struct rows *rows, struct writer *w) {
  struct to_row row[TO_PACKED_MAX];
  const struct to_row *same[TO_PACKED_MAX];
  size_t left = 0;

  for (size_t i = 0; i < rows->n; i++) {
    to_row_first(rows->block[i], &row[left]);
    left += to_row_next(&row[left]);
  }
  while (left > 0) {
    uint32_t series = TO_NO_SERIES;
    size_t n = 0, stay = 0;
    for (size_t i = 0; i < left; i++) {
      if (row[i].series > series) continue;
      if (row[i].series < series) n = 0;
      series = row[i].series;
      same[n++] = &row[i];
    }
    TB_TRY(put_joined(w, same, n));
    for (size_t i = 0; i < left; i++) {
      if (row[i].series == series && !to_row_next(&row[i])) continue;
      if (stay != i) row[stay] = row[i];
      stay++;
    }
    left = stay;
  }
  return TB_OK;
}

tb_rc to_packed_add(struct to_tally *t, const struct to_packed_form *form,
                    const struct to_packed *const *block, size_t n, struct to_packed **out) {
  const struct rows rows = { .put = put_blocks, .block = block, .n = n };

  assert(n <= TO_PACKED_MAX);
  return make(t, form, &rows, out);
}

static bool moves(const struct rows *rows, const struct to_row *row) {
  return row->series == rows->into || is_in(rows->set, row->series);
}

/* Adds up the rows of `into` and of the series that become parts of it. */
static tb_rc put_into(const struct rows *rows, struct writer *w) {
  struct joined j = { .scale = TO_SCALE_MAX };
  struct to_row row;

  for (to_row_first(rows->block[0], &row); to_row_next(&row);)
    if (moves(rows, &row)) join(&j, &row);
  if (j.sum.count == 0) return TB_OK;
  if (!has_words(w, rows->into, &j)) return put_without_words(w, rows->into, &j.sum, j.lengths);
  for (to_row_first(rows->block[0], &row); to_row_next(&row);)
    if (moves(rows, &row)) to_row_count(&row, j.scale, w->t);
  return put_counted(w, rows->into, &j.sum, j.lengths, j.scale);
}

static tb_rc put_moved(const struct rows *rows, struct writer *w) {
  const struct to_row *one;
  struct to_row row;
  bool done = false;

  for (to_row_first(rows->block[0], &row); to_row_next(&row);) {
    if (!done && row.series >= rows->into) {
      TB_TRY(put_into(rows, w));
      done = true;
    }
    one = &row;
    if (!moves(rows, &row)) TB_TRY(put_joined(w, &one, 1));
  }
  return done ? TB_OK : put_into(rows, w);
}

tb_rc to_packed_move(struct to_tally *t, const struct to_packed_form *form,
                     const struct to_packed *block, const uint64_t *set, uint32_t into,
                     struct to_packed **out) {
  const struct rows rows = { .put = put_moved, .block = &block, .n = 1, .set = set, .into = into };

  return make(t, form, &rows, out);
}
