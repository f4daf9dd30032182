/* SPDX-License-Identifier: Apache-2.0 */
/* OpenTelemetry's metrics (opentelemetry/proto/metrics/v1), as one message MetricsData: reports of a whole trace. A figure is named
 * go.trace.KIND.FIGURE, a table's column that is also in /metrics go.trace.KIND.TABLE.COLUMN with the row's label. A number is a
 * gauge, a distribution a summary. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "online/analysis/analysis.h"
#include "tools/tracectl/convert/format.h"
#include "tools/tracectl/convert/otlp_data.h"
#include "tools/tracectl/report/set.h"
#include "tools/tracectl/term/tracectl.h"

/* Field numbers. */
enum { METRIC_NAME = 1, METRIC_ABOUT, METRIC_UNIT, METRIC_GAUGE = 5, METRIC_SUMMARY = 11 };
enum { POINTS = 1 };
enum { POINT_FROM = 2, POINT_AT = 3, POINT_ATTRIBUTES = 7 };
enum { GAUGE_DOUBLE = 4, GAUGE_INT = 6 };
enum { SUMMARY_COUNT = 4, SUMMARY_SUM = 5, SUMMARY_QUANTILE = 6 };
enum { QUANTILE = 1, QUANTILE_VALUE };
enum { NAME_BYTES = 160 };

typedef Tracecollect__V1__Value value;
typedef Tracecollect__V1__FieldSchema field;

struct otlp_metrics {
  struct tk_otlp_data data;
  struct tb_buf metrics, metric, points, point, inner;
};

/* Identifies a figure, or a cell by its row's label. */
struct of {
  const struct tk_stream *stream;
  const Tracecollect__V1__StreamReport *report;
  const char *label, *text; /* NULL: none */
};

static void put_double(struct tb_buf *out, unsigned number, double real) {
  uint64_t bits;

  memcpy(&bits, &real, sizeof bits);
  tk_put_fixed64(out, number, bits);
}

static const char *unit_of(const field *schema) {
  switch (schema->type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_TIME:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION: return "ns";
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_BYTES: return "By";
  default: return "1";
  }
}

static void put_quantile(struct otlp_metrics *o, double quantile, uint64_t ns) {
  put_double(&o->inner, QUANTILE, quantile);
  put_double(&o->inner, QUANTILE_VALUE, (double)ns);
  tk_put_message(&o->point, SUMMARY_QUANTILE, &o->inner);
}

static void put_summary(struct otlp_metrics *o, const Tracecollect__V1__Distribution *d) {
  tk_put_fixed64(&o->point, SUMMARY_COUNT, d->count);
  put_double(&o->point, SUMMARY_SUM, (double)d->total_ns);
  if (d->count == 0) return;
  put_quantile(o, 0, d->min_ns);
  if (!d->no_quantiles) {
    put_quantile(o, 0.5, d->p50_ns);
    put_quantile(o, 0.9, d->p90_ns);
    put_quantile(o, 0.99, d->p99_ns);
    put_quantile(o, 0.999, d->p999_ns);
  }
  put_quantile(o, 1, d->max_ns);
}

/* Writes one point of a metric. Returns false if there is no number. */
static bool put_point(struct otlp_metrics *o, const struct of *of, const value *v) {
  switch (v->is_case) {
  case TRACECOLLECT__V1__VALUE__IS_NUMBER:
    tk_put_fixed64(&o->point, GAUGE_INT, (uint64_t)v->number);
    break;
  case TRACECOLLECT__V1__VALUE__IS_SHARE: put_double(&o->point, GAUGE_DOUBLE, v->share); break;
  case TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION: put_summary(o, v->distribution); break;
  default: return false;
  }
  tk_put_fixed64(&o->point, POINT_FROM, tk_stream_time(of->stream, of->report->from_ns));
  tk_put_fixed64(&o->point, POINT_AT, tk_stream_time(of->stream, of->report->until_ns));
  if (of->label != NULL)
    tk_otlp_put_text(&o->data, &o->point, POINT_ATTRIBUTES, of->label,
                     (struct to_string){ of->text, strlen(of->text) });
  tk_put_message(&o->points, POINTS, &o->point);
  return true;
}

/* Writes the metric with the points so far. */
static void put_metric(struct otlp_metrics *o, const struct of *of, const char *table,
                       const field *schema) {
  bool is_summary = schema->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
  char name[NAME_BYTES];

  if (o->points.len == 0) return;
  snprintf(name, sizeof name, "go.trace.%s.%s%s%s", of->report->kind, table,
           table[0] != '\0' ? "." : "", schema->name);
  tk_put_words(&o->metric, METRIC_NAME, name);
  tk_put_words(&o->metric, METRIC_ABOUT, schema->about);
  tk_put_words(&o->metric, METRIC_UNIT, unit_of(schema));
  tk_put_message(&o->metric, is_summary ? METRIC_SUMMARY : METRIC_GAUGE, &o->points);
  tk_put_message(&o->metrics, TK_OTLP_ITEMS, &o->metric);
}

