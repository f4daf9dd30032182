/* SPDX-License-Identifier: Apache-2.0 */
/* Who wakes whom: pairs of entry functions, of the goroutine that wakes and the one that is woken.
 *
 * Both sums of a pair are shared ones (online/spans/sums.h): waits by the waker's stack, and the time from wake to run. */
#include <string.h>

#include "online/analysis/analysis_state.h"

enum { WAKES, LATENCY, PAIRS, FIGURES };
static const struct to_field figure[FIGURES] = {
  [WAKES] = { "waits", TO_VALUE_DISTRIBUTION, .about = "How long goroutines waited to be woken." },
  [LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                .about = "From the wake until the woken goroutine ran." },
  [PAIRS] = { "pairs", TO_VALUE_COUNT, .about = "Pairs of a waking and a woken function.",
              .over_time = TO_OVER_UNKNOWN },
};

enum { WAKER, WOKEN, PAIR_LATENCY, PAIR_WAITS, COLUMNS };
static const struct to_field column[COLUMNS] = {
  [WAKER] = { "waker", TO_VALUE_TEXT,
              .about = "The function that the waking goroutine began with; empty: the runtime "
                       "(network, timers), or a stack that the trace does not show." },
  [WOKEN] = { "woken", TO_VALUE_TEXT,
              .about = "The function that the woken goroutine began with." },
  [PAIR_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                     .about = "From the wake until the woken goroutine ran, if it did." },
  [PAIR_WAITS] = { "waits", TO_VALUE_DISTRIBUTION, .about = "The waits that the wakes ended." },
};
enum { BY_PAIR, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BY_PAIR] = { .name = "by_pair",
                .about = "By waking and woken function",
                .order_about = "most time from wake to run first",
                .keys = 2,
                .columns = COLUMNS,
                .column = column,
                .order = { { PAIR_LATENCY + 1 }, { PAIR_WAITS + 1 } } },
};

/* Returns the outermost function of a stack. */
static struct to_string entry_of(const struct to_analyses *a, uint32_t stack) {
  const struct to_callstack *frames = to_stack_table_stack(a->stacks, stack);

  if (frames == NULL || frames->len == 0) return (struct to_string){ "", 0 };
  return frames->frames[frames->len - 1]->function;
}

/* The stack table stores each text once: its address is a key. */
static tb_rc find_row(struct to_analyses *a, struct to_draft *d, const struct to_span_sum *sum,
                      struct to_draft_value **out) {
  struct to_string waker = entry_of(a, sum->by_stack);
  uint64_t place = waker.len == 0 ? 0 : (uintptr_t)waker.data;

  _Static_assert(TO_ENTRIES_MAX <= 1 << 16, "an entry fits beside 48 bits of address");
  if (sum->entry == TO_ENTRY_OTHER || sum->by_stack == TO_STACK_OTHER)
    return to_draft_other(d, BY_PAIR, out);
  TB_TRY(to_draft_row(d, BY_PAIR, place << 16 | sum->entry, out));
  to_draft_text(&(*out)[WAKER], waker);
  to_draft_text(&(*out)[WOKEN], to_span_sums_entry(&a->sums, sum->entry));
  return TB_OK;
}

static tb_rc add_sums(struct to_analyses *a, struct to_draft *d, enum to_go_state its_state,
                      unsigned its_figure, unsigned its_column) {
  const struct to_span_sum *sum = NULL;
  struct to_draft_value *row;

  while ((sum = to_span_sums_next(&a->sums, d->view, its_state, sum)) != NULL) {
    if (its_state == TO_GO_RUNNABLE && sum->why != TO_CAUSE_UNBLOCKED) continue;
    TB_TRY(to_draft_series(d, to_draft_figure(d, its_figure), sum->series));
    TB_TRY(find_row(a, d, sum, &row));
    TB_TRY(to_draft_series(d, &row[its_column], sum->series));
  }
  return TB_OK;
}

static tb_rc wake_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  (void)view;
  TB_TRY(add_sums(a, d, TO_GO_RUNNABLE, LATENCY, PAIR_LATENCY));
  TB_TRY(add_sums(a, d, TO_GO_WAITING, WAKES, PAIR_WAITS));
  to_draft_number(to_draft_figure(d, PAIRS), (int64_t)d->table[BY_PAIR].rows);
  return TB_OK;
}

const struct to_analysis_ops to__analysis_wake = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .thins = true,
  .report = wake_report,
};
