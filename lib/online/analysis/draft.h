/* SPDX-License-Identifier: Apache-2.0 */
/* A draft of a report. An analysis fills in figures and rows in any order; the draft sorts the rows, sums those
 * above the limit, and computes quantiles of the rest.
 *
 *   TB_TRY(to_draft_row(draft, BY_STACK, stack_number, &row));   -- finds or makes the row of this key
 *   to_draft_stack(row, STACK, stack);
 *   TB_TRY(to_draft_series(draft, row, CALLS, series));          -- adds to the row's value
 *
 * Memory    an arena's. The report is lent until the arena's reset.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_ANALYSIS_DRAFT_H
#define TO_ANALYSIS_DRAFT_H

#include "base/arena.h"
#include "base/map.h"
#include "online/analysis/report.h"
#include "online/window/window.h"

struct to_draft_sum {
  struct to_distribution distribution;
  uint32_t first, last; /* places in to_draft.part, from 1 */
};
struct to_draft_value {
  struct to_value value;
  struct to_draft_sum *sum; /* NULL: not a distribution */
};
struct to_draft_table {
  const struct to_table_schema *schema;
  struct to_draft_value **row;
  size_t rows, capacity;
  struct to_draft_value *other; /* NULL: none */
  struct tb_map by_key;
};
struct to_draft {
  struct tb_arena *arena;
  const struct to_view *view;
  const struct to_schema *schema;
  struct to_draft_value *option, *figure;
  struct to_draft_table *table;
  uint64_t *bucket; /* room for TO_BUCKETS_MAX; NULL: not needed yet */
  struct to_view_part *part;
  size_t parts, parts_capacity;
  const char **note;
  size_t notes, notes_capacity;
  bool totals;        /* without quantiles */
  bool is_of_figures; /* only figures: rows are not summed */
};

TB_MUST tb_rc to_draft_begin(struct to_draft *d, const struct to_schema *schema,
                             const struct to_view *view, struct tb_arena *arena);
void to_draft_fini(struct to_draft *d); /* frees the maps; also after a failed begin */
/* Sorts the tables, cuts each to rows_max rows and an "other", and fills the report's last five fields. */
TB_MUST tb_rc to_draft_finish(struct to_draft *d, size_t rows_max, struct to_report *report);

static inline struct to_draft_value *to_draft_figure(struct to_draft *d, unsigned figure) {
  return &d->figure[figure];
}
/* Returns the row of a key. Lent until the draft's end. Rows without a key: to_draft_new_row(). */
TB_MUST tb_rc to_draft_row(struct to_draft *d, unsigned table, uint64_t key,
                           struct to_draft_value **out);
TB_MUST tb_rc to_draft_new_row(struct to_draft *d, unsigned table, struct to_draft_value **out);
/* Returns the table's row "other", for what the analysis itself does not distinguish. */
TB_MUST tb_rc to_draft_other(struct to_draft *d, unsigned table, struct to_draft_value **out);

static inline void to_draft_number(struct to_draft_value *value, int64_t number) {
  value->value = (struct to_value){ .number = number };
}
static inline void to_draft_share(struct to_draft_value *value, double share) {
  value->value = (struct to_value){ .share = share };
}
static inline void to_draft_text(struct to_draft_value *value, struct to_string text) {
  value->value = (struct to_value){ .text = text };
}
static inline void to_draft_stack(struct to_draft_value *value, const struct to_callstack *stack) {
  value->value = (struct to_value){ .none = stack == NULL, .stack = stack };
}
/* Adds a series of the view: its sum, and its lengths for the quantiles. */
TB_MUST tb_rc to_draft_series(struct to_draft *d, struct to_draft_value *value, uint32_t series);

/* Adds a sentence for the reader of this report. Lent as long as the report. */
TB_MUST tb_rc to_draft_note(struct to_draft *d, const char *sentence);

#endif
