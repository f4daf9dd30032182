/* SPDX-License-Identifier: Apache-2.0 */
/* Time in system calls, by stack.
 *
 * A call is counted when it ends, with the stack it began with. It has lost its P if it ends with GoSyscallEndBlocked, or
 * if the trace shows the loss. A call whose begin was not seen is a lower bound: it counts from the event that first
 * stated it.
 *
 * Most calls are counted while spans are made (online/spans/calls.h); only the others become spans, about 8 ns each. 80 bytes a
 * stack and tally. */
#include <string.h>

#include "online/analysis/analysis_state.h"

struct to_syscall {
  uint32_t born, died; /* series */
  struct to_calls calls;
  struct tb_map stated;   /* by goroutine: time of the first status in a call without a begin */
  struct tb_map reported; /* lives whose call was reported to the watch as TO_SYSCALL_LONG */
};

static struct to_syscall *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_SYSCALL];
}

enum { BLOCKED_AFTER, OPTIONS };
static const struct to_field option[OPTIONS] = {
  [BLOCKED_AFTER] = { "blocked_after_ns", TO_VALUE_NS,
                      .about = "A call that is open for this long counts as blocked." },
};
enum { CALLS, BLOCKED, IDLE, OPEN, BORN, DIED, FIGURES };
static const struct to_field figure[FIGURES] = {
  [CALLS] = { "calls", TO_VALUE_DISTRIBUTION,
              .about = "System calls that ended, idle ones left out." },
  [BLOCKED] = { "blocked", TO_VALUE_DISTRIBUTION,
                .about = "System calls that took so long that they lost their P, idle ones left "
                         "out.",
                .metric = "trace_blocked_syscall_seconds" },
  [IDLE] = { "idle", TO_VALUE_DISTRIBUTION,
             .about = "System calls that only waited for work, or were our own agent's." },
  [OPEN] = { "open", TO_VALUE_COUNT, .about = "Calls that are open now, blocked or not.",
             .over_time = TO_OVER_LAST },
  [BORN] = { "born", TO_VALUE_COUNT, .about = "Goroutines that began in a call (cgo callbacks)." },
  [DIED] = { "died", TO_VALUE_COUNT, .about = "Goroutines that ended in a call." },
};
enum {
  NOW_GOROUTINE,
  NOW_THREAD,
  NOW_START,
  NOW_AGE,
  NOW_LOST_PROC,
  NOW_LOWER_BOUND,
  NOW_STACK,
  NOW_COLUMNS
};
static const struct to_field now_column[NOW_COLUMNS] = {
  [NOW_GOROUTINE] = { "goroutine", TO_VALUE_ID },
  [NOW_THREAD] = { "thread", TO_VALUE_ID },
  [NOW_START] = { "start_ns", TO_VALUE_TIME },
  [NOW_AGE] = { "age_ns", TO_VALUE_NS },
  [NOW_LOST_PROC] = { "lost_proc", TO_VALUE_FLAG,
                      .about = "The call lost its P; 0: it has only been open for long." },
  [NOW_LOWER_BOUND] = { "lower_bound", TO_VALUE_FLAG,
                        .about = "It began before the first sync: it is older than its age." },
  [NOW_STACK] = { "stack", TO_VALUE_STACK },
};
enum { STACK, STACK_BLOCKED, STACK_CALLS, STACK_IDLE, STACK_COLUMNS };
static const struct to_field stack_column[STACK_COLUMNS] = {
  [STACK] = { "stack", TO_VALUE_STACK },
  [STACK_BLOCKED] = { "blocked", TO_VALUE_DISTRIBUTION, .about = "Calls that lost their P." },
  [STACK_CALLS] = { "calls", TO_VALUE_DISTRIBUTION, .about = "All calls." },
  [STACK_IDLE] = { "idle", TO_VALUE_FLAG,
                   .about = "These calls wait for work, or are our own agent's: the figures calls "
                            "and blocked leave them out." },
};
enum { BLOCKED_NOW, BY_STACK, IDLE_NOW, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BLOCKED_NOW] = { .name = "blocked_now",
                    .about = "Blocked now",
                    .order_about = "oldest first",
                    .keys = 2,
                    .columns = NOW_COLUMNS,
                    .column = now_column,
                    .order = { { NOW_AGE + 1 }, { NOW_THREAD + 1, .rising = true } },
                    .is_list = true,
                    .is_now = true },
  [BY_STACK] = { .name = "by_stack",
                 .about = "By stack",
                 .order_about = "most blocked time first, idle ones last",
                 .keys = 1,
                 .columns = STACK_COLUMNS,
                 .column = stack_column,
                 .order = { { STACK_IDLE + 1, .rising = true },
                            { STACK_BLOCKED + 1 },
                            { STACK_CALLS + 1 } } },
  [IDLE_NOW] = { .name = "idle_now",
                 .about = "Idle now: long calls that are only waiting for work",
                 .order_about = "oldest first",
                 .keys = 2,
                 .columns = NOW_COLUMNS,
                 .column = now_column,
                 .order = { { NOW_AGE + 1 }, { NOW_THREAD + 1, .rising = true } },
                 .is_list = true,
                 .is_now = true },
};

