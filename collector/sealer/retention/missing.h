/* SPDX-License-Identifier: Apache-2.0 */
/* Files that somebody took away while the daemon runs: open ones are written as ever, and nothing says that a restart would not find
 * them. Each second the state folder's own parts are looked at, and some segments in the order of their age, so that all have been
 * looked at after a while; the open runs every ten seconds. What retention is just taking is no reason. */
#ifndef TC_SEALER_RETENTION_MISSING_H
#define TC_SEALER_RETENTION_MISSING_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

struct tc__missing {
  const struct tc__env *env;
  const struct tc__catalog_sync *catalog;
  const struct tc__streams *streams;
  uint64_t looked_ns; /* 0: not yet */
  unsigned turns;
  struct tc__gone {
    uint64_t known, now; /* now: in the pass that goes on */
    char first[sizeof((struct tc_segment_row *)0)->path + sizeof "open/"];
  } parts, open_runs, segments;
  struct tc_segment_row after; /* the last one that was looked at */
  size_t rows;
  bool has_after;
};

/* Once a second, whatever is called more often. is_retaining: segments are just taken. */
void tc__look_for_missing(struct tc__missing *missing, bool is_retaining);

#endif
