/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and histograms of all series over one stretch of time, packed into one block.
 *
 * The histogram of a series without a parent ("a whole") has at most TO_BUCKETS_MAX buckets, that of another one TO_ROW_BUCKETS_MAX. A series
 * whose lengths are further apart has a lower scale. If the block has more than words_max buckets in all, rows get
 * half as many, and half of that; then rows with the fewest lengths have none, only their sums. Wholes do not count.
 *
 *   block    sums, rows
 *   sums     for each series: number, count, total, min, max, tag, since, lower bounds
 *   row      step of the number, lengths, words << 3 | scale, bytes, words       (rising by number)
 *   word     step of the place << 1 | 0, or << 1 | 1 and the count               (rising by place)
 *
 * All are varints. A row without words has lost its buckets.
 *
 * Memory    from mem: the block; from the tally while it is made.
 * Errors    TB_BUDGET, TB_NOMEM; nothing has changed then.
 */
#ifndef TO_WINDOW_PACKED_H
#define TO_WINDOW_PACKED_H

#include "online/window/tally.h"

enum { TO_ROW_BUCKETS_MAX = 160, TO_PACKED_MAX = 56 };

struct to_packed {
  size_t bytes; /* of the block */
  uint32_t sums;
  uint32_t words; /* without those of wholes */
  size_t sums_len, rows_len;
  to_ns base; /* begins in sums are relative to it */
  /* uint8_t[sums_len + rows_len] */
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
/* Adds n blocks up, n <= TO_PACKED_MAX. NULL: an empty one. */
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
  uint64_t lengths;
  uint32_t words; /* 0: the buckets are lost */
  int scale;
  const unsigned char *at, *end; /* its words */
};
/* Iterates over rows: begin with to_row_first(). Returns false at the end. */
void to_row_first(const struct to_packed *block, struct to_row *row);
bool to_row_next(const struct to_packed *block, struct to_row *row);
/* Adds the row's buckets to those of the tally at a scale that is not higher than the row's. */
void to_row_count(const struct to_row *row, int scale, struct to_tally *t);
/* Returns the buckets that were counted at this scale, lowered until they are at most max, and clears them. bucket: room for max. */
struct to_histogram to_buckets_take(struct to_tally *t, int scale, size_t max, uint64_t *bucket);

#endif
