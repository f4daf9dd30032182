/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of the program's code (runtime/trace.WithRegion; ta_region_begin): how long those of each type took, where they
 * begin, and what their goroutines did meanwhile (online/spans/region_time.c). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "online/analysis/analysis_state.h"
#include "online/analysis/kinds/user_types.h"
#include "online/spans/misnested.h"

#define NO_REGIONS                                                                                 \
  "This trace has no regions. A Go program makes them with trace.WithRegion (runtime/trace), a C " \
  "program with ta_region_begin()."

#define MISNESTED_REGIONS                                                                          \
  "Regions are not properly nested: Go's tools refuse this trace. On those goroutines, regions "   \
  "that were open at that moment are cut."

struct to_regions {
  struct to_user_types types;
  uint32_t misnested; /* series */
};

static struct to_regions *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_REGIONS];
}

static struct to_user_types *types_of(const struct to_analyses *a) {
  return &state(a)->types;
}

enum { MISNESTED = TO_USER_FIGURES, FIGURES };
static const struct to_field figure[FIGURES] = {
  [TO_USER_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                        .about = "How long regions took whose begin and end are in the trace.",
                        .metric = "trace_region_seconds" },
  [TO_USER_OPEN] = { "open", TO_VALUE_COUNT, .about = "Regions that have begun and not ended.",
                     .over_time = TO_OVER_LAST },
  [TO_USER_BEGIN_UNKNOWN] = { "begin_unknown", TO_VALUE_COUNT,
                              .about =
                                  "Regions that ended without a begin in the trace: they are in no "
                                  "latency." },
  [TO_USER_CUT] = { "cut", TO_VALUE_COUNT,
                    .about = "Regions that the end of their goroutine, a hole in the stream or an "
                             "end that did not fit cut off: they are in no latency." },
  [MISNESTED] = { "misnested", TO_VALUE_COUNT,
                  .about =
                      "Ends of regions that did not end the innermost one of their goroutine." },
};

static const struct to_field type_column[TO_TYPE_COLUMNS] = {
  TO_TYPE_FIELDS,
};
enum { SITE_STACK, SITE_TYPE, SITE_LATENCY, SITE_COLUMNS };
static const struct to_field site_column[SITE_COLUMNS] = {
  [SITE_STACK] = { "stack", TO_VALUE_STACK, .about = "Where the region begins." },
  [SITE_TYPE] = { "type", TO_VALUE_TEXT },
  [SITE_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};
enum { NOW_GOROUTINE, NOW_TYPE, NOW_AGE, NOW_TASK, NOW_STACK, NOW_COLUMNS };
static const struct to_field now_column[NOW_COLUMNS] = {
  [NOW_GOROUTINE] = { "goroutine", TO_VALUE_ID },
  [NOW_TYPE] = { "type", TO_VALUE_TEXT },
  [NOW_AGE] = { "age_ns", TO_VALUE_NS },
  [NOW_TASK] = { "task", TO_VALUE_ID, .about = "The task that it is a part of." },
  [NOW_STACK] = { "stack", TO_VALUE_STACK, .about = "Where it began." },
};
enum {
  WRONG_STACK,
  WRONG_COUNT,
  WRONG_GOROUTINE,
  WRONG_TYPE,
  WRONG_TASK,
  WRONG_OPEN_TYPE,
  WRONG_OPEN_TASK,
  WRONG_OPEN_STACK,
  WRONG_COLUMNS
};
static const struct to_field wrong_column[WRONG_COLUMNS] = {
  [WRONG_STACK] = { "stack", TO_VALUE_STACK, .about = "Where the region ends." },
  [WRONG_COUNT] = { "count", TO_VALUE_COUNT, .about = "Times since the start." },
  [WRONG_GOROUTINE] = { "goroutine", TO_VALUE_ID,
                        .about = "Like the next columns: of the last time." },
  [WRONG_TYPE] = { "type", TO_VALUE_TEXT, .about = "The region that was to end." },
  [WRONG_TASK] = { "task", TO_VALUE_ID, .about = "Its task." },
  [WRONG_OPEN_TYPE] = { "open_type", TO_VALUE_TEXT, .about = "The innermost region then." },
  [WRONG_OPEN_TASK] = { "open_task", TO_VALUE_ID, .about = "Its task." },
  [WRONG_OPEN_STACK] = { "open_stack", TO_VALUE_STACK, .about = "Where that one began." },
};

enum { BY_TYPE, BY_STACK, OPEN_NOW, WRONG, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BY_TYPE] = { .name = "by_type",
                .about = "By type, with what goroutines did in them",
                .order_about = "most time first",
                .keys = 1,
                .columns = TO_TYPE_COLUMNS,
                .column = type_column,
                .order = { { TO_TYPE_LATENCY + 1 }, { TO_TYPE_OPEN + 1 } } },
  [BY_STACK] = { .name = "by_stack",
                 .about = "By stack",
                 .order_about = "most time first",
                 .keys = 2,
                 .columns = SITE_COLUMNS,
                 .column = site_column,
                 .order = { { SITE_LATENCY + 1 } } },
  [OPEN_NOW] = { .name = "open_now",
                 .about = "Regions that are open now",
                 .order_about = "oldest first",
                 .keys = 2,
                 .columns = NOW_COLUMNS,
                 .column = now_column,
                 .order = { { NOW_AGE + 1 }, { NOW_GOROUTINE + 1, .rising = true } },
                 .is_list = true,
                 .is_now = true },
  [WRONG] = { .name = "misnested",
              .about = "Ends that did not end the innermost region",
              .order_about = "most first",
              .keys = 1,
              .columns = WRONG_COLUMNS,
              .column = wrong_column,
              .order = { { WRONG_COUNT + 1 } },
              .is_list = true,
              .is_now = true },
};

