/* SPDX-License-Identifier: Apache-2.0 */
/* The orderer's state between events: threads, procs, goroutines, tasks, the collector.
 *
 * "No goroutine" and "no proc" are objects, too (no_g, no_p, id -1), so a thread always points at one
 * and nothing needs a test; should a trace name -1 itself, they become that goroutine's or proc's state.
 * A goroutine's object stays while a thread is bound to it, even when it is gone: two threads may name
 * the same one.
 */
#ifndef TO_ORDER_STATE_H
#define TO_ORDER_STATE_H

#include "online/event/names.h"
#include "online/event/tables.h"
#include "online/order/goroutines.h"
#include "online/order/handler.h"
#include "online/order/limits.h"
#include "wire/experiments.h"

/* Rules and cursor are expanded into one loop; left to itself the compiler calls most of them, which
 * costs as much again as what they do (chan: 49 against 25 ns an event). A sanitizer's checks in all of
 * that would take it a minute to compile. */
#ifdef TC_SANITIZED
#define TO_HOT static inline
#else
#define TO_HOT static inline __attribute__((always_inline))
#endif

/* Ranges in flight on a goroutine: a list, whose order is Go's. Few as a rule; of many stops of the world the texts are in a map.
 * The only other one is an assist. */
struct to_range {
  uint64_t text; /* string id, STW only */
  uint8_t type;  /* the event that begins it */
};
struct to_ranges {
  struct to_range *items;
  uint32_t count, cap;
  uint32_t assist;      /* its place, from 1; 0: there is none */
  struct tb_map *texts; /* of all stops; NULL: they are few */
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
  bool dropped_regions; /* after ends that did not fit: the ends of those regions may still come */
};

struct to_p {
  int64_t id;
  uint64_t seq_gen, seq;
  uint8_t status; /* enum tw_proc_status */
  bool exists, sweeps;
  struct to_thread *holder; /* the last thread that took it; it may have another by now */
};

/* The reason why an event that came too early waits. */
enum to_want_kind {
  TO_WANT_G_RUNNABLE,
  TO_WANT_G_WAITING,
  TO_WANT_P_IDLE,
  TO_WANT_P_IN_SYSCALL,
  TO_WANT_P_OUT_OF_SYSCALL,
  TO_WANT_OWN_P_GONE, /* of the thread `id` */
  TO_WANT_GC,
  TO_WANT_HANDLER,  /* a handler's answer may change with each event */
  TO_WANT_SEQUENCE, /* the first of TW_SEQUENCES_MAX, one for each sequence of an experiment */
};
struct to_want {
  uint64_t id, seq;
  uint8_t kind; /* enum to_want_kind */
};

/* A thread: its scheduling context, and a cursor that has read its next event's type and time. The
 * event's arguments are known to be whole. */
struct to_thread {
  uint8_t type;
  uint8_t
      has; /* TO_HAS_M, _P, _G: what it is bound to; without TO_HAS_M it stands for batches of no
                * thread, and nothing is ever bound to it */
  bool exists; /* known to the trace: it has tried to advance, or a status named it */
  to_ns time;  /* of the next event */
  const unsigned char *args, *end;
  const unsigned char *near_end; /* from here on the fast look ahead might pass the end */
  struct to_g *g;
  struct to_p *p;
  int64_t id;
  const struct to_batch *batch;

  /* While it is parked. */
  struct to_thread *next_waiting; /* of those with the same key */
  size_t parked_place;
  struct to_want want;
};

struct to_parked {
  struct tb_mem *mem;
  struct to_thread **heap; /* by time */
  size_t count, cap;
  struct tb_map waiting; /* key of what they want -> the first that wants it */
  uint64_t tries;        /* events tried too early, threads and open ranges looked at: fuel used */
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

/* The slice so far: where its next event goes, and the time of the last event of all. */
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
  uint64_t stack_ids_end, string_ids_end; /* all ids below are there */

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
  struct tb_map sequences[TW_SEQUENCES_MAX]; /* thread -> its last number in this generation */

