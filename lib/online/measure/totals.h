/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that only rise, and how much they rose in a window: the time in a state that can last longer than a window.
 *
 * The caller keeps the figures in `now`. All of them are copied at the begin of each slot, so a window's part is exact, however
 * long a state lasts.
 *
 * Memory    from mem: 8 bytes for each figure and slot, and for the mark.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_MEASURE_TOTALS_H
#define TO_MEASURE_TOTALS_H

#include "online/window/window.h"

struct to_totals {
  uint64_t *now;
  size_t n;
  struct to_totals_note {
    int64_t at;
    uint64_t *total;
    size_t n;               /* figures at that time */
  } note[TO_SLOTS_MAX + 2]; /* by rising time */
  size_t notes;
  struct to_totals_note mark; /* zeroed: none was set */
  int64_t windows_first;
};

void to_totals_fini(struct to_totals *t, struct tb_mem *mem); /* accepts a zeroed one */
/* Makes room for n figures; new ones are 0. */
TB_MUST tb_rc to_totals_reserve(struct to_totals *t, struct tb_mem *mem, size_t n);
/* Copies the figures at the begin of a slot; call before they change. */
TB_MUST tb_rc to_totals_slot(struct to_totals *t, const struct to_windows *w);
/* Copies the figures at the windows' mark; call when it was set, before they change. */
TB_MUST tb_rc to_totals_mark(struct to_totals *t, const struct to_windows *w);
/* Returns how much the figure rose in the view. window: the view's. */
uint64_t to_totals_in(const struct to_totals *t, const struct to_view *view, enum to_window window,
                      size_t figure);

#endif
