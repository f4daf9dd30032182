/* SPDX-License-Identifier: Apache-2.0 */
#include "online/window/buckets.h"

#include <string.h>

#include "base/seed.h"
#include "online/window/top_rows.h"

enum { PLACES_MIN = 256, ALMOST_EMPTY = 8, RADIX = 256 };

/* ---- hash ---- */

void to_buckets_fini(struct to_buckets *b, struct tb_mem *mem) {
  tb_mem_free(mem, b->word, b->places * sizeof(*b->word));
  *b = (struct to_buckets){ 0 };
}

void to_buckets_put(struct to_buckets *b, uint64_t word) {
  size_t i = (size_t)((to_word_key(word) * b->multiplier) >> b->shift);

  for (; b->word[i] != 0; i = (i + 1) & (b->places - 1))
    if (to_word_key(b->word[i]) == to_word_key(word) &&
        (uint32_t)b->word[i] <= UINT32_MAX - (uint32_t)word) {
      b->word[i] += (uint32_t)word;
      return;
    }
  b->word[i] = word;
  b->used++;
}

tb_rc to_buckets_grow(struct to_buckets *b, struct tb_mem *mem) {
  struct to_buckets grown = { .places = b->places > 0 ? b->places * 2 : PLACES_MIN,
                              .multiplier = b->places > 0 ? b->multiplier : tb_seed() | 1 };

  grown.shift = 64 - (unsigned)__builtin_ctzll(grown.places);
  TB_TRY(tb_mem_alloc(mem, grown.places * sizeof(*grown.word), &grown.word));
  for (size_t i = 0; i < b->places; i++)
    if (b->word[i] != 0) to_buckets_put(&grown, b->word[i]);
  to_buckets_fini(b, mem);
  *b = grown;
  return TB_OK;
}

void to_buckets_clear(struct to_buckets *b, struct tb_mem *mem) {
  if (b->places > PLACES_MIN && b->used < b->places / ALMOST_EMPTY) {
    to_buckets_fini(b, mem);
    return;
  }
  if (b->used > 0) memset(b->word, 0, b->places * sizeof(*b->word));
  b->used = 0;
}

/* ---- arrays ---- */

void to_words_init(struct to_words *words, struct tb_mem *mem) {
  *words = (struct to_words){ .mem = mem };
}

void to_words_fini(struct to_words *words) {
  if (words->mem != NULL) tb_mem_free(words->mem, words->word, words->room * sizeof(*words->word));
  *words = (struct to_words){ .mem = words->mem };
}

tb_rc to_words_reserve(struct to_words *words, size_t n) {
  void *block = NULL;

  TB_TRY(tb_mem_resize(words->mem, &block, 0, (n + 1) * sizeof(*words->word)));
  words->word = block;
  words->room = n + 1;
  words->n = 0;
  return TB_OK;
}

tb_rc to_words_shrink(struct to_words *words) {
  void *block = words->word;

  TB_TRY(tb_mem_resize(words->mem, &block, words->room * sizeof(*words->word),
                       (words->n + 1) * sizeof(*words->word)));
  words->word = block;
  words->room = words->n + 1;
  return TB_OK;
}

/* Radix sort by key, one byte a pass; a pass in which all bytes are equal is skipped. */
static void sort_words(uint64_t *word, uint64_t *other, size_t n) {
  uint64_t *from = word, *to = other;

  for (unsigned shift = 32; shift < 64; shift += 8) {
    size_t place[RADIX] = { 0 }, sum = 0;
    for (size_t i = 0; i < n; i++) place[from[i] >> shift & (RADIX - 1)]++;
    if (n == 0 || place[from[0] >> shift & (RADIX - 1)] == n) continue;
    for (unsigned r = 0; r < RADIX; r++) {
      size_t here = place[r];
      place[r] = sum;
      sum += here;
    }
    for (size_t i = 0; i < n; i++) to[place[from[i] >> shift & (RADIX - 1)]++] = from[i];
    uint64_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != word) memcpy(word, from, n * sizeof(*word));
}

