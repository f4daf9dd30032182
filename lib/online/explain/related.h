/* SPDX-License-Identifier: Apache-2.0 */
/* The goroutines that a goroutine had to do with in a timeline: those that ended its waits, and those that ended theirs.
 *
 * The same idea as RelatedGoroutinesV2 of Go's internal/trace, over the part that the timeline has, and with times.
 *
 * Memory    from mem: 32 bytes for each.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_EXPLAIN_RELATED_H
#define TO_EXPLAIN_RELATED_H

#include "online/explain/timeline.h"

enum { TO_RELATED_DEPTH = 2, TO_RELATED_MAX = 1024 };

struct to_related_goroutine {
  const struct to_history *history;
  uint64_t
      wakes; /* waits that it ended: of the goroutine itself, or of those of the depth before */
  uint64_t waited_ns; /* their time within the timeline's part */
  uint32_t depth;     /* from 1 */
};

struct to_related {
  struct tb_mem *mem;
  struct to_related_goroutine *one; /* by depth, the most waited time first */
  size_t n, room;
  bool cut; /* there are more */
};

TB_MUST tb_rc to_related_find(struct to_related *r, const struct to_timeline *t, uint64_t life,
                              struct tb_mem *mem);
void to_related_fini(struct to_related *r); /* accepts a zeroed one */

#endif
