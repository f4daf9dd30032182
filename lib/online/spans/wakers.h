/* SPDX-License-Identifier: Apache-2.0 */
/* The goroutines that ended earlier waits. Go's traces name neither locks nor channels. So the goroutines that ended the last
 * waits at a stack are assumed to be the ones that can end the next wait there.
 *
 * Stored are, for each goroutine, four stacks at which it has waited, each with the last two goroutines that ended its waits
 * there; for each stack, the goroutine that ended the last wait there. Waits that the runtime ended (a timer, the network)
 * are ignored.
 *
 * A goroutine is identified by its slot and the low half of its life: to_waker(). 0: none.
 *
 * Memory    from mem: 96 bytes a goroutine, by the largest number that lived at once, 8 a stack number.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this wait is not stored.
 */
#ifndef TO_SPANS_WAKERS_H
#define TO_SPANS_WAKERS_H

#include "base/mem.h"
#include "online/spans/stacks/callstack.h"

enum { TO_OWN_STACKS = 4, TO_OWN_WAKERS = 2 };

struct to_wakers {
  struct tb_mem *mem;
  struct to_own_wakers {                          /* one goroutine's wakers */
    uint32_t stack[TO_OWN_STACKS];                /* 0: none */
    uint8_t at, next;                             /* place of the last wait; place to reuse next */
    bool has_more[TO_OWN_STACKS];                 /* a third goroutine ended such a wait, too */
    uint64_t waker[TO_OWN_STACKS][TO_OWN_WAKERS]; /* newest first */
  } * of_slot;
  uint64_t *of_stack;
  size_t slots, stacks;
};

static inline uint64_t to_waker(uint32_t slot, uint64_t life) {
  return (uint64_t)slot << 32 | (uint32_t)life;
}

void to_wakers_init(struct to_wakers *w, struct tb_mem *mem);
void to_wakers_fini(struct to_wakers *w);  /* accepts a zeroed one */
void to_wakers_clear(struct to_wakers *w); /* no goroutine is alive */

TB_MUST tb_rc to_wakers_grow(struct to_wakers *w, uint32_t slot, uint32_t stack);
/* Selects the goroutine's place for this stack, a new one if necessary. */
void to_wakers_turn_to(struct to_own_wakers *own, uint32_t stack);

/* Records that waker ended a wait of the goroutine in this slot, at the stack of this number. */
TB_MUST static inline tb_rc to_wakers_note(struct to_wakers *w, uint32_t slot, uint32_t stack,
                                           uint64_t waker) {
  if (TB_UNLIKELY(stack <= TO_STACK_OTHER)) return TB_OK;
  if (TB_UNLIKELY(slot >= w->slots || stack >= w->stacks)) TB_TRY(to_wakers_grow(w, slot, stack));
  struct to_own_wakers *own = &w->of_slot[slot];
  w->of_stack[stack] = waker;
  if (own->stack[own->at] != stack) to_wakers_turn_to(own, stack);
  uint64_t *last = own->waker[own->at], before = last[0], second = last[1];
  if (before == waker) return TB_OK;
  last[0] = waker;
  last[1] = before;
  own->has_more[own->at] |= (second != waker) & (second != 0);
  return TB_OK;
}

/* Clears a slot that another goroutine gets. */
static inline void to_wakers_forget(struct to_wakers *w, uint32_t slot) {
  if (slot < w->slots) w->of_slot[slot] = (struct to_own_wakers){ 0 };
}

/* Returns the goroutines that ended waits of this goroutine at this stack, newest first; NULL: unknown. */
const uint64_t *to_wakers_own(const struct to_wakers *w, uint32_t slot, uint32_t stack,
                              bool *out_has_more);
/* Returns the goroutine that ended the last wait at this stack; 0: unknown. */
uint64_t to_wakers_of_stack(const struct to_wakers *w, uint32_t stack);

#endif
