/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of a generation: each distinct stack is stored once, and events contain its number.
 *
 * There are two tables, by the generation's parity. A repeated stack costs a hash and a comparison, and only reads shared
 * memory. A new one gets room by incrementing a counter and its slot by a compare-and-swap; if two threads add the same
 * stack at once, one finds the other's. So a signal handler may interrupt either step.
 *
 * Memory    one mapping of 2.2 MiB, made for the first session with stacks and never freed; touched as it is used.
 * Threads   put: any that is in a section, or handlers on it. The rest: the flusher, when no thread is in that
 *           generation.
 * Errors    if there is no room, put returns 0, the empty stack, and counts that.
 */
#ifndef TA_EMIT_STACKS_STACKS_H
#define TA_EMIT_STACKS_STACKS_H

#include "agent/emit/stacks/frames.h"

enum {
  TA_STACKS_LOG2 = 13,
  TA_STACKS_SLOTS = 1 << TA_STACKS_LOG2,
  TA_STACKS_WORDS = 128 << 10, /* each stack takes one for its length and one for each pc */
};

struct ta_stacks {
  _Atomic uint32_t words_used;             /* at least 1: no stack is at index 0 */
  _Atomic uint64_t slots[TA_STACKS_SLOTS]; /* upper half of hash << 32 | index in words; 0: free */
  uint64_t words[TA_STACKS_WORDS];
};

extern struct ta_stacks *ta_stacks; /* two tables; NULL before the first session with stacks */

TB_MUST tb_rc ta_stacks_make(void);
void ta_stacks_clear(uint32_t gen);

/* Returns the number of a stack of n pcs; n is at least 1. */
uint32_t ta_stacks_put(uint32_t gen, const uint64_t *pcs, unsigned n);

/* Returns the stack in a slot; NULL: none. */
const uint64_t *ta_stacks_at(uint32_t gen, uint32_t slot, unsigned *out_n);
static inline uint32_t ta_stacks_id(uint32_t slot) {
  return TA_NAMES_MAX + slot; /* lower numbers are those of names */
}

#endif
