/* SPDX-License-Identifier: Apache-2.0 */
/* Where goroutines wait, for what, and which goroutine ends it.
 *
 * Waits are counted in the shared sums (online/spans/sums.h), which recognise idle ones (online/spans/stacks/idle.h); reports
 * add the sums up. This file keeps only the longest waits of each kind. Each reason has a bound of its own, the lowest of the
 * lists that take the reason: so a list with few waits does not let short waits of other reasons through. */
#include "online/analysis/kinds/block.h"

#include <string.h>

#include "online/analysis/kinds/before.h"
#include "online/analysis/kinds/waits.h"

struct to_block {
  struct {
    uint32_t cut; /* series */
    to_ns bound;  /* only longer waits enter the list */
    struct to_longest longest;
  } part[TO__BLOCK_PARTS];
  uint8_t wait_class[TO_REASONS_MAX]; /* by reason */
  unsigned own_reasons;               /* of the stream, when wait_class was filled */
};

static struct to_block *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_BLOCK];
}

static bool takes_class(enum to__block_part part, enum to_wait_class its) {
  switch (part) {
  case TO__BLOCK_SYNC: return its == TO_WAIT_SYNC || its == TO_WAIT_CHAN;
  case TO__BLOCK_NET: return its == TO_WAIT_NET;
  default: return true;
  }
}

static bool takes(const struct to_analyses *a, enum to__block_part part, unsigned reason) {
  return takes_class(part, to_spans_reason(a->spans, reason)->wait_class);
}

enum { BLOCKED, IDLE, WAITING, WAITING_IDLE, CUT };
const struct to_field to__block_figure[TO__BLOCK_FIGURES] = {
  [BLOCKED] = { "blocked", TO_VALUE_DISTRIBUTION,
                .about = "How long goroutines waited, idle ones left out." },
  [IDLE] = { "idle", TO_VALUE_DISTRIBUTION,
             .about = "How long goroutines waited that had nothing to do." },
  [WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Goroutines that wait now, idle ones left out.",
                .over_time = TO_OVER_LAST },
  [WAITING_IDLE] = { "waiting_idle", TO_VALUE_COUNT,
                     .about = "Goroutines that have nothing to do now.",
                     .over_time = TO_OVER_LAST },
  [CUT] = { "cut", TO_VALUE_COUNT,
            .about = "Waits that a hole in the stream cut off: they are in no other figure." },
};

#define A_GOROUTINE "goroutine", TO_VALUE_ID
#define A_REASON    "reason", TO_VALUE_TEXT
enum { NOW_GOROUTINE, NOW_AGE, NOW_REASON, NOW_IDLE, NOW_LOWER_BOUND, NOW_STACK, NOW_COLUMNS };
static const struct to_field now_column[NOW_COLUMNS] = {
  [NOW_GOROUTINE] = { A_GOROUTINE },
  [NOW_AGE] = { "age_ns", TO_VALUE_NS },
  [NOW_REASON] = { A_REASON, .about = "What it waits for, as the trace says it." },
  [NOW_IDLE] = { "idle", TO_VALUE_FLAG, .about = "It has nothing to do." },
  [NOW_LOWER_BOUND] = { "lower_bound", TO_VALUE_FLAG,
                        .about = "It waits for longer: since before the first sync." },
  [NOW_STACK] = { "stack", TO_VALUE_STACK, .about = "Where it waits." },
};
static const struct to_field long_column[TO_LONG_COLUMNS] = {
  [TO_LONG_GOROUTINE] = { A_GOROUTINE },
  [TO_LONG_BEGIN] = { "start_ns", TO_VALUE_TIME },
  [TO_LONG_LENGTH] = { "waited_ns", TO_VALUE_NS },
  [TO_LONG_WHY] = { A_REASON, .about = "What it waited for, as the trace says it." },
  [TO_LONG_WAKER] = { "waker", TO_VALUE_ID, .about = "The goroutine that ended the wait." },
  [TO_LONG_STACK] = { "stack", TO_VALUE_STACK, .about = "Where it waited." },
  [TO_LONG_WAKER_STACK] = { "waker_stack", TO_VALUE_STACK, .about = "Where the wait was ended." },
};
#define BLOCKED_COLUMN                                                                             \
  { "blocked", TO_VALUE_DISTRIBUTION, .about = "Waits that ended, idle ones left out." }
