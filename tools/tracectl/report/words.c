/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/report/words.h"

#include <string.h>

#include "pack/report_read.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__ReportSchema ReportSchema;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Value Value;

typedef size_t write_fn(enum to_program program, const char *text, char *out, size_t bytes);

static tb_rc replace(struct tb_arena *arena, write_fn *write, char **text) {
  size_t n = write(TO_PROGRAM_C, *text, NULL, 0) + 1;
  char *words;

  TB_TRY(tb_arena_alloc(arena, n, &words));
  (void)write(TO_PROGRAM_C, *text, words, n);
  *text = words;
  return TB_OK;
}

static tb_rc replace_fields(struct tb_arena *arena, FieldSchema *const *field, size_t n) {
  for (size_t i = 0; i < n; i++) {
    TB_TRY(replace(arena, to_words_column, &field[i]->name));
    TB_TRY(replace(arena, to_words_write, &field[i]->about));
  }
  return TB_OK;
}

static tb_rc replace_schema(struct tb_arena *arena, ReportSchema *schema) {
  TB_TRY(replace_fields(arena, schema->options, schema->n_options));
  TB_TRY(replace_fields(arena, schema->figures, schema->n_figures));
  for (size_t t = 0; t < schema->n_tables; t++) {
    TableSchema *table = schema->tables[t];
    TB_TRY(replace(arena, to_words_write, &table->about));
    TB_TRY(replace(arena, to_words_write, &table->order));
    TB_TRY(replace_fields(arena, table->columns, table->n_columns));
  }
  return TB_OK;
}

static tb_rc replace_values(struct tb_arena *arena, Value *const *value, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (value[i]->is_case == TRACECOLLECT__V1__VALUE__IS_TEXT)
      TB_TRY(replace(arena, to_words_write, &value[i]->text));
  return TB_OK;
}

tb_rc tk_report_words(struct tb_arena *arena, StreamReport *report) {
  Report *r = report->report;

  if (r == NULL || r->schema == NULL || tp_report_program(report) == TO_PROGRAM_GO) return TB_OK;
  TB_TRY(replace(arena, to_words_write, &report->kind));
  TB_TRY(replace_schema(arena, r->schema));
  TB_TRY(replace_values(arena, r->figures, r->n_figures));
  for (size_t t = 0; t < r->n_tables; t++)
    for (size_t i = 0; i < r->tables[t]->n_rows; i++)
      TB_TRY(replace_values(arena, r->tables[t]->rows[i]->values, r->tables[t]->rows[i]->n_values));
  for (size_t i = 0; i < r->n_notes; i++) TB_TRY(replace(arena, to_words_write, &r->notes[i]));
  return TB_OK;
}

static bool is_of_optional(const char *kind) {
  static const char *const kinds[] = { "stw", "gc", "heap", "cpu", "tasks", "regions" };

  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kinds[i], kind) == 0) return true;
  return false;
}

static bool has_something(const Value *value) {
  const Tracecollect__V1__Distribution *d = tp_value_distribution(value);

  return d != NULL ? d->count > 0 : tp_value_number(value) != 0 || tp_value_share(value) > 0;
}

bool tk_report_is_unused(const StreamReport *report) {
  const Report *r = report->report;

  if (r == NULL || tp_report_program(report) == TO_PROGRAM_GO || !is_of_optional(report->kind))
    return false;
  for (size_t i = 0; i < r->n_figures; i++)
    if (has_something(r->figures[i])) return false;
  for (size_t t = 0; t < r->n_tables; t++)
    if (r->tables[t]->n_rows > 0) return false;
  return true;
}