static bool is_metric(const field *schema) {
  return schema->type != TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT && schema->metric[0] != '\0';
}

/* Returns -1 if there is none. */
static int label_of(const Tracecollect__V1__TableSchema *table) {
  for (size_t c = 0; c < table->n_columns; c++)
    if (table->columns[c]->label[0] != '\0') return (int)c;
  return -1;
}

static void put_column(struct otlp_metrics *o, struct of *of,
                       const Tracecollect__V1__TableSchema *schema,
                       const Tracecollect__V1__Table *table, size_t column, int label) {
  of->label = schema->columns[label]->label;
  for (size_t r = 0; r < table->n_rows; r++) {
    const Tracecollect__V1__Row *row = table->rows[r];
    const value *key = row->values[label];
    bool has_text = key->is_case == TRACECOLLECT__V1__VALUE__IS_TEXT;
    of->text = row->other ? "other" : has_text ? key->text : "";
    put_point(o, of, row->values[column]);
  }
  of->label = NULL;
  put_metric(o, of, schema->name, schema->columns[column]);
}

static void put_table(struct otlp_metrics *o, struct of *of,
                      const Tracecollect__V1__TableSchema *schema,
                      const Tracecollect__V1__Table *table) {
  int label = label_of(schema);

  for (size_t c = 0; label >= 0 && c < schema->n_columns; c++)
    if (is_metric(schema->columns[c])) put_column(o, of, schema, table, c, label);
}

static void put_report(struct otlp_metrics *o, const struct tk_stream *s,
                       const Tracecollect__V1__StreamReport *report) {
  const Tracecollect__V1__Report *r = report->report;
  struct of of = { .stream = s, .report = report };

  for (size_t i = 0; i < r->n_figures; i++)
    if (put_point(o, &of, r->figures[i])) put_metric(o, &of, "", r->schema->figures[i]);
  for (size_t i = 0; i < r->n_tables; i++) put_table(o, &of, r->schema->tables[i], r->tables[i]);
}

static tb_rc metrics_open(void *self, FILE *file, const struct tk_format_options *options) {
  struct otlp_metrics *o = self;

  tb_buf_init(&o->metrics, &tk_mem);
  tb_buf_init(&o->metric, &tk_mem);
  tb_buf_init(&o->points, &tk_mem);
  tb_buf_init(&o->point, &tk_mem);
  tb_buf_init(&o->inner, &tk_mem);
  return tk_otlp_data_open(&o->data, file, options, "/v1/metrics");
}

static void metrics_fini(void *self) {
  struct otlp_metrics *o = self;

  tk_otlp_data_fini(&o->data);
  tb_buf_fini(&o->metrics);
  tb_buf_fini(&o->metric);
  tb_buf_fini(&o->points);
  tb_buf_fini(&o->point);
  tb_buf_fini(&o->inner);
}

static tb_rc metrics_begin(void *self, const struct tk_stream *stream) {
  (void)self, (void)stream;
  return TB_OK;
}

static tb_rc metrics_span(void *self, const struct tk_stream *stream, const struct tk_span *at) {
  (void)self, (void)stream, (void)at;
  return TB_OK;
}

/* A broken trace has reports up to its fault. */
static tb_rc metrics_end(void *self, const struct tk_stream *s) {
  struct otlp_metrics *o = self;
  struct tk_report_ask ask = { .verb = s->place->verb,
                               .window = TO_WINDOW_ALL,
                               .blocked_after_ns = TO_BLOCKED_AFTER_NS_DEFAULT,
                               .rows_max = SIZE_MAX,
                               .part = s->place->part.end != 0 ? &s->place->part : NULL };
  struct tk_report_set set;

  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) ask.kind[k] = true;
  tk_report_set_init(&set);
  int code = tk_report_file(s->place->path, &ask, &set);
  for (size_t i = 0; i < set.n; i++) put_report(o, s, set.report[i]);
  tk_report_set_fini(&set);
  TB_TRY(tk_otlp_send(&o->data, s, &o->metrics));
  return code == TK_DONE ? TB_OK : TB_BROKEN;
}

static tb_rc metrics_close(void *self) {
  (void)self;
  return TB_OK;
}

const struct tk_format tk_format_otlp_metrics = {
  .name = "otlp-metrics",
  .about = "OpenTelemetry's protobuf MetricsData: reports",
  .bytes = sizeof(struct otlp_metrics),
  .open = metrics_open,
  .begin = metrics_begin,
  .span = metrics_span,
  .end = metrics_end,
  .close = metrics_close,
  .fini = metrics_fini,
};
