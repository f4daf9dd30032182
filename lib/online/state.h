/* SPDX-License-Identifier: Apache-2.0 */
/* What the orderer knows between events: threads, procs, goroutines, tasks, the collector.
 *
 * "No goroutine" and "no proc" are objects, too (no_g, no_p, id -1), so a thread always points at one
 * and nothing needs a test; should a trace name -1 itself, they become that goroutine's or proc's state.
 * A goroutine's object stays while a thread is bound to it, even when it has ended (exists is false
 * then): two threads may name the same one.
 */
#ifndef TO_STATE_H
#define TO_STATE_H

#include "online/names.h"
#include "online/tables.h"
#include "wire/spec.h"

/* Rules and cursor are expanded into one loop; left to itself the compiler calls most of them, which
 * costs as much again as what they do (chan: 49 against 25 ns an event). */
#define TO_HOT static inline __attribute__((always_inline))

/* Ranges in flight on a goroutine or proc; few, so a list. */
struct to_range {
  uint64_t text; /* string id, STW only */
  uint8_t type;  /* the event that begins it */
};
struct to_ranges {
  struct to_range *items;
  uint32_t count, cap;
};

struct to_region {
  struct to_region *below;
  uint64_t task;
  struct to_name *name;
};

struct to_g {
  int64_t id;
  uint64_t seq_gen, seq; /* sequence numbers count within a generation */
  union {
    struct to_region *regions;
    struct to_g *spare_below; /* while it is spare */
  };
  struct to_ranges ranges;
  uint32_t bound; /* threads that point here */
  uint8_t status; /* enum tw_go_status */
  bool exists;
};

struct to_p {
  int64_t id;
  uint64_t seq_gen, seq;
  struct to_ranges ranges;
  uint8_t status; /* enum tw_proc_status */
  bool exists;
};

/* A thread: its scheduling context, and a cursor that has read its next event's type and time. The
 * event's arguments are known to be whole. */
struct to_thread {
  uint8_t type;
  bool exists; /* known to the trace: it has tried to advance, or a status named it */
  bool nobody; /* stands for batches without thread: nothing is ever bound to it */
  to_ns time;  /* of the next event */
  const unsigned char *args, *end;
  struct to_g *g;
  struct to_p *p;
  int64_t id;
  const struct to_batch *batch;
};

struct to_task {
  uint64_t parent;
  struct to_name *name;
};

/* Goroutines by id: pages of neighbours, since Go hands ids out in runs. A page holds pointers, so that a
 * lone id, which a peer may choose, costs some 250 bytes and no more. */
enum { TO_PAGE_GS = 16, TO_PAGE_RECENT = 1024, TO_SPARE_GS_MAX = 1024 };
struct to_g_page {
  uint64_t number;
  uint32_t used;               /* of its places */
  struct to_g *gs[TO_PAGE_GS]; /* NULL: neither existing nor bound */
};

enum { TO_PROCS_NEAR = 256, TO_SLICE = 256, TO_STEP_EVENTS_MAX = 3, TO_NO_TIMED_EVENT = 0xff };

enum to_gc { TO_GC_UNDETERMINED, TO_GC_NOT_RUNNING, TO_GC_RUNNING };

struct to_order {
  struct tb_mem *mem;
  struct tb_diag *diag;
  struct to_generation *gen;
  uint64_t gen_number, first_gen; /* of this epoch; 0: none yet */

  struct to_g no_g;
  struct to_p no_p;
  struct to_thread nobody;
  struct to_g_page *recent_pages[TO_PAGE_RECENT];
  struct tb_map pages; /* id / TO_PAGE_GS -> struct to_g_page */
  struct to_g_page *spare_page;
  struct to_g *spare_gs; /* ended ones, for the next to begin */
  unsigned spare_gs_count;
  struct to_p *near_procs[TO_PROCS_NEAR];
  struct tb_map procs;   /* id -> struct to_p */
  struct tb_map threads; /* id -> struct to_thread */
  struct tb_map tasks;   /* id -> struct to_task */
  struct to_names names; /* of tasks and regions */
  uint64_t gc_seq;
  enum to_gc gc;

