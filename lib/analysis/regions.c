/* SPDX-License-Identifier: Apache-2.0 */
/* Regions of the program's code (runtime/trace.WithRegion; ta_region_begin): how long those of each type took, where they begin, and
 * what their goroutines did from begin to end (spans/region_time.c). */
#include "analysis/analysis_state.h"
#include "analysis/user_types.h"

#define NO_REGIONS                                                                                 \
  "This trace has no regions. A Go program makes them with trace.WithRegion (runtime/trace), a C " \
  "program with ta_region_begin()."

static struct to_user_types *types_of(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_REGIONS];
}

/* ---- what it says ---- */

static const struct to_field figure[TO_USER_FIGURES] = {
  [TO_USER_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                        .about = "How long regions took that began and ended in the trace.",
                        .metric = "trace_region_seconds" },
  [TO_USER_OPEN] = { "open", TO_VALUE_COUNT, .about = "Regions that have begun and not ended." },
  [TO_USER_BEGIN_UNKNOWN] = { "begin_unknown", TO_VALUE_COUNT,
                              .about =
                                  "Regions that ended without a begin in the trace: they are in no "
                                  "latency." },
  [TO_USER_CUT] = { "cut", TO_VALUE_COUNT,
                    .about = "Regions that the end of their goroutine or a hole in the stream cut "
                             "off: they are in no latency." },
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
  return to_user_types_init(types_of(a), &a->windows, a->config.stacks_max);
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

/* ---- the report ---- */

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

static tb_rc regions_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  (void)view;
  TB_TRY(to_user_types_report(types_of(a), d, BY_TYPE));
  TB_TRY(report_sites(a, d));
  return to_user_types_report_open(types_of(a), a, d, TO_SPAN_REGION, BY_TYPE, NO_REGIONS,
                                   list_open);
}

const struct to_analysis_ops to__analysis_regions = {
  .schema = { .figures = TO_USER_FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_user_types),
  .spans = TO_WANT(REGION),
  .init = regions_init,
  .fini = regions_fini,
  .span = regions_span,
  .report = regions_report,
};
