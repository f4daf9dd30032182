/* SPDX-License-Identifier: Apache-2.0 */
/* Events are packed field by field: a tree of message structs would cost several times as much. Tables grow in a buffer of
 * their own, because they are sent before the events that refer to them. */
#include "pack/bundle.h"

#include <string.h>

#include "proto/put.h"
#include "proto/utf8.h"
#include "wire/experiments.h"

/* Fields of proto/archive.proto. */
enum bundle_field {
  BUNDLE_STREAM = 3,
  BUNDLE_SERVICE,
  BUNDLE_INSTANCE,
  BUNDLE_GENERATION,
  BUNDLE_GO_VERSION,
  BUNDLE_CLOCK_TRACE,
  BUNDLE_CLOCK_WALL,
  BUNDLE_STRINGS,
  BUNDLE_FRAMES,
  BUNDLE_STACKS,
  BUNDLE_TYPES,
  BUNDLE_EVENTS,
};
enum frame_field { FRAME_FUNCTION = 1, FRAME_FILE, FRAME_LINE, FRAME_PC };
enum { STACK_FRAMES = 1 };
enum type_field { TYPE_TYPE = 1, TYPE_NAME, TYPE_ARGS, TYPE_EXPERIMENT };
enum event_field {
  EVENT_TIME = 1,
  EVENT_GOROUTINE = 4,
  EVENT_THREAD,
  EVENT_PROC,
  EVENT_DURATION,
  EVENT_LOWER_BOUND,
  EVENT_TYPE = 17,
  EVENT_ARGS,
  EVENT_POSITION,
  EVENT_TYPE_NAME,
};

enum {
  STREAM_BYTES = 16,
  NAME_BYTES_MAX = 64,
  ABOUT_BYTES_MAX = STREAM_BYTES + 2 * NAME_BYTES_MAX + 10 * TP_FIELD_BYTES,
  ARGS_MAX = 4,
  EVENT_BYTES_MAX = 11 * TP_FIELD_BYTES + ARGS_MAX * TW_VARINT_BYTES_MAX,
  SMALL_BYTES_MAX = 8 * TP_FIELD_BYTES,
  TYPE_BYTES_MAX = 2 * TW_EXPERIMENT_NAME_MAX + ARGS_MAX * TW_ARG_LABEL_MAX + 8 * TP_FIELD_BYTES,
};

/* --- strings ----------------------------------------------------------------------------------- */

static tb_rc put_string(struct tp_bundle *b, struct to_string text) {
  size_t room = 3 * text.len + TP_FIELD_BYTES;

  TB_TRY(tb_buf_reserve(&b->tables, room));
  unsigned char *out = b->tables.data + b->tables.len;
  if (tp_utf8_whole(text.data, text.len) == text.len) {
    out = tp_put_bytes(out, BUNDLE_STRINGS, text.data, text.len);
  } else {
    char repaired[3 * TW_STRING_BYTES_MAX];
    size_t len = text.len < TW_STRING_BYTES_MAX ? text.len : TW_STRING_BYTES_MAX;
    size_t n =
        tp_utf8_repair(text.data, len, repaired); /* a type's name may be longer than the buffer */
    out = tp_put_bytes(out, BUNDLE_STRINGS, repaired, n);
  }
  b->tables.len = (size_t)(out - b->tables.data);
  return TB_OK;
}

/* A generation has each text only once: the address identifies the text. */
static tb_rc string_index(struct tp_bundle *b, struct to_string text, uint64_t *out) {
  uint64_t *index;
  bool fresh;

  *out = 0;
  if (text.len == 0) return TB_OK;
  TB_TRY(tb_map_put(&b->strings, (uintptr_t)text.data, &index, &fresh));
  if (fresh) {
    tb_rc rc = put_string(b, text);
    if (rc != TB_OK) {
      tb_map_remove(&b->strings, (uintptr_t)text.data);
      return rc;
    }
    *index = b->n_strings++;
  }
  *out = *index;
  return TB_OK;
}

/* --- stacks ------------------------------------------------------------------------------------ */

