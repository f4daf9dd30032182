/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of the program's code (runtime/trace.WithRegion; ta_region_begin): how long those of each type took, where they begin, and
 * what their goroutines did from begin to end (spans/region_time.c). */
#include "analysis/analysis_state.h"
#include "analysis/user_types.h"

struct to_regions {
  struct to_user_types types;
  uint32_t begin_unknown, cut; /* series */
};

static struct to_regions *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_REGIONS];
}

/* ---- what it says ---- */

enum { LATENCY, OPEN, BEGIN_UNKNOWN, CUT, FIGURES };
static const struct to_field figure[FIGURES] = {
  [LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                .about = "How long regions took that began and ended in the trace.",
                .metric = "trace_region_seconds" },
  [OPEN] = { "open", TO_VALUE_COUNT, .about = "Regions that have begun and not ended." },
  [BEGIN_UNKNOWN] = { "begin_unknown", TO_VALUE_COUNT,
                      .about = "Regions that ended and began before the trace: they are in no "
                               "latency." },
  [CUT] = { "cut", TO_VALUE_COUNT,
            .about =
                "Regions that the end of their goroutine or a hole in the stream cut off: they "
                "are in no latency." },
};

static const struct to_field type_column[TO_TYPE_COLUMNS] = {
  [TO_TYPE] = { "type", TO_VALUE_TEXT, .about = "As the program names it." },
  [TO_TYPE_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION, .about = "From begin to end." },
  [TO_TYPE_OPEN] = { "open", TO_VALUE_COUNT, .about = "Those that have not ended." },
  TO_TYPE_TIME_FIELDS,
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

enum { BY_TYPE, BY_STACK, OPEN_NOW, TABLES };
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
                 .is_list = true },
};

static tb_rc regions_init(struct to_analyses *a) {
  TB_TRY(to_user_types_init(&state(a)->types, &a->windows, a->config.stacks_max));
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->begin_unknown));
  return to_windows_series(&a->windows, TO_NO_SERIES, &state(a)->cut);
}

static void regions_fini(struct to_analyses *a) {
  to_user_types_fini(&state(a)->types);
}

static tb_rc regions_span(struct to_analyses *a, const struct to_generation *gen,
                          const struct to_span *span) {
  struct to_regions *s = state(a);
  uint32_t type, stack;

  if (!span->until_known || !span->from_known) {
    to_windows_sum(&a->windows, span->until_known ? s->begin_unknown : s->cut, span->from,
                   span->until, 0, false);
    return TB_OK;
  }
  TB_TRY(to_user_types_find(&s->types, span->more->name, &type));
  TB_TRY(to_spans_stack(a->spans, gen, span->stack, &stack));
  TB_TRY(to_user_types_add(&s->types, type, stack, span->from, span->until));
  to_user_types_add_time(&s->types, type, span->more->region, span->until);
  return TB_OK;
}

/* ---- the report ---- */

static tb_rc report_sites(struct to_analyses *a, struct to_draft *d) {
  const struct to_user_types *t = &state(a)->types;
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

struct open_regions {
  struct to_analyses *a;
  struct to_draft *draft;
  struct to_user_open *oldest;
};

static tb_rc add_open(void *self, const struct to_span *span) {
  struct open_regions *open = self;

  to_user_open_note(open->oldest, span);
  return to_user_types_open(&state(open->a)->types, open->draft, BY_TYPE, span->more->name);
}

static tb_rc list_open(struct to_analyses *a, struct to_draft *d, const struct to_span *span) {
  struct to_draft_value *row;
  struct to_string type;
  uint32_t stack;

  TB_TRY(to_spans_stack(a->spans, a->generation, span->stack, &stack));
  TB_TRY(to_user_text(d, span->more->name, &type));
  TB_TRY(to_draft_new_row(d, OPEN_NOW, &row));
  to_draft_number(&row[NOW_GOROUTINE], span->id);
  to_draft_text(&row[NOW_TYPE], type);
  to_draft_number(&row[NOW_AGE], span->until > span->from ? span->until - span->from : 0);
  if (span->more->value != 0) to_draft_number(&row[NOW_TASK], (int64_t)span->more->value);
  to_draft_stack(&row[NOW_STACK], to_stack_table_stack(a->stacks, stack));
  return TB_OK;
}

static tb_rc report_open(struct to_analyses *a, struct to_draft *d) {
  struct open_regions open = { .a = a, .draft = d };

  TB_TRY(to_user_open_new(d, &open.oldest));
  TB_TRY(to_spans_open_of(a->spans, TO_SPAN_REGION, add_open, &open));
  for (size_t i = 0; i < open.oldest->n; i++) TB_TRY(list_open(a, d, &open.oldest->span[i]));
  to_draft_number(to_draft_figure(d, OPEN), open.oldest->total);
  return TB_OK;
}

static tb_rc regions_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  const struct to_regions *s = state(a);

  TB_TRY(to_user_types_report(&s->types, d, LATENCY, BY_TYPE));
  TB_TRY(report_sites(a, d));
  TB_TRY(report_open(a, d));
  to_draft_number(to_draft_figure(d, BEGIN_UNKNOWN),
                  (int64_t)to_view_sum(view, s->begin_unknown).count);
  to_draft_number(to_draft_figure(d, CUT), (int64_t)to_view_sum(view, s->cut).count);
  return TB_OK;
}

const struct to_analysis_ops to__analysis_regions = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_regions),
  .spans = TO_WANT(REGION),
  .wants = TO_WANT(RANGE), /* mark assists */
  .init = regions_init,
  .fini = regions_fini,
  .span = regions_span,
  .report = regions_report,
};