/* Appends a word, or adds it to the last one if both are of the same bucket. */
static size_t append_word(uint64_t *word, size_t n, uint64_t next) {
  if (n > 0 && to_word_key(word[n - 1]) == to_word_key(next) &&
      (uint32_t)word[n - 1] <= UINT32_MAX - (uint32_t)next) {
    word[n - 1] += (uint32_t)next;
    return n;
  }
  word[n] = next;
  return n + 1;
}

static tb_rc sort_and_sum(struct to_words *words) {
  struct to_words other = { .mem = words->mem };
  size_t n = 0;

  TB_TRY(to_words_reserve(&other, words->n));
  sort_words(words->word, other.word, words->n);
  to_words_fini(&other);
  for (size_t i = 0; i < words->n; i++) n = append_word(words->word, n, words->word[i]);
  words->n = n;
  return TB_OK;
}

tb_rc to_words_take(struct to_words *words, const struct to_buckets *from) {
  struct to_words taken = { .mem = words->mem };

  TB_TRY(to_words_reserve(&taken, from->used));
  for (size_t i = 0; i < from->places; i++)
    if (from->word[i] != 0) taken.word[taken.n++] = from->word[i];
  tb_rc rc = sort_and_sum(&taken);
  if (rc != TB_OK) {
    to_words_fini(&taken);
    return rc;
  }
  to_words_fini(words);
  *words = taken;
  return TB_OK;
}

static void put_rest(struct to_words *words, const struct to_words *from, size_t first) {
  size_t n = from->n - first;

  if (n > 0) memcpy(words->word + words->n, from->word + first, n * sizeof(*from->word));
  words->n += n;
}

tb_rc to_words_join(struct to_words *words, const struct to_words *other) {
  struct to_words joined = { .mem = words->mem };
  size_t a = 0, b = 0;

  if (other->n == 0) return TB_OK;
  TB_TRY(to_words_reserve(&joined, words->n + other->n));
  while (a < words->n && b < other->n) { /* without unpredictable branches */
    uint64_t x = words->word[a], y = other->word[b];
    uint32_t key_x = to_word_key(x), key_y = to_word_key(y);
    bool both = key_x == key_y && TB_LIKELY((uint32_t)x <= UINT32_MAX - (uint32_t)y);
    joined.word[joined.n++] = (key_x <= key_y ? x : y) + (both ? (uint32_t)y : 0);
    a += key_x <= key_y;
    b += key_y < key_x || both;
  }
  put_rest(&joined, words, a);
  put_rest(&joined, other, b);
  to_words_fini(words);
  *words = joined;
  return TB_OK;
}

void to_words_begins(const struct to_words *words, uint32_t *begin, size_t n) {
  size_t series = 0;

  for (size_t i = 0; i < words->n; i++)
    while (series <= to_word_series(words->word[i]) && series <= n) begin[series++] = (uint32_t)i;
  while (series <= n) begin[series++] = (uint32_t)words->n;
}

/* ---- folding ---- */

enum { FAMILIES_MAX = 64 };

struct extent {
  uint64_t values; /* since the start */
  uint32_t series, words;
  uint32_t family;
  bool is_parent;
};
/* A family is all parts of one series, parts of parts included. */
struct families {
  size_t n;
  uint32_t root[FAMILIES_MAX];
  size_t words[FAMILIES_MAX]; /* words that can be folded */
};

static bool fewer_values(const void *rows, uint32_t a, uint32_t b) {
  const struct extent *x = (const struct extent *)rows + a, *y = (const struct extent *)rows + b;

  if (x->is_parent != y->is_parent) return y->is_parent;
  return x->values != y->values ? x->values < y->values : x->series < y->series;
}

