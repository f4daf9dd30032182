/* SPDX-License-Identifier: Apache-2.0 */
/* Rolling windows: sums and quantiles of the last 10 s, minute and five minutes, and since the start.
 *
 * Time is cut into slots that begin at round event times. Each record is counted in the open slot. A closed
 * slot is packed, and is merged with its neighbours as it ages: slots of 1 s for the last 10 s, of 5 s
 * for the last minute, of 30 s for the last five. A window is the sum of the slots that overlap it, so its
 * figures are exact for a stretch up to one slot longer: 10 to 11 s, 60 to 65 s, 300 to 330 s. The view
 * contains the begin and end of that stretch.
 *
 * The slots depend on event times alone, so a file and a live stream give the same figures.
 *
 * Quantiles are computed from words (online/window/buckets.h). All series together have at most TO_WORDS_OPEN_MAX
 * words in the open slot, TO_WORDS_SLOT_MAX in each packed slot and TO_WORDS_CLOSED_MAX in the sum since the start;
 * above a limit, series are folded into their parents. The few series without a parent do not count: each has at most
 * TO_HISTOGRAM_BUCKETS words more. If `sparing` is set (live streams, of which there can be thousands), the limits of packed
 * words are halved below 250,000 events a second, and again at each quarter of that rate.
 *
 * Memory    from mem: three arrays of sums, at most TO_SLOTS_MAX packed slots, and the words: 8 bytes each in the open
 *           slot, about 2 elsewhere; up to 4 MiB more while a slot closes or a view is in use.
 * Threads   use each object from one thread at a time.
 * Time      the events' clock. If it goes back (a new epoch after a generation with broken times), the windows start
 *           again; the sums since the start stay.
 * Errors    TB_BUDGET, TB_NOMEM; nothing counted so far is lost.
 */
#ifndef TO_WINDOW_WINDOW_H
#define TO_WINDOW_WINDOW_H

#include "online/window/buckets.h"
#include "online/window/counters.h"
#include "online/window/distribution.h"
#include "online/window/histogram.h"

enum {
  TO_SLOTS_MAX = 64,
  TO_WORDS_OPEN_MAX = 48 << 10,
  TO_WORDS_SLOT_MAX = 64 << 10,
  TO_WORDS_CLOSED_MAX = 160 << 10,
  TO_WORDS_LOOSE_MIN = 2 << 10, /* closed slots with fewer are not yet added to the sum */
};

/* Events and generations of a stretch of the stream. */
struct to_stretch {
  uint64_t events, first_gen, last_gen; /* generation 0: none */
};

struct to_slot {
  to_ns begin, end; /* end is the next slot's */
  struct to_stretch stretch;
  struct to_packed *packed;
  struct to_runs *runs;
};

struct to_windows {
  struct tb_mem *mem;
  struct to_counters open, closed, scratch; /* open slot; closed slots since the start; view */
  struct to_buckets open_buckets;
  struct to_runs *closed_runs; /* NULL: none yet */
  size_t loose, loose_words;   /* the last slots: their words are not yet in closed_runs */
  struct to_words view_words;
  size_t view_first;          /* first slot of view_words */
  bool view_exact;            /* no view_words are folded */
  struct to_words base_words; /* of a shorter window: slots from base_first on, and the open one */
  size_t base_first;
  bool base_exact;
  bool folds[TO_WINDOWS]; /* true: the window's words had to be folded last time */
  /* One block of four arrays of view_begins entries. Their index is a series, except in view_row. */
  uint32_t *view_begin; /* index of the series' first word; the last entry ends the last series */
  uint32_t *view_row;   /* the series whose words are the current row's */
  uint32_t *view_parts; /* number of the series' direct parts in the view */
  uint32_t *view_met;   /* number of these parts in the current row; 0 between rows */
  size_t view_begins;
  struct to_series *series;
  size_t series_n, series_room;
  bool sparing;
  bool folded; /* the place of at least one series is not its home */
  struct to_stretch open_stretch, closed_stretch;
  to_ns open_begin, open_end;
  to_ns first, last;                 /* of all events; open_end == open_begin: no event yet */
  to_ns windows_first;               /* first event since the clock last went back */
  struct to_slot slot[TO_SLOTS_MAX]; /* rising */
  size_t slots;
  bool viewed;       /* scratch has the current sums of viewed_window */
  bool viewed_words; /* view_words has the current words of viewed_window */
  enum to_window viewed_window;
};

