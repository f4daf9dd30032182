/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make spans: private to this room.
 *
 * spans.c processes the events and has the states of goroutines, threads.c those of Ps and threads. rare.c handles ranges,
 * tasks, regions and labels, region_time.c counts what goroutines do in regions, open.c lists open spans. object.c
 * has the rest. */
#ifndef TO_SPANS_STATE_H
#define TO_SPANS_STATE_H

#include "base/map.h"
#include "online/event/names.h"
#include "online/spans/calls.h"
#include "online/spans/lock_waits.h"
#include "online/spans/misnested.h"
#include "online/spans/queues.h"
#include "online/spans/spans.h"
#include "online/spans/stacks/table.h"
#include "online/spans/sums.h"
#include "online/spans/wakers.h"

#define TO_FREE_SLOT INT64_MIN

/* A goroutine's current state, by slot: one cache line. */
struct to_life {
  to_ns since; /* begin of the state */
  int64_t id;
  uint64_t life; /* 0: the slot is free, and id is TO_FREE_SLOT */
  union {
    struct {                /* running, or in a call */
      int64_t thread, proc; /* for a call: the P at its begin */
      to_ns piece_since;    /* begin of a call's current piece */
    };
    struct { /* runnable: what made it so */
      int64_t made_by;
      uint64_t made_by_life, made_by_stack;
    };
    struct {               /* waiting */
      int64_t last_thread; /* thread it ran on; same place as thread */
      uint32_t queue;      /* if `queues` counts its reason: number of its queue */
      uint32_t lock;       /* TO_LOCK_NONE: unknown */
      int64_t holder;      /* thread that held the lock when the wait began; TO_NONE: unknown */
    };
  };
  uint64_t stack; /* last known own stack: an id of this generation, or TO_STACK_KEPT | number */
  uint8_t state;  /* enum to_go_state */
  uint8_t reason; /* number in known_reasons */
  uint8_t cause;  /* enum to_cause */
  bool known;     /* the begin of the state was seen */
  bool without_p; /* in a call that has lost its P */
  bool by_thread; /* is in calls_by_thread */
  bool unseen;    /* in a call: it lost its P in a way that Go's summaries do not see */
  uint8_t more;   /* TO_MORE_*: is in labels, regions, ranges */
};
_Static_assert(sizeof(struct to_life) == 64, "a cache line each");
#define TO_FOLLOWS(type, a, b) (offsetof(type, b) == offsetof(type, a) + 1)
_Static_assert(TO_FOLLOWS(struct to_life, state, reason) &&
                   TO_FOLLOWS(struct to_life, reason, cause) &&
                   TO_FOLLOWS(struct to_life, cause, known) &&
                   TO_FOLLOWS(struct to_span, state, reason) &&
                   TO_FOLLOWS(struct to_span, reason, cause) &&
                   TO_FOLLOWS(struct to_span, cause, from_known),
               "these four are copied as one");
#undef TO_FOLLOWS

/* A goroutine's birth, by slot. */
struct to_birth {
  to_ns at;
  uint64_t creator; /* life */
  int64_t creator_id, creator_thread;
  uint64_t entry, stack; /* where it begins; where it was created */
  bool known;
};

enum { TO_MORE_LABEL = 1, TO_MORE_REGIONS = 2, TO_MORE_RANGES = 4 };

struct to_label {
  struct to_name *name;
  bool on; /* the goroutine has not left its thread since */
};

/* First fields of the next three. */
struct to_open_link {
  void *below;          /* the next one of the same kind and goroutine; a task has none */
  struct to_name *name; /* NULL: none */
  uint64_t stack;
};

/* A goroutine's open regions: a list, innermost first. */
struct to_open_region {
  void *below;
  struct to_name *name;
  uint64_t stack;
  uint64_t task;
  to_ns since;
  to_ns counted_until; /* for the innermost one: time is complete up to here */
  to_ns assists_since; /* begin of the assist, if assists */
  bool assists;
  struct to_region_time time;
};

