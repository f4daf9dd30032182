/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which waits are idle, by a table of functions (online/spans/stacks/idle.def) and a user's list.
 *
 * The list's patterns are separated by commas. A pattern is a function's name with * at its begin, its end, or both,
 * optionally after a reason and a colon: "main.(*pool).worker, net:main.accept*, syscall:*". If it begins with !, what
 * it matches is not idle, even if the table says so. The last matching pattern decides. idle.def says
 * which frames of a stack are compared.
 *
 * A reason that no table has may be one of a newer Go, or of a C program (ta_wait_begin). So a list may name up to
 * TO_IDLE_OWN of them; to_idle_unknown() reports them to the list's author, as it may be a typing error.
 *
 * A verdict is made once for each stack, on the first request.
 *
 * Memory    from mem: 4 bytes a stack, 24 and its text a pattern.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BROKEN: a list that to_idle_check() refuses. TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_SPANS_IDLE_H
#define TO_SPANS_IDLE_H

#include "base/mem.h"
#include "base/result.h"
#include "online/event/reasons.h"
#include "online/event/view.h"
#include "online/spans/stacks/table.h"

/* Bits of a verdict: one for each enum to_reason, one for each of the list's own reasons, and: */
enum { TO_IDLE_CALL_BIT = 30, TO_IDLE_KNOWN };
enum { TO_IDLE_CALL = UINT8_MAX }; /* not a reason's number */
enum { TO_IDLE_OWN = 8 };

struct to_idle_words {
  struct to_string words[TO_IDLE_OWN];
  unsigned n;
};

struct to_idle {
  struct tb_mem *mem;
  const struct to_stack_table *stacks;
  const struct to_reasons *reasons;
  struct to_idle_rule *rule;
  size_t rules, rules_room;
  char *text; /* the user's list */
  size_t text_bytes;
  struct to_idle_words own;
  uint8_t bit_of[TO_REASONS_MAX]; /* by number, bit of an own reason; 0: not known yet */
  uint32_t *of_stack;             /* verdicts: TO_IDLE_KNOWN, and bits of idle reasons */
  size_t of_stacks;
  uint32_t named; /* to_stack_table.named when the verdicts were made */
};

/* Checks a list. Returns TB_BROKEN, with the pattern in diag. */
TB_MUST tb_rc to_idle_check(const char *patterns, struct tb_diag *diag);
/* Returns true if the list names a reason that no table has; `note` then has a message for the user about the first one. */
bool to_idle_unknown(const char *patterns, struct tb_diag *note);
/* reasons: defines the numbers that to_idle_ask() gets; lent. */
TB_MUST tb_rc to_idle_init(struct to_idle *idle, struct tb_mem *mem,
                           const struct to_stack_table *stacks, const struct to_reasons *reasons,
                           const char *patterns);
void to_idle_fini(struct to_idle *idle); /* accepts a zeroed one */
/* Replaces the patterns from now on; after an error the old ones stay. */
TB_MUST tb_rc to_idle_replace(struct to_idle *idle, const char *patterns);

/* which: a span's reason, or TO_IDLE_CALL. A reason that neither a table nor the list has counts as OTHER. */
TB_MUST tb_rc to_idle_ask(struct to_idle *idle, uint32_t stack, unsigned which, bool *out);
/* As to_idle_ask(), for a wait of a thread. A C program's trace without stacks only has the name of the call, and frames of a stripped module have
 * no names: then the function that the thread began with is compared, too. which: a reason. to_idle_needs_entry() is true for such stacks. */
bool to_idle_needs_entry(const struct to_idle *idle, uint32_t stack);
TB_MUST tb_rc to_idle_ask_in(struct to_idle *idle, uint32_t stack, unsigned which,
                             struct to_string entry, bool *out);

#endif
