/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/report_read.h"

#include <string.h>

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__FieldSchema FieldSchema;

static size_t find_field(FieldSchema *const *field, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(field[i]->name, name) == 0) return i;
  return SIZE_MAX;
}

static char program_c[] = "C";

enum to_program tp_report_program(const Tracecollect__V1__StreamReport *report) {
  bool is_told = report->language_case == TRACECOLLECT__V1__STREAM_REPORT__LANGUAGE_PROGRAM;

  return is_told && strcmp(report->program, program_c) == 0 ? TO_PROGRAM_C : TO_PROGRAM_GO;
}

enum to_program tp_reports_program(Tracecollect__V1__StreamReport *const *report, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (tp_report_program(report[i]) == TO_PROGRAM_GO) return TO_PROGRAM_GO;
  return n > 0 ? TO_PROGRAM_C : TO_PROGRAM_GO;
}

void tp_report_set_program(Tracecollect__V1__StreamReport *report, enum to_program program) {
  if (program == TO_PROGRAM_GO) return;
  report->language_case = TRACECOLLECT__V1__STREAM_REPORT__LANGUAGE_PROGRAM;
  report->program = program_c;
}

double tp_report_analysed_share(const Tracecollect__V1__StreamReport *report) {
  if (report->thinned_events == 0) return 1;
  if (report->thinned_events >= report->events) return 0;
  return (double)(report->events - report->thinned_events) / (double)report->events;
}

const Value *tp_report_figure(const Report *r, const char *name) {
  if (r == NULL || r->schema == NULL) return NULL;
  size_t i = find_field(r->schema->figures, r->schema->n_figures, name);
  return i < r->n_figures ? r->figures[i] : NULL;
}

const Value *tp_report_option(const Report *r, const char *name) {
  if (r == NULL || r->schema == NULL) return NULL;
  size_t i = find_field(r->schema->options, r->schema->n_options, name);
  return i < r->n_options ? r->options[i] : NULL;
}

bool tp_report_table(const Report *r, const char *name, struct tp_table *out) {
  static const Tracecollect__V1__TableSchema no_schema = TRACECOLLECT__V1__TABLE_SCHEMA__INIT;
  static const Tracecollect__V1__Table no_rows = TRACECOLLECT__V1__TABLE__INIT;

  *out = (struct tp_table){ .report = r, .schema = &no_schema, .table = &no_rows };
  if (r == NULL || r->schema == NULL) return false;
  for (size_t t = 0; t < r->schema->n_tables && t < r->n_tables; t++) {
    if (strcmp(r->schema->tables[t]->name, name) != 0) continue;
    out->schema = r->schema->tables[t];
    out->table = r->tables[t];
    return true;
  }
  return false;
}

size_t tp_table_column(const struct tp_table *table, const char *name) {
  return find_field(table->schema->columns, table->schema->n_columns, name);
}

const Value *tp_row_value(const Row *row, size_t column) {
  return column < row->n_values ? row->values[column] : NULL;
}

const Tracecollect__V1__Distribution *tp_report_type_latency(const Tracecollect__V1__Report *r,
                                                             const char *type) {
  struct tp_table table;

  if (!tp_report_table(r, "by_type", &table)) return NULL;
  size_t name = tp_table_column(&table, "type"), latency = tp_table_column(&table, "latency");
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table.table->rows[i];
    if (!row->other && strcmp(tp_row_text(row, name), type) == 0)
      return tp_row_distribution(row, latency);
  }
  return NULL;
}

int64_t tp_value_number(const Value *value) {
  return value != NULL && value->is_case == TRACECOLLECT__V1__VALUE__IS_NUMBER ? value->number : 0;
}

double tp_value_share(const Value *value) {
  return value != NULL && value->is_case == TRACECOLLECT__V1__VALUE__IS_SHARE ? value->share : 0;
}

const Tracecollect__V1__Distribution *tp_value_distribution(const Value *value) {
  if (value == NULL || value->is_case != TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION) return NULL;
  return value->distribution;
}

int64_t tp_row_number(const Row *row, size_t column) {
  return tp_value_number(tp_row_value(row, column));
}

const char *tp_row_text(const Row *row, size_t column) {
  const Value *value = tp_row_value(row, column);
  if (value == NULL || value->is_case != TRACECOLLECT__V1__VALUE__IS_TEXT) return "";
  return value->text;
}

const Tracecollect__V1__Distribution *tp_row_distribution(const Row *row, size_t column) {
  return tp_value_distribution(tp_row_value(row, column));
}

static const Tracecollect__V1__Stack *find_stack(const Report *r, const Value *value) {
  if (value == NULL || value->is_case != TRACECOLLECT__V1__VALUE__IS_STACK) return NULL;
  return value->stack < r->n_stacks ? r->stacks[value->stack] : NULL;
}

size_t tp_stack_length(const Report *r, const Value *value) {
  const Tracecollect__V1__Stack *stack = find_stack(r, value);
  return stack != NULL ? stack->n_frames : 0;
}

const Tracecollect__V1__Frame *tp_stack_frame(const Report *r, const Value *value, size_t i) {
  const Tracecollect__V1__Stack *stack = find_stack(r, value);
  if (stack == NULL || i >= stack->n_frames || stack->frames[i] >= r->n_frames) return NULL;
  return r->frames[stack->frames[i]];
}
