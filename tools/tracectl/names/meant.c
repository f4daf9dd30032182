/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/names/meant.h"

#include <stddef.h>
#include <strings.h>

#include "base/text/nearest.h"
#include "online/analysis/analysis.h"

/* Words for the matter of a kind; some are near another kind. */
static const struct {
  const char *word;
  enum to_analysis_kind kind;
} others[] = { { "lock", TO_ANALYSIS_CONTENTION },    { "locks", TO_ANALYSIS_CONTENTION },
               { "mutex", TO_ANALYSIS_CONTENTION },   { "mutexes", TO_ANALYSIS_CONTENTION },
               { "channel", TO_ANALYSIS_CONTENTION }, { "channels", TO_ANALYSIS_CONTENTION },
               { "chan", TO_ANALYSIS_CONTENTION },    { "wait", TO_ANALYSIS_CONTENTION },
               { "waits", TO_ANALYSIS_CONTENTION },   { "thread", TO_ANALYSIS_GOROUTINES },
               { "threads", TO_ANALYSIS_GOROUTINES }, { "pause", TO_ANALYSIS_STW },
               { "pauses", TO_ANALYSIS_STW },         { "stop", TO_ANALYSIS_STW },
               { "stops", TO_ANALYSIS_STW },          { "latency", TO_ANALYSIS_SCHED },
               { "scheduler", TO_ANALYSIS_SCHED },    { "runnable", TO_ANALYSIS_SCHED },
               { "alloc", TO_ANALYSIS_HEAP },         { "allocs", TO_ANALYSIS_HEAP },
               { "memory", TO_ANALYSIS_HEAP },        { "mem", TO_ANALYSIS_HEAP },
               { "network", TO_ANALYSIS_NET } };

const char *tk_kind_meant(const char *word) {
  struct tb_nearest nearest = { .word = word };

  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcasecmp(others[i].word, word) == 0) return to_analysis_name(others[i].kind);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    tb_nearest_try(&nearest, to_analysis_name((enum to_analysis_kind)k));
  return nearest.best;
}
