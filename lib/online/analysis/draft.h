/* SPDX-License-Identifier: Apache-2.0 */
/* A report in the making: an analysis fills in figures and rows in any order; the draft sorts the rows, cuts them,
 * sums what is cut off, and looks up quantiles of what is left.
 *
 *   TB_TRY(to_draft_row(draft, BY_STACK, stack_number, &row));   -- the row of this key, a new one or an earlier one
 *   to_draft_stack(row, STACK, stack);
 *   TB_TRY(to_draft_series(draft, row, CALLS, series));          -- adds to what the row has
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
  uint32_t first, last; /* parts, from 1 */
};
struct to_draft_value {
  struct to_value value;
  struct to_draft_sum *sum; /* of a distribution; else NULL */
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
  struct to_view_part *part;
  size_t parts, parts_capacity;
  const char **note;
  size_t notes, notes_capacity;
  bool totals;        /* quantiles are not looked up */
  bool is_of_figures; /* no row is shown, so the sums of rows are not made */
};

TB_MUST tb_rc to_draft_begin(struct to_draft *d, const struct to_schema *schema,
                             const struct to_view *view, struct tb_arena *arena);
void to_draft_fini(struct to_draft *d); /* the maps; accepts one whose begin failed */
/* Sorts, cuts each table to rows_max rows and an "other", and fills the report's last five fields. */
TB_MUST tb_rc to_draft_finish(struct to_draft *d, size_t rows_max, struct to_report *report);

static inline struct to_draft_value *to_draft_figure(struct to_draft *d, unsigned figure) {
  return &d->figure[figure];
}
/* The row of a key; a row without one: to_draft_new_row(). Lent until the draft's end. */
TB_MUST tb_rc to_draft_row(struct to_draft *d, unsigned table, uint64_t key,
                           struct to_draft_value **out);
TB_MUST tb_rc to_draft_new_row(struct to_draft *d, unsigned table, struct to_draft_value **out);
/* The row of what the analysis itself does not tell apart. */
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
/* Adds what the view has of a series: its sum, and its lengths for the quantiles. */
TB_MUST tb_rc to_draft_series(struct to_draft *d, struct to_draft_value *value, uint32_t series);
/* Its lengths only: those of a part of a series that was summed itself. (Lengths that parts gave to a series without a sum of its own
 * come by themselves: to_view_quantiles().) */
TB_MUST tb_rc to_draft_lengths(struct to_draft *d, struct to_draft_value *value, uint32_t series);

/* A sentence for the reader of this report. It is lent as long as the report. */
TB_MUST tb_rc to_draft_note(struct to_draft *d, const char *sentence);

#endif
