/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by window.c, which keeps the slots, and view.c, which sums them up. */
#ifndef TO_WINDOW_PRIVATE_H
#define TO_WINDOW_PRIVATE_H

#include "online/window/join.h"
#include "online/window/window.h"

/* Returns the begin of the window that ends at time, rounded to its slots. */
to_ns to__window_begin(enum to_window window, to_ns time);
void to__stretch_join(struct to_stretch *into, const struct to_stretch *from);
/* Adds packed words; NULL: none. */
TB_MUST tb_rc to__windows_join_runs(struct to_words *words, const struct to_runs *runs);
/* Sums lists in one pass. Returns TB_BUDGET if that is impossible, or if joining them one by one is faster. */
TB_MUST tb_rc to__windows_sum_lists(struct to_join *join, size_t max, struct to_words *out);
/* Add the words since the start, without the open slot's. */
void to__windows_join_closed(const struct to_windows *w, struct to_join *join);
TB_MUST tb_rc to__windows_closed_words(const struct to_windows *w, struct to_words *words);
/* Drops the view, which is out of date. */
void to__windows_drop_view(struct to_windows *w);

#endif
