/* SPDX-License-Identifier: Apache-2.0 */
#include "online/spans/wakers.h"

#include <string.h>

enum { ROOM_MIN = 64 };

void to_wakers_init(struct to_wakers *w, struct tb_mem *mem) {
  *w = (struct to_wakers){ .mem = mem };
}

void to_wakers_fini(struct to_wakers *w) {
  if (w->mem == NULL) return;
  tb_mem_free(w->mem, w->of_slot, w->slots * sizeof *w->of_slot);
  tb_mem_free(w->mem, w->of_stack, w->stacks * sizeof *w->of_stack);
}

void to_wakers_clear(struct to_wakers *w) {
  if (w->slots > 0) memset(w->of_slot, 0, w->slots * sizeof *w->of_slot);
  if (w->stacks > 0) memset(w->of_stack, 0, w->stacks * sizeof *w->of_stack);
}

/* Grows an array of *room elements; new ones are zeroed. array: the address of a pointer. */
static tb_rc grow(struct tb_mem *mem, void *array, size_t *room, size_t size, uint32_t number) {
  size_t more = *room < ROOM_MIN ? ROOM_MIN : *room;
  void *block;

  if (number < *room) return TB_OK;
  while (more <= number) more *= 2;
  memcpy(&block, array, sizeof block);
  TB_TRY(tb_mem_resize(mem, &block, *room * size, more * size));
  memset((char *)block + *room * size, 0, (more - *room) * size);
  memcpy(array, &block, sizeof block);
  *room = more;
  return TB_OK;
}

tb_rc to_wakers_grow(struct to_wakers *w, uint32_t slot, uint32_t stack) {
  TB_TRY(grow(w->mem, &w->of_stack, &w->stacks, sizeof *w->of_stack, stack));
  return grow(w->mem, &w->of_slot, &w->slots, sizeof *w->of_slot, slot);
}

static unsigned find_stack(const struct to_own_wakers *own, uint32_t stack) {
  unsigned at = 0;

  while (at < TO_OWN_STACKS && own->stack[at] != stack) at++;
  return at;
}

/* A new stack replaces the oldest one. */
void to_wakers_turn_to(struct to_own_wakers *own, uint32_t stack) {
  unsigned at = find_stack(own, stack);

  if (at == TO_OWN_STACKS) {
    at = own->next;
    own->next = (uint8_t)((at + 1) % TO_OWN_STACKS);
    own->stack[at] = stack;
    own->has_more[at] = false;
    memset(own->waker[at], 0, sizeof own->waker[at]);
  }
  own->at = (uint8_t)at;
}

const uint64_t *to_wakers_own(const struct to_wakers *w, uint32_t slot, uint32_t stack,
                              bool *out_has_more) {
  *out_has_more = false;
  if (slot >= w->slots || stack <= TO_STACK_OTHER) return NULL;
  const struct to_own_wakers *own = &w->of_slot[slot];
  unsigned at = find_stack(own, stack);
  if (at == TO_OWN_STACKS) return NULL;
  *out_has_more = own->has_more[at];
  return own->waker[at];
}

uint64_t to_wakers_of_stack(const struct to_wakers *w, uint32_t stack) {
  return stack <= TO_STACK_OTHER || stack >= w->stacks ? 0 : w->of_stack[stack];
}
