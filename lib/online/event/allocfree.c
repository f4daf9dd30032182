/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte of a batch is its kind. An id is an address minus the heap's start, divided by the alignment of
 * such things; a stack's size is written as its bit length. */
#include "online/event/allocfree.h"

#include "base/grow.h"
#include "wire/varint.h"

enum batch { TYPES = 0, PACKING = 1 }; /* the runtime's numbers */
enum { SIZE_BITS_MAX = 64 };

void to_allocfree_init(struct to_allocfree *af, struct tb_mem *mem) {
  *af = (struct to_allocfree){ .mem = mem };
  tb_map_init(&af->by_id, mem, tb_seed());
}

void to_allocfree_fini(struct to_allocfree *af) {
  if (af->mem == NULL) return;
  tb_mem_free(af->mem, af->type, af->room * sizeof *af->type);
  tb_map_fini(&af->by_id);
  *af = (struct to_allocfree){ 0 };
}

static bool read_numbers(const unsigned char **pos, const unsigned char *end, uint64_t *const *out,
                         size_t n) {
  for (size_t i = 0; i < n; i++) {
    int used = tw_varint_read(*pos, end, out[i]);
    if (used <= 0) return false;
    *pos += used;
  }
  return true;
}

static tb_rc add_type(struct to_allocfree *af, const struct to_heap_type *type) {
  uint64_t *place;
  bool fresh;

  TB_TRY(TB_MEM_GROW(af->mem, af->type, af->room, af->types));
  TB_TRY(tb_map_put(&af->by_id, type->id, &place, &fresh));
  if (!fresh) return TB_OK; /* the first of two counts; a program should not write two */
  *place = af->types;
  af->type[af->types++] = *type;
  return TB_OK;
}

static tb_rc read_types(struct to_allocfree *af, const unsigned char *pos,
                        const unsigned char *end) {
  while (pos < end) {
    struct to_heap_type type;
    uint64_t name_len, *const numbers[] = { &type.id, &type.address, &type.bytes,
                                            &type.pointer_bytes, &name_len };
    if (!read_numbers(&pos, end, numbers, 5) || name_len > (size_t)(end - pos)) return TB_OK;
    type.name = (struct to_string){ (const char *)pos, name_len };
    pos += name_len;
    TB_TRY(add_type(af, &type));
  }
  return TB_OK;
}

static void read_packing(struct to_allocfree *af, const unsigned char *pos,
                         const unsigned char *end) {
  uint64_t start, page, object, stack, *const numbers[] = { &start, &page, &object, &stack };

  if (!read_numbers(&pos, end, numbers, 4)) return;
  af->packing_known = true;
  af->heap_start = start;
  af->page_bytes = page;
  af->object_align = object;
  af->stack_align = stack;
}

tb_rc to_allocfree_generation(struct to_allocfree *af, const struct to_generation *gen) {
  const struct to_experimental *batch;
  size_t n = to_generation_experimental(gen, &batch);

  af->types = 0;
  tb_map_clear(&af->by_id);
  for (; n > 0; n--, batch++) {
    if (batch->experiment != TW_EXPERIMENT_ALLOC_FREE || batch->len == 0) continue;
    const unsigned char *pos = batch->data + 1, *end = batch->data + batch->len;
    if (batch->data[0] == TYPES) TB_TRY(read_types(af, pos, end));
    if (batch->data[0] == PACKING) read_packing(af, pos, end);
  }
  return TB_OK;
}

const struct to_heap_type *to_allocfree_type(const struct to_allocfree *af, uint64_t id) {
  const uint64_t *place = tb_map_find(&af->by_id, id);

  return place == NULL ? NULL : &af->type[*place];
}

uint64_t to_allocfree_type_id(const struct to_event *ev) {
  return ev->type == TW_EV_HEAP_OBJECT || ev->type == TW_EV_HEAP_OBJECT_ALLOC ? ev->args[1] : 0;
}

static const struct what {
  uint8_t event, thing, verb;
} whats[] = {
  { TW_EV_SPAN, TO_HEAP_SPAN, TO_HEAP_EXISTS },
  { TW_EV_SPAN_ALLOC, TO_HEAP_SPAN, TO_HEAP_ALLOC },
  { TW_EV_SPAN_FREE, TO_HEAP_SPAN, TO_HEAP_FREE },
  { TW_EV_HEAP_OBJECT, TO_HEAP_OBJECT, TO_HEAP_EXISTS },
  { TW_EV_HEAP_OBJECT_ALLOC, TO_HEAP_OBJECT, TO_HEAP_ALLOC },
  { TW_EV_HEAP_OBJECT_FREE, TO_HEAP_OBJECT, TO_HEAP_FREE },
  { TW_EV_GOROUTINE_STACK, TO_HEAP_STACK, TO_HEAP_EXISTS },
  { TW_EV_GOROUTINE_STACK_ALLOC, TO_HEAP_STACK, TO_HEAP_ALLOC },
  { TW_EV_GOROUTINE_STACK_FREE, TO_HEAP_STACK, TO_HEAP_FREE },
};

static void fill_span(const struct to_allocfree *af, const struct to_event *ev,
                      struct to_heap_event *out) {
  uint64_t kind_class = ev->args[2];

  out->bytes = ev->args[1] * af->page_bytes;
  out->holds_objects = (kind_class & 1) == 0;
  if (!out->holds_objects) return;
  out->no_pointers = (kind_class >> 1 & 1) != 0;
  out->size_class = (unsigned)(kind_class >> 2);
}

static void fill_object(const struct to_allocfree *af, const struct to_event *ev,
                        struct to_heap_event *out) {
  out->type = to_allocfree_type(af, to_allocfree_type_id(ev));
  if (out->type != NULL) out->bytes = out->type->bytes;
}

static void fill_stack(const struct to_event *ev, struct to_heap_event *out) {
  uint64_t bits = ev->args[1];

  if (bits > 0 && bits <= SIZE_BITS_MAX) out->bytes = UINT64_C(1) << (bits - 1);
}

bool to_allocfree_event(const struct to_allocfree *af, const struct to_event *ev,
                        struct to_heap_event *out) {
  const struct what *what = whats, *end = whats + sizeof whats / sizeof whats[0];

  while (what < end && what->event != ev->type) what++;
  if (what == end) return false;
  *out = (struct to_heap_event){ .thing = (enum to_heap_thing)what->thing,
                                 .verb = (enum to_heap_verb)what->verb,
                                 .id = ev->args[0] };
  const uint64_t align[] = { af->page_bytes, af->object_align, af->stack_align };
  if (af->packing_known) out->address = af->heap_start + ev->args[0] * align[out->thing];
  if (out->verb == TO_HEAP_FREE) return true;
  switch (out->thing) {
  case TO_HEAP_SPAN: fill_span(af, ev, out); break;
  case TO_HEAP_OBJECT: fill_object(af, ev, out); break;
  case TO_HEAP_STACK: fill_stack(ev, out); break;
  }
  return true;
}
