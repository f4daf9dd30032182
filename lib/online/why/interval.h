/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the interval to explain, from all spans of a trace.
 *
 *     to_why_finding_init(&f, &ask);
 *     to_why_look(&f, span, wall_ns);                  -- each span, open ones last
 *     rc = to_why_choose(&f, &diag, &interval);
 *
 * Memory    only the caller's: some 7 KB.
 * Threads   use each object from one thread at a time.
 * Errors    TB_NOTFOUND: diag names what the trace has instead.
 */
#ifndef TO_WHY_INTERVAL_H
#define TO_WHY_INTERVAL_H

#include "base/result.h"
#include "online/spans/spans.h"

struct to_why_ask { /* one of: task, slow, goroutine with a time */
  bool has_task;
  uint64_t task;
  const char *slow;   /* type of tasks or regions; "*": any task; NULL: not set */
  uint64_t goroutine; /* 0: not set */
  to_ns at;           /* trace clock; if at_is_wall, see at_wall_ns */
  uint64_t at_wall_ns;
  bool has_at, at_is_wall;
};

enum { TO_WHY_NAME = 160, TO_WHY_TYPES = 64, TO_WHY_TYPE_BYTES = 100 };

struct to_why_interval {
  char name[TO_WHY_NAME]; /* "task 812 (checkout)"; the program's names, unescaped */
  to_ns from, until;
  uint64_t life; /* the walk begins at `until` on this goroutine; 0: unknown */
  bool open;     /* not ended when the trace ends */
};

struct to_why_finding {
  const struct to_why_ask *ask;
  struct to_why_interval task, region, state; /* name "": not found */
  to_ns first, last;                          /* of the trace */
  bool any, goroutine_seen;
  uint64_t tasks, below, above; /* below, above: the existing task ids nearest to ask->task */
  char type[TO_WHY_TYPES][TO_WHY_TYPE_BYTES];
  size_t types;
};

void to_why_finding_init(struct to_why_finding *f, const struct to_why_ask *ask);
/* wall_ns: of the span's begin; 0: unknown. */
void to_why_look(struct to_why_finding *f, const struct to_span *span, uint64_t wall_ns);
TB_MUST tb_rc to_why_choose(const struct to_why_finding *f, struct tb_diag *diag,
                            struct to_why_interval *out);

#endif
