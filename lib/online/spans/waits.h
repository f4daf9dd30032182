/* SPDX-License-Identifier: Apache-2.0 */
/* The object of a wait: reason, lock and queues. Used by spans.c only. */
#ifndef TO_SPANS_WAITS_H
#define TO_SPANS_WAITS_H

#include "online/spans/out.h"

COLD const struct to_reason_met *find_reason(struct to_spans *s, const struct to_generation *gen,
                                             uint64_t id) {
  static const struct to_reason_met unknown = { .reason = TO_REASON_OTHER, .holder = TO_NONE };
  struct to_reason_met *met = &s->reasons[id % TO_SPANS_REASONS];
  struct to_string text;

  if (gen == NULL || !to_generation_string(gen, id, &text)) return &unknown;
  tb_rc rc = to_reasons_number(&s->known_reasons, text, &met->reason);
  met->string = id + 1;
  if (rc == TB_OK) rc = to_lock_table_find(&s->locks, id, &met->lock, &met->holder);
  if (rc != TB_OK) s->failed = rc;
  return met;
}

HOT const struct to_reason_met *reason_of(struct to_spans *s, const struct to_generation *gen,
                                          uint64_t id) {
  const struct to_reason_met *met = &s->reasons[id % TO_SPANS_REASONS];

  return TB_LIKELY(met->string == id + 1) ? met : find_reason(s, gen, id);
}

/* Adds a waiting goroutine to the queues of its stack and its lock. */
TB_MUST HOT tb_rc enter_queue(struct to_spans *s, const struct to_generation *gen,
                              struct to_life *g) {
  bool is_near = g->stack - 1 < TO_STACK_KEPT - 1 && gen != NULL;
  uint32_t queue;

  g->queue = TO_STACK_OTHER; /* if its number cannot be found */
  if (TB_LIKELY(is_near))
    TB_TRY(to_stack_table_index(&s->stacks, gen, g->stack, &queue));
  else
    TB_TRY(to__stack_number(&s->stacks, gen, g->stack, &queue));
  g->queue = queue;
  if (TB_UNLIKELY(g->lock != TO_LOCK_NONE) && s->lock_waits != NULL)
    TB_TRY(to_queues_enter(&s->lock_waits->queues, g->lock, g->reason));
  return to_queues_enter(s->queues, queue, g->reason);
}

HOT bool is_in_queue(const struct to_spans *s, const struct to_life *g) {
  return g->state == TO_GO_WAITING && to_queues_want(s->queues, g->reason);
}

/* Removes a goroutine from its queues. */
HOT void leave_queue(struct to_spans *s, const struct to_life *g) {
  if (!is_in_queue(s, g)) return;
  to_queues_leave(s->queues, g->queue);
  if (TB_UNLIKELY(g->lock != TO_LOCK_NONE) && s->lock_waits != NULL)
    to_queues_leave(&s->lock_waits->queues, g->lock);
}

/* Removes a goroutine, in this slot, from its queues, and records the goroutine that ended the wait; NULL: unknown. */
TB_MUST HOT tb_rc wake_from_queue(struct to_spans *s, const struct to_life *g, uint32_t slot,
                                  const struct to_life *by) {
  if (!is_in_queue(s, g)) return TB_OK;
  to_queues_leave(s->queues, g->queue);
  if (TB_UNLIKELY(g->lock != TO_LOCK_NONE) && s->lock_waits != NULL)
    to_queues_leave(&s->lock_waits->queues, g->lock);
  if (s->wakers == NULL || by == NULL) return TB_OK;
  return to_wakers_note(s->wakers, slot, g->queue, to_waker(slot_of(s, by), by->life));
}

/* Counts a wait that ends, by lock. by: the goroutine that ended it; NULL: unknown. */
COLD tb_rc count_lock(struct to_spans *s, const struct to_generation *gen, const struct to_life *g,
                      const struct to_life *by, const struct to_event *ev, uint64_t stack) {
  struct to_span span = make_span(s, g, ev, 0, stack);

  if (g->state != TO_GO_WAITING || (s->lock_waits->reasons >> g->reason & 1) == 0) return TB_OK;
  if (s->thins) return TB_OK;
  span.lock = g->lock;
  return to_lock_waits_take(s->lock_waits, gen, &span, by == NULL ? 0 : slot_of(s, by));
}

#endif