/* After a call was reported, every call is passed to syscall_span(), to find its end. */
static void bound_calls(struct to_analyses *a) {
  to_ns bound = a->watch.span != NULL ? a->watch.syscall_ns - 1 : INT64_MAX;

  a->spans->longer_than[TO_GO_SYSCALL] = state(a)->reported.count > 0 ? -1 : bound;
}

static tb_rc syscall_init(struct to_analyses *a) {
  struct to_syscall *s = state(a);

  tb_map_init(&s->stated, a->mem, tb_seed());
  tb_map_init(&s->reported, a->mem, tb_seed());
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->born));
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->died));
  TB_TRY(to_calls_init(&s->calls, a->mem, &a->windows, a->stacks));
  a->spans->calls = &s->calls;
  bound_calls(a);
  return TB_OK;
}

static void syscall_fini(struct to_analyses *a) {
  struct to_syscall *s = state(a);

  tb_map_fini(&s->stated);
  tb_map_fini(&s->reported);
  to_calls_fini(&s->calls);
}

static to_ns begin_of(const struct to_syscall *s, const struct to_span *span) {
  const uint64_t *stated;

  if (TB_LIKELY(span->from_known)) return span->from;
  stated = tb_map_find(&s->stated, (uint64_t)span->id);
  return stated != NULL ? (to_ns)*stated : span->from;
}

/* Out of line: few calls need it. */
static __attribute__((noinline)) tb_rc report_call(struct to_analyses *a,
                                                   const struct to_generation *gen,
                                                   const struct to_span *span,
                                                   enum to_watched_event what) {
  const struct to_syscall *s = state(a);
  uint32_t stack;
  bool idle;

  TB_TRY(to_spans_stack(a->spans, gen, span->stack, &stack));
  TB_TRY(to_idle_ask(&a->idle, stack, TO_IDLE_CALL, &idle));
  struct to_watched watched = { .what = what,
                                .begin = begin_of(s, span),
                                .end = span->until,
                                .goroutine = span->id,
                                .thread = span->thread,
                                .blocked = span->lost_proc,
                                .lower_bound = !span->from_known,
                                .reported = tb_map_find(&s->reported, span->life) != NULL,
                                .idle = idle,
                                .stack = to_stack_table_stack(a->stacks, stack) };
  a->watch.span(a->watch.self, &watched);
  return TB_OK;
}

static tb_rc end_call(struct to_analyses *a, const struct to_generation *gen,
                      const struct to_span *span) {
  struct to_syscall *s = state(a);
  to_ns begin = begin_of(s, span);
  uint32_t series;

  if (a->watch.span != NULL && (span->lost_proc || span->until - begin >= a->watch.syscall_ns))
    TB_TRY(report_call(a, gen, span, TO_SYSCALL_ENDED));
  if (TB_UNLIKELY(!span->from_known)) tb_map_remove(&s->stated, (uint64_t)span->id);
  if (TB_UNLIKELY(s->reported.count > 0 && tb_map_remove(&s->reported, span->life))) bound_calls(a);
  if (to_spans_thins(a->spans)) return TB_OK;
  TB_TRY(to_calls_find(&s->calls, gen, span->stack, &series));
  return to_windows_add(&a->windows, series + span->lost_proc, begin, span->until, 0,
                        !span->from_known);
}

