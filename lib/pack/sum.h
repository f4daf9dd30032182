/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of any number of reports, in the memory of a few: some reports at a time are added to the sum so far.
 *
 *   tp_sum_init(&sum, mem, tp_merge, 8 << 20);
 *   TB_TRY(tp_sum_add(&sum, packed, len, &part));  -- for each report
 *   TB_TRY(tp_sum_take(&sum, arena, &report));
 *
 * Memory    from mem: the sum, and parts of some part_bytes; temporarily both once more.
 * Errors    those of the merge; TB_BUDGET: bytes that are not a report, too. After an error only fini is allowed.
 */
#ifndef TP_PACK_SUM_H
#define TP_PACK_SUM_H

#include "base/buf.h"
#include "pack/merge.h"

enum { TP_SUM_PARTS = 64 };

struct tp_sum {
  tp_merge_fn *merge;
  size_t part_bytes;
  struct tb_arena arena; /* for the parts */
  struct tb_buf packed;
  Tracecollect__V1__StreamReport
      *part[TP_SUM_PARTS]; /* if there are more than n parts, the first is their sum */
  size_t n;
  size_t sum_bytes; /* of the arena, for the sum so far */
  uint64_t parts;   /* that were added */
};

void tp_sum_init(struct tp_sum *sum, struct tb_mem *mem, tp_merge_fn *merge, size_t part_bytes);
void tp_sum_fini(struct tp_sum *sum); /* accepts a zeroed one */
/* Forgets all parts. */
void tp_sum_clear(struct tp_sum *sum);
/* Copies a packed StreamReport. *out is the copy, which may be changed until the next call. */
TB_MUST tb_rc tp_sum_add(struct tp_sum *sum, const void *packed, size_t len,
                         Tracecollect__V1__StreamReport **out);
TB_MUST tb_rc tp_sum_add_report(struct tp_sum *sum, const Tracecollect__V1__StreamReport *report);
/* Copies the sum into the arena, and forgets all parts. One part is its own sum; of none *out is NULL. */
TB_MUST tb_rc tp_sum_take(struct tp_sum *sum, struct tb_arena *arena,
                          Tracecollect__V1__StreamReport **out);

#endif
