/* SPDX-License-Identifier: Apache-2.0 */
/* The longest spans of each window: a slot keeps its longest spans for as long as they can be among the longest of a window.
 *
 * Memory    48 bytes a span, from the mem of the windows.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: spans are missing from the lists.
 */
#ifndef TO_MEASURE_LONGEST_H
#define TO_MEASURE_LONGEST_H

#include "base/arena.h"
#include "online/event/event.h"
#include "online/window/window.h"

enum { TO_LONGEST = 16 };

struct to_long_span {
  to_ns from, until;
  int64_t goroutine, waker; /* waker: for a task its id */
  uint32_t sum;             /* number in online/spans/sums.h; for a task its type */
  uint32_t longer;          /* number of later spans that are longer */
  uint32_t stack;           /* for a task: where it began */
  bool past;                /* the clock has gone back: only the window "all" contains the span */
};

struct to_longest {
  struct to_long_span open[TO_LONGEST]; /* spans of the open slot */
  struct to_long_span *older;
  size_t n_open, n_older, older_room;
  to_ns slot, first; /* begin of the open slot, begin of the windows */
};

void to_longest_fini(struct to_longest *l, struct tb_mem *mem); /* accepts a zeroed one */
/* Adds a span of the open slot. Returns a bound: spans not longer than the bound need not be added; -1: all are needed. */
to_ns to_longest_note(struct to_longest *l, const struct to_long_span *span);
/* Closes the open slot. */
TB_MUST tb_rc to_longest_slot(struct to_longest *l, const struct to_windows *w);
/* Lists at most TO_LONGEST spans that ended in the view, longest first. window: the view's. */
TB_MUST tb_rc to_longest_in(const struct to_longest *l, const struct to_view *view,
                            enum to_window window, struct tb_arena *arena,
                            const struct to_long_span **out, size_t *out_n);

#endif
