/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines' spans, counted once for all analyses.
 *
 * A sum holds the spans that have the same state, reason, entry function, stack and waker's stack. An analysis that
 * wants them by stack, by reason or by entry function adds sums up when a report is asked for: a span costs one look
 * into a small cache and one count, however many reports there are.
 *
 *   state     why                     stack, by_stack        lengths
 *   RUNNABLE  enum to_cause           both; by_stack only    in the window's pool
 *                                     where it has a waker
 *   WAITING   to_spans_reason()         both                   in the window's pool
 *   RUNNING   0                       none                   sum only
 *   SYSCALL   enum to_call_part       none                   sum only
 *   NOT_EXIST 0                       none                   sum only: whole lives, from the birth to the end
 *
 * Goroutines that live are counted by entry function and by the place where they were created. Ranges of a goroutine (mark assists,
 * sweeps, stops of the world) are summed by its entry function.
 *
 * The entry function of a goroutine is the outermost frame of the first stack that names it. Spans before
 * that one wait until the entry is known, or until a report is asked for.
 *
 * Where sums are too many, further spans are counted in the rest of their state and reason: its stacks are
 * TO_STACK_OTHER, its entry TO_ENTRY_OTHER.
 *
 * Memory    from mem: some 250 bytes a sum, 16 for each goroutine of the most that lived at once, 48 a place of creation.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this span is not counted.
 */
#ifndef TO_SPANS_SUMS_H
#define TO_SPANS_SUMS_H

#include "base/map.h"
#include "online/spans/spans.h"
#include "online/spans/stacks/idle.h"
#include "online/spans/stacks/table.h"
#include "online/window/window.h"

enum {
  TO_ENTRY_UNKNOWN = 0, /* the trace never showed a stack */
  TO_ENTRY_OTHER = 1,   /* one that is not told apart */
  TO_ENTRIES_MAX = 1 << 14,
  TO_SUMS_RECENT_BITS = 8,
  TO_SUMS_RECENT = 1 << TO_SUMS_RECENT_BITS,
  TO_SUMS_HELD_MAX = 64,
  TO_SUMS_CALL_PARTS = 5,
  TO_SUMS_RESTS =
      1 + TO_CAUSES + 1 + TO_REASONS + TO_SUMS_CALL_PARTS, /* one for each reason of each state */
  TO_SUMS_RECENT_SITES = 64,
  TO_SITES_MAX = 1 << 10,
  TO_SITE_UNKNOWN = 0, /* created before the trace began, or by no goroutine */
  TO_SITE_OTHER = 1,   /* one that is not told apart */
};

/* Whole calls; of those that lost their P the part after it; calls that had no P from the begin on, or from the begin of
 * the trace; of the latter the part before the trace stated them. */
enum to_call_part {
  TO_CALL_WHOLE,
  TO_CALL_WITHOUT_PROC,
  TO_CALL_UNSEEN, /* the same where Go's summaries do not see the loss */
  TO_CALL_NEVER_PROC,
  TO_CALL_UNSTATED,
  TO_CALL_PARTS
};
_Static_assert((int)TO_CALL_PARTS == (int)TO_SUMS_CALL_PARTS, "each has a rest");

/* Ranges that are a goroutine's. */
enum to_sums_range { TO_SUMS_ASSIST, TO_SUMS_SWEEP, TO_SUMS_STOP, TO_SUMS_RANGES };

struct to_span_sum {
  uint32_t entry, stack, by_stack;
  uint32_t series;
  uint8_t state; /* enum to_go_state */
  uint8_t why;
  bool idle; /* of WAITING: online/spans/stacks/idle.h */
};

struct to_sums_recent {
  uint64_t stack, by_stack; /* ids of the generation, or kept */
  uint64_t what;            /* to_sums_what(); 0: a free place */
  uint32_t series;
  bool idle;
};

struct to_span_sums {
  struct tb_mem *mem;
  struct to_windows *windows;
  struct to_stack_table *stacks;
  struct to_idle *idle; /* NULL: no wait is */
  struct to_sums_goroutine {
    uint32_t entry;            /* TO_ENTRY_UNKNOWN: so far */
    uint32_t running, calling; /* series of its entry, once that is known */
    uint32_t site;             /* where it was created */
  } * goroutine;               /* by slot */
  size_t goroutines;
  struct to_sums_recent recent[TO_SUMS_RECENT];

