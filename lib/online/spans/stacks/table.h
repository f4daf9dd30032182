/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks that analyses refer to, stored beyond their generation.
 *
 * Stack ids are only valid within their generation. Here a stack has an index for the whole stream: its frames are stored
 * when the stack is first seen (online/spans/stacks/store.h), and an id is looked up in the generation's own table once a generation.
 * Like in Go's profiles, stacks are the same if the program counters of all frames are; without counters, if their text is.
 * A frame "module+0x1f" of a C program takes the name that a later generation has for its counter.
 *
 * The indices of a stream do not depend on which other streams share the store.
 *
 * Memory    from mem: up to stacks_max stacks of 1 KiB each on average, as long as no other table stored them before, and some 20 bytes
 *           for each. A stack beyond either bound is TO_STACK_OTHER.
 * Threads   use each object, and the tables that share its store, from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM; the table is unchanged.
 */
#ifndef TO_SPANS_STACK_TABLE_H
#define TO_SPANS_STACK_TABLE_H

#include "base/map.h"
#include "online/spans/stacks/store.h"

enum { TO_STACK_BEGIN = 24 /* frames; see begins */ };

struct to_stack_table {
  struct tb_mem *mem;
  struct to_stack_user user;
  struct to_stack_store *own; /* NULL: shares one, or has no stacks yet */
  const struct to_stack_recent *recent;
  struct tb_map by_id; /* of this generation */
  uint32_t epoch;      /* counts generations, from 1 */
  uint64_t turn;       /* number of this generation in the store */
  const struct to_callstack **stack;
  size_t count, capacity, stacks_max;
  size_t bytes;    /* cost of all stacks */
  uint32_t *place; /* a hash table of indices; 0: a free place */
  size_t places;
  /* Made when the table is full: a bit for each hash of a stored stack's length and first TO_STACK_BEGIN counters. */
  uint64_t *begins;
  unsigned begins_bits; /* 2^begins_bits bits */
  uint32_t named;       /* changes when an unnamed frame gets a name */
};

/* store NULL: an own one. */
void to_stack_table_init(struct to_stack_table *table, struct tb_mem *mem, size_t stacks_max,
                         struct to_stack_store *store);
void to_stack_table_fini(struct to_stack_table *table); /* accepts a zeroed one */

/* Begins another generation: earlier ids become invalid. */
void to_stack_table_generation(struct to_stack_table *table);

/* Finds or adds a stack of the generation. */
TB_MUST tb_rc to_stack_table_find(struct to_stack_table *table, const struct to_generation *gen,
                                  uint64_t id, uint32_t *out_index);
TB_MUST static inline tb_rc to_stack_table_index(struct to_stack_table *table,
                                                 const struct to_generation *gen, uint64_t id,
                                                 uint32_t *out_index) {
  const struct to_stack_recent *recent = &table->recent[id % TO_STACK_RECENT];

  if (TB_UNLIKELY(recent->id != id || recent->turn != table->turn))
    return to_stack_table_find(table, gen, id, out_index);
  *out_index = recent->index;
  return TB_OK;
}
/* Finds or adds a stack of another table; NULL is TO_STACK_OTHER. */
TB_MUST tb_rc to_stack_table_copy(struct to_stack_table *table, const struct to_callstack *stack,
                                  uint32_t *out_index);
/* Returns NULL for TO_STACK_OTHER. Valid as long as the table. */
const struct to_callstack *to_stack_table_stack(const struct to_stack_table *table, uint32_t index);

#endif
