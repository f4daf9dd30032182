/* SPDX-License-Identifier: Apache-2.0 */
/* State that the analyses share, and the interface that each analysis implements. Used in this folder only.
 *
 * An analysis is one file and one row in analyses.def. It adds up the shared sums of goroutines' spans (online/spans/sums.h),
 * or counts its own spans into series of the shared windows. It names stacks by their number in the shared table
 * and fills a report that its schema describes. */
#ifndef TO_ANALYSIS_ANALYSIS_STATE_H
#define TO_ANALYSIS_ANALYSIS_STATE_H

#include "base/arena.h"
#include "online/analysis/analysis.h"
#include "online/analysis/draft.h"
#include "online/analysis/room.h"
#include "online/spans/stacks/idle.h"
#include "online/spans/stacks/table.h"
#include "online/spans/state.h"
#include "online/spans/sums.h"
#include "online/window/window.h"
#include "wire/spec.h"

struct to_analyses {
  struct tb_mem *mem;
  struct to_analysis_config config;
  struct to_watch watch;             /* span NULL: the watch is off */
  struct to_analysis_room *own_room; /* NULL: config.room was given */
  struct to_windows windows;
  struct to_spans *spans;
  struct to_stack_table *stacks; /* the spans' */
  struct to_idle idle;
  struct to_span_sums sums;
  uint8_t meets[256]; /* by event type: enum meets in analysis.c */
  uint32_t event_takers
      [64]; /* by enum tw_event: the kinds whose event() gets it, a bit each; init() may add bits */
  struct to_followed *followed; /* goroutines of to__analysis_follow(); NULL: none */
  uint32_t follower;            /* bit of the kind that follows them */
  uint32_t takers[32];          /* by bit of TO_WANT: the kinds whose span() gets it, a bit each */
  void *state[TO_ANALYSIS_KINDS];
  const struct to_generation *generation; /* the one being read; NULL: between two */
  tb_rc failed; /* error of a call that returns void; the next one returns it */
  struct tb_arena report_arena;
  struct to_report report;
  uint64_t gen, epochs;
  uint64_t epoch_gen;   /* first generation of the epoch */
  uint64_t generations; /* of the epoch, with the current one */
  to_ns ended; /* end of the file by its last event; counts if it is after the spans' last event */
  bool met_experiment; /* this slice has events of experiments */
  bool in_epoch;
  bool settled; /* no event since settle() */
  bool has_clock;
  to_ns clock_trace_ns;
  uint64_t clock_wall_ns;
};

/* Interface of an analysis. All but schema and report may be left out. */
struct to_analysis_ops {
  struct to_schema schema;
  bool thins;         /* its figures lack lengths of thinned generations: to_analyses_thin() */
  size_t state_bytes; /* size of a->state[kind], zeroed */
  uint32_t spans; /* TO_WANT bits passed to span(), if a->spans->longer_than[] and the like allow */
  uint32_t wants; /* TO_WANT bits that are tracked for to_spans_open() */
  /* Bits of enum tw_event below 64, passed to event() before the spans that they end. */
  uint64_t events;
  tb_rc (*init)(struct to_analyses *a);
  void (*fini)(struct to_analyses *a);
  tb_rc (*span)(struct to_analyses *a, const struct to_generation *gen, const struct to_span *span);
  tb_rc (*event)(struct to_analyses *a, const struct to_generation *gen, const struct to_event *ev);
  /* Called for events of experiments, after all spans that end before them. */
  tb_rc (*experiment)(struct to_analyses *a, const struct to_generation *gen,
                      const struct to_event *ev);
  tb_rc (*slot)(struct to_analyses *a);   /* before the first event of a slot */
  tb_rc (*mark)(struct to_analyses *a);   /* before the first event after the windows' mark */
  tb_rc (*settle)(struct to_analyses *a); /* before the open slot closes or is read */
  void (*epoch)(struct to_analyses *a);
  void (*watched)(struct to_analyses *a); /* the watch has changed */
  /* Reports what is open for at least age_ns to the watch, each once. */
  tb_rc (*overdue)(struct to_analyses *a, to_ns age_ns);
  tb_rc (*report)(struct to_analyses *a, const struct to_view *view, struct to_draft *draft);
  /* As to_analyses_stops(); only stw has it. */
  size_t (*stops)(const struct to_analyses *a, size_t max, struct to_stop_total *out);
  /* Reports current findings. Their words are in report_arena. */
  tb_rc (*findings)(struct to_analyses *a, const struct to_finding_sink *sink);
};
#define TO_ANALYSIS_EVENT(ID) (UINT64_C(1) << TW_EV_##ID)

/* A set of goroutines that may have false positives: several share a bit. */
enum { TO_FOLLOWED_WORDS = 64 };
struct to_followed {
  uint64_t word[TO_FOLLOWED_WORDS];
};
static inline bool to_followed_has(const struct to_followed *set, int64_t g) {
  return (set->word[(uint64_t)g / 64 % TO_FOLLOWED_WORDS] >> ((uint64_t)g % 64) & 1) != 0;
}
static inline void to_followed_add(struct to_followed *set, int64_t g) {
  set->word[(uint64_t)g / 64 % TO_FOLLOWED_WORDS] |= UINT64_C(1) << ((uint64_t)g % 64);
}
/* From the next event on, the kind also gets GoStart, GoUnblock, GoStop, GoBlock and GoDestroy of these
 * goroutines. Only one kind can follow. NULL ends it. */
void to__analysis_follow(struct to_analyses *a, enum to_analysis_kind kind,
                         struct to_followed *goroutines);

/* Programs may end a generation at any time: a shorter condition is not a finding. */
#define TO__FINDING_NS INT64_C(1000000000)

/* Detects a share that is too large in several generations in a row. */
enum { TO__OVER_GENERATIONS = 2 };
struct to__over {
  to_ns at; /* 0: never called */
  uint64_t part, whole;
  double share; /* of the last generation */
  unsigned in_a_row;
  to_ns since; /* begin of the first generation in the row */
};
/* Adds a generation that has ended; part and whole only grow. Returns true if the share is too large. */
bool to__over_look(struct to__over *over, to_ns now, uint64_t part, uint64_t whole, double limit);

/* Returns which share of the view the spans of a series cover: stops, or cycles. The spans do not overlap, so at most one that
 * ended in the view began before it. open_since: begin of the open span, or the view's end if none is open. */
double to__share_of_wall(const struct to_view *view, uint32_t series, to_ns open_since);

#define TO_ANALYSIS(ID, name, about) extern const struct to_analysis_ops to__analysis_##name;
#include "online/analysis/analyses.def"
#undef TO_ANALYSIS

#endif
