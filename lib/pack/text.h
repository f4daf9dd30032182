/* SPDX-License-Identifier: Apache-2.0 */
/* Text and stacks of a traced program on their way into a message.
 *
 * Text may be anything; a proto3 string may not, so what is not UTF-8 is replaced by U+FFFD.
 *
 * Memory    from the arena; what is text already is lent, not copied.
 * Errors    TB_BUDGET, TB_NOMEM from the arena.
 */
#ifndef TP_PACK_TEXT_H
#define TP_PACK_TEXT_H

#include "base/arena.h"
#include "online/analysis/analysis.h"
#include "proto/report.pb-c.h"

/* n of a type, and one more: a list may be empty. */
#define TP_TAKE(arena, type, n, out)                                                               \
  do {                                                                                             \
    void *block_;                                                                                  \
    TB_TRY(tb_arena_take((arena), ((n) + 1) * sizeof(type), &block_));                             \
    (out) = block_;                                                                                \
  } while (0)

/* A C string. The text itself where a NUL follows it, as in what the analyses hand out. */
TB_MUST tb_rc tp_take_text(struct tb_arena *arena, struct to_string text, char **out);
/* A copy: text of a generation's tables has no NUL. */
TB_MUST tb_rc tp_copy_text(struct tb_arena *arena, struct to_string text, char **out);

/* stack NULL: none. */
TB_MUST tb_rc tp_take_stack(struct tb_arena *arena, const struct to_callstack *stack, size_t *out_n,
                            Tracecollect__V1__Frame ***out);
/* Of a generation's tables. An unknown id is an empty stack. */
TB_MUST tb_rc tp_copy_stack(struct tb_arena *arena, const struct to_generation *gen, uint64_t id,
                            size_t *out_n, Tracecollect__V1__Frame ***out);

#endif
