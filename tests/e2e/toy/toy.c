/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest possible analysis: how long ranges of the runtime (GC, sweeping, assists, stops)
 * were active, by kind. test_new_analysis.py adds it to a copy of the tree, and looks for it
 * everywhere. */
#include <string.h>

#include "online/analysis/analysis_state.h"

struct toy {
  uint32_t all, of_kind[TO_RANGES]; /* series */
};

enum { ACTIVE, FIGURES };
static const struct to_field figure[FIGURES] = {
  [ACTIVE] = { "active", TO_VALUE_DISTRIBUTION, .about = "Ranges that ended.",
               .metric = "trace_toy_seconds" },
};
enum { KIND, KIND_ACTIVE, COLUMNS };
static const struct to_field column[COLUMNS] = {
  [KIND] = { "range", TO_VALUE_TEXT, .about = "As Go names it.", .label = "range" },
  [KIND_ACTIVE] = { "active", TO_VALUE_DISTRIBUTION, .about = "Ranges that ended, by kind.",
                    .metric = "trace_toy_range_seconds" },
};
enum { BY_RANGE, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BY_RANGE] = { .name = "by_range",
                 .about = "By range",
                 .order_about = "most time first",
                 .keys = 1,
                 .columns = COLUMNS,
                 .column = column,
                 .order = { { KIND_ACTIVE + 1 } } },
};

static struct toy *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_TOY];
}

static tb_rc toy_init(struct to_analyses *a) {
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->all));
  for (unsigned kind = 0; kind < TO_RANGES; kind++)
    TB_TRY(to_windows_series(&a->windows, state(a)->all, &state(a)->of_kind[kind]));
  return TB_OK;
}

static tb_rc toy_span(struct to_analyses *a, const struct to_generation *gen,
                      const struct to_span *span) {
  (void)gen;
  return to_windows_add(&a->windows, state(a)->of_kind[span->state], span->from, span->until, 0,
                        !span->from_known);
}

static tb_rc toy_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  struct to_draft_value *row;

  for (unsigned kind = 0; kind < TO_RANGES; kind++) {
    const char *name = to_range_info((enum to_range_kind)kind)->name;
    if (to_view_cell(view, state(a)->of_kind[kind]) == NULL) continue;
    TB_TRY(to_draft_new_row(d, BY_RANGE, &row));
    to_draft_text(&row[KIND], (struct to_string){ name, strlen(name) });
    TB_TRY(to_draft_series(d, &row[KIND_ACTIVE], state(a)->of_kind[kind]));
    TB_TRY(to_draft_series(d, to_draft_figure(d, ACTIVE), state(a)->of_kind[kind]));
  }
  return to_draft_note(d, "A toy counts ranges that have ended.");
}

const struct to_analysis_ops to__analysis_toy = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct toy),
  .spans = TO_WANT(RANGE),
  .init = toy_init,
  .span = toy_span,
  .report = toy_report,
};
