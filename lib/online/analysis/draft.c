/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/draft.h"

#include <string.h>

#include "online/event/top_rows.h"

static tb_rc take_values(struct to_draft *d, const struct to_field *field, unsigned n,
                         struct to_draft_value **out) {
  struct to_draft_value *values;

  TB_TRY(tb_arena_alloc(d->arena, (n + 1) * sizeof(*values), &values));
  for (unsigned i = 0; i < n; i++) {
    values[i] = (struct to_draft_value){ .value.none = true };
    if (field[i].type != TO_VALUE_DISTRIBUTION) continue;
    TB_TRY(tb_arena_alloc(d->arena, sizeof(*values[i].sum), &values[i].sum));
    *values[i].sum = (struct to_draft_sum){ 0 };
    values[i].value = (struct to_value){ .distribution = &values[i].sum->distribution };
  }
  *out = values;
  return TB_OK;
}

static tb_rc take_row(struct to_draft *d, unsigned table, struct to_draft_value **out) {
  const struct to_table_schema *schema = d->table[table].schema;
  return take_values(d, schema->column, schema->columns, out);
}

tb_rc to_draft_begin(struct to_draft *d, const struct to_schema *schema, const struct to_view *view,
                     struct tb_arena *arena) {
  uint64_t seed = tb_seed(); /* a system call */
  struct to_draft_table *tables;

  *d = (struct to_draft){ .arena = arena, .view = view, .schema = schema };
  TB_TRY(tb_arena_alloc(arena, (schema->tables + 1) * sizeof(*tables), &tables));
  memset(tables, 0, schema->tables * sizeof(*tables));
  for (unsigned t = 0; t < schema->tables; t++) {
    tables[t].schema = &schema->table[t];
    tb_map_init(&tables[t].by_key, arena->mem, seed);
  }
  d->table = tables;
  TB_TRY(take_values(d, schema->option, schema->options, &d->option));
  return take_values(d, schema->figure, schema->figures, &d->figure);
}

void to_draft_fini(struct to_draft *d) {
  for (unsigned t = 0; d->table != NULL && t < d->schema->tables; t++)
    tb_map_fini(&d->table[t].by_key);
}

/* ---- filling in ---- */

static tb_rc grow(struct tb_arena *arena, void **array, size_t *capacity, size_t n, size_t item) {
  size_t wanted = *capacity == 0 ? 16 : 2 * *capacity;
  void *block;

  if (n < *capacity) return TB_OK;
  TB_TRY(tb_arena_alloc(arena, wanted * item, &block));
  if (n > 0) memcpy(block, *array, n * item);
  *array = block;
  *capacity = wanted;
  return TB_OK;
}

tb_rc to_draft_new_row(struct to_draft *d, unsigned table, struct to_draft_value **out) {
  struct to_draft_table *t = &d->table[table];
  void *rows = t->row;

  TB_TRY(grow(d->arena, &rows, &t->capacity, t->rows, sizeof(struct to_draft_value *)));
  t->row = rows;
  TB_TRY(take_row(d, table, &t->row[t->rows]));
  *out = t->row[t->rows++];
  return TB_OK;
}

tb_rc to_draft_row(struct to_draft *d, unsigned table, uint64_t key, struct to_draft_value **out) {
  uint64_t *place;
  bool fresh;

  TB_TRY(tb_map_put(&d->table[table].by_key, key, &place, &fresh));
  if (!fresh) {
    *out = (struct to_draft_value *)(uintptr_t)*place;
    return TB_OK;
  }
  TB_TRY(to_draft_new_row(d, table, out));
  *place = (uintptr_t)*out;
  return TB_OK;
}

tb_rc to_draft_other(struct to_draft *d, unsigned table, struct to_draft_value **out) {
  struct to_draft_table *t = &d->table[table];

  if (t->other == NULL) TB_TRY(take_row(d, table, &t->other));
  *out = t->other;
  return TB_OK;
}

