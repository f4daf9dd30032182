/* SPDX-License-Identifier: Apache-2.0 */
/* Detects files that somebody removed while the daemon runs: writing to open files still succeeds, and only a restart would
 * show the loss. Checks the parts of the state folder every second, with some segments (oldest first, so that all are
 * checked after a while), and the open runs every ten seconds. Segments that retention is removing do not count. */
#ifndef TC_SEALER_RETENTION_MISSING_H
#define TC_SEALER_RETENTION_MISSING_H

#include "collector/sealer/base/stream.h"
#include "collector/sealer/catalog/sync.h"

struct tc__missing {
  const struct tc__env *env;
  const struct tc__catalog_sync *catalog;
  const struct tc__streams *streams;
  uint64_t looked_ns; /* time of the last check; 0: none yet */
  unsigned turns;
  struct tc__gone {
    uint64_t known, now; /* missing files: as logged; found in the current pass */
    char first[sizeof((struct tc_segment_row *)0)->path + sizeof "open/"];
  } parts, open_runs, segments;
  struct tc_segment_row after; /* the row that was checked last */
  size_t rows;
  bool has_after;
};

/* Checks at most once a second. is_retaining: retention is removing segments. */
void tc__look_for_missing(struct tc__missing *missing, bool is_retaining);

#endif
