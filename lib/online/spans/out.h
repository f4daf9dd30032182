/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the end of a goroutine's state: counts the state in the sums, and emits a span if required. Used by spans.c only. */
#ifndef TO_SPANS_OUT_H
#define TO_SPANS_OUT_H

#include <string.h>

#include "online/spans/state.h"

/* The code that spans.c runs per event must be one loop; gcc would not inline what most events call. */
#ifdef TC_SANITIZED
#define HOT static inline
#else
#define HOT static inline __attribute__((always_inline))
#endif
#define COLD static __attribute__((noinline))

HOT uint32_t slot_of(const struct to_spans *s, const struct to_life *g) {
  return (uint32_t)(g - s->lives);
}

/* Emits a goroutine's span. Sets every field: the place contains an older span. */
HOT struct to_span *put(struct to_spans *s, const struct to_life *g, bool on_thread,
                        const struct to_event *ev, uint64_t by_life, uint64_t end_stack,
                        uint64_t by_stack) {
  struct to_span *span = &s->slice->out[s->n++];

  span->from = g->since;
  span->until = ev->time;
  span->id = g->id;
  span->life = g->life;
  span->proc = on_thread ? g->proc : TO_NONE;
  span->thread = on_thread ? g->thread : TO_NONE;
  span->by_life = by_life;
  span->by = ev->g;
  span->by_thread = ev->m;
  span->stack = g->stack;
  span->end_stack = end_stack;
  span->by_stack = by_stack;
  memcpy(&span->state, &g->state,
         sizeof g->state + sizeof g->reason + sizeof g->cause + sizeof g->known);
  span->kind = TO_SPAN_GOROUTINE;
  span->until_known = true;
  span->open = false;
  span->more = NULL;
  span->slot = slot_of(s, g);
  span->lock = g->state == TO_GO_WAITING ? g->lock : TO_LOCK_NONE;
  return span;
}

COLD void add_label(struct to_spans *s, const struct to_life *g, struct to_span *span) {
  struct to_string label = to__spans_label(s, g);

  if (label.len > 0) to__spans_more(s, span)->name = label;
}

/* Makes the span of g that ends with ev. */
static struct to_span make_span(const struct to_spans *s, const struct to_life *g,
                                const struct to_event *ev, uint64_t end_stack, uint64_t by_stack) {
  return (struct to_span){ .from = g->since,
                           .until = ev->time,
                           .id = g->id,
                           .life = g->life,
                           .slot = slot_of(s, g),
                           .stack = g->stack,
                           .end_stack = end_stack,
                           .by_stack = by_stack,
                           .state = g->state,
                           .reason = g->reason,
                           .cause = g->cause,
                           .from_known = g->known,
                           .kind = TO_SPAN_GOROUTINE,
                           .until_known = true };
}

COLD void count_far(struct to_spans *s, const struct to_generation *gen,
                    const struct to_span *span) {
  tb_rc rc = to_span_sums_take(s->sums, gen, span);

  if (rc != TB_OK) s->failed = rc;
}

/* Looks only for the goroutine's entry function. */
HOT void meet_state(struct to_spans *s, const struct to_generation *gen, const struct to_life *g,
                    uint64_t end_stack) {
  uint64_t stack = g->stack != 0 ? g->stack : end_stack;

  if (s->sums->goroutine[slot_of(s, g)].entry != TO_ENTRY_UNKNOWN) return;
  tb_rc rc = to_span_sums_meet(s->sums, gen, slot_of(s, g), g->life, stack);
  if (rc != TB_OK) s->failed = rc;
}

HOT void count_state(struct to_spans *s, const struct to_generation *gen, const struct to_life *g,
                     uint32_t slot, enum to_go_state state, const struct to_event *ev,
                     uint64_t end_stack, uint64_t by_stack) {
  bool is_plain = state == TO_GO_RUNNING || state == TO_GO_SYSCALL;
  uint64_t ns = (uint64_t)ev->time - (uint64_t)g->since;
  bool done = false;

  if (s->sums == NULL) return;
  if (TB_UNLIKELY(s->thins)) {
    meet_state(s, gen, g, end_stack);
    return;
  }
  if (TB_LIKELY(g->known)) {
    unsigned how = TO_SUMS_HOW(state, state == TO_GO_WAITING ? g->reason : g->cause);
    done = is_plain ? to_span_sums_add_plain(s->sums, slot, state, ns)
                    : to_span_sums_add(s->sums, slot, how, g->stack, by_stack, ns);
  }
  if (TB_LIKELY(done)) return;
  struct to_span span = make_span(s, g, ev, end_stack, by_stack);
  count_far(s, gen, &span);
}

HOT bool comes_out(const struct to_spans *s, const struct to_life *g, enum to_go_state state,
                   const struct to_event *ev) {
  if (TB_UNLIKELY(s->thins) && state != TO_GO_SYSCALL) return false;
  to_ns bound = state == TO_GO_WAITING   ? s->waits_longer_than[g->reason]
                : state == TO_GO_SYSCALL ? -1 /* the others were counted: call_is_counted() */
                                         : s->longer_than[state];

  return (s->wanted & (UINT32_C(1) << (16 + state))) != 0 && ev->time - g->since > bound;
}

/* Returns true if the call that ends with ev needs no span, and counts it. */
HOT bool call_is_counted(const struct to_spans *s, const struct to_life *g,
                         const struct to_event *ev, bool lost_proc) {
  to_ns ns = ev->time - g->since;

  if (s->calls == NULL || lost_proc || !g->known || ns > s->longer_than[TO_GO_SYSCALL])
    return false;
  return s->thins || to_calls_add(s->calls, g->stack, (uint64_t)ns);
}

