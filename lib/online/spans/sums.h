/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of goroutines' spans, counted once for all analyses.
 *
 * A sum covers the spans with the same state, reason, entry function, stack and waker's stack. Reports by stack, by
 * reason or by entry function add sums up. So a span costs a lookup in a small cache and one count, no matter how many
 * reports there are.
 *
 *   state     why                     stack, by_stack        lengths
 *   RUNNABLE  enum to_cause           both; by_stack only    in the window's pool
 *                                     if it has a waker
 *   WAITING   to_spans_reason()       both                   in the window's pool
 *   RUNNING   0                       none                   sum only
 *   SYSCALL   enum to_call_part       none                   sum only
 *   NOT_EXIST 0                       none                   sum only: whole lives, from birth to end
 *
 * Live goroutines are counted by entry function and by place of creation. A goroutine's ranges (mark assists, sweeps,
 * stops of the world) are summed by its entry function.
 *
 * A goroutine's entry function is the outermost frame of its first stack that has a name there. Earlier spans are held
 * until the entry is known, or until a report is made.
 *
 * If there are too many sums, further spans are counted in the rest of their state and reason: its stacks are
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
  TO_ENTRY_UNKNOWN = 0, /* the trace has not shown a stack with a name */
  TO_ENTRY_OTHER = 1,   /* entry functions above the limit */
  TO_ENTRIES_MAX = 1 << 14,
  TO_SUMS_RECENT_BITS = 10,
  TO_SUMS_RECENT = 1 << TO_SUMS_RECENT_BITS,
  TO_SUMS_HELD_MAX = 64,
  TO_SUMS_CALL_PARTS = 5,
  TO_SUMS_RESTS =
      1 + TO_CAUSES + 1 + TO_REASONS + TO_SUMS_CALL_PARTS, /* one per state and reason */
  TO_SUMS_RECENT_BIRTHS = 64,
  TO_SITES_MAX = 1 << 10,
  TO_SITE_UNKNOWN = 0, /* created before the trace began, or by no goroutine */
  TO_SITE_OTHER = 1,   /* places above the limit */
};

/* Parts of calls that are summed: the whole call; the part after the loss of the P; a call that never had a P, or not
 * since the begin of the trace; of the latter the part before the trace stated the call. */
enum to_call_part {
  TO_CALL_WHOLE,
  TO_CALL_WITHOUT_PROC,
  TO_CALL_UNSEEN, /* as WITHOUT_PROC, if Go's summaries do not see the loss */
  TO_CALL_NEVER_PROC,
  TO_CALL_UNSTATED,
  TO_CALL_PARTS
};
_Static_assert((int)TO_CALL_PARTS == (int)TO_SUMS_CALL_PARTS, "each has a rest");

/* Ranges that belong to a goroutine. */
enum to_sums_range { TO_SUMS_ASSIST, TO_SUMS_SWEEP, TO_SUMS_STOP, TO_SUMS_RANGES };

struct to_span_sum {
  uint32_t entry, stack, by_stack;
  uint32_t series;
  uint8_t state; /* enum to_go_state */
  uint8_t why;
  bool idle; /* for WAITING: online/spans/stacks/idle.h */
};

struct to_sums_recent {
  uint64_t stack, by_stack; /* ids of the generation, or TO_STACK_KEPT | number */
  uint64_t what;            /* to_sums_what(); 0: a free place */
  uint32_t series;
  bool idle;
};

/* Recent sums. Streams of one thread share it, so that it stays in the processor's cache. A turn is a generation of a
 * stream, or what is left of it after others had their turn: what earlier turns left is not found. */
struct to_sums_cache {
  uint64_t turns;
  struct to_sums_recent recent[TO_SUMS_RECENT];
};

struct to_span_sums {
  struct tb_mem *mem;
  struct to_windows *windows;
  struct to_stack_table *stacks;
  struct to_idle *idle; /* NULL: no wait is idle */
  struct to_sums_goroutine {
    uint32_t entry;            /* TO_ENTRY_UNKNOWN: not known yet */
    uint32_t running, calling; /* series of the entry, if it is known */
    uint32_t site;             /* where it was created */
  } * goroutine;               /* by slot */
  size_t goroutines;
  struct to_sums_cache *cache;
  uint64_t turn; /* number of this stream's in the cache */

