/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON object a line for each ordered event:
 *
 *   {"time":N,"kind":"StateTransition","event":"GoBlock","m":N,"p":N,"g":N, details, "stack":[frames]}
 *
 * kind is Go's name for what happened, event the wire's; absent m, p and g are null. A frame is
 * {"func":S,"file":S,"line":N,"pc":"0x..."}, innermost first. */
#include "online/event/generation.h"
#include "tools/tracectl/print/print.h"
#include "tools/tracectl/term/quote.h"
#include "wire/spec.h"

static void put_id(struct tk_out *out, const char *label, int64_t id) {
  tk_out_text(out, label);
  if (id == TO_NONE)
    tk_out_text(out, "null");
  else
    tk_out_i64(out, id);
}

static void put_u64(struct tk_out *out, const char *label, uint64_t value) {
  tk_out_text(out, label);
  tk_out_u64(out, value);
}

static void put_text(struct tk_out *out, const char *label, const char *text) {
  tk_out_text(out, label);
  tk_out_json_string(out, text, strlen(text));
}

static void put_string(struct tk_out *out, const char *label, const struct tk_names *names,
                       uint64_t id) {
  struct to_string text = names->string(names->self, id);

  tk_out_text(out, label);
  tk_out_json_string(out, text.data, text.len);
}

struct frames {
  struct tk_out *out;
  const char *before;
};

static void put_frame(void *self, const struct to_frame *frame) {
  struct frames *frames = self;
  struct tk_out *out = frames->out;

  tk_out_text(out, frames->before);
  tk_out_json_string(out, frame->function.data, frame->function.len);
  tk_out_text(out, ",\"file\":");
  tk_out_json_string(out, frame->file.data, frame->file.len);
  put_u64(out, ",\"line\":", frame->line);
  tk_out_text(out, ",\"pc\":\"0x");
  tk_out_hex(out, frame->pc);
  tk_out_text(out, "\"}");
  frames->before = ",{\"func\":";
}

static void put_frames(struct tk_out *out, const char *label, const struct tk_names *names,
                       uint64_t id) {
  struct frames frames = { out, "{\"func\":" };

  tk_out_text(out, label);
  names->stack(names->self, id, put_frame, &frames);
  tk_out_byte(out, ']');
}

static void put_stack(struct tk_out *out, const char *label, const struct tk_names *names,
                      uint64_t id) {
  if (id != TO_NO_STACK && names->knows_stack(names->self, id)) put_frames(out, label, names, id);
}

static void put_sync(struct tk_out *out, const struct tk_names *names, const struct to_event *ev) {
  const struct to_generation *gen = names->gen;
  struct to_clock clock;

  put_u64(out, ",\"n\":", ev->args[0]);
  if (gen == NULL) return;
  put_u64(out, ",\"generation\":", to_generation_number(gen));
  if (!to_generation_clock(gen, &clock)) return;
  tk_out_text(out, ",\"clock\":{\"trace\":");
  tk_out_i64(out, clock.trace_ns);
  put_u64(out, ",\"mono\":", clock.mono_ns);
  tk_out_text(out, ",\"wall_s\":");
  tk_out_i64(out, clock.wall_s);
  tk_out_text(out, ",\"wall_ns\":");
  tk_out_i64(out, clock.wall_ns);
  tk_out_byte(out, '}');
}

/* Prints the trace's text, and the id that is the same in all Go versions (`tracectl tables reasons`). */
static void put_reason(struct tk_out *out, const struct tk_names *names, uint64_t id) {
  put_string(out, ",\"reason\":", names, id);
  put_text(out,
           ",\"reason_id\":", to_reason_info(to_reason_find(names->string(names->self, id)))->id);
}

