/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of the program (runtime/trace.NewTask; ta_task_begin): how long those of each type took.
 *
 * Only regions show which goroutines serve a task: the times beside a type are what goroutines did in regions of its
 * tasks. A region's times are counted when it ends, even if its task is still open. */
#include "online/analysis/analysis_state.h"
#include "online/analysis/kinds/user_types.h"
#include "online/measure/longest.h"
#include "online/spans/stacks/library.h"

#define NO_TASKS                                                                                   \
  "This trace has no tasks. A Go program makes them with trace.NewTask (runtime/trace), a C "      \
  "program with ta_task_begin()."

/* Times of a task's regions until the task ends: only for a watch, and only of recent tasks. */
enum { DONE_KEPT = 256 };
struct task_done {
  uint64_t task;
  bool is_known;
  struct to_region_time time;
};

struct to_tasks {
  struct to_user_types types;
  struct task_done *done; /* by the task's low bits; NULL: there was no watch yet */
  struct to_longest longest;
  to_ns longer_than; /* only longer tasks enter longest */
};

static struct to_tasks *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_TASKS];
}

static const struct to_field figure[TO_USER_FIGURES] = {
  [TO_USER_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                        .about = "How long tasks took whose begin and end are in the trace.",
                        .metric = "trace_task_seconds" },
  [TO_USER_OPEN] = { "open", TO_VALUE_COUNT, .about = "Tasks that have begun and not ended.",
                     .metric = "trace_tasks_open", .over_time = TO_OVER_LAST },
  [TO_USER_BEGIN_UNKNOWN] = { "begin_unknown", TO_VALUE_COUNT,
                              .about =
                                  "Tasks that ended without a begin in the trace: they are in no "
                                  "latency." },
  [TO_USER_CUT] = { "cut", TO_VALUE_COUNT,
                    .about = "Tasks that a hole in the stream cut off: they are in no latency." },
};

static const struct to_field type_column[TO_TYPE_COLUMNS] = {
  TO_TYPE_FIELDS,
};
enum { NOW_TASK, NOW_TYPE, NOW_AGE, NOW_PARENT, NOW_GOROUTINE, NOW_STACK, NOW_COLUMNS };
static const struct to_field now_column[NOW_COLUMNS] = {
  [NOW_TASK] = { "task", TO_VALUE_ID },
  [NOW_TYPE] = { "type", TO_VALUE_TEXT },
  [NOW_AGE] = { "age_ns", TO_VALUE_NS },
  [NOW_PARENT] = { "parent", TO_VALUE_ID, .about = "The task that it is a part of." },
  [NOW_GOROUTINE] = { "goroutine", TO_VALUE_ID, .about = "The goroutine that began it." },
  [NOW_STACK] = { "stack", TO_VALUE_STACK, .about = "Where it began." },
};
enum { LONG_TASK, LONG_TYPE, LONG_BEGIN, LONG_LATENCY, LONG_GOROUTINE, LONG_STACK, LONG_COLUMNS };
static const struct to_field long_column[LONG_COLUMNS] = {
  [LONG_TASK] = { "task", TO_VALUE_ID },
  [LONG_TYPE] = { "type", TO_VALUE_TEXT },
  [LONG_BEGIN] = { "start_ns", TO_VALUE_TIME },
  [LONG_LATENCY] = { "latency_ns", TO_VALUE_NS },
  [LONG_GOROUTINE] = { "goroutine", TO_VALUE_ID, .about = "The goroutine that began it." },
  [LONG_STACK] = { "stack", TO_VALUE_STACK,
                   .about = "Where it began; if a library or tracehttp began it: where the program "
                            "last waited in it." },
};