static tb_rc regions_init(struct to_analyses *a) {
  TB_TRY(to_user_types_init(types_of(a), &a->windows, a->config.stacks_max));
  return to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->misnested);
}

static void regions_fini(struct to_analyses *a) {
  to_user_types_fini(types_of(a));
}

static tb_rc regions_span(struct to_analyses *a, const struct to_generation *gen,
                          const struct to_span *span) {
  struct to_user_types *types = types_of(a);
  uint32_t type, stack;

  if (to_user_types_pass_over(types, span)) return TB_OK;
  TB_TRY(to_user_types_find(types, span->more->name, &type));
  TB_TRY(to_spans_stack(a->spans, gen, span->stack, &stack));
  TB_TRY(to_user_types_add(types, type, stack, span->from, span->until));
  to_user_types_add_time(types, type, span->more->region, span->until);
  return TB_OK;
}

static tb_rc regions_event(struct to_analyses *a, const struct to_generation *gen,
                           const struct to_event *ev) {
  struct to_user_event user;

  (void)gen;
  to_event_user(ev, &user);
  if (user.nesting == TO_MISNESTED)
    to_windows_sum(&a->windows, state(a)->misnested, ev->time, ev->time, 0, false);
  return TB_OK;
}

static tb_rc report_sites(struct to_analyses *a, struct to_draft *d) {
  const struct to_user_types *t = types_of(a);
  struct to_draft_value *row;

  for (const struct to_user_site *site = t->site; site < t->site + t->sites; site++) {
    if (to_view_cell(d->view, site->series) == NULL) continue;
    if (site->stack == TO_STACK_OTHER)
      TB_TRY(to_draft_other(d, BY_STACK, &row));
    else
      TB_TRY(to_draft_new_row(d, BY_STACK, &row));
    to_draft_stack(&row[SITE_STACK], to_stack_table_stack(a->stacks, site->stack));
    to_draft_text(&row[SITE_TYPE], t->type[site->type].text);
    TB_TRY(to_draft_series(d, &row[SITE_LATENCY], site->series));
  }
  return TB_OK;
}

static tb_rc list_open(struct to_draft *d, const struct to_user_open *open) {
  uint64_t task = open->span->more->value;
  struct to_draft_value *row;

  TB_TRY(to_draft_new_row(d, OPEN_NOW, &row));
  to_draft_number(&row[NOW_GOROUTINE], open->span->id);
  to_draft_text(&row[NOW_TYPE], open->type);
  to_draft_number(&row[NOW_AGE], open->age_ns);
  if (task != 0) to_draft_number(&row[NOW_TASK], (int64_t)task);
  to_draft_stack(&row[NOW_STACK], open->stack);
  return TB_OK;
}

