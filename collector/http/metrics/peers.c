/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/metrics/peers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collector/http/metrics/report_view.h"
#include "collector/http/metrics/text.h"

enum {
  VIEW_MEMORY_MAX = 16 << 20,
  FAMILIES_MAX = 64,
  SERIES_MAX = 128 << 10, /* before drop_older_streams() */
  LABEL_MAX = 64,
  LABELS_MAX = 2, /* per row */
  LINES_WITH_QUANTILES = 5,
  LINES_WITHOUT = 2
};

typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Value Value;
typedef char label[LABEL_MAX + 1];

struct family {
  const FieldSchema *field; /* name, text and type */
  const char *label[LABELS_MAX];
  unsigned labels;
};

struct series {
  unsigned family;
  size_t order; /* number of the stream's first report: later streams replace earlier ones */
  unsigned char stream[TC_REPORT_STREAM_BYTES];
  label service, instance, value[LABELS_MAX];
  bool no_quantiles;
  uint64_t count, total_ns, p50_ns, p90_ns, p99_ns; /* of a distribution */
  int64_t number;
  double share;
};

struct table {
  struct family family[FAMILIES_MAX];
  unsigned families;
  struct series *series;
  size_t n, room, reports, left_out;
  struct tb_mem mem;
  struct tb_arena arena;
  struct tc_report_view view;
  FieldSchema events, thinned_events; /* no report has these columns */
};

static bool is_distribution(const struct family *f) {
  return f->field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
}

/* --- labels ------------------------------------------------------------------------------------ */

static void set_label(label out, const char *text) {
  size_t len = text != NULL ? strlen(text) : 0;
  bool fits = len >= 1 && len <= LABEL_MAX;

  for (size_t i = 0; fits && i < len; i++) {
    char c = text[i];
    fits = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == ':' || c == '-';
  }
  strcpy(out, "other");
  if (fits) memcpy(out, text, len + 1);
}

/* Turns "/stw/gc/mark-termination" of report "stw" into gc.mark-termination, "/chan/send" of others into chan.send. */
static void set_row_label(label out, const char *kind, const char *text) {
  size_t kind_len = strlen(kind), len = 0;
  char plain[2 * LABEL_MAX];

  if (text[0] == '/' && strncmp(text + 1, kind, kind_len) == 0 && text[1 + kind_len] == '/')
    text += kind_len + 2;
  text += text[0] == '/';
  for (; len < sizeof plain - 1 && text[len] != '\0'; len++)
    plain[len] = text[len] == '/' ? '.' : text[len];
  plain[len] = '\0';
  set_label(out, plain);
}

/* --- reports to series ------------------------------------------------------------------------- */

static bool find_family(struct table *t, const FieldSchema *field,
                        const Tracecollect__V1__TableSchema *schema, unsigned *out) {
  for (*out = 0; *out < t->families; ++*out)
    if (strcmp(t->family[*out].field->metric, field->metric) == 0) return true;
  if (t->families == FAMILIES_MAX) return false;
  struct family *f = &t->family[t->families++];
  *f = (struct family){ .field = field };
  for (size_t c = 0; schema != NULL && c < schema->n_columns && f->labels < LABELS_MAX; c++)
    if (schema->columns[c]->label[0] != '\0') f->label[f->labels++] = schema->columns[c]->label;
  return true;
}

static void set_value(struct series *s, const Value *value) {
  const Tracecollect__V1__Distribution *d = tp_value_distribution(value);

  s->number = tp_value_number(value);
  s->share = tp_value_share(value);
  if (d == NULL) return;
  s->no_quantiles = d->no_quantiles;
  s->count = d->count;
  s->total_ns = d->total_ns;
  s->p50_ns = d->p50_ns;
  s->p90_ns = d->p90_ns;
  s->p99_ns = d->p99_ns;
}

static tb_rc add_series(struct table *t, const struct tc_report *report, unsigned family,
                        const Value *value, struct series **out) {
  if (t->n == SERIES_MAX) return TB_BUDGET;
  TB_TRY(TB_GROW(t->series, t->room, t->n));
  struct series *s = &t->series[t->n++];
  *s = (struct series){ .family = family, .order = t->reports };
  memcpy(s->stream, report->stream, sizeof s->stream);
  set_label(s->service, report->service);
  set_label(s->instance, report->instance);
  set_value(s, value);
  *out = s;
  return TB_OK;
}

