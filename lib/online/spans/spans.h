/* SPDX-License-Identifier: Apache-2.0 */
/* Makes spans from ordered events: stretches of time in which something was in one state.
 *
 *   static tb_rc spans(void *self, const struct to_generation *gen, const struct to_span *span, size_t n) {
 *     for (; n > 0; n--, span++)
 *       if (span->state == TO_GO_RUNNABLE) latency(self, span->until - span->from);
 *     return TB_OK;
 *   }
 *   TB_TRY(to_spans_new(mem, &(struct to_spans_config){ .wanted = TO_WANT_GO(RUNNABLE) }, sink, &s));
 *   TB_TRY(to_spans_events(s, gen, events, n));          -- the slices of a to_event_sink, in order
 *   TB_TRY(to_spans_generation_ends(s, gen));            -- from to_reader_on_end()
 *
 * The sink gets a span when the span ends; to_spans_open() lists open ones at any time. At the begin of each generation a
 * trace restates open states; that does not end a span.
 *
 *   GOROUTINE  a goroutine is in one state (enum to_go_state). SYSCALL is the whole call, with or without its P
 *   SYSCALL    a piece of a call: state 1 with its P, 0 after it has lost it
 *   LIFE       a goroutine, from its creation to its end: stack is where it begins, end_stack where it was
 *              created; by is the creator
 *   PROC       a P is in one state (enum to_proc_state)
 *   THREAD     a thread is in one state (enum to_thread_state)
 *   RANGE      a range is active (enum to_range_kind: STW, GC_MARK, GC_SWEEP, GC_MARK_ASSIST);
 *              name: why the world stopped
 *   TASK       name: its type; value: its id; parent: its parent's; goroutine: the one that began it; by_stack:
 *              where that one last waited or made a call during the task, if it also ended the task
 *   REGION     name: its type; value: its task's id; text: its task's type, if tasks are wanted and it is open;
 *              region: what its goroutine did in it, if its begin and end are in the trace
 *   LOG        a moment. name: category, text: message, value: the task's id
 *   SAMPLE     a moment: a CPU sample. state: its goroutine's state
 *   METRIC     a moment. state: enum to_metric, value
 *
 * A goroutine's label is the name of its LIFE, and of its spans RUNNING, SYSCALL and SAMPLE from the one in which the
 * label was set until the goroutine leaves its thread.
 *
 * Goroutine ids may be reused. A life is one goroutine, with a number from 1 that is unique in the stream.
 *
 * A span's stacks are ids of the generation in which the span ends, looked up only on request. Stacks of open spans are
 * stored by to_spans_generation_ends(); without that call they are lost.
 *
 * Memory    from mem: 120 bytes for each goroutine, by the largest number that lived at once, rounded up to a power of two; 48
 *           a P, 40 a thread that was ever seen (if wanted), and open ranges, regions and tasks; stacks as in
 *           online/spans/stacks/table.h. A span and its texts are lent for the call.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds.
 * Errors    TB_BUDGET, TB_NOMEM: spans are missing from then on, until to_spans_epoch(). The sink's result.
 */
#ifndef TO_SPANS_SPANS_H
#define TO_SPANS_SPANS_H

#include "base/mem.h"
#include "online/event/reasons.h"
#include "online/event/view.h"
#include "online/spans/lock_table.h"
#include "online/spans/stacks/callstack.h"
#include "online/words/words.h"

enum to_span_kind {
  TO_SPAN_GOROUTINE,
  TO_SPAN_SYSCALL,
  TO_SPAN_LIFE,
  TO_SPAN_PROC,
  TO_SPAN_THREAD,
  TO_SPAN_RANGE,
  TO_SPAN_TASK,
  TO_SPAN_REGION,
  TO_SPAN_LOG,
  TO_SPAN_SAMPLE,
  TO_SPAN_METRIC,
  TO_SPAN_KINDS
};
const char *to_span_kind_name(enum to_span_kind kind); /* "goroutine" */

/* State of a thread, seen from its goroutine. */
enum to_thread_state {
  TO_THREAD_IDLE,    /* runs no goroutine */
  TO_THREAD_RUNNING, /* runs Go code */
  TO_THREAD_SYSCALL, /* in a call that has the P */
  TO_THREAD_BLOCKED, /* in a call that lost the P */
};
const char *to_thread_state_name(enum to_thread_state state); /* "Idle" */

/* Why a goroutine is runnable. */
enum to_cause {
  TO_CAUSE_UNKNOWN,
  TO_CAUSE_CREATED,
  TO_CAUSE_UNBLOCKED,
  TO_CAUSE_PREEMPTED,
  TO_CAUSE_YIELDED,
  TO_CAUSE_SYSCALL, /* returned from a call that had lost its P */
  TO_CAUSES
};
const char *to_cause_name(enum to_cause cause); /* "unblocked" */

