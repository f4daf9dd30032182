/* SPDX-License-Identifier: Apache-2.0 */
/* The message is built in an arena and packed into the caller's buf. Each stack and each frame is written once, however
 * many rows refer to it. */
#include "pack/report.h"

#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "pack/report_read.h"
#include "pack/text.h"
#include "proto/report.pb-c.h"

enum { CHUNK_BYTES = 16 << 10, STREAM_BYTES = 16 };

typedef Tracecollect__V1__Value Value;

struct packer {
  struct tb_arena *arena;
  struct tb_map stacks, frames; /* index + 1 by address */
  Tracecollect__V1__Report *message;
  size_t stacks_room, frames_room;
};

static char *lend(const char *text) {
  return (char *)(uintptr_t)(text != NULL ? text : "");
}

/* ---- schema ---- */

static tb_rc take_fields(struct tb_arena *arena, const struct to_field *field, unsigned n,
                         size_t *out_n, Tracecollect__V1__FieldSchema ***out) {
  Tracecollect__V1__FieldSchema *message, **list;

  TP_TAKE(arena, Tracecollect__V1__FieldSchema, n, message);
  TP_TAKE(arena, Tracecollect__V1__FieldSchema *, n, list);
  for (unsigned i = 0; i < n; i++) {
    list[i] = &message[i];
    tracecollect__v1__field_schema__init(list[i]);
    list[i]->name = lend(field[i].name);
    list[i]->type =
        (Tracecollect__V1__ValueType)(field[i].type + 1); /* 0 is UNKNOWN in the message */
    list[i]->about = lend(field[i].about);
    list[i]->metric = lend(field[i].metric);
    list[i]->label = lend(field[i].label);
    list[i]->greatest = field[i].greatest;
    list[i]->of_time = field[i].of_time;
    list[i]->over_time = (Tracecollect__V1__OverTime)field[i].over_time;
  }
  *out_n = n;
  *out = list;
  return TB_OK;
}
_Static_assert(TO_OVER_UNKNOWN == (int)TRACECOLLECT__V1__OVER_TIME__OVER_TIME_UNKNOWN,
               "the ways have the same order");
_Static_assert(TO_VALUE_DISTRIBUTION + 1 == TRACECOLLECT__V1__VALUE_TYPE__VALUE_DISTRIBUTION,
               "the types have the same order");

static tb_rc take_sort(struct tb_arena *arena, const struct to_table_schema *table,
                       Tracecollect__V1__TableSchema *message) {
  TP_TAKE(arena, int32_t, TO_ORDERS_MAX, message->sort);
  for (unsigned i = 0; i < TO_ORDERS_MAX && table->order[i].column > 0; i++)
    message->sort[message->n_sort++] =
        table->order[i].rising ? -table->order[i].column : table->order[i].column;
  return TB_OK;
}

tb_rc tp_take_schema_of(struct tb_arena *arena, const char *name, const char *about,
                        const struct to_schema *schema, Tracecollect__V1__ReportSchema **out) {
  Tracecollect__V1__ReportSchema *message;
  Tracecollect__V1__TableSchema *tables;

  TP_TAKE(arena, Tracecollect__V1__ReportSchema, 1, message);
  TP_TAKE(arena, Tracecollect__V1__TableSchema, schema->tables, tables);
  tracecollect__v1__report_schema__init(message);
  message->name = lend(name);
  message->about = lend(about);
  TB_TRY(
      take_fields(arena, schema->option, schema->options, &message->n_options, &message->options));
  TB_TRY(
      take_fields(arena, schema->figure, schema->figures, &message->n_figures, &message->figures));
  TP_TAKE(arena, Tracecollect__V1__TableSchema *, schema->tables, message->tables);
  message->n_tables = schema->tables;
  for (unsigned t = 0; t < schema->tables; t++) {
    const struct to_table_schema *table = &schema->table[t];
    message->tables[t] = &tables[t];
    tracecollect__v1__table_schema__init(&tables[t]);
    tables[t].name = lend(table->name);
    tables[t].about = lend(table->about);
    tables[t].order = lend(table->order_about);
    tables[t].keys = table->keys;
    tables[t].list = table->is_list;
    tables[t].now = table->is_now;
    TB_TRY(take_fields(arena, table->column, table->columns, &tables[t].n_columns,
                       &tables[t].columns));
    TB_TRY(take_sort(arena, table, &tables[t]));
  }
  *out = message;
  return TB_OK;
}

tb_rc tp_take_schema(struct tb_arena *arena, enum to_analysis_kind kind,
                     Tracecollect__V1__ReportSchema **out) {
  return tp_take_schema_of(arena, to_analysis_name(kind), to_analysis_about(kind),
                           to_analysis_schema(kind), out);
}

/* ---- values ---- */

