/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the Ps the program itself has while the garbage collector works: stops of the world for it, background workers and
 * mark assists take from it.
 *
 * There are two ways to count. TO_AS_GO is that of Go's own tools (internal/trace, MutatorUtilizationV2), to compare with them: there a
 * background worker counts twice from its second start on, at its start and at its label, and its P never counts as the
 * program's again. TO_EXACT counts a worker from its label until it leaves its P.
 *
 * A file is counted with more of the flags of Go's function as well. Sweeps may count (UtilSweep). Each P may count for
 * itself (UtilPerProc): then the lowest mean is that of the P that has the least, and dedicated workers do not count, for nothing
 * else waits for their P. That takes every sweep, and each P's curve at every stop of the world, so live streams do without.
 *
 *   TB_TRY(to_mutator_init(m, mem, is_file));
 *   TB_TRY(to_mutator_event(m, gen, ev));
 *   TB_TRY(to_mutator_slot(m, windows));              -- a slot of the windows has begun
 *   if (to_mutator_lowest(m, TO_MUTATOR_SWEEP, TO_AS_GO, view, window, until, 3, &share)) ...
 *
 * Memory    from mem: 2 curves (online/analysis/utilization.h), 8 bytes a P, 17 to 34 for each goroutine that worked for the
 *           collector. Of a file 2 curves and 24 bytes a P more, and 4 curves a P, of 4 MiB each at most.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_ANALYSIS_MUTATOR_H
#define TO_ANALYSIS_MUTATOR_H

#include "base/map.h"
#include "online/analysis/analysis_state.h"
#include "online/analysis/utilization.h"
#include "online/event/generation.h"

enum {
  TO_MUTATOR_PROCS_MAX = 1 << 14,
  TO_MUTATOR_CURVES_MAX = 256, /* Ps with a curve of their own */
  TO_MUTATOR_STEPS_MAX =
      1 << 17, /* for each curve of a file but the first two, as sweeps are many */
  TO_MUTATOR_WATCHED_MAX = 1 << 16 /* goroutines */
};

/* Flags of Go's function, besides stops of the world, background workers and mark assists. A live stream has the first set alone. */
enum to_mutator_set {
  TO_MUTATOR_PLAIN,
  TO_MUTATOR_SWEEP,
  TO_MUTATOR_PROC,
  TO_MUTATOR_PROC_SWEEP,
  TO_MUTATOR_SETS
};
enum to_mutator_way { TO_AS_GO, TO_EXACT, TO_MUTATOR_WAYS };

struct to_mutator {
  struct tb_mem *mem;
  unsigned sets; /* the first ones, which are counted */
  struct to_mutator_of {
    int32_t (*on)[TO_MUTATOR_WAYS]; /* by P: what of the collector is on it */
    size_t on_room;
    uint32_t taken[TO_MUTATOR_WAYS]; /* Ps with something of the collector on them */
    struct to_utilization *curve;    /* of all Ps or of each P: a curve for each way */
    size_t curves, curves_room;
    double ended[TO_MUTATOR_WAYS][TO_LENGTHS]; /* lowest means of Ps that were taken away */
  } set[TO_MUTATOR_SETS];
  uint32_t procs, procs_before; /* GOMAXPROCS; before it changed with this event. 0: not known */
  bool changed;                 /* some level may be another one since the last steps */
  int64_t stops;                /* of the world, for the collector */
  struct tb_map watched;        /* goroutines that worked for it: bits */
  struct to_followed follows;   /* the watched ones */
  size_t forgotten;             /* goroutines in follows that are not watched any more */
  size_t awake;                 /* watched ones that may go on without a sign */
  size_t working, idling; /* background workers that run, and those that have a P that is free */
  size_t helping;         /* goroutines that run in a mark assist */
  uint64_t worked_ns, idled_ns, helped_ns; /* the time that they ran, up to now */
  to_ns now;                               /* of the last event */
  unsigned syncs;                          /* in this epoch */
  bool marking;
};

TB_MUST tb_rc to_mutator_init(struct to_mutator *m, struct tb_mem *mem, bool is_file);
void to_mutator_fini(struct to_mutator *m); /* accepts a zeroed one */
/* Takes Sync, ProcsChange, GoLabel, cycles, assists and stops, and of a file's sweeps, each one; while to_mutator_watches(), GoStart,
 * GoUnblock, GoStop, GoBlock and GoDestroy of the goroutines in follows as well. */
TB_MUST tb_rc to_mutator_event(struct to_mutator *m, const struct to_generation *gen,
                               const struct to_event *ev);
static inline bool to_mutator_watches(const struct to_mutator *m) {
  return m->sets > 1 || m->marking || m->awake > 0;
}
TB_MUST tb_rc to_mutator_slot(struct to_mutator *m, const struct to_windows *w);
void to_mutator_epoch(struct to_mutator *m);
/* helped_ns up to a later time. */
uint64_t to_mutator_helped_ns(const struct to_mutator *m, to_ns until);
/* Steps that were too many: if not 0, means are lower bounds. */
uint64_t to_mutator_joined(const struct to_mutator *m);
/* As to_utilization_lowest(). */
bool to_mutator_lowest(struct to_mutator *m, enum to_mutator_set set, enum to_mutator_way way,
                       const struct to_view *view, enum to_window window, to_ns until,
                       unsigned length, double *out);

#endif
