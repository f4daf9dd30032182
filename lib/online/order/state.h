/* SPDX-License-Identifier: Apache-2.0 */
/* The orderer's state between events: threads, procs, goroutines, tasks, the collector.
 *
 * "No goroutine" and "no proc" are objects, too (no_g, no_p, id -1), so a thread always points to one and
 * no check is needed; if a trace uses id -1, they hold that goroutine's or proc's state. A goroutine's
 * object stays while a thread is bound to it, even after its end: two threads may name the same one.
 */
#ifndef TO_ORDER_STATE_H
#define TO_ORDER_STATE_H

#include "online/event/names.h"
#include "online/event/tables.h"
#include "online/order/goroutines.h"
#include "online/order/handler.h"
#include "online/order/limits.h"
#include "wire/experiments.h"

/* Rules and cursor are inlined into one loop. Without the attribute the compiler calls most of them, which
 * doubles the time of an event (channels: 49 instead of 25 ns). With a sanitizer's checks the inlined loop
 * would take a minute to compile. */
#ifdef TC_SANITIZED
#define TO_HOT static inline
#else
#define TO_HOT static inline __attribute__((always_inline))
#endif

/* Open ranges of a goroutine, in the order of Go's reader: stops of the world and at most one assist. There are usually few; the
 * texts of many stops are in a map. */
struct to_range {
  uint64_t text; /* string id, STW only */
  uint8_t type;  /* the event that begins it */
};
struct to_ranges {
  struct to_range *items;
  uint32_t count, cap;
  uint32_t assist;      /* place of the assist, from 1; 0: none */
  struct tb_map *texts; /* of all stops; NULL: there are few */
};

struct to_region {
  struct to_region *below;
  uint64_t task;
  struct to_name *name;
};

/* State that few goroutines have. */
struct to_g_more {
  struct to_region *regions;
  struct to_ranges ranges;
  bool dropped_regions; /* after a wrong end: ends of the dropped regions may follow */
};

struct to_p {
  int64_t id;
  uint64_t seq_gen, seq;
  uint8_t status; /* enum tw_proc_status */
  bool exists, sweeps;
  struct to_thread *holder; /* the last thread that took this proc; it may hold another by now */
};

/* The reason why an event waits. */
enum to_want_kind {
  TO_WANT_G_RUNNABLE,
  TO_WANT_G_WAITING,
  TO_WANT_P_IDLE,
  TO_WANT_P_IN_SYSCALL,
  TO_WANT_P_OUT_OF_SYSCALL,
  TO_WANT_OWN_P_GONE, /* for the thread `id` */
  TO_WANT_GC,
  TO_WANT_HANDLER,  /* a handler's answer may change with each event */
  TO_WANT_SEQUENCE, /* the first of TW_SEQUENCES_MAX, one for each sequence of an experiment */
};
struct to_want {
  uint64_t id, seq;
  uint8_t kind; /* enum to_want_kind */
};

/* A thread: its scheduling context, and a cursor that has read its next event's type and time, and
 * checked the event's arguments. */
struct to_thread {
  uint8_t type;
  uint8_t has; /* bindings: TO_HAS_M, _P, _G; without TO_HAS_M the object is for batches without a
                * thread, and nothing is ever bound to it */
  bool exists; /* it has tried to advance, or a status named it */
  to_ns time;  /* of the next event */
  const unsigned char *args, *end;
  const unsigned char *near_end; /* from here on the fast path might read past the end */
  struct to_g *g;
  struct to_p *p;
  int64_t id;
  const struct to_batch *batch;

  /* While it is parked. */
  struct to_thread *next_waiting; /* with the same key */
  size_t parked_place;
  struct to_want want;
};

struct to_parked {
  struct tb_mem *mem;
  struct to_thread **heap; /* by time */
  size_t count, cap;
  struct tb_map waiting; /* key of a want -> first waiting thread */
  uint64_t tries;        /* fuel used: failed attempts, and threads looked at */
};

enum { TO_HAS_M = 1, TO_HAS_P = 2, TO_HAS_G = 4 };

struct to_task {
  uint64_t parent;
  struct to_name *name;
};

