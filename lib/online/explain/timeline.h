/* SPDX-License-Identifier: Apache-2.0 */
/* What goroutines did in a part of a trace, kept so that it can be walked back: their states by goroutine, in order; when
 * the world stood still, and when they helped the garbage collector.
 *
 *     to_timeline_init(&t, mem, from, until);
 *     TB_TRY(to_timeline_add(&t, span, stack, by_stack));      -- each GOROUTINE, LIFE and RANGE span, open ones last
 *
 * Memory    from mem: 48 bytes for each state that reaches into the part, about 150 a goroutine.
 * Threads   use each object from one thread at a time.
 * Errors    TB_BUDGET, TB_NOMEM: the span is missing.
 */
#ifndef TO_EXPLAIN_TIMELINE_H
#define TO_EXPLAIN_TIMELINE_H

#include "base/map.h"
#include "online/explain/stretches.h"
#include "online/spans/spans.h"

struct to_moment_span { /* of one goroutine, one state */
  to_ns from, until;
  uint64_t by_life; /* the goroutine that ended it; 0: the runtime, or not known */
  uint32_t stack, by_stack;
  uint8_t state, reason, cause;
  bool open, until_known;
};

struct to_history { /* of one goroutine */
  uint64_t life;
  int64_t goroutine;
  struct to_moment_span *span; /* rising; they do not overlap */
  size_t n, room;
  struct to_stretches assists;
  to_ns born; /* with is_born */
  uint64_t creator;
  uint32_t entry_stack, creation_stack;
  bool is_born;
};

struct to_timeline {
  struct tb_mem *mem;
  to_ns from, until;
  struct to_history *history;
  size_t n, room, spans;
  struct to_stretches stops; /* of the world */
  uint32_t procs;        /* the largest number of a P that ran a goroutine, and 1; 0: none did */
  struct tb_map by_life; /* to its place, from 1 */
};

void to_timeline_init(struct to_timeline *t, struct tb_mem *mem, to_ns from, to_ns until);
void to_timeline_fini(struct to_timeline *t);
/* stack and by_stack: numbers of to_spans_stack(). Of a LIFE: where it begins, where it was created. Other kinds of spans
 * are left out, and so is what lies outside of the part. */
TB_MUST tb_rc to_timeline_add(struct to_timeline *t, const struct to_span *span, uint32_t stack,
                              uint32_t by_stack);

/* NULL: it does nothing in the part, or is not known. */
const struct to_history *to_timeline_find(const struct to_timeline *t, uint64_t life);
/* The span in which time lies, its begin not counted, its end counted. NULL: there is none. */
const struct to_moment_span *to_history_at(const struct to_history *history, to_ns time);
/* The end of the last span that begins before time; INT64_MIN: none does. */
to_ns to_history_before(const struct to_history *history, to_ns time);

#endif
