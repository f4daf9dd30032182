/* SPDX-License-Identifier: Apache-2.0 */
/* A utilisation over time (0 to 1, a step function), and its lowest mean over any window of a given length.
 *
 * The mean of a sliding window is a line between the moments at which one of its edges meets a step. So the lowest mean is at
 * such a moment, where the line begins to rise. These moments are found as steps arrive. The steps of the last second are kept,
 * and the lowest means of each slot.
 *
 *   TB_TRY(to_utilization_step(u, time, 0.5));             -- from this time on
 *   double lowest = to_utilization_lowest(u, view, TO_WINDOW_ALL, 3);
 *
 * A window counts in the slot in which it ends. If the utilisation is 0 now, windows that end now do not count yet (as in Go
 * at the end of a trace).
 *
 * Memory    from the windows' mem: 32 bytes a step, at most TO_STEPS_MAX or steps_max, if that is set; 88 bytes a slot. If a
 *           second has more steps, neighbours are joined with the lower utilisation: the result is then a lower bound, and
 *           `joined` counts them.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the step is missing.
 */
#ifndef TO_ANALYSIS_UTILIZATION_H
#define TO_ANALYSIS_UTILIZATION_H

#include "online/event/event.h"
#include "online/window/window.h"

enum { TO_STEPS_MAX = 1 << 15, TO_LENGTHS = 10 };
extern const to_ns to_utilization_length[TO_LENGTHS]; /* 1 ms to 1 s */

struct to_curve_step {
  to_ns time;
  double level;
  double sum;      /* integral up to here, from an arbitrary moment on */
  uint32_t lowers; /* the stream's number of lowers when the step was made */
  uint32_t procs;
};

struct to_lowest {
  to_ns begin;            /* begin of the slot */
  double sum[TO_LENGTHS]; /* the mean times the length */
};

struct to_utilization {
  struct to_curve_step *step;
  size_t n, room, steps_max;
  size_t known;            /* steps that have been checked */
  size_t left[TO_LENGTHS]; /* the step in which the last window began */
  to_ns first, end;        /* begin of this run; windows that end up to `end` have been checked */
  bool starts;             /* in the first generation: steps may still be lowered */
  uint32_t lowers;
  struct to_lowest all, open, *slot;
  size_t slots, slots_room;
  to_ns windows_first;
  uint64_t joined;
};

void to_utilization_init(struct to_utilization *u);
void to_utilization_fini(struct to_utilization *u, struct tb_mem *mem); /* accepts a zeroed one */
/* procs: number of Ps that the level is a share of. */
TB_MUST tb_rc to_utilization_step(struct to_utilization *u, struct tb_mem *mem, to_ns time,
                                  double level, uint32_t procs);
/* Lowers every step so far by one P: something on it has lasted since the run began. In the first generation only. */
void to_utilization_lower(struct to_utilization *u);
void to_utilization_started(struct to_utilization *u); /* ends the first generation */
/* Begins another run, after a hole in the stream. */
void to_utilization_cut(struct to_utilization *u);
/* Call when a slot of the windows has begun. */
TB_MUST tb_rc to_utilization_slot(struct to_utilization *u, const struct to_windows *w);
/* Finds the lowest mean of the windows of a length that end in the view; of a shorter stream, the mean of the whole. until: the
 * view's end. Returns false if there is none. */
bool to_utilization_lowest(struct to_utilization *u, const struct to_view *view,
                           enum to_window window, to_ns until, unsigned length, double *out);

#endif
