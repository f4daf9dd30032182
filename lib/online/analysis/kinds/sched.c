/* SPDX-License-Identifier: Apache-2.0 */
/* How long goroutines wait for a P: the time in which a goroutine is runnable before it runs.
 *
 * Waits are counted in the shared sums (online/spans/sums.h); reports add the sums up. This file keeps only the longest waits. */
#include <string.h>

#include "online/analysis/kinds/waits.h"

struct to_sched {
  uint32_t wasted, stopped, cut;  /* series */
  uint64_t wasted_ns, stopped_ns; /* part of the totals that has been counted */
  struct to_longest longest;
};

static struct to_sched *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_SCHED];
}

enum { LATENCY, WAITING, WASTED, CUT, STOPPED, FIGURES };
static const struct to_field figure[FIGURES] = {
  [LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                .about =
                    "How long goroutines that could run waited for a P, the right to run Go code.",
                .metric = "trace_sched_latency_seconds" },
  [WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Goroutines that wait for a P now.",
                .over_time = TO_OVER_LAST },
  [WASTED] = { "wasted_share", TO_VALUE_SHARE,
               .about = "Share of the window in which a goroutine waited while a P was idle.",
               .of_time = true },
  [CUT] = { "cut", TO_VALUE_COUNT,
            .about = "Waits that a hole in the stream cut off: they are in no latency." },
  [STOPPED] = { "stopped_ns", TO_VALUE_NS,
                .about = "Time that goroutines waited for a P while the world was stopped, all "
                         "together: more Ps do not reduce it." },
};

enum { NOW_GOROUTINE, NOW_AGE, NOW_CAUSE, NOW_LOWER_BOUND, NOW_STACK, NOW_WAKER, NOW_COLUMNS };
static const struct to_field now_column[NOW_COLUMNS] = {
  [NOW_GOROUTINE] = { "goroutine", TO_VALUE_ID },
  [NOW_AGE] = { "age_ns", TO_VALUE_NS },
  [NOW_CAUSE] = { "cause", TO_VALUE_TEXT, .about = "Why it became runnable." },
  [NOW_LOWER_BOUND] = { "lower_bound", TO_VALUE_FLAG,
                        .about = "It waits for longer: since before the first sync." },
  [NOW_STACK] = { "stack", TO_VALUE_STACK },
  [NOW_WAKER] = { "waker", TO_VALUE_ID, .about = "The goroutine that made it runnable." },
};
static const struct to_field long_column[TO_LONG_COLUMNS] = {
  [TO_LONG_GOROUTINE] = { "goroutine", TO_VALUE_ID },
  [TO_LONG_BEGIN] = { "start_ns", TO_VALUE_TIME },
  [TO_LONG_LENGTH] = { "latency_ns", TO_VALUE_NS },
  [TO_LONG_WHY] = { "cause", TO_VALUE_TEXT, .about = "Why it became runnable." },
  [TO_LONG_WAKER] = { "waker", TO_VALUE_ID, .about = "The goroutine that made it runnable." },
  [TO_LONG_STACK] = { "stack", TO_VALUE_STACK },
  [TO_LONG_WAKER_STACK] = { "waker_stack", TO_VALUE_STACK },
};
enum { KEY, KEY_LATENCY, KEY_COLUMNS };
static const struct to_field entry_column[KEY_COLUMNS] = {
  [KEY] = { "entry", TO_VALUE_TEXT, .about = "The function that the goroutine began with." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};
static const struct to_field cause_column[KEY_COLUMNS] = {
  [KEY] = { "cause", TO_VALUE_TEXT, .about = "Why the goroutine became runnable." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};
static const struct to_field stack_column[KEY_COLUMNS] = {
  [KEY] = { "stack", TO_VALUE_STACK, .about = "Where the goroutine continues." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};
static const struct to_field waker_column[KEY_COLUMNS] = {
  [KEY] = { "waker_stack", TO_VALUE_STACK,
            .about = "Where it was made runnable; empty: by the runtime (network, timers)." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};

enum { WAITING_NOW, LONGEST_WAITS, BY_ENTRY, BY_CAUSE, BY_STACK, BY_WAKER, TABLES };
#define BY_KEY(its_name, its_about, its_columns)                                                   \
  {                                                                                                \
    .name = its_name, .about = its_about, .order_about = "most time first", .keys = 1,             \
    .columns = KEY_COLUMNS, .column = its_columns, .order = {                                      \
      { KEY_LATENCY + 1 }                                                                          \
    }                                                                                              \
  }
static const struct to_table_schema table[TABLES] = {
  [WAITING_NOW] = { .name = "waiting_now",
                    .about = "Waiting for a P now",
                    .order_about = "oldest first",
                    .keys = 1,
                    .columns = NOW_COLUMNS,
                    .column = now_column,
                    .order = { { NOW_AGE + 1 }, { NOW_GOROUTINE + 1, .rising = true } },
                    .is_list = true,
                    .is_now = true },
  [LONGEST_WAITS] = { .name = "longest",
                      .about = "Longest waits for a P",
                      .order_about = "longest first",
                      .keys = 2,
                      .columns = TO_LONG_COLUMNS,
                      .column = long_column,
                      .order = { { TO_LONG_LENGTH + 1 }, { TO_LONG_BEGIN + 1, .rising = true } },
                      .is_list = true },
  [BY_ENTRY] = BY_KEY("by_entry", "By entry function", entry_column),
  [BY_CAUSE] = BY_KEY("by_cause", "By cause", cause_column),
  [BY_STACK] = BY_KEY("by_stack", "By stack", stack_column),
  [BY_WAKER] = BY_KEY("by_waker", "By the waker's stack", waker_column),
};

static tb_rc sched_init(struct to_analyses *a) {
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->cut));
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->stopped));
  return to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->wasted);
}