  uint32_t of_why[TO_SUMS_RESTS]; /* series by state and reason: only parts of them are counted */
  struct to_span_sum *sum;        /* the first ones are the rests */
  size_t n, room, sums_max;       /* sums_max: of each state, rests not counted */
  size_t of[TO_GO_SYSCALL + 1];   /* sums by state, rests not counted */
  struct tb_map by_key;

  struct to_sums_entry {
    const struct to_frame *frame;     /* NULL: none is known, or it is not told apart */
    uint32_t running, calling, lives; /* series */
    uint32_t range[TO_SUMS_RANGES];   /* series + 1; 0: none yet */
    uint32_t alive;                   /* goroutines now */
  } * entry;
  size_t entries, entries_room;
  struct tb_map entry_of;   /* by the text's place: a stack table keeps each once */
  uint32_t *entry_of_stack; /* by the stack's number; TO_ENTRY_UNKNOWN: not looked up */
  size_t entry_of_stacks;

  struct to_sums_site {
    uint32_t stack;
    bool begins; /* the runtime created them (time.AfterFunc): stack is where they begin */
    uint32_t alive;          /* goroutines now */
    uint32_t created, lives; /* series: moments, and whole lives with their lengths */
  } * site;
  size_t sites, sites_room;
  struct to_sums_recent_site {
    uint64_t stack; /* id of the generation */
    uint32_t epoch; /* of the stack table; 0: a free place */
    uint32_t site;
    bool begins;
  } recent_site[TO_SUMS_RECENT_SITES];
  uint32_t of_range;             /* series: those of the entries' ranges are parts of it */
  uint32_t of_creation, of_life; /* series: those of the sites are parts of them */
  struct tb_map site_of;         /* by the stack's number, and whether it is where they begin */

  struct to_span held[TO_SUMS_HELD_MAX]; /* of goroutines whose entry is not known yet */
  size_t n_held;
};

TB_MUST tb_rc to_span_sums_init(struct to_span_sums *s, struct tb_mem *mem,
                                struct to_windows *windows, struct to_stack_table *stacks,
                                struct to_idle *idle, size_t sums_max);
void to_span_sums_fini(struct to_span_sums *s); /* accepts a zeroed one */

/* The pass over events counts spans here as they end (online/spans/spans.c). A life begins in this slot: */
TB_MUST tb_rc to_span_sums_begin(struct to_span_sums *s, uint32_t slot);
/* It was created now, by a goroutine with this stack; without one it counts by where it begins. */
TB_MUST tb_rc to_span_sums_created(struct to_span_sums *s, const struct to_generation *gen,
                                   uint32_t slot, uint64_t stack, uint64_t begins, to_ns now);
/* A stack of the goroutine, before a span of it has ended. */
TB_MUST tb_rc to_span_sums_meet(struct to_span_sums *s, const struct to_generation *gen,
                                uint32_t slot, uint64_t life, uint64_t stack);
/* The life in this slot ends, or is cut. */
TB_MUST tb_rc to_span_sums_end(struct to_span_sums *s, uint32_t slot, to_ns from, to_ns until,
                               bool from_known);
/* The rules of what is idle are others from here on. */
void to_span_sums_idle_changed(struct to_span_sums *s);
/* A hole in the stream: nothing lives. */
void to_span_sums_clear(struct to_span_sums *s);
/* A goroutine's span that has ended, or a piece of a call after it has lost its P. gen: its generation. */
TB_MUST tb_rc to_span_sums_take(struct to_span_sums *s, const struct to_generation *gen,
                                const struct to_span *span);
/* A goroutine has ended, or a report is asked for (life 0: all goroutines): spans that wait for an entry are counted without one. */
TB_MUST tb_rc to_span_sums_settle(struct to_span_sums *s, uint64_t life);

/* A range (its state says the kind) of the goroutine in this slot has ended: its length counts, as a sum only. Of one that Go's summaries
 * do not give to a goroutine nothing counts. */
