/* SPDX-License-Identifier: Apache-2.0 */
/* Part after part is added to the sum. Rows are found by a hash of what they contain; those of the same hash are
 * linked. */
#include "pack/merge.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "online/event/top_rows.h"
#include "pack/distribution.h"
#include "pack/merge_index.h"
#include "pack/merge_numbers.h"
#include "pack/merge_schema.h"
#include "pack/merge_stacks.h"
#include "pack/report_read.h"
#include "pack/text.h"

typedef Tracecollect__V1__StreamReport StreamReport;
typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__TableSchema TableSchema;
typedef Tracecollect__V1__FieldSchema FieldSchema;
typedef Tracecollect__V1__Distribution Distribution;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Row Row;
typedef Tracecollect__V1__Stack Stack;
typedef Tracecollect__V1__Frame Frame;

enum { SCRATCH_BYTES = 16 << 10, NOTE_BYTES = 160 };

struct rows {
  const TableSchema *schema;
  size_t *key, keys; /* the columns that identify a row; keys 0: nothing does */
  struct tp_index index;
  Row **row, *other;
  size_t n, room;
  uint64_t left_out; /* rows that parts do not list */
};

struct merge {
  bool of_stretches;               /* of one stream; else of several streams */
  struct tb_arena *arena, scratch; /* scratch: of one part */
  uint64_t seed;
  StreamReport *sum;
  Report *report;
  struct tp_stacks stacks;
  struct tp_index instances, notes;
  const char **instance;
  size_t instances_room, notes_room;
  struct rows *table;

  const StreamReport *part;
  bool is_last; /* of all parts */
  struct tp_numbers numbers;
  bool part_is_old; /* it has lengths without buckets that have quantiles */
  size_t old_parts;
};

static bool is_same_text(const void *list, size_t item, const void *key) {
  return strcmp(((const char *const *)list)[item], key) == 0;
}

/* ---- values ---- */

static bool has_sum(const FieldSchema *field) {
  return tp_field_is_number(field) ||
         field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION;
}

static tb_rc add_distribution(struct merge *m, Value *into, const Value *from) {
  const Distribution *d = tp_value_distribution(from);

  if (d == NULL) return TB_OK;
  if (into->is_case != TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION) {
    TP_TAKE(m->arena, Distribution, 1, into->distribution);
    tracecollect__v1__distribution__init(into->distribution);
    into->is_case = TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION;
  }
  m->part_is_old |= !d->no_quantiles && !tp_distribution_is_whole(d);
  return tp_distribution_add(m->arena, into->distribution, d);
}

static tb_rc add_sum(struct merge *m, const FieldSchema *field, Value *into, const Value *from) {
  if (!tp_field_is_number(field)) return add_distribution(m, into, from);
  tp_number_add(&m->numbers, field, into, from);
  return TB_OK;
}

/* Moves a time from the part's clock to the wall clock. */
static void move_time(const StreamReport *part, Value *value) {
  uint64_t behind = part->until_wall_ns - (uint64_t)part->until_ns;

  if (value->is_case != TRACECOLLECT__V1__VALUE__IS_NUMBER) return;
  value->number = (int64_t)((uint64_t)value->number + behind);
  if (part->until_wall_ns == 0) value->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
}

/* Copies a value that is no sum. */
static tb_rc copy_value(struct merge *m, const FieldSchema *field, Value *into, const Value *from) {
  *into = *from;
  if (field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_TIME && !m->of_stretches)
    move_time(m->part, into);
  if (from->is_case == TRACECOLLECT__V1__VALUE__IS_STACK)
    return tp_stacks_find(&m->stacks, from, &into->stack);
  if (from->is_case == TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION)
    into->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET; /* the schema has another type */
  return TB_OK;
}

static bool is_same_value(const Value *a, const Value *b) {
  if (a->is_case != b->is_case) return false;
  switch (a->is_case) {
  case TRACECOLLECT__V1__VALUE__IS_NUMBER: return a->number == b->number;
  case TRACECOLLECT__V1__VALUE__IS_SHARE: return a->share == b->share;
  case TRACECOLLECT__V1__VALUE__IS_TEXT: return strcmp(a->text, b->text) == 0;
  case TRACECOLLECT__V1__VALUE__IS_STACK: return a->stack == b->stack;
  default: return true;
  }
}

