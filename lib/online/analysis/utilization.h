/* SPDX-License-Identifier: Apache-2.0 */
/* A utilisation over time (0..1, a step function), and the lowest mean of it that any window of a length has.
 *
 * The mean of a window that slides along is a line between the moments at which one of its edges meets a step, so the lowest
 * one is at one of those from which on it rises. They are found as the steps come. Kept are the steps of the last second, and the lowest means by slot.
 *
 *   TB_TRY(to_utilization_step(u, time, 0.5));             -- from this time on
 *   double lowest = to_utilization_lowest(u, view, TO_WINDOW_ALL, 3);
 *
 * A window counts in the slot that it ends in. Where the utilisation is 0 now, those that end now do not count yet (Go does
 * the same at the end of a trace).
 *
 * Memory    from the windows' mem: 32 bytes a step, at most TO_STEPS_MAX of them, or steps_max if that is set; 88 bytes a slot. Where a second has more, neighbours
 *           become one with the lower utilisation: the answer is a lower bound then, and `joined` says how many.
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
  double sum;      /* its integral up to here, from some moment on */
  uint32_t lowers; /* of the stream, when it was made */
  uint32_t procs;
};

struct to_lowest {
  to_ns begin;            /* of its slot */
  double sum[TO_LENGTHS]; /* the mean times the length */
};

struct to_utilization {
  struct to_curve_step *step;
  size_t n, room, steps_max;
  size_t known;            /* steps that have been looked at */
  size_t left[TO_LENGTHS]; /* the step in which the last window began */
  to_ns first, end;        /* of this run; windows that end up to here have been looked at */
  bool starts;             /* the first generation: steps may be lowered still */
  uint32_t lowers;
  struct to_lowest all, open, *slot;
  size_t slots, slots_room;
  to_ns windows_first;
  uint64_t joined;
};

void to_utilization_init(struct to_utilization *u);
void to_utilization_fini(struct to_utilization *u, struct tb_mem *mem); /* accepts a zeroed one */
/* procs: how many the level is a share of. */
TB_MUST tb_rc to_utilization_step(struct to_utilization *u, struct tb_mem *mem, to_ns time,
                                  double level, uint32_t procs);
/* Something has been going on since the run began: every step so far is lower by one P. In the first generation only. */
void to_utilization_lower(struct to_utilization *u);
void to_utilization_started(struct to_utilization *u); /* the first generation is over */
/* The stream has a hole: another run begins. */
void to_utilization_cut(struct to_utilization *u);
/* A slot has begun. */
TB_MUST tb_rc to_utilization_slot(struct to_utilization *u, const struct to_windows *w);
/* The lowest mean of the windows of a length that end in the view; of a stream that is shorter the mean of all of it. until: its end.
 * False: there is none. */
bool to_utilization_lowest(struct to_utilization *u, const struct to_view *view,
                           enum to_window window, to_ns until, unsigned length, double *out);

#endif
