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
 *   WAITING   enum to_reason          both                   in the window's pool
 *   RUNNING   0                       none                   sum only
 *   SYSCALL   enum to_call_part       none                   sum only
 *
 * The entry function of a goroutine is the outermost frame of the first stack that the trace shows of it. Spans before
 * that one wait until the entry is known, or until a report is asked for.
 *
 * Where sums are too many, further spans are counted in the rest of their state and reason: its stacks are
 * TO_STACK_OTHER, its entry TO_ENTRY_OTHER.
 *
 * Memory    from mem: some 250 bytes a sum, 16 for each goroutine of the most that lived at once.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: this span is not counted.
 */
#ifndef TO_SPANS_SUMS_H
#define TO_SPANS_SUMS_H

#include "base/map.h"
#include "spans/spans.h"
#include "spans/stack_table.h"
#include "window/window.h"

enum {
  TO_ENTRY_UNKNOWN = 0, /* the trace never showed a stack */
  TO_ENTRY_OTHER = 1,   /* one that is not told apart */
  TO_ENTRIES_MAX = 1 << 14,
  TO_SUMS_RECENT = 256,
  TO_SUMS_HELD_MAX = 64,
  TO_SUMS_RESTS = TO_CAUSES + 1 + TO_REASONS + 2, /* one for each reason of each state */
};

/* Whole calls, and of those that lost their P the part after it. */
enum to_call_part { TO_CALL_WHOLE, TO_CALL_WITHOUT_PROC };

struct to_span_sum {
  uint32_t entry, stack, by_stack;
  uint32_t series;
  uint8_t state; /* enum to_go_state */
  uint8_t why;
};

struct to_sums_recent {
  uint64_t stack, by_stack; /* ids of the generation, or kept */
  uint64_t what;            /* to_sums_what(); 0: a free place */
  uint32_t series;
};

struct to_span_sums {
  struct tb_mem *mem;
  struct to_windows *windows;
  struct to_stack_table *stacks;
  struct to_sums_goroutine {
    uint32_t entry;            /* TO_ENTRY_UNKNOWN: so far */
    uint32_t running, calling; /* series of its entry, once that is known */
  } * goroutine;               /* by slot */
  size_t goroutines;
  struct to_sums_recent recent[TO_SUMS_RECENT];

  uint32_t of_why[TO_SUMS_RESTS]; /* series by state and reason: only parts of them are counted */
  struct to_span_sum *sum;        /* the first ones are the rests */
  size_t n, room, sums_max;       /* sums_max: of each state, rests not counted */
  size_t of[TO_GO_SYSCALL + 1];   /* sums by state, rests not counted */
  struct tb_map by_key;

  struct to_sums_entry {
    struct to_string text;
    uint32_t running, calling; /* series */
  } * entry;
  size_t entries, entries_room;
  struct tb_map entry_of;   /* by the text's place: a stack table keeps each once */
  uint32_t *entry_of_stack; /* by the stack's number; TO_ENTRY_UNKNOWN: not looked up */
  size_t entry_of_stacks;

  struct to_span held[TO_SUMS_HELD_MAX]; /* of goroutines whose entry is not known yet */
  size_t n_held;
};

TB_MUST tb_rc to_span_sums_init(struct to_span_sums *s, struct tb_mem *mem,
                                struct to_windows *windows, struct to_stack_table *stacks,
                                size_t sums_max);
void to_span_sums_fini(struct to_span_sums *s); /* accepts a zeroed one */

/* The pass over events counts spans here as they end (spans/spans.c). A life begins in this slot: */
TB_MUST tb_rc to_span_sums_begin(struct to_span_sums *s, uint32_t slot);
/* A goroutine's span that has ended, or a piece of a call after it has lost its P. gen: its generation. */
TB_MUST tb_rc to_span_sums_take(struct to_span_sums *s, const struct to_generation *gen,
                                const struct to_span *span);
/* A goroutine has ended, or a report is asked for (life 0: all goroutines): spans that wait for an entry are counted without one. */
TB_MUST tb_rc to_span_sums_settle(struct to_span_sums *s, uint64_t life);

/* What a recent one has besides stacks. */
static inline uint64_t to_sums_what(const struct to_span_sums *s, uint32_t entry,
                                    enum to_go_state state, unsigned why) {
  return (uint64_t)s->stacks->epoch << 32 | entry << 8 | (unsigned)state << 5 | why;
}
static inline struct to_sums_recent *to_sums_recent(struct to_span_sums *s, uint64_t what,
                                                    uint64_t stack, uint64_t by_stack) {
  return &s->recent[(stack * 31 + by_stack * 7 + what * 3 + (what >> 8)) % TO_SUMS_RECENT];
}
/* False: it is none of the recent ones: to_span_sums_take(). */
TB_MUST static inline bool to_span_sums_add(struct to_span_sums *s, uint32_t slot,
                                            enum to_go_state state, unsigned why, uint64_t stack,
                                            uint64_t by_stack, to_ns from, to_ns until,
                                            bool from_known) {
  uint64_t what = to_sums_what(s, s->goroutine[slot].entry, state, why);
  struct to_sums_recent *recent = to_sums_recent(s, what, stack, by_stack);

  if (TB_UNLIKELY(recent->what != what || recent->stack != stack || recent->by_stack != by_stack))
    return false;
  return to_windows_add_length(s->windows, recent->series, from, until, !from_known);
}
/* The same of RUNNING, and of whole calls. */
TB_MUST static inline bool to_span_sums_add_plain(struct to_span_sums *s, uint32_t slot,
                                                  enum to_go_state state, to_ns from, to_ns until,
                                                  bool from_known) {
  const struct to_sums_goroutine *g = &s->goroutine[slot];

  if (TB_UNLIKELY(g->entry == TO_ENTRY_UNKNOWN)) return false;
  to_counters_add_length(&s->windows->open, state == TO_GO_RUNNING ? g->running : g->calling, from,
                         (uint64_t)until - (uint64_t)from, !from_known);
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

/* for (const struct to_span_sum *sum = NULL; (sum = to_span_sums_next(s, view, state, sum)) != NULL;)
 * Each sum of this state that the view has something of. */
const struct to_span_sum *to_span_sums_next(const struct to_span_sums *s,
                                            const struct to_view *view, enum to_go_state state,
                                            const struct to_span_sum *sum);

#endif
