/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/http/metrics/report_view.h"

#include <string.h>

#include "proto/get.h"
#include "proto/unpack.h"

enum { CHUNK_BYTES = 64 << 10 };
/* Field numbers of report.proto; test_report_view compares them. */
enum {
  STREAM_UNTIL_WALL = 9,
  STREAM_EVENTS = 12,
  STREAM_REPORT = 17,
  STREAM_THINNED = 21,
  STREAM_PROGRAM = 22
};
enum { SCHEMA = 1, FIGURES = 3, TABLES = 4, STACKS = 5, FRAMES = 6, LISTS };

typedef Tracecollect__V1__Report Report;

static void *unpack(struct tb_arena *arena, const ProtobufCMessageDescriptor *type,
                    const ProtobufCBinaryData *bytes) {
  ProtobufCAllocator allocator = tp_arena_allocator(arena);

  return protobuf_c_message_unpack(type, &allocator, bytes->len, bytes->data);
}

static tb_rc why_not(const struct tb_arena *arena) {
  return arena->is_short ? TB_NOMEM : TB_BUDGET;
}

void tc_report_view_init(struct tc_report_view *view, struct tb_mem *mem, struct tb_arena *arena) {
  *view = (struct tc_report_view){ .arena = arena };
  tb_arena_init(&view->schema_arena, mem, CHUNK_BYTES);
  tb_arena_init(&view->open_arena, mem, CHUNK_BYTES);
}

void tc_report_view_fini(struct tc_report_view *view) {
  tb_arena_fini(&view->schema_arena);
  tb_arena_fini(&view->open_arena);
}

/* ---- schemas ---- */

static tb_rc add_schema(struct tc_report_view *view, const ProtobufCBinaryData *bytes,
                        Tracecollect__V1__ReportSchema **out) {
  struct tc_report_view_schema found = { .len = bytes->len };

  TB_TRY(tb_arena_copy(&view->schema_arena, bytes->data, bytes->len, &found.bytes));
  found.schema = unpack(&view->schema_arena, &tracecollect__v1__report_schema__descriptor, bytes);
  if (found.schema == NULL) return why_not(&view->schema_arena);
  if (view->schemas == TC_REPORT_VIEW_SCHEMAS) view->schemas--;
  view->schema[view->schemas++] = found;
  *out = found.schema;
  return TB_OK;
}

static tb_rc find_schema(struct tc_report_view *view, const ProtobufCBinaryData *bytes,
                         Tracecollect__V1__ReportSchema **out) {
  for (unsigned i = 0; i < view->schemas; i++)
    if (view->schema[i].len == bytes->len &&
        (bytes->len == 0 || memcmp(view->schema[i].bytes, bytes->data, bytes->len) == 0)) {
      *out = view->schema[i].schema;
      return TB_OK;
    }
  return add_schema(view, bytes, out);
}

/* ---- fields ---- */

/* Packed items of the report's lists, by field number. */
struct lists {
  size_t n[LISTS];
  ProtobufCBinaryData *item[LISTS];
};

/* Collects fields up to number `last` and moves *at past them: the packer writes fields in order of their numbers. */
static tb_rc find_items(struct tb_arena *arena, ProtobufCBinaryData *at, unsigned last,
                        struct lists *out) {
  ProtobufCBinaryData here = *at, next = *at;
  struct tp_field field;
  bool more;

  *out = (struct lists){ .n = { 0 } };
  for (; (more = tp_next_field(&next, &field)) && field.number <= last; here = next)
    out->n[field.number]++;
  if (!more && here.len != 0) return TB_BUDGET;
  for (unsigned i = 0; i < LISTS; i++) {
    TB_TRY(tb_arena_alloc(arena, out->n[i] * sizeof(ProtobufCBinaryData), &out->item[i]));
    out->n[i] = 0;
  }
  while (at->len > here.len && tp_next_field(at, &field))
    out->item[field.number][out->n[field.number]++] = field.bytes;
  return TB_OK;
}

/* ---- opening ---- */

/* Allocates a list of n items, none of them unpacked. */
static tb_rc take_list(struct tb_arena *arena, size_t n, size_t *out_n, void *out) {
  void *list;

  TB_TRY(tb_arena_alloc(arena, n * sizeof(void *), &list));
  memset(list, 0, n * sizeof(void *));
  memcpy(out, &list, sizeof list);
  *out_n = n;
  return TB_OK;
}

static tb_rc unpack_figures(struct tc_report_view *view, const struct lists *lists) {
  Report *r = view->report;

  TB_TRY(take_list(view->arena, lists->n[FIGURES], &r->n_figures, &r->figures));
  for (size_t i = 0; i < r->n_figures; i++) {
    r->figures[i] =
        unpack(view->arena, &tracecollect__v1__value__descriptor, &lists->item[FIGURES][i]);
    if (r->figures[i] == NULL) return why_not(view->arena);
  }
  return TB_OK;
}

