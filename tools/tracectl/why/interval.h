/* SPDX-License-Identifier: Apache-2.0 */
/* Which interval is explained: one pass over a trace file finds it.
 *
 * Errors    on stderr, with what the trace has instead; enum tk_exit.
 */
#ifndef TK_WHY_INTERVAL_H
#define TK_WHY_INTERVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"
#include "tools/tracectl/query/pass.h"

struct tk_why_ask { /* one of task, slow, goroutine with a time */
  struct tk_place place; /* opened more than once */
  bool has_task;
  uint64_t task;
  const char *slow;   /* a type of tasks or regions; NULL: not asked */
  uint64_t goroutine; /* 0: not asked */
  to_ns at;           /* on the trace's clock, or, with at_is_wall, */
  uint64_t at_wall_ns;
  bool has_at, at_is_wall;
  bool json;
  unsigned rows; /* of each table; 0: all */
};

enum { TK_WHY_NAME = 160 };

struct tk_why_interval {
  char name[TK_WHY_NAME]; /* "task 812 (checkout)" */
  to_ns from, until;
  uint64_t life; /* the walk begins at `until` on this goroutine; 0: none is known */
  bool open;     /* it goes on where the trace ends */
};

int tk_why_find(const struct tk_why_ask *ask, struct tk_why_interval *out);

#endif