void to_windows_init(struct to_windows *w, struct tb_mem *mem);
void to_windows_fini(struct to_windows *w);

/* Adds a series. parent: the series of which it is a part, or TO_NO_SERIES for the few that are there from the start. */
TB_MUST tb_rc to_windows_series(struct to_windows *w, uint32_t parent, uint32_t *out_series);

/* Opens the slot of time, unless it is open, and closes the previous slot. Call before counting events from time on. */
TB_MUST tb_rc to_windows_move(struct to_windows *w, to_ns time);
/* Returns the end of the open slot. Events from that time on need to_windows_move() first. */
static inline to_ns to_windows_border(const struct to_windows *w) {
  return w->open_end;
}
/* Counts n events of generation gen (0: none) in the open slot. last: time of the last event. */
void to_windows_note(struct to_windows *w, uint64_t n, uint64_t gen, to_ns last);

/* Makes room for a word. */
TB_MUST tb_rc to_windows_grow(struct to_windows *w);

/* Adds the length of a span that ends in the open slot. */
TB_MUST static inline tb_rc to_windows_add(struct to_windows *w, uint32_t series, to_ns begin,
                                           to_ns end, uint32_t tag, bool lower_bound) {
  uint32_t bucket = to_histogram_bucket((uint64_t)end - (uint64_t)begin);

  while (TB_UNLIKELY(
      !to_buckets_add(&w->open_buckets, w->series[series].place << TO_BUCKET_BITS | bucket)))
    TB_TRY(to_windows_grow(w));
  to_counters_add(&w->open, series, begin, end, tag, lower_bound);
  return TB_OK;
}
/* Adds a length to a series without tag and lower bounds whose earliest begin does not matter. Returns false if
 * the word has no room. */
TB_MUST static inline bool to_windows_add_length(struct to_windows *w, uint32_t series,
                                                 uint64_t ns) {
  uint32_t bucket = to_histogram_bucket(ns);

  if (TB_UNLIKELY(
          !to_buckets_add(&w->open_buckets, w->series[series].place << TO_BUCKET_BITS | bucket)))
    return false;
  to_counters_add_length(&w->open, series, w->open_begin, ns);
  return true;
}
static inline void to_windows_sum_length(struct to_windows *w, uint32_t series, uint64_t ns) {
  to_counters_add_length(&w->open, series, w->open_begin, ns);
}
/* Adds a span to the sums only; another series counts its length. */
static inline void to_windows_sum(struct to_windows *w, uint32_t series, to_ns begin, to_ns end,
                                  uint32_t tag, bool lower_bound) {
  to_counters_add(&w->open, series, begin, end, tag, lower_bound);
}

/* A bit for each series that has words. */
struct to_series_set {
  uint64_t bits[TO_BUCKET_SERIES_MAX / 64];
};
/* Moves the sums of series, which must have a parent, to into, and adds series to the set. last: time of its last
 * use. Returns false, and changes nothing, while the series is in a window. */
bool to_windows_retire(struct to_windows *w, uint32_t series, uint32_t into, to_ns last,
                       struct to_series_set *retired);
/* Moves the words of the set's series to their parents. Their numbers can be reused then. */
TB_MUST tb_rc to_windows_retired(struct to_windows *w, const struct to_series_set *retired);
/* Reuses a series' number for a part of another series. */
static inline void to_windows_reuse(struct to_windows *w, uint32_t series, uint32_t parent) {
  w->series[series].parent = parent;
  w->series[series].values = 0;
  w->series[parent].is_parent = true;
}

/* A window's figures, valid until the next call. */
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
/* Adds the quantiles to d, whose sum is set, for the list of parts that starts at place first. Values folded into a parent count if
 * all parts of the parent are in the list. A list contains a series only once. */
TB_MUST tb_rc to_view_quantiles(const struct to_view *view, const struct to_view_part *part,
                                uint32_t first, struct to_distribution *d);
/* Returns NULL if the view has no values of this series. */
const struct to_count *to_view_cell(const struct to_view *view, uint32_t series);

#endif