static size_t find_extents(const struct to_words *words, const struct to_series *series,
                           struct extent *extent) {
  size_t n = 0;

  for (size_t i = 0; i < words->n; i++) {
    uint32_t number = to_word_series(words->word[i]);
    if (n == 0 || extent[n - 1].series != number)
      extent[n++] = (struct extent){ .values = series[number].values,
                                     .series = number,
                                     .is_parent = series[number].is_parent };
    extent[n - 1].values += (uint32_t)words->word[i];
    extent[n - 1].words++;
  }
  return n;
}

/* The last place is shared by all families beyond FAMILIES_MAX. */
static uint32_t find_family(struct families *f, const struct to_series *series, uint32_t number) {
  uint32_t place = 0;

  while (series[number].parent != TO_NO_SERIES) number = series[number].parent;
  while (place < f->n && f->root[place] != number) place++;
  if (place == FAMILIES_MAX) return FAMILIES_MAX - 1;
  if (place == f->n) f->root[f->n++] = number;
  return place;
}

static void find_families(struct families *f, const struct to_series *series, struct extent *extent,
                          size_t n) {
  *f = (struct families){ 0 };
  for (size_t i = 0; i < n; i++) {
    if (series[extent[i].series].parent == TO_NO_SERIES) continue;
    extent[i].family = find_family(f, series, extent[i].series);
    f->words[extent[i].family] += extent[i].words;
  }
}

/* Returns how many words each family may have so that the sum is at most max; small families keep all their words. */
static size_t share_of_each(const struct families *f, size_t max) {
  size_t share = max, left = max, kept = 0;

  for (size_t before = 0; kept < f->n; before = share) {
    size_t newly = 0;
    share = left / (f->n - kept);
    for (size_t i = 0; i < f->n; i++) {
      if (f->words[i] > share || (before > 0 && f->words[i] <= before)) continue;
      newly++;
      left -= f->words[i];
    }
    if (newly == 0) return share;
    kept += newly;
  }
  return max;
}

static bool is_folded(const uint64_t *folded, uint32_t series) {
  return folded[series / 64] >> series % 64 & 1;
}

size_t to_words_of_parts(const struct to_words *words, const struct to_series *series) {
  size_t n = 0;

  for (size_t i = 0; i < words->n; i++)
    n += series[to_word_series(words->word[i])].parent != TO_NO_SERIES;
  return n;
}

/* Marks the series to fold. Returns false if none can be folded. */
static bool choose_folded(const struct to_words *words, struct extent *extent, uint32_t *rank,
                          const struct to_series *series, size_t max, uint64_t *folded) {
  size_t n = find_extents(words, series, extent), share;
  struct families families;
  bool any = false;

  find_families(&families, series, extent, n);
  share = share_of_each(&families, max);
  for (size_t i = 0; i < n; i++) rank[i] = (uint32_t)i;
  to_top_rows(rank, n, n, fewer_values, extent);
  for (size_t i = 0; i < n; i++) {
    const struct extent *e = &extent[rank[i]];
    if (series[e->series].parent == TO_NO_SERIES || families.words[e->family] <= share) continue;
    folded[e->series / 64] |= UINT64_C(1) << e->series % 64;
    families.words[e->family] -= e->words;
    any = true;
  }
  return any;
}

static uint64_t moved_to(uint64_t word, uint32_t series) {
  return (uint64_t)series << (32 + TO_BUCKET_BITS) |
         (word & ((UINT64_C(1) << (32 + TO_BUCKET_BITS)) - 1));
}

static size_t count_folded(const struct to_words *words, const uint64_t *folded) {
  size_t n = 0;

  for (size_t i = 0; i < words->n; i++) n += is_folded(folded, to_word_series(words->word[i]));
  return n;
}

/* Words that stay are in order; moved words are sorted and joined to them. */
tb_rc to_words_give_parents(struct to_words *words, const struct to_series *series,
                            const uint64_t folded[TO_BUCKET_SERIES_MAX / 64]) {
  struct to_words moved;
  size_t kept = 0;

  to_words_init(&moved, words->mem);
  TB_TRY(to_words_reserve(&moved, count_folded(words, folded)));
  for (size_t i = 0; i < words->n; i++) {
    uint32_t number = to_word_series(words->word[i]);
    if (!is_folded(folded, number)) {
      words->word[kept++] = words->word[i];
      continue;
    }
    while (is_folded(folded, number)) number = series[series[number].parent].home;
    moved.word[moved.n++] = moved_to(words->word[i], number);
  }
  words->n = kept;
  tb_rc rc = sort_and_sum(&moved);
  if (rc == TB_OK) rc = to_words_join(words, &moved);
  to_words_fini(&moved);
  return rc;
}

