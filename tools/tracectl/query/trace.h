/* SPDX-License-Identifier: Apache-2.0 */
/* One trace of a query: all its goroutines and stacks, read once in a pass of their own.
 *
 * Lives and stacks of trace i have numbers from i * TK_OF_TRACE on. A stack's number depends on the stack alone, so that it is the same
 * in each statement and export; inside, stacks are numbered in the order of first use.
 *
 * Memory    the C library's: 64 bytes a goroutine, 8 more if they are sought by id, each stack once and 32 bytes for its number.
 * Threads   one.
 * Errors    text in the caller's buffer, as in tools/tracectl/query/pass.h.
 */
#ifndef TK_QUERY_TRACE_H
#define TK_QUERY_TRACE_H

#include "base/map.h"
#include "online/spans/stacks/table.h"
#include "tools/tracectl/query/pass.h"

#define TK_OF_TRACE (INT64_C(1) << 44) /* 512 traces have numbers that a double has, too */

struct tk_goroutine_row {
  int64_t id;
  bool is_known;             /* this life was seen */
  bool created_known, ended; /* false: older than the trace; still alive at the end */
  to_ns created, ended_at;
  uint64_t creator; /* its life; 0: unknown */
  uint32_t creation_stack;
  uint32_t entry_stack;    /* the entry is this stack's innermost frame, */
  bool entry_is_outermost; /* or the outermost one, if the creation was not seen */
  char *label;             /* NULL: none */
};

struct tk_trace {
  struct tk_place place;
  size_t number;                      /* in the query */
  struct to_stack_table stacks;       /* used so far */
  bool was_read;                      /* the fields below, and all stacks of spans, are complete */
  struct tk_goroutine_row *goroutine; /* by life */
  size_t lives, room;
  uint64_t *by_id; /* known lives in the order of their ids; NULL: not asked for yet */
  size_t ids;
  int64_t *stack_number; /* shown numbers by inner ones; 0: not asked for yet */
  size_t stack_numbers;
  uint32_t next_to_number;       /* stacks before it have numbers */
  struct tb_map by_stack_number; /* the way back */
};

void tk_trace_init(struct tk_trace *trace, const struct tk_place *place, size_t number);
void tk_trace_fini(struct tk_trace *trace);

/* Reads goroutines and stacks, once. */
bool tk_trace_read(struct tk_trace *trace, char error[TK_QUERY_ERROR]);
/* Sorts by_id, once. The trace was read. */
bool tk_trace_sort_ids(struct tk_trace *trace, char error[TK_QUERY_ERROR]);
/* Returns the place in by_id of the first life whose id is not less. */
size_t tk_trace_find_id(const struct tk_trace *trace, int64_t id);
const struct to_callstack *tk_trace_stack(const struct tk_trace *trace, uint32_t number);

/* Returns the number of a stack that is shown, without that of the trace; -1: memory cannot be allocated. */
int64_t tk_trace_number_stack(struct tk_trace *trace, uint32_t inner);
/* Finds a stack by its shown number: one that was numbered or, once the trace was read, any. */
bool tk_trace_find_stack(struct tk_trace *trace, int64_t number, uint32_t *out_inner);

/* Maps a pass's numbers of stacks to the trace's. */
struct tk_numbers {
  uint32_t *of; /* 0: not looked up yet */
  size_t room;
};
void tk_numbers_fini(struct tk_numbers *numbers);
/* stack: the pass's own stack with that number. TB_NOMEM. */
TB_MUST tb_rc tk_numbers_find(struct tk_numbers *numbers, struct tk_trace *trace, uint32_t number,
                              const struct to_callstack *stack, uint32_t *out);

#endif