  /* The frontier: a min-heap by time of the threads that have events left. */
  struct to_keyed *frontier;
  size_t frontier_len, frontier_cap;
  to_ns second; /* the smallest time below the root */
  const struct to_keyed *sample, *samples_end;

  uint8_t arg_counts[256]; /* after dt, by event type; TO_NO_TIMED_EVENT: none such */
  double ns_per_tick;
  uint64_t ticks_whole;     /* nanoseconds of a tick if that is a whole number, else 0 */
  uint64_t ticks_exact_end; /* below it the integer product equals the double one */

  struct to_event_sink sink;
  to_ns last_time;
  unsigned out_len; /* delivered next */
  uint64_t events, tries_failed, fuel_tries, syncs;
  struct to_event out[TO_SLICE];
};

/* What a rule works on: an event and what `ready` found out about it. */
struct to_step {
  struct to_thread *t;
  uint64_t arg[TW_TIMED_ARGS_MAX];
  to_ns time;
  uint8_t type;
  struct to_g *g;       /* the goroutine the event names */
  struct to_p *p;       /* the proc it names */
  struct to_event *out; /* where the step's events go: good only once all of it is */
  unsigned staged;
};

void to__state_init(struct to_order *order, struct tb_mem *mem, uint64_t seed);
/* Forgets everything, for a new epoch. */
void to__state_clear(struct to_order *order);
void to__state_fini(struct to_order *order);

/* Goroutines. find answers NULL unless it exists; claim answers the object of an id, existing or not. */
struct to_g *to__g_find_far(struct to_order *order, int64_t id);
TB_MUST tb_rc to__g_claim(struct to_order *order, int64_t id, struct to_g **out);
void to__g_begin(struct to_order *order, struct to_g *g, uint8_t status);
void to__g_end(struct to_order *order, struct to_g *g);
/* The object may be let go if nothing uses it any more. */
void to__g_unused(struct to_order *order, struct to_g *g);

TO_HOT struct to_g *to__g_find(struct to_order *order, int64_t id) {
  uint64_t number = (uint64_t)id / TO_PAGE_GS;
  struct to_g_page *page = order->recent_pages[number % TO_PAGE_RECENT];

  if (TB_UNLIKELY(page == NULL || page->number != number)) return to__g_find_far(order, id);
  struct to_g *g = page->gs[(uint64_t)id % TO_PAGE_GS];
  return g != NULL && g->exists ? g : NULL;
}

struct to_p *to__p_find_far(struct to_order *order, int64_t id);
TB_MUST tb_rc to__p_begin(struct to_order *order, int64_t id, uint8_t status, struct to_p **out);

TO_HOT struct to_p *to__p_find(struct to_order *order, int64_t id) {
  return (uint64_t)id < TO_PROCS_NEAR ? order->near_procs[id] : to__p_find_far(order, id);
}

/* Existing or not; NULL: never heard of. */
struct to_thread *to__thread_find(struct to_order *order, int64_t id);
TB_MUST tb_rc to__thread_claim(struct to_order *order, int64_t id, struct to_thread **out);

TO_HOT void to__bind_g(struct to_order *order, struct to_thread *t, struct to_g *g) {
  struct to_g *old = t->g;

  g->bound++;
  t->g = g;
  if (--old->bound == 0 && !old->exists) to__g_unused(order, old);
}

/* A goroutine's innermost region. */
TB_MUST tb_rc to__region_add(struct to_order *order, struct to_g *g, uint64_t task,
                             struct to_string name);
void to__region_drop(struct to_order *order, struct to_g *g);

/* The task must be unknown; known to be dropped. */
TB_MUST tb_rc to__task_add(struct to_order *order, uint64_t id, uint64_t parent,
                           struct to_string name);
void to__task_drop(struct to_order *order, uint64_t id);

/* Ranges. */
bool to__has_range(const struct to_ranges *ranges, uint8_t type, uint64_t text);
TB_MUST tb_rc to__begin_range(struct to_order *order, struct to_ranges *ranges, uint8_t type,
                              uint64_t text);
/* False: none of this type is in flight. */
bool to__end_range(struct to_ranges *ranges, uint8_t type, uint64_t *out_text);

#endif