enum { BY_TYPE, OPEN_NOW, SLOWEST, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BY_TYPE] = { .name = "by_type",
                .about = "By type, with what goroutines did in regions of such tasks",
                .order_about = "most time first",
                .keys = 1,
                .columns = TO_TYPE_COLUMNS,
                .column = type_column,
                .order = { { TO_TYPE_LATENCY + 1 }, { TO_TYPE_OPEN + 1 } } },
  [OPEN_NOW] = { .name = "open_now",
                 .about = "Tasks that are open now",
                 .order_about = "oldest first",
                 .keys = 1,
                 .columns = NOW_COLUMNS,
                 .column = now_column,
                 .order = { { NOW_AGE + 1 }, { NOW_TASK + 1, .rising = true } },
                 .is_list = true,
                 .is_now = true },
  [SLOWEST] = { .name = "slowest",
                .about = "Slowest tasks",
                .order_about = "longest first",
                .keys = 1,
                .columns = LONG_COLUMNS,
                .column = long_column,
                .order = { { LONG_LATENCY + 1 }, { LONG_BEGIN + 1, .rising = true } },
                .is_list = true },
};

static tb_rc tasks_init(struct to_analyses *a) {
  return to_user_types_init(&state(a)->types, &a->windows, a->config.stacks_max);
}

static void tasks_fini(struct to_analyses *a) {
  to_longest_fini(&state(a)->longest, a->mem);
  to_user_types_fini(&state(a)->types);
  if (state(a)->done != NULL)
    tb_mem_free(a->mem, state(a)->done, DONE_KEPT * sizeof(struct task_done));
}

static bool is_watched(const struct to_analyses *a) {
  return a->watch.task != NULL;
}

static tb_rc note_done(struct to_analyses *a, uint64_t task, const struct to_region_time *time) {
  struct to_tasks *s = state(a);

  if (s->done == NULL) TB_TRY(tb_mem_alloc(a->mem, DONE_KEPT * sizeof *s->done, &s->done));
  struct task_done *done = &s->done[task % DONE_KEPT];
  if (!done->is_known || done->task != task)
    *done = (struct task_done){ .task = task, .is_known = true };
  for (unsigned part = 0; part < TO_REGION_PARTS; part++) done->time.ns[part] += time->ns[part];
  done->time.assist_ns += time->assist_ns;
  return TB_OK;
}

static bool has_own(const struct to_callstack *stack) {
  const struct to_frame *own = to_callstack_own(stack);

  return own != NULL && to_code_of(own) == TO_CODE_PROGRAM;
}

/* A task that tracehttp began has no frame of the program at its begin: its handler is called later. */
static tb_rc find_stack(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_span *span, uint32_t *out) {
  uint32_t last;

  TB_TRY(to_spans_stack(a->spans, gen, span->stack, out));
  TB_TRY(to_spans_stack(a->spans, gen, span->by_stack, &last));
  if (!has_own(to_stack_table_stack(a->stacks, *out)) &&
      has_own(to_stack_table_stack(a->stacks, last)))
    *out = last;
  return TB_OK;
}

static tb_rc report_task(struct to_analyses *a, const struct to_generation *gen,
                         const struct to_span *span) {
  const struct to_tasks *s = state(a);
  const struct task_done *done = s->done == NULL ? NULL : &s->done[span->more->value % DONE_KEPT];
  bool is_known = done != NULL && done->is_known && done->task == span->more->value;
  struct to_watched_task task = { .begin = span->from,
                                  .end = span->until,
                                  .task = span->more->value,
                                  .type = span->more->name,
                                  .goroutine = span->more->goroutine,
                                  .did = is_known ? &done->time : NULL };
  uint32_t stack;

  TB_TRY(find_stack(a, gen, span, &stack));
  task.stack = to_stack_table_stack(a->stacks, stack);
  a->watch.task(a->watch.self, &task);
  return TB_OK;
}

static tb_rc tasks_slot(struct to_analyses *a) {
  state(a)->longer_than = -1;
  return to_longest_slot(&state(a)->longest, &a->windows);
}