static struct to_string text_of(const char *text) {
  return (struct to_string){ text, strlen(text) };
}

static void set_task(struct to_draft_value *value, uint64_t task) {
  if (task != 0) to_draft_number(value, (int64_t)task);
}

static tb_rc list_wrong(struct to_analyses *a, struct to_draft *d) {
  const struct to_misnesting *all = to_spans_misnesting(a->spans);
  struct to_draft_value *row;

  if (all == NULL) return TB_OK;
  for (const struct to_misnested *at = all->at; at < all->at + all->n; at++) {
    TB_TRY(to_draft_new_row(d, WRONG, &row));
    to_draft_stack(&row[WRONG_STACK], to_stack_table_stack(a->stacks, at->ended.stack));
    to_draft_number(&row[WRONG_COUNT], (int64_t)at->count);
    to_draft_number(&row[WRONG_GOROUTINE], at->goroutine);
    to_draft_text(&row[WRONG_TYPE], text_of(at->ended.name));
    set_task(&row[WRONG_TASK], at->ended.task);
    to_draft_text(&row[WRONG_OPEN_TYPE], text_of(at->open.name));
    set_task(&row[WRONG_OPEN_TASK], at->open.task);
    to_draft_stack(&row[WRONG_OPEN_STACK], to_stack_table_stack(a->stacks, at->open.stack));
  }
  return to_draft_note(d, MISNESTED_REGIONS);
}

static tb_rc regions_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  to_draft_number(to_draft_figure(d, MISNESTED),
                  (int64_t)to_view_sum(view, state(a)->misnested).count);
  TB_TRY(to_user_types_report(types_of(a), d, BY_TYPE));
  TB_TRY(report_sites(a, d));
  TB_TRY(list_wrong(a, d));
  return to_user_types_report_open(types_of(a), a, d, TO_SPAN_REGION, BY_TYPE, NO_REGIONS,
                                   list_open);
}

static const char *place_of(const struct to_callstack *stack) {
  const struct to_frame *frame = to_callstack_own(stack);

  return frame == NULL || frame->function.len == 0 ? "an unknown place" : frame->function.data;
}

static tb_rc find_wrong(struct to_analyses *a, const struct to_misnested *at,
                        const struct to_finding_sink *sink) {
  enum { WORDS_BYTES = 800 };
  const struct to_callstack *stack = to_stack_table_stack(a->stacks, at->ended.stack);
  char *words;

  TB_TRY(tb_arena_alloc(&a->report_arena, WORDS_BYTES, &words));
  int n = snprintf(words, WORDS_BYTES,
                   "at %.120s goroutine %" PRId64 " ends region \"%s\" of task %" PRIu64
                   ", but its innermost is \"%s\" of task %" PRIu64
                   ", begun at %.120s; its regions are cut there, and Go's tools refuse the trace",
                   place_of(stack), at->goroutine, at->ended.name, at->ended.task, at->open.name,
                   at->open.task, place_of(to_stack_table_stack(a->stacks, at->open.stack)));
  sink->finding(sink->self,
                &(struct to_finding){ .kind = TO_FINDING_MISNESTED,
                                      .key = at->ended.stack,
                                      .since = at->first,
                                      .goroutine = at->goroutine,
                                      .stack = stack,
                                      .cause = { at->ended.name, strlen(at->ended.name) },
                                      .words = { words, (size_t)n } });
  return TB_OK;
}

/* A finding lasts as long as each generation has a misnested end there. */
static tb_rc regions_findings(struct to_analyses *a, const struct to_finding_sink *sink) {
  const struct to_misnesting *all = to_spans_misnesting(a->spans);

  for (size_t i = 0; all != NULL && i < all->n; i++)
    if (all->at[i].last >= all->generation) TB_TRY(find_wrong(a, &all->at[i], sink));
  return TB_OK;
}

const struct to_analysis_ops to__analysis_regions = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_regions),
  .spans = TO_WANT(REGION),
  .events = TO_ANALYSIS_EVENT(USER_REGION_END),
  .init = regions_init,
  .fini = regions_fini,
  .span = regions_span,
  .event = regions_event,
  .report = regions_report,
  .findings = regions_findings,
};
