/* SPDX-License-Identifier: Apache-2.0 */
/* When rules would have fired: traces are read, analysed and watched as a collector does it while they come.
 *
 * Traces of one stream are one after the other; between them lies a hole.
 *
 * Memory    the C library's.
 * Errors    on stderr; enum tk_exit.
 */
#ifndef TK_TRIGGER_REPLAY_H
#define TK_TRIGGER_REPLAY_H

#include "tools/tracectl/query/pass.h"
#include "trigger/watch.h"

struct tk_replay_fired {
  const struct tr_fired *fired;
  const char *stream; /* the place's name */
  uint64_t gen;       /* after which it fires */
  uint64_t wall_ns;   /* its end; 0: the trace does not say */
  to_ns time;         /* the same on the trace's clock */
};

struct tk_replay {
  struct tr_rules *rules;
  bool is_remote; /* places are named SERVICE/INSTANCE/STREAM; of files no rule knows the service */
  bool progress;
  void *self;
  void (*fired)(void *self, const struct tk_replay_fired *fired); /* lent for the call */

  uint64_t generations, streams; /* that were looked at */
};

int tk_replay(struct tk_replay *replay, const struct tk_place *place, size_t n);

#endif