  /* Series by state and reason, the parents of sums: of those that are not idle, and of idle waits (0: none yet). */
  uint32_t of_why[TO_SUMS_RESTS], of_idle[TO_SUMS_RESTS];
  struct to_span_sum *sum;      /* the first TO_SUMS_RESTS are the rests */
  size_t n, room, sums_max;     /* sums_max: per state, without rests */
  size_t of[TO_GO_SYSCALL + 1]; /* sums by state, without rests */
  struct tb_map by_key;

  struct to_sums_entry {
    /* NULL in the entries for unknown functions and for functions above the limit. */
    const struct to_frame *frame;
    uint32_t running, calling, lives; /* series */
    uint32_t range[TO_SUMS_RANGES];   /* series + 1; 0: none yet */
    uint32_t alive;                   /* live goroutines */
  } * entry;
  size_t entries, entries_room;
  struct tb_map entry_of;   /* by the text's address: a stack table stores each text once */
  uint32_t *entry_of_stack; /* by number of the stack; TO_ENTRY_UNKNOWN: not looked up */
  size_t entry_of_stacks;

  struct to_sums_site {
    uint32_t stack;
    bool begins;    /* created by the runtime (time.AfterFunc): stack is where they begin */
    uint32_t alive; /* live goroutines */
    uint32_t created, lives; /* series: moments, and whole lives with their lengths */
  } * site;
  size_t sites, sites_room;
  struct to_sums_recent_birth {
    uint64_t stack, begins; /* ids of the generation */
    uint32_t epoch;         /* epoch of the stack table; 0: a free place */
    uint32_t entry, site;
  } recent_birth[TO_SUMS_RECENT_BIRTHS];
  uint32_t of_range;             /* series, the parent of the entries' ranges */
  uint32_t of_creation, of_life; /* series, the parents of the sites' */
  struct tb_map site_of;         /* by number of the stack and begins */

  struct to_span *held; /* at most TO_SUMS_HELD_MAX of goroutines whose entry is not known yet */
  size_t n_held, held_room;
};

TB_MUST tb_rc to_span_sums_init(struct to_span_sums *s, struct tb_mem *mem,
                                struct to_windows *windows, struct to_stack_table *stacks,
                                struct to_idle *idle, struct to_sums_cache *cache, size_t sums_max);
void to_span_sums_fini(struct to_span_sums *s); /* accepts a zeroed one */

/* Begins a turn. Call it when stacks get other ids, and after others used the cache. */
static inline void to_span_sums_turn(struct to_span_sums *s) {
  s->turn = ++s->cache->turns;
}

/* Begins a life in this slot, of a goroutine that the trace did not create. (spans.c calls these functions as spans end.) */
TB_MUST tb_rc to_span_sums_begin(struct to_span_sums *s, uint32_t slot);
/* Begins a life with its creation. stack: of the goroutine that created it; without one, the place of creation is where it
 * begins. begins: its own first stack. */
TB_MUST tb_rc to_span_sums_create(struct to_span_sums *s, const struct to_generation *gen,
                                  uint32_t slot, uint64_t life, uint64_t stack, uint64_t begins,
                                  to_ns now);
/* Passes in a stack of the goroutine. The entry function is read from the goroutine's first stack that has one. Call it before
 * the span of this stack is counted. */
TB_MUST tb_rc to_span_sums_meet(struct to_span_sums *s, const struct to_generation *gen,
                                uint32_t slot, uint64_t life, uint64_t stack);
/* Ends or cuts the life in this slot. */
TB_MUST tb_rc to_span_sums_end(struct to_span_sums *s, uint32_t slot, to_ns from, to_ns until,
                               bool from_known);
/* Applies changed rules for idle waits from now on. */
void to_span_sums_idle_changed(struct to_span_sums *s);
/* Begins a new epoch, after a hole: no goroutine is alive. */
void to_span_sums_clear(struct to_span_sums *s);
/* Counts a goroutine's span that has ended, or a piece of a call after the loss of its P. gen: its generation. */
TB_MUST tb_rc to_span_sums_take(struct to_span_sums *s, const struct to_generation *gen,
                                const struct to_span *span);
/* Spans are held while their entry function is not known. Counts the held spans of this life (0: of all lives) for the unknown
 * entry. Call it when the goroutine has ended, and with 0 before a report. */
TB_MUST tb_rc to_span_sums_settle(struct to_span_sums *s, uint64_t life);

