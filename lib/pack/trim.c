/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/trim.h"

#include <stdbool.h>

static void distribution_join(Tracecollect__V1__Distribution *into,
                              const Tracecollect__V1__Distribution *from) {
  if (from->count > 0 && (into->count == 0 || from->min_ns < into->min_ns))
    into->min_ns = from->min_ns;
  if (from->max_ns > into->max_ns) into->max_ns = from->max_ns;
  into->count += from->count;
  into->total_ns += from->total_ns;
  into->lower_bounds += from->lower_bounds;
  into->n_buckets = 0;
  into->zeros = 0;
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

/* Cuts the table; the first row that is cut becomes the sum of all that are cut. */
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
  if (rows > 0) trim_tables(report->report, rows);
}
