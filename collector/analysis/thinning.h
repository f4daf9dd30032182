/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which generations are thinned while a loop cannot follow its streams. A thinned generation is ordered, and findings,
 * states and most figures go on; only its lengths of goroutines' states are in no table (to_analyses_thin()).
 *
 * The measure is how long a generation waits while it is the first of its stream: for its turns, while other streams have work, too.
 * Generations that wait behind others of their stream do not count: a finished trace that is sent at once is not thinned. The
 * level rises by one after each `after` in which a generation waited that long, or while half of the room for waiting generations is in use.
 * It falls by one after each quarter of `after` in which all waited for less than a quarter of it.
 *
 *   level                 0    1    2    3    4    5    6
 *   most streams          1   1/2  1/4  1/8  1/8  1/8  1/8      of their generations are counted
 *   preferred streams     1    1    1    1   1/2  1/4  1/8      those with a rule, an open finding, a lease or a reader
 *
 * A stream of which an eighth is counted has room for two generations, the newest; others are left out. Thus no figures are older than
 * some seconds, and the loop has caught up as soon after the overload. (Not if only the room was full: a finished trace is analysed whole.)
 *
 * Threads   use each object from one thread at a time. It reads no clock: `now` is monotonic.
 */
#ifndef TC_ANALYSIS_THINNING_H
#define TC_ANALYSIS_THINNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TC_THINNING_LEVELS = 6 };

struct tc_thinning {
  unsigned level;
  uint64_t since_ns;   /* begin of the period that the next decision is about */
  uint64_t longest_ns; /* the longest wait in it */
  bool any;            /* a wait was measured in it */
  bool bounds;         /* the level is not 0 because of waits: tc_thinning_queue() */
  struct {
    uint64_t since_ns, events, thinned; /* in the current second */
    uint64_t missing_ppb; /* thinned part of the events of the last whole second, in billionths */
  } share;
};

/* Call it when a generation begins and when it ends. */
void tc_thinning_measure(struct tc_thinning *t, uint64_t waited_ns);
/* Changes the level if it is time to. waiting: generations that wait, of at most waiting_max. Returns true if the level has
 * changed. */
bool tc_thinning_advance(struct tc_thinning *t, uint64_t now, uint64_t after_ns, size_t waiting,
                         size_t waiting_max);
/* turn: number of the stream's generation, counted from any number. */
bool tc_thinning_thins(const struct tc_thinning *t, uint64_t turn, bool is_preferred);
/* Returns how many generations of a stream may wait. */
size_t tc_thinning_queue(const struct tc_thinning *t, bool is_preferred);
/* Counts events of a generation for share.missing_ppb. */
void tc_thinning_count(struct tc_thinning *t, uint64_t events, bool thinned);

#endif