  /* The frontier: a min-heap by time of the threads that have events left; behind it, at the end of
   * time, some places without thread. */
  struct to_heap_entry *frontier;
  size_t frontier_len, frontier_cap;
  to_ns turn_end;    /* the root's thread goes on up to here: then another or a CPU sample is due */
  to_ns sample_time; /* of the next CPU sample; the end of time if none is left */
  const struct to_heap_entry *sample, *samples_end;

  uint8_t arg_counts[256]; /* after dt, by event type; TO_NO_TIMED_EVENT: none such */
  uint8_t longer_end[256]; /* with so many bytes that go on, eight bytes do not hold them all */
  double ns_per_tick;
  uint64_t ticks_whole;     /* nanoseconds of a tick if that is a whole number, else 0 */
  uint64_t ticks_exact_end; /* below it the integer product equals the double one */

  struct to_event_sink sink;
  struct to_parked parked;
  uint64_t events, syncs;
  uint64_t added;            /* of events: Syncs, and what a step gives beyond the first */
  uint64_t lone_region_ends; /* of regions that began before the trace */
  bool past_annotations;     /* faults of the program's annotations are noted, and do not end the order */
  struct tb_diag misannotated; /* the first one */
  uint64_t exact_tries;      /* in Go's own order, failed */
  struct to_limits limits;
  bool pext; /* the processor has that instruction, and fast */
  struct to_written written;
  struct to_event out[TO_SLICE];

  struct to_handler handlers[TO_HANDLERS_MAX];
  unsigned n_handlers;
  const struct to_handler *handler[TW_OWN_EVENTS_MAX]; /* by event of this generation; NULL: none */
};

/* The input of a rule: an event and what `ready` found out about it. */
struct to_step {
  struct to_thread *t;
  uint64_t arg[TW_TIMED_ARGS_MAX];
  to_ns time, last; /* of the event as written; of the last event staged */
  uint8_t type;
  struct to_g *g;       /* the goroutine the event names */
  struct to_p *p;       /* the proc it names */
  struct to_event *out; /* where the step's next event goes: good only once all of the step is */
};

void to__state_init(struct to_order *order, struct tb_mem *mem);
/* Forgets everything, for a new epoch. */
void to__state_clear(struct to_order *order);
void to__state_fini(struct to_order *order);

TO_HOT bool g_exists(const struct to_g *g) {
  return g->status != TO_G_GONE;
}

/* Goroutines. look answers NULL, or one that may be gone; find one that exists; claim makes it. */
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

/* Nothing is bound to it any more, and it is gone. */
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

/* Existing or not; NULL: never heard of. */
struct to_thread *to__thread_find(struct to_order *order, int64_t id);
TB_MUST tb_rc to__thread_claim(struct to_order *order, int64_t id, struct to_thread **out);

/* The thread has none. (no_g is never given back: the object it is bound to is not counted.) */
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

/* A goroutine's innermost region. */
TB_MUST tb_rc to__region_add(struct to_order *order, struct to_g *g, uint64_t task,
                             struct to_string name);
void to__region_drop(struct to_order *order, struct to_g *g);
/* A region ends that is not the goroutine's innermost. TB_OK: past_annotations, all of its regions are dropped. */
TB_MUST tb_rc to__region_misnested(struct to_order *order, const struct to_thread *t, uint64_t task,
                                   struct to_string name);
/* A fault of annotations, in the thread's next event. TB_OK: past_annotations. */
TB_MUST tb_rc to__misannotated(struct to_order *order, const struct to_thread *t, const char *text);

/* The task must be unknown; known to be dropped. */
TB_MUST tb_rc to__task_add(struct to_order *order, uint64_t id, uint64_t parent,
                           struct to_string name);
void to__task_drop(struct to_order *order, uint64_t id);
/* The task is known, and begins. TB_OK: past_annotations, it is dropped. */
TB_MUST tb_rc to__task_again(struct to_order *order, const struct to_thread *t, uint64_t id);

/* Ranges. */
bool to__has_range(const struct to_ranges *ranges, uint8_t type, uint64_t text);
TB_MUST tb_rc to__begin_range(struct to_order *order, struct to_ranges *ranges, uint8_t type,
                              uint64_t text);
/* False: none of this type is in flight. */
bool to__end_range(struct to_ranges *ranges, uint8_t type, uint64_t *out_text);

#endif
