/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks of reports that are added up: stacks with the same functions, files and lines are one.
 *
 * Memory    from the arena; frames are lent from the parts.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TP_PACK_MERGE_STACKS_H
#define TP_PACK_MERGE_STACKS_H

#include "pack/merge_index.h"
#include "proto/report.pb-c.h"

struct tp_stacks {
  struct tb_arena *arena;
  uint64_t seed;
  Tracecollect__V1__Report *report; /* the sum */
  struct tp_index frames, stacks;   /* initialized and freed by the caller */
  size_t frames_room, stacks_room;
  const Tracecollect__V1__Report *part;
  uint32_t *stack_of; /* by the part's stacks: number + 1 in the sum; 0: not known yet */
};

/* Begins with a part, whose own numbers are in scratch. */
TB_MUST tb_rc tp_stacks_begin(struct tp_stacks *s, const Tracecollect__V1__Report *part,
                              struct tb_arena *scratch);
/* Finds the stack of a value of the part in the sum, or adds it. */
TB_MUST tb_rc tp_stacks_find(struct tp_stacks *s, const Tracecollect__V1__Value *value,
                             uint32_t *out);

#endif
