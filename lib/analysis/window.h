/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling windows over a tally: what happened in the last 10 s, minute, five minutes, and in all.
 *
 * Time is cut into slots on its own round numbers. Each record goes into the slot that is open; a
 * closed slot is packed and kept, and thinned out as it ages: slots of 1 s for the last 10 s, of 5 s
 * for the last minute, of 30 s for the last five. A window is the sum of the slots that reach into
 * it, so its figures are exact for a stretch that is at least the window and at most one slot of
 * that age longer: 10 to 11 s, 60 to 65 s, 300 to 330 s. The view says which stretch it is.
 *
 * The slots depend on event times alone, so that a file and a live stream give the same figures.
 *
 * Memory    from mem: three tallies and at most TO_SLOTS_MAX packed slots.
 * Threads   use each object from one thread at a time.
 * Time      whatever clock the events have. Where it falls (an epoch after a generation with broken times) windows
 *           start again, and the sums since the start stay.
 * Errors    TB_BUDGET, TB_NOMEM; nothing counted so far is lost.
 */
#ifndef TO_ANALYSIS_WINDOW_H
#define TO_ANALYSIS_WINDOW_H

#include "analysis/analysis.h"
#include "analysis/counters.h"

enum { TO_SLOTS_MAX = 64 };

/* Besides the tally, what a stretch of the stream holds. */
struct to_stretch {
  uint64_t events, first_gen, last_gen; /* generation 0: none */
};

struct to_slot {
  to_ns begin, end; /* end is the next slot's */
  struct to_stretch stretch;
  struct to_packed *packed;
};

struct to_windows {
  struct tb_mem *mem;
  struct to_counters open, closed,
      scratch; /* the open slot; all closed ones since ever; a view's */
  struct to_stretch open_stretch, closed_stretch;
  to_ns open_begin, open_end;
  to_ns first, last;                 /* of all events; no event yet: open_end == open_begin */
  to_ns windows_first;               /* of those since the clock last fell */
  struct to_slot slot[TO_SLOTS_MAX]; /* rising */
  size_t slots;
  size_t series;
  unsigned hists;
  bool viewed; /* scratch holds the view of viewed_window, and nothing came since */
  enum to_window viewed_window;
};

void to_windows_init(struct to_windows *w, struct tb_mem *mem);
void to_windows_fini(struct to_windows *w);

TB_MUST tb_rc to_windows_series(struct to_windows *w, uint32_t *out_series);
/* A new histogram. No more than TO_HISTOGRAMS_MAX: asking for another is our own bug. */
unsigned to_windows_hist(struct to_windows *w);

/* Events from this time on follow: closes the open slot if it ends before. */
TB_MUST tb_rc to_windows_move(struct to_windows *w, to_ns time);
/* The open slot ends here: events from this time on need to_windows_move() first. */
static inline to_ns to_windows_border(const struct to_windows *w) {
  return w->open_end;
}
/* n events of a generation (0: none) were in the open slot, the last one at this time. */
void to_windows_note(struct to_windows *w, uint64_t n, uint64_t gen, to_ns last);

/* A span that ends in the open slot, in a series and in a histogram. A caller that needs both records first,
 * since that can fail. */
static inline void to_windows_add(struct to_windows *w, uint32_t series, to_ns begin, to_ns end,
                                  uint32_t tag, bool lower_bound) {
  to_counters_add(&w->open, series, begin, end, tag, lower_bound);
}
TB_MUST static inline tb_rc to_windows_record(struct to_windows *w, unsigned hist, to_ns begin,
                                              to_ns end) {
  return to_histogram_add(&w->open.hist[hist], (uint64_t)end - (uint64_t)begin);
}

/* Counts what series had as part of into, so that the number can be used again. False: the series,
 * last added to at this time, is still in a window. */
bool to_windows_retire(struct to_windows *w, uint32_t series, uint32_t into, to_ns last);

/* Lent until the next call. */
struct to_view {
  to_ns from, until;
  struct to_stretch stretch;
  const struct to_windows *windows;
};
TB_MUST tb_rc to_windows_view(struct to_windows *w, enum to_window window, struct to_view *out);
struct to_sum to_view_sum(const struct to_view *view, uint32_t series);
/* The quantiles of a histogram beside the sum of what was recorded in it. */
struct to_distribution to_view_distribution(const struct to_view *view, unsigned hist,
                                            struct to_sum sum);
/* NULL if nothing of this series is in the view. */
const struct to_cell *to_view_cell(const struct to_view *view, uint32_t series);

#endif