/* Unknown values and texts have no series. */
static bool is_known(const Value *value) {
  return value != NULL && value->is_case != TRACECOLLECT__V1__VALUE__IS__NOT_SET &&
         value->is_case != TRACECOLLECT__V1__VALUE__IS_TEXT &&
         value->is_case != TRACECOLLECT__V1__VALUE__IS_STACK;
}

static tb_rc add_figures(struct table *t, const struct tc_report *packed) {
  const Tracecollect__V1__Report *r = t->view.report;
  struct series *s;
  unsigned family;

  for (size_t i = 0; i < r->schema->n_figures && i < r->n_figures; i++) {
    if (r->schema->figures[i]->metric[0] == '\0' || !is_known(r->figures[i])) continue;
    if (!find_family(t, r->schema->figures[i], NULL, &family))
      t->left_out++;
    else
      TB_TRY(add_series(t, packed, family, r->figures[i], &s));
  }
  return TB_OK;
}

static void set_row_labels(const struct tc_report *packed, const struct tp_table *table,
                           const Tracecollect__V1__Row *row, struct series *s) {
  unsigned labels = 0;

  for (size_t c = 0; c < table->schema->n_columns && labels < LABELS_MAX; c++)
    if (table->schema->columns[c]->label[0] != '\0')
      set_row_label(s->value[labels++], packed->kind, tp_row_text(row, c));
}

static tb_rc add_column(struct table *t, const struct tc_report *packed,
                        const struct tp_table *table, size_t column) {
  struct series *s;
  unsigned family;

  if (!find_family(t, table->schema->columns[column], table->schema, &family)) {
    t->left_out++;
    return TB_OK;
  }
  for (size_t i = 0; i < table->table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table->table->rows[i];
    if (!is_known(tp_row_value(row, column))) continue;
    TB_TRY(add_series(t, packed, family, tp_row_value(row, column), &s));
    set_row_labels(packed, table, row, s);
  }
  return TB_OK;
}

static tb_rc add_columns(struct table *t, const struct tc_report *packed,
                         const Tracecollect__V1__TableSchema *schema) {
  struct tp_table table = { .table = NULL };

  for (size_t c = 0; c < schema->n_columns; c++) {
    if (schema->columns[c]->metric[0] == '\0') continue;
    if (table.table == NULL) TB_TRY(tc_report_view_table(&t->view, schema->name, &table));
    TB_TRY(add_column(t, packed, &table, c));
  }
  return TB_OK;
}

static FieldSchema make_field(const char *metric, const char *about) {
  FieldSchema field = TRACECOLLECT__V1__FIELD_SCHEMA__INIT;

  field.metric = (char *)(uintptr_t)metric;
  field.about = (char *)(uintptr_t)about;
  return field;
}

static tb_rc add_number(struct table *t, const struct tc_report *packed, const FieldSchema *field,
                        uint64_t number) {
  Value value = TRACECOLLECT__V1__VALUE__INIT;
  struct series *s;
  unsigned family;

  value.is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
  value.number = (int64_t)number;
  if (find_family(t, field, NULL, &family)) return add_series(t, packed, family, &value, &s);
  t->left_out++;
  return TB_OK;
}

/* Adds the share of the events that the figures of a thinned stream are of, as counters, which can be added up. */
static tb_rc add_events(struct table *t, const struct tc_report *packed) {
  if (t->view.thinned_events == 0 || strcmp(packed->kind, "sched") != 0) return TB_OK;
  TB_TRY(add_number(t, packed, &t->events, t->view.events));
  return add_number(t, packed, &t->thinned_events, t->view.thinned_events);
}

static tb_rc add_values(struct table *t, const struct tc_report *packed) {
  TB_TRY(tc_report_view_open(&t->view, packed));
  const Tracecollect__V1__ReportSchema *schema = t->view.report->schema;
  if (schema == NULL) return TB_OK;
  TB_TRY(add_events(t, packed));
  TB_TRY(add_figures(t, packed));
  for (size_t i = 0; i < schema->n_tables; i++) TB_TRY(add_columns(t, packed, schema->tables[i]));
  return TB_OK;
}

/* Leaves out a report that needs too much memory. */
static tb_rc add_report(void *self, const struct tc_report *packed) {
  struct table *t = self;

  t->reports++;
  tb_rc rc = add_values(t, packed);
  tb_arena_reset(&t->arena);
  if (rc == TB_BUDGET) t->left_out++;
  return rc == TB_BUDGET ? TB_OK : rc;
}

/* --- one series per name ----------------------------------------------------------------------- */