static void join_sums(struct to_sum *into, const struct to_sum *from) {
  if (from->count == 0) return;
  if (into->count == 0 || from->min_ns < into->min_ns) into->min_ns = from->min_ns;
  into->count += from->count;
  into->total_ns += from->total_ns;
  into->lower_bounds += from->lower_bounds;
  if (from->max_ns > into->max_ns) into->max_ns = from->max_ns;
}

static bool is_shown(const struct to_draft *d, const struct to_draft_value *value) {
  return !d->is_of_figures || (value >= d->figure && value < d->figure + d->schema->figures);
}

tb_rc to_draft_series(struct to_draft *d, struct to_draft_value *value, uint32_t series) {
  struct to_sum sum = to_view_sum(d->view, series);
  void *parts = d->part;

  if (!is_shown(d, value) || sum.count == 0) return TB_OK;
  join_sums(&value->sum->distribution.sum, &sum);
  TB_TRY(grow(d->arena, &parts, &d->parts_capacity, d->parts, sizeof(*d->part)));
  d->part = parts;
  d->part[d->parts++] = (struct to_view_part){ .series = series };
  if (value->sum->last != 0) d->part[value->sum->last - 1].next = (uint32_t)d->parts;
  value->sum->last = (uint32_t)d->parts;
  if (value->sum->first == 0) value->sum->first = value->sum->last;
  return TB_OK;
}

tb_rc to_draft_note(struct to_draft *d, const char *sentence) {
  void *notes = d->note;

  TB_TRY(grow(d->arena, &notes, &d->notes_capacity, d->notes, sizeof(*d->note)));
  d->note = notes;
  d->note[d->notes++] = sentence;
  return TB_OK;
}

/* ---- the rest ---- */

static void join_values(struct to_draft *d, struct to_draft_value *into,
                        const struct to_draft_value *from, const struct to_field *field) {
  switch (field->type) {
  case TO_VALUE_DISTRIBUTION:
    join_sums(&into->sum->distribution.sum, &from->sum->distribution.sum);
    if (from->sum->first == 0) return;
    if (into->sum->last != 0)
      d->part[into->sum->last - 1].next = from->sum->first;
    else
      into->sum->first = from->sum->first;
    into->sum->last = from->sum->last;
    return;
  case TO_VALUE_COUNT:
  case TO_VALUE_NS:
  case TO_VALUE_BYTES:
    if (from->value.none) return;
    if (!field->greatest)
      to_draft_number(into, into->value.number + from->value.number);
    else if (into->value.none || from->value.number > into->value.number)
      to_draft_number(into, from->value.number);
    return;
  default: return; /* cannot be summed */
  }
}

static int compare_values(const struct to_draft_value *a, const struct to_draft_value *b,
                          enum to_value_type type) {
  if (type == TO_VALUE_DISTRIBUTION) {
    uint64_t x = a->sum->distribution.sum.total_ns, y = b->sum->distribution.sum.total_ns;
    return (x > y) - (x < y);
  }
  if (type == TO_VALUE_SHARE)
    return (a->value.share > b->value.share) - (a->value.share < b->value.share);
  return (a->value.number > b->value.number) - (a->value.number < b->value.number);
}

