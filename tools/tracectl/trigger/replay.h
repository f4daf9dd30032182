/* SPDX-License-Identifier: Apache-2.0 */
/* Tests when rules would have fired: reads, analyses and watches traces like a collector.
 *
 * Traces of one stream follow each other, with a hole between them.
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
  uint64_t wall_ns;   /* of its end; 0: unknown */
  to_ns time;         /* wall_ns on the trace's clock */
};

struct tk_replay {
  struct tr_rules *rules;
  bool is_remote; /* places are named SERVICE/INSTANCE/STREAM; for files the service is unknown */
  bool progress;
  void *self;
  void (*fired)(void *self, const struct tk_replay_fired *fired); /* lent for the call */

  uint64_t generations, streams; /* that were analysed */
};

int tk_replay(struct tk_replay *replay, const struct tk_place *place, size_t n);

#endif