static void put_transition(struct tk_out *out, const struct tk_names *names,
                           const struct to_event *ev) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  put_id(out, tr.resource == TO_RESOURCE_PROC ? ",\"proc\":" : ",\"goroutine\":", tr.id);
  put_text(out, ",\"from\":", to_state_name(tr.resource, tr.from));
  put_text(out, ",\"to\":", to_state_name(tr.resource, tr.to));
  if (tr.reason != 0) put_reason(out, names, tr.reason);
  if (tr.stack != to_event_stack(ev)) put_stack(out, ",\"transition_stack\":[", names, tr.stack);
}

static void put_range(struct tk_out *out, const struct tk_names *names, const struct to_event *ev) {
  struct to_event_range range;

  if (!to_event_range(ev, &range)) return;
  const struct to_range_info *info = to_range_info(range.kind);
  put_text(out, ",\"name\":", info->name);
  if (range.kind == TO_RANGE_STW) put_string(out, ",\"reason\":", names, range.text);
  put_text(out, ",\"scope\":", to_resource_name(info->scope));
  if (info->scope != TO_RESOURCE_NONE) put_id(out, ",\"scope_id\":", range.id);
  if (ev->type != TW_EV_GC_SWEEP_END) return;
  put_u64(out, ",\"swept_bytes\":", ev->args[0]);
  put_u64(out, ",\"reclaimed_bytes\":", ev->args[1]);
}

static void put_user(struct tk_out *out, const struct tk_names *names, const struct to_event *ev,
                     enum to_event_kind kind) {
  struct to_user_event user;

  to_event_user(ev, &user);
  put_u64(out, ",\"task\":", user.task);
  if (user.parent != TO_NO_TASK) put_u64(out, ",\"parent\":", user.parent);
  if (kind == TO_KIND_LOG) {
    put_string(out, ",\"category\":", names, user.name);
    put_string(out, ",\"message\":", names, user.text);
  } else if (user.name_is_extra) {
    struct to_string type = names->task_type(names->self, user.name);
    tk_out_text(out, ",\"type\":");
    tk_out_json_string(out, type.data, type.len);
  } else {
    put_string(out, ",\"type\":", names, user.name);
  }
}

static void put_experimental(struct tk_out *out, const struct tk_names *names,
                             const struct to_event *ev) {
  const struct tw_spec *spec = names->spec(names->self, ev->type);

  put_text(out, ",\"experiment\":", names->experiment(names->self, ev->type));
  tk_out_text(out, ",\"args\":{");
  for (unsigned i = 0; i < spec->nargs; i++) {
    put_text(out, i > 0 ? "," : "", spec->args[i].label);
    if (spec->args[i].type == TW_ARG_STRING)
      put_string(out, ":", names, ev->args[i]);
    else if (spec->args[i].type == TW_ARG_STACK)
      put_frames(out, ":[", names, ev->args[i]);
    else
      put_u64(out, ":", ev->args[i]);
  }
  tk_out_byte(out, '}');
  struct to_string type = names->object_type(names->self, ev);
  if (type.len == 0) return;
  tk_out_text(out, ",\"type_name\":");
  tk_out_json_string(out, type.data, type.len);
}

static void put_details(struct tk_out *out, const struct tk_names *names, const struct to_event *ev,
                        enum to_event_kind kind) {
  switch (kind) {
  case TO_KIND_SYNC: put_sync(out, names, ev); break;
  case TO_KIND_METRIC:
    put_text(out, ",\"name\":", to_metric_name(to_event_metric(ev)));
    put_u64(out, ",\"value\":", ev->args[0]);
    break;
  case TO_KIND_LABEL: put_string(out, ",\"label\":", names, ev->args[0]); break;
  case TO_KIND_RANGE_BEGIN:
  case TO_KIND_RANGE_ACTIVE:
  case TO_KIND_RANGE_END: put_range(out, names, ev); break;
  case TO_KIND_TASK_BEGIN:
  case TO_KIND_TASK_END:
  case TO_KIND_REGION_BEGIN:
  case TO_KIND_REGION_END:
  case TO_KIND_LOG: put_user(out, names, ev, kind); break;
  case TO_KIND_TRANSITION: put_transition(out, names, ev); break;
  case TO_KIND_EXPERIMENTAL: put_experimental(out, names, ev); break;
  case TO_KIND_STACK_SAMPLE:
  case TO_KIND_BAD: break;
  }
}