static void sched_fini(struct to_analyses *a) {
  to_longest_fini(&state(a)->longest, a->mem);
}

/* ---- the longest waits ---- */

static tb_rc sched_slot(struct to_analyses *a) {
  a->spans->longer_than[TO_GO_RUNNABLE] = -1;
  return to_longest_slot(&state(a)->longest, &a->windows);
}

static tb_rc sched_span(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_span *span) {
  struct to_sched *s = state(a);

  if (!span->until_known) {
    to_windows_sum(&a->windows, s->cut, span->from, span->until, 0, false);
    return TB_OK;
  }
  /* Spans come in slices: the bound may have risen since this wait ended. */
  if (span->until - span->from <= a->spans->longer_than[TO_GO_RUNNABLE]) return TB_OK;
  struct to_long_span wait = {
    .from = span->from, .until = span->until, .goroutine = span->id, .waker = span->by
  };
  TB_TRY(to_span_sums_find(&a->sums, gen, span, &wait.sum));
  a->spans->longer_than[TO_GO_RUNNABLE] = to_longest_note(&s->longest, &wait);
  return TB_OK;
}

/* Counts the growth of a total as time of the open slot. */
static void count_more(struct to_analyses *a, uint32_t series, uint64_t *counted, uint64_t total) {
  uint64_t more = total - *counted;

  *counted = total;
  if (more == 0) return;
  to_windows_sum(&a->windows, series, a->windows.last - (to_ns)more, a->windows.last, 0, false);
}

static tb_rc sched_settle(struct to_analyses *a) {
  struct to_sched *s = state(a);

  count_more(a, s->wasted, &s->wasted_ns, to_spans_wasted(a->spans));
  count_more(a, s->stopped, &s->stopped_ns, to_spans_stopped(a->spans));
  return TB_OK;
}

static struct to_string cause_text(enum to_cause cause) {
  const char *name = to_cause_name(cause);
  return (struct to_string){ name, strlen(name) };
}

static tb_rc add_stack(struct to_analyses *a, struct to_draft *d, unsigned by, uint32_t stack,
                       uint32_t series) {
  struct to_draft_value *row;

  if (stack == TO_STACK_OTHER)
    TB_TRY(to_draft_other(d, by, &row));
  else
    TB_TRY(to_draft_row(d, by, stack, &row));
  to_draft_stack(&row[KEY], to_stack_table_stack(a->stacks, stack));
  return to_draft_series(d, &row[KEY_LATENCY], series);
}

