/* SPDX-License-Identifier: Apache-2.0 */
/* The counts of the generation that is being read, and room in which windows are added up.
 *
 * There is one tally for a loop, and its streams take turns: it stays in the processor's cache, where each stream's own
 * tables would not. A stream's counts are moved to its windows when its generation ends, or when another stream
 * takes the tally (to_windows_attach()).
 *
 * Lengths are counted as words: one bucket of one series with its count. The key is series << TO_PLACE_BITS | place of
 * online/window/histogram.h, in the upper half; the count is in the lower half. A count that is too large for its half takes several
 * words.
 *
 * Memory    from mem: some 2 MiB at most, and 96 bytes for each series of the stream that has most.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; nothing has changed then.
 */
#ifndef TO_WINDOW_TALLY_H
#define TO_WINDOW_TALLY_H

#include "base/mem.h"
#include "online/event/event.h"
#include "online/window/histogram.h"

enum {
  TO_PLACE_BITS = 13,
  TO_TALLY_WORDS_MAX = 24 << 10,
  TO_SERIES_MAX = 1 << 19,
  TO_LEVELS_MAX = 3
};
#define TO_NO_SERIES UINT32_MAX

struct to_windows;
struct to_packed;
struct to_row;

/* Sums of one series. */
struct to_count {
  uint64_t count, total_ns, max_ns, min_ns;
  to_ns since;           /* the earliest begin of a span counted here */
  uint32_t tag;          /* of the longest span */
  uint32_t lower_bounds; /* how many of count are lower bounds */
};

/* Sums of many series. */
struct to_cells {
  struct to_count *cell; /* by series; if count is 0 the rest is undefined */
  uint32_t *used;        /* series whose count is not 0 */
  size_t used_n;
};

/* Buckets of one series. There are few in many places: a bit shows each that is used, but for place 0, and a bit of `words`
 * each word of such bits. */
struct to_buckets {
  uint64_t count[TO_PLACES];
  uint64_t used[TO_PLACES / 64];
  uint64_t words[2];
  uint16_t listed[TO_PLACES]; /* room for a list of the used places */
};
_Static_assert(TO_PLACES % 64 == 0 && TO_PLACES / 64 <= 128, "a bit for each");

static inline void to_buckets_add(struct to_buckets *b, uint32_t place, uint64_t n) {
  b->count[place] += n;
  if (place == 0) return;
  b->used[place / 64] |= UINT64_C(1) << place % 64;
  b->words[place / 4096] |= UINT64_C(1) << place / 64 % 64;
}

/* The window that is looked at. */
struct to_viewed {
  const struct to_windows *of; /* NULL: none */
  unsigned window;
  struct to_cells sums;
  bool has_rows; /* block, rows and row_of are filled */
  struct to_packed *block;
  struct to_row *row;
  size_t rows, rows_room;
  /* By series: */
  uint32_t *row_of; /* index in row, from 1; 0: none */
  uint64_t *met;    /* lengths of its parts in the current list; 0 between lists */
  uint32_t *chosen; /* the series whose buckets make up the current list */
  size_t series;
};

struct to_tally {
  struct tb_mem *mem;
  struct to_windows *owner; /* whose counts these are; NULL: nobody's */
  uint64_t *word;           /* a hash table; 0: a free place */
  size_t places, words;
  uint64_t multiplier;
  unsigned shift; /* places = 2^(64 - shift) */
  struct to_cells open;
  struct to_cells sums; /* room to add up; empty between calls */
  size_t series;        /* room in open, sums and list_end */

  uint64_t *list; /* place << 32 | count, by series */
  size_t list_room;
  uint32_t *list_end;   /* by series: where its part of list ends; 0 between calls */
  unsigned char *bytes; /* a block that is being made */
  size_t bytes_room;
  struct to_buckets buckets; /* none between calls */
  struct to_viewed viewed;
};
_Static_assert(TO_PLACES <= 1 << TO_PLACE_BITS, "a place fits");

void to_tally_init(struct to_tally *t, struct tb_mem *mem);
void to_tally_fini(struct to_tally *t);
/* Makes room for series 0 to n-1. */
TB_MUST tb_rc to_tally_reserve(struct to_tally *t, size_t n);
/* Makes room for a view of series 0 to n-1. No view is filled. */
TB_MUST tb_rc to_tally_view(struct to_tally *t, size_t n);
/* Makes the table of words larger, up to TO_TALLY_WORDS_MAX words. Returns TB_AGAIN at this limit. */
TB_MUST tb_rc to_tally_grow(struct to_tally *t);
/* Makes room for n bytes. */
TB_MUST tb_rc to_tally_bytes(struct to_tally *t, size_t n);
void to_tally_clear(struct to_tally *t);

/* Counts a length. Returns false if its word has no room; call to_windows_grow() then. */
TB_MUST static inline bool to_tally_count(struct to_tally *t, uint32_t series, uint64_t ns) {
  uint32_t key = series << TO_PLACE_BITS | to_histogram_place(ns);
  uint64_t none = (uint64_t)key << 32; /* the key's word with count 0 */

  if (TB_UNLIKELY(t->word == NULL)) return false;
  for (size_t i = (size_t)((key * t->multiplier) >> t->shift);; i = (i + 1) & (t->places - 1)) {
    uint64_t word = t->word[i];
    if (TB_LIKELY(word - none - 1 < UINT32_MAX - 1)) { /* the key's word, and its count can grow */
      t->word[i] = word + 1;
      return true;
    }
    if (word != 0) continue;
    if (t->words >= t->places / 4 * 3) return false;
    t->word[i] = none + 1;
    t->words++;
    return true;
  }
}

static inline void to_cells_add(struct to_cells *c, uint32_t series, to_ns begin, uint64_t ns,
                                uint32_t tag, bool lower_bound) {
  struct to_count *cell = &c->cell[series];

  if (TB_UNLIKELY(cell->count++ == 0)) {
    c->used[c->used_n++] = series;
    *cell = (struct to_count){ .count = 1, .since = begin, .tag = tag, .min_ns = ns };
  }
  cell->total_ns += ns;
  cell->lower_bounds += lower_bound;
  if (begin < cell->since) cell->since = begin;
  if (ns < cell->min_ns) cell->min_ns = ns;
  if (ns > cell->max_ns) {
    cell->max_ns = ns;
    cell->tag = tag;
  }
}
/* Adds more. count 0: no other field is read. */
void to_count_join(struct to_count *sum, const struct to_count *more);
void to_cells_join(struct to_cells *c, uint32_t series, const struct to_count *more);
void to_cells_clear(struct to_cells *c);

#endif
