/* SPDX-License-Identifier: Apache-2.0 */
#include "trigger/figure_path.h"

#include <stdio.h>
#include <string.h>

#include "base/text/nearest.h"
#include "online/analysis/analysis.h"
#include "pack/distribution.h"
#include "pack/report_read.h"

typedef Tracecollect__V1__ReportSchema Schema;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Value Value;

enum { NAME_BYTES = 64, PARTS_MAX = 4, PATH_BYTES = 4 * NAME_BYTES, NEAR_MAX = 3 };

static const struct {
  const char *name;
  bool is_time;
} fields[TR_FIELDS] = {
  [TR_FIELD_NONE] = { "", false },
  [TR_FIELD_COUNT] = { "count", false },
  [TR_FIELD_TOTAL] = { "total", true },
  [TR_FIELD_MIN] = { "min", true },
  [TR_FIELD_MAX] = { "max", true },
  [TR_FIELD_MEAN] = { "mean", true },
  [TR_FIELD_P50] = { "p50", true },
  [TR_FIELD_P90] = { "p90", true },
  [TR_FIELD_P99] = { "p99", true },
  [TR_FIELD_P999] = { "p999", true },
  [TR_FIELD_LOWER_BOUNDS] = { "lower_bounds", false },
};

const char *tr_field_name(enum tr_field field) {
  return fields[field].name;
}

/* ---- names ---- */

struct parts {
  char name[PARTS_MAX][NAME_BYTES];
  unsigned n;
};

static bool split(const char *text, size_t len, struct parts *out) {
  for (out->n = 0; out->n < PARTS_MAX; out->n++) {
    const char *dot = memchr(text, '.', len);
    size_t n = dot != NULL ? (size_t)(dot - text) : len;
    if (n == 0 || n >= NAME_BYTES) return false;
    snprintf(out->name[out->n], NAME_BYTES, "%.*s", (int)n, text);
    if (dot == NULL) {
      out->n++;
      return true;
    }
    text += n + 1;
    len -= n + 1;
  }
  return false;
}

/* Is typed the name, with or without the unit at its end? */
static bool is_named(const char *name, const char *typed) {
  static const char *const units[] = { "", "_ns", "_bytes", "_share" };
  size_t len = strlen(typed);

  if (strncmp(name, typed, len) != 0) return false;
  for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
    if (strcmp(name + len, units[i]) == 0) return true;
  return false;
}

static const FieldSchema *find_field(FieldSchema *const *field, size_t n, const char *typed) {
  for (size_t i = 0; i < n; i++)
    if (is_named(field[i]->name, typed)) return field[i];
  return NULL;
}

static const Schema *find_kind(Schema *const *schemas, size_t n, const char *typed) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(schemas[i]->name, typed) == 0) return schemas[i];
  return NULL;
}

static const TableSchema *find_table(const Schema *kind, const char *typed) {
  for (size_t i = 0; i < kind->n_tables; i++)
    if (strcmp(kind->tables[i]->name, typed) == 0) return kind->tables[i];
  return NULL;
}

/* ---- near names ---- */

/* The nearest paths found so far, nearest first. */
struct near {
  const char *typed;
  struct {
    char path[PATH_BYTES];
    size_t distance;
  } best[NEAR_MAX];
  unsigned n;
};

static void try_path(struct near *near, const char *path) {
  size_t distance = tb_nearest_distance(near->typed, path), at = near->n;

  if (distance > strlen(near->typed) / 2) return;
  for (unsigned i = 0; i < near->n; i++)
    if (strcmp(near->best[i].path, path) == 0) return; /* a figure and a table have this name */
  while (at > 0 && near->best[at - 1].distance > distance) at--;
  if (at == NEAR_MAX) return;
  if (near->n < NEAR_MAX) near->n++;
  memmove(&near->best[at + 1], &near->best[at], (near->n - at - 1) * sizeof(*near->best));
  snprintf(near->best[at].path, PATH_BYTES, "%s", path);
  near->best[at].distance = distance;
}

/* Tries PREFIX.NAME, or PREFIX.NAME.FIELD for a distribution. */
static void try_field(struct near *near, const char *prefix, const FieldSchema *field) {
  char path[PATH_BYTES];

  switch (field->type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK: return;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION:
    for (unsigned i = TR_FIELD_COUNT; i < TR_FIELDS; i++) {
      snprintf(path, sizeof(path), "%s.%s.%s", prefix, field->name, fields[i].name);
      try_path(near, path);
    }
    return;
  default:
    snprintf(path, sizeof(path), "%s.%s", prefix, field->name);
    try_path(near, path);
    return;
  }
}