static tb_rc report_sums(struct to_analyses *a, struct to_draft *d) {
  const struct to_span_sum *sum = NULL;
  struct to_draft_value *row;

  while ((sum = to_span_sums_next(&a->sums, d->view, TO_GO_RUNNABLE, sum)) != NULL) {
    TB_TRY(to_draft_series(d, to_draft_figure(d, LATENCY), sum->series));
    TB_TRY(to__waits_entry(a, d, BY_ENTRY, sum->entry, &row));
    TB_TRY(to_draft_series(d, &row[KEY_LATENCY], sum->series));
    TB_TRY(to_draft_row(d, BY_CAUSE, sum->why, &row));
    to_draft_text(&row[KEY], cause_text((enum to_cause)sum->why));
    TB_TRY(to_draft_series(d, &row[KEY_LATENCY], sum->series));
    TB_TRY(add_stack(a, d, BY_STACK, sum->stack, sum->series));
    if (to_sum_has_waker(sum->state, sum->why))
      TB_TRY(add_stack(a, d, BY_WAKER, sum->by_stack, sum->series));
  }
  return TB_OK;
}

static struct to_string why(const struct to_analyses *a, const struct to_span_sum *sum) {
  (void)a;
  return cause_text((enum to_cause)sum->why);
}

struct waiting {
  struct to_waits_now now;
  int64_t n;
};

static tb_rc add_waiting(void *self, const struct to_span *span) {
  struct waiting *w = self;

  if (span->kind != TO_SPAN_GOROUTINE || span->state != TO_GO_RUNNABLE) return TB_OK;
  w->n++;
  to__waits_now_note(&w->now,
                     &(struct to_wait_now){
                         .since = span->from,
                         .goroutine = span->id,
                         .waker = to_sum_has_waker(span->state, span->cause) ? span->by : TO_NONE,
                         .stack = span->stack,
                         .why = span->cause,
                         .known = span->from_known });
  return TB_OK;
}

static tb_rc add_now(struct to_analyses *a, struct to_draft *d, const struct to_wait_now *wait) {
  const struct to_callstack *stack;
  struct to_draft_value *row;

  TB_TRY(to__waits_now_row(a, d, WAITING_NOW, wait, cause_text((enum to_cause)wait->why), &row,
                           &stack));
  to_draft_number(&row[NOW_LOWER_BOUND], !wait->known);
  to_draft_stack(&row[NOW_STACK], stack);
  if (wait->waker != TO_NONE) to_draft_number(&row[NOW_WAKER], wait->waker);
  return TB_OK;
}

static tb_rc report_waiting(struct to_analyses *a, struct to_draft *d) {
  struct waiting w = { .n = 0 };

  TB_TRY(to__waits_now_begin(&w.now, d));
  TB_TRY(to_spans_open(a->spans, add_waiting, &w));
  to__waits_now_end(&w.now);
  for (size_t i = 0; i < w.now.n; i++) TB_TRY(add_now(a, d, &w.now.wait[i]));
  to_draft_number(to_draft_figure(d, WAITING), w.n);
  return TB_OK;
}

static double wasted_share(const struct to_analyses *a, const struct to_view *view) {
  double wall = (double)((uint64_t)view->until - (uint64_t)view->from);
  double wasted = (double)to_view_sum(view, state(a)->wasted).total_ns;

  return wall <= 0 ? 0 : wasted < wall ? wasted / wall : 1;
}

static tb_rc sched_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  int64_t stopped = (int64_t)to_view_sum(view, state(a)->stopped).total_ns;
  uint32_t cut = state(a)->cut;

  TB_TRY(report_sums(a, d));
  TB_TRY(to__waits_longest(a, d, LONGEST_WAITS, &state(a)->longest, why));
  TB_TRY(report_waiting(a, d));
  to_draft_share(to_draft_figure(d, WASTED), wasted_share(a, view));
  to_draft_number(to_draft_figure(d, STOPPED), stopped < 0 ? INT64_MAX : stopped);
  to_draft_number(to_draft_figure(d, CUT), (int64_t)to_view_sum(view, cut).count);
  return TB_OK;
}

const struct to_analysis_ops to__analysis_sched = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .thins = true,
  .state_bytes = sizeof(struct to_sched),
  .spans = TO_WANT_GO(RUNNABLE) | TO_WANT_WASTE,
  .wants = TO_WANT(RANGE) | TO_WANT_STATES,
  .init = sched_init,
  .fini = sched_fini,
  .span = sched_span,
  .slot = sched_slot,
  .mark = sched_slot,
  .settle = sched_settle,
  .report = sched_report,
};
