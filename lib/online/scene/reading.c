/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/reading.h"

#include "online/trace/reader.h"

enum { FEED_BYTES = 256 << 10, RUN_EVENTS = 16384, LATE_EVENTS = 64 };

/* The first events of a generation may not be later than the last event of the one before. Moves each of these to a
 * nanosecond after the previous event. */
static tb_rc shift_late(struct to_reading *r, const struct to_generation *gen,
                        const struct to_event *events, size_t n, size_t *out_taken) {
  struct to_event late[LATE_EVENTS];
  size_t k = 0;

  for (; k < n && k < LATE_EVENTS && events[k].time <= r->until; k++) {
    late[k] = events[k];
    if (r->until < INT64_MAX) r->until++;
    late[k].time = r->until;
  }
  *out_taken = k;
  return k == 0 ? TB_OK : to_spans_events(r->spans, gen, late, k);
}

static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct to_reading *r = self;

  if (gen == NULL) return TB_OK; /* the Sync after the last generation */
  if (r->gen == 0) {
    r->gen = to_generation_number(gen);
    r->from = to_generation_start(gen);
    if (r->from < r->until) r->from = r->until;
    r->has_clock = to_generation_clock(gen, &r->clock);
  }
  while (n > 0 && events[0].time <= r->until) {
    size_t taken;

    TB_TRY(shift_late(r, gen, events, n, &taken));
    events += taken;
    n -= taken;
  }
  if (n == 0) return TB_OK;
  r->until = events[n - 1].time;
  return to_spans_events(r->spans, gen, events, n);
}

static tb_rc on_end(void *self, const struct to_generation *gen) {
  struct to_reading *r = self;

  return to_spans_generation_ends(r->spans, gen);
}

static tb_rc run_reader(struct to_reading *r, tb_rc rc) {
  const struct to_scene_source *source = r->source;

  while (rc == TB_AGAIN) {
    if (source->go_on != NULL && !source->go_on(source->self)) return TB_END;
    rc = to_reader_run(r->reader, RUN_EVENTS);
  }
  return rc;
}

static tb_rc feed(struct to_reading *r, const unsigned char *bytes, size_t n) {
  while (n > 0) {
    size_t used;
    tb_rc rc = to_reader_feed(r->reader, bytes, n < FEED_BYTES ? n : FEED_BYTES, &used);

    bytes += used;
    n -= used;
    TB_TRY(run_reader(r, rc));
  }
  return TB_OK;
}

tb_rc to__reading_run(struct to_reading *r, struct tb_mem *mem,
                      const struct to_scene_source *source, const struct to_spans_config *config,
                      struct to_span_sink sink,
                      tb_rc (*open)(void *self, const struct to_span *span), struct tb_diag *diag) {
  r->source = source;
  r->until = source->after;
  TB_TRY(to_spans_new(mem, config, sink, &r->spans));
  TB_TRY(to_reader_new(mem, NULL, TO_READER_BYTES_STAY | TO_READER_PAST_ANNOTATIONS,
                       (struct to_event_sink){ r, on_events }, diag, &r->reader));
  to_reader_on_end(r->reader, r, on_end);
  TB_TRY(feed(r, source->header, source->header_len));
  TB_TRY(feed(r, source->bytes, source->len));
  TB_TRY(run_reader(r, to_reader_finish(r->reader)));
  return to_spans_open(r->spans, open, sink.self);
}

bool to__span_holds(const struct to_span *span, to_ns at) {
  return (!span->from_known || span->from <= at) &&
         (at < span->until || (span->open && at == span->until));
}

const struct to_callstack *to__reading_calls(const struct to_reading *r, uint32_t number) {
  const struct to_callstack *stack = to_spans_callstack(r->spans, number);

  return stack != NULL && stack->len > 0 ? stack : NULL;
}

void to__reading_fini(struct to_reading *r) {
  to_reader_free(r->reader);
  to_spans_free(r->spans);
}