static tb_rc find_frame(struct packer *p, const struct to_frame *frame, uint32_t *out) {
  Tracecollect__V1__Report *r = p->message;
  Tracecollect__V1__Frame *message;
  uint64_t *place;

  TB_TRY(tb_map_put(&p->frames, (uintptr_t)frame, &place, NULL));
  if (*place == 0) {
    TB_TRY(TB_ARENA_GROW(p->arena, r->frames, p->frames_room, r->n_frames));
    TP_TAKE(p->arena, Tracecollect__V1__Frame, 1, message);
    tracecollect__v1__frame__init(message);
    TB_TRY(tp_take_text(p->arena, frame->function, &message->function));
    TB_TRY(tp_take_text(p->arena, frame->file, &message->file));
    message->line = frame->line;
    message->pc = frame->pc;
    r->frames[r->n_frames++] = message;
    *place = r->n_frames;
  }
  *out = (uint32_t)*place - 1;
  return TB_OK;
}

static tb_rc find_stack(struct packer *p, const struct to_callstack *stack, uint32_t *out) {
  Tracecollect__V1__Report *r = p->message;
  Tracecollect__V1__Stack *message;
  uint64_t *place;

  TB_TRY(tb_map_put(&p->stacks, (uintptr_t)stack, &place, NULL));
  if (*place == 0) {
    TB_TRY(TB_ARENA_GROW(p->arena, r->stacks, p->stacks_room, r->n_stacks));
    TP_TAKE(p->arena, Tracecollect__V1__Stack, 1, message);
    tracecollect__v1__stack__init(message);
    TP_TAKE(p->arena, uint32_t, stack->len, message->frames);
    for (; message->n_frames < stack->len; message->n_frames++)
      TB_TRY(find_frame(p, stack->frames[message->n_frames], &message->frames[message->n_frames]));
    r->stacks[r->n_stacks++] = message;
    *place = r->n_stacks;
  }
  *out = (uint32_t)*place - 1;
  return TB_OK;
}

static tb_rc take_distribution(struct tb_arena *arena, const struct to_distribution *d,
                               Tracecollect__V1__Distribution **out) {
  Tracecollect__V1__Distribution *message;

  TP_TAKE(arena, Tracecollect__V1__Distribution, 1, message);
  tracecollect__v1__distribution__init(message);
  message->count = d->sum.count;
  message->total_ns = d->sum.total_ns;
  message->min_ns = d->sum.min_ns;
  message->max_ns = d->sum.max_ns;
  message->lower_bounds = d->sum.lower_bounds;
  message->p50_ns = d->p50_ns;
  message->p90_ns = d->p90_ns;
  message->p99_ns = d->p99_ns;
  message->p999_ns = d->p999_ns;
  message->no_quantiles = !d->has_quantiles;
  message->scale = d->histogram.scale;
  message->offset = d->histogram.first;
  message->zeros = d->histogram.zero;
  message->n_buckets = d->histogram.n;
  TP_TAKE(arena, uint64_t, d->histogram.n, message->buckets);
  if (d->histogram.n > 0)
    memcpy(message->buckets, d->histogram.bucket, d->histogram.n * sizeof(*message->buckets));
  *out = message;
  return TB_OK;
}

static tb_rc fill_value(struct packer *p, enum to_value_type type, const struct to_value *value,
                        Value *message) {
  if (value->none) return TB_OK;
  switch (type) {
  case TO_VALUE_SHARE:
    message->is_case = TRACECOLLECT__V1__VALUE__IS_SHARE;
    message->share = value->share;
    return TB_OK;
  case TO_VALUE_TEXT:
    message->is_case = TRACECOLLECT__V1__VALUE__IS_TEXT;
    return tp_take_text(p->arena, value->text, &message->text);
  case TO_VALUE_STACK:
    message->is_case = TRACECOLLECT__V1__VALUE__IS_STACK;
    return find_stack(p, value->stack, &message->stack);
  case TO_VALUE_DISTRIBUTION:
    message->is_case = TRACECOLLECT__V1__VALUE__IS_DISTRIBUTION;
    return take_distribution(p->arena, value->distribution, &message->distribution);
  default:
    message->is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
    message->number = value->number;
    return TB_OK;
  }
}

static tb_rc take_values(struct packer *p, const struct to_field *field, unsigned n,
                         const struct to_value *value, size_t *out_n, Value ***out) {
  Value *messages, **list;

  TP_TAKE(p->arena, Value, n, messages);
  TP_TAKE(p->arena, Value *, n, list);
  for (unsigned i = 0; i < n; i++) {
    list[i] = &messages[i];
    tracecollect__v1__value__init(list[i]);
    TB_TRY(fill_value(p, field[i].type, &value[i], list[i]));
  }
  *out_n = n;
  *out = list;
  return TB_OK;
}