/* Adds the length of a range that has ended to its goroutine's sums. range->state is the kind of range. Ignores ranges that
 * Go's summaries do not attribute to a goroutine. */
TB_MUST tb_rc to_span_sums_range(struct to_span_sums *s, const struct to_span *range);
/* Returns false if ranges of this kind do not belong to a goroutine. */
bool to_sums_range_of(unsigned kind, enum to_sums_range *out);

/* Makes the key of a recent sum, without stacks. how: TO_SUMS_HOW(). */
#define TO_SUMS_HOW(state, why) ((unsigned)(state) << 6 | (unsigned)(why))
static inline uint64_t to_sums_what(const struct to_span_sums *s, uint32_t entry, unsigned how) {
  return s->turn << 23 | entry << 9 | how;
}
static inline struct to_sums_recent *to_sums_recent(struct to_span_sums *s, uint64_t what,
                                                    uint64_t stack, uint64_t by_stack) {
  uint64_t mixed = what * UINT64_C(0x9e3779b97f4a7c15) + stack * UINT64_C(0xc2b2ae3d27d4eb4f) +
                   by_stack * UINT64_C(0x165667b19e3779f9);

  return &s->cache->recent[mixed >> (64 - TO_SUMS_RECENT_BITS)];
}
/* Counts a span whose begin is known. Returns false if its sum is not a recent one: call to_span_sums_take(). */
TB_MUST static inline bool to_span_sums_add(struct to_span_sums *s, uint32_t slot, unsigned how,
                                            uint64_t stack, uint64_t by_stack, uint64_t ns) {
  uint64_t what = to_sums_what(s, s->goroutine[slot].entry, how);
  const struct to_sums_recent *recent = to_sums_recent(s, what, stack, by_stack);

  if (TB_UNLIKELY(recent->what != what || recent->stack != stack || recent->by_stack != by_stack))
    return false;
  return to_windows_add_length(s->windows, recent->series, ns);
}
/* Returns true if the wait, which was just counted, is known to be idle. */
static inline bool to_span_sums_is_idle(struct to_span_sums *s, uint32_t slot, unsigned why,
                                        uint64_t stack, uint64_t by_stack) {
  uint64_t what = to_sums_what(s, s->goroutine[slot].entry, TO_SUMS_HOW(TO_GO_WAITING, why));
  const struct to_sums_recent *recent = to_sums_recent(s, what, stack, by_stack);

  return recent->what == what && recent->stack == stack && recent->by_stack == by_stack &&
         recent->idle;
}
/* Variant of to_span_sums_add() for RUNNING and whole calls. */
TB_MUST static inline bool to_span_sums_add_plain(struct to_span_sums *s, uint32_t slot,
                                                  enum to_go_state state, uint64_t ns) {
  const struct to_sums_goroutine *g = &s->goroutine[slot];

  if (TB_UNLIKELY(g->entry == TO_ENTRY_UNKNOWN)) return false;
  to_windows_sum_length(s->windows, state == TO_GO_RUNNING ? g->running : g->calling, ns);
  return true;
}

/* Returns "" if the name is unknown. Valid as long as the object. */
struct to_string to_span_sums_entry(const struct to_span_sums *s, uint32_t entry);
/* As to_span_sums_entry(), for a goroutine's slot. */
struct to_string to_span_sums_entry_at(const struct to_span_sums *s, uint32_t slot);
/* Finds the entry function of the goroutine with this stack. */
TB_MUST tb_rc to_span_sums_entry_of(struct to_span_sums *s, const struct to_generation *gen,
                                    uint64_t stack, uint32_t *out);
/* Finds the sum of a goroutine's span. */
TB_MUST tb_rc to_span_sums_find(struct to_span_sums *s, const struct to_generation *gen,
                                const struct to_span *span, uint32_t *out);

/* Returns false for a goroutine that yielded or was preempted: its waker would be itself. */
static inline bool to_sum_has_waker(unsigned state, unsigned why) {
  return state != TO_GO_RUNNABLE || why == TO_CAUSE_CREATED || why == TO_CAUSE_UNBLOCKED;
}

/* Iterates over the sums of this state that the view contains:
 * for (const struct to_span_sum *sum = NULL; (sum = to_span_sums_next(s, view, state, sum)) != NULL;) */
const struct to_span_sum *to_span_sums_next(const struct to_span_sums *s,
                                            const struct to_view *view, enum to_go_state state,
                                            const struct to_span_sum *sum);

#endif