struct to_open_range {
  void *below; /* a range of another reason */
  struct to_name *name;
  uint64_t stack;
  struct to_open_range *above;
  int64_t id;
  uint64_t text; /* id of the name at its begin */
  uint64_t life; /* for a P's range: the goroutine on the P at its begin */
  to_ns since;
  uint32_t slot; /* slot of life */
  bool known;
};

struct to_open_task {
  void *below;
  struct to_name *name;
  uint64_t stack;
  uint64_t life, parent;
  int64_t goroutine;
  to_ns since;
};

struct to_proc_life {
  to_ns since;
  int64_t id, thread;
  uint8_t state; /* enum to_proc_state */
  bool known;
};

struct to_thread_life {
  to_ns since;
  int64_t goroutine;
  int64_t proc;  /* only if Ps are wanted as well */
  uint8_t state; /* enum to_thread_state */
  bool known;
  bool seen; /* with a goroutine; false: only with a P */
};

/* Calls ended() when a wait ends that took at least min_ns. */
struct to_long_wait {
  to_ns min_ns;
  void *self;
  tb_rc (*ended)(void *self, const struct to_generation *gen, const struct to_life *g);
};

enum { TO_SPANS_PROCS_NEAR = 256, TO_SPANS_EVENT_MAX = 8, TO_SPANS_REASONS = 64 };

struct to_spans {
  struct tb_mem *mem;
  uint32_t wanted;
  bool times_only;
  struct to_span_sink sink;
  /* Spans of a state are passed to the sink only if they are longer; -1: all. Waits by reason; idle ones only if cut. */
  to_ns longer_than[TO_GO_SYSCALL + 1];
  to_ns waits_longer_than[TO_REASONS_MAX];
  struct to_long_wait long_wait;
  struct to_span_sums *sums;        /* counts goroutines' spans; NULL: not counted */
  struct to_queues *queues;         /* counts waits by stack; NULL: not counted */
  struct to_lock_waits *lock_waits; /* counts waits for locks; NULL: not counted */
  struct to_wakers *wakers;         /* records who ended the waits in queues; NULL: not recorded */
  struct to_calls *calls;           /* counts calls instead of emitting spans; NULL: not counted */
  struct to_stack_table stacks;
  struct to_lock_table locks;

  struct to_life *lives; /* by slot */
  struct to_birth *births;
  size_t slots, births_room; /* slots: room of both */
  uint32_t slots_end;        /* slots from here on have not been used in this epoch */
  uint64_t last_life;

  uint32_t runs_on[TO_SPANS_PROCS_NEAR + 1]; /* by id + 1: to__spans_runs_on() */
  /* By P, id + 1: slot of the goroutine that last began a call there; 0 after a goroutine that began its call there left that P.
   * Go's summaries see the loss of a P by this alone. */
  uint32_t calls_on[TO_SPANS_PROCS_NEAR + 1];
  /* By P, id + 1: time in which calls had it, without open calls. */
  uint64_t call_ns[TO_SPANS_PROCS_NEAR + 1];
  uint64_t leaving; /* life of a goroutine that released its P just before it ended in a call */
  to_ns leaving_since;
  bool leaving_seen; /* seen by Go's summaries */
  struct tb_map runs_on_far;
  struct tb_map procs; /* id -> struct to_proc_life */
  struct tb_map by_id; /* id -> slot, after a goroutine was found neither by P nor by thread */
  struct tb_map calls_by_thread;   /* thread -> slot of a goroutine in a call that lost its P */
  struct tb_map threads;           /* id -> struct to_thread_life; only if wanted */
  struct tb_map ranges[TO_RANGES]; /* by kind: id -> the innermost struct to_open_range */
  struct tb_map open_stops;        /* hash of goroutine and text -> struct to_open_range */
  struct to_spare *spare;          /* free blocks */
  struct tb_map tasks;             /* id -> struct to_open_task */
  struct tb_map regions;           /* slot -> struct to_open_region */
  struct tb_map labels;            /* slot -> struct to_label */
  struct to_names names;
  struct to_reasons known_reasons;
  enum to_program program;          /* of the newest generation */
  struct to_misnesting *misnesting; /* NULL: all regions were properly nested */

