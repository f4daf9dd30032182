/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the events of a bundle, one a line. A bundle may come from any sender: an index out of range is the empty text, and
 * an event of an unknown type is left out.
 *
 *   TIME  SERVICE/INSTANCE  EVENT gN what happened  DURATION  at FUNCTION FILE:LINE
 *
 * In JSON: the stream, the fields of `cat --json`, duration_ns and lower_bound. */
#include <stdio.h>
#include <string.h>

#include "online/event/view.h"
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/report/frame_text.h"
#include "tools/tracectl/tail/tail.h"
#include "tools/tracectl/tail/types.h"
#include "tools/tracectl/term/format_units.h"
#include "tools/tracectl/term/quote.h"

typedef Tracecollect__V1__EventBundle bundle;

/* --- a bundle's tables ------------------------------------------------------------------------- */

static struct to_string bundle_string(const void *self, uint64_t index) {
  const bundle *b = self;
  const char *text = index < b->n_strings ? b->strings[index] : "";

  return (struct to_string){ text, strlen(text) };
}

static bool bundle_knows_stack(const void *self, uint64_t index) {
  return index < ((const bundle *)self)->n_stacks;
}

static bool frame_of(const bundle *b, const Tracecollect__V1__BundleStack *stack, size_t i,
                     struct to_frame *out) {
  if (i >= stack->n_frames || stack->frames[i] >= b->n_frames) return false;
  const Tracecollect__V1__BundleFrame *frame = b->frames[stack->frames[i]];
  out->pc = frame->pc;
  out->line = frame->line;
  out->function = bundle_string(b, frame->function);
  out->file = bundle_string(b, frame->file);
  return true;
}

static void bundle_stack(const void *self, uint64_t index, tk_frame_fn *each, void *arg) {
  const bundle *b = self;
  struct to_frame frame;

  for (size_t i = 0; frame_of(b, b->stacks[index], i, &frame); i++) each(arg, &frame);
}

/* A bundle with the types of its events. */
struct reported {
  const bundle *b;
  const Tracecollect__V1__LeasedEvent *from; /* the current event */
  struct tk_tail_types types;
};

static struct to_string reported_string(const void *self, uint64_t index) {
  return bundle_string(((const struct reported *)self)->b, index);
}

static bool reported_knows_stack(const void *self, uint64_t index) {
  return bundle_knows_stack(((const struct reported *)self)->b, index);
}

static void reported_stack(const void *self, uint64_t index, tk_frame_fn *each, void *arg) {
  const bundle *b = ((const struct reported *)self)->b;

  if (bundle_knows_stack(b, index)) bundle_stack(b, index, each, arg);
}

static const struct tw_spec *reported_spec(const void *self, uint8_t type) {
  return tk_tail_spec(&((const struct reported *)self)->types, type);
}

static const char *reported_experiment(const void *self, uint8_t type) {
  return tk_tail_experiment(&((const struct reported *)self)->types, type);
}

static struct to_string reported_object_type(const void *self, const struct to_event *ev) {
  const struct reported *reported = self;

  (void)ev; /* made from `from` */
  return bundle_string(reported->b, reported->from->type_name);
}

/* Returns false if the type is unknown, or arguments are missing. */
static bool event_of(const struct reported *reported, const Tracecollect__V1__LeasedEvent *from,
                     struct to_event *out) {
  if (tk_tail_spec(&reported->types, from->type) == NULL) return false;
  if (from->n_args != tk_tail_args(&reported->types, (uint8_t)from->type)) return false;
  *out = (struct to_event){ .time = from->time_ns,
                            .m = from->thread,
                            .p = from->proc,
                            .g = from->goroutine,
                            .type = (uint8_t)from->type };
  for (size_t i = 0; i < from->n_args; i++) out->args[i] = from->args[i];
  return true;
}

static uint64_t wall_of(const bundle *b, to_ns time) {
  if (b->clock_wall_ns == 0) return 0;
  return b->clock_wall_ns + (uint64_t)(time - b->clock_trace_ns);
}

/* --- JSON -------------------------------------------------------------------------------------- */

static void put_hex(struct tk_out *out, const ProtobufCBinaryData *bytes) {
  static const char digits[] = "0123456789abcdef";

  for (size_t i = 0; i < bytes->len; i++) {
    tk_out_byte(out, digits[bytes->data[i] >> 4]);
    tk_out_byte(out, digits[bytes->data[i] & 15]);
  }
}

