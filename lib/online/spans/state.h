/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that make spans: private to this room.
 *
 * spans.c passes over the events and keeps the states of goroutines; threads.c has those of Ps and threads, rare.c what is
 * rare: ranges, tasks, regions, labels; region_time.c counts what goroutines do in regions. open.c lists what is open, object.c has
 * the rest. */
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

/* What a goroutine is in the middle of, by slot: one cache line. */
struct to_life {
  to_ns since; /* in its state */
  int64_t id;
  uint64_t life; /* 0: the slot is free; id is TO_FREE_SLOT then */
  union {
    struct {                /* it runs, or sits in a call */
      int64_t thread, proc; /* of a call: the P that it began with */
      to_ns piece_since;    /* of a call */
    };
    struct { /* it is runnable: what made it so */
      int64_t made_by;
      uint64_t made_by_life, made_by_stack;
    };
    struct {               /* it waits */
      int64_t last_thread; /* what it ran on, in the place of thread */
      uint32_t queue;      /* for a reason of those in queues: its number there */
      uint32_t lock;       /* TO_LOCK_NONE: none is known */
      int64_t holder;      /* thread that held the lock when the wait began, TO_NONE: not known */
    };
  };
  uint64_t stack; /* its own, the last one known: of this generation, or kept */
  uint8_t state;  /* enum to_go_state */
  uint8_t reason; /* of known_reasons */
  uint8_t cause;  /* enum to_cause */
  bool known;     /* the begin of its state */
  bool without_p; /* in a call that has lost its P */
  bool by_thread; /* it stands in calls_by_thread */
  bool unseen;    /* in a call: Go's summaries do not see that it lost its P */
  uint8_t more;   /* TO_MORE_LABEL: in labels; TO_MORE_REGIONS: in regions */
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

/* Of its birth, by slot. */
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

/* What the next three begin with. */
struct to_open_link {
  void *below;          /* the next one of the same kind and goroutine; a task has none */
  struct to_name *name; /* NULL: none */
  uint64_t stack;
};

/* Regions that are open on a goroutine: the one below is next. */
struct to_open_region {
  void *below;
  struct to_name *name;
  uint64_t stack;
  uint64_t task;
  to_ns since;
  to_ns counted_until; /* time has what came before; of the innermost one */
  to_ns assists_since; /* if it assists */
  bool assists;
  struct to_region_time time;
};

struct to_open_range {
  void *below; /* a range of another reason */
  struct to_name *name;
  uint64_t stack;
  struct to_open_range *above;
  int64_t id;
  uint64_t text; /* the name, as the begin has it */
  uint64_t life; /* of a P's range: the goroutine that ran there when it began */
  to_ns since;
  uint32_t slot; /* of the life */
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
  bool seen; /* with a goroutine; else only with a P */
};

enum { TO_SPANS_PROCS_NEAR = 256, TO_SPANS_EVENT_MAX = 8, TO_SPANS_REASONS = 64 };

struct to_spans {
  struct tb_mem *mem;
  uint32_t wanted;
  bool times_only;
  struct to_span_sink sink;
  to_ns longer_than[TO_GO_SYSCALL +
                    1]; /* of these states only spans that are longer come out; -1: all */
  to_ns waits_longer_than
      [TO_REASONS_MAX]; /* the same of WAITING, by reason; idle ones come out if they are cut */
  struct to_span_sums *sums;        /* every span of a goroutine is counted here; NULL: nowhere */
  struct to_queues *queues;         /* and waits at a stack here; NULL: nowhere */
  struct to_lock_waits *lock_waits; /* and waits for a lock here; NULL: nowhere */
  struct to_wakers *wakers;         /* what ended the waits of queues is kept here; NULL: nowhere */
  struct to_calls *calls; /* and calls here, whose spans do not come out then; NULL: nowhere */
  struct to_stack_table stacks;
  struct to_lock_table locks;

