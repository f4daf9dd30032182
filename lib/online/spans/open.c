/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that have not ended. */
#include "online/spans/state.h"

struct asked {
  const struct to_spans *s;
  tb_rc (*each)(void *self, const struct to_span *span);
  void *self;
};

static struct to_span open_span(const struct to_spans *s, enum to_span_kind kind, to_ns since,
                                bool known) {
  return (struct to_span){ .kind = (uint8_t)kind,
                           .from = since,
                           .until = s->now,
                           .proc = TO_NONE,
                           .thread = TO_NONE,
                           .by = TO_NONE,
                           .by_thread = TO_NONE,
                           .from_known = known,
                           .open = true };
}

static tb_rc report_span(const struct asked *a, uint32_t bits, const struct to_span *span) {
  return to__wants(a->s, bits) ? a->each(a->self, span) : TB_OK;
}

static tb_rc report_with(const struct asked *a, uint32_t bits, struct to_span *span,
                         struct to_span_more more) {
  span->more = &more;
  return report_span(a, bits, span);
}

static tb_rc open_life(const struct asked *a, uint32_t slot) {
  const struct to_birth *birth = &a->s->births[slot];
  const struct to_life *g = &a->s->lives[slot];
  struct to_span span = open_span(a->s, TO_SPAN_LIFE, birth->at, birth->known);

  span.id = g->id;
  span.life = g->life;
  span.slot = slot;
  span.by_life = birth->creator;
  span.by = birth->creator_id;
  span.by_thread = birth->creator_thread;
  span.stack = birth->entry;
  span.end_stack = birth->stack;
  const struct to_label *label = tb_map_at(&a->s->labels, slot);
  if (label == NULL) return report_span(a, TO_WANT(LIFE), &span);
  return report_with(a, TO_WANT(LIFE), &span,
                     (struct to_span_more){ .name = to__name_text(label->name) });
}

static tb_rc open_state(const struct asked *a, uint32_t slot) {
  const struct to_life *g = &a->s->lives[slot];
  struct to_span span = open_span(a->s, TO_SPAN_GOROUTINE, g->since, g->known);
  struct to_span_more label = { .value = 0 };

  span.id = g->id;
  span.life = g->life;
  span.slot = slot;
  span.stack = g->stack;
  span.state = g->state;
  span.reason = g->reason;
  if (g->state == TO_GO_WAITING) span.lock = g->lock;
  if (g->state == TO_GO_RUNNABLE) {
    span.cause = g->cause;
    span.by = g->made_by;
    span.by_life = g->made_by_life;
    span.by_stack = g->made_by_stack;
  }
  if (g->state == TO_GO_RUNNING || g->state == TO_GO_SYSCALL) {
    span.proc = g->proc;
    span.thread = g->thread;
    span.lost_proc = g->state == TO_GO_SYSCALL && to__lost_proc(g);
    label.name = to__spans_label(a->s, g);
    if (label.name.len > 0) span.more = &label;
  }
  TB_TRY(report_span(a, UINT32_C(1) << (16 + g->state), &span));
  if (g->state != TO_GO_SYSCALL) return TB_OK;
  span.kind = TO_SPAN_SYSCALL;
  span.from = g->piece_since;
  span.from_known = g->known || g->piece_since != g->since;
  span.state = !g->without_p;
  if (g->without_p) span.proc = TO_NONE;
  span.lost_proc = false;
  span.more = NULL;
  return report_span(a, TO_WANT(SYSCALL), &span);
}

static tb_rc open_lives(const struct asked *a) {
  for (uint32_t slot = 0; slot < a->s->slots_end; slot++) {
    if (a->s->lives[slot].life == 0) continue;
    TB_TRY(open_life(a, slot));
    TB_TRY(open_state(a, slot));
  }
  return TB_OK;
}

static tb_rc open_procs(const struct asked *a) {
  uint64_t id, value;

  for (size_t i = 0; tb_map_next(&a->s->procs, &i, &id, &value);) {
    const struct to_proc_life *p = (const struct to_proc_life *)(uintptr_t)value;
    struct to_span span = open_span(a->s, TO_SPAN_PROC, p->since, p->known);
    span.id = span.proc = p->id;
    span.state = p->state;
    span.thread = p->state == TO_PROC_RUNNING ? p->thread : TO_NONE;
    TB_TRY(report_span(a, TO_WANT(PROC), &span));
  }
  return TB_OK;
}

