/* SPDX-License-Identifier: Apache-2.0 */
/* Fields and tables are those of the first part, in its order, without those that another part does not have. */
#include "pack/merge_schema.h"

#include <stdlib.h>
#include <string.h>

#include "pack/report_read.h"
#include "pack/text.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__ReportSchema Schema;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Value Value;

enum place { OPTIONS, FIGURES, COLUMNS };

struct work {
  struct tb_arena *arena;
  StreamReport *const *part;
  size_t parts;
  bool of_streams, is_whole;
};

struct fields {
  FieldSchema *const *field;
  size_t n;
};

/* table: of COLUMNS, its name. The last column of a sum's list is our own. */
static struct fields fields_of(const StreamReport *part, enum place place, const char *table) {
  const Schema *schema = part->report->schema;
  struct tp_table found;

  if (place == OPTIONS) return (struct fields){ schema->options, schema->n_options };
  if (place == FIGURES) return (struct fields){ schema->figures, schema->n_figures };
  if (!tp_report_table(part->report, table, &found)) return (struct fields){ 0 };
  size_t n = found.schema->n_columns;
  bool has_own = part->instances > 0 && found.schema->list && n > 0;
  return (struct fields){ found.schema->columns, n - has_own };
}

static bool is_same(const FieldSchema *a, const FieldSchema *b) {
  return a->type == b->type && strcmp(a->name, b->name) == 0;
}

static bool has(struct fields fields, const FieldSchema *field) {
  for (size_t i = 0; i < fields.n; i++)
    if (is_same(fields.field[i], field)) return true;
  return false;
}

static bool all_have(const struct work *w, enum place place, const char *table,
                     const FieldSchema *field) {
  for (size_t i = 1; i < w->parts; i++)
    if (!has(fields_of(w->part[i], place, table), field)) return false;
  return true;
}

/* Makes room for one field more. */
static tb_rc keep_fields(struct work *w, enum place place, const char *table, size_t *out_n,
                         FieldSchema ***out) {
  struct fields first = fields_of(w->part[0], place, table);

  TP_TAKE(w->arena, FieldSchema *, first.n, *out);
  for (size_t i = 0; i < first.n; i++)
    if (all_have(w, place, table, first.field[i])) (*out)[(*out_n)++] = first.field[i];
  for (size_t i = 0; i < w->parts; i++)
    w->is_whole &= fields_of(w->part[i], place, table).n == *out_n;
  return TB_OK;
}

/* ---- tables ---- */

static bool has_same_keys(const TableSchema *a, const TableSchema *b) {
  if (a->keys != b->keys || a->list != b->list) return false;
  if (a->keys > a->n_columns || b->keys > b->n_columns) return false;
  for (size_t i = 0; i < a->keys; i++)
    if (!is_same(a->columns[i], b->columns[i])) return false;
  return true;
}

/* Rows can be joined if every part has the same keys. */
static bool can_join(const struct work *w, const TableSchema *table) {
  struct tp_table other;

  for (size_t i = 0; i < w->parts; i++)
    if (!tp_report_table(w->part[i]->report, table->name, &other) ||
        !has_same_keys(table, other.schema))
      return false;
  return true;
}

/* Numbers the columns of the order anew. */
static tb_rc keep_sort(struct work *w, const TableSchema *from, TableSchema *into) {
  TP_TAKE(w->arena, int32_t, from->n_sort, into->sort);
  for (size_t i = 0; i < from->n_sort; i++) {
    int64_t column = llabs(from->sort[i]);
    if (column < 1 || (size_t)column > from->n_columns) continue;
    for (size_t c = 0; c < into->n_columns; c++)
      if (into->columns[c] == from->columns[column - 1])
        into->sort[into->n_sort++] = from->sort[i] < 0 ? -(int32_t)(c + 1) : (int32_t)(c + 1);
  }
  return TB_OK;
}

static tb_rc add_instance(struct tb_arena *arena, TableSchema *table) {
  FieldSchema *instance;

  TP_TAKE(arena, FieldSchema, 1, instance);
  tracecollect__v1__field_schema__init(instance);
  instance->name = (char *)(uintptr_t)TP_MERGE_INSTANCE;
  instance->type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_TEXT;
  instance->about = (char *)(uintptr_t) "The instance that it is of.";
  table->columns[table->n_columns++] = instance;
  return TB_OK;
}

