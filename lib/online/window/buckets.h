/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the values in each bucket of each series: the quantiles of every row, in bounded memory.
 *
 * A word is one bucket of one series with its count: key in the upper half (series << 16 | bucket of
 * online/window/histogram.h), count in the lower one. A count that is too large for its half takes several words.
 * The words of an open slot are in a hash table; after that they are sorted and packed, about 2 bytes each.
 *
 * If there are too many words, series are folded: those with the fewest values add theirs to their parent series. The
 * parent's quantiles stay exact; a folded series has only count, sum and maximum.
 *
 * Memory    from mem; limits are set by the caller.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; nothing has changed then.
 */
#ifndef TO_WINDOW_BUCKETS_H
#define TO_WINDOW_BUCKETS_H

#include "base/mem.h"
#include "wire/varint.h"

enum {
  TO_BUCKET_BITS = 16,
  TO_BUCKET_SERIES_MAX = 1 << 16, /* series from here on have no words of their own */
};
#define TO_NO_SERIES UINT32_MAX

static inline uint32_t to_word_key(uint64_t word) {
  return (uint32_t)(word >> 32);
}
static inline uint32_t to_word_series(uint64_t word) {
  return (uint32_t)(word >> 32 >> TO_BUCKET_BITS);
}
static inline unsigned to_word_bucket(uint64_t word) {
  return (unsigned)(word >> 32) & ((1u << TO_BUCKET_BITS) - 1);
}

/* ---- hash table of words ---- */

struct to_buckets {
  uint64_t *word; /* 0: a free place */
  size_t places, used;
  uint64_t multiplier;
  unsigned shift; /* places = 2^(64 - shift) */
};

void to_buckets_fini(struct to_buckets *b, struct tb_mem *mem); /* accepts a zeroed one */
/* Returns false if there is no room; call to_buckets_grow() then. */
static inline bool to_buckets_add(struct to_buckets *b, uint32_t key) {
  size_t i = (size_t)((key * b->multiplier) >> b->shift);
  uint64_t none = (uint64_t)key << 32; /* the key's word with count 0 */

  if (TB_UNLIKELY(b->word == NULL)) return false;
  for (;; i = (i + 1) & (b->places - 1)) {
    uint64_t word = b->word[i];
    if (TB_LIKELY(word - none - 1 < UINT32_MAX - 1)) { /* the key's word, and its count can grow */
      b->word[i] = word + 1;
      return true;
    }
    if (word != 0) continue;
    if (b->used >= b->places / 4 * 3) return false;
    b->word[i] = none + 1;
    b->used++;
    return true;
  }
}
TB_MUST tb_rc to_buckets_grow(struct to_buckets *b, struct tb_mem *mem);
/* Keeps the table, unless it was almost empty. */
void to_buckets_clear(struct to_buckets *b, struct tb_mem *mem);
/* Adds a word's count. Requires room. */
void to_buckets_put(struct to_buckets *b, uint64_t word);

/* ---- sorted words ---- */

struct to_words {
  struct tb_mem *mem;
  uint64_t *word;
  size_t n, room;
};

void to_words_init(struct to_words *words, struct tb_mem *mem);
void to_words_fini(struct to_words *words); /* accepts a zeroed one */
/* Allocates room for n words; words must be empty. */
TB_MUST tb_rc to_words_reserve(struct to_words *words, size_t n);
/* Releases unused room. */
TB_MUST tb_rc to_words_shrink(struct to_words *words);
TB_MUST tb_rc to_words_take(struct to_words *words, const struct to_buckets *from);
/* Adds the words of other. */
TB_MUST tb_rc to_words_join(struct to_words *words, const struct to_words *other);

struct to_series {
  uint32_t parent; /* the series that this one is a part of, or TO_NO_SERIES */
  uint32_t home;   /* the series that gets the words: an ancestor if this number is too high */
  uint32_t place;  /* the series that gets them now: home, or the series home is folded into */
  bool is_parent;
  uint64_t values; /* in closed slots */
};

/* Counts the words of series with a parent. */
size_t to_words_of_parts(const struct to_words *words, const struct to_series *series);
/* Folds series into their parents until series with a parent have at most max words; series without one are few and do not
 * count. All parts of such a series are a family. Families have equal shares of max; unused shares go to the others. In a
 * family the series with the fewest values ever are folded first, parents last. So the same series are folded in each slot,
 * and in a window of many slots the others keep all their words. folded: a bit a series; may be NULL. */
TB_MUST tb_rc to_words_fold(struct to_words *words, const struct to_series *series, size_t max,
                            uint64_t folded[TO_BUCKET_SERIES_MAX / 64]);
/* Moves the words of these series to their parents. */
TB_MUST tb_rc to_words_give_parents(struct to_words *words, const struct to_series *series,
                                    const uint64_t folded[TO_BUCKET_SERIES_MAX / 64]);
/* Writes where each series' words begin, for series 0 to n: n + 1 entries. */
void to_words_begins(const struct to_words *words, uint32_t *begin, size_t n);

/* Packed words in one block. Each is the difference to the previous key as a varint, whose lowest bit tells whether a
 * varint with the count follows; without it the count is 1, as for most words. */
struct to_runs {
  size_t bytes; /* of the block */
  size_t len, words;
  /* uint8_t[len] */
};
TB_MUST tb_rc to_words_pack(const struct to_words *words, struct to_runs **out);
TB_MUST tb_rc to_words_unpack(struct to_words *words, const struct to_runs *runs); /* NULL: none */
void to_runs_free(struct to_runs *runs, struct tb_mem *mem); /* accepts NULL */
/* Reads the word at *at and moves *at to the next. key: the previous word's. */
static inline uint64_t to_runs_next(const unsigned char **at, const unsigned char *end,
                                    uint32_t key) {
  uint64_t step = 0, count = 1;

  *at += tw_varint_read(*at, end, &step); /* our own encoding: no errors */
  if ((step & 1) != 0) *at += tw_varint_read(*at, end, &count);
  return ((uint64_t)key + (step >> 1)) << 32 | count;
}

#endif