static tb_rc task_ends(struct to_analyses *a, const struct to_generation *gen,
                       const struct to_span *span) {
  struct to_tasks *s = state(a);
  uint32_t type, stack;

  if (to_user_types_pass_over(&s->types, span)) return TB_OK;
  TB_TRY(to_user_types_find(&s->types, span->more->name, &type));
  TB_TRY(to_user_types_add(&s->types, type, TO_STACK_EMPTY, span->from, span->until));
  if (is_watched(a) && span->until - span->from >= a->watch.task_ns)
    TB_TRY(report_task(a, gen, span));
  if (span->until - span->from <= s->longer_than) return TB_OK;
  TB_TRY(find_stack(a, gen, span, &stack));
  s->longer_than =
      to_longest_note(&s->longest, &(struct to_long_span){ .from = span->from,
                                                           .until = span->until,
                                                           .goroutine = span->more->goroutine,
                                                           .waker = (int64_t)span->more->value,
                                                           .sum = type,
                                                           .stack = stack });
  return TB_OK;
}

/* Counts a region for its task, unless an outer region of the same task counts. */
static tb_rc region_ends(struct to_analyses *a, const struct to_span *span) {
  const struct to_span_more *more = span->more;
  uint32_t type;

  if (!span->until_known || more->region == NULL || !more->region->in_its_task ||
      more->text.len == 0)
    return TB_OK;
  TB_TRY(to_user_types_find(&state(a)->types, more->text, &type));
  to_user_types_add_time(&state(a)->types, type, more->region, span->until);
  return is_watched(a) ? note_done(a, more->value, more->region) : TB_OK;
}

static tb_rc tasks_span(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_span *span) {
  return span->kind == TO_SPAN_TASK ? task_ends(a, gen, span) : region_ends(a, span);
}

static tb_rc report_slowest(struct to_analyses *a, struct to_draft *d) {
  const struct to_tasks *s = state(a);
  const struct to_long_span *task;
  struct to_draft_value *row;
  size_t n;

  TB_TRY(to_longest_in(&s->longest, d->view, a->report.window, d->arena, &task, &n));
  for (; n > 0; n--, task++) {
    TB_TRY(to_draft_new_row(d, SLOWEST, &row));
    to_draft_number(&row[LONG_TASK], task->waker);
    if (task->sum != TO_USER_OTHER) to_draft_text(&row[LONG_TYPE], s->types.type[task->sum].text);
    to_draft_number(&row[LONG_BEGIN], task->from);
    to_draft_number(&row[LONG_LATENCY], to_user_length(task->from, task->until));
    if (task->goroutine != TO_NONE) to_draft_number(&row[LONG_GOROUTINE], task->goroutine);
    to_draft_stack(&row[LONG_STACK], to_stack_table_stack(a->stacks, task->stack));
  }
  return TB_OK;
}

static tb_rc list_open(struct to_draft *d, const struct to_user_open *open) {
  const struct to_span_more *more = open->span->more;
  struct to_draft_value *row;

  TB_TRY(to_draft_new_row(d, OPEN_NOW, &row));
  to_draft_number(&row[NOW_TASK], (int64_t)more->value);
  to_draft_text(&row[NOW_TYPE], open->type);
  to_draft_number(&row[NOW_AGE], open->age_ns);
  if (more->parent != TO_NO_TASK) to_draft_number(&row[NOW_PARENT], (int64_t)more->parent);
  if (more->goroutine != TO_NONE) to_draft_number(&row[NOW_GOROUTINE], more->goroutine);
  to_draft_stack(&row[NOW_STACK], open->stack);
  return TB_OK;
}

static tb_rc tasks_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  const struct to_user_types *types = &state(a)->types;

  (void)view;
  TB_TRY(to_user_types_report(types, d, BY_TYPE));
  TB_TRY(report_slowest(a, d));
  return to_user_types_report_open(types, a, d, TO_SPAN_TASK, BY_TYPE, NO_TASKS, list_open);
}

const struct to_analysis_ops to__analysis_tasks = {
  .schema = { .figures = TO_USER_FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_tasks),
  .spans = TO_WANT(TASK) | TO_WANT(REGION),
  .init = tasks_init,
  .fini = tasks_fini,
  .span = tasks_span,
  .slot = tasks_slot,
  .mark = tasks_slot,
  .report = tasks_report,
};