/* Time of a goroutine in a region and its inner regions, in disjoint parts whose sum is the region's length. */
enum to_region_part {
  TO_PART_RUNNING,
  TO_PART_RUNNABLE, /* waiting for a P */
  TO_PART_SYNC,     /* waiting for a mutex, a condition, a wait group */
  TO_PART_CHAN,
  TO_PART_NET,
  TO_PART_SLEEP,
  TO_PART_WAITING,      /* waiting for anything else */
  TO_PART_SYSCALL,      /* in a call that has its P */
  TO_PART_SYSCALL_NO_P, /* in a call that has lost its P */
  TO_REGION_PARTS
};
struct to_region_time {
  uint64_t ns[TO_REGION_PARTS];
  uint64_t assist_ns; /* mark assists, which are part of the above */
  bool in_its_task;   /* none of the 64 nearest outer regions is of its task */
};

struct to_span_more {
  struct to_string name, text; /* len 0: none */
  uint64_t value, parent;      /* value of a sample: 1 if its goroutine is not on its thread */
  int64_t goroutine;           /* TO_NONE: unknown */
  const struct to_region_time *region; /* NULL: unknown */
};

struct to_span {
  to_ns from, until;
  int64_t id;           /* of the subject: goroutine, P or thread; 0: the process */
  uint64_t life;        /* the goroutine's; 0: unknown */
  int64_t proc, thread; /* for a running goroutine, or one in a call; else TO_NONE */
  /* Goroutine, thread and stack of the event that ended the span; for a wait that is the waker's. For RUNNABLE,
   * goroutine and stack are of what made the goroutine runnable (its waker, its creator or itself), and the thread is
   * the one that then runs it. */
  uint64_t by_life;
  int64_t by, by_thread;
  /* The goroutine's own stacks, for to_spans_stack(): the last one at the begin; the one at the end; 0: unknown. */
  uint64_t stack, end_stack, by_stack;
  uint8_t state;
  uint8_t reason;   /* for a wait or a stop: to_spans_reason(), or enum to_reason; OTHER: unknown */
  uint8_t cause;    /* for RUNNABLE: enum to_cause */
  bool from_known;  /* false: it began before `from` */
  uint8_t kind;     /* enum to_span_kind */
  bool until_known; /* false: cut by a hole in the stream, or open */
  bool open;        /* not ended yet: until is now */
  bool lost_proc;   /* a call lost its P; a piece ended by that */
  const struct to_span_more *more; /* for some kinds; NULL: nothing */
  uint32_t slot; /* the goroutine's, as in online/event/event.h, if the span has one */
  uint32_t lock; /* for WAITING: number in to_spans_locks() of the lock; TO_LOCK_NONE: unknown */
};

/* The spans that a sink gets: bits. Unwanted spans cost next to nothing. */
#define TO_WANT(kind)     (UINT32_C(1) << TO_SPAN_##kind)
#define TO_WANT_GO(state) (UINT32_C(1) << (16 + TO_GO_##state))
#define TO_WANT_WASTE     (UINT32_C(1) << 15) /* not a span: to_spans_wasted() */
#define TO_WANT_STATES    (UINT32_C(1) << 14) /* not a span: to_spans_states() */
#define TO_WANT_ALL       UINT32_MAX

enum { TO_SPANS_STACKS_MAX = 4096, TO_SPANS_SLICE = 64 };

/* Spans until they are passed to the sink. */
struct to_spans_slice {
  struct to_span out[TO_SPANS_SLICE];
  struct to_span_more more[TO_SPANS_SLICE];          /* of the span at the same place */
  struct to_region_time region_time[TO_SPANS_SLICE]; /* of the span at the same place */
  struct to_name *done[3 * TO_SPANS_SLICE];          /* names lent to the spans, to be released */
};

struct to_spans_config {
  uint32_t wanted;   /* TO_WANT(GOROUTINE): all its states */
  size_t stacks_max; /* 0: TO_SPANS_STACKS_MAX */
  bool times_only;   /* no names and stacks of ranges, tasks and regions, and no labels */
  struct to_spans_slice *slice;  /* shared by objects of one thread; NULL: an own one, 20 KiB */
  struct to_stack_store *stacks; /* the same */
};

/* Gets spans in slices of 1 to TO_SPANS_SLICE. gen: of the events that ended them; NULL: to_spans_epoch() cut them. */
struct to_span_sink {
  void *self;
  tb_rc (*spans)(void *self, const struct to_generation *gen, const struct to_span *spans,
                 size_t n);
};

