/* SPDX-License-Identifier: Apache-2.0 */
/* Ordered events become spans: stretches of time in which something was in one state.
 *
 *   static tb_rc spans(void *self, const struct to_generation *gen, const struct to_span *span, size_t n) {
 *     for (; n > 0; n--, span++)
 *       if (span->state == TO_GO_RUNNABLE) latency(self, span->until - span->from);
 *     return TB_OK;
 *   }
 *   TB_TRY(to_spans_new(mem, &(struct to_spans_config){ .wanted = TO_WANT_GO(RUNNABLE) }, sink, &s));
 *   TB_TRY(to_spans_events(s, gen, events, n));          -- the slices of a to_event_sink, as they come
 *   TB_TRY(to_spans_generation_ends(s, gen));            -- from to_reader_on_end()
 *
 * A span comes out when it ends. What is open can be asked for at any
 * time: to_spans_open(). A trace restates at the begin of each generation what goes on; that ends no span.
 *
 *   GOROUTINE  a goroutine is in one state (enum to_go_state). SYSCALL is the whole call, with or without its P
 *   SYSCALL    a piece of a call: state 1 with its P, 0 after it has lost it
 *   LIFE       a goroutine, from its creation to its end: stack is where it begins, end_stack where it was
 *              created; by is the creator
 *   PROC       a P is in one state (enum to_proc_state)
 *   THREAD     a thread is in one state (enum to_thread_state)
 *   RANGE      a range is active (enum to_range_kind: STW, GC_MARK, GC_SWEEP, GC_MARK_ASSIST);
 *              name: why the world stopped
 *   TASK       name: its type; value: its id; parent: its parent's; goroutine: that began it
 *   REGION     name: its type; value: its task's id; text: its task's type, if tasks are wanted and it is open;
 *              region: what its goroutine did in it, if it began in the trace and has ended
 *   LOG        a moment. name: category, text: message, value: the task's id
 *   SAMPLE     a moment: a CPU sample. state: its goroutine's then
 *   METRIC     a moment. state: enum to_metric, value
 *
 * A goroutine's label is the name of its LIFE, and of the spans RUNNING, SYSCALL and SAMPLE that it was set in or before: it
 * lasts until the goroutine leaves its thread.
 *
 * A goroutine id may come again, another goroutine's. A life is one goroutine: a number from 1 that the stream uses
 * once.
 *
 * Stacks are named by the generation that the span ends in, and looked up only where somebody asks. Those of what is
 * open are kept when their generation ends: to_spans_generation_ends(). Without that call they are lost.
 *
 * Memory    from mem: 120 bytes for each goroutine of the most that lived at once, rounded up to a power of two; 48 a P, 40 a
 *           thread that was ever seen (if wanted), and what is open of ranges, regions and tasks; stacks as in
 *           online/spans/stacks/table.h. A span and its texts are lent for the call.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds.
 * Errors    TB_BUDGET, TB_NOMEM: spans are missing from then on; to_spans_epoch() starts again. The sink's answer.
 */
#ifndef TO_SPANS_SPANS_H
#define TO_SPANS_SPANS_H

#include "base/mem.h"
#include "online/event/reasons.h"
#include "online/event/view.h"
#include "online/spans/lock_table.h"
#include "online/spans/stacks/callstack.h"

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

/* What a thread does, seen from its goroutine. */
enum to_thread_state {
  TO_THREAD_IDLE,    /* runs no goroutine */
  TO_THREAD_RUNNING, /* runs Go code */
  TO_THREAD_SYSCALL, /* in a call, its proc is kept for it */
  TO_THREAD_BLOCKED, /* in a call, its proc was taken */
};
const char *to_thread_state_name(enum to_thread_state state); /* "Idle" */

/* Why a goroutine is runnable. */
enum to_cause {
  TO_CAUSE_UNKNOWN,
  TO_CAUSE_CREATED,
  TO_CAUSE_UNBLOCKED,
  TO_CAUSE_PREEMPTED,
  TO_CAUSE_YIELDED,
  TO_CAUSE_SYSCALL, /* it returned from a call that had lost its P */
  TO_CAUSES
};
const char *to_cause_name(enum to_cause cause); /* "unblocked" */

