/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the Ps the program itself has while the garbage collector works: stops of the world for it, background workers and
 * mark assists take from it.
 *
 * There are two answers. as_go is that of Go's own tools (internal/trace, MutatorUtilizationV2), to compare with them: there a
 * background worker counts twice from its second start on, at its start and at its label, and its P never counts as the
 * program's again. exact counts a worker from its label until it leaves its P.
 *
 * Memory    from mem: 8 bytes a P, 17 to 34 for each goroutine that worked for the collector; utilization.h.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_ANALYSIS_MUTATOR_H
#define TO_ANALYSIS_MUTATOR_H

#include "base/map.h"
#include "online/analysis/analysis_state.h"
#include "online/analysis/utilization.h"
#include "online/event/generation.h"

enum { TO_MUTATOR_PROCS_MAX = 1 << 14, TO_MUTATOR_WATCHED_MAX = 1 << 16 };

struct to_mutator {
  struct tb_mem *mem;
  struct to_utilization as_go, exact;
  struct to_mutator_proc {
    int32_t as_go, exact; /* what of the collector is on it */
  } * proc;
  size_t procs_room;
  struct to_mutator_level {
    uint32_t procs;           /* GOMAXPROCS; 0: not known yet */
    uint32_t as_go, exact;    /* Ps that the collector has */
    bool stops;               /* the world, for the collector */
  } is, noted;                /* noted: the last steps are of it */
  bool lowered;               /* steps were, since then */
  int64_t stops;              /* of the world, for the collector */
  struct tb_map watched;      /* goroutines that worked for it: bits */
  struct to_followed follows; /* the watched ones */
  size_t forgotten;           /* that are not watched any more, and still in it */
  size_t awake;               /* of those: they may go on without a sign */
  size_t working, idling; /* background workers that run, and those that have a P that is free */
  size_t helping;         /* goroutines that run in a mark assist */
  uint64_t worked_ns, idled_ns, helped_ns; /* the time that they ran, up to now */
  to_ns now;                    /* of the last event */
  unsigned syncs;               /* in this epoch */
  bool marking;
};

void to_mutator_init(struct to_mutator *m, struct tb_mem *mem);
void to_mutator_fini(struct to_mutator *m);
/* Of Sync, ProcsChange, GoLabel, cycles, assists and stops each one; while to_mutator_watches(), GoStart, GoUnblock, GoStop, GoBlock and GoDestroy of
 * the goroutines in follows as well. */
TB_MUST tb_rc to_mutator_event(struct to_mutator *m, const struct to_generation *gen,
                               const struct to_event *ev);
static inline bool to_mutator_watches(const struct to_mutator *m) {
  return m->marking || m->awake > 0;
}
void to_mutator_epoch(struct to_mutator *m);
/* helped_ns up to a later time. */
uint64_t to_mutator_helped_ns(const struct to_mutator *m, to_ns until);

/* By a label of Go's background workers. */
enum to_worker { TO_WORKER_NONE, TO_WORKER_IDLE, TO_WORKER_DEDICATED, TO_WORKER_OTHER };
enum to_worker to_mutator_worker(const struct to_generation *gen, uint64_t label);
/* A stop of the world for this reason is the collector's. */
bool to_mutator_stops(const struct to_generation *gen, uint64_t reason);

#endif