#define IDLE_COLUMN                                                                                \
  { "idle_ns", TO_VALUE_NS, .about = "Time waited with nothing to do." }
enum {
  REASON,
  REASON_ID,
  REASON_CLASS,
  REASON_BLOCKED,
  REASON_BLOCKED_NS,
  REASON_IDLE,
  REASON_COLUMNS
};
#define REASON_COLUMN(its_metric)                                                                  \
  {                                                                                                \
    [REASON] = { A_REASON, .about = "As the trace says it." },                                     \
    [REASON_ID] = { "id", TO_VALUE_TEXT, .about = "One name for all versions of Go.",              \
                    .label = "reason" },                                                           \
    [REASON_CLASS] = { "class", TO_VALUE_TEXT, .about = "sync, chan, net, sleep, gc, other." },    \
    [REASON_BLOCKED] = BLOCKED_COLUMN,                                                             \
    [REASON_BLOCKED_NS] = { "blocked_ns", TO_VALUE_NS,                                             \
                            .about = "Time that goroutines waited, idle ones left out.",           \
                            .metric = (its_metric) },                                              \
    [REASON_IDLE] = IDLE_COLUMN,                                                                   \
  }
static const struct to_field reason_column[REASON_COLUMNS] = REASON_COLUMN(NULL);
static const struct to_field reason_metric_column[REASON_COLUMNS] =
    REASON_COLUMN("trace_block_seconds_total");
enum { STACK, STACK_REASON, STACK_BLOCKED, STACK_IDLE, STACK_COLUMNS };
static const struct to_field stack_column[STACK_COLUMNS] = {
  [STACK] = { "stack", TO_VALUE_STACK, .about = "Where goroutines wait." },
  [STACK_REASON] = { A_REASON, .about = "What they wait for." },
  [STACK_BLOCKED] = BLOCKED_COLUMN,
  [STACK_IDLE] = IDLE_COLUMN,
};
enum { WAKER_STACK, WAKER_WAKER, WAKER_BLOCKED, WAKER_IDLE, WAKER_COLUMNS };
static const struct to_field waker_column[WAKER_COLUMNS] = {
  [WAKER_STACK] = { "stack", TO_VALUE_STACK, .about = "Where goroutines wait." },
  [WAKER_WAKER] = { "waker_stack", TO_VALUE_STACK,
                    .about = "Where the wait is ended; empty: by the runtime (network, timers)." },
  [WAKER_BLOCKED] = BLOCKED_COLUMN,
  [WAKER_IDLE] = IDLE_COLUMN,
};
enum { ENTRY, ENTRY_BLOCKED, ENTRY_IDLE, ENTRY_COLUMNS };
static const struct to_field entry_column[ENTRY_COLUMNS] = {
  [ENTRY] = { "entry", TO_VALUE_TEXT, .about = "The function that the goroutine began with." },
  [ENTRY_BLOCKED] = BLOCKED_COLUMN,
  [ENTRY_IDLE] = IDLE_COLUMN,
};

enum { WAITING_NOW, LONGEST_WAITS, BY_REASON, BY_STACK, BY_WAKER, BY_ENTRY };
#define BY_KEY(its_name, its_about, its_keys, its_columns, its_column, its_blocked, its_idle)      \
  {                                                                                                \
    .name = its_name, .about = its_about, .order_about = "most blocked time first",                \
    .keys = its_keys, .columns = its_columns, .column = its_column, .order = {                     \
      { (its_blocked) + 1 },                                                                       \
      { (its_idle) + 1 }                                                                           \
    }                                                                                              \
  }
