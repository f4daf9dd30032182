/* SPDX-License-Identifier: Apache-2.0 */
/* Function, file and line of the addresses that a generation's stacks hold.
 *
 *   ta_symbols_begin();
 *   for each pc: ta_symbols_want(pc);
 *   ta_symbols_hold(until);
 *   for each pc: symbol = ta_symbols_of(pc) ...
 *   ta_symbols_release();
 *
 * A thread of their own looks names up, because a look-up has no time limit; what it finds is kept for as long as
 * the program has the same modules loaded. hold() waits for it until a moment its caller chooses. A function
 * whose name is not known by then, or that has none, is named by its module and the offset in it; in a later
 * generation it has its name.
 *
 * Memory    one mapping of 1.8 MiB, touched as it is used; when it is full it is emptied. libdw's, while names are
 *           looked up. Threads the flusher's, and one of our own from the first want() until close(). Signals are
 *           blocked on both.
 * Errors    without memory or a thread: NULL from of(), for everything.
 */
#ifndef TA_EMIT_STACKS_SYMBOLS_H
#define TA_EMIT_STACKS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ta_text {
  uint64_t id;  /* the flusher's, valid in its generation */
  uint32_t gen; /* 0: in none yet */
  uint32_t len;
  char bytes[];
};

struct ta_symbol {
  uint64_t pc;
  struct ta_text *function, *file; /* file: NULL if it is not known */
  uint32_t line;
  uint32_t state;
};

void ta_symbols_open(void); /* with a session; names are kept from the one before */
void ta_symbols_close(void);
/* Around fork(): before, in the parent, in the child. None of them waits. */
void ta_symbols_fork(void);
void ta_symbols_forked(void);
void ta_symbols_forked_child(void);
void ta_symbols_keep_or_forget(void); /* in a child, before its first session */

/* The addresses are those that were called or interrupted, not where calls return to. */
void ta_symbols_begin(void);
void ta_symbols_want(uint64_t pc);
void ta_symbols_want_data(
    uint64_t at); /* of a variable; its symbol's function is the variable's name */
void ta_symbols_hold(uint64_t until_ns);      /* on CLOCK_MONOTONIC */
struct ta_symbol *ta_symbols_of(uint64_t pc); /* NULL: in no module, or never wanted */
void ta_symbols_release(void);

#endif