static tb_rc put_frame(struct tp_bundle *b, const struct to_frame *frame) {
  uint64_t function, file;
  unsigned char bytes[SMALL_BYTES_MAX], *end = bytes;

  TB_TRY(string_index(b, frame->function, &function));
  TB_TRY(string_index(b, frame->file, &file));
  end = tp_put_number(end, FRAME_FUNCTION, function);
  end = tp_put_number(end, FRAME_FILE, file);
  end = tp_put_number(end, FRAME_LINE, frame->line);
  end = tp_put_number(end, FRAME_PC, frame->pc);
  TB_TRY(tb_buf_reserve(&b->tables, sizeof bytes + TP_FIELD_BYTES));
  unsigned char *out = b->tables.data + b->tables.len;
  out = tp_put_bytes(out, BUNDLE_FRAMES, bytes, (size_t)(end - bytes));
  b->tables.len = (size_t)(out - b->tables.data);
  return TB_OK;
}

/* Frames with the same program counter share an entry; each frame without one has its own. */
static tb_rc frame_index(struct tp_bundle *b, const struct to_frame *frame, uint64_t *out) {
  const uint64_t *known = frame->pc != 0 ? tb_map_find(&b->frames, frame->pc) : NULL;
  uint64_t *index;

  if (known != NULL) {
    *out = *known;
    return TB_OK;
  }
  TB_TRY(put_frame(b, frame));
  *out = b->n_frames++;
  if (frame->pc == 0) return TB_OK;
  TB_TRY(tb_map_put(&b->frames, frame->pc, &index, NULL));
  *index = *out;
  return TB_OK;
}

static tb_rc put_stack(struct tp_bundle *b, const struct to_generation *gen, uint64_t id) {
  unsigned char frames[TW_STACK_FRAMES_MAX * TW_VARINT_BYTES_MAX], *end = frames;
  struct to_stack_iter it;
  struct to_frame frame;
  uint64_t index;

  if (to_generation_stack_own(gen, id, &it))
    for (unsigned n = 0; n < TW_STACK_FRAMES_MAX && to_stack_next(&it, &frame); n++) {
      TB_TRY(frame_index(b, &frame, &index));
      end = tp_put_varint(end, index);
    }
  size_t n = (size_t)(end - frames), inner = n + 1 + tp_varint_bytes(n);
  TB_TRY(tb_buf_reserve(&b->tables, inner + TP_FIELD_BYTES));
  unsigned char *out = b->tables.data + b->tables.len;
  out = tp_put_length(out, BUNDLE_STACKS, inner);
  out = tp_put_bytes(out, STACK_FRAMES, frames, n);
  b->tables.len = (size_t)(out - b->tables.data);
  return TB_OK;
}

static tb_rc stack_index(struct tp_bundle *b, const struct to_generation *gen, uint64_t id,
                         uint64_t *out) {
  uint64_t *index;
  bool fresh;

  *out = 0;
  if (id == 0) return TB_OK;
  TB_TRY(tb_map_put(&b->stacks, id, &index, &fresh));
  if (fresh) {
    tb_rc rc = put_stack(b, gen, id);
    if (rc != TB_OK) {
      tb_map_remove(&b->stacks, id);
      return rc;
    }
    *index = b->n_stacks++;
  }
  *out = *index;
  return TB_OK;
}

/* --- types ------------------------------------------------------------------------------------- */

static const char *arg_label(const struct to_generation *gen, uint8_t type, unsigned i) {
  const struct tw_spec *spec = to_generation_spec(gen, type);

  switch (type) { /* arguments added by the orderer: online/event/event.h */
  case TW_EV_SYNC: return "n";
  case TW_EV_CPU_SAMPLE: return "stack";
  case TW_EV_STW_END: return "kind_string";
  case TW_EV_PROC_STATUS:
    if (i == 2) return "before";
    break;
  case TW_EV_PROC_STEAL:
    if (i == 3) return "pstatus";
    break;
  case TW_EV_USER_TASK_END:
    if (i >= 2) return i == 2 ? "parent_task" : "name_string";
    break;
  default: break;
  }
  return spec->args[i].label;
}