static void json_line(struct tk_out *out, const struct reported *reported,
                      const struct to_event *ev, const Tracecollect__V1__LeasedEvent *from) {
  const struct tk_names names = {
    reported,       NULL,          reported_string,     reported_string,     reported_knows_stack,
    reported_stack, reported_spec, reported_experiment, reported_object_type
  };
  const bundle *b = reported->b;
  uint64_t wall_ns = wall_of(b, ev->time);

  tk_out_text(out, "{\"record\":\"event\",\"service\":");
  tk_out_json_string(out, b->service, strlen(b->service));
  tk_out_text(out, ",\"instance\":");
  tk_out_json_string(out, b->instance, strlen(b->instance));
  tk_out_text(out, ",\"stream\":\"");
  put_hex(out, &b->stream);
  tk_out_text(out, "\",\"generation\":");
  tk_out_u64(out, b->generation);
  tk_out_text(out, ",\"position\":");
  tk_out_u64(out, from->position);
  if (wall_ns != 0) {
    tk_out_text(out, ",\"wall_ns\":");
    tk_out_u64(out, wall_ns);
  }
  tk_out_byte(out, ',');
  tk_event_json(out, &names, ev);
  if (from->duration_ns != 0) {
    tk_out_text(out, ",\"duration_ns\":");
    tk_out_u64(out, from->duration_ns);
    if (from->lower_bound) tk_out_text(out, ",\"lower_bound\":true");
  }
  tk_out_byte(out, '}');
}

/* --- for people -------------------------------------------------------------------------------- */

static void put_name(struct tk_out *out, const char *text) {
  tk_out_plain(out, text, strlen(text));
}

static void put_string(struct tk_out *out, const char *before, const bundle *b, uint64_t index) {
  struct to_string text = bundle_string(b, index);

  if (text.len == 0) return;
  tk_out_text(out, before);
  tk_out_plain(out, text.data, text.len);
}

static void put_number(struct tk_out *out, const char *before, uint64_t n) {
  tk_out_text(out, before);
  tk_out_u64(out, n);
}

/* Prints "I/O wait" for Go's "network"; an unknown reason in the trace's own words. */
static void put_reason(struct tk_out *out, const bundle *b, uint64_t index) {
  const struct to_reason_info *info = to_reason_info(to_reason_find(bundle_string(b, index)));

  if (info->text == NULL) {
    put_string(out, ": ", b, index);
    return;
  }
  tk_out_text(out, ": ");
  tk_out_text(out, info->display);
}

static void say_transition(struct tk_out *out, const bundle *b, const struct to_event *ev) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  put_number(out, tr.resource == TO_RESOURCE_PROC ? " p" : " g", (uint64_t)tr.id);
  tk_out_byte(out, ' ');
  tk_out_text(out, to_state_name(tr.resource, tr.from));
  tk_out_text(out, "->");
  tk_out_text(out, to_state_name(tr.resource, tr.to));
  put_reason(out, b, tr.reason);
}

static void say_range(struct tk_out *out, const bundle *b, const struct to_event *ev) {
  struct to_event_range range;

  if (!to_event_range(ev, &range)) return;
  const struct to_range_info *info = to_range_info(range.kind);
  if (info->scope == TO_RESOURCE_GOROUTINE) put_number(out, " g", (uint64_t)range.id);
  if (info->scope == TO_RESOURCE_PROC) put_number(out, " p", (uint64_t)range.id);
  tk_out_byte(out, ' ');
  tk_out_text(out, info->name);
  if (range.kind == TO_RANGE_STW) put_string(out, ": ", b, range.text);
}

static void say_args(struct tk_out *out, const struct reported *reported,
                     const struct to_event *ev) {
  const struct tw_spec *spec = tk_tail_spec(&reported->types, ev->type);

  for (unsigned i = 0; i < spec->nargs; i++) {
    tk_out_byte(out, ' ');
    put_name(out, spec->args[i].label);
    if (i == 1 && to_allocfree_type_id(ev) != 0 && reported->from->type_name != 0)
      put_string(out, "=", reported->b, reported->from->type_name);
    else if (spec->args[i].type == TW_ARG_STRING)
      put_string(out, "=", reported->b, ev->args[i]);
    else
      put_number(out, "=", ev->args[i]);
  }
}

