/* SPDX-License-Identifier: Apache-2.0 */
/* The longest spans of any window.
 *
 * A slot of the windows keeps its longest ones; those of older slots stay while they may be among the longest of some window.
 *
 * Memory    48 bytes a span, from the mem of the windows.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: a span is missing.
 */
#ifndef TO_MEASURE_LONGEST_H
#define TO_MEASURE_LONGEST_H

#include "base/arena.h"
#include "online/event/event.h"
#include "online/window/window.h"

enum { TO_LONGEST = 16 };

struct to_long_span {
  to_ns from, until;
  int64_t goroutine, waker; /* waker: of a task its id */
  uint32_t sum;             /* of online/spans/sums.h; of a task its type */
  uint32_t longer;          /* spans that came later and are longer */
  uint32_t stack;           /* of a task: where it began */
  bool past;                /* the clock has fallen since: it is in no window but all */
};

struct to_longest {
  struct to_long_span open[TO_LONGEST]; /* of the open slot */
  struct to_long_span *older;
  size_t n_open, n_older, older_room;
  to_ns slot, first; /* where the open slot and the windows began */
};

void to_longest_fini(struct to_longest *l, struct tb_mem *mem); /* accepts a zeroed one */
/* A span of the open slot. Answers the bound: spans that are no longer than it need not be noted; -1: all are. */
to_ns to_longest_note(struct to_longest *l, const struct to_long_span *span);
/* The next slot has begun. */
TB_MUST tb_rc to_longest_slot(struct to_longest *l, const struct to_windows *w);
/* At most TO_LONGEST spans that ended in the view, which is of this window, the longest first. */
TB_MUST tb_rc to_longest_in(const struct to_longest *l, const struct to_view *view,
                            enum to_window window, struct tb_arena *arena,
                            const struct to_long_span **out, size_t *out_n);

#endif