static void try_kind(struct near *near, const Schema *kind) {
  char prefix[PATH_BYTES];

  for (size_t i = 0; i < kind->n_figures; i++) try_field(near, kind->name, kind->figures[i]);
  for (size_t t = 0; t < kind->n_tables; t++) {
    snprintf(prefix, sizeof(prefix), "%s.%s", kind->name, kind->tables[t]->name);
    try_path(near, prefix);
    for (size_t c = 0; c < kind->tables[t]->n_columns; c++)
      try_field(near, prefix, kind->tables[t]->columns[c]);
  }
}

static tb_rc unknown(const char *text, size_t len, Schema *const *schemas, size_t n,
                     struct tb_diag *diag) {
  char typed[PATH_BYTES], list[PATH_BYTES] = "";
  struct near near = { .typed = typed };

  snprintf(typed, sizeof(typed), "%.*s", (int)len, text);
  for (size_t i = 0; i < n; i++) try_kind(&near, schemas[i]);
  for (unsigned i = 0; i < near.n; i++)
    snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i > 0 ? ", " : "",
             near.best[i].path);
  if (near.n == 0)
    return tb_fail(diag, TB_BROKEN, "no figure \"%.60s\"; --schema lists the names", typed);
  return tb_fail(diag, TB_BROKEN, "no figure \"%.60s\"; near: %s", typed, list);
}

/* ---- parse ---- */

/* Sets field and type of out. Returns false if the path does not name a number. */
static bool take_number(const FieldSchema *field, const struct parts *parts, unsigned next,
                        struct tr_figure_path *out) {
  out->type = field->type;
  switch (field->type) {
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT:
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_STACK: return false;
  case TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION: break;
  default: return next == parts->n;
  }
  for (unsigned i = TR_FIELD_COUNT; i < TR_FIELDS && next + 1 == parts->n; i++) {
    char with_unit[NAME_BYTES];
    snprintf(with_unit, sizeof(with_unit), "%s%s", fields[i].name, fields[i].is_time ? "_ns" : "");
    if (!is_named(with_unit, parts->name[next])) continue;
    out->field = (enum tr_field)i;
    out->type = fields[i].is_time ? TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS
                                  : TRACECOLLECT__V1__VALUE_TYPE__VALUE_COUNT;
    return true;
  }
  return false;
}

static bool resolve(const Schema *kind, const struct parts *parts, struct tr_figure_path *out) {
  const FieldSchema *figure = find_field(kind->figures, kind->n_figures, parts->name[1]);
  const TableSchema *table = find_table(kind, parts->name[1]);

  *out = (struct tr_figure_path){ .kind = kind->name };
  if (figure != NULL) {
    out->figure = figure->name;
    return take_number(figure, parts, 2, out);
  }
  if (table == NULL) return false;
  out->table = table->name;
  out->type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_COUNT;
  if (parts->n == 2) return true;
  const FieldSchema *column = find_field(table->columns, table->n_columns, parts->name[2]);
  if (column == NULL) return false;
  out->column = column->name;
  return take_number(column, parts, 3, out);
}

tb_rc tr_figure_path_parse(const char *text, size_t len, Schema *const *schemas, size_t n,
                           struct tb_diag *diag, struct tr_figure_path *out) {
  struct parts parts;

  if (!split(text, len, &parts)) return unknown(text, len, schemas, n, diag);
  const Schema *kind = find_kind(schemas, n, parts.name[0]);
  if (kind == NULL || parts.n < 2 || !resolve(kind, &parts, out))
    return unknown(text, len, schemas, n, diag);
  return TB_OK;
}

/* ---- read ---- */

/* The greatest value of all rows, 0 if there are none. The "other" row is a sum: only its max is the value of a row. */
struct greatest {
  bool is_found;
  struct tr_number number;
};

static struct greatest greatest_of(size_t rows) {
  return (struct greatest){ .is_found = rows == 0 };
}

static bool counts_other_row(enum tr_field field) {
  return field == TR_FIELD_MAX;
}

static void take_greatest(struct greatest *greatest, struct tr_number x) {
  if (!greatest->is_found || x.value > greatest->number.value) greatest->number = x;
  greatest->is_found = true;
}

static bool read_distribution(const struct to_distribution *d, enum tr_field field, double *out) {
  const struct to_sum *sum = &d->sum;

  switch (field) {
  case TR_FIELD_COUNT: *out = (double)sum->count; return true;
  case TR_FIELD_TOTAL: *out = (double)sum->total_ns; return true;
  case TR_FIELD_MIN: *out = (double)sum->min_ns; return true;
  case TR_FIELD_MAX: *out = (double)sum->max_ns; return true;
  case TR_FIELD_MEAN:
    *out = sum->count > 0 ? (double)sum->total_ns / (double)sum->count : 0;
    return true;
  case TR_FIELD_P50: *out = (double)d->p50_ns; break;
  case TR_FIELD_P90: *out = (double)d->p90_ns; break;
  case TR_FIELD_P99: *out = (double)d->p99_ns; break;
  case TR_FIELD_P999: *out = (double)d->p999_ns; break;
  default: *out = (double)sum->lower_bounds; return true;
  }
  return d->has_quantiles;
}

