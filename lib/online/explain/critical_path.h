/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path of an interval of a goroutine: what had to be over before it was.
 *
 * The walk goes back from the interval's end. While the goroutine runs, is in a system call, or waits for a P, the time is
 * its own. Where it waited, the goroutine that woke it is followed through the same stretch, by the same rules; what was
 * before its creation is its creator's. A wait that no goroutine ended (network, timer, the runtime) is time of its own.
 * So the pieces tile the interval: each begins where the one before it ends, and their sum is its length.
 *
 * The definition is that of Perfetto's critical path of a thread; Go's issue 57175 asks for the same.
 *
 * Each step ends a piece, or follows a goroutine to an earlier end of a wait or to an earlier birth. So the walk ends, whatever
 * the spans say.
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
                   TO_PATH_STILL_OPEN, /* it goes on: nothing has ended it */
                   TO_PATH_UNKNOWN,    /* the trace does not say what the goroutine did */
                   TO_PATH_CYCLE, /* what ended it waited itself, no less long: only a wrong trace says so */
                   TO_PATH_TOO_DEEP, /* more goroutines wait for one another than are followed */
};
const char *to_path_end_name(enum to_path_end end);

struct to_path_piece {
  to_ns from, until;
  const struct to_history *history; /* NULL: no goroutine is known */
  uint32_t stack, by_stack;
  uint32_t
      depth; /* waits followed to come here: 0 is the time of the subject, and before its birth of its creators */
  uint8_t state; /* enum to_go_state; TO_GO_NOT_EXIST: not known */
  uint8_t reason, cause;
  uint8_t end; /* enum to_path_end */
  /* Of what it ran or was runnable: while the world stood still; while it helped the collector, other than that. */
  uint64_t stopped_ns, assist_ns;
};

struct to_path {
  struct tb_mem *mem;
  struct to_path_piece *piece; /* rising */
  size_t n, room;
  bool cut; /* past TO_PATH_PIECES_MAX: the rest, the earliest, is one piece that is not known */
};

enum { TO_PATH_DEPTH_MAX = 1 << 17, TO_PATH_PIECES_MAX = 1 << 20 };

/* The interval lies in the timeline's stretch. */
TB_MUST tb_rc to_critical_path(const struct to_timeline *t, uint64_t life, to_ns from, to_ns until,
                               struct tb_mem *mem, struct to_path *out);
void to_path_fini(struct to_path *path); /* accepts a zeroed one */

#endif
