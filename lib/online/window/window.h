/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling windows: sums and histograms of the last 10 s, minute and five minutes, and since the start.
 *
 * Time is cut into slots that begin at round event times. Each record is counted in the open slot. Closed slots are
 * added to their neighbours as they age: slots of 2 s for the last 10 s, of 10 s for the last minute, of 60 s for the
 * last five. A window is the sum of the slots that overlap it, so its figures are exact for a stretch up to one slot
 * longer: 10 to 12 s, 60 to 70 s, 300 to 360 s. The view contains the begin and end of that stretch.
 *
 * The user may set a mark. The window TO_WINDOW_STRETCH begins with the first record after it, so the figures of all
 * stretches from mark to mark add up to those since the start.
 *
 * The slots depend on event times alone, so a file and a live stream give the same figures.
 *
 * A series is a number whose meaning the user chooses: one stack's blocked calls, one reason to stop the world. It can be
 * a part of another series, its parent, which contains the sums and lengths of all its parts.
 *
 * Memory    from mem: a block (online/window/packed.h) for each of at most TO_SLOTS_MAX slots, one for all since the start,
 *           and with has_stretches one for what is after the mark and older than all windows.
 *           A live stream (`sparing`), of which there can be thousands, keeps fewer buckets.
 * Threads   use each object from one thread at a time; the same for all that share a tally.
 * Time      the events' clock. If it goes back (a new epoch after a generation with broken times), the windows start
 *           again; the sums since the start stay.
 * Errors    TB_BUDGET, TB_NOMEM; nothing counted so far is lost.
 */
#ifndef TO_WINDOW_WINDOW_H
#define TO_WINDOW_WINDOW_H

#include "online/window/distribution.h"
#include "online/window/packed.h"
#include "online/window/tally.h"

enum { TO_SLOTS_MAX = 48, TO_OPEN_BLOCKS = 3 };

/* Events and generations of a stretch of the stream. */
struct to_stretch {
  uint64_t events, first_gen, last_gen; /* generation 0: none */
  uint64_t thinned;                     /* part of events: to_windows_note_thinned() */
};

struct to_slot {
  to_ns begin;
  struct to_stretch stretch;
  struct to_packed *block; /* NULL: nothing was counted */
  bool closed;             /* its block is in the sum since the start */
  bool before_mark;
};

/* The mark. */
struct to_mark {
  to_ns from;                /* where the stretch begins */
  struct to_stretch stretch; /* of slots after the mark that were dropped */
  struct to_packed *block;   /* their sum; NULL: nothing */
};

struct to_windows {
  struct tb_mem *mem;
  struct to_tally *tally;
  uint32_t *parent; /* by series */
  size_t series_n, series_room;
  struct to_packed *closed;         /* the sum of all slots that are closed; NULL: nothing */
  struct to_stretch closed_stretch; /* of all slots but the open one */
  struct to_mark mark;
  struct to_slot open; /* block: NULL */
  /* Blocks of the open slot, which has the tally, too. They are added up when the slot closes. */
  struct to_packed *open_block[TO_OPEN_BLOCKS];
  to_ns open_end;                    /* open_end == open.begin: no event yet */
  to_ns first, last;                 /* of all events */
  to_ns windows_first;               /* first event since the clock last went back */
  struct to_slot slot[TO_SLOTS_MAX]; /* rising */
  size_t slots;
  bool sparing;
  bool has_stretches; /* else TO_WINDOW_STRETCH lacks what is older than the windows */
  tb_rc failed;       /* error while another stream took the tally; the next move returns it */
};

/* Returns the length of a window and of its slots; 0 for TO_WINDOW_ALL. */
to_ns to_window_length(enum to_window window);
to_ns to_window_slot(enum to_window window);

/* tally: shared by objects of one thread. */
void to_windows_init(struct to_windows *w, struct tb_mem *mem, struct to_tally *tally);
void to_windows_fini(struct to_windows *w); /* accepts a zeroed one */

/* Adds a series. parent: the series of which it is a part, or TO_NO_SERIES. */
TB_MUST tb_rc to_windows_series(struct to_windows *w, uint32_t parent, uint32_t *out_series);

