/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/report_json.h"

#include <inttypes.h>

#include "online/analysis/report.h"
#include "pack/distribution.h"
#include "pack/report_read.h"
#include "proto/json.h"

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__TableSchema TableSchema;

/* ---- values ---- */

/* Writes a comma unless this is the first field of an object or the first item of a list. */
static void write_comma(struct tb_buf *out, bool *first) {
  if (!*first) tb_buf_byte(out, ',');
  *first = false;
}

static void write_name(struct tb_buf *out, const char *name, bool *first) {
  write_comma(out, first);
  tp_json_text(out, name);
  tb_buf_byte(out, ':');
}

static void write_quantile(struct tb_buf *out, const char *name, uint64_t ns, bool is_known) {
  if (is_known)
    tb_buf_printf(out, ",\"%s\":%" PRIu64, name, ns);
  else
    tb_buf_printf(out, ",\"%s\":null", name);
}

static void write_distribution(struct tb_buf *out, const Distribution *d) {
  tb_buf_printf(out,
                "{\"count\":%" PRIu64 ",\"total_ns\":%" PRIu64 ",\"min_ns\":%" PRIu64
                ",\"max_ns\":%" PRIu64,
                d->count, d->total_ns, d->min_ns, d->max_ns);
  write_quantile(out, "p50_ns", d->p50_ns, !d->no_quantiles);
  write_quantile(out, "p90_ns", d->p90_ns, !d->no_quantiles);
  write_quantile(out, "p99_ns", d->p99_ns, !d->no_quantiles);
  write_quantile(out, "p999_ns", d->p999_ns, !d->no_quantiles);
  if (d->no_quantiles)
    tb_buf_text(out, ",\"error_share\":null");
  else
    tb_buf_printf(out, ",\"error_share\":%.4g", tp_distribution_error(d));
  tb_buf_printf(out, ",\"lower_bounds\":%" PRIu64 "}", d->lower_bounds);
}

static void write_stack(struct tb_buf *out, const Report *r, const Value *value) {
  bool first = true;

  tb_buf_byte(out, '[');
  for (size_t i = 0; i < tp_stack_length(r, value); i++) {
    const Tracecollect__V1__Frame *frame = tp_stack_frame(r, value, i);
    if (frame == NULL) continue;
    write_comma(out, &first);
    tp_json_message(out, &frame->base);
  }
  tb_buf_byte(out, ']');
}

static void write_number(struct tb_buf *out, const FieldSchema *field, int64_t number) {
  if (field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_FLAG)
    tb_buf_text(out, number != 0 ? "true" : "false");
  else
    tb_buf_printf(out, "%" PRId64, number);
}

static void write_value(struct tb_buf *out, const Report *r, const FieldSchema *field,
                        const Value *value) {
  switch (value != NULL ? value->is_case : TRACECOLLECT__V1__VALUE__IS__NOT_SET) {
  case TRACECOLLECT__V1__VALUE__IS_NUMBER: write_number(out, field, value->number); break;
  case TRACECOLLECT__V1__VALUE__IS_SHARE: tp_json_real(out, value->share); break;
  case TRACECOLLECT__V1__VALUE__IS_TEXT: tp_json_text(out, value->text); break;
  case TRACECOLLECT__V1__VALUE__IS_STACK: write_stack(out, r, value); break;
  case TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION:
    write_distribution(out, value->distribution);
    break;
  default: tb_buf_text(out, "null"); break;
  }
}

/* Writes fields of an object, without the braces. */
static void write_values(struct tb_buf *out, const Report *r, FieldSchema *const *field, size_t n,
                         Value *const *value, size_t values) {
  bool first = true;

  for (size_t i = 0; i < n; i++) {
    write_name(out, field[i]->name, &first);
    write_value(out, r, field[i], i < values ? value[i] : NULL);
  }
}

/* ---- a report ---- */

static void write_row(struct tb_buf *out, const Report *r, const TableSchema *schema,
                      const Row *row) {
  tb_buf_byte(out, '{');
  write_values(out, r, schema->columns, schema->n_columns, row->values, row->n_values);
  if (row->other) tb_buf_text(out, ",\"other\":true");
  tb_buf_byte(out, '}');
}

static void write_tables(struct tb_buf *out, const Report *r) {
  bool first_table = true;

  for (size_t t = 0; t < r->schema->n_tables && t < r->n_tables; t++) {
    bool first_row = true;
    write_name(out, r->schema->tables[t]->name, &first_table);
    tb_buf_byte(out, '[');
    for (size_t i = 0; i < r->tables[t]->n_rows; i++) {
      write_comma(out, &first_row);
      write_row(out, r, r->schema->tables[t], r->tables[t]->rows[i]);
    }
    tb_buf_byte(out, ']');
  }
}

static void write_rows_total(struct tb_buf *out, const Report *r) {
  bool first = true;

  for (size_t t = 0; t < r->schema->n_tables && t < r->n_tables; t++) {
    write_name(out, r->schema->tables[t]->name, &first);
    tb_buf_printf(out, "%" PRIu64, r->tables[t]->rows_total);
  }
}