/* Keeps a value that is the same in all parts. is_first: there is nothing to compare with yet. */
static tb_rc keep_same(struct merge *m, const FieldSchema *field, bool is_first, Value *into,
                       const Value *from) {
  Value copy;

  TB_TRY(copy_value(m, field, &copy, from));
  if (is_first)
    *into = copy;
  else if (!is_same_value(into, &copy))
    into->is_case = TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  return TB_OK;
}

static tb_rc add_value(struct merge *m, const FieldSchema *field, bool is_first, Value *into,
                       const Value *from) {
  return has_sum(field) ? add_sum(m, field, into, from) : keep_same(m, field, is_first, into, from);
}

static tb_rc take_values(struct merge *m, size_t n, Value ***out) {
  Value *values, **list;

  TP_TAKE(m->arena, Value, n, values);
  TP_TAKE(m->arena, Value *, n, list);
  for (size_t i = 0; i < n; i++) {
    list[i] = &values[i];
    tracecollect__v1__value__init(list[i]);
  }
  *out = list;
  return TB_OK;
}

static const Value *or_unknown(const Value *value) {
  static const Value unknown = TRACECOLLECT__V1__VALUE__INIT;
  return value != NULL ? value : &unknown;
}

/* ---- figures ---- */

/* One part in which it is unknown makes it unknown. */
static void add_share(const struct merge *m, const FieldSchema *field, bool is_first, Value *into,
                      const Value *from) {
  double before = (double)m->sum->time_ns, its = (double)tp_time_of(m->part);
  bool is_known = is_first || into->is_case == TRACECOLLECT__V1__VALUE__IS_SHARE;

  is_known &= from->is_case == TRACECOLLECT__V1__VALUE__IS_SHARE && field->of_time;
  into->is_case =
      is_known ? TRACECOLLECT__V1__VALUE__IS_SHARE : TRACECOLLECT__V1__VALUE__IS__NOT_SET;
  if (!is_known) return;
  double sum = before * (is_first ? 0 : into->share) + its * from->share;
  into->share = before + its > 0 ? sum / (before + its) : from->share;
}

static tb_rc add_figures(struct merge *m, bool is_first) {
  Report *r = m->report;

  for (size_t i = 0; i < r->n_options; i++) {
    const FieldSchema *field = r->schema->options[i];
    const Value *from = or_unknown(tp_report_option(m->part->report, field->name));
    TB_TRY(keep_same(m, field, is_first, r->options[i], from));
  }
  for (size_t i = 0; i < r->n_figures; i++) {
    const FieldSchema *field = r->schema->figures[i];
    const Value *from = or_unknown(tp_report_figure(m->part->report, field->name));
    tp_number_forget(&m->numbers, field, r->figures[i]);
    if (field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_SHARE)
      add_share(m, field, is_first, r->figures[i], from);
    else
      TB_TRY(add_value(m, field, is_first, r->figures[i], from));
  }
  return TB_OK;
}

/* ---- rows ---- */

struct key {
  const Value *value;
  const size_t *column;
  size_t n;
};

static bool is_same_row(const void *list, size_t item, const void *key) {
  const Row *row = ((Row *const *)list)[item];
  const struct key *k = key;

  for (size_t i = 0; i < k->n; i++)
    if (!is_same_value(row->values[k->column[i]], &k->value[i])) return false;
  return true;
}

static uint64_t hash_value(uint64_t hash, const Value *value) {
  hash = tb_hash(hash, &value->is_case, sizeof(value->is_case));
  switch (value->is_case) {
  case TRACECOLLECT__V1__VALUE__IS_TEXT: return tp_hash_text(hash, value->text);
  case TRACECOLLECT__V1__VALUE__IS_STACK: return tb_hash(hash, &value->stack, sizeof(value->stack));
  case TRACECOLLECT__V1__VALUE__IS_NUMBER:
    return tb_hash(hash, &value->number, sizeof(value->number));
  default: return hash;
  }
}

static tb_rc take_row(struct merge *m, const TableSchema *schema, Row **out) {
  TP_TAKE(m->arena, Row, 1, *out);
  tracecollect__v1__row__init(*out);
  (*out)->n_values = schema->n_columns;
  return take_values(m, schema->n_columns, &(*out)->values);
}

