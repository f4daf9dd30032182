/* SPDX-License-Identifier: Apache-2.0 */
/* Packing a stack takes longer than the rest of an event, and a program blocks in few places: the last packed stacks
 * are kept in a hash table without chains. A stack of the analyses is identified by its address, a stack of a
 * generation by its number there. */
#include "collector/analysis/feed_private.h"
#include "pack/text.h"

enum { KEPT_BYTES_MAX = 8 << 10 };

/* Packs an Event with only the stack field; the result is appended to the event's other fields. */
static tb_rc pack_frames(struct tc__packed_stack *place, size_t n,
                         Tracecollect__V1__Frame **frames) {
  Tracecollect__V1__Event event = TRACECOLLECT__V1__EVENT__INIT;

  event.stack = frames;
  event.n_stack = n;
  size_t len = tracecollect__v1__event__get_packed_size(&event);
  tb_buf_clear(&place->bytes);
  TB_TRY(tb_buf_reserve(&place->bytes, len));
  place->bytes.len = tracecollect__v1__event__pack(&event, place->bytes.data);
  return TB_OK;
}

static struct tc__packed_stack *find_place(struct tc_feed_encoder *source, uint64_t key,
                                           uint64_t gen, bool *out_known) {
  size_t at = (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) % TC__STACKS_KEPT;
  struct tc__packed_stack *place = &source->stacks[at];

  *out_known = place->known && place->key == key && place->gen == gen;
  if (*out_known) return place;
  if (place->bytes.cap > KEPT_BYTES_MAX) { /* do not keep a huge buffer */
    tb_buf_fini(&place->bytes);
    tb_buf_init(&place->bytes, &source->mem);
  }
  place->known = false;
  place->key = key;
  place->gen = gen;
  return place;
}

tb_rc tc__pack_stack(struct tc_feed_encoder *source, const struct to_callstack *stack,
                     const struct tb_buf **out) {
  Tracecollect__V1__Frame **frames;
  bool known;
  size_t n;
  struct tc__packed_stack *place = find_place(source, (uintptr_t)stack, 0, &known);

  if (!known) {
    TB_TRY(tp_take_stack(&source->arena, stack, &n, &frames));
    TB_TRY(pack_frames(place, n, frames));
    place->known = true;
  }
  *out = &place->bytes;
  return TB_OK;
}

tb_rc tc__pack_stack_of(struct tc_feed_encoder *source, const struct to_generation *gen,
                        uint64_t id, const struct tb_buf **out) {
  Tracecollect__V1__Frame **frames;
  bool known;
  size_t n;
  struct tc__packed_stack *place = find_place(source, id, source->gen, &known);

  if (!known) {
    TB_TRY(tp_copy_stack(&source->arena, gen, id, &n, &frames));
    TB_TRY(pack_frames(place, n, frames));
    place->known = true;
  }
  *out = &place->bytes;
  return TB_OK;
}

void tc__forget_stacks(struct tc_feed_encoder *source) {
  for (unsigned i = 0; i < TC__STACKS_KEPT; i++) {
    tb_buf_fini(&source->stacks[i].bytes);
    source->stacks[i] = (struct tc__packed_stack){ .known = false };
    tb_buf_init(&source->stacks[i].bytes, &source->mem);
  }
}