#define BLOCK_TABLES(its_reason_column)                                                            \
  {                                                                                                \
    [WAITING_NOW] = { .name = "waiting_now",                                                       \
                      .about = "Waiting now",                                                      \
                      .order_about = "oldest first, idle ones last",                               \
                      .keys = 1,                                                                   \
                      .columns = NOW_COLUMNS,                                                      \
                      .column = now_column,                                                        \
                      .order = { { NOW_IDLE + 1, .rising = true },                                 \
                                 { NOW_AGE + 1 },                                                  \
                                 { NOW_GOROUTINE + 1, .rising = true } },                          \
                      .is_list = true,                                                             \
                      .is_now = true },                                                            \
    [LONGEST_WAITS] = { .name = "longest",                                                         \
                        .about = "Longest waits, idle ones left out",                              \
                        .order_about = "longest first",                                            \
                        .keys = 2,                                                                 \
                        .columns = TO_LONG_COLUMNS,                                                \
                        .column = long_column,                                                     \
                        .order = { { TO_LONG_LENGTH + 1 },                                         \
                                   { TO_LONG_BEGIN + 1, .rising = true } },                        \
                        .is_list = true },                                                         \
    [BY_REASON] = BY_KEY("by_reason", "By reason", 3, REASON_COLUMNS, its_reason_column,           \
                         REASON_BLOCKED, REASON_IDLE),                                             \
    [BY_STACK] = BY_KEY("by_stack", "By stack and reason", 2, STACK_COLUMNS, stack_column,         \
                        STACK_BLOCKED, STACK_IDLE),                                                \
    [BY_WAKER] = BY_KEY("by_waker", "By stack and the waker's stack", 2, WAKER_COLUMNS,            \
                        waker_column, WAKER_BLOCKED, WAKER_IDLE),                                  \
    [BY_ENTRY] = BY_KEY("by_entry", "By entry function", 1, ENTRY_COLUMNS, entry_column,           \
                        ENTRY_BLOCKED, ENTRY_IDLE),                                                \
  }
const struct to_table_schema to__block_table[TO__BLOCK_TABLES] = BLOCK_TABLES(reason_column);
/* Only block has the metric: sync and net are parts of it. */
static const struct to_table_schema table[TO__BLOCK_TABLES] = BLOCK_TABLES(reason_metric_column);

/* ---- the longest waits ---- */

static void learn_classes(struct to_analyses *a) {
  struct to_block *s = state(a);

  for (unsigned reason = 0; reason < TO_REASONS_MAX; reason++)
    s->wait_class[reason] = (uint8_t)to_spans_reason(a->spans, reason)->wait_class;
  s->own_reasons = a->spans->known_reasons.n;
}

static void set_bounds(struct to_analyses *a) {
  const struct to_block *s = state(a);
  to_ns bound[TO_WAIT_CLASSES];

  if (s->own_reasons != a->spans->known_reasons.n) learn_classes(a);
  for (unsigned its = 0; its < TO_WAIT_CLASSES; its++) {
    bound[its] = s->part[TO__BLOCK_ALL].bound;
    for (unsigned p = 0; p < TO__BLOCK_PARTS; p++)
      if (takes_class((enum to__block_part)p, (enum to_wait_class)its) &&
          s->part[p].bound < bound[its])
        bound[its] = s->part[p].bound;
  }
  for (unsigned reason = 0; reason < TO_REASONS_MAX; reason++)
    a->spans->waits_longer_than[reason] = bound[s->wait_class[reason]];
}

static tb_rc block_init(struct to_analyses *a) {
  learn_classes(a);
  for (unsigned p = 0; p < TO__BLOCK_PARTS; p++)
    TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->part[p].cut));
  return TB_OK;
}

static void block_fini(struct to_analyses *a) {
  for (unsigned p = 0; p < TO__BLOCK_PARTS; p++)
    to_longest_fini(&state(a)->part[p].longest, a->mem);
}

static tb_rc block_slot(struct to_analyses *a) {
  for (unsigned p = 0; p < TO__BLOCK_PARTS; p++) {
    state(a)->part[p].bound = -1;
    TB_TRY(to_longest_slot(&state(a)->part[p].longest, &a->windows));
  }
  set_bounds(a);
  return TB_OK;
}

static tb_rc note(struct to_analyses *a, const struct to_generation *gen,
                  const struct to_span *span) {
  struct to_block *s = state(a);
  bool rose = false;
  struct to_long_span wait = {
    .from = span->from, .until = span->until, .goroutine = span->id, .waker = span->by
  };

  TB_TRY(to_span_sums_find(&a->sums, gen, span, &wait.sum));
  if (a->sums.sum[wait.sum].idle) return TB_OK;
  for (unsigned p = 0; p < TO__BLOCK_PARTS; p++) {
    if (!takes(a, (enum to__block_part)p, span->reason)) continue;
    if (span->until - span->from <= s->part[p].bound) continue;
    to_ns bound = to_longest_note(&s->part[p].longest, &wait);
    rose = rose || bound > s->part[p].bound;
    s->part[p].bound = bound;
  }
  if (rose || s->own_reasons != a->spans->known_reasons.n) set_bounds(a);
  return TB_OK;
}