static tb_rc open_threads(const struct asked *a) {
  uint64_t id, value;

  for (size_t i = 0; tb_map_next(&a->s->threads, &i, &id, &value);) {
    const struct to_thread_life *t = (const struct to_thread_life *)(uintptr_t)value;
    if (!t->seen) continue;
    struct to_span span = open_span(a->s, TO_SPAN_THREAD, t->since, t->known);
    span.id = span.thread = (int64_t)id;
    span.state = t->state;
    TB_TRY(report_span(a, TO_WANT(THREAD), &span));
  }
  return TB_OK;
}

static tb_rc open_range(const struct asked *a, unsigned kind, int64_t id,
                        const struct to_open_range *open) {
  struct to_span span = open_span(a->s, TO_SPAN_RANGE, open->since, open->known);

  span.id = id;
  if (kind != TO_RANGE_GC_SWEEP) span.life = open->life; /* a sweep is a P's, not a goroutine's */
  span.by_life = open->life;
  span.slot = open->slot;
  span.state = (uint8_t)kind;
  span.stack = open->stack;
  return report_with(a, TO_WANT(RANGE), &span,
                     (struct to_span_more){ .name = to__name_text(open->name) });
}

static tb_rc open_ranges(const struct asked *a) {
  uint64_t id, value;

  for (unsigned kind = 0; kind < TO_RANGES; kind++)
    for (size_t i = 0; tb_map_next(&a->s->ranges[kind], &i, &id, &value);)
      for (const struct to_open_range *open = (const struct to_open_range *)(uintptr_t)value;
           open != NULL; open = open->below)
        TB_TRY(open_range(a, kind, (int64_t)id, open));
  return TB_OK;
}

static tb_rc open_tasks(const struct asked *a) {
  uint64_t id, value;

  for (size_t i = 0; tb_map_next(&a->s->tasks, &i, &id, &value);) {
    const struct to_open_task *open = (const struct to_open_task *)(uintptr_t)value;
    struct to_span span = open_span(a->s, TO_SPAN_TASK, open->since, true);
    span.life = open->life;
    span.stack = open->stack;
    TB_TRY(report_with(a, TO_WANT(TASK), &span,
                       (struct to_span_more){ .name = to__name_text(open->name),
                                              .value = id,
                                              .parent = open->parent,
                                              .goroutine = open->goroutine }));
  }
  return TB_OK;
}

static tb_rc open_regions(const struct asked *a) {
  uint64_t slot, value;

  for (size_t i = 0; tb_map_next(&a->s->regions, &i, &slot, &value);) {
    const struct to_open_region *open = (const struct to_open_region *)(uintptr_t)value;
    for (; open != NULL; open = open->below) {
      struct to_span span = open_span(a->s, TO_SPAN_REGION, open->since, true);
      span.id = a->s->lives[slot].id;
      span.life = a->s->lives[slot].life;
      span.slot = (uint32_t)slot;
      span.stack = open->stack;
      TB_TRY(report_with(
          a, TO_WANT(REGION), &span,
          (struct to_span_more){ .name = to__name_text(open->name), .value = open->task }));
    }
  }
  return TB_OK;
}

tb_rc to_spans_open_of(const struct to_spans *s, enum to_span_kind kind,
                       tb_rc (*each)(void *self, const struct to_span *span), void *self) {
  const struct asked a = { s, each, self };

  if (kind == TO_SPAN_RANGE) return open_ranges(&a);
  return kind == TO_SPAN_TASK ? open_tasks(&a) : open_regions(&a);
}

tb_rc to_spans_open(const struct to_spans *s, tb_rc (*each)(void *self, const struct to_span *span),
                    void *self) {
  const struct asked a = { s, each, self };

  TB_TRY(open_lives(&a));
  TB_TRY(open_procs(&a));
  TB_TRY(open_threads(&a));
  TB_TRY(open_ranges(&a));
  TB_TRY(open_tasks(&a));
  return open_regions(&a);
}
