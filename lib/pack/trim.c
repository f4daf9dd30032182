/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/trim.h"

#include "event/event.h"

/* Any of these messages may be missing, and any number may be in it: a collector sends them. */

static void sum_join(Tracecollect__V1__Sum *into, const Tracecollect__V1__Sum *from) {
  if (into == NULL || from == NULL) return;
  into->count += from->count;
  into->total_ns += from->total_ns;
  into->lower_bounds += from->lower_bounds;
  if (from->max_ns > into->max_ns) into->max_ns = from->max_ns;
}

/* The row of the rest comes last; if there is none, the first row that is cut becomes it. */
static void trim_stacks(Tracecollect__V1__SyscallReport *r, size_t rows) {
  size_t n = r->n_stacks;

  if (n <= rows || (n == rows + 1 && r->stacks[n - 1]->other)) return;
  Tracecollect__V1__SyscallStack *other = r->stacks[rows];
  other->other = true;
  other->n_stack = 0;
  for (size_t i = rows + 1; i < n; i++) {
    sum_join(other->calls, r->stacks[i]->calls);
    sum_join(other->blocked, r->stacks[i]->blocked);
  }
  r->n_stacks = rows + 1;
}

static void trim_stoppers(Tracecollect__V1__StwReport *r, size_t rows) {
  size_t n = r->n_stoppers;

  if (n <= rows || (n == rows + 1 && r->stoppers[n - 1]->other)) return;
  Tracecollect__V1__StwStopper *other = r->stoppers[rows];
  static char none[] = "";
  other->other = true;
  other->n_stack = 0;
  other->goroutine = TO_NONE;
  other->reason = none;
  for (size_t i = rows + 1; i < n; i++) sum_join(other->stopped, r->stoppers[i]->stopped);
  r->n_stoppers = rows + 1;
}

static void distribution_join(Tracecollect__V1__Distribution *into,
                              const Tracecollect__V1__Distribution *from) {
  into->count += from->count;
  into->total_ns += from->total_ns;
  into->lower_bounds += from->lower_bounds;
  if (from->max_ns > into->max_ns) into->max_ns = from->max_ns;
  into->p50_ns = into->p90_ns = into->p99_ns = into->p999_ns = 0;
  into->no_quantiles = true;
}

static bool has_sum(Tracecollect__V1__ValueType type) {
  switch (type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_COUNT:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_BYTES: return true;
  default: return false;
  }
}

static void number_join(int64_t *into, int64_t from, bool greatest) {
  if (greatest)
    *into = from > *into ? from : *into;
  else if (__builtin_add_overflow(*into, from, into))
    *into = from < 0 ? INT64_MIN : INT64_MAX;
}

static void value_join(Tracecollect__V1__Value *into, const Tracecollect__V1__Value *from,
                       const Tracecollect__V1__FieldSchema *schema) {
  if (into->is_case != from->is_case) return;
  if (into->is_case == TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION)
    distribution_join(into->distribution, from->distribution);
  else if (into->is_case == TRACECOLLECT__V1__VALUE__IS_NUMBER && has_sum(schema->type))
    number_join(&into->number, from->number, schema->greatest);
}

static void row_join(const Tracecollect__V1__TableSchema *schema, Tracecollect__V1__Row *into,
                     const Tracecollect__V1__Row *from) {
  for (size_t c = schema->keys; c < schema->n_columns; c++)
    if (c < into->n_values && c < from->n_values)
      value_join(into->values[c], from->values[c], schema->columns[c]);
}

/* The first row that is cut becomes the sum of the rest. */
static void trim_table(const Tracecollect__V1__TableSchema *schema, Tracecollect__V1__Table *table,
                       size_t rows) {
  size_t n = table->n_rows;

  if (n <= rows || (n == rows + 1 && table->rows[n - 1]->other)) return;
  table->n_rows = rows;
  if (schema->list) return;
  Tracecollect__V1__Row *other = table->rows[table->n_rows++];
  other->other = true;
  for (size_t c = 0; c < other->n_values && c < schema->n_columns; c++)
    if (c < schema->keys || !has_sum(schema->columns[c]->type))
      other->values[c]->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  for (size_t i = rows + 1; i < n; i++) row_join(schema, other, table->rows[i]);
}

static void trim_tables(Tracecollect__V1__Report *report, size_t rows) {
  if (report == NULL || report->schema == NULL) return;
  for (size_t t = 0; t < report->n_tables && t < report->schema->n_tables; t++)
    trim_table(report->schema->tables[t], report->tables[t], rows);
}

void tp_report_trim(Tracecollect__V1__StreamReport *report, size_t rows) {
  if (rows == 0) return;
  trim_tables(report->report, rows);
  if (report->syscall != NULL) {
    trim_stacks(report->syscall, rows);
    if (report->syscall->n_blocked_now > rows) report->syscall->n_blocked_now = rows;
  }
  if (report->stw != NULL) trim_stoppers(report->stw, rows);
}