static tb_rc push_row(struct merge *m, struct rows *t, Row **out) {
  TB_TRY(TB_ARENA_GROW(m->arena, t->row, t->room, t->n));
  TB_TRY(take_row(m, t->schema, out));
  t->row[t->n++] = *out;
  return TB_OK;
}

static const Value *column_of(const Row *from, const size_t *column, size_t c) {
  return or_unknown(tp_row_value(from, column[c]));
}

/* Finds the row with the part's key, or adds one. */
static tb_rc find_row(struct merge *m, struct rows *t, const Row *from, const size_t *column,
                      Row **out, bool *out_fresh) {
  struct key key = { .column = t->key, .n = t->keys };
  uint64_t hash = m->seed;
  Value *value;
  size_t item;

  TP_TAKE(&m->scratch, Value, key.n, value);
  for (size_t i = 0; i < key.n; i++) {
    size_t c = t->key[i];
    TB_TRY(copy_value(m, t->schema->columns[c], &value[i], column_of(from, column, c)));
    hash = hash_value(hash, &value[i]);
  }
  key.value = value;
  TB_TRY(tp_index_find(&t->index, hash, is_same_row, t->row, &key, &item, out_fresh));
  if (!*out_fresh) {
    *out = t->row[item];
    return TB_OK;
  }
  TB_TRY(push_row(m, t, out));
  for (size_t i = 0; i < key.n; i++) *(*out)->values[t->key[i]] = value[i];
  return TB_OK;
}

/* Leaves shares unknown: they are shares of one part. */
static tb_rc add_row(struct merge *m, struct rows *t, const Row *from, const size_t *column) {
  bool is_fresh;
  Row *into;

  TB_TRY(find_row(m, t, from, column, &into, &is_fresh));
  for (size_t c = t->schema->keys; c < t->schema->n_columns; c++)
    if (t->schema->columns[c]->type != TRACECOLLECT__V1__VALUE_TYPE__VALUE_SHARE)
      TB_TRY(add_value(m, t->schema->columns[c], is_fresh, into->values[c],
                       column_of(from, column, c)));
  return TB_OK;
}

static tb_rc add_to_other(struct merge *m, struct rows *t, const Row *from, const size_t *column) {
  if (t->other == NULL) {
    TB_TRY(take_row(m, t->schema, &t->other));
    t->other->other = true;
  }
  for (size_t c = t->schema->keys; c < t->schema->n_columns; c++)
    if (has_sum(t->schema->columns[c]))
      TB_TRY(add_sum(m, t->schema->columns[c], t->other->values[c], column_of(from, column, c)));
  return TB_OK;
}

static bool is_key(const struct rows *t, size_t c) {
  for (size_t i = 0; i < t->keys; i++)
    if (t->key[i] == c) return true;
  return false;
}

/* A thing of an earlier stretch that went on is the same row, with its newest values; a share is unknown if it
 * differs. */
static tb_rc add_thing(struct merge *m, struct rows *t, const Row *from, const size_t *column) {
  bool is_fresh;
  Row *into;

  TB_TRY(find_row(m, t, from, column, &into, &is_fresh));
  for (size_t c = 0; c < t->schema->n_columns; c++) {
    const FieldSchema *field = t->schema->columns[c];
    if (is_key(t, c)) continue;
    if (tp_number_is_extreme(&m->numbers, field))
      tp_number_add(&m->numbers, field, into->values[c], column_of(from, column, c));
    else if (field->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_SHARE)
      TB_TRY(keep_same(m, field, is_fresh, into->values[c], column_of(from, column, c)));
    else
      TB_TRY(copy_value(m, field, into->values[c], column_of(from, column, c)));
  }
  return TB_OK;
}

/* The last column is the instance. */
static tb_rc add_item(struct merge *m, struct rows *t, const Row *from, const size_t *column) {
  size_t last = t->schema->n_columns - 1;
  Row *into;

  TB_TRY(push_row(m, t, &into));
  for (size_t c = 0; c < last; c++)
    TB_TRY(add_value(m, t->schema->columns[c], true, into->values[c], column_of(from, column, c)));
  if (column[last] != SIZE_MAX)
    return copy_value(m, t->schema->columns[last], into->values[last],
                      column_of(from, column, last));
  into->values[last]->is_case = TRACECOLLECT__V1__VALUE__IS_TEXT;
  into->values[last]->text = m->part->instance;
  return TB_OK;
}