struct to_spans;

TB_MUST tb_rc to_spans_new(struct tb_mem *mem, const struct to_spans_config *config,
                           struct to_span_sink sink, struct to_spans **out);
void to_spans_free(struct to_spans *s); /* accepts NULL */
/* Takes every event of the stream, in order. */
TB_MUST tb_rc to_spans_events(struct to_spans *s, const struct to_generation *gen,
                              const struct to_event *events, size_t n);
/* Call it after a generation's last event, while its tables exist. */
TB_MUST tb_rc to_spans_generation_ends(struct to_spans *s, const struct to_generation *gen);
/* Begins a new epoch, after a hole or a broken generation: cuts open spans at the last event and forgets all states. */
TB_MUST tb_rc to_spans_epoch(struct to_spans *s);

/* Calls each() for every wanted open span, until the result is not TB_OK. each() must not feed events. */
TB_MUST tb_rc to_spans_open(const struct to_spans *s,
                            tb_rc (*each)(void *self, const struct to_span *span), void *self);
/* Calls each() for open tasks, regions or ranges. A range has by_life and slot of its begin; 0: unknown. */
TB_MUST tb_rc to_spans_open_of(const struct to_spans *s, enum to_span_kind kind,
                               tb_rc (*each)(void *self, const struct to_span *span), void *self);
to_ns to_spans_now(const struct to_spans *s); /* time of the last event */
/* Returns the time since the start in which a goroutine was runnable while a P was known to be idle. */
uint64_t to_spans_wasted(const struct to_spans *s);
/* Returns the sum over goroutines of the time since the start that they were runnable while the world was stopped, from begin to end of
 * stops. Requires TO_WANT(RANGE) and TO_WANT_STATES. */
uint64_t to_spans_stopped(const struct to_spans *s);
/* Returns the time since the start in which a goroutine was in a call with this P, up to now, which must not be before the last event. A
 * call that began before the trace counts from the event that states it. 0 for Ps from number 256 on. */
uint64_t to_spans_call_time(const struct to_spans *s, int64_t proc, to_ns now);
/* Numbers of goroutines in each state, by enum to_go_state. */
struct to_spans_states {
  struct to_spans_in_state {
    uint64_t now;
    uint64_t most;  /* since the last call */
    uint64_t total; /* their time in it, added up, in nanoseconds, since the start of the epoch */
  } state[TO_GO_SYSCALL + 1];
};
void to_spans_states(struct to_spans *s, struct to_spans_states *out);
/* From now on, goroutines' states that end are not counted: they are in no sum, and only calls that were long or lost their P come
 * out as spans. All else goes on: states, other spans, queues. A state that ends after to_spans_thin(s, false) is counted whole. */
void to_spans_thin(struct to_spans *s, bool thins);
bool to_spans_thins(const struct to_spans *s);
/* Switches spans of TO_WANT(SYSCALL) on or off from now on. */
void to_spans_want_pieces(struct to_spans *s, bool wanted);

/* Finds a stack's number, which is fixed for the whole stream: TO_STACK_EMPTY, TO_STACK_OTHER, or another below
 * stacks_max + 2. gen: as the sink got it; NULL for open spans between generations. */
TB_MUST tb_rc to_spans_stack(struct to_spans *s, const struct to_generation *gen, uint64_t stack,
                             uint32_t *out);
uint32_t to_spans_stacks(const struct to_spans *s); /* numbers in use are smaller */
/* Return what decides which waits are idle (online/spans/stacks/idle.h). Lent as long as the object. */
struct to_stack_table;
struct to_reasons;
const struct to_stack_table *to_spans_stack_table(const struct to_spans *s);
const struct to_reasons *to_spans_reasons(const struct to_spans *s);
/* Describes a span's reason, including the trace's own words. Lent as long as the object. */
const struct to_reason_info *to_spans_reason(const struct to_spans *s, unsigned reason);
/* Returns whose trace the newest generation is of. */
enum to_program to_spans_program(const struct to_spans *s);
/* Returns the ends of regions so far that were not properly nested; NULL: none. */
struct to_misnesting;
const struct to_misnesting *to_spans_misnesting(const struct to_spans *s);
/* Returns the locks of spans. A C program names them; Go does not. */
const struct to_lock_table *to_spans_locks(const struct to_spans *s);
/* Returns NULL for TO_STACK_OTHER. Valid as long as the object. */
const struct to_callstack *to_spans_callstack(const struct to_spans *s, uint32_t number);

#endif
