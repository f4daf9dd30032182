/* SPDX-License-Identifier: Apache-2.0 */
/* Frames and stacks are found by a hash of what they contain. */
#include "pack/merge_stacks.h"

#include <string.h>

#include "base/hash.h"
#include "pack/report_read.h"
#include "pack/text.h"

typedef Tracecollect__V1__Report Report;
typedef Tracecollect__V1__Value Value;
typedef Tracecollect__V1__Stack Stack;
typedef Tracecollect__V1__Frame Frame;

tb_rc tp_stacks_begin(struct tp_stacks *s, const Report *part, struct tb_arena *scratch) {
  s->part = part;
  TP_TAKE(scratch, uint32_t, part->n_stacks, s->stack_of);
  memset(s->stack_of, 0, (part->n_stacks + 1) * sizeof(*s->stack_of));
  return TB_OK;
}

static bool is_same_frame(const void *list, size_t item, const void *key) {
  const Frame *a = ((Frame *const *)list)[item], *b = key;

  return a->line == b->line && strcmp(a->function, b->function) == 0 &&
         strcmp(a->file, b->file) == 0;
}

static tb_rc find_frame(struct tp_stacks *s, Frame *frame, uint32_t *out) {
  Report *r = s->report;
  size_t item;
  bool is_fresh;

  uint64_t hash = tp_hash_text(tp_hash_text(s->seed, frame->function), frame->file);
  TB_TRY(tp_index_find(&s->frames, tb_hash(hash, &frame->line, sizeof(frame->line)), is_same_frame,
                       r->frames, frame, &item, &is_fresh));
  if (is_fresh) {
    TB_TRY(TB_ARENA_GROW(s->arena, r->frames, s->frames_room, r->n_frames));
    r->frames[r->n_frames++] = frame;
  }
  *out = (uint32_t)item;
  return TB_OK;
}

static bool is_same_stack(const void *list, size_t item, const void *key) {
  const Stack *a = ((Stack *const *)list)[item], *b = key;

  return a->n_frames == b->n_frames &&
         (a->n_frames == 0 || memcmp(a->frames, b->frames, a->n_frames * sizeof(*a->frames)) == 0);
}

static tb_rc add_stack(struct tp_stacks *s, const Value *value, uint32_t *out) {
  const Report *from = s->part;
  Report *r = s->report;
  size_t item, n = tp_stack_length(from, value);
  bool is_fresh;
  Stack *stack;

  TP_TAKE(s->arena, Stack, 1, stack);
  tracecollect__v1__stack__init(stack);
  TP_TAKE(s->arena, uint32_t, n, stack->frames);
  for (size_t i = 0; i < n; i++) {
    const Frame *frame = tp_stack_frame(from, value, i);
    if (frame == NULL) continue;
    TB_TRY(find_frame(s, (Frame *)(uintptr_t)frame, &stack->frames[stack->n_frames++]));
  }
  uint64_t hash = tb_hash(s->seed, stack->frames, stack->n_frames * sizeof(*stack->frames));
  TB_TRY(tp_index_find(&s->stacks, hash, is_same_stack, r->stacks, stack, &item, &is_fresh));
  if (is_fresh) {
    TB_TRY(TB_ARENA_GROW(s->arena, r->stacks, s->stacks_room, r->n_stacks));
    r->stacks[r->n_stacks++] = stack;
  }
  *out = (uint32_t)item;
  return TB_OK;
}

tb_rc tp_stacks_find(struct tp_stacks *s, const Value *value, uint32_t *out) {
  if (value->stack >= s->part->n_stacks) return add_stack(s, value, out);
  uint32_t *place = &s->stack_of[value->stack];
  if (*place == 0) {
    TB_TRY(add_stack(s, value, place));
    ++*place;
  }
  *out = *place - 1;
  return TB_OK;
}