tb_rc to_words_fold(struct to_words *words, const struct to_series *series, size_t max,
                    uint64_t out_folded[TO_BUCKET_SERIES_MAX / 64]) {
  uint64_t folded[TO_BUCKET_SERIES_MAX / 64] = { 0 };
  struct extent *extent = NULL;
  size_t bytes = words->n * (sizeof(*extent) + sizeof(uint32_t));
  tb_rc rc = TB_OK;
  size_t left = words->n <= max ? words->n : to_words_of_parts(words, series);

  if (left <= max) return TB_OK;
  TB_TRY(tb_mem_alloc(words->mem, bytes, &extent));
  uint32_t *rank = (uint32_t *)(extent + words->n);
  /* Folding adds words to the parents, so each pass folds more than necessary. */
  while (rc == TB_OK && left > max &&
         choose_folded(words, extent, rank, series, max / 4 * 3, folded)) {
    rc = to_words_give_parents(words, series, folded);
    left = to_words_of_parts(words, series);
  }
  tb_mem_free(words->mem, extent, bytes);
  if (out_folded != NULL) memcpy(out_folded, folded, sizeof folded);
  return rc;
}

/* ---- packed ---- */

static uint64_t step_of(uint64_t word, uint32_t last) {
  return (uint64_t)(to_word_key(word) - last) << 1 | ((uint32_t)word != 1);
}

static size_t word_bytes(uint64_t word, uint32_t last) {
  size_t n = tw_varint_bytes(step_of(word, last));
  return (uint32_t)word == 1 ? n : n + tw_varint_bytes((uint32_t)word);
}

static size_t put_word(unsigned char *out, uint64_t word, uint32_t last) {
  size_t n = tw_varint_write(out, step_of(word, last));
  return (uint32_t)word == 1 ? n : n + tw_varint_write(out + n, (uint32_t)word);
}

tb_rc to_words_pack(const struct to_words *words, struct to_runs **out) {
  uint32_t last = 0;
  size_t len = 0;
  void *block = NULL;

  for (size_t i = 0; i < words->n; last = to_word_key(words->word[i++]))
    len += word_bytes(words->word[i], last);
  TB_TRY(tb_mem_resize(words->mem, &block, 0, sizeof(struct to_runs) + len));
  struct to_runs *runs = block;
  *runs = (struct to_runs){ .bytes = sizeof(*runs) + len, .len = len, .words = words->n };
  unsigned char *at = (unsigned char *)(runs + 1);
  last = 0;
  for (size_t i = 0; i < words->n; last = to_word_key(words->word[i++]))
    at += put_word(at, words->word[i], last);
  *out = runs;
  return TB_OK;
}

tb_rc to_words_unpack(struct to_words *words, const struct to_runs *runs) {
  struct to_words unpacked = { .mem = words->mem };
  uint64_t word = 0;

  TB_TRY(to_words_reserve(&unpacked, runs != NULL ? runs->words : 0));
  const unsigned char *at = (const unsigned char *)(runs + 1);
  for (size_t i = 0; runs != NULL && i < runs->words; i++) {
    const unsigned char *end = (const unsigned char *)(runs + 1) + runs->len;
    word = to_runs_next(&at, end, to_word_key(word));
    unpacked.word[unpacked.n++] = word;
  }
  to_words_fini(words);
  *words = unpacked;
  return TB_OK;
}

void to_runs_free(struct to_runs *runs, struct tb_mem *mem) {
  if (runs != NULL) tb_mem_free(mem, runs, runs->bytes);
}