TB_MUST tb_rc to_span_sums_range(struct to_span_sums *s, const struct to_span *range);
/* False: a range of this kind is no goroutine's. */
bool to_sums_range_of(unsigned kind, enum to_sums_range *out);

/* What a recent one has besides stacks. how: TO_SUMS_HOW(). */
#define TO_SUMS_HOW(state, why) ((unsigned)(state) << 6 | (unsigned)(why))
static inline uint64_t to_sums_what(const struct to_span_sums *s, uint32_t entry, unsigned how) {
  return (uint64_t)s->stacks->epoch << 32 | entry << 9 | how;
}
static inline struct to_sums_recent *to_sums_recent(struct to_span_sums *s, uint64_t what,
                                                    uint64_t stack, uint64_t by_stack) {
  uint64_t mixed = what * UINT64_C(0x9e3779b97f4a7c15) + stack * UINT64_C(0xc2b2ae3d27d4eb4f) +
                   by_stack * UINT64_C(0x165667b19e3779f9);

  return &s->recent[mixed >> (64 - TO_SUMS_RECENT_BITS)];
}
/* A span whose begin is known. False: it is none of the recent ones: to_span_sums_take(). */
TB_MUST static inline bool to_span_sums_add(struct to_span_sums *s, uint32_t slot, unsigned how,
                                            uint64_t stack, uint64_t by_stack, uint64_t ns) {
  uint64_t what = to_sums_what(s, s->goroutine[slot].entry, how);
  const struct to_sums_recent *recent = to_sums_recent(s, what, stack, by_stack);

  if (TB_UNLIKELY(recent->what != what || recent->stack != stack || recent->by_stack != by_stack))
    return false;
  return to_windows_add_length(s->windows, recent->series, ns);
}
/* A wait that was just counted is known to be idle. */
static inline bool to_span_sums_is_idle(struct to_span_sums *s, uint32_t slot, unsigned why,
                                        uint64_t stack, uint64_t by_stack) {
  uint64_t what = to_sums_what(s, s->goroutine[slot].entry, TO_SUMS_HOW(TO_GO_WAITING, why));
  const struct to_sums_recent *recent = to_sums_recent(s, what, stack, by_stack);

  return recent->what == what && recent->stack == stack && recent->by_stack == by_stack &&
         recent->idle;
}
/* to_span_sums_add() of RUNNING, and of whole calls. */
TB_MUST static inline bool to_span_sums_add_plain(struct to_span_sums *s, uint32_t slot,
                                                  enum to_go_state state, uint64_t ns) {
  const struct to_sums_goroutine *g = &s->goroutine[slot];

  if (TB_UNLIKELY(g->entry == TO_ENTRY_UNKNOWN)) return false;
  to_windows_sum_length(s->windows, state == TO_GO_RUNNING ? g->running : g->calling, ns);
  return true;
}

/* "" where it is not known. Valid as long as the object. */
struct to_string to_span_sums_entry(const struct to_span_sums *s, uint32_t entry);
/* The entry function of the goroutine that a stack is of. */
TB_MUST tb_rc to_span_sums_entry_of(struct to_span_sums *s, const struct to_generation *gen,
                                    uint64_t stack, uint32_t *out);
/* The sum of a goroutine's span. */
TB_MUST tb_rc to_span_sums_find(struct to_span_sums *s, const struct to_generation *gen,
                                const struct to_span *span, uint32_t *out);

/* A goroutine that yielded or was preempted is its own waker: its stack says it all. */
static inline bool to_sum_has_waker(unsigned state, unsigned why) {
  return state != TO_GO_RUNNABLE || why == TO_CAUSE_CREATED || why == TO_CAUSE_UNBLOCKED;
}

/* for (const struct to_span_sum *sum = NULL; (sum = to_span_sums_next(s, view, state, sum)) != NULL;)
 * Each sum of this state that the view has something of. */
const struct to_span_sum *to_span_sums_next(const struct to_span_sums *s,
                                            const struct to_view *view, enum to_go_state state,
                                            const struct to_span_sum *sum);

#endif
