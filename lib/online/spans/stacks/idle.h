/* SPDX-License-Identifier: Apache-2.0 */
/* Which waits are idle: a table of functions (online/spans/stacks/idle.def), and what users add to it.
 *
 * A user's list has commas between its patterns. A pattern is a function's name with * at its begin, its end, or both;
 * before it there may be a reason and a colon: "main.(*pool).worker, net:main.accept*, syscall:*". With a ! before all of
 * that, what it matches is not idle, whatever the table says. The last pattern that matches decides. online/spans/stacks/idle.def
 * says where in a stack it is looked for.
 *
 * The set of reasons is open: words that no table has are those of a newer Go, or of a C program (ta_wait_begin). So a list may name
 * such, TO_IDLE_OWN of them, and to_idle_unknown() tells who writes one, as it may be a slip.
 *
 * A verdict is made once for each stack, when it is first asked for.
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

/* Bits of a verdict: by enum to_reason; by the list's own words for reasons that no table has; and: */
enum { TO_IDLE_CALL_BIT = 30, TO_IDLE_KNOWN };
enum { TO_IDLE_CALL = UINT8_MAX }; /* no reason has this number */
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
  char *text; /* of the user's patterns */
  size_t text_bytes;
  struct to_idle_words own;
  uint8_t bit_of[TO_REASONS_MAX]; /* of a reason that no table has, by its number; 0: not looked for yet */
  uint32_t *of_stack; /* TO_IDLE_KNOWN, and what it is idle for */
  size_t of_stacks;
  uint32_t named; /* as the stack table had it for these verdicts */
};

/* TB_BROKEN, with the pattern in diag. */
TB_MUST tb_rc to_idle_check(const char *patterns, struct tb_diag *diag);
/* Does such a list name a reason that no table has? Then note says it, for people: the first of them. */
bool to_idle_unknown(const char *patterns, struct tb_diag *note);
/* reasons: whose numbers to_idle_ask() is given; lent. */
TB_MUST tb_rc to_idle_init(struct to_idle *idle, struct tb_mem *mem,
                           const struct to_stack_table *stacks, const struct to_reasons *reasons,
                           const char *patterns);
void to_idle_fini(struct to_idle *idle); /* accepts a zeroed one */
/* Other patterns from here on; after an error the old ones stay. */
TB_MUST tb_rc to_idle_replace(struct to_idle *idle, const char *patterns);

/* which: a span's reason, or TO_IDLE_CALL of a system call. Reasons that no table has, nor the list, are idle where any reason is. */
TB_MUST tb_rc to_idle_ask(struct to_idle *idle, uint32_t stack, unsigned which, bool *out);

#endif
