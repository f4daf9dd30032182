/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/moment.h"

#include "online/scene/reading.h"

/* A span at the moment, or the life of its goroutine, with numbers of stacks. */
struct kept {
  bool any;
  struct to_span span;
  uint32_t stack, end_stack, by_stack;
};

struct finder {
  const struct to_moment_ask *ask;
  struct to_reading reading;
  struct kept span, life;
};

static bool is_asked(const struct to_moment_ask *ask, const struct to_span *span) {
  if (ask->of == TO_MOMENT_OF_GOROUTINE) return span->id == ask->id;
  if (span->state != TO_GO_RUNNING && span->state != TO_GO_SYSCALL) return false;
  return ask->id == (ask->of == TO_MOMENT_OF_PROC ? span->proc : span->thread);
}

static tb_rc copy_span(struct finder *f, const struct to_generation *gen,
                       const struct to_span *span, struct kept *out) {
  struct to_spans *spans = f->reading.spans;

  *out = (struct kept){ .any = true, .span = *span };
  out->span.more = NULL; /* only lent */
  TB_TRY(to_spans_stack(spans, gen, span->stack, &out->stack));
  TB_TRY(to_spans_stack(spans, gen, span->end_stack, &out->end_stack));
  return to_spans_stack(spans, gen, span->by_stack, &out->by_stack);
}

/* A life follows its spans: before that, the goroutine on a P is unknown. */
static tb_rc check_span(struct finder *f, const struct to_generation *gen,
                        const struct to_span *span) {
  if (span->kind == TO_SPAN_LIFE)
    return f->span.any && !f->life.any && span->life == f->span.span.life
               ? copy_span(f, gen, span, &f->life)
               : TB_OK;
  if (span->kind != TO_SPAN_GOROUTINE || !to__span_holds(span, f->ask->at) ||
      !is_asked(f->ask, span))
    return TB_OK;
  return copy_span(f, gen, span, &f->span);
}

static tb_rc on_spans(void *self, const struct to_generation *gen, const struct to_span *spans,
                      size_t n) {
  for (size_t i = 0; i < n; i++) TB_TRY(check_span(self, gen, &spans[i]));
  return TB_OK;
}

static tb_rc on_open_span(void *self, const struct to_span *span) {
  return span->kind == TO_SPAN_LIFE ? TB_OK : check_span(self, NULL, span);
}

static tb_rc on_open_life(void *self, const struct to_span *span) {
  return span->kind == TO_SPAN_LIFE ? check_span(self, NULL, span) : TB_OK;
}

static void set_life(const struct finder *f, struct to_moment *m) {
  const struct to_span *life = &f->life.span;
  const struct to_frame *begins =
      to_callstack_entry(to__reading_calls(&f->reading, f->life.stack), true);

  m->creator = TO_NONE;
  m->entry = to_callstack_entry(m->stack, false);
  if (!f->life.any || !life->from_known) return;
  m->created_known = true;
  m->created = life->from;
  m->creator = life->by;
  m->creation_stack = to__reading_calls(&f->reading, f->life.end_stack);
  if (begins != NULL) m->entry = begins;
}

static tb_rc find_moment(struct finder *f, struct tb_mem *mem, const struct to_scene_source *source,
                         struct tb_diag *diag, struct to_moment *out) {
  const struct to_spans_config config = { .wanted = TO_WANT(GOROUTINE) | TO_WANT(LIFE) };
  const struct to_span_sink sink = { f, on_spans };

  TB_TRY(to__reading_run(&f->reading, mem, source, &config, sink, on_open_span, diag));
  TB_TRY(to_spans_open(f->reading.spans, on_open_life, f));
  if (!f->span.any) return TB_NOTFOUND;
  *out = (struct to_moment){ .gen = f->reading.gen,
                             .reason = to_spans_reason(f->reading.spans, f->span.span.reason),
                             .span = f->span.span,
                             .stack = to__reading_calls(&f->reading, f->span.stack),
                             .end_stack = to__reading_calls(&f->reading, f->span.end_stack),
                             .by_stack = to__reading_calls(&f->reading, f->span.by_stack) };
  if (!out->span.from_known) out->span.from = f->reading.from;
  set_life(f, out);
  return TB_OK;
}

tb_rc to_moment_find(struct tb_mem *mem, const struct to_scene_source *source,
                     const struct to_moment_ask *ask, struct tb_diag *diag,
                     tb_rc (*found)(void *self, const struct to_moment *moment), void *self) {
  struct finder finder = { .ask = ask };
  struct to_moment moment;

  tb_rc rc = find_moment(&finder, mem, source, diag, &moment);
  if (rc == TB_OK) rc = found(self, &moment);
  to__reading_fini(&finder.reading);
  return rc;
}