static void write_notes(struct tb_buf *out, const Report *r, enum to_program program) {
  char words[TP_NOTE_BYTES];
  bool first = true;

  for (size_t i = 0; i < r->n_notes; i++) {
    write_comma(out, &first);
    (void)to_words_write(program, r->notes[i], words, sizeof words);
    tp_json_text(out, program == TO_PROGRAM_GO ? r->notes[i] : words);
  }
}

static void write_report(struct tb_buf *out, const Report *r, enum to_program program) {
  const Tracecollect__V1__ReportSchema *schema = r->schema;

  tb_buf_text(out, ",\"options\":{");
  write_values(out, r, schema->options, schema->n_options, r->options, r->n_options);
  tb_buf_text(out, "},\"figures\":{");
  write_values(out, r, schema->figures, schema->n_figures, r->figures, r->n_figures);
  tb_buf_text(out, "},\"tables\":{");
  write_tables(out, r);
  tb_buf_text(out, "},\"rows_total\":{");
  write_rows_total(out, r);
  tb_buf_text(out, "},\"notes\":[");
  write_notes(out, r, program);
  tb_buf_byte(out, ']');
}

void tp_report_json(struct tb_buf *out, const Tracecollect__V1__StreamReport *report) {
  Tracecollect__V1__StreamReport plain = *report;

  plain.report = NULL;
  tb_buf_byte(out, '{');
  tp_json_fields(out, &plain.base);
  if (report->report != NULL && report->report->schema != NULL) {
    tb_buf_text(out, ",\"analysed_share\":");
    tp_json_real(out, tp_report_analysed_share(report));
    write_report(out, report->report, tp_report_program(report));
  }
  tb_buf_byte(out, '}');
}

/* ---- a schema ---- */

const char *tp_value_type_name(Tracecollect__V1__ValueType type) {
  if (type <= TRACECOLLECT__V1__VALUE_TYPE__VALUE_UNKNOWN ||
      type > TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION)
    return "unknown";
  return to_value_type_name((enum to_value_type)(type - 1)); /* 0 is UNKNOWN in the message */
}

static void write_text_field(struct tb_buf *out, const char *name, const char *text, bool *first) {
  write_name(out, name, first);
  tp_json_text(out, text);
}

static const char *over_time_name(Tracecollect__V1__OverTime way) {
  static const char *const names[] = { "sum", "last", "greatest", "least", "mean", "none" };

  return (size_t)way < sizeof names / sizeof *names ? names[way] : "none";
}

static void write_fields(struct tb_buf *out, FieldSchema *const *field, size_t n) {
  bool first_field = true;

  tb_buf_byte(out, '[');
  for (size_t i = 0; i < n; i++) {
    bool first = true;
    write_comma(out, &first_field);
    tb_buf_byte(out, '{');
    write_text_field(out, "name", field[i]->name, &first);
    write_text_field(out, "type", tp_value_type_name(field[i]->type), &first);
    write_text_field(out, "about", field[i]->about, &first);
    write_text_field(out, "metric", field[i]->metric, &first);
    write_text_field(out, "label", field[i]->label, &first);
    if (field[i]->greatest) tb_buf_text(out, ",\"greatest\":true");
    if (field[i]->of_time) tb_buf_text(out, ",\"of_time\":true");
    if (field[i]->over_time != TRACECOLLECT__V1__OVER_TIME__OVER_TIME_SUM)
      tb_buf_printf(out, ",\"over_time\":\"%s\"", over_time_name(field[i]->over_time));
    tb_buf_byte(out, '}');
  }
  tb_buf_byte(out, ']');
}

static void write_table_schema(struct tb_buf *out, const TableSchema *table) {
  bool first = true;

  tb_buf_byte(out, '{');
  write_text_field(out, "name", table->name, &first);
  write_text_field(out, "about", table->about, &first);
  write_text_field(out, "order", table->order, &first);
  tb_buf_printf(out, ",\"keys\":%" PRIu32 ",\"list\":%s%s,\"columns\":", table->keys,
                table->list ? "true" : "false", table->now ? ",\"now\":true" : "");
  write_fields(out, table->columns, table->n_columns);
  tb_buf_byte(out, '}');
}

void tp_schema_json(struct tb_buf *out, const Tracecollect__V1__ReportSchema *schema) {
  bool first = true, first_table = true;

  tb_buf_byte(out, '{');
  write_text_field(out, "name", schema->name, &first);
  write_text_field(out, "about", schema->about, &first);
  tb_buf_text(out, ",\"options\":");
  write_fields(out, schema->options, schema->n_options);
  tb_buf_text(out, ",\"figures\":");
  write_fields(out, schema->figures, schema->n_figures);
  tb_buf_text(out, ",\"tables\":[");
  for (size_t t = 0; t < schema->n_tables; t++) {
    write_comma(out, &first_table);
    write_table_schema(out, schema->tables[t]);
  }
  tb_buf_text(out, "]}");
}
