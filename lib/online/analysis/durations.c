/* SPDX-License-Identifier: Apache-2.0 */
/* Each event is passed to the spans; a span that ends comes back at once through their sink. */
#include "online/analysis/durations.h"

#include <assert.h>
#include <string.h>

#include "online/spans/state.h"

struct to_durations {
  struct tb_mem *mem;
  struct to_spans *spans;
  const struct to_event *ev;  /* the current event: the next spans are of this or a later one */
  struct to_duration *lasted; /* the element of out for ev */
};

/* Returns false for tasks and regions whose begin was not seen: nothing is known of them. */
static bool has_duration(const struct to_span *span) {
  switch (span->kind) {
  case TO_SPAN_GOROUTINE: return span->state != TO_GO_UNDETERMINED;
  case TO_SPAN_RANGE: return true;
  case TO_SPAN_TASK:
  case TO_SPAN_REGION: return span->from_known;
  default: return false;
  }
}

static tb_rc take_spans(void *self, const struct to_generation *gen, const struct to_span *span,
                        size_t n) {
  struct to_durations *d = self;

  (void)gen;
  for (; n > 0; n--, span++) {
    if (!span->until_known) continue; /* cut: its end event is still to come */
    const struct to_event *ev = d->ev;
    while (ev->time != span->until) ev++;
    d->lasted += ev - d->ev;
    d->ev = ev;
    if (has_duration(span))
      *d->lasted = (struct to_duration){ true, !span->from_known,
                                         (uint64_t)span->until - (uint64_t)span->from };
  }
  return TB_OK;
}

void to_durations_epoch(struct to_durations *d) {
  tb_rc rc = to_spans_epoch(d->spans);

  assert(rc == TB_OK); /* take_spans() never fails */
  (void)rc;
}

tb_rc to_durations_new(struct tb_mem *mem, struct to_durations **out) {
  const struct to_spans_config config = { .wanted = TO_WANT(GOROUTINE) | TO_WANT(RANGE) |
                                                    TO_WANT(TASK) | TO_WANT(REGION),
                                          .times_only = true };
  struct to_durations *d;

  TB_TRY(tb_mem_alloc(mem, sizeof *d, &d));
  d->mem = mem;
  tb_rc rc = to_spans_new(mem, &config, (struct to_span_sink){ d, take_spans }, &d->spans);
  if (rc == TB_OK)
    *out = d;
  else
    tb_mem_free(mem, d, sizeof *d);
  return rc;
}

void to_durations_free(struct to_durations *d) {
  if (d == NULL) return;
  to_spans_free(d->spans);
  tb_mem_free(d->mem, d, sizeof *d);
}

tb_rc to_durations_events(struct to_durations *d, const struct to_generation *gen,
                          const struct to_event *events, size_t n, struct to_duration *out) {
  tb_rc first = TB_OK;

  memset(out, 0, n * sizeof *out);
  d->ev = events;
  d->lasted = out;
  for (size_t taken; n > 0; events += taken, n -= taken) {
    tb_rc rc = to_spans_events(d->spans, gen, events, n);
    if (first == TB_OK) first = rc;
    taken = d->spans->taken;
  }
  return first;
}
