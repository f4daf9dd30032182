/* SPDX-License-Identifier: Apache-2.0 */
#include "spans/wakers.h"

#include <string.h>

enum { ROOM_MIN = 64 };

void to_wakers_init(struct to_wakers *w, struct tb_mem *mem) {
  *w = (struct to_wakers){ .mem = mem };
}

void to_wakers_fini(struct to_wakers *w) {
  if (w->mem == NULL) return;
  tb_mem_give(w->mem, w->of_slot, w->slots * sizeof *w->of_slot);
  tb_mem_give(w->mem, w->of_stack, w->stacks * sizeof *w->of_stack);
}

void to_wakers_clear(struct to_wakers *w) {
  if (w->slots > 0) memset(w->of_slot, 0, w->slots * sizeof *w->of_slot);
  if (w->stacks > 0) memset(w->of_stack, 0, w->stacks * sizeof *w->of_stack);
}

static size_t room_for(size_t room, uint32_t number) {
  if (room < ROOM_MIN) room = ROOM_MIN;
  while (room <= number) room *= 2;
  return room;
}

tb_rc to_wakers_grow(struct to_wakers *w, uint32_t slot, uint32_t stack) {
  size_t slots = room_for(w->slots, slot), stacks = room_for(w->stacks, stack);
  void *block = w->of_slot;

  TB_TRY(tb_mem_resize(w->mem, &block, w->slots * sizeof *w->of_slot, slots * sizeof *w->of_slot));
  w->of_slot = block;
  memset(w->of_slot + w->slots, 0, (slots - w->slots) * sizeof *w->of_slot);
  w->slots = slots;
  block = w->of_stack;
  TB_TRY(
      tb_mem_resize(w->mem, &block, w->stacks * sizeof *w->of_stack, stacks * sizeof *w->of_stack));
  w->of_stack = block;
  memset(w->of_stack + w->stacks, 0, (stacks - w->stacks) * sizeof *w->of_stack);
  w->stacks = stacks;
  return TB_OK;
}

/* The stack's entry moves to the front; the last one of all makes room for a new one. */
static void come_first(struct to_own_wakers *own, uint32_t stack) {
  unsigned from = 1;

  while (from < TO_OWN_STACKS - 1 && own->at[from].stack != stack) from++;
  struct to_own_waker at = own->at[from];
  if (at.stack != stack) at = (struct to_own_waker){ .stack = stack };
  memmove(own->at + 1, own->at, from * sizeof *own->at);
  own->at[0] = at;
}

void to_wakers_change(struct to_own_wakers *own, uint32_t stack, uint64_t waker) {
  struct to_own_waker *at = &own->at[0];

  if (at->stack != stack) come_first(own, stack);
  if (at->waker[0] == waker) return;
  if (at->waker[1] != waker && at->waker[1] != 0) at->has_more = true;
  at->waker[1] = at->waker[0];
  at->waker[0] = waker;
}

const struct to_own_waker *to_wakers_own(const struct to_wakers *w, uint32_t slot, uint32_t stack) {
  if (slot >= w->slots || stack <= TO_STACK_OTHER) return NULL;
  for (unsigned i = 0; i < TO_OWN_STACKS; i++)
    if (w->of_slot[slot].at[i].stack == stack) return &w->of_slot[slot].at[i];
  return NULL;
}

uint64_t to_wakers_of_stack(const struct to_wakers *w, uint32_t stack) {
  return stack <= TO_STACK_OTHER || stack >= w->stacks ? 0 : w->of_stack[stack];
}