static tb_rc put_type(struct tp_bundle *b, const struct to_generation *gen, uint8_t type) {
  const char *name = to_generation_spec(gen, type)->name;
  const char *experiment = to_generation_experiment(gen, type);
  unsigned char bytes[TYPE_BYTES_MAX], *end = bytes;
  enum tw_arg_type args[ARGS_MAX];
  unsigned n = to_generation_args(gen, type, args);

  end = tp_put_number(end, TYPE_TYPE, type);
  end = tp_put_bytes(end, TYPE_NAME, name, strlen(name));
  for (unsigned i = 0; i < n; i++) {
    const char *label = arg_label(gen, type, i);
    end = tp_put_bytes(end, TYPE_ARGS, label, strlen(label));
  }
  if (experiment != NULL) end = tp_put_bytes(end, TYPE_EXPERIMENT, experiment, strlen(experiment));
  TB_TRY(tb_buf_reserve(&b->tables, sizeof bytes + TP_FIELD_BYTES));
  unsigned char *out = b->tables.data + b->tables.len;
  out = tp_put_bytes(out, BUNDLE_TYPES, bytes, (size_t)(end - bytes));
  b->tables.len = (size_t)(out - b->tables.data);
  return TB_OK;
}

static tb_rc know_type(struct tp_bundle *b, const struct to_generation *gen, uint8_t type) {
  uint64_t bit = UINT64_C(1) << (type & 63), *word = &b->types[type >> 6];

  if ((*word & bit) != 0) return TB_OK;
  TB_TRY(put_type(b, gen, type));
  *word |= bit;
  return TB_OK;
}

/* --- events ------------------------------------------------------------------------------------ */

static tb_rc resolve(struct tp_bundle *b, const struct to_generation *gen,
                     const struct to_event *ev, enum tw_arg_type type, unsigned i, uint64_t *out) {
  struct to_string text = { "", 0 };

  switch (type) {
  case TW_ARG_STACK: return stack_index(b, gen, ev->args[i], out);
  case TW_ARG_STRING:
    if (ev->type == TW_EV_USER_TASK_END)
      text = to_generation_extra_string(gen, ev->args[i]);
    else
      (void)to_generation_string(gen, ev->args[i], &text); /* the orderer has checked it */
    return string_index(b, text, out);
  default: *out = ev->args[i]; return TB_OK;
  }
}

/* If the table cannot be allocated, events are sent without type names. */
static void know_heap(struct tp_bundle *b, const struct to_generation *gen) {
  if (b->heap_known) return;
  b->heap_known = true;
  if (to_allocfree_generation(&b->heap, gen) == TB_OK) return;
  to_allocfree_fini(&b->heap);
  to_allocfree_init(&b->heap, b->mem);
}

static tb_rc type_name_index(struct tp_bundle *b, const struct to_generation *gen,
                             const struct to_event *ev, uint64_t *out) {
  uint64_t id = to_allocfree_type_id(ev);

  *out = 0;
  if (id == 0) return TB_OK;
  know_heap(b, gen);
  const struct to_heap_type *type = to_allocfree_type(&b->heap, id);
  return type == NULL ? TB_OK : string_index(b, type->name, out);
}

tb_rc tp_bundle_add(struct tp_bundle *b, const struct to_generation *gen, const struct to_event *ev,
                    uint64_t position, const struct to_duration *lasted) {
  unsigned char bytes[EVENT_BYTES_MAX], *end = bytes;
  enum tw_arg_type types[ARGS_MAX];
  unsigned n = to_generation_args(gen, ev->type, types);
  uint64_t args[ARGS_MAX], type_name;
  size_t args_bytes = 0;

  TB_TRY(know_type(b, gen, ev->type));
  for (unsigned i = 0; i < n; i++) {
    TB_TRY(resolve(b, gen, ev, types[i], i, &args[i]));
    args_bytes += tp_varint_bytes(args[i]);
  }
  TB_TRY(type_name_index(b, gen, ev, &type_name));
  TB_TRY(tb_buf_reserve(&b->events, sizeof bytes + TP_FIELD_BYTES));

  end = tp_put_number(end, EVENT_TIME, (uint64_t)ev->time);
  end = tp_put_signed(end, EVENT_GOROUTINE, ev->g);
  end = tp_put_signed(end, EVENT_THREAD, ev->m);
  end = tp_put_signed(end, EVENT_PROC, ev->p);
  if (lasted->known) {
    end = tp_put_number(end, EVENT_DURATION, lasted->ns);
    end = tp_put_number(end, EVENT_LOWER_BOUND, lasted->lower_bound);
  }
  end = tp_put_number(end, EVENT_TYPE, ev->type);
  if (n > 0) end = tp_put_length(end, EVENT_ARGS, args_bytes);
  for (unsigned i = 0; i < n; i++) end = tp_put_varint(end, args[i]);
  end = tp_put_number(end, EVENT_POSITION, position);
  end = tp_put_number(end, EVENT_TYPE_NAME, type_name);
  unsigned char *out = b->events.data + b->events.len;
  out = tp_put_bytes(out, BUNDLE_EVENTS, bytes, (size_t)(end - bytes));
  b->events.len = (size_t)(out - b->events.data);
  b->count++;
  return TB_OK;
}