/* What a goroutine did in a region, those inside it included: disjoint parts, whose sum is its length. */
enum to_region_part {
  TO_PART_RUNNING,
  TO_PART_RUNNABLE, /* it waited for a P */
  TO_PART_SYNC,     /* it waited for a mutex, a condition, a wait group */
  TO_PART_CHAN,
  TO_PART_NET,
  TO_PART_SLEEP,
  TO_PART_WAITING,      /* for anything else */
  TO_PART_SYSCALL,      /* with its P */
  TO_PART_SYSCALL_NO_P, /* after it had lost it */
  TO_REGION_PARTS
};
struct to_region_time {
  uint64_t ns[TO_REGION_PARTS];
  uint64_t assist_ns; /* it helped the collector: of the above */
  bool in_its_task;   /* no region around it is of its task (the nearest 64 are looked at) */
};

struct to_span_more {
  struct to_string name, text; /* len 0: none */
  uint64_t value, parent; /* value of a sample: 1 where its goroutine is not on its thread just then */
  int64_t goroutine;                   /* TO_NONE: not known */
  const struct to_region_time *region; /* NULL: not known */
};

struct to_span {
  to_ns from, until;
  int64_t id;           /* the subject's: goroutine, P, thread; 0 where it is the process */
  uint64_t life;        /* the goroutine's; 0: none is known */
  int64_t proc, thread; /* of a goroutine that runs or is in a call; TO_NONE */
  /* The event that ended it: its goroutine, thread and stack. Of a wait it is the waker. Of RUNNABLE goroutine and
   * stack are those of what made it runnable: its waker, its creator, itself; the thread is the one that runs it. */
  uint64_t by_life;
  int64_t by, by_thread;
  /* The goroutine's own stack: the last one known when the span began; the one at its end, where the event says
   * it. to_spans_stack(); 0: none is known. */
  uint64_t stack, end_stack, by_stack;
  uint8_t state;
  uint8_t reason;  /* to_spans_reason(), or enum to_reason: it waits, or was stopped; OTHER where none is said or known */
  uint8_t cause;   /* enum to_cause: of RUNNABLE */
  bool from_known; /* else it began before `from` */
  uint8_t kind;    /* enum to_span_kind */
  bool until_known; /* else it was cut (a hole in the stream), or is open */
  bool open;        /* it goes on: until is now */
  bool lost_proc;   /* of a call: seen before or at its end; of a piece: that is its end */
  const struct to_span_more *more; /* what few kinds have; NULL: nothing */
  uint32_t
      slot; /* of goroutines, pieces, lives, regions, logs, samples: the goroutine's, as in online/event/event.h */
  uint32_t
      lock; /* of WAITING: the lock it is for, by to_spans_locks(); TO_LOCK_NONE: none is known */
};

/* What a sink wants to get: bits, ORed. What is not wanted costs next to nothing. */
#define TO_WANT(kind)     (UINT32_C(1) << TO_SPAN_##kind)
#define TO_WANT_GO(state) (UINT32_C(1) << (16 + TO_GO_##state))
#define TO_WANT_WASTE     (UINT32_C(1) << 15) /* no span: to_spans_wasted() */
#define TO_WANT_STATES    (UINT32_C(1) << 14) /* no span: to_spans_states() */
#define TO_WANT_ALL       UINT32_MAX

struct to_spans_config {
  uint32_t wanted;   /* TO_WANT(GOROUTINE): all its states */
  size_t stacks_max; /* 0: TO_SPANS_STACKS_MAX */
  bool
      times_only; /* ranges, tasks and regions have no names and no stacks, and there are no labels */
};
enum { TO_SPANS_STACKS_MAX = 4096, TO_SPANS_SLICE = 64 };