  struct to_life *lives; /* by slot */
  struct to_birth *births;
  size_t slots, births_room; /* slots: room of both */
  uint32_t slots_end;        /* from here on none was used in this epoch */
  uint64_t last_life;

  uint32_t runs_on[TO_SPANS_PROCS_NEAR + 1]; /* by id + 1: to__spans_runs_on() */
  /* By P, id + 1: the slot of the last one that began a call there, until some goroutine that began its call there leaves it. Go's
   * summaries see a P being lost by this alone. */
  uint32_t calls_on[TO_SPANS_PROCS_NEAR + 1];
  /* By P, id + 1: the time in which calls held it, those that go on left out. */
  uint64_t call_ns[TO_SPANS_PROCS_NEAR + 1];
  uint64_t leaving; /* the life that gave its P up just before its end in a call */
  to_ns leaving_since;
  bool leaving_seen; /* by Go's summaries */
  struct tb_map runs_on_far;
  struct tb_map procs; /* id -> struct to_proc_life */
  struct tb_map by_id; /* id -> slot, once a goroutine was found neither by P nor by thread */
  struct tb_map
      calls_by_thread;   /* slots of those that sit in a call without the P they are known by */
  struct tb_map threads; /* id -> struct to_thread_life; only if wanted */
  struct tb_map ranges[TO_RANGES]; /* id -> the last struct to_open_range; by kind */
  struct tb_map open_stops; /* hash of goroutine and text -> struct to_open_range */
  struct to_spare *spare;          /* blocks of what has ended */
  struct tb_map tasks;             /* id -> struct to_open_task */
  struct tb_map regions;           /* slot -> struct to_open_region */
  struct tb_map labels;            /* slot -> struct to_label */
  struct to_names names;
  struct to_reasons known_reasons;
  struct to_misnesting *misnesting; /* NULL: no end of a region was */

  bool knows_ids;          /* by_id is kept up */
  tb_rc failed;            /* of what answers NULL where nothing is known */
  tb_rc rc;                /* of what answers NULL */
  uint64_t events, walked; /* slots at the ends of generations */
  size_t taken;            /* events of the last slice, the one that failed included */
  bool heard;              /* an event in this epoch */

  /* TO_WANT_WASTE: of Ps beyond the near ones nothing is counted */
  bool idle_procs[TO_SPANS_PROCS_NEAR + 1]; /* by id + 1 */
  unsigned idle;
  bool wasting;
  to_ns wasting_since;
  uint64_t wasted;

  /* TO_WANT_STATES, which TO_WANT_WASTE needs. area: the sum of the moments of leaving the state less that of entering it */
  struct to_state_count {
    uint64_t n, most, area;
  } state_count[TO_GO_SYSCALL + 1];

  struct {
    unsigned n;     /* stops of the world that go on */
    uint64_t since; /* time of runnable goroutines when the first of them began */
    uint64_t total; /* in stops that are over */
  } stops;

  bool kept;        /* the stacks of what is open, since the last generation ended */
  to_ns began, now; /* of this epoch */
  to_ns generation_from; /* where the last generation began */

  struct to_reason_met {
    uint64_t string; /* id + 1; 0: none */
    int64_t holder;  /* of the lock; TO_NONE: not known */
    uint32_t lock;   /* that waits with this string are for */
    uint8_t reason;
  } reasons[TO_SPANS_REASONS]; /* of this generation */

