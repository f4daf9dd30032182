/* SPDX-License-Identifier: Apache-2.0 */
/* How many values fell into which bucket of which series: the quantiles of every row, in bounded memory.
 *
 * A word is one bucket of one series and how often it was met: key in the upper half (series << 16 | bucket of
 * online/window/histogram.h), count in the lower one. A count that is too large for its half stands in several words.
 * While a slot is open its words lie in a hash table; after that they are sorted and packed, about 2 bytes each.
 *
 * What is too much is folded: the series with the fewest values give theirs to the series they are a part of. That
 * one's quantiles stay exact, a folded series has count, sum and maximum only.
 *
 * Memory    from mem; bounds are the caller's.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; everything is then as it was.
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

/* ---- words in the order in which they come ---- */

struct to_buckets {
  uint64_t *word; /* 0: a free place */
  size_t places, used;
  uint64_t multiplier;
  unsigned shift; /* places = 2^(64 - shift) */
};

void to_buckets_fini(struct to_buckets *b, struct tb_mem *mem); /* accepts a zeroed one */
/* False: there is no room; to_buckets_grow() makes some. */
static inline bool to_buckets_add(struct to_buckets *b, uint32_t key) {
  size_t i = (size_t)((key * b->multiplier) >> b->shift);
  uint64_t none = (uint64_t)key << 32; /* its word, counting 0 */

  if (TB_UNLIKELY(b->word == NULL)) return false;
  for (;; i = (i + 1) & (b->places - 1)) {
    uint64_t word = b->word[i];
    if (TB_LIKELY(word - none - 1 < UINT32_MAX - 1)) { /* this bucket's, and it can count on */
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
/* Adds a word's count; there is room for it. */
void to_buckets_put(struct to_buckets *b, uint64_t word);

/* ---- words, rising ---- */

struct to_words {
  struct tb_mem *mem;
  uint64_t *word;
  size_t n, room;
};

void to_words_init(struct to_words *words, struct tb_mem *mem);
void to_words_fini(struct to_words *words); /* accepts a zeroed one */
/* Room for n words; it has none yet. */
TB_MUST tb_rc to_words_reserve(struct to_words *words, size_t n);
/* Gives back the room that is not used. */
TB_MUST tb_rc to_words_shrink(struct to_words *words);
TB_MUST tb_rc to_words_take(struct to_words *words, const struct to_buckets *from);
/* Adds what is packed. */
TB_MUST tb_rc to_words_join(struct to_words *words, const struct to_words *other);

/* By number. */
struct to_series {
  uint32_t parent; /* the one it is a part of; TO_NO_SERIES: of none */
  uint32_t home;   /* the one that has its words: itself, unless it never gets any */
  uint32_t place;  /* and for now: home, or one that home was folded into */
  bool is_parent;
  uint64_t values; /* in slots that have closed */
};

/* How many words are of series that have a parent. */
size_t to_words_of_parts(const struct to_words *words, const struct to_series *series);
/* Gives values of series to their parents until series with a parent have at most max words: those without one are few,
 * and their words are not counted. All parts of one of those are a family; families have equal shares, and what one does not need
 * is the others'. In a family those with the fewest values ever go first, parents last. The same series go in
 * each slot, so that in a window of many slots some have all of theirs. folded: a bit a series; may be NULL. */
TB_MUST tb_rc to_words_fold(struct to_words *words, const struct to_series *series, size_t max,
                            uint64_t folded[TO_BUCKET_SERIES_MAX / 64]);
/* The words of these series become their parents'. */
TB_MUST tb_rc to_words_give_parents(struct to_words *words, const struct to_series *series,
                                    const uint64_t folded[TO_BUCKET_SERIES_MAX / 64]);
/* Where each series' words begin, for series 0 to n: n + 1 places. */
void to_words_begins(const struct to_words *words, uint32_t *begin, size_t n);

/* One block. A word is by how much its key is above the one before, as a varint, of which the lowest bit says whether a
 * varint with its count follows: most counts are 1. */
struct to_runs {
  size_t bytes; /* of the block */
  size_t len, words;
  /* uint8_t[len] */
};
TB_MUST tb_rc to_words_pack(const struct to_words *words, struct to_runs **out);
TB_MUST tb_rc to_words_unpack(struct to_words *words, const struct to_runs *runs); /* NULL: none */
void to_runs_free(struct to_runs *runs, struct tb_mem *mem); /* accepts NULL */
/* The word at *at, whose key is above this one's; *at goes to the next. */
static inline uint64_t to_runs_next(const unsigned char **at, const unsigned char *end,
                                    uint32_t key) {
  uint64_t step = 0, count = 1;

  *at += tw_varint_read(*at, end, &step); /* we wrote them */
  if ((step & 1) != 0) *at += tw_varint_read(*at, end, &count);
  return ((uint64_t)key + (step >> 1)) << 32 | count;
}

#endif
