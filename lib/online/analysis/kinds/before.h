/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that began before a stream's analysis did: after a restart of the collector, or a hole. The trace has the stacks of these
 * goroutines, but not why they wait, since when, or where they were created. The reason is read from the stack.
 *
 * Idle ones, and goroutines of the runtime, do not count. Private to this room. */
#ifndef TO_ANALYSIS_BEFORE_H
#define TO_ANALYSIS_BEFORE_H

#include "online/analysis/analysis_state.h"

/* Goroutines that wait at one stack. */
struct to__before_place {
  uint32_t stack, count;
  enum to_reason reason; /* TO_REASON_OTHER: the stack does not show it */
};

struct to__before {
  struct to__before_place *place; /* in the arena */
  size_t n, room;
  uint64_t count; /* at all places */
  to_ns since;    /* when the first of them was seen */
};

TB_MUST tb_rc to__before_find(struct to_analyses *a, struct tb_arena *arena,
                              struct to__before *out);
/* Adds a sentence to the report, if they are many. */
TB_MUST tb_rc to__before_note(struct to_analyses *a, struct to_draft *d,
                              const struct to__before *before);
/* Both. */
TB_MUST tb_rc to__before_say(struct to_analyses *a, struct to_draft *d);
/* The same, and adds those that wait for a reason of the set (bits of enum to_reason): their number to *out_waiting, the longest
 * queue to a figure, and rows to a table whose columns are stack, reason, longest queue and waiting. */
TB_MUST tb_rc to__before_queues(struct to_analyses *a, struct to_draft *d, uint64_t reasons,
                                unsigned table, unsigned longest, int64_t *out_waiting);
/* Reports the queues for a lock as convoys, once they have lasted: those that were stuck before the analysis began. */
TB_MUST tb_rc to__before_convoys(struct to_analyses *a, const struct to_finding_sink *sink);

#endif