static tb_rc syscall_span(struct to_analyses *a, const struct to_generation *gen,
                          const struct to_span *span) {
  if (!span->until_known) return TB_OK; /* cut by a new epoch */
  if (span->kind == TO_SPAN_GOROUTINE) return end_call(a, gen, span);
  if (a->watch.span == NULL || !span->lost_proc) return TB_OK;
  return report_call(a, gen, span, TO_SYSCALL_BLOCKED);
}

static tb_rc note_stated(struct to_syscall *s, const struct to_event *ev) {
  uint64_t *place;
  bool fresh;

  if ((uint32_t)ev->args[2] != TW_GO_SYSCALL || (int64_t)ev->args[1] == TO_NONE) return TB_OK;
  TB_TRY(tb_map_put(&s->stated, ev->args[0], &place, &fresh));
  if (fresh) *place = (uint64_t)ev->time;
  return TB_OK;
}

static tb_rc syscall_event(struct to_analyses *a, const struct to_generation *gen,
                           const struct to_event *ev) {
  struct to_syscall *s = state(a);

  (void)gen;
  switch (ev->type) {
  case TW_EV_GO_CREATE_SYSCALL:
    to_windows_sum(&a->windows, s->born, ev->time, ev->time, 0, false);
    return TB_OK;
  case TW_EV_GO_DESTROY_SYSCALL:
    to_windows_sum(&a->windows, s->died, ev->time, ev->time, 0, false);
    return TB_OK;
  default: return note_stated(s, ev);
  }
}

static void syscall_epoch(struct to_analyses *a) {
  tb_map_clear(&state(a)->stated);
  tb_map_clear(&state(a)->reported);
  bound_calls(a);
}

struct overdue {
  struct to_analyses *a;
  to_ns age_ns;
};

static tb_rc report_overdue(void *self, const struct to_span *span) {
  const struct overdue *overdue = self;
  struct to_syscall *s = state(overdue->a);
  uint64_t *place;
  bool fresh;

  if (span->kind != TO_SPAN_GOROUTINE || span->state != TO_GO_SYSCALL) return TB_OK;
  if (span->until - begin_of(s, span) < overdue->age_ns) return TB_OK;
  if (tb_map_find(&s->reported, span->life) != NULL) return TB_OK;
  TB_TRY(report_call(overdue->a, overdue->a->generation, span, TO_SYSCALL_LONG));
  TB_TRY(tb_map_put(&s->reported, span->life, &place, &fresh));
  bound_calls(overdue->a);
  return TB_OK;
}

static tb_rc syscall_overdue(struct to_analyses *a, to_ns age_ns) {
  struct overdue overdue = { a, age_ns };

  return to_spans_open(a->spans, report_overdue, &overdue);
}

static tb_rc add_calls(struct to_draft *d, struct to_draft_value *row, uint32_t series, bool idle) {
  struct to_draft_value *all = to_draft_figure(d, idle ? IDLE : CALLS);

  TB_TRY(to_draft_series(d, &row[STACK_CALLS], series));
  TB_TRY(to_draft_series(d, &row[STACK_CALLS], series + 1));
  TB_TRY(to_draft_series(d, &row[STACK_BLOCKED], series + 1));
  TB_TRY(to_draft_series(d, all, series));
  TB_TRY(to_draft_series(d, all, series + 1));
  return idle ? TB_OK : to_draft_series(d, to_draft_figure(d, BLOCKED), series + 1);
}

