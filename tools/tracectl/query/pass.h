/* SPDX-License-Identifier: Apache-2.0 */
/* A pass over the spans of a trace file, or of a part of it, in order.
 *
 * Lives and stacks have the same numbers in each pass over the same part: they are numbered in the order of the trace.
 *
 * Memory    the C library's: open spans, each stack once.
 * Threads   one.
 * Errors    text in the caller's buffer: the file cannot be read, or the trace is broken (after all spans before).
 */
#ifndef TK_QUERY_PASS_H
#define TK_QUERY_PASS_H

#include <stdbool.h>

#include "online/spans/pull.h"
#include "tools/tracectl/trace_file/input.h"

enum { TK_QUERY_ERROR = 400, TK_QUERY_STACKS_MAX = 1 << 24 };

/* A trace file, or a part of it. */
struct tk_place {
  const char *path;
  const char *name;           /* in messages, and of the stream */
  const char *verb;           /* in messages about the file */
  struct tk_trace_range part; /* end 0: the whole file */
  const char *idle;           /* patterns of online/spans/stacks/idle.h; NULL: none */
};

struct tk_pass;

/* place is lent until tk_pass_end(). kinds: bits of enum to_span_kind; other kinds may be returned, too. */
bool tk_pass_begin(const struct tk_place *place, uint32_t kinds, struct tk_pass **out,
                   char error[TK_QUERY_ERROR]);
void tk_pass_end(struct tk_pass *pass); /* accepts NULL */
/* Returns the spans, which have the stacks. Lent until tk_pass_end(). */
const struct to_spans *tk_pass_spans(const struct tk_pass *pass);
/* Returns a stack by its number in this pass, or NULL if it is not kept. Lent until tk_pass_end(). */
const struct to_callstack *tk_pass_stack(const struct tk_pass *pass, uint32_t number);
uint32_t tk_pass_stacks(const struct tk_pass *pass); /* numbers in use are below this */

/* Returns the earliest begin of all spans; call after the first span. */
to_ns tk_pass_start(const struct tk_pass *pass);

struct tk_span {
  const struct to_span *span; /* spans open at the end, or at the fault, are last */
  uint64_t gen;               /* of the event that ended it; 0: still open after the last one */
  const struct to_reason_info *reason; /* for a wait; lent until tk_pass_end() */
  uint32_t stack, end_stack, by_stack;
  bool has_wall;
  uint64_t wall_ns; /* of its begin */
};
/* Returns 1: a span, lent until the next call; 0: no more; -1: error. */
int tk_pass_next(struct tk_pass *pass, struct tk_span *out, char error[TK_QUERY_ERROR]);

/* Returns true in out for a wait, or a system call, of a goroutine that has nothing to do. */
TB_MUST tb_rc tk_pass_is_idle(struct tk_pass *pass, const struct tk_span *at, bool *out);

/* Prints, once for all passes over a place, that annotations are wrong (nothing if wrong is NULL): Go's tools refuse the trace, but all
 * of it is shown. */
void tk_note_misannotated(const struct tk_place *place, struct tk_input *in,
                          const struct tb_diag *wrong);

/* "runnable", for goroutines; "blocked", for threads. */
const char *tk_go_state_word(unsigned state);
const char *tk_thread_state_word(unsigned state);

/* Feeds a reader from an input (online/trace/pull.h). */
tb_rc tk_input_more(void *input, const void **out_bytes, size_t *out_n);
#endif
