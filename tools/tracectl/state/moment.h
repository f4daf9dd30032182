/* SPDX-License-Identifier: Apache-2.0 */
/* Every goroutine of one moment of a trace: its state, since when, where, and what created it.
 *
 * The trace is read up to that moment only. A state that began before the first generation read has no known begin.
 *
 * Memory    tk_moment_fini() frees everything; texts and stacks are lent until then.
 * Threads   one.
 * Errors    text in the caller's buffer: the moment is outside, the trace breaks before it, or cannot be read.
 */
#ifndef TK_STATE_MOMENT_H
#define TK_STATE_MOMENT_H

#include "tools/tracectl/args/options.h"
#include "tools/tracectl/query/pass.h"

struct tk_moment_goroutine {
  bool is_known; /* its state is known */
  int64_t id;
  uint64_t life;
  enum to_go_state state;
  const struct to_reason_info *reason; /* if it waits */
  to_ns since;
  bool since_known;                 /* false: it began before the first generation read */
  const struct to_callstack *stack; /* last known stack; NULL: none */
  int64_t proc, thread;             /* TO_NONE: none */
  bool created_known;
  to_ns created;
  int64_t creator;                             /* TO_NONE: unknown */
  const struct to_callstack *entry, *creation; /* NULL: unknown */
  char *label;                                 /* NULL: none */
};

struct tk_moment {
  to_ns at;
  bool has_wall;
  uint64_t wall_ns, gen;
  struct tk_moment_goroutine *goroutine; /* longest in their state first */
  size_t n, room;
  struct to_spans *spans;
};

bool tk_moment_find(const struct tk_place *place, const struct tk_at *at, struct tk_moment *out,
                    char error[TK_QUERY_ERROR]);
void tk_moment_fini(struct tk_moment *moment);

#endif