COLD void report_long_wait(struct to_spans *s, const struct to_generation *gen,
                           const struct to_life *g) {
  tb_rc rc = s->long_wait.ended(s->long_wait.self, gen, g);

  if (rc != TB_OK) s->failed = rc;
}

/* slot: of g. by_life: of the event's context. g->state is state, except in a forged trace. */
HOT void put_state(struct to_spans *s, const struct to_generation *gen, const struct to_life *g,
                   uint32_t slot, enum to_go_state state, const struct to_event *ev,
                   uint64_t by_life, uint64_t end_stack, uint64_t by_stack, bool lost_proc) {
  bool on_thread = state == TO_GO_RUNNING || state == TO_GO_SYSCALL;

  to__region_time(s, g, state, ev->time);
  count_state(s, gen, g, slot, state, ev, end_stack, by_stack);
  if (state == TO_GO_WAITING && TB_UNLIKELY(ev->time - g->since >= s->long_wait.min_ns))
    report_long_wait(s, gen, g);
  if (state == TO_GO_SYSCALL && call_is_counted(s, g, ev, lost_proc)) return;
  if (!comes_out(s, g, state, ev)) return;
  if (state == TO_GO_WAITING && s->sums != NULL &&
      to_span_sums_is_idle(s->sums, slot, g->reason, g->stack, by_stack))
    return;
  struct to_span *span = put(s, g, on_thread, ev, by_life, end_stack, by_stack);
  if (state == TO_GO_SYSCALL) span->lost_proc = lost_proc;
  if (on_thread && TB_UNLIKELY(g->more != 0)) add_label(s, g, span);
}

/* The span names the waker, not the thread that found the goroutine. */
HOT void put_runnable(struct to_spans *s, const struct to_generation *gen, const struct to_life *g,
                      const struct to_event *ev) {
  to__region_time(s, g, TO_GO_RUNNABLE, ev->time);
  count_state(s, gen, g, ev->slot, TO_GO_RUNNABLE, ev, 0, g->made_by_stack);
  if (!comes_out(s, g, TO_GO_RUNNABLE, ev)) return;
  put(s, g, false, ev, g->made_by_life, 0, g->made_by_stack)->by = g->made_by;
}

static void make_piece(const struct to_life *g, struct to_span *span) {
  span->kind = TO_SPAN_SYSCALL;
  span->from = g->piece_since;
  span->state = !g->without_p;
  span->from_known = g->known || g->piece_since != g->since;
}

/* Counts a part of a call without its P, only in the sums. */
COLD void count_part(struct to_spans *s, const struct to_generation *gen, const struct to_life *g,
                     const struct to_event *ev, to_ns since, enum to_call_part part) {
  struct to_span span = make_span(s, g, ev, 0, 0);

  if (s->sums == NULL || s->thins) return;
  make_piece(g, &span);
  span.from = since;
  span.cause = (uint8_t)part;
  count_far(s, gen, &span);
}

static enum to_call_part part_of(const struct to_life *g) {
  if (!to__lost_proc(g)) return TO_CALL_NEVER_PROC;
  return g->unseen ? TO_CALL_UNSEEN : TO_CALL_WITHOUT_PROC;
}

/* Counts a part of a call with its P, which ends. */
HOT void count_call(struct to_spans *s, int64_t proc, to_ns from, to_ns until) {
  uint64_t place = (uint64_t)proc + 1;

  if (TB_LIKELY(place <= TO_SPANS_PROCS_NEAR))
    s->call_ns[place] += (uint64_t)until - (uint64_t)from;
}

/* by_life: of the event's context. */
HOT void put_piece(struct to_spans *s, const struct to_generation *gen, const struct to_life *g,
                   const struct to_event *ev, uint64_t by_life, bool loses_proc) {
  if (TB_UNLIKELY(g->without_p))
    count_part(s, gen, g, ev, g->piece_since, part_of(g));
  else
    count_call(s, g->proc, g->piece_since, ev->time);
  if (!to__wants(s, TO_WANT(SYSCALL))) return;
  struct to_span *span = put(s, g, true, ev, by_life, 0, 0);
  make_piece(g, span);
  span->lost_proc = loses_proc;
  if (g->without_p) span->proc = TO_NONE;
}

/* Returns the goroutine in a call on this thread that has or had this P. */
static inline struct to_life *in_call(struct to_spans *s, int64_t proc, int64_t thread) {
  struct to_life *g = &s->lives[to__spans_runs_on(s, proc)];
  const uint64_t *slot;

  if (thread == TO_NONE) return NULL;
  if (g->life != 0 && g->state == TO_GO_SYSCALL && g->thread == thread) return g;
  slot = tb_map_find(&s->calls_by_thread, (uint64_t)thread);
  g = slot == NULL ? NULL : &s->lives[*slot];
  return g != NULL && g->state == TO_GO_SYSCALL && g->thread == thread ? g : NULL;
}

/* Remembers when a goroutine released its P, just before it ends in its call. If Go's summaries know the call's P, they count
 * the moment between the two events as time without a P. */
static void note_leaving(struct to_spans *s, const struct to_event *ev) {
  const struct to_life *g = in_call(s, (int64_t)ev->args[0], ev->m);

  if (g == NULL) return;
  s->leaving = g->life;
  s->leaving_since = ev->time;
  s->leaving_seen =
      ev->args[0] < TO_SPANS_PROCS_NEAR && s->calls_on[ev->args[0] + 1] == slot_of(s, g);
}

static void count_leaving(struct to_spans *s, const struct to_generation *gen,
                          const struct to_life *g, const struct to_event *ev) {
  if (s->leaving != g->life) return;
  count_call(s, g->proc, ev->time, s->leaving_since);
  if (s->leaving_seen) count_part(s, gen, g, ev, s->leaving_since, TO_CALL_WITHOUT_PROC);
}

#endif