  bool thins;              /* lengths of states that end are not counted */
  bool knows_ids;          /* by_id is up to date */
  tb_rc failed;            /* error of a call that returns NULL for unknown goroutines, too */
  tb_rc rc;                /* error of a call that returns NULL */
  uint64_t events, walked; /* walked: slots visited at the ends of generations */
  size_t taken;            /* events of the last slice, including the one that failed */
  bool heard;              /* an event in this epoch */

  /* TO_WANT_WASTE: only Ps below TO_SPANS_PROCS_NEAR count */
  bool idle_procs[TO_SPANS_PROCS_NEAR + 1]; /* by id + 1 */
  unsigned idle;
  bool wasting;
  to_ns wasting_since;
  uint64_t wasted;

  /* TO_WANT_STATES, required by TO_WANT_WASTE. area: sum of the times of leaving the state minus those of entering it */
  struct to_state_count {
    uint64_t n, most, area;
  } state_count[TO_GO_SYSCALL + 1];

  struct {
    unsigned n;     /* open stops of the world */
    uint64_t since; /* time of runnable goroutines when the first of them began */
    uint64_t total; /* in stops that have ended */
  } stops;

  bool kept;             /* stacks of open spans were stored when the last generation ended */
  to_ns began, now;      /* of this epoch */
  to_ns generation_from; /* begin of the last generation */

  struct to_reason_met {
    uint64_t string; /* id + 1; 0: none */
    int64_t holder;  /* thread that holds the lock; TO_NONE: unknown */
    uint32_t lock;   /* lock of waits with this string */
    uint8_t reason;
  } reasons[TO_SPANS_REASONS]; /* of this generation */

  unsigned n, n_done;                       /* in slice */
  struct to_spans_slice *slice, *own_slice; /* own_slice: NULL if the slice is shared */
};

/* Returns true if the goroutine is in a call and the trace has shown how the call lost its P. */
static inline bool to__lost_proc(const struct to_life *g) {
  return g->without_p && g->piece_since != g->since;
}

static inline bool to__wants(const struct to_spans *s, uint32_t bits) {
  return (s->wanted & bits) != 0;
}

/* Returns the slot of the goroutine that last ran on the P; 0: none. */
static inline uint32_t to__spans_runs_on(const struct to_spans *s, int64_t proc) {
  uint64_t place = (uint64_t)proc + 1;

  if (TB_LIKELY(place <= TO_SPANS_PROCS_NEAR)) return s->runs_on[place];
  const uint64_t *far = tb_map_find(&s->runs_on_far, (uint64_t)proc);
  return far == NULL ? 0 : (uint32_t)*far;
}

void to__spans_waste_begins(struct to_spans *s, to_ns now);
void to__spans_waste_ends(struct to_spans *s, to_ns now);
/* Call it when a goroutine or a P has changed its state. */
static inline void to__spans_waste(struct to_spans *s, to_ns now) {
  bool wastes = s->state_count[TO_GO_RUNNABLE].n > 0 && s->idle > 0;

  if (wastes == s->wasting) return;
  if (wastes)
    to__spans_waste_begins(s, now);
  else
    to__spans_waste_ends(s, now);
}

/* Counts a goroutine's change of state. TO_GO_NOT_EXIST: before its birth or after its end. */
static inline __attribute__((always_inline)) void
to__spans_count(struct to_spans *s, enum to_go_state before, enum to_go_state after, to_ns now) {
  if (!to__wants(s, TO_WANT_STATES)) return;
  struct to_state_count *from = &s->state_count[before], *to = &s->state_count[after];
  from->n--;
  from->area += (uint64_t)now;
  to->area -= (uint64_t)now;
  if (++to->n > to->most) to->most = to->n;
  if (before == TO_GO_RUNNABLE && TB_UNLIKELY(s->wasting) && from->n == 0)
    to__spans_waste_ends(s, now);
  if (after == TO_GO_RUNNABLE && s->idle > 0 && !s->wasting) to__spans_waste_begins(s, now);
}