static int by_values(const struct series *x, const struct series *y) {
  int order = 0;

  for (unsigned i = 0; order == 0 && i < LABELS_MAX; i++) order = strcmp(x->value[i], y->value[i]);
  return order;
}

/* Sorts by program; within a program the newest stream comes first. */
static int by_program(const void *a, const void *b) {
  const struct series *x = a, *y = b;
  int order = (int)x->family - (int)y->family;

  if (order == 0) order = strcmp(x->service, y->service);
  if (order == 0) order = strcmp(x->instance, y->instance);
  if (order == 0) order = (x->order < y->order) - (x->order > y->order);
  return order != 0 ? order : by_values(x, y);
}

static bool same_program(const struct series *a, const struct series *b) {
  return a->family == b->family && strcmp(a->service, b->service) == 0 &&
         strcmp(a->instance, b->instance) == 0;
}

static void drop_older_streams(struct table *t) {
  size_t kept = 0, newest = 0;

  for (size_t i = 0; i < t->n; i++) {
    if (i == 0 || !same_program(&t->series[newest], &t->series[i])) newest = i;
    if (memcmp(t->series[newest].stream, t->series[i].stream, TC_REPORT_STREAM_BYTES) != 0)
      continue;
    t->series[kept] = t->series[i];
    if (newest == i) newest = kept;
    kept++;
  }
  t->n = kept;
}

static int by_name(const void *a, const void *b) {
  const struct series *x = a, *y = b;
  int order = (int)x->family - (int)y->family;

  if (order == 0) order = strcmp(x->service, y->service);
  if (order == 0) order = strcmp(x->instance, y->instance);
  return order != 0 ? order : by_values(x, y);
}

/* Adds counts; takes the larger of quantiles and shares. */
static void merge(struct series *into, const struct series *s) {
#define LARGER(field) into->field = s->field > into->field ? s->field : into->field
  into->count += s->count;
  into->total_ns += s->total_ns;
  into->number += s->number;
  into->no_quantiles = into->no_quantiles || s->no_quantiles;
  LARGER(p50_ns);
  LARGER(p90_ns);
  LARGER(p99_ns);
  LARGER(share);
#undef LARGER
}

/* Merges series of one name, such as two reasons that both became "other". */
static void merge_same(struct table *t) {
  size_t kept = 0;

  if (t->n > 0) qsort(t->series, t->n, sizeof *t->series, by_name);
  for (size_t i = 0; i < t->n; i++) {
    struct series *last = kept > 0 ? &t->series[kept - 1] : NULL;

    if (last != NULL && by_name(last, &t->series[i]) == 0)
      merge(last, &t->series[i]);
    else
      t->series[kept++] = t->series[i];
  }
  t->n = kept;
}

/* --- text -------------------------------------------------------------------------------------- */

static void write_name(struct tb_buf *out, const struct table *t, const struct series *s,
                       const char *suffix, const char *quantile) {
  const struct family *f = &t->family[s->family];

  tb_buf_text(out, f->field->metric);
  tb_buf_printf(out, "%s{service=\"%s\",instance=\"%s\"", suffix, s->service, s->instance);
  for (unsigned i = 0; i < f->labels; i++)
    tb_buf_printf(out, ",%s=\"%s\"", f->label[i], s->value[i]);
  if (quantile != NULL) tb_buf_printf(out, ",quantile=\"%s\"", quantile);
  tb_buf_text(out, "} ");
}

static void write_seconds(struct tb_buf *out, uint64_t ns) {
  tb_buf_printf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000, ns % 1000000000);
}

static void write_distribution(struct tb_buf *out, const struct table *t, const struct series *s,
                               bool quantiles) {
  const struct {
    const char *quantile;
    uint64_t ns;
  } rows[] = { { "0.5", s->p50_ns }, { "0.9", s->p90_ns }, { "0.99", s->p99_ns } };

  for (size_t i = 0; quantiles && !s->no_quantiles && i < sizeof rows / sizeof rows[0]; i++) {
    write_name(out, t, s, "", rows[i].quantile);
    write_seconds(out, rows[i].ns);
  }
  write_name(out, t, s, "_sum", NULL);
  write_seconds(out, s->total_ns);
  write_name(out, t, s, "_count", NULL);
  tb_buf_printf(out, "%" PRIu64 "\n", s->count);
}