static tb_rc block_span(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_span *span) {
  if (span->until_known) {
    /* Spans come in slices: the bound may have risen since this wait ended. */
    if (span->until - span->from <= a->spans->waits_longer_than[span->reason]) return TB_OK;
    return note(a, gen, span);
  }
  for (unsigned p = 0; p < TO__BLOCK_PARTS; p++)
    if (takes(a, (enum to__block_part)p, span->reason))
      to_windows_sum(&a->windows, state(a)->part[p].cut, span->from, span->until, 0, false);
  return TB_OK;
}

static struct to_string text_of(const char *text) {
  return (struct to_string){ text, strlen(text) };
}

static struct to_string reason_text(const struct to_analyses *a, unsigned reason) {
  const char *text = to_spans_reason(a->spans, reason)->text;
  return text_of(text != NULL ? text : "");
}

/* Adds to the row's blocked time or idle time. */
static tb_rc add_time(struct to_draft *d, const struct to_span_sum *sum,
                      struct to_draft_value *blocked, struct to_draft_value *idle) {
  int64_t so_far = idle->value.none ? 0 : idle->value.number;

  if (!sum->idle) {
    to_draft_number(idle, so_far);
    return to_draft_series(d, blocked, sum->series);
  }
  to_draft_number(idle, so_far + (int64_t)to_view_sum(d->view, sum->series).total_ns);
  return TB_OK;
}

static tb_rc add_reason(const struct to_analyses *a, struct to_draft *d,
                        const struct to_span_sum *sum) {
  const struct to_reason_info *info = to_spans_reason(a->spans, sum->why);
  struct to_draft_value *row;

  TB_TRY(to_draft_row(d, BY_REASON, sum->why, &row));
  to_draft_text(&row[REASON], reason_text(a, sum->why));
  to_draft_text(&row[REASON_ID], text_of(info->id));
  to_draft_text(&row[REASON_CLASS], text_of(to_wait_class_name(info->wait_class)));
  TB_TRY(add_time(d, sum, &row[REASON_BLOCKED], &row[REASON_IDLE]));
  to_draft_number(&row[REASON_BLOCKED_NS],
                  (int64_t)row[REASON_BLOCKED].sum->distribution.sum.total_ns);
  return TB_OK;
}

static tb_rc add_stack(struct to_analyses *a, struct to_draft *d, const struct to_span_sum *sum) {
  struct to_draft_value *row;

  if (sum->stack == TO_STACK_OTHER)
    TB_TRY(to_draft_other(d, BY_STACK, &row));
  else
    TB_TRY(to_draft_row(d, BY_STACK, (uint64_t)sum->why << 32 | sum->stack, &row));
  to_draft_stack(&row[STACK], to_stack_table_stack(a->stacks, sum->stack));
  if (sum->stack != TO_STACK_OTHER) to_draft_text(&row[STACK_REASON], reason_text(a, sum->why));
  return add_time(d, sum, &row[STACK_BLOCKED], &row[STACK_IDLE]);
}

static tb_rc add_waker(struct to_analyses *a, struct to_draft *d, const struct to_span_sum *sum) {
  bool is_other = sum->stack == TO_STACK_OTHER || sum->by_stack == TO_STACK_OTHER;
  struct to_draft_value *row;

  if (is_other)
    TB_TRY(to_draft_other(d, BY_WAKER, &row));
  else
    TB_TRY(to_draft_row(d, BY_WAKER, (uint64_t)sum->by_stack << 32 | sum->stack, &row));
  to_draft_stack(&row[WAKER_STACK], is_other ? NULL : to_stack_table_stack(a->stacks, sum->stack));
  to_draft_stack(&row[WAKER_WAKER],
                 is_other ? NULL : to_stack_table_stack(a->stacks, sum->by_stack));
  return add_time(d, sum, &row[WAKER_BLOCKED], &row[WAKER_IDLE]);
}

