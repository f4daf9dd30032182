/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of an interval of a goroutine: what had to end before the interval could end.
 *
 * The walk goes back from the interval's end. Time in which the goroutine runs, is in a system call or waits for a P
 * is its own. During a wait, the goroutine that ended the wait is followed instead, by the same rules; before a goroutine's
 * creation, its creator is followed. A wait that no goroutine ended (network, timer, the runtime) is own time.
 * So the pieces tile the interval: each begins where the one before it ends, and their sum is its length.
 *
 * The definition is that of Perfetto's critical path of a thread; Go's issue 57175 asks for the same.
 *
 * Each step ends a piece, or follows a goroutine to an earlier end of a wait or an earlier birth. So the walk always ends,
 * even with invalid spans.
 *
 * Memory    from mem: 56 bytes a piece, 24 a goroutine that is followed into another's wait. No recursion.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_EXPLAIN_CRITICAL_PATH_H
#define TO_EXPLAIN_CRITICAL_PATH_H

#include "online/explain/timeline.h"

enum to_path_end { /* why a wait was not followed */
                   TO_PATH_GOES_ON,
                   TO_PATH_NO_WAKER,   /* the network, a timer or the runtime ended it */
                   TO_PATH_STILL_OPEN, /* nothing has ended it yet */
                   TO_PATH_UNKNOWN,    /* the trace does not show what the goroutine did */
                   TO_PATH_CYCLE,    /* its waker waited at least as long: only in a wrong trace */
                   TO_PATH_TOO_DEEP, /* more nested waits than TO_PATH_DEPTH_MAX */
};
const char *to_path_end_name(enum to_path_end end);

struct to_path_piece {
  to_ns from, until;
  const struct to_history *history; /* NULL: unknown goroutine */
  uint32_t stack, by_stack;
  uint32_t depth; /* waits followed; 0: the subject, or its creators before its birth */
  uint8_t state;  /* enum to_go_state; TO_GO_NOT_EXIST: unknown */
  uint8_t reason, cause;
  uint8_t end; /* enum to_path_end */
  /* Parts of running and runnable time: while the world was stopped; in a mark assist while it was not stopped. */
  uint64_t stopped_ns, assist_ns;
};

struct to_path {
  struct tb_mem *mem;
  struct to_path_piece *piece; /* in rising order of time */
  size_t n, room;
  bool cut; /* exceeded TO_PATH_PIECES_MAX: the earliest rest is one unknown piece */
};

enum { TO_PATH_DEPTH_MAX = 1 << 17, TO_PATH_PIECES_MAX = 1 << 20 };

/* Finds the path of an interval within the timeline's stretch. */
TB_MUST tb_rc to_critical_path(const struct to_timeline *t, uint64_t life, to_ns from, to_ns until,
                               struct tb_mem *mem, struct to_path *out);
void to_path_fini(struct to_path *path); /* accepts a zeroed one */

#endif
