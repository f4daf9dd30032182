/* SPDX-License-Identifier: Apache-2.0 */
/* What is learnt from ordered events: rolling figures in windows, O(1) an event.
 *
 * An analysis is a row of online/analyses.def. Each keeps the windows of enum to_window; "now" is the
 * time of the last event seen. A span that began before the first sync is a lower bound and counted so.
 *
 * Memory    everything from mem, within it bounded by the rows an analysis keeps (stacks_max).
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_ANALYSIS_H
#define TO_ANALYSIS_H

#include "base/mem.h"
#include "online/generation.h"

enum to_window { TO_WINDOW_10S, TO_WINDOW_1MIN, TO_WINDOW_5MIN, TO_WINDOW_ALL, TO_WINDOWS };

struct to_analysis_config {
  to_ns blocked_after_ns; /* config key syscall.blocked_after: a call this long counts as blocked now */
  size_t stacks_max;      /* rows kept by stack; the rest is summed in one row "other" */
};

/* All analyses that are switched on, fed together. */
struct to_analyses;

TB_MUST tb_rc to_analyses_new(struct tb_mem *mem, const struct to_analysis_config *config,
                              struct to_analyses **out);
void to_analyses_free(struct to_analyses *a);
TB_MUST tb_rc to_analyses_events(struct to_analyses *a, const struct to_generation *gen,
                                 const struct to_event *events, size_t n);
/* A hole or a broken generation: spans that are open are dropped, totals stay. */
void to_analyses_epoch(struct to_analyses *a);

#endif