static void write_series(struct tb_buf *out, const struct table *t, const struct series *s,
                         bool quantiles) {
  const struct family *f = &t->family[s->family];

  if (is_distribution(f)) {
    write_distribution(out, t, s, quantiles);
    return;
  }
  write_name(out, t, s, "", NULL);
  if (f->field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_SHARE)
    tb_buf_printf(out, "%.9f\n", s->share);
  else if (f->field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS && s->number >= 0)
    write_seconds(out, (uint64_t)s->number);
  else
    tb_buf_printf(out, "%" PRId64 "\n", s->number);
}

static size_t lines_of(const struct table *t, const struct series *s, bool quantiles) {
  if (!is_distribution(&t->family[s->family])) return 1;
  return quantiles && !s->no_quantiles ? LINES_WITH_QUANTILES : LINES_WITHOUT;
}

static size_t count_lines(const struct table *t, bool quantiles) {
  size_t n = 0;

  for (size_t i = 0; i < t->n; i++) n += lines_of(t, &t->series[i], quantiles);
  return n;
}

static const char *type_of(const struct family *f) {
  const char *name = f->field->metric, *end = name + strlen(name);
  static const char total[] = "_total";

  if (is_distribution(f)) return "summary";
  if ((size_t)(end - name) < sizeof total) return "gauge";
  return strcmp(end - (sizeof total - 1), total) == 0 ? "counter" : "gauge";
}

/* Writes up to the limit of lines and counts the rest. */
static void write_families(struct tb_buf *out, struct table *t, bool quantiles) {
  size_t at = 0, lines = 0;

  for (unsigned f = 0; f < t->families; f++) {
    const FieldSchema *field = t->family[f].field;
    tc_metrics_head(out, field->metric, type_of(&t->family[f]), field->about);
    for (; at < t->n && t->series[at].family == f; at++) {
      size_t more = lines_of(t, &t->series[at], quantiles);
      if (lines + more > TC_PEER_SERIES_MAX) {
        t->left_out++;
        continue;
      }
      write_series(out, t, &t->series[at], quantiles);
      lines += more;
    }
  }
}

static void write_table(struct tb_buf *out, struct table *t) {
  bool quantiles = count_lines(t, true) <= TC_PEER_SERIES_MAX;

  if (!quantiles && count_lines(t, false) > TC_PEER_SERIES_MAX) {
    for (size_t i = 0; i < t->n; i++) strcpy(t->series[i].instance, "other");
    merge_same(t);
  }
  write_families(out, t, quantiles);
  tc_metrics_head(out, "tracecollect_peer_series_left_out", "gauge",
                  "Series of traced programs beyond what is shown.");
  tb_buf_printf(out, "tracecollect_peer_series_left_out %zu\n", t->left_out);
}

static bool has_metric(const struct to_field *field, unsigned n) {
  for (unsigned i = 0; i < n; i++)
    if (field[i].metric != NULL) return true;
  return false;
}

/* Only these kinds of report are needed for a scrape. */
static uint32_t kinds_with_metrics(void) {
  uint32_t kinds = 0;

  for (unsigned kind = 0; kind < TO_ANALYSIS_KINDS; kind++) {
    const struct to_schema *schema = to_analysis_schema((enum to_analysis_kind)kind);
    bool has = has_metric(schema->figure, schema->figures);
    for (unsigned t = 0; t < schema->tables && !has; t++)
      has = has_metric(schema->table[t].column, schema->table[t].columns);
    kinds |= has ? UINT32_C(1) << kind : 0;
  }
  return kinds;
}

tb_rc tc_metrics_peers(struct tb_buf *out, struct tc_reports *reports) {
  const struct tc_report_select select = { .window = "all", .kinds = kinds_with_metrics() };
  struct table t = {
    .events =
        make_field("trace_events_total", "Events of streams of which generations were thinned."),
    .thinned_events = make_field(
        "trace_events_thinned_total",
        "Events of thinned generations, of which how long goroutines' states took is not counted."),
  };

  tb_mem_init(&t.mem, tb_mem_libc, NULL, VIEW_MEMORY_MAX);
  tb_arena_init(&t.arena, &t.mem, 64 << 10);
  tc_report_view_init(&t.view, &t.mem, &t.arena);
  tb_rc rc = tc_reports_collect(reports, &select, add_report, &t);
  if (rc == TB_OK) {
    if (t.n > 0) qsort(t.series, t.n, sizeof *t.series, by_program);
    drop_older_streams(&t);
    merge_same(&t);
    write_table(out, &t);
  }
  tc_report_view_fini(&t.view); /* after write_table(): families point into its schemas */
  tb_arena_fini(&t.arena);
  free(t.series);
  return rc;
}