void tk_event_json(struct tk_out *out, const struct tk_names *names, const struct to_event *ev) {
  enum to_event_kind kind = to_event_kind(ev);

  tk_out_text(out, "\"time\":");
  tk_out_i64(out, ev->time);
  put_text(out, ",\"kind\":", to_event_kind_name(kind));
  put_text(out, ",\"event\":", names->spec(names->self, ev->type)->name);
  put_id(out, ",\"m\":", ev->m);
  put_id(out, ",\"p\":", ev->p);
  put_id(out, ",\"g\":", ev->g);
  put_details(out, names, ev, kind);
  put_stack(out, ",\"stack\":[", names, to_event_stack(ev));
}

/* --- a generation's own tables ----------------------------------------------------------------- */

/* A generation with its table of types. */
struct own {
  const struct to_generation *gen;
  const struct to_allocfree *heap;
};

static const struct to_generation *gen_of(const void *self) {
  return ((const struct own *)self)->gen;
}

static struct to_string own_string(const void *self, uint64_t id) {
  struct to_string text = { "", 0 };

  (void)to_generation_string(gen_of(self), id, &text); /* the orderer has checked the id */
  return text;
}

static struct to_string own_task_type(const void *self, uint64_t id) {
  return to_generation_extra_string(gen_of(self), id);
}

static bool own_knows_stack(const void *self, uint64_t id) {
  struct to_stack_iter it;

  return to_generation_stack(gen_of(self), id, &it);
}

static void own_stack(const void *self, uint64_t id, tk_frame_fn *each, void *arg) {
  struct to_stack_iter it;
  struct to_frame frame;

  if (!to_generation_stack(gen_of(self), id, &it)) return;
  while (to_stack_next(&it, &frame)) each(arg, &frame);
}

static const struct tw_spec *own_spec(const void *self, uint8_t type) {
  return to_generation_spec(gen_of(self), type);
}

static const char *own_experiment(const void *self, uint8_t type) {
  return to_generation_experiment(gen_of(self), type);
}

static struct to_string own_object_type(const void *self, const struct to_event *ev) {
  const struct to_heap_type *type =
      to_allocfree_type(((const struct own *)self)->heap, to_allocfree_type_id(ev));

  return type != NULL ? type->name : (struct to_string){ "", 0 };
}

static tb_rc know_types(struct tk_printer *printer, const struct to_generation *gen) {
  uint64_t number = gen != NULL ? to_generation_number(gen) : 0;

  if (number == printer->heap_gen) return TB_OK;
  printer->heap_gen = number;
  return number == 0 ? TB_OK : to_allocfree_generation(&printer->heap, gen);
}

static struct tk_names names_of(const struct own *own) {
  return (struct tk_names){ own,       own->gen, own_string,     own_task_type,  own_knows_stack,
                            own_stack, own_spec, own_experiment, own_object_type };
}

void tk_event_details_json(struct tk_out *out, const struct to_generation *gen,
                           const struct to_allocfree *heap, const struct to_event *ev) {
  const struct own own = { gen, heap };
  const struct tk_names names = names_of(&own);

  put_details(out, &names, ev, to_event_kind(ev));
}

tb_rc tk_print_json(void *self, const struct to_generation *gen, const struct to_event *events,
                    size_t n) {
  struct tk_printer *printer = self;
  const struct own own = { gen, &printer->heap };
  const struct tk_names names = names_of(&own);
  struct tk_out *out = printer->out;

  TB_TRY(know_types(printer, gen));
  for (const struct to_event *ev = events; ev < events + n; ev++) {
    tk_out_byte(out, '{');
    tk_event_json(out, &names, ev);
    tk_out_text(out, "}\n");
  }
  return out->error == 0 ? TB_OK : TB_IO;
}
