/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler as it stands after each event: where each goroutine runs, what it waits for and since when.
 *
 *   static tb_rc events(void *self, const struct to_generation *gen, const struct to_event *ev, size_t n) {
 *     for (; n > 0; n--, ev++) {
 *       struct to_effects news;
 *       TB_TRY(to_model_event(model, gen, ev, &news));   -- then ask to_model_goroutine() and friends
 *     }
 *     return TB_OK;
 *   }
 *
 * Beside what an event says itself (event/view.h) it says what takes knowledge of those before it: how long
 * the state lasted that it ends, that a system call has begun to block, which label a span had.
 *
 * These have a duration, known at this event:
 *   a goroutine's state        the transition that leaves it: runnable (GoStart), running (GoStop, GoBlock,
 *                              GoDestroy, GoSyscallBegin), waiting (GoUnblock, GoSwitch), in a system
 *                              call (GoSyscallEnd, GoSyscallEndBlocked, GoDestroySyscall)
 *   a P's state                the transition that leaves it
 *   stop of the world, GC,     its end event
 *   sweep, mark assist
 *   task, region               its end event
 * All other events have none. A state that was under way when it was first heard of (a status, an Active
 * event) has lasted since the first event seen here or since the epoch's first, for the trace names all there
 * is before any of it changes: it is measured from there, and a lower bound. A state that was not heard of has no
 * duration.
 *
 * A label belongs to the span that encloses it: it is there from its GoLabel event until the goroutine
 * leaves its thread (a system call in between does not end it), and the event that ends the span carries it.
 *
 * The model is made of spans (spans/spans.h), event by event; a user of spans alone takes those.
 *
 * Memory    from mem: 30 KiB, and what spans of all that is listed here take.
 * Threads   use each object from one thread at a time.
 * Time      trace clock nanoseconds.
 * Errors    TB_BUDGET, TB_NOMEM: of what the event begins or ends nothing is known; to_model_epoch() starts again.
 */
#ifndef TO_ANALYSIS_MODEL_H
#define TO_ANALYSIS_MODEL_H

#include "spans/spans.h"

struct to_model;

TB_MUST tb_rc to_model_new(struct tb_mem *mem, struct to_model **out);
/* One for to_model_durations() alone, at a fraction of the cost: it follows no P and no thread. */
TB_MUST tb_rc to_model_new_durations(struct tb_mem *mem, struct to_model **out);
void to_model_free(struct to_model *model); /* accepts NULL */
/* A hole or a broken generation: nothing is known any more. */
void to_model_epoch(struct to_model *model);

/* A system call that lost its proc, as it was when it began. */
struct to_blocked_syscall {
  int64_t g, m, p; /* p: the proc it lost; TO_NONE: unknown */
  to_ns since;
  uint64_t stack,
      gen; /* the stack's id in this generation; TO_NO_STACK: unknown, or of an older one */
  bool lower_bound; /* it began before `since` */
};

/* The same event as threads see it: for who wants goroutines on threads and no procs. */
struct to_thread_change {
  int64_t m, g; /* g: the goroutine it has now; TO_NONE */
  enum to_thread_state from, to;
  uint64_t lasted_ns; /* in `from` */
  bool lower_bound;   /* it was so before the model heard of the thread */
};
enum { TO_THREAD_CHANGES_MAX = 2 }; /* a steal changes two */

struct to_effects {
  /* Of the goroutine's or proc's state, the range, region or task that the event ends. */
  bool ends;
  bool lower_bound;
  uint64_t lasted_ns;
  bool syscall_blocked; /* with this event a call is known to block; reported once a call */
  struct to_blocked_syscall blocked;
  int64_t
      stolen_from; /* ProcSteal: the thread that had the proc; TO_NONE: none had, or other event */
  bool
      context_mismatch; /* a CPU sample names a goroutine or proc that is not on its thread just then */
  enum to_reason reason; /* GoBlock, GoStop */
  struct to_string
      label; /* of the span the event ends or lies in; len 0: none. Until the next event */
  /* Of a Sync: the generation that begins with it, and the one that ends before it; 0: none. Everything of
   * a generation lies between the two, its experimental batches as well; what was kept of the one that
   * ends may be dropped. */
  uint64_t generation_begins, generation_ends;
  /* Of a Sync and of a change: GOMAXPROCS from here on; 0: other event, or not said yet. The runtime says it
   * again soon after each generation's begin. */
  uint64_t gomaxprocs;
  struct to_thread_change thread[TO_THREAD_CHANGES_MAX];
  unsigned threads; /* how many of them */
};

/* Every event of the stream, in order; gen as the sink got it. */
TB_MUST tb_rc to_model_event(struct to_model *model, const struct to_generation *gen,
                             const struct to_event *ev, struct to_effects *out);

struct to_duration {
  bool known, lower_bound;
  uint64_t ns;
};
/* Instead, for a slice of events of which only the durations are wanted, and those of no P: out has room for n. Goes on
 * after an error, so that the durations of few are unknown; answers the first one. */
TB_MUST tb_rc to_model_durations(struct to_model *model, const struct to_generation *gen,
                                 const struct to_event *events, size_t n, struct to_duration *out);

struct to_goroutine {
  int64_t id;
  enum to_go_state state;
  to_ns since;            /* in this state */
  bool lower_bound;       /* for longer than that */
  int64_t m, p;           /* where it runs or sits in a call; TO_NONE */
  enum to_reason reason;  /* it waits, or was stopped for; OTHER where unknown */
  const struct to_reason_info *why; /* the same, of reasons that no table has with their words */
  bool blocked;           /* in a call that lost its proc */
  struct to_string label; /* until the next event */
};
/* False: not known, or ended. */
bool to_model_goroutine(const struct to_model *model, int64_t id, struct to_goroutine *out);
/* for (size_t pos = 0; to_model_next_goroutine(model, &pos, &g);) in no order; no event meanwhile. */
bool to_model_next_goroutine(const struct to_model *model, size_t *pos, struct to_goroutine *out);
size_t
to_model_goroutines(const struct to_model *model); /* live ones that are known: counted each time */

struct to_thread_now {
  int64_t id, g, p; /* TO_NONE */
  enum to_thread_state state;
  to_ns since;      /* in this state */
  bool lower_bound; /* for longer than that */
};
bool to_model_thread(const struct to_model *model, int64_t id, struct to_thread_now *out);

struct to_proc_now {
  int64_t id, m; /* TO_NONE */
  enum to_proc_state state;
  bool syscall; /* RUNNING in Go's terms, but its goroutine is in a system call */
};
bool to_model_proc(const struct to_model *model, int64_t id, struct to_proc_now *out);

/* A range in progress: since when, "since the last sync" being taken care of. id: of its scope's goroutine
 * or proc, 0 for the process. System calls and regions are not asked here. */
bool to_model_range(const struct to_model *model, enum to_range_kind kind, int64_t id,
                    to_ns *out_since, bool *out_lower_bound);

uint64_t to_model_gomaxprocs(const struct to_model *model); /* 0: not said yet */

#endif
