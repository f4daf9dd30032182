/* SPDX-License-Identifier: Apache-2.0 */
/* System calls by stack: those that kept their P, and those that lost it.
 *
 * Ordinary calls are counted here while spans are made (online/spans/spans.c): their begin is known, they kept their P,
 * and they do not exceed the bound for spans. All others become spans, which the analysis counts.
 *
 * Memory    from mem: 4 bytes for each stack number of the stack table, and two series for each stack with calls.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_SPANS_CALLS_H
#define TO_SPANS_CALLS_H

#include "online/spans/stacks/table.h"
#include "online/window/window.h"

enum { TO_CALLS_RECENT = 64 };

struct to_calls {
  struct tb_mem *mem;
  struct to_windows *windows;
  struct to_stack_table *stacks;
  uint32_t kept, lost; /* series, the parents of those by stack */
  uint32_t *of_stack;  /* by number: series of calls that kept their P, or 0; + 1: that lost it */
  size_t of_stacks;
  struct to_calls_recent {
    uint64_t stack;         /* id in the generation, or TO_STACK_KEPT | number in the stack table */
    uint32_t epoch, series; /* epoch of the stack table; 0: a free place */
  } recent[TO_CALLS_RECENT];
};

TB_MUST tb_rc to_calls_init(struct to_calls *c, struct tb_mem *mem, struct to_windows *windows,
                            struct to_stack_table *stacks);
void to_calls_fini(struct to_calls *c); /* accepts a zeroed one */

/* Finds the series of calls with this stack that kept their P; + 1: that lost it. */
TB_MUST tb_rc to_calls_find(struct to_calls *c, const struct to_generation *gen, uint64_t stack,
                            uint32_t *out_series);
/* Counts a call that kept its P. Returns false if its stack is not a recent one. */
TB_MUST static inline bool to_calls_add(struct to_calls *c, uint64_t stack, uint64_t ns) {
  const struct to_calls_recent *recent = &c->recent[stack % TO_CALLS_RECENT];

  if (TB_UNLIKELY(recent->stack != stack || recent->epoch != c->stacks->epoch)) return false;
  return to_windows_add_length(c->windows, recent->series, ns);
}

#endif