static tb_rc keep_table(struct work *w, const TableSchema *from, TableSchema *into) {
  *into = *from;
  into->n_columns = into->n_sort = 0;
  TB_TRY(keep_fields(w, COLUMNS, from->name, &into->n_columns, &into->columns));
  TB_TRY(keep_sort(w, from, into));
  return into->list && w->of_streams ? add_instance(w->arena, into) : TB_OK;
}

static tb_rc keep_tables(struct work *w, Schema *schema) {
  const Schema *first = w->part[0]->report->schema;
  TableSchema *tables;

  TP_TAKE(w->arena, TableSchema, first->n_tables, tables);
  TP_TAKE(w->arena, TableSchema *, first->n_tables, schema->tables);
  schema->n_tables = 0;
  for (size_t t = 0; t < first->n_tables; t++) {
    if (!can_join(w, first->tables[t])) continue;
    schema->tables[schema->n_tables] = &tables[schema->n_tables];
    TB_TRY(keep_table(w, first->tables[t], schema->tables[schema->n_tables++]));
  }
  for (size_t i = 0; i < w->parts; i++)
    w->is_whole &= w->part[i]->report->schema->n_tables == schema->n_tables;
  return TB_OK;
}

tb_rc tp_merge_schema(struct tb_arena *arena, StreamReport *const *part, size_t parts,
                      bool of_streams, bool *out_whole, Schema **out) {
  struct work w = {
    .arena = arena, .part = part, .parts = parts, .of_streams = of_streams, .is_whole = true
  };
  Schema *schema;

  TP_TAKE(arena, Schema, 1, schema);
  *schema = *part[0]->report->schema;
  schema->n_options = schema->n_figures = 0;
  TB_TRY(keep_fields(&w, OPTIONS, NULL, &schema->n_options, &schema->options));
  TB_TRY(keep_fields(&w, FIGURES, NULL, &schema->n_figures, &schema->figures));
  TB_TRY(keep_tables(&w, schema));
  *out_whole = w.is_whole;
  *out = schema;
  return TB_OK;
}

bool tp_field_is_number(const FieldSchema *field) {
  return field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_COUNT ||
         field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_NS ||
         field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_BYTES;
}

/* ---- the order of rows ---- */

static int compare_values(const Value *a, const Value *b) {
  if (a->is_case != b->is_case)
    return (a->is_case != TRACECOLLECT__V1__VALUE__IS__NOT_SET) -
           (b->is_case != TRACECOLLECT__V1__VALUE__IS__NOT_SET);
  switch (a->is_case) {
  case TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION:
    return (a->distribution->total_ns > b->distribution->total_ns) -
           (a->distribution->total_ns < b->distribution->total_ns);
  case TRACECOLLECT__V1__VALUE__IS_NUMBER: return (a->number > b->number) - (a->number < b->number);
  case TRACECOLLECT__V1__VALUE__IS_SHARE: return (a->share > b->share) - (a->share < b->share);
  default: return 0;
  }
}

int tp_rows_compare(const TableSchema *schema, const Tracecollect__V1__Row *a,
                    const Tracecollect__V1__Row *b) {
  Value **x = a->values, **y = b->values;

  for (size_t i = 0; i < schema->n_sort; i++) {
    int32_t sort = schema->sort[i];
    size_t column = (size_t)(sort < 0 ? -sort : sort) - 1;
    int order = compare_values(x[column], y[column]);
    if (order != 0) return sort < 0 ? order : -order;
  }
  for (size_t c = 0; c < schema->keys; c++) {
    if (x[c]->is_case != TRACECOLLECT__V1__VALUE__IS_TEXT || x[c]->is_case != y[c]->is_case)
      continue;
    int order = strcmp(x[c]->text, y[c]->text);
    if (order != 0) return order;
  }
  return 0;
}

/* ---- streams ---- */

enum { STREAMS_MAX = 1000 };

tb_rc tp_merge_streams(struct tb_arena *arena, StreamReport *const *part, size_t parts,
                       StreamReport *sum) {
  size_t room = 0;

  for (size_t i = 0; i < parts; i++) {
    bool is_sum = part[i]->instances > 0;
    const ProtobufCBinaryData *id = is_sum ? part[i]->streams : &part[i]->stream;
    size_t n = is_sum ? part[i]->n_streams : part[i]->stream.len > 0;
    for (size_t k = 0; k < n && sum->n_streams < STREAMS_MAX; k++) {
      TB_TRY(TB_ARENA_GROW(arena, sum->streams, room, sum->n_streams));
      sum->streams[sum->n_streams++] = id[k];
    }
  }
  return TB_OK;
}