enum {
  TO_PROCS_NEAR = 256,
  TO_SLICE = 64,
  TO_STEP_EVENTS_MAX = 3,
  TO_NO_TIMED_EVENT = 0xff,
  TO_HANDLERS_MAX = 32
};

/* The slice so far: the place for its next event, and the time of the last event of all. */
struct to_written {
  struct to_event *next;
  to_ns last;
};

enum to_gc { TO_GC_UNDETERMINED, TO_GC_NOT_RUNNING, TO_GC_RUNNING };

struct to_order {
  struct tb_mem *mem;
  struct tb_diag *diag;
  struct to_generation *gen;
  uint64_t gen_number, first_gen;         /* of this epoch; 0: none yet */
  uint32_t gen_count;                     /* generations begun */
  uint64_t stack_ids_end, string_ids_end; /* all smaller ids exist */

  struct to_g no_g;
  struct to_p no_p;
  struct to_thread no_thread;
  struct to_goroutines goroutines;
  struct to_p *near_procs[TO_PROCS_NEAR];
  struct tb_map procs;   /* id -> struct to_p */
  struct tb_map threads; /* id -> struct to_thread */
  struct tb_map tasks;   /* id -> struct to_task */
  struct to_names names; /* of tasks and regions */
  uint64_t gc_seq;
  enum to_gc gc;
  struct tb_map sequences[TW_SEQUENCES_MAX]; /* id -> last number in this generation */

  /* The frontier: a min-heap by time of the threads that have events left, followed by some places
   * without a thread whose time is INT64_MAX. */
  struct to_heap_entry *frontier;
  size_t frontier_len, frontier_cap;
  to_ns turn_end;    /* up to here the root's thread goes on; then another or a CPU sample is due */
  to_ns sample_time; /* of the next CPU sample; INT64_MAX if none is left */
  const struct to_heap_entry *sample, *samples_end;

  uint8_t arg_counts[256]; /* after dt, by event type; TO_NO_TIMED_EVENT: none such */
  uint8_t
      longer_end[256]; /* with so many continuation bytes, eight bytes do not hold all arguments */
  double ns_per_tick;
  uint64_t ticks_whole;     /* nanoseconds of a tick if that is a whole number, else 0 */
  uint64_t ticks_exact_end; /* below it the integer product equals the double one */

  struct to_event_sink sink;
  struct to_parked parked;
  uint64_t events, syncs;
  uint64_t added;            /* events added: Syncs, and all but the first event of a step */
  uint64_t lone_region_ends; /* of regions that began before the trace */
  bool
      past_annotations; /* faults of the program's annotations are stored and do not end the order */
  struct tb_diag misannotated; /* the first one */
  uint64_t exact_tries;        /* failed attempts in the order of Go's reader */
  struct to_limits limits;
  bool pext; /* the processor has a fast pext instruction */
  struct to_written written;
  struct to_event out[TO_SLICE];

  struct to_handler handlers[TO_HANDLERS_MAX];
  unsigned n_handlers;
  const struct to_handler *handler[TW_OWN_EVENTS_MAX]; /* by event of this generation; NULL: none */
};

/* The input of a rule: an event, and what `ready` has found. */
struct to_step {
  struct to_thread *t;
  uint64_t arg[TW_TIMED_ARGS_MAX];
  to_ns time, last; /* of the event as written; of the last event staged */
  uint8_t type;
  struct to_g *g;       /* the goroutine the event names */
  struct to_p *p;       /* the proc it names */
  struct to_event *out; /* place for the step's next event; committed only after the whole step */
};

void to__state_init(struct to_order *order, struct tb_mem *mem);
/* Forgets everything, for a new epoch. */
void to__state_clear(struct to_order *order);
void to__state_fini(struct to_order *order);

TO_HOT bool g_exists(const struct to_g *g) {
  return g->status != TO_G_GONE;
}

/* Goroutines. look returns NULL or one that may be gone; find NULL or one that exists; claim adds a missing one. */
struct to_g *to__g_look_far(struct to_order *order, int64_t id);
void to__g_drop_more(struct to_order *order, struct to_g *g);
TB_MUST tb_rc to__g_more(struct to_order *order, struct to_g *g, struct to_g_more **out);

TO_HOT struct to_g *to__g_look(struct to_order *order, int64_t id) {
  struct to_g *g = to__goroutines_find(&order->goroutines, id);

  return TB_LIKELY(g != NULL) ? g : to__g_look_far(order, id);
}