static tb_rc report_sums(struct to_analyses *a, struct to_draft *d, enum to__block_part part) {
  const struct to_span_sum *sum = NULL;
  struct to_draft_value *row;

  while ((sum = to_span_sums_next(&a->sums, d->view, TO_GO_WAITING, sum)) != NULL) {
    if (!takes(a, part, sum->why)) continue;
    TB_TRY(to_draft_series(d, to_draft_figure(d, sum->idle ? IDLE : BLOCKED), sum->series));
    TB_TRY(add_reason(a, d, sum));
    TB_TRY(add_stack(a, d, sum));
    TB_TRY(add_waker(a, d, sum));
    TB_TRY(to__waits_entry(a, d, BY_ENTRY, sum->entry, &row));
    TB_TRY(add_time(d, sum, &row[ENTRY_BLOCKED], &row[ENTRY_IDLE]));
  }
  return TB_OK;
}

/* ---- lists ---- */

static struct to_string why(const struct to_analyses *a, const struct to_span_sum *sum) {
  return reason_text(a, sum->why);
}

struct waiting {
  struct to_analyses *a;
  enum to__block_part part;
  int64_t n[2]; /* blocked, idle */
  struct to_waits_now now;
};

static tb_rc add_waiting(void *self, const struct to_span *span) {
  struct waiting *w = self;
  struct to_analyses *a = w->a;
  uint32_t stack;
  bool idle;

  if (span->kind != TO_SPAN_GOROUTINE || span->state != TO_GO_WAITING) return TB_OK;
  if (!takes(a, w->part, span->reason)) return TB_OK;
  TB_TRY(to_spans_stack(a->spans, a->generation, span->stack, &stack));
  struct to_string entry = to_span_sums_entry_at(&a->sums, span->slot);
  TB_TRY(to_idle_ask_in(&a->idle, stack, span->reason, entry, &idle));
  w->n[idle]++;
  to__waits_now_note(&w->now, &(struct to_wait_now){ .since = span->from,
                                                     .goroutine = span->id,
                                                     .waker = TO_NONE,
                                                     .stack = TO_STACK_KEPT | stack,
                                                     .why = span->reason,
                                                     .idle = idle,
                                                     .known = span->from_known });
  return TB_OK;
}

static tb_rc add_now(struct to_analyses *a, struct to_draft *d, const struct to_wait_now *wait) {
  const struct to_callstack *stack;
  struct to_draft_value *row;

  TB_TRY(to__waits_now_row(a, d, WAITING_NOW, wait, reason_text(a, wait->why), &row, &stack));
  to_draft_number(&row[NOW_IDLE], wait->idle);
  to_draft_number(&row[NOW_LOWER_BOUND], !wait->known);
  to_draft_stack(&row[NOW_STACK], stack);
  return TB_OK;
}

static tb_rc report_waiting(struct to_analyses *a, struct to_draft *d, enum to__block_part part) {
  struct waiting w = { .a = a, .part = part };

  TB_TRY(to__waits_now_begin(&w.now, d));
  TB_TRY(to_spans_open(a->spans, add_waiting, &w));
  to__waits_now_end(&w.now);
  for (size_t i = 0; i < w.now.n; i++) TB_TRY(add_now(a, d, &w.now.wait[i]));
  to_draft_number(to_draft_figure(d, WAITING), w.n[false]);
  to_draft_number(to_draft_figure(d, WAITING_IDLE), w.n[true]);
  return TB_OK;
}

tb_rc to__block_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d,
                       enum to__block_part part) {
  uint32_t cut = state(a)->part[part].cut;

  TB_TRY(report_sums(a, d, part));
  TB_TRY(to__waits_longest(a, d, LONGEST_WAITS, &state(a)->part[part].longest, why));
  TB_TRY(report_waiting(a, d, part));
  to_draft_number(to_draft_figure(d, CUT), (int64_t)to_view_sum(view, cut).count);
  return TB_OK;
}

static tb_rc block_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  TB_TRY(to__before_say(a, d));
  return to__block_report(a, view, d, TO__BLOCK_ALL);
}

const struct to_analysis_ops to__analysis_block = {
  .schema = { .figures = TO__BLOCK_FIGURES,
              .tables = TO__BLOCK_TABLES,
              .figure = to__block_figure,
              .table = table },
  .thins = true,
  .state_bytes = sizeof(struct to_block),
  .spans = TO_WANT_GO(WAITING),
  .init = block_init,
  .fini = block_fini,
  .span = block_span,
  .slot = block_slot,
  .mark = block_slot,
  .report = block_report,
};
