/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/state.h"

#include <stdlib.h>

#include "base/grow.h"
#include "online/scene/reading.h"

struct held { /* a span that contains the moment */
  struct to_scene_in_state goroutine;
  enum to_go_state state;
  uint8_t reason;
  uint32_t stack; /* number of the stack */
};

struct finder {
  struct tb_mem *mem;
  to_ns at;
  struct to_reading reading;
  struct held *held;
  size_t n, room;
  struct to_scene_in_state *goroutine;
  struct to_scene_state *state;
  size_t states, states_room, goroutines_room;
};

static tb_rc add_held(struct finder *f, const struct to_generation *gen,
                      const struct to_span *span) {
  if (span->kind != TO_SPAN_GOROUTINE || !to__span_holds(span, f->at)) return TB_OK;
  TB_TRY(TB_MEM_GROW(f->mem, f->held, f->room, f->n));
  struct held *held = &f->held[f->n];
  *held = (struct held){ .goroutine = { span->id, span->from, span->from_known },
                         .state = span->state,
                         .reason = span->state == TO_GO_WAITING ? span->reason : 0 };
  TB_TRY(to_spans_stack(f->reading.spans, gen, span->stack, &held->stack));
  f->n++;
  return TB_OK;
}

static tb_rc on_spans(void *self, const struct to_generation *gen, const struct to_span *spans,
                      size_t n) {
  for (size_t i = 0; i < n; i++) TB_TRY(add_held(self, gen, &spans[i]));
  return TB_OK;
}

static tb_rc on_open_span(void *self, const struct to_span *span) {
  return add_held(self, NULL, span);
}

static int compare(int64_t a, int64_t b) {
  return (a > b) - (a < b);
}

static int by_group(const struct held *a, const struct held *b) {
  int by_state = compare(a->state, b->state);
  int by_reason = by_state != 0 ? by_state : compare(a->reason, b->reason);

  return by_reason != 0 ? by_reason : compare(a->stack, b->stack);
}

static int by_group_and_age(const void *left, const void *right) {
  const struct held *a = left, *b = right;
  int order = by_group(a, b);

  if (order == 0) order = compare(a->goroutine.since, b->goroutine.since);
  return order != 0 ? order : compare(a->goroutine.id, b->goroutine.id);
}

static int by_size(const void *left, const void *right) {
  const struct to_scene_state *a = left, *b = right;

  if (a->n != b->n) return a->n < b->n ? 1 : -1;
  return compare(a->goroutine->id, b->goroutine->id); /* unique */
}

static tb_rc group_held(struct finder *f) {
  if (f->n == 0) return TB_OK;
  for (size_t i = 0; i < f->n; i++)
    if (!f->held[i].goroutine.since_known) f->held[i].goroutine.since = f->reading.from;
  qsort(f->held, f->n, sizeof *f->held, by_group_and_age);
  TB_TRY(tb_mem_grow(f->mem, &f->goroutine, &f->goroutines_room, f->n, sizeof *f->goroutine));
  for (size_t i = 0; i < f->n; i++) {
    const struct held *held = &f->held[i];
    f->goroutine[i] = held->goroutine;
    if (i == 0 || by_group(held - 1, held) != 0) {
      TB_TRY(TB_MEM_GROW(f->mem, f->state, f->states_room, f->states));
      f->state[f->states++] =
          (struct to_scene_state){ .state = held->state,
                                   .reason = to_spans_reason(f->reading.spans, held->reason),
                                   .stack = to__reading_calls(&f->reading, held->stack),
                                   .goroutine = &f->goroutine[i] };
    }
    f->state[f->states - 1].n++;
  }
  qsort(f->state, f->states, sizeof *f->state, by_size);
  return TB_OK;
}

tb_rc to_scene_state_at(struct tb_mem *mem, const struct to_scene_source *source, to_ns at,
                        struct tb_diag *diag,
                        tb_rc (*found)(void *self, const struct to_scene_states *states),
                        void *self) {
  const struct to_spans_config config = { .wanted = TO_WANT(GOROUTINE) };
  struct finder f = { .mem = mem, .at = at };
  const struct to_span_sink sink = { &f, on_spans };

  tb_rc rc = to__reading_run(&f.reading, mem, source, &config, sink, on_open_span, diag);
  if (rc == TB_OK) rc = group_held(&f);
  if (rc == TB_OK)
    rc = found(self, &(struct to_scene_states){ f.reading.gen, at, f.state, f.states, f.n });
  tb_mem_free(mem, f.held, f.room * sizeof *f.held);
  tb_mem_free(mem, f.goroutine, f.goroutines_room * sizeof *f.goroutine);
  tb_mem_free(mem, f.state, f.states_room * sizeof *f.state);
  to__reading_fini(&f.reading);
  return rc;
}
