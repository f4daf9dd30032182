/* SPDX-License-Identifier: Apache-2.0 */
/* The share of the Ps that the program has while the garbage collector works. Stops of the world for the collector, background
 * workers and mark assists reduce it.
 *
 * There are two ways to count. TO_AS_GO equals Go's own tools (MutatorUtilizationV2 in internal/trace): from its second start on, a
 * background worker counts twice, at its start and at its label, and its P never counts as the program's again. TO_EXACT
 * counts a worker from its label until it leaves its P.
 *
 * With every_curve, further flags of Go's function are counted, too. Sweeps may count (UtilSweep). Each P may be considered alone
 * (UtilPerProc): then the result is the lowest mean of any P, and dedicated workers do not count, as nothing else waits for
 * their P. Both need every sweep, and each P's curve at every stop of the world, which is too much for a live stream and
 * for a report of every kind.
 *
 *   TB_TRY(to_mutator_init(m, mem, every_curve));
 *   TB_TRY(to_mutator_event(m, gen, ev));
 *   TB_TRY(to_mutator_slot(m, windows));              -- when a slot of the windows has begun
 *   if (to_mutator_lowest(m, TO_MUTATOR_SWEEP, TO_AS_GO, view, window, until, 3, &share)) ...
 *
 * Memory    from mem: 2 curves (online/analysis/utilization.h), 8 bytes a P, 17 to 34 for each goroutine that worked for the
 *           collector. With every_curve, 2 curves and 24 bytes a P more, and 4 curves a P, of 4 MiB each at most.
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
  TO_MUTATOR_CURVES_MAX = 256,     /* Ps with a curve of their own */
  TO_MUTATOR_STEPS_MAX = 1 << 17,  /* for each curve but the first two, as sweeps are many */
  TO_MUTATOR_WATCHED_MAX = 1 << 16 /* goroutines */
};

/* Sets of flags of Go's function, besides stops of the world, background workers and mark assists. Without
 * every_curve there is only the first one. */
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
  unsigned sets; /* number of sets that are counted, from the first on */
  struct to_mutator_of {
    int32_t (*on)[TO_MUTATOR_WAYS]; /* by P: number of the collector's workers and assists on it */
    size_t on_room;
    uint32_t taken[TO_MUTATOR_WAYS]; /* Ps that have at least one of them */
    struct to_utilization *curve;    /* of all Ps or of each P: a curve for each way */
    size_t curves, curves_room;
    double ended[TO_MUTATOR_WAYS][TO_LENGTHS]; /* lowest means of Ps that no longer exist */
  } set[TO_MUTATOR_SETS];
  uint32_t procs, procs_before; /* GOMAXPROCS, now and before this event; 0: not known */
  bool changed;                 /* a level may have changed since the last step */
  int64_t stops;                /* of the world, for the collector */
  struct tb_map watched;        /* goroutines that worked for the collector: their bits */
  struct to_followed follows;   /* the watched ones */
  size_t forgotten;             /* goroutines in follows that are not watched any more */
  size_t awake;                 /* watched ones that may run on without an event */
  size_t working, idling;       /* background workers that run; idle workers, on free Ps */
  size_t helping;               /* goroutines that run in a mark assist */
  uint64_t worked_ns, idled_ns, helped_ns; /* their running time, up to now */
  to_ns now;                               /* of the last event */
  unsigned syncs;                          /* in this epoch */
  bool marking;
};

TB_MUST tb_rc to_mutator_init(struct to_mutator *m, struct tb_mem *mem, bool every_curve);
void to_mutator_fini(struct to_mutator *m); /* accepts a zeroed one */
/* Call for each Sync, ProcsChange, GoLabel and event of a cycle, an assist or a stop, and, with every_curve, for each sweep; while
 * to_mutator_watches() returns true, also for GoStart, GoUnblock, GoStop, GoBlock and GoDestroy of the goroutines in `follows`. */
TB_MUST tb_rc to_mutator_event(struct to_mutator *m, const struct to_generation *gen,
                               const struct to_event *ev);
static inline bool to_mutator_watches(const struct to_mutator *m) {
  return m->sets > 1 || m->marking || m->awake > 0;
}
TB_MUST tb_rc to_mutator_slot(struct to_mutator *m, const struct to_windows *w);
void to_mutator_epoch(struct to_mutator *m);
/* Returns helped_ns at a later time. */
uint64_t to_mutator_helped_ns(const struct to_mutator *m, to_ns until);
/* Returns the number of joined steps; if not 0, means are lower bounds. */
uint64_t to_mutator_joined(const struct to_mutator *m);
/* Works as to_utilization_lowest(). */
bool to_mutator_lowest(struct to_mutator *m, enum to_mutator_set set, enum to_mutator_way way,
                       const struct to_view *view, enum to_window window, to_ns until,
                       unsigned length, double *out);

#endif