/* --- a bundle ---------------------------------------------------------------------------------- */

void tp_bundle_init(struct tp_bundle *b, struct tb_mem *mem) {
  uint64_t seed = tb_seed();

  *b = (struct tp_bundle){ .mem = mem };
  tb_buf_init(&b->tables, mem);
  tb_buf_init(&b->events, mem);
  tb_map_init(&b->strings, mem, seed);
  tb_map_init(&b->frames, mem, seed);
  tb_map_init(&b->stacks, mem, seed);
  to_allocfree_init(&b->heap, mem);
}

void tp_bundle_fini(struct tp_bundle *b) {
  tb_buf_fini(&b->tables);
  tb_buf_fini(&b->events);
  tb_map_fini(&b->strings);
  tb_map_fini(&b->frames);
  tb_map_fini(&b->stacks);
  to_allocfree_fini(&b->heap);
}

static void put_about(struct tp_bundle *b, const struct to_generation *gen,
                      const struct tp_bundle_about *about) {
  unsigned char *end = b->tables.data;
  to_ns trace_ns = about->clock_trace_ns;
  uint64_t wall_ns = about->clock_wall_ns;
  struct to_clock clock;

  if (to_generation_clock(gen, &clock)) {
    trace_ns = clock.trace_ns;
    wall_ns = (uint64_t)clock.wall_s * 1000000000u + (uint64_t)clock.wall_ns;
  }
  end = tp_put_bytes(end, BUNDLE_STREAM, about->stream, STREAM_BYTES);
  end = tp_put_bytes(end, BUNDLE_SERVICE, about->service, strnlen(about->service, NAME_BYTES_MAX));
  end =
      tp_put_bytes(end, BUNDLE_INSTANCE, about->instance, strnlen(about->instance, NAME_BYTES_MAX));
  end = tp_put_number(end, BUNDLE_GENERATION, to_generation_number(gen));
  end = tp_put_number(end, BUNDLE_GO_VERSION, to_generation_version(gen));
  end = tp_put_number(end, BUNDLE_CLOCK_TRACE, (uint64_t)trace_ns);
  end = tp_put_number(end, BUNDLE_CLOCK_WALL, wall_ns);
  end = tp_put_length(end, BUNDLE_STRINGS, 0); /* index 0: the empty string and the empty stack */
  end = tp_put_length(end, BUNDLE_STACKS, 0);
  b->tables.len = (size_t)(end - b->tables.data);
  b->n_strings = b->n_stacks = 1;
}

tb_rc tp_bundle_begin(struct tp_bundle *b, const struct to_generation *gen,
                      const struct tp_bundle_about *about) {
  tb_buf_clear(&b->tables);
  tb_buf_clear(&b->events);
  tb_map_clear(&b->strings);
  tb_map_clear(&b->frames);
  tb_map_clear(&b->stacks);
  b->n_frames = 0;
  b->count = 0;
  b->heap_known = false;
  memset(b->types, 0, sizeof b->types);
  TB_TRY(tb_buf_reserve(&b->tables, ABOUT_BYTES_MAX));
  put_about(b, gen, about);
  return TB_OK;
}

void tp_bundle_write(const struct tp_bundle *b, void *out) {
  memcpy(out, b->tables.data, b->tables.len);
  if (b->events.len > 0) memcpy((char *)out + b->tables.len, b->events.data, b->events.len);
}