static void forget_last_of_rows(const struct merge *m, const struct rows *t) {
  for (size_t c = 0; c < t->schema->n_columns; c++) {
    const FieldSchema *field = t->schema->columns[c];
    for (size_t i = 0; i < t->n; i++) tp_number_forget(&m->numbers, field, t->row[i]->values[c]);
    if (t->other != NULL) tp_number_forget(&m->numbers, field, t->other->values[c]);
  }
}

static tb_rc add_table(struct merge *m, struct rows *t) {
  struct tp_table table;
  size_t *column, listed = 0;

  if (t->schema->now && (m->of_stretches ? !m->is_last : m->numbers.is_past)) return TB_OK;
  forget_last_of_rows(m, t);
  if (!tp_report_table(m->part->report, t->schema->name, &table)) return TB_OK;
  TP_TAKE(&m->scratch, size_t, t->schema->n_columns, column);
  for (size_t c = 0; c < t->schema->n_columns; c++)
    column[c] = tp_table_column(&table, t->schema->columns[c]->name);
  for (size_t i = 0; i < table.table->n_rows; i++) {
    const Row *from = table.table->rows[i];
    if (t->schema->list && m->of_stretches)
      TB_TRY(add_thing(m, t, from, column));
    else if (t->schema->list)
      TB_TRY(add_item(m, t, from, column));
    else if (from->other)
      TB_TRY(add_to_other(m, t, from, column));
    else
      TB_TRY(add_row(m, t, from, column));
    listed += !from->other;
  }
  if (table.table->rows_total > listed) t->left_out += table.table->rows_total - listed;
  return TB_OK;
}

/* ---- the order of rows ---- */

static bool row_before(const void *rows, uint32_t a, uint32_t b) {
  const struct rows *t = rows;
  int order = tp_rows_compare(t->schema, t->row[a], t->row[b]);

  return order != 0 ? order < 0 : a < b;
}

static void end_means(const struct merge *m, const struct rows *t) {
  for (size_t c = t->schema->keys; c < t->schema->n_columns; c++) {
    const FieldSchema *field = t->schema->columns[c];
    for (size_t i = 0; i < t->n; i++)
      tp_number_end(&m->numbers, field, m->sum->time_ns, t->row[i]->values[c]);
    if (t->other != NULL) tp_number_end(&m->numbers, field, m->sum->time_ns, t->other->values[c]);
  }
}

/* Sorts the rows, and sums those above the limit in "other", as rows are summed. */
static tb_rc finish_table(struct merge *m, struct rows *t, Tracecollect__V1__Table *out) {
  size_t listed = t->n < TP_MERGE_ROWS ? t->n : TP_MERGE_ROWS;
  size_t *same;
  uint32_t *rank;

  TP_TAKE(&m->scratch, uint32_t, t->n, rank);
  TP_TAKE(&m->scratch, size_t, t->schema->n_columns, same);
  for (size_t c = 0; c < t->schema->n_columns; c++) same[c] = c;
  for (size_t i = 0; i < t->n; i++) rank[i] = (uint32_t)i;
  to_top_rows(rank, t->n, listed, row_before, t);
  for (size_t i = listed; i < t->n && !t->schema->list; i++)
    TB_TRY(add_to_other(m, t, t->row[rank[i]], same));
  TP_TAKE(m->arena, Row *, listed + 1, out->rows);
  for (size_t i = 0; i < listed; i++) out->rows[out->n_rows++] = t->row[rank[i]];
  if (t->other != NULL) out->rows[out->n_rows++] = t->other;
  out->rows_total = t->n + t->left_out;
  return TB_OK;
}

/* ---- notes ---- */

static tb_rc add_note(struct merge *m, char *note) {
  Report *r = m->report;
  bool is_fresh;
  size_t item;

  TB_TRY(tp_index_find(&m->notes, tp_hash_text(m->seed, note), is_same_text, r->notes, note, &item,
                       &is_fresh));
  if (!is_fresh) return TB_OK;
  TB_TRY(TB_ARENA_GROW(m->arena, r->notes, m->notes_room, r->n_notes));
  r->notes[r->n_notes++] = note;
  return TB_OK;
}

