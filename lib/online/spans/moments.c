/* SPDX-License-Identifier: Apache-2.0 */
/* Spans that are moments: logs, samples, metrics. */
#include "online/spans/state.h"

static struct to_span *put_moment(struct to_spans *s, const struct to_event *ev,
                                  enum to_span_kind kind) {
  struct to_span *span = to__spans_put(s, ev, kind);

  span->from = ev->time;
  span->from_known = true;
  span->id = ev->g;
  span->life = span->by_life;
  span->thread = ev->m;
  span->proc = ev->p;
  span->stack = span->end_stack = span->by_stack = to__stack_of(s, ev);
  return span;
}

static void put_sample(struct to_spans *s, const struct to_event *ev) {
  struct to_span *span = put_moment(s, ev, TO_SPAN_SAMPLE);
  const struct to_life *g = span->life == 0 ? NULL : &s->lives[span->slot];
  bool is_on_thread =
      g != NULL && g->thread == ev->m && (g->state == TO_GO_RUNNING || g->state == TO_GO_SYSCALL);

  if (ev->g != TO_NONE && !is_on_thread) to__spans_more(s, span)->value = 1;
  if (g == NULL) return;
  span->state = g->state;
  struct to_string label = to__spans_label(s, g);
  if (label.len > 0) to__spans_more(s, span)->name = label;
}

static void put_log(struct to_spans *s, const struct to_generation *gen,
                    const struct to_event *ev) {
  struct to_span_more *more = to__spans_more(s, put_moment(s, ev, TO_SPAN_LOG));
  struct to_user_event user;

  to_event_user(ev, &user);
  more->value = user.task;
  more->name = to__string_of(s, gen, user.name);
  more->text = to__string_of(s, gen, user.text);
}

static void take_metric(struct to_spans *s, const struct to_event *ev) {
  if (ev->type == TW_EV_PROCS_CHANGE) to__spans_procs_change(s, ev);
  if (!to__wants(s, TO_WANT(METRIC))) return;
  struct to_span *span = put_moment(s, ev, TO_SPAN_METRIC);

  span->state = (uint8_t)to_event_metric(ev);
  to__spans_more(s, span)->value = ev->args[0];
}

void to__spans_moment(struct to_spans *s, const struct to_generation *gen,
                      const struct to_event *ev) {
  switch (to_event_kind(ev)) {
  case TO_KIND_LOG: put_log(s, gen, ev); return;
  case TO_KIND_STACK_SAMPLE: put_sample(s, ev); return;
  default: take_metric(s, ev);
  }
}