static void say(struct tk_out *out, const struct reported *reported, const struct to_event *ev) {
  const bundle *b = reported->b;

  switch (to_event_kind(ev)) {
  case TO_KIND_TRANSITION: say_transition(out, b, ev); return;
  case TO_KIND_RANGE_BEGIN:
  case TO_KIND_RANGE_ACTIVE:
  case TO_KIND_RANGE_END: say_range(out, b, ev); return;
  case TO_KIND_SYNC: put_number(out, " generation ", b->generation); return;
  case TO_KIND_METRIC:
    tk_out_byte(out, ' ');
    tk_out_text(out, to_metric_name(to_event_metric(ev)));
    put_number(out, " ", ev->args[0]);
    return;
  case TO_KIND_EXPERIMENTAL: say_args(out, reported, ev); return;
  default: break;
  }
  if (ev->g != TO_NONE) put_number(out, " g", (uint64_t)ev->g);
  switch (to_event_kind(ev)) {
  case TO_KIND_LABEL: put_string(out, " ", b, ev->args[0]); break;
  case TO_KIND_TASK_BEGIN:
  case TO_KIND_TASK_END:
    put_number(out, " task ", ev->args[0]);
    put_string(out, " ", b, ev->type == TW_EV_USER_TASK_BEGIN ? ev->args[2] : ev->args[3]);
    break;
  case TO_KIND_REGION_BEGIN:
  case TO_KIND_REGION_END:
    put_string(out, " ", b, ev->args[1]);
    if (ev->args[0] != 0 && ev->args[0] != TO_NO_TASK) put_number(out, " task ", ev->args[0]);
    break;
  case TO_KIND_LOG:
    put_string(out, " ", b, ev->args[1]);
    put_string(out, ": ", b, ev->args[2]);
    break;
  default: break;
  }
}

static void put_duration(struct tk_out *out, const Tracecollect__V1__LeasedEvent *from) {
  char text[TK_FORMAT_BYTES];

  if (from->duration_ns == 0) return;
  tk_out_text(out, from->lower_bound ? "  at least " : "  ");
  tk_out_text(out, tk_format_ns(from->duration_ns, text));
}

/* Prints the innermost frame of the program's own code. */
static void put_place(struct tk_out *out, const bundle *b, const struct to_event *ev) {
  uint64_t index = to_event_stack(ev);
  Tracecollect__V1__Frame shown = TRACECOLLECT__V1__FRAME__INIT;
  enum to_code highest = TO_CODE_PLUMBING;
  struct to_frame frame;
  char place[256];

  if (index == TO_NO_STACK || index >= b->n_stacks || b->stacks[index]->n_frames == 0) return;
  for (size_t i = 0; frame_of(b, b->stacks[index], i, &frame); i++) {
    enum to_code code = to_code_of(&frame);
    if (i > 0 && code <= highest) continue;
    highest = code;
    shown.function = (char *)(uintptr_t)frame.function.data; /* only read */
    shown.file = (char *)(uintptr_t)frame.file.data;
    shown.line = frame.line;
  }
  tk_frame_text(&shown, place, sizeof place);
  tk_out_text(out, "  at ");
  put_name(out, place);
}

static void human_line(struct tk_lines *lines, const struct reported *reported,
                       const struct to_event *ev, const Tracecollect__V1__LeasedEvent *from) {
  const bundle *b = reported->b;
  uint64_t wall_ns = wall_of(b, ev->time);
  struct tk_out *out = &lines->out;

  if (wall_ns != 0)
    tk_lines_wall(lines, wall_ns);
  else
    tk_out_i64(out, ev->time);
  tk_out_text(out, "  ");
  put_name(out, b->service);
  tk_out_byte(out, '/');
  put_name(out, b->instance);
  tk_out_text(out, "  ");
  tk_lines_bold(lines, tk_tail_spec(&reported->types, ev->type)->name);
  say(out, reported, ev);
  put_duration(out, from);
  put_place(out, b, ev);
}

tb_rc tk_tail_bundle(struct tk_tail *tail, const bundle *b) {
  struct tk_lines *lines = tail->lines;
  struct reported reported = { .b = b };
  struct to_event ev;

  if (b->n_events == 0 || b->stream.len != sizeof((struct tk_cursor *)0)->stream) return TB_OK;
  struct tk_cursor *cursor = tk_cursor_of(&tail->cursors, b->stream.data);
  if (cursor == NULL) return TB_NOMEM;
  tk_tail_types_read(&reported.types, b);
  for (size_t i = 0; i < b->n_events; i++) {
    const Tracecollect__V1__LeasedEvent *from = b->events[i];

    if (!tk_cursor_is_new(cursor, b->generation, from->position)) continue;
    cursor->gen = b->generation;
    cursor->position = from->position + 1;
    if (!event_of(&reported, from, &ev)) continue;
    reported.from = from;
    struct tk_out *out = tk_lines_begin(lines);
    if (lines->json)
      json_line(out, &reported, &ev, from);
    else
      human_line(lines, &reported, &ev, from);
    TB_TRY(tk_lines_end(lines));
  }
  return TB_OK;
}