static tb_rc report_stacks(struct to_analyses *a, struct to_draft *d) {
  const struct to_syscall *s = state(a);
  struct to_draft_value *row;
  bool idle;

  for (uint32_t i = 0; i < s->calls.of_stacks; i++) {
    uint32_t series = s->calls.of_stack[i];
    if (series == 0) continue;
    if (to_view_cell(d->view, series) == NULL && to_view_cell(d->view, series + 1) == NULL)
      continue;
    if (i == TO_STACK_OTHER)
      TB_TRY(to_draft_other(d, BY_STACK, &row));
    else
      TB_TRY(to_draft_new_row(d, BY_STACK, &row));
    to_draft_stack(&row[STACK], to_stack_table_stack(a->stacks, i));
    TB_TRY(to_idle_ask(&a->idle, i, TO_IDLE_CALL, &idle));
    if (i != TO_STACK_OTHER) to_draft_number(&row[STACK_IDLE], idle);
    TB_TRY(add_calls(d, row, series, idle));
  }
  return TB_OK;
}

struct open_calls {
  struct to_analyses *a;
  struct to_draft *draft;
  int64_t n;
};

static tb_rc add_open(void *self, const struct to_span *span) {
  struct open_calls *open = self;
  struct to_draft_value *row;
  uint32_t stack;
  bool idle;

  if (span->kind != TO_SPAN_GOROUTINE || span->state != TO_GO_SYSCALL) return TB_OK;
  to_ns begin = begin_of(state(open->a), span), now = span->until;
  to_ns age = now > begin ? now - begin : 0;
  open->n++;
  if (!span->lost_proc && age < open->a->config.blocked_after_ns) return TB_OK;
  TB_TRY(to_spans_stack(open->a->spans, open->a->generation, span->stack, &stack));
  TB_TRY(to_idle_ask(&open->a->idle, stack, TO_IDLE_CALL, &idle));
  TB_TRY(to_draft_new_row(open->draft, idle ? IDLE_NOW : BLOCKED_NOW, &row));
  to_draft_number(&row[NOW_GOROUTINE], span->id);
  to_draft_number(&row[NOW_THREAD], span->thread);
  to_draft_number(&row[NOW_START], begin);
  to_draft_number(&row[NOW_AGE], age);
  to_draft_number(&row[NOW_LOST_PROC], span->lost_proc);
  to_draft_number(&row[NOW_LOWER_BOUND], !span->from_known);
  to_draft_stack(&row[NOW_STACK], to_stack_table_stack(open->a->stacks, stack));
  return TB_OK;
}

static tb_rc syscall_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  struct open_calls open = { .a = a, .draft = d };
  const struct to_syscall *s = state(a);

  to_draft_number(&d->option[BLOCKED_AFTER], a->config.blocked_after_ns);
  to_draft_number(to_draft_figure(d, BORN), (int64_t)to_view_sum(view, s->born).count);
  to_draft_number(to_draft_figure(d, DIED), (int64_t)to_view_sum(view, s->died).count);
  TB_TRY(report_stacks(a, d));
  TB_TRY(to_spans_open(a->spans, add_open, &open));
  to_draft_number(to_draft_figure(d, OPEN), open.n);
  return TB_OK;
}

const struct to_analysis_ops to__analysis_syscall = {
  .schema = { .options = OPTIONS,
              .figures = FIGURES,
              .tables = TABLES,
              .option = option,
              .figure = figure,
              .table = table },
  .thins = true,
  .state_bytes = sizeof(struct to_syscall),
  .spans = TO_WANT_GO(SYSCALL) | TO_WANT(SYSCALL), /* the latter only with a watch */
  .events = TO_ANALYSIS_EVENT(GO_CREATE_SYSCALL) | TO_ANALYSIS_EVENT(GO_DESTROY_SYSCALL) |
            TO_ANALYSIS_EVENT(GO_STATUS) | TO_ANALYSIS_EVENT(GO_STATUS_STACK),
  .init = syscall_init,
  .fini = syscall_fini,
  .span = syscall_span,
  .event = syscall_event,
  .epoch = syscall_epoch,
  .watched = bound_calls,
  .overdue = syscall_overdue,
  .report = syscall_report,
};
