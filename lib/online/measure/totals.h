/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that only rise, and how much they rose in a window: a time in a state, for states that last longer than a window.
 *
 * What a figure is goes into `now`. At the begin of each slot of the windows all are noted as they stand then, so the part of a
 * window is exact, however long a state lasts.
 *
 * Memory    from mem: 8 bytes for each figure and slot.
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
    size_t n;               /* figures that there were */
  } note[TO_SLOTS_MAX + 2]; /* rising */
  size_t notes;
  int64_t windows_first;
};

void to_totals_fini(struct to_totals *t, struct tb_mem *mem); /* accepts a zeroed one */
/* There are n figures at least; new ones are 0. */
TB_MUST tb_rc to_totals_reserve(struct to_totals *t, struct tb_mem *mem, size_t n);
/* A slot has begun, and all figures stand as they do at its begin. */
TB_MUST tb_rc to_totals_slot(struct to_totals *t, const struct to_windows *w);
/* How much it rose in the view, which is of this window. */
uint64_t to_totals_in(const struct to_totals *t, const struct to_view *view, enum to_window window,
                      size_t figure);

#endif
