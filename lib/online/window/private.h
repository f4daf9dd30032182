/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by window.c, which keeps the slots, and view.c, which adds them up. */
#ifndef TO_WINDOW_PRIVATE_H
#define TO_WINDOW_PRIVATE_H

#include "online/window/window.h"

/* Returns the begin of the window that ends at time, rounded to its slots. */
to_ns to__window_begin(enum to_window window, to_ns time);
void to__stretch_join(struct to_stretch *into, const struct to_stretch *from);
/* Drops the view of these windows, which is out of date. */
void to__view_drop(const struct to_windows *w);

#endif
