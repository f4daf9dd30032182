/* SPDX-License-Identifier: Apache-2.0 */
/* Function, file and line of the addresses in a generation's stacks.
 *
 *   ta_symbols_begin();
 *   for each pc: ta_symbols_want(pc);
 *   ta_symbols_hold(until);
 *   for each pc: symbol = ta_symbols_of(pc) ...
 *   ta_symbols_release();
 *
 * A separate thread looks names up, because a look-up has no time limit. Names are kept until an address belongs to another
 * module. hold() waits for the thread until a time that the caller chooses. If a function's name is not known by then, or if it
 * has none, the symbol is its module and offset; later generations have the name.
 *
 * Memory    one mapping of 1.8 MiB, touched as it is used and emptied when it is full; libdw's, while names are looked up.
 * Threads   the flusher's, and one of this file from the first hold() until close(). Signals are blocked on both.
 * Errors    if memory cannot be allocated, of() returns NULL for every address. Without the thread, symbols are offsets.
 */
#ifndef TA_EMIT_STACKS_SYMBOLS_H
#define TA_EMIT_STACKS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ta_text {
  uint64_t id;  /* of the string in generation gen; set by the flusher */
  uint32_t gen; /* 0: in no generation yet */
  uint32_t len;
  char bytes[];
};

struct ta_symbol {
  uint64_t pc;
  struct ta_text *function, *file; /* file: NULL if it is not known */
  uint32_t line;
  uint32_t state;
};

/* The program's name, lent: its own copy may be overwritten, as by nginx for ps. NULL: libc's. */
void ta_symbols_program(const char *name);
void ta_symbols_open(void); /* at the start of a session; the names of the previous one are kept */
void ta_symbols_close(void);
/* Around fork(): before, in the parent, in the child. They never wait. */
void ta_symbols_fork(void);
void ta_symbols_forked(void);
void ta_symbols_forked_child(void);
void ta_symbols_keep_or_forget(void); /* in a child, before its first session */

/* Addresses are those of calls or interrupted code, not return addresses. */
void ta_symbols_begin(void);
void ta_symbols_want(uint64_t pc);
void ta_symbols_want_data(uint64_t at);       /* a variable's; the symbol's function is its name */
void ta_symbols_hold(uint64_t until_ns);      /* on CLOCK_MONOTONIC */
struct ta_symbol *ta_symbols_of(uint64_t pc); /* NULL: in no module, or want() was not called */
void ta_symbols_release(void);

#endif
