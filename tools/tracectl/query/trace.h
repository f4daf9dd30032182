/* SPDX-License-Identifier: Apache-2.0 */
/* One trace of a query: the goroutines that ever were and every stack, read once in a pass of their own.
 *
 * Stacks have numbers for the whole query, whichever pass met them first. The numbers of several traces differ by TK_OF_TRACE:
 * lives and stacks of trace i begin behind i * TK_OF_TRACE.
 *
 * Memory    the C library's: 64 bytes a goroutine, each stack once.
 * Threads   one.
 * Errors    text in the caller's buffer, as tools/tracectl/query/pass.h says.
 */
#ifndef TK_QUERY_TRACE_H
#define TK_QUERY_TRACE_H

#include "online/spans/stacks/table.h"
#include "tools/tracectl/query/pass.h"

#define TK_OF_TRACE (INT64_C(1) << 40)

struct tk_goroutine_row {
  int64_t id;
  bool is_known;             /* a life that was seen */
  bool created_known, ended; /* else it is older than the trace, or lives on */
  to_ns created, ended_at;
  uint64_t creator; /* life; 0: none is known */
  uint32_t creation_stack;
  uint32_t entry_stack;    /* its entry is this stack's innermost frame, or */
  bool entry_is_outermost; /* the outermost one: its creation was not seen */
  char *label;             /* NULL: none */
};

struct tk_trace {
  struct tk_place place;
  size_t number;                      /* among the query's */
  struct to_stack_table stacks;       /* those met so far */
  bool was_read;                      /* what follows is there, and all stacks of spans */
  struct tk_goroutine_row *goroutine; /* by life */
  size_t lives, room;
};

void tk_trace_init(struct tk_trace *trace, const struct tk_place *place, size_t number);
void tk_trace_fini(struct tk_trace *trace);

/* Goroutines and stacks: reads the trace, the first time. */
bool tk_trace_read(struct tk_trace *trace, char error[TK_QUERY_ERROR]);
const struct to_callstack *tk_trace_stack(const struct tk_trace *trace, uint32_t number);

/* What a pass calls a stack, as a number of its trace. */
struct tk_numbers {
  uint32_t *of; /* 0: not asked yet */
  size_t room;
};
void tk_numbers_fini(struct tk_numbers *numbers);
/* stack: the pass's own, of its number. TB_NOMEM. */
TB_MUST tb_rc tk_numbers_find(struct tk_numbers *numbers, struct tk_trace *trace, uint32_t number,
                              const struct to_callstack *stack, uint32_t *out);

#endif
