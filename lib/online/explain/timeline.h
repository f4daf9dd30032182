/* SPDX-License-Identifier: Apache-2.0 */
/* States of goroutines in a part of a trace, by goroutine and in order, for walks back in time; with stops of the world
 * and mark assists.
 *
 *     to_timeline_init(&t, mem, from, until);
 *     TB_TRY(to_timeline_add(&t, span, stack, by_stack));      -- each GOROUTINE, LIFE and RANGE span, open ones last
 *
 * Memory    from mem: 48 bytes for each state that overlaps the part, about 150 a goroutine.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the span is missing.
 */
#ifndef TO_EXPLAIN_TIMELINE_H
#define TO_EXPLAIN_TIMELINE_H

#include "base/map.h"
#include "online/explain/stretches.h"
#include "online/spans/spans.h"

struct to_moment_span { /* one state of one goroutine */
  to_ns from, until;
  uint64_t by_life; /* life of the goroutine that ended it; 0: the runtime, or unknown */
  uint32_t stack, by_stack;
  uint8_t state, reason, cause;
  bool open, until_known;
};

struct to_history { /* one goroutine */
  uint64_t life;
  int64_t goroutine;
  struct to_moment_span *span; /* in rising order; they do not overlap */
  size_t n, room;
  struct to_stretches assists;
  to_ns born; /* valid if is_born */
  uint64_t creator;
  uint32_t entry_stack, creation_stack;
  bool is_born;
};

struct to_timeline {
  struct tb_mem *mem;
  to_ns from, until;
  struct to_history *history;
  size_t n, room, spans;
  struct to_stretches stops; /* stops of the world */
  uint32_t procs;            /* 1 + the largest number of a P that ran a goroutine; 0: none did */
  struct tb_map by_life;     /* 1 + index in history */
};

void to_timeline_init(struct to_timeline *t, struct tb_mem *mem, to_ns from, to_ns until);
void to_timeline_fini(struct to_timeline *t);
/* Adds a GOROUTINE, LIFE or RANGE span; ignores others. stack and by_stack are numbers from to_spans_stack(); for a LIFE,
 * of the stack where the goroutine begins and of the one that created it. */
TB_MUST tb_rc to_timeline_add(struct to_timeline *t, const struct to_span *span, uint32_t stack,
                              uint32_t by_stack);

/* Returns NULL if the goroutine has no span in the part. */
const struct to_history *to_timeline_find(const struct to_timeline *t, uint64_t life);
/* Returns the span with from < time <= until; NULL: none. */
const struct to_moment_span *to_history_at(const struct to_history *history, to_ns time);
/* Returns the end of the last span that begins before time; INT64_MIN: none. */
to_ns to_history_before(const struct to_history *history, to_ns time);

#endif