TO_HOT struct to_g *to__g_find(struct to_order *order, int64_t id) {
  struct to_g *g = to__g_look(order, id);

  return g != NULL && g_exists(g) ? g : NULL;
}

TB_MUST TO_HOT tb_rc to__g_claim(struct to_order *order, int64_t id, struct to_g **out) {
  struct to_g *g = to__goroutines_find(&order->goroutines, id);

  if (g == NULL && TB_LIKELY(id != TO_NONE)) return to__goroutines_add(&order->goroutines, id, out);
  *out = g != NULL ? g : &order->no_g;
  return TB_OK;
}

/* Removes a goroutine that is gone and to which no thread is bound. */
TO_HOT void to__g_unused(struct to_order *order, struct to_g *g) {
  if (g != &order->no_g) to__goroutines_remove(&order->goroutines, g);
}

TO_HOT void to__g_begin(struct to_order *order, struct to_g *g, uint8_t status) {
  g->status = status;
  g->seq_gen = order->gen_count;
  g->seq = 0;
}

TO_HOT void to__g_end(struct to_order *order, struct to_g *g) {
  if (TB_UNLIKELY(g->more != NULL)) to__g_drop_more(order, g);
  g->status = TO_G_GONE;
  if (g->bound == 0) to__g_unused(order, g);
}

struct to_p *to__p_find_far(struct to_order *order, int64_t id);
TB_MUST tb_rc to__p_begin(struct to_order *order, int64_t id, uint8_t status, struct to_p **out);

TO_HOT struct to_p *to__p_find(struct to_order *order, int64_t id) {
  return (uint64_t)id < TO_PROCS_NEAR ? order->near_procs[id] : to__p_find_far(order, id);
}

/* Returns a thread, which may not exist yet, or NULL if the id is unknown. */
struct to_thread *to__thread_find(struct to_order *order, int64_t id);
TB_MUST tb_rc to__thread_claim(struct to_order *order, int64_t id, struct to_thread **out);

/* Binds g to a thread that has no goroutine. (no_g is never released, so threads bound to no_g are not counted.) */
TO_HOT void to__bind_g(struct to_order *order, struct to_thread *t, struct to_g *g) {
  g->bound++;
  t->g = g;
  if (TB_LIKELY(g != &order->no_g)) t->has |= TO_HAS_G;
}

TO_HOT void to__unbind_g(struct to_order *order, struct to_thread *t) {
  struct to_g *g = t->g;

  t->g = &order->no_g;
  t->has &= (uint8_t)~TO_HAS_G;
  if (--g->bound == 0 && !g_exists(g)) to__g_unused(order, g);
}

/* Add and drop a goroutine's innermost region. */
TB_MUST tb_rc to__region_add(struct to_order *order, struct to_g *g, uint64_t task,
                             struct to_string name);
void to__region_drop(struct to_order *order, struct to_g *g);
/* Handles the end of a region that is not the innermost. With past_annotations drops the goroutine's regions and returns TB_OK. */
TB_MUST tb_rc to__region_misnested(struct to_order *order, const struct to_thread *t, uint64_t task,
                                   struct to_string name);
/* Reports a fault of annotations in the thread's next event. Returns TB_OK with past_annotations. */
TB_MUST tb_rc to__misannotated(struct to_order *order, const struct to_thread *t, const char *text);

/* A task must be unknown when it is added, and known when it is dropped. */
TB_MUST tb_rc to__task_add(struct to_order *order, uint64_t id, uint64_t parent,
                           struct to_string name);
void to__task_drop(struct to_order *order, uint64_t id);
/* Handles the second begin of a task. With past_annotations drops the task and returns TB_OK. */
TB_MUST tb_rc to__task_again(struct to_order *order, const struct to_thread *t, uint64_t id);

bool to__has_range(const struct to_ranges *ranges, uint8_t type, uint64_t text);
TB_MUST tb_rc to__begin_range(struct to_order *order, struct to_ranges *ranges, uint8_t type,
                              uint64_t text);
/* Returns false if no range of this type is open. */
bool to__end_range(struct to_ranges *ranges, uint8_t type, uint64_t *out_text);

#endif