static tb_rc fill_table(struct packer *p, const struct to_table_schema *schema,
                        const struct to_table *table, Tracecollect__V1__Table *message) {
  Tracecollect__V1__Row *rows;

  TP_TAKE(p->arena, Tracecollect__V1__Row, table->rows, rows);
  TP_TAKE(p->arena, Tracecollect__V1__Row *, table->rows, message->rows);
  message->rows_total = table->rows_total;
  message->n_rows = table->rows;
  for (size_t i = 0; i < table->rows; i++) {
    message->rows[i] = &rows[i];
    tracecollect__v1__row__init(&rows[i]);
    rows[i].other = table->has_other && i + 1 == table->rows;
    TB_TRY(take_values(p, schema->column, schema->columns, to_table_row(schema, table, i),
                       &rows[i].n_values, &rows[i].values));
  }
  return TB_OK;
}

static tb_rc take_notes(struct packer *p, const struct to_report *r) {
  TP_TAKE(p->arena, char *, r->notes, p->message->notes);
  for (; p->message->n_notes < r->notes; p->message->n_notes++)
    p->message->notes[p->message->n_notes] = lend(r->note[p->message->n_notes]);
  return TB_OK;
}

static tb_rc take_report(struct packer *p, const struct to_report *r,
                         Tracecollect__V1__Report **out) {
  const struct to_schema *schema = r->schema;
  Tracecollect__V1__Table *tables;

  TP_TAKE(p->arena, Tracecollect__V1__Report, 1, p->message);
  tracecollect__v1__report__init(p->message);
  TB_TRY(tp_take_schema(p->arena, r->kind, &p->message->schema));
  TB_TRY(take_values(p, schema->option, schema->options, r->option, &p->message->n_options,
                     &p->message->options));
  TB_TRY(take_values(p, schema->figure, schema->figures, r->figure, &p->message->n_figures,
                     &p->message->figures));
  TP_TAKE(p->arena, Tracecollect__V1__Table, schema->tables, tables);
  TP_TAKE(p->arena, Tracecollect__V1__Table *, schema->tables, p->message->tables);
  p->message->n_tables = schema->tables;
  for (unsigned t = 0; t < schema->tables; t++) {
    p->message->tables[t] = &tables[t];
    tracecollect__v1__table__init(&tables[t]);
    TB_TRY(fill_table(p, &schema->table[t], &r->table[t], &tables[t]));
  }
  TB_TRY(take_notes(p, r));
  *out = p->message;
  return TB_OK;
}

static tb_rc take_stream(struct packer *p, const struct to_report *r,
                         const struct tp_report_about *about,
                         Tracecollect__V1__StreamReport *message) {
  tracecollect__v1__stream_report__init(message);
  if (about->stream != NULL) {
    message->stream.data = (uint8_t *)(uintptr_t)about->stream;
    message->stream.len = STREAM_BYTES;
  }
  message->service = lend(about->service);
  message->instance = lend(about->instance);
  message->kind = lend(to_analysis_name(r->kind));
  message->window = lend(to_window_name(r->window));
  message->from_ns = r->from;
  message->until_ns = r->until;
  message->from_wall_ns = r->from_wall_ns;
  message->until_wall_ns = r->until_wall_ns;
  message->first_gen = r->first_gen;
  message->last_gen = r->last_gen;
  message->events = r->events;
  message->thinned_events = r->thinned_events;
  message->broken_generations = about->broken_generations;
  message->ended_wall_ns = about->ended_wall_ns;
  message->epochs = r->epochs;
  tp_report_set_program(message, r->program);
  return take_report(p, r, &message->report);
}

tb_rc tp_report_pack(struct to_analyses *analyses, enum to_analysis_kind kind,
                     enum to_window window, size_t rows_max, const struct tp_report_about *about,
                     struct tb_buf *out) {
  Tracecollect__V1__StreamReport message;
  const struct to_report *report;
  struct tb_arena arena;
  struct packer packer = { .arena = &arena };
  tb_rc rc;

  TB_TRY(to_analyses_report(analyses, kind, window, rows_max, &report));
  tb_arena_init(&arena, out->mem, CHUNK_BYTES);
  tb_map_init(&packer.stacks, out->mem, tb_seed());
  tb_map_init(&packer.frames, out->mem, tb_seed());
  rc = take_stream(&packer, report, about, &message);
  if (rc == TB_OK) {
    size_t bytes = tracecollect__v1__stream_report__get_packed_size(&message);
    rc = tb_buf_reserve(out, bytes);
    if (rc == TB_OK)
      out->len += tracecollect__v1__stream_report__pack(&message, out->data + out->len);
  }
  tb_map_fini(&packer.stacks);
  tb_map_fini(&packer.frames);
  tb_arena_fini(&arena);
  return rc;
}
