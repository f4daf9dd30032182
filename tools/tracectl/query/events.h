/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered events of a trace, or of selected generations.
 *
 * Reading begins one generation before the first selected one, so that all states are known at its begin: a generation's events
 * are then the same as if the whole trace were read.
 *
 * Memory    the C library's: the reader's, each stack once.
 * Threads   one.
 * Errors    text in the caller's buffer: the file cannot be read, or the trace is broken (after all events before).
 */
#ifndef TK_QUERY_EVENTS_H
#define TK_QUERY_EVENTS_H

#include "online/event/allocfree.h"
#include "tools/tracectl/query/pass.h"

/* Bounds are inclusive; other generations may be returned, too. Zeroed: all. */
struct tk_events_ask {
  uint64_t first_gen, last_gen;         /* 0: open */
  uint64_t first_wall_ns, last_wall_ns; /* 0: open */
  bool has_goroutine; /* only its events; with a stored index, only its generations */
  int64_t goroutine;
  bool with_details; /* reads from the begin: a task's type may be in any earlier event */
};

struct tk_event {
  const struct to_event *event;
  const struct to_generation *gen; /* NULL: the Sync that ends a trace */
  bool has_wall;
  uint64_t wall_ns;
};

struct tk_events;

/* place is lent until tk_events_end(). */
bool tk_events_begin(const struct tk_place *place, const struct tk_events_ask *ask,
                     struct tk_events **out, char error[TK_QUERY_ERROR]);
void tk_events_end(struct tk_events *events); /* accepts NULL */
/* Returns 1: an event, lent until the next call; 0: no more; -1: error. */
int tk_events_next(struct tk_events *events, struct tk_event *out, char error[TK_QUERY_ERROR]);
/* Returns the place of the fault, after an error. */
const struct tb_diag *tk_events_fault(const struct tk_events *events);
/* Returns a stack of the last event, and its number in this pass. TB_NOMEM. */
TB_MUST tb_rc tk_events_stack(struct tk_events *events, uint64_t id, uint32_t *out_number,
                              const struct to_callstack **out);
/* Returns the heap types of the last event's generation. TB_NOMEM. */
TB_MUST tb_rc tk_events_types(struct tk_events *events, const struct to_allocfree **out);

#endif
