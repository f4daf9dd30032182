/* SPDX-License-Identifier: Apache-2.0 */
/* The table `events`. */
#include <jansson.h>
#include <stdlib.h>

#include "tools/tracectl/print/print.h"
#include "tools/tracectl/query/scan.h"

static const struct to_event *event(const struct tk_scan *c) {
  return c->event.event;
}

static void e_gen(struct tk_scan *c, struct tk_value *out) {
  if (c->event.gen != NULL) tk__number(out, (int64_t)to_generation_number(c->event.gen));
}

static void e_time(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, event(c)->time);
}

static void e_wall(struct tk_scan *c, struct tk_value *out) {
  if (c->event.has_wall) tk__number(out, (int64_t)c->event.wall_ns);
}

static void e_kind(struct tk_scan *c, struct tk_value *out) {
  tk__name(out, to_event_kind_name(to_event_kind(event(c))));
}

static void e_thread(struct tk_scan *c, struct tk_value *out) {
  tk__id(out, event(c)->m);
}

static void e_proc(struct tk_scan *c, struct tk_value *out) {
  tk__id(out, event(c)->p);
}

static void e_goroutine(struct tk_scan *c, struct tk_value *out) {
  tk__id(out, event(c)->g);
}

/* An experiment's event is named by the generation. */
static void e_event(struct tk_scan *c, struct tk_value *out) {
  const struct tw_spec *spec = c->event.gen == NULL
                                   ? tw_spec(event(c)->type)
                                   : to_generation_spec(c->event.gen, event(c)->type);

  if (spec != NULL) tk__words(out, spec->name);
}

/* An experiment's event has the stack that its spec declares, if any. */
static uint64_t stack_of(const struct tk_scan *c) {
  const struct to_event *ev = event(c);
  enum tw_arg_type type[4];
  unsigned n = to_event_kind(ev) == TO_KIND_EXPERIMENTAL && c->event.gen != NULL
                   ? to_generation_args(c->event.gen, ev->type, type)
                   : 0;

  for (unsigned i = 0; i < n; i++)
    if (type[i] == TW_ARG_STACK) return ev->args[i] == 0 ? TO_NO_STACK : ev->args[i];
  return to_event_stack(ev);
}

static void e_stack(struct tk_scan *c, struct tk_value *out) {
  uint64_t id = stack_of(c);
  const struct to_callstack *stack;
  uint32_t number;

  if (id == TO_NO_STACK) return;
  tb_rc rc = tk_events_stack(c->events, id, &number, &stack);
  if (rc == TB_OK) rc = tk_numbers_find(&c->numbers, c->trace, number, stack, &number);
  if (rc == TB_OK)
    tk__stack(c, out, number);
  else
    tk__fault(out, TK_VALUE_NO_MEMORY);
}

/* Converts {"from":"Running",...} to [{"name":"from","value":"Running"},...]. Returns NULL if
 * memory cannot be allocated. */
static char *named(const char *object, size_t len) {
  json_t *fields = json_loadb(object, len, JSON_ALLOW_NUL, NULL), *list = json_array(), *value;
  char *text = NULL;
  const char *name;

  json_object_foreach(fields, name, value)
      json_array_append_new(list, json_pack("{s:s,s:O}", "name", name, "value", value));
  if (fields != NULL) text = json_dumps(list, JSON_COMPACT);
  json_decref(fields);
  json_decref(list);
  return text;
}

static void e_args(struct tk_scan *c, struct tk_value *out) {
  const struct to_allocfree *types;
  struct tk_out *details = c->details;

  if (details == NULL) details = c->details = malloc(sizeof *details);
  if (details == NULL || tk_events_types(c->events, &types) != TB_OK) {
    tk__fault(out, TK_VALUE_NO_MEMORY);
    return;
  }
  tk_out_init(details, -1); /* not written anywhere: text beyond its buffer is too long */
  tk_event_details_json(details, c->event.gen, types, event(c));
  tk_out_byte(details, '}');
  details->data[0] = '{'; /* replaces the first field's comma */
  bool is_empty = details->len == 1;
  free(c->args);
  c->args = is_empty ? NULL : named((const char *)details->data, details->len);
  if (is_empty)
    tk__name(out, "[]");
  else if (details->error != 0)
    tk__fault(out, TK_VALUE_TOO_LONG);
  else if (c->args == NULL)
    tk__fault(out, TK_VALUE_NO_MEMORY);
  else
    tk__words(out, c->args);
}

static int events_next(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  return tk_events_next(c->events, &c->event, error);
}

static int events_begin(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  if (!tk_events_begin(&c->trace->place, &c->wants.events, &c->events, error)) return -1;
  return events_next(c, error);
}

static void events_end(struct tk_scan *c) {
  tk_events_end(c->events);
  c->events = NULL;
  free(c->details);
  free(c->args);
  c->details = NULL;
  c->args = NULL;
}

static const struct tk_table_ops ops = { events_begin, events_next, events_end };

const struct tk_query_table tk__event_tables[] = {
  { .name = "events",
    .ops = &ops,
    .column = { { "stream", tk__stream },
                { "gen", e_gen, TK_PUSH_GEN },
                { "time_ns", e_time },
                { "kind", e_kind },
                { "thread", e_thread },
                { "proc", e_proc },
                { "goroutine", e_goroutine, TK_PUSH_GOROUTINE },
                { "args", e_args, TK_PUSH_NONE, true },
                { "stack", e_stack },
                { "wall_ns", e_wall, TK_PUSH_WALL },
                { "event", e_event } } },
  { 0 },
};