static bool read_value(enum to_value_type type, const struct to_value *value, enum tr_field field,
                       double *out) {
  if (value->none) return false;
  switch (type) {
  case TO_VALUE_TEXT:
  case TO_VALUE_STACK: return false;
  case TO_VALUE_SHARE: *out = value->share; return true;
  case TO_VALUE_DISTRIBUTION: return read_distribution(value->distribution, field, out);
  default: *out = (double)value->number; return true;
  }
}

static bool read_table(const struct to_report *report, const struct tr_figure_path *path,
                       double *out) {
  int t = to_schema_table(report->schema, path->table);
  if (t < 0) return false;
  const struct to_table_schema *schema = &report->schema->table[t];
  const struct to_table *table = &report->table[t];
  struct greatest greatest = greatest_of(table->rows);
  double x;

  *out = (double)table->rows_total;
  if (path->column == NULL) return true;
  int column = to_fields_find(schema->column, schema->columns, path->column);
  for (size_t i = 0; column >= 0 && i < table->rows; i++) {
    bool is_rest = table->has_other && i + 1 == table->rows;
    if (is_rest && !counts_other_row(path->field)) continue;
    if (read_value(schema->column[column].type, &to_table_row(schema, table, i)[column],
                   path->field, &x))
      take_greatest(&greatest, (struct tr_number){ .value = x });
  }
  *out = greatest.number.value;
  return greatest.is_found;
}

bool tr_figure_path_read(const struct tr_figure_path *path, const struct to_report *report,
                         double *out) {
  if (strcmp(to_analysis_name(report->kind), path->kind) != 0) return false;
  if (path->figure == NULL) return read_table(report, path, out);
  int figure = to_fields_find(report->schema->figure, report->schema->figures, path->figure);
  return figure >= 0 &&
         read_value(report->schema->figure[figure].type, &report->figure[figure], path->field, out);
}

/* ---- read a message ---- */

static bool is_quantile(enum tr_field field) {
  return field >= TR_FIELD_P50 && field <= TR_FIELD_P999;
}

static bool unpack_value(const Value *value, enum tr_field field, struct tr_number *out) {
  const Distribution *d;

  *out = (struct tr_number){ 0 };
  switch (value != NULL ? value->is_case : TRACECOLLECT__V1__VALUE__IS__NOT_SET) {
  case TRACECOLLECT__V1__VALUE__IS_NUMBER: out->value = (double)value->number; return true;
  case TRACECOLLECT__V1__VALUE__IS_SHARE: out->value = value->share; return true;
  case TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION:
    d = value->distribution;
    if (is_quantile(field)) out->error_share = tp_distribution_error(d);
    return read_distribution(&(struct to_distribution){ .sum = { .count = d->count,
                                                                 .total_ns = d->total_ns,
                                                                 .min_ns = d->min_ns,
                                                                 .max_ns = d->max_ns,
                                                                 .lower_bounds = d->lower_bounds },
                                                        .has_quantiles = !d->no_quantiles,
                                                        .p50_ns = d->p50_ns,
                                                        .p90_ns = d->p90_ns,
                                                        .p99_ns = d->p99_ns,
                                                        .p999_ns = d->p999_ns },
                             field, &out->value);
  default: return false;
  }
}

static bool unpack_column(const struct tp_table *table, const struct tr_figure_path *path,
                          struct tr_number *out) {
  size_t column = tp_table_column(table, path->column);
  struct greatest greatest = greatest_of(table->table->n_rows);
  struct tr_number x;

  for (size_t i = 0; i < table->table->n_rows; i++) {
    const Tracecollect__V1__Row *row = table->table->rows[i];
    if (row->other && !counts_other_row(path->field)) continue;
    if (unpack_value(tp_row_value(row, column), path->field, &x)) take_greatest(&greatest, x);
  }
  *out = greatest.number;
  return greatest.is_found;
}

bool tr_figure_path_unpack(const struct tr_figure_path *path,
                           const Tracecollect__V1__StreamReport *report, struct tr_number *out) {
  struct tp_table table;

  if (strcmp(report->kind, path->kind) != 0) return false;
  if (path->figure != NULL)
    return unpack_value(tp_report_figure(report->report, path->figure), path->field, out);
  if (!tp_report_table(report->report, path->table, &table)) return false;
  if (path->column != NULL) return unpack_column(&table, path, out);
  *out = (struct tr_number){ .value = (double)table.table->rows_total };
  return true;
}