  struct to_name *done[3 * TO_SPANS_SLICE]; /* names that spans of the slice may lend */
  unsigned n, n_done;
  struct to_span out[TO_SPANS_SLICE];
  struct to_span_more more[TO_SPANS_SLICE]; /* of the span at the same place, if it has any */
  struct to_region_time region_time[TO_SPANS_SLICE]; /* likewise */
};

/* Of a goroutine in a call: the trace has shown how it lost its P. */
static inline bool to__lost_proc(const struct to_life *g) {
  return g->without_p && g->piece_since != g->since;
}

static inline bool to__wants(const struct to_spans *s, uint32_t bits) {
  return (s->wanted & bits) != 0;
}

/* Slot of the goroutine that last ran on the P, 0 where there is none. */
static inline uint32_t to__spans_runs_on(const struct to_spans *s, int64_t proc) {
  uint64_t place = (uint64_t)proc + 1;

  if (TB_LIKELY(place <= TO_SPANS_PROCS_NEAR)) return s->runs_on[place];
  const uint64_t *far = tb_map_find(&s->runs_on_far, (uint64_t)proc);
  return far == NULL ? 0 : (uint32_t)*far;
}

void to__spans_waste_begins(struct to_spans *s, to_ns now);
void to__spans_waste_ends(struct to_spans *s, to_ns now);
/* A goroutine or a P has changed its state. */
static inline void to__spans_waste(struct to_spans *s, to_ns now) {
  bool wastes = s->state_count[TO_GO_RUNNABLE].n > 0 && s->idle > 0;

  if (wastes == s->wasting) return;
  if (wastes)
    to__spans_waste_begins(s, now);
  else
    to__spans_waste_ends(s, now);
}

/* A goroutine goes from one state to another; one that is not there is in TO_GO_NOT_EXIST. */
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

/* NULL: none is known, or s->failed. */
struct to_life *to__spans_by_id(struct to_spans *s, int64_t id);
/* The time that goroutines were runnable up to now, but for a constant. */
static inline uint64_t to__runnable_time(const struct to_spans *s, to_ns now) {
  const struct to_state_count *count = &s->state_count[TO_GO_RUNNABLE];

  return count->area + count->n * (uint64_t)now;
}

/* A stop of the world begins, or ends. */
static inline void to__spans_stop(struct to_spans *s, bool begins, to_ns now) {
  if (begins && s->stops.n++ == 0) s->stops.since = to__runnable_time(s, now);
  if (!begins && s->stops.n > 0 && --s->stops.n == 0)
    s->stops.total += to__runnable_time(s, now) - s->stops.since;
}

/* A goroutine is known from now on: in a stop its time before counts for nothing. */
static inline void to__spans_stop_meets(struct to_spans *s, enum to_go_state state, to_ns now) {
  if (s->stops.n > 0 && state == TO_GO_RUNNABLE)
    s->stops.since += (uint64_t)now - (uint64_t)s->began;
}

struct to_life *to__spans_context_far(struct to_spans *s, const struct to_event *ev);

/* The goroutine of the event's context; NULL: none is known. */
static inline struct to_life *to__spans_context(struct to_spans *s, const struct to_event *ev) {
  struct to_life *g = &s->lives[to__spans_runs_on(s, ev->p)];

  return TB_LIKELY(g->id == ev->g && g->life != 0) ? g : to__spans_context_far(s, ev);
}

enum { TO_KEPT_BIT = 63 };
#define TO_STACK_KEPT (UINT64_C(1) << TO_KEPT_BIT) /* else the id is one of this generation */

/* The slice goes out: names that its spans lend are let go. */
TB_MUST tb_rc to__spans_flush(struct to_spans *s, const struct to_generation *gen);
/* A span of this kind that ends with the event, by its context; all else is 0. There is room for it. */
struct to_span *to__spans_put(struct to_spans *s, const struct to_event *ev,
                              enum to_span_kind kind);
static inline struct to_span_more *to__spans_more(struct to_spans *s, struct to_span *span) {
  struct to_span_more *more = &s->more[span - s->out];

  *more = (struct to_span_more){ 0 };
  span->more = more;
  return more;
}
/* Stacks of a generation that is gone, and were not kept, are no longer known. */
TB_MUST tb_rc to__spans_lose_stacks(struct to_spans *s);
/* to_spans_stack() */
TB_MUST tb_rc to__stack_number(struct to_stack_table *stacks, const struct to_generation *gen,
                               uint64_t stack, uint32_t *out);
/* Makes the stack last beyond its generation. gen NULL: it is lost. */
TB_MUST tb_rc to__spans_keep(struct to_spans *s, const struct to_generation *gen, uint64_t *stack);
/* Of all that is open but goroutines. */
TB_MUST tb_rc to__spans_rare_stacks(struct to_spans *s, const struct to_generation *gen);
static inline struct to_string to__name_text(const struct to_name *name) {
  if (name == NULL) return (struct to_string){ 0 };
  return (struct to_string){ name->text, name->len };
}

/* Text and stack as the event names them; none where only times are wanted. */
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

/* Ranges, tasks, regions, labels, logs, samples, metrics. */
TB_MUST tb_rc to__spans_rare(struct to_spans *s, const struct to_generation *gen,
                             const struct to_event *ev);
/* Ps from a number on do not exist any more: they only look idle. */
/* A log, a sample, a metric. */
void to__spans_moment(struct to_spans *s, const struct to_generation *gen,
                      const struct to_event *ev);
void to__spans_procs_change(struct to_spans *s, const struct to_event *ev);
/* A P's state, if spans of Ps are wanted. known: it changes with this event. */
TB_MUST tb_rc to__spans_proc_to(struct to_spans *s, const struct to_event *ev, int64_t id,
                                enum to_proc_state state, int64_t thread, bool known);
TB_MUST tb_rc to__spans_proc_status(struct to_spans *s, const struct to_event *ev);
TB_MUST tb_rc to__spans_change_thread(struct to_spans *s, const struct to_event *ev, int64_t id,
                                      enum to_thread_state state);
/* A thread's state, if spans of threads are wanted. */
TB_MUST static inline tb_rc to__spans_thread(struct to_spans *s, const struct to_event *ev,
                                             int64_t id, enum to_thread_state state) {
  return TB_LIKELY(!to__wants(s, TO_WANT(THREAD))) ? TB_OK
                                                   : to__spans_change_thread(s, ev, id, state);
}
/* The innermost region that is open on the goroutine, if any, counts its state up to now. */
void to__region_counts(struct to_spans *s, const struct to_life *g, unsigned state, to_ns now);
/* The innermost one ends, and the one around it goes on. */
void to__region_joins(struct to_open_region *region, to_ns now);
/* A mark assist begins or ends. */
void to__region_assists(struct to_spans *s, const struct to_event *ev);
/* No region around it is of its task. */
bool to__region_in_its_task(const struct to_open_region *region);
/* A state of the goroutine ends. */
static inline void to__region_time(struct to_spans *s, const struct to_life *g, unsigned state,
                                   to_ns now) {
  if (TB_UNLIKELY((g->more & TO_MORE_REGIONS) != 0)) to__region_counts(s, g, state, now);
}
/* A stop of the world begins. take: it ends; NULL: it is not found so. */
TB_MUST tb_rc to__open_stop_begins(struct to_spans *s, struct to_open_range *open, to_ns now);
struct to_open_range *to__open_stop_take(struct to_spans *s, int64_t id, uint64_t text);
/* The event ends a region, but not the innermost one; NULL: none is known. */
TB_MUST tb_rc to__misnested(struct to_spans *s, const struct to_generation *gen,
                            const struct to_event *ev, const struct to_open_region *open);
/* The label of a goroutine that is on its thread. */
struct to_string to__spans_label(const struct to_spans *s, const struct to_life *g);
void to__spans_label_off(struct to_spans *s, const struct to_life *g);
/* The goroutine ends, with what was open on it. */
TB_MUST tb_rc to__spans_end_more(struct to_spans *s, const struct to_generation *gen,
                                 const struct to_event *ev, struct to_life *g,
                                 struct to_string *out_label);
void to__spans_threads_init(struct to_spans *s);
void to__spans_threads_clear(struct to_spans *s); /* forgets all */
void to__spans_threads_fini(struct to_spans *s);
void to__spans_rare_init(struct to_spans *s);
void to__spans_rare_clear(struct to_spans *s); /* forgets all that is open */
void to__spans_rare_fini(struct to_spans *s);

#endif