static bool has_left_out_rows(const struct merge *m) {
  for (size_t t = 0; t < m->report->n_tables; t++)
    if (!m->table[t].schema->list && m->table[t].left_out > 0) return true;
  return false;
}

/* Says what the sum cannot have. */
static tb_rc add_own_notes(struct merge *m, size_t parts, bool is_whole) {
  static char some_fields[] =
      "The reports are of several versions: what not all of them have is left out.";
  static char some_rows[] =
      "Streams with more rows than they list have the others in \"other\": sums of rows are lower "
      "bounds, the number of rows is an upper bound.";
  char *old;

  if (!is_whole) TB_TRY(add_note(m, some_fields));
  if (has_left_out_rows(m)) TB_TRY(add_note(m, some_rows));
  if (m->old_parts == 0) return TB_OK;
  TP_TAKE(m->arena, char, NOTE_BYTES, old);
  snprintf(old, NOTE_BYTES,
           "%zu of %zu reports are of a version without histograms: their quantiles cannot be "
           "added up.",
           m->old_parts, parts);
  return add_note(m, old);
}

/* ---- the report ---- */

static tb_rc add_instance(struct merge *m) {
  bool is_fresh;
  size_t item;

  if (m->part->instances > 0) {
    m->sum->instances += m->part->instances;
    return TB_OK;
  }
  TB_TRY(tp_index_find(&m->instances, tp_hash_text(m->seed, m->part->instance), is_same_text,
                       m->instance, m->part->instance, &item, &is_fresh));
  if (!is_fresh) return TB_OK;
  TB_TRY(TB_ARENA_GROW(m->arena, m->instance, m->instances_room, item));
  m->instance[item] = m->part->instance;
  m->sum->instances++;
  return TB_OK;
}

static tb_rc add_part(struct merge *m, const StreamReport *part, bool is_first) {
  const Report *from = part->report;

  tb_arena_reset(&m->scratch);
  m->part = part;
  m->part_is_old = false;
  TB_TRY(tp_stacks_begin(&m->stacks, from, &m->scratch));
  TB_TRY(add_figures(m, is_first));
  for (size_t t = 0; t < m->report->n_tables; t++) TB_TRY(add_table(m, &m->table[t]));
  for (size_t i = 0; i < from->n_notes; i++) TB_TRY(add_note(m, from->notes[i]));
  m->old_parts += m->part_is_old;
  if (m->of_stretches) {
    tp_time_append(m->sum, part, is_first);
    return TB_OK;
  }
  TB_TRY(add_instance(m));
  tp_time_join(m->sum, part, is_first);
  return TB_OK;
}

/* Rows of a list have no key; of one stream things are told apart by when they began, too. */
static tb_rc find_key(struct merge *m, struct rows *t) {
  TP_TAKE(m->arena, size_t, t->schema->n_columns, t->key);
  for (size_t c = 0; c < t->schema->n_columns; c++) {
    bool is_time = t->schema->columns[c]->type == TRACECOLLECT__V1__VALUE_TYPE__VALUE_TIME;
    if (c < t->schema->keys || (t->schema->list && is_time)) t->key[t->keys++] = c;
  }
  return TB_OK;
}

static tb_rc begin(struct merge *m, const StreamReport *first) {
  static char none[] = "";
  Report *r = m->report;
  Tracecollect__V1__Table *tables;

  m->sum->service = first->service;
  m->sum->instance = m->of_stretches ? first->instance : none;
  if (m->of_stretches) m->sum->stream = first->stream;
  m->sum->kind = first->kind;
  m->sum->window = first->window;
  m->sum->report = r;
  r->n_options = r->schema->n_options;
  r->n_figures = r->schema->n_figures;
  r->n_tables = r->schema->n_tables;
  TB_TRY(take_values(m, r->n_options, &r->options));
  TB_TRY(take_values(m, r->n_figures, &r->figures));
  TP_TAKE(m->arena, Tracecollect__V1__Table, r->n_tables, tables);
  TP_TAKE(m->arena, Tracecollect__V1__Table *, r->n_tables, r->tables);
  TP_TAKE(m->arena, struct rows, r->n_tables, m->table);
  for (size_t t = 0; t < r->n_tables; t++) {
    r->tables[t] = &tables[t];
    tracecollect__v1__table__init(&tables[t]);
    m->table[t] = (struct rows){ .schema = r->schema->tables[t] };
    tp_index_init(&m->table[t].index, m->arena, m->seed);
  }
  for (size_t t = 0; t < r->n_tables; t++) TB_TRY(find_key(m, &m->table[t]));
  return TB_OK;
}

