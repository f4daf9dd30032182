/* SPDX-License-Identifier: Apache-2.0 */
/* Converts text and stacks of a traced program for a message. A proto3 string must be UTF-8: invalid bytes are replaced by
 * U+FFFD.
 *
 * Memory    from the arena; tp_take_*() lend valid UTF-8 instead of copying.
 * Errors    TB_BUDGET, TB_NOMEM from the arena.
 */
#ifndef TP_PACK_TEXT_H
#define TP_PACK_TEXT_H

#include "base/arena.h"
#include "online/analysis/analysis.h"
#include "proto/report.pb-c.h"

/* Allocates n + 1 objects of a type; one more because a list may be empty. */
#define TP_TAKE(arena, type, n, out)                                                               \
  do {                                                                                             \
    void *block_;                                                                                  \
    TB_TRY(tb_arena_alloc((arena), ((n) + 1) * sizeof(type), &block_));                            \
    (out) = block_;                                                                                \
  } while (0)

/* Returns a C string. The text must end with NUL, as texts of the analyses do. */
TB_MUST tb_rc tp_take_text(struct tb_arena *arena, struct to_string text, char **out);
/* Copies a text without NUL, such as one of a generation's tables. */
TB_MUST tb_rc tp_copy_text(struct tb_arena *arena, struct to_string text, char **out);

/* stack NULL: no frames. */
TB_MUST tb_rc tp_take_stack(struct tb_arena *arena, const struct to_callstack *stack, size_t *out_n,
                            Tracecollect__V1__Frame ***out);
/* Copies a stack of a generation's tables. An unknown id is an empty stack. */
TB_MUST tb_rc tp_copy_stack(struct tb_arena *arena, const struct to_generation *gen, uint64_t id,
                            size_t *out_n, Tracecollect__V1__Frame ***out);

#endif
