/* SPDX-License-Identifier: Apache-2.0 */
/* The goroutines that ended a goroutine's waits in a timeline, and those that ended their waits.
 *
 * The idea is that of RelatedGoroutinesV2 in Go's internal/trace, over the part that the timeline covers, and with times.
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
  uint64_t wakes; /* waits that it ended: the subject's, or those of goroutines one depth below */
  uint64_t waited_ns; /* time of these waits within the timeline's part */
  uint32_t depth;     /* from 1 */
};

struct to_related {
  struct tb_mem *mem;
  struct to_related_goroutine *one; /* by depth, then most waited time first */
  size_t n, room;
  bool cut; /* there are more than TO_RELATED_MAX */
};

TB_MUST tb_rc to_related_find(struct to_related *r, const struct to_timeline *t, uint64_t life,
                              struct tb_mem *mem);
void to_related_fini(struct to_related *r); /* accepts a zeroed one */

#endif