static bool is_any_live(StreamReport *const *part, size_t parts) {
  for (size_t i = 0; i < parts; i++)
    if (part[i]->ended_wall_ns == 0) return true;
  return false;
}

static tb_rc finish(struct merge *m) {
  Report *r = m->report;

  for (size_t i = 0; i < r->n_figures; i++)
    tp_number_end(&m->numbers, r->schema->figures[i], m->sum->time_ns, r->figures[i]);
  for (size_t t = 0; t < r->n_tables; t++) end_means(m, &m->table[t]);
  m->numbers = (struct tp_numbers){ .of_stretches = false }; /* from here on rows are summed */
  for (size_t t = 0; t < r->n_tables; t++) TB_TRY(finish_table(m, &m->table[t], r->tables[t]));
  return TB_OK;
}

static tb_rc merge(struct merge *m, StreamReport *const *part, size_t parts) {
  bool is_whole, is_any = is_any_live(part, parts);

  TP_TAKE(m->arena, StreamReport, 1, m->sum);
  TP_TAKE(m->arena, Report, 1, m->report);
  m->stacks.report = m->report;
  tracecollect__v1__stream_report__init(m->sum);
  tracecollect__v1__report__init(m->report);
  tp_report_set_program(m->sum, tp_reports_program(part, parts));
  TB_TRY(tp_merge_schema(m->arena, part, parts, !m->of_stretches, &is_whole, &m->report->schema));
  if (!m->of_stretches) TB_TRY(tp_merge_streams(m->arena, part, parts, m->sum));
  TB_TRY(begin(m, part[0]));
  for (size_t i = 0; i < parts; i++) {
    m->is_last = i + 1 == parts;
    m->numbers = (struct tp_numbers){ .of_stretches = m->of_stretches,
                                      .is_past = part[i]->ended_wall_ns != 0 && is_any,
                                      .time_ns = tp_time_of(part[i]) };
    TB_TRY(add_part(m, part[i], i == 0));
  }
  TB_TRY(finish(m));
  return add_own_notes(m, parts, is_whole);
}

static bool is_valid(StreamReport *const *part, size_t parts) {
  for (size_t i = 0; i < parts; i++)
    if (part[i]->report == NULL || part[i]->report->schema == NULL ||
        strcmp(part[i]->kind, part[0]->kind) != 0 || strcmp(part[i]->window, part[0]->window) != 0)
      return false;
  return parts > 0;
}

static tb_rc merge_parts(bool of_stretches, struct tb_arena *arena, StreamReport *const *part,
                         size_t parts, StreamReport **out) {
  struct merge m = { .of_stretches = of_stretches, .arena = arena, .seed = tb_seed() };
  m.stacks = (struct tp_stacks){ .arena = arena, .seed = m.seed };
  struct tp_index *const index[] = { &m.stacks.frames, &m.stacks.stacks, &m.instances, &m.notes };

  if (!is_valid(part, parts)) return TB_CORRUPT;
  tb_arena_init(&m.scratch, arena->mem, SCRATCH_BYTES);
  for (size_t i = 0; i < sizeof(index) / sizeof(*index); i++)
    tp_index_init(index[i], arena, m.seed);
  tb_rc rc = merge(&m, part, parts);
  for (size_t t = 0; m.table != NULL && t < m.report->n_tables; t++)
    tp_index_fini(&m.table[t].index);
  for (size_t i = 0; i < sizeof(index) / sizeof(*index); i++) tp_index_fini(index[i]);
  tb_arena_fini(&m.scratch);
  if (rc == TB_OK) *out = m.sum;
  return rc;
}

tb_rc tp_merge(struct tb_arena *arena, StreamReport *const *part, size_t parts,
               StreamReport **out) {
  return merge_parts(false, arena, part, parts, out);
}

tb_rc tp_merge_stretches(struct tb_arena *arena, StreamReport *const *part, size_t parts,
                         StreamReport **out) {
  return merge_parts(true, arena, part, parts, out);
}
