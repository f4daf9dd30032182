/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and histograms of all series over one stretch of time, packed into one block.
 *
 * The histogram of a series without a parent ("a whole") has at most TO_BUCKETS_MAX buckets, that of another one TO_ROW_BUCKETS_MAX. A series
 * whose lengths are further apart has a lower scale. If the block has more than words_max buckets in all, rows get
 * half as many, and half of that; then rows with the fewest lengths have none, only their sums. Wholes do not count.
 *
 * A row has a series' sums and, if its lengths were counted, its buckets as words; rows rise by series. Numbers have as few bits as they
 * need (online/window/bits.h), as most are small: quiet streams are many, and blocks are most of what a stream holds.
 *
 *   row      gamma: series minus that of the last row; count; flags (see packed.c); begin, as the difference to the last row's; max,
 *            min (if count > 1), total (if count > 2), tag and lower bounds (if they are not 0)
 *            if lengths were counted: how many (if it is not count), words + 1
 *            if it has words: scale, bytes of all words; then, at the next byte, the words
 *   word     one byte: place minus that of the last word, if it is 1 to 3, and the count, if it is below 64. Else a varint of it follows
 *
 * A row of lengths without words has lost its buckets.
 *
 * Memory    from mem: the block; from the tally while it is made.
 * Errors    TB_BUDGET, TB_NOMEM; nothing has changed then.
 */
#ifndef TO_WINDOW_PACKED_H
#define TO_WINDOW_PACKED_H

#include "online/window/bits.h"
#include "online/window/tally.h"

enum { TO_ROW_BUCKETS_MAX = 160, TO_PACKED_MAX = 56 };

struct to_packed {
  size_t bytes; /* of the block */
  uint32_t rows;
  /* rows, padding */
};

/* How a block is made. */
struct to_packed_form {
  struct tb_mem *mem;
  const uint32_t *parent; /* by series; TO_NO_SERIES: none */
  size_t words_max;
};

/* Packs the tally's counts. A series is added to its parent, to its parent's parent and so on. The counts stay. */
TB_MUST tb_rc to_packed_of_tally(struct to_tally *t, const struct to_packed_form *form,
                                 struct to_packed **out);
/* Adds n blocks up, n <= TO_PACKED_MAX. NULL: an empty one. The same maximum twice: the first block's tag stays. */
TB_MUST tb_rc to_packed_add(struct to_tally *t, const struct to_packed_form *form,
                            const struct to_packed *const *block, size_t n, struct to_packed **out);
/* Makes a block in which series that have a bit in the set are parts of `into` instead. */
TB_MUST tb_rc to_packed_move(struct to_tally *t, const struct to_packed_form *form,
                             const struct to_packed *block, const uint64_t *set, uint32_t into,
                             struct to_packed **out);
void to_packed_free(struct to_packed *block, struct tb_mem *mem); /* accepts NULL */

/* Adds the block's sums to c, which has room for its series. */
void to_packed_sums(const struct to_packed *block, struct to_cells *c);

struct to_row {
  uint32_t series; /* and all its parts */
  uint32_t words;  /* 0: no lengths, or the buckets are lost */
  struct to_count sum;
  uint64_t lengths; /* 0: only summed */
  int scale;
  const unsigned char *word;
  size_t words_bytes;
  struct to_bits bits; /* where its words are, or the next row */
  uint32_t left;       /* rows after it */
};
/* Iterates over rows: begin with to_row_first(). Returns false at the end. block NULL: no rows. */
void to_row_first(const struct to_packed *block, struct to_row *row);
bool to_row_next(struct to_row *row);
/* Adds the row's buckets to those of the tally at a scale that is not higher than the row's. */
void to_row_count(const struct to_row *row, int scale, struct to_tally *t);
/* Returns the buckets that were counted at this scale, lowered until they are at most max, and clears them. bucket: room for max. */
struct to_histogram to_buckets_take(struct to_tally *t, int scale, size_t max, uint64_t *bucket);

#endif