static tb_rc open_report(struct tc_report_view *view, ProtobufCBinaryData bytes) {
  Report *r = view->report;
  struct lists lists;

  TB_TRY(find_items(&view->open_arena, &bytes, TABLES, &lists));
  if (lists.n[SCHEMA] > 0) TB_TRY(find_schema(view, &lists.item[SCHEMA][0], &r->schema));
  TB_TRY(unpack_figures(view, &lists));
  view->tables = lists.item[TABLES];
  view->rest = bytes;
  return take_list(view->arena, lists.n[TABLES], &r->n_tables, &r->tables);
}

tb_rc tc_report_view_open(struct tc_report_view *view, const struct tc_report *packed) {
  ProtobufCBinaryData at = { packed->len, (uint8_t *)(uintptr_t)packed->bytes };
  ProtobufCBinaryData report = { 0, NULL };
  struct tp_field field;

  tb_arena_reset(&view->open_arena);
  view->until_wall_ns = view->events = view->thinned_events = 0;
  view->program = TO_PROGRAM_GO;
  TB_TRY(tb_arena_alloc(view->arena, sizeof *view->report, &view->report));
  tracecollect__v1__report__init(view->report);
  while (tp_next_field(&at, &field)) {
    if (field.number == STREAM_UNTIL_WALL) view->until_wall_ns = field.value;
    if (field.number == STREAM_EVENTS) view->events = field.value;
    if (field.number == STREAM_THINNED) view->thinned_events = field.value;
    if (field.number == STREAM_PROGRAM)
      view->program = field.bytes.len > 0 ? TO_PROGRAM_C : TO_PROGRAM_GO;
    if (field.number == STREAM_REPORT) report = field.bytes;
  }
  return at.len == 0 ? open_report(view, report) : TB_BUDGET;
}

/* ---- unpacking ---- */

/* Unpacks an item unless that was done before. */
static tb_rc unpack_item(struct tc_report_view *view, const ProtobufCMessageDescriptor *type,
                         const ProtobufCBinaryData *bytes, void *item) {
  void **place = item;

  if (*place != NULL) return TB_OK;
  *place = unpack(view->arena, type, bytes);
  return *place != NULL ? TB_OK : why_not(view->arena);
}

tb_rc tc_report_view_table(struct tc_report_view *view, const char *name, struct tp_table *out) {
  const Report *r = view->report;
  size_t t = 0;

  while (r->schema != NULL && t < r->schema->n_tables &&
         strcmp(r->schema->tables[t]->name, name) != 0)
    t++;
  if (r->schema != NULL && t < r->schema->n_tables && t < r->n_tables)
    TB_TRY(
        unpack_item(view, &tracecollect__v1__table__descriptor, &view->tables[t], &r->tables[t]));
  (void)tp_report_table(r, name, out);
  return TB_OK;
}

/* Called only on demand: most readers need no stacks, and a report may have thousands of frames. */
static tb_rc find_stacks(struct tc_report_view *view) {
  Report *r = view->report;
  struct lists lists;

  if (view->rest.len == 0) return TB_OK;
  TB_TRY(find_items(&view->open_arena, &view->rest, FRAMES, &lists));
  view->rest.len = 0;
  view->stacks = lists.item[STACKS];
  view->frames = lists.item[FRAMES];
  TB_TRY(take_list(view->arena, lists.n[STACKS], &r->n_stacks, &r->stacks));
  return take_list(view->arena, lists.n[FRAMES], &r->n_frames, &r->frames);
}

tb_rc tc_report_view_stack(struct tc_report_view *view, const Tracecollect__V1__Value *value) {
  const Report *r = view->report;

  if (value == NULL || value->is_case != TRACECOLLECT__V1__VALUE__IS_STACK) return TB_OK;
  TB_TRY(find_stacks(view));
  if (value->stack >= r->n_stacks) return TB_OK;
  TB_TRY(unpack_item(view, &tracecollect__v1__stack__descriptor, &view->stacks[value->stack],
                     &r->stacks[value->stack]));
  const Tracecollect__V1__Stack *stack = r->stacks[value->stack];
  for (size_t i = 0; i < stack->n_frames; i++)
    if (stack->frames[i] < r->n_frames)
      TB_TRY(unpack_item(view, &tracecollect__v1__frame__descriptor,
                         &view->frames[stack->frames[i]], &r->frames[stack->frames[i]]));
  return TB_OK;
}