/* Returns NULL if the goroutine is unknown, or on an error, which is in s->failed. */
struct to_life *to__spans_by_id(struct to_spans *s, int64_t id);
/* Returns the time that goroutines were runnable up to now, plus a constant. */
static inline uint64_t to__runnable_time(const struct to_spans *s, to_ns now) {
  const struct to_state_count *count = &s->state_count[TO_GO_RUNNABLE];

  return count->area + count->n * (uint64_t)now;
}

/* Records the begin or the end of a stop of the world. */
static inline void to__spans_stop(struct to_spans *s, bool begins, to_ns now) {
  if (begins && s->stops.n++ == 0) s->stops.since = to__runnable_time(s, now);
  if (!begins && s->stops.n > 0 && --s->stops.n == 0)
    s->stops.total += to__runnable_time(s, now) - s->stops.since;
}

/* A goroutine becomes known: its time before does not count as time in the stop. */
static inline void to__spans_stop_meets(struct to_spans *s, enum to_go_state state, to_ns now) {
  if (s->stops.n > 0 && state == TO_GO_RUNNABLE)
    s->stops.since += (uint64_t)now - (uint64_t)s->began;
}

struct to_life *to__spans_context_far(struct to_spans *s, const struct to_event *ev);

/* Returns the goroutine of the event's context; NULL: unknown. */
static inline struct to_life *to__spans_context(struct to_spans *s, const struct to_event *ev) {
  struct to_life *g = &s->lives[to__spans_runs_on(s, ev->p)];

  return TB_LIKELY(g->id == ev->g && g->life != 0) ? g : to__spans_context_far(s, ev);
}

enum { TO_KEPT_BIT = 63 };
/* A stack with this bit is a number of the stack table, otherwise an id of this generation. */
#define TO_STACK_KEPT (UINT64_C(1) << TO_KEPT_BIT)

/* Passes the slice to the sink, and releases names that its spans lent. */
TB_MUST tb_rc to__spans_flush(struct to_spans *s, const struct to_generation *gen);
/* Makes a span of this kind with the context of the event, which ends it; all else is 0. The slice must have room. */
struct to_span *to__spans_put(struct to_spans *s, const struct to_event *ev,
                              enum to_span_kind kind);
static inline struct to_span_more *to__spans_more(struct to_spans *s, struct to_span *span) {
  struct to_span_more *more = &s->slice->more[span - s->slice->out];

  *more = (struct to_span_more){ 0 };
  span->more = more;
  return more;
}
/* Marks stacks of a generation as lost, if they were not stored. */
TB_MUST tb_rc to__spans_lose_stacks(struct to_spans *s);
/* Implements to_spans_stack(). */
TB_MUST tb_rc to__stack_number(struct to_stack_table *stacks, const struct to_generation *gen,
                               uint64_t stack, uint32_t *out);
/* Stores a stack beyond its generation. gen NULL: the stack is lost. */
TB_MUST tb_rc to__spans_keep(struct to_spans *s, const struct to_generation *gen, uint64_t *stack);
/* Stores stacks of all open spans except goroutines'. */
TB_MUST tb_rc to__spans_rare_stacks(struct to_spans *s, const struct to_generation *gen);
static inline struct to_string to__name_text(const struct to_name *name) {
  if (name == NULL) return (struct to_string){ 0 };
  return (struct to_string){ name->text, name->len };
}

/* Return the event's text and stack; none if only times are wanted. */
static inline struct to_string to__string_of(const struct to_spans *s,
                                             const struct to_generation *gen, uint64_t id) {
  struct to_string text = { 0 };

  if (!s->times_only && gen != NULL && !to_generation_string(gen, id, &text))
    text = (struct to_string){ 0 };
  return text;
}