/* Makes the tally this object's: moves the counts of its last owner to their windows. Call it first in each turn. */
TB_MUST tb_rc to_windows_attach(struct to_windows *w);
/* Moves the tally's counts to the open slot. Call it when a turn ends. */
TB_MUST tb_rc to_windows_settle(struct to_windows *w);
/* Opens the slot of time, unless it is open, and closes the previous slot. Call before counting events from time on. */
TB_MUST tb_rc to_windows_move(struct to_windows *w, to_ns time);
/* Returns the end of the open slot. Events from that time on need to_windows_move() first. */
static inline to_ns to_windows_border(const struct to_windows *w) {
  return w->open_end;
}
/* Sets the mark after all that has been counted. */
TB_MUST tb_rc to_windows_mark(struct to_windows *w);
/* Counts n events of generation gen (0: none) in the open slot. last: time of the last event. */
void to_windows_note(struct to_windows *w, uint64_t n, uint64_t gen, to_ns last);

/* Records that n of the events just counted are of a thinned generation (online/spans/spans.h, to_spans_thin()). */
static inline void to_windows_note_thinned(struct to_windows *w, uint64_t n) {
  w->open.stretch.thinned += n;
}

/* Makes room for a word. */
TB_MUST tb_rc to_windows_grow(struct to_windows *w);

/* Adds the length of a span that ends in the open slot. */
TB_MUST static inline tb_rc to_windows_add(struct to_windows *w, uint32_t series, to_ns begin,
                                           to_ns end, uint32_t tag, bool lower_bound) {
  uint64_t ns = (uint64_t)end - (uint64_t)begin;

  while (TB_UNLIKELY(!to_tally_count(w->tally, series, ns))) TB_TRY(to_windows_grow(w));
  to_cells_add(&w->tally->open, series, begin, ns, tag, lower_bound);
  return TB_OK;
}
/* Adds a length to a series without tag and lower bounds whose earliest begin does not matter. Returns false if
 * the word has no room. */
TB_MUST static inline bool to_windows_add_length(struct to_windows *w, uint32_t series,
                                                 uint64_t ns) {
  if (TB_UNLIKELY(!to_tally_count(w->tally, series, ns))) return false;
  to_cells_add(&w->tally->open, series, w->open.begin, ns, 0, false);
  return true;
}
static inline void to_windows_sum_length(struct to_windows *w, uint32_t series, uint64_t ns) {
  to_cells_add(&w->tally->open, series, w->open.begin, ns, 0, false);
}
/* Adds a span to the sums only; another series counts its length. */
static inline void to_windows_sum(struct to_windows *w, uint32_t series, to_ns begin, to_ns end,
                                  uint32_t tag, bool lower_bound) {
  to_cells_add(&w->tally->open, series, begin, (uint64_t)end - (uint64_t)begin, tag, lower_bound);
}

/* Returns true while the series that was last used at this time is in a window. */
bool to_windows_show(const struct to_windows *w, to_ns last);
/* Moves the sums and lengths of n series, which no window shows, to into. Their numbers can be reused then. */
TB_MUST tb_rc to_windows_retire(struct to_windows *w, const uint32_t *series, size_t n,
                                uint32_t into);
/* Reuses a retired series' number for a part of another series. */
static inline void to_windows_reuse(struct to_windows *w, uint32_t series, uint32_t parent) {
  w->parent[series] = parent;
}

/* A window's figures, in room of the tally: valid until the next call for any stream that shares it. */
struct to_view {
  to_ns from, until;
  struct to_stretch stretch;
  struct to_windows *windows;
};
TB_MUST tb_rc to_windows_view(struct to_windows *w, enum to_window window, struct to_view *out);
struct to_sum to_view_sum(const struct to_view *view, uint32_t series);
/* A list, in an array, of series whose values form one distribution. */
struct to_view_part {
  uint32_t series, next; /* next: place of the next part, from 1; 0: none */
};
/* Adds quantiles and histogram to d, whose sum is set, for the list of parts that starts at place first. If all parts of a series are in
 * the list, its own buckets are used: they are the finest. A list contains a series only once. bucket: room for TO_BUCKETS_MAX;
 * the histogram's buckets are there. */
TB_MUST tb_rc to_view_quantiles(const struct to_view *view, const struct to_view_part *part,
                                uint32_t first, uint64_t *bucket, struct to_distribution *d);
/* Returns NULL if the view has no values of this series. */
const struct to_count *to_view_cell(const struct to_view *view, uint32_t series);

#endif