static int compare_texts(struct to_string a, struct to_string b) {
  size_t len = a.len < b.len ? a.len : b.len;
  int order = len > 0 ? memcmp(a.data, b.data, len) : 0;

  return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Breaks ties by the key texts: the order in which rows were found may differ between runs. */
static bool row_before(const void *rows, uint32_t a, uint32_t b) {
  const struct to_draft_table *t = rows;

  for (unsigned i = 0; i < TO_ORDERS_MAX && t->schema->order[i].column > 0; i++) {
    unsigned column = t->schema->order[i].column - 1u;
    int order =
        compare_values(&t->row[a][column], &t->row[b][column], t->schema->column[column].type);
    if (order != 0) return t->schema->order[i].rising ? order < 0 : order > 0;
  }
  for (unsigned column = 0; column < t->schema->keys; column++) {
    if (t->schema->column[column].type != TO_VALUE_TEXT) continue;
    int order = compare_texts(t->row[a][column].value.text, t->row[b][column].value.text);
    if (order != 0) return order < 0;
  }
  return a < b;
}

static tb_rc add_quantiles(struct to_draft *d, struct to_draft_sum *sum) {
  struct to_histogram *h = &sum->distribution.histogram;
  uint64_t *kept;

  if (d->bucket == NULL)
    TB_TRY(tb_arena_alloc(d->arena, TO_BUCKETS_MAX * sizeof(*d->bucket), &d->bucket));
  TB_TRY(to_view_quantiles(d->view, d->part, sum->first, d->bucket, &sum->distribution));
  TB_TRY(tb_arena_alloc(d->arena, (h->n + 1) * sizeof(*kept), &kept));
  if (h->n > 0) memcpy(kept, h->bucket, h->n * sizeof(*kept));
  h->bucket = kept;
  return TB_OK;
}

static tb_rc settle(struct to_draft *d, unsigned n, const struct to_draft_value *values,
                    struct to_value *out) {
  for (unsigned i = 0; i < n; i++) {
    struct to_draft_sum *sum = values[i].sum;
    if (sum != NULL && !d->totals) TB_TRY(add_quantiles(d, sum));
    out[i] = values[i].value;
  }
  return TB_OK;
}

static tb_rc settle_fields(struct to_draft *d, unsigned n, const struct to_draft_value *values,
                           const struct to_value **out) {
  struct to_value *block;

  TB_TRY(tb_arena_alloc(d->arena, (n + 1) * sizeof(*block), &block));
  *out = block;
  return settle(d, n, values, block);
}

static tb_rc finish_table(struct to_draft *d, unsigned table, size_t rows_max,
                          struct to_table *out) {
  struct to_draft_table *t = &d->table[table];
  const struct to_table_schema *schema = t->schema;
  size_t listed = t->rows < rows_max ? t->rows : rows_max;
  struct to_value *values;
  uint32_t *rank;

  *out = (struct to_table){ .rows_total = t->rows + (t->other != NULL) };
  if (d->is_of_figures) return TB_OK;
  TB_TRY(tb_arena_alloc(d->arena, (t->rows + 1) * sizeof(*rank), &rank));
  for (size_t i = 0; i < t->rows; i++) rank[i] = (uint32_t)i;
  to_top_rows(rank, t->rows, listed, row_before, t);
  for (size_t i = listed; i < t->rows && !schema->is_list; i++) {
    struct to_draft_value *other;
    TB_TRY(to_draft_other(d, table, &other));
    for (unsigned c = schema->keys; c < schema->columns; c++)
      join_values(d, &other[c], &t->row[rank[i]][c], &schema->column[c]);
  }
  out->has_other = t->other != NULL;
  out->rows = listed + out->has_other;
  TB_TRY(tb_arena_alloc(d->arena, (out->rows * schema->columns + 1) * sizeof(*values), &values));
  for (size_t i = 0; i < out->rows; i++)
    TB_TRY(settle(d, schema->columns, i < listed ? t->row[rank[i]] : t->other,
                  values + i * schema->columns));
  out->value = values;
  return TB_OK;
}

tb_rc to_draft_finish(struct to_draft *d, size_t rows_max, struct to_report *report) {
  const struct to_schema *schema = d->schema;
  struct to_table *tables;

  TB_TRY(settle_fields(d, schema->options, d->option, &report->option));
  TB_TRY(settle_fields(d, schema->figures, d->figure, &report->figure));
  TB_TRY(tb_arena_alloc(d->arena, (schema->tables + 1) * sizeof(*tables), &tables));
  for (unsigned t = 0; t < schema->tables; t++) TB_TRY(finish_table(d, t, rows_max, &tables[t]));
  report->table = tables;
  report->notes = d->notes;
  report->note = d->note;
  return TB_OK;
}