/* Gets spans in slices of 1 to TO_SPANS_SLICE. gen is that of the events which ended them; NULL: to_spans_epoch() cut them. */
struct to_span_sink {
  void *self;
  tb_rc (*spans)(void *self, const struct to_generation *gen, const struct to_span *spans,
                 size_t n);
};

struct to_spans;

TB_MUST tb_rc to_spans_new(struct tb_mem *mem, const struct to_spans_config *config,
                           struct to_span_sink sink, struct to_spans **out);
void to_spans_free(struct to_spans *s); /* accepts NULL */
/* Every event of the stream, in order. */
TB_MUST tb_rc to_spans_events(struct to_spans *s, const struct to_generation *gen,
                              const struct to_event *events, size_t n);
/* After a generation's last event, while its tables are there. */
TB_MUST tb_rc to_spans_generation_ends(struct to_spans *s, const struct to_generation *gen);
/* A hole or a broken generation: what is open is cut at the last event, and nothing is known any more. */
TB_MUST tb_rc to_spans_epoch(struct to_spans *s);

/* Each wanted span that goes on, in no order. each() must not feed events; a code other than TB_OK ends it. */
TB_MUST tb_rc to_spans_open(const struct to_spans *s,
                            tb_rc (*each)(void *self, const struct to_span *span), void *self);
/* Tasks, regions or ranges that go on. by_life and slot of a range: the goroutine that was there when it began; 0: not known. */
TB_MUST tb_rc to_spans_open_of(const struct to_spans *s, enum to_span_kind kind,
                               tb_rc (*each)(void *self, const struct to_span *span), void *self);
to_ns to_spans_now(const struct to_spans *s); /* time of the last event */
/* Time since the start in which a goroutine was runnable while a P was idle, as far as their states were known. */
uint64_t to_spans_wasted(const struct to_spans *s);
/* Time since the start that goroutines were runnable while the world stood still, from a stop's begin to its end, all together. It needs
 * TO_WANT(RANGE) and TO_WANT_STATES. */
uint64_t to_spans_stopped(const struct to_spans *s);
/* Time since the start in which a goroutine sat in a call with this P, up to now; a call that the trace met under way counts from the event
 * that states it. now: not before the last event. 0 for Ps from number 256 on. */
uint64_t to_spans_call_time(const struct to_spans *s, int64_t proc, to_ns now);
/* How many goroutines are in each state, by enum to_go_state. */
struct to_spans_states {
  struct to_spans_in_state {
    uint64_t now;
    uint64_t most;  /* since the last call */
    uint64_t total; /* time that goroutines were in it, nanoseconds, since the start of the epoch */
  } state[TO_GO_SYSCALL + 1];
};
void to_spans_states(struct to_spans *s, struct to_spans_states *out);
/* From now on pieces of calls, TO_WANT(SYSCALL), come out or not. */
void to_spans_want_pieces(struct to_spans *s, bool wanted);

/* A span's stack by a number that it keeps for the whole stream: TO_STACK_EMPTY, TO_STACK_OTHER, or another below
 * stacks_max + 2. gen: as the sink got it; NULL for open spans after their generation. */
TB_MUST tb_rc to_spans_stack(struct to_spans *s, const struct to_generation *gen, uint64_t stack,
                             uint32_t *out);
uint32_t to_spans_stacks(const struct to_spans *s); /* numbers in use are below it */
/* Of a span's reason, the trace's own words too. Lent as long as the object. */
const struct to_reason_info *to_spans_reason(const struct to_spans *s, unsigned reason);
/* Ends of regions that did not fit, so far; NULL: all did. */
struct to_misnesting;
const struct to_misnesting *to_spans_misnesting(const struct to_spans *s);
/* The locks of spans. A program in C names them; Go does not. */
const struct to_lock_table *to_spans_locks(const struct to_spans *s);
/* NULL for TO_STACK_OTHER. Valid as long as the object. */
const struct to_callstack *to_spans_callstack(const struct to_spans *s, uint32_t number);

#endif
