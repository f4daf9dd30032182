/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the Ps the program has while the garbage collector works, by more of the flags that Go's MutatorUtilizationV2
 * (internal/trace) knows than online/analysis/mutator.h: sweeps may count as well (UtilSweep), and each P for itself (UtilPerProc): then the
 * lowest mean is that of the P that has the least, and dedicated workers do not count, for nothing else waits for their P.
 *
 * It looks at every event, and at each P's curve at every stop of the world. So it is for files; live streams do without.
 *
 *   TB_TRY(to_mutators_events(m, gen, events, n));    -- all of the stream
 *   TB_TRY(to_mutators_slot(m, windows));             -- a slot of the windows has begun
 *   if (to_mutators_lowest(m, TO_MUTATORS_SWEEP, TO_AS_GO, view, window, until, 3, &share)) ...
 *
 * Memory    from mem: 2 curves (online/analysis/utilization.h), and 4 a P, of 4 MiB each at most; 17 to 34 bytes for each goroutine that worked for the collector.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM.
 */
#ifndef TO_ANALYSIS_MUTATORS_H
#define TO_ANALYSIS_MUTATORS_H

#include "base/map.h"
#include "online/analysis/utilization.h"
#include "online/event/generation.h"

enum {
  TO_MUTATORS_PROCS_MAX = 256,     /* that have a curve */
  TO_MUTATORS_STEPS_MAX = 1 << 17, /* of a curve: sweeps are many */
  TO_MUTATORS_GOROUTINES_MAX = 1 << 16,
};

/* Which flags, beside stops of the world, background workers and mark assists. */
enum to_mutators_set { TO_MUTATORS_SWEEP, TO_MUTATORS_PROC, TO_MUTATORS_PROC_SWEEP, TO_MUTATORS };
/* As Go's function has it, its faults included; with workers only while they run. */
enum to_mutators_way { TO_AS_GO, TO_EXACT, TO_MUTATORS_WAYS };

struct to_mutators {
  struct tb_mem *mem;
  struct to_mutators_of {
    int32_t (*on)[TO_MUTATORS_WAYS]; /* by P: what of the collector is on it */
    size_t on_room;
    uint32_t taken[TO_MUTATORS_WAYS];                 /* Ps that have something on them */
    struct to_utilization (*curve)[TO_MUTATORS_WAYS]; /* one, or by P */
    size_t curves, curves_room;
    double ended[TO_MUTATORS_WAYS][TO_LENGTHS]; /* lowest means of Ps that were taken away */
  } set[TO_MUTATORS];
  uint32_t procs, procs_before; /* GOMAXPROCS; before it changed with this event. 0: not known */
  int64_t stops;                /* of the world, for the collector */
  struct tb_map goroutines;     /* that worked for it: bits */
  unsigned syncs;               /* in this epoch */
};

TB_MUST tb_rc to_mutators_new(struct tb_mem *mem, struct to_mutators **out);
void to_mutators_free(struct to_mutators *m); /* accepts NULL */
TB_MUST tb_rc to_mutators_events(struct to_mutators *m, const struct to_generation *gen,
                                 const struct to_event *events, size_t n);
TB_MUST tb_rc to_mutators_slot(struct to_mutators *m, const struct to_windows *w);
void to_mutators_epoch(struct to_mutators *m);
/* Steps that were too many: if not 0, means are lower bounds. */
uint64_t to_mutators_joined(const struct to_mutators *m);
/* As to_utilization_lowest(). */
bool to_mutators_lowest(struct to_mutators *m, enum to_mutators_set set, enum to_mutators_way way,
                        const struct to_view *view, enum to_window window, to_ns until,
                        unsigned length, double *out);

#endif