static inline uint64_t to__stack_of(const struct to_spans *s, const struct to_event *ev) {
  uint64_t id = s->times_only ? TO_NO_STACK : to_event_stack(ev);

  return id == TO_NO_STACK ? 0 : id;
}

/* Handles an event of a range, task, region, label, log, sample or metric. */
TB_MUST tb_rc to__spans_rare(struct to_spans *s, const struct to_generation *gen,
                             const struct to_event *ev);
/* Handles a log, a sample or a metric. */
void to__spans_moment(struct to_spans *s, const struct to_generation *gen,
                      const struct to_event *ev);
void to__spans_procs_change(struct to_spans *s, const struct to_event *ev);
/* Changes a P's state, if spans of Ps are wanted. known: with this event. */
TB_MUST tb_rc to__spans_proc_to(struct to_spans *s, const struct to_event *ev, int64_t id,
                                enum to_proc_state state, int64_t thread, bool known);
TB_MUST tb_rc to__spans_proc_status(struct to_spans *s, const struct to_event *ev);
TB_MUST tb_rc to__spans_change_thread(struct to_spans *s, const struct to_event *ev, int64_t id,
                                      enum to_thread_state state);
/* Changes a thread's state, if spans of threads are wanted. */
TB_MUST static inline tb_rc to__spans_thread(struct to_spans *s, const struct to_event *ev,
                                             int64_t id, enum to_thread_state state) {
  return TB_LIKELY(!to__wants(s, TO_WANT(THREAD))) ? TB_OK
                                                   : to__spans_change_thread(s, ev, id, state);
}
/* Counts the goroutine's state up to now for its innermost open region, if any. */
void to__region_counts(struct to_spans *s, const struct to_life *g, unsigned state, to_ns now);
/* Adds the times of the innermost region, which ends, to the next outer one. */
void to__region_joins(struct to_open_region *region, to_ns now);
/* Begins or ends a mark assist. */
void to__region_assists(struct to_spans *s, const struct to_event *ev);
/* Returns true if no outer region is of its task. */
bool to__region_in_its_task(const struct to_open_region *region);
/* Call it when a state of the goroutine ends. */
static inline void to__region_time(struct to_spans *s, const struct to_life *g, unsigned state,
                                   to_ns now) {
  if (TB_UNLIKELY((g->more & TO_MORE_REGIONS) != 0)) to__region_counts(s, g, state, now);
}
/* Begins a stop of the world. to__open_stop_take() ends it, and returns NULL if the stop is not in open_stops. */
TB_MUST tb_rc to__open_stop_begins(struct to_spans *s, struct to_open_range *open, to_ns now);
struct to_open_range *to__open_stop_take(struct to_spans *s, int64_t id, uint64_t text);
/* Records an end of a region that is not the innermost one (open); open NULL: unknown. */
TB_MUST tb_rc to__misnested(struct to_spans *s, const struct to_generation *gen,
                            const struct to_event *ev, const struct to_open_region *open);
/* Returns the label of a goroutine that is on its thread. */
struct to_string to__spans_label(const struct to_spans *s, const struct to_life *g);
void to__spans_label_off(struct to_spans *s, const struct to_life *g);
/* Ends all that is open on a goroutine that ends. */
TB_MUST tb_rc to__spans_end_more(struct to_spans *s, const struct to_generation *gen,
                                 const struct to_event *ev, struct to_life *g,
                                 struct to_string *out_label);
void to__spans_threads_init(struct to_spans *s);
void to__spans_threads_clear(struct to_spans *s);
void to__spans_threads_fini(struct to_spans *s);
void to__spans_rare_init(struct to_spans *s);
void to__spans_rare_clear(struct to_spans *s);
void to__spans_rare_fini(struct to_spans *s);

#endif
