/* SPDX-License-Identifier: Apache-2.0 */
/* Explains why something took so long. The generations of a stretch are read twice: to find the interval, and to explain it. */
#include "online/why/why.h"

#include <inttypes.h>

#include "base/text/hex.h"
#include "collector/timeline/private.h"
#include "online/spans/pull.h"
#include "online/why/schema.h"
#include "pack/report.h"
#include "pack/report_json.h"
#include "proto/json.h"

enum { STACKS_MAX = 1 << 20, SCHEMA_BYTES = 16 << 10 };

/* ---- generations, one after the other, as one trace ---- */

struct source {
  struct tc_timeline *t;
  struct tc_query_session *session;
  const struct tc_timeline_why_ask *ask;
  const struct tc__place *place;
  size_t places, next;
  struct tc__bytes bytes; /* of place[next - 1] */
  bool is_read, has_header_only;
  tb_rc failed; /* error that is not a fault of the trace */
  struct tb_diag *diag;
};

static void forget_bytes(struct source *s) {
  if (s->is_read) tc__bytes_free(&s->bytes);
  s->is_read = false;
}

static tb_rc read_next(struct source *s) {
  forget_bytes(s);
  if (s->next == s->places) return TB_END;
  s->failed = s->ask->go_on(s->ask->self)
                  ? tc__bytes_read(s->t, s->session, &s->place[s->next], s->diag, &s->bytes)
                  : tb_fail(s->diag, TB_END, "cancelled");
  if (s->failed != TB_OK) return TB_IO;
  s->is_read = true;
  s->next++;
  return TB_OK;
}

/* Returns the header of the first generation, then the bytes of each. */
static tb_rc next_bytes(void *self, const void **out_bytes, size_t *out_n) {
  struct source *s = self;

  if (!s->has_header_only) TB_TRY(read_next(s));
  s->has_header_only = !s->has_header_only && s->next == 1;
  *out_bytes = s->has_header_only ? s->bytes.header : s->bytes.bytes;
  *out_n = s->has_header_only ? sizeof s->bytes.header : s->bytes.len;
  return TB_OK;
}

/* Chooses the generations after the last hole. */
static void choose_places(const struct tc__places *places, struct source *s) {
  size_t first = places->n;

  while (first > 0 && !places->place[first - 1].expired &&
         (first == places->n || places->place[first].gen == places->place[first - 1].gen + 1))
    first--;
  s->place = &places->place[first];
  s->places = places->n - first;
}

/* ---- a pass over all spans ---- */

struct pass;
typedef tb_rc span_fn(void *self, struct pass *pass, const struct to_span *span);

struct pass {
  struct source source;
  struct to_span_pull *pull;
  const struct to_generation *gen; /* NULL: after the last one */
  struct to_clock clock;           /* of the first generation that has one */
  bool has_clock;
  struct tb_diag fault;
  span_fn *each;
  void *self;
};

static tb_rc begin_pass(struct pass *pass, struct tb_mem *mem) {
  const uint32_t without_stacks = TO_WANT(PROC) | TO_WANT(THREAD);
  const struct to_spans_config config = { .wanted = TO_WANT_ALL & ~without_stacks,
                                          .stacks_max = STACKS_MAX };
  const struct to_pull_source source = { &pass->source, next_bytes };

  tb_diag_clear(&pass->fault);
  return to_span_pull_new(mem, NULL, 0, &config, source, &pass->fault, &pass->pull);
}

static void end_pass(struct pass *pass) {
  to_span_pull_free(pass->pull);
  forget_bytes(&pass->source);
}

static tb_rc on_open(void *self, const struct to_span *span) {
  struct pass *pass = self;

  return pass->each(pass->self, pass, span);
}

static tb_rc fail_pass(const struct pass *pass, tb_rc rc, struct tb_diag *diag) {
  if (pass->source.failed != TB_OK) return pass->source.failed; /* diag has it */
  if (rc == TB_NOMEM || rc == TB_BUDGET) return rc;
  return tb_fail(diag, TB_NOTFOUND, "the trace is not whole there: %s",
                 pass->fault.rc != TB_OK ? pass->fault.text : tb_rc_text(rc));
}

/* Calls each for all spans, open ones last. */
static tb_rc run_pass(struct pass *pass, span_fn *each, void *self, struct tb_diag *diag) {
  const struct to_span *span;
  tb_rc rc;

  pass->each = each;
  pass->self = self;
  while ((rc = to_span_pull_next(pass->pull, &span, &pass->gen)) == TB_OK) {
    if (!pass->has_clock && pass->gen != NULL)
      pass->has_clock = to_generation_clock(pass->gen, &pass->clock);
    if ((rc = each(self, pass, span)) != TB_OK) return rc;
  }
  if (rc != TB_END) return fail_pass(pass, rc, diag);
  pass->gen = NULL;
  return to_spans_open(to_span_pull_spans(pass->pull), on_open, pass);
}

/* ---- which interval ---- */

static tb_rc look_at_span(void *self, struct pass *pass, const struct to_span *span) {
  (void)pass;
  to_why_look(self, span, 0);
  return TB_OK;
}

static tb_rc find_interval(const struct source *source, struct tb_mem *mem, struct tb_diag *diag,
                           struct to_why_interval *out) {
  struct pass pass = { .source = *source };
  struct to_why_finding finding;

  to_why_finding_init(&finding, &source->ask->of);
  tb_rc rc = begin_pass(&pass, mem);
  if (rc == TB_OK) rc = run_pass(&pass, look_at_span, &finding, diag);
  end_pass(&pass);
  return rc == TB_OK ? to_why_choose(&finding, diag, out) : rc;
}

/* ---- why ---- */

static tb_rc keep_span(void *self, struct pass *pass, const struct to_span *span) {
  struct to_spans *spans = to_span_pull_spans(pass->pull);
  uint32_t stack, end_stack, by_stack;

  TB_TRY(to_spans_stack(spans, pass->gen, span->stack, &stack));
  TB_TRY(to_spans_stack(spans, pass->gen, span->end_stack, &end_stack));
  TB_TRY(to_spans_stack(spans, pass->gen, span->by_stack, &by_stack));
  return to_why_add(self, span, stack, span->kind == TO_SPAN_LIFE ? end_stack : by_stack);
}

static uint64_t wall_of(const struct pass *pass, to_ns time) {
  const struct tc__place *last = &pass->source.place[pass->source.places - 1];
  const struct to_clock *clock = &pass->clock;

  if (!pass->has_clock) return last->until_wall_ns + (uint64_t)(time - last->last);
  return (uint64_t)clock->wall_s * UINT64_C(1000000000) + (uint64_t)clock->wall_ns +
         (uint64_t)(time - clock->trace_ns);
}

static tb_rc put_schema(struct tb_buf *out, struct tb_mem *mem) {
  Tracecollect__V1__ReportSchema *schema;
  struct tb_arena arena;

  tb_arena_init(&arena, mem, SCHEMA_BYTES);
  tb_rc rc = tp_take_schema_of(&arena, "why", TO_WHY_ABOUT, &to_why_schema, &schema);
  if (rc == TB_OK) tp_schema_json(out, schema);
  tb_arena_fini(&arena);
  return rc;
}

static tb_rc write(const struct to_why *why, const struct pass *pass,
                   const struct tc__places *places, struct tb_mem *mem, struct tb_buf *out) {
  const struct to_why_interval *in = why->interval;
  const struct source *s = &pass->source;
  char stream[2 * TC_TIMELINE_STREAM_BYTES + 1];

  tb_buf_printf(out, "{\"kind\":\"why\",\"stream\":\"%s\",\"service\":",
                tb_hex(s->ask->stream, TC_TIMELINE_STREAM_BYTES, stream));
  tp_json_text(out, places->service);
  tb_buf_text(out, ",\"instance\":");
  tp_json_text(out, places->instance);
  tb_buf_printf(out,
                ",\"first_gen\":%" PRIu64 ",\"last_gen\":%" PRIu64 ",\"from_ns\":%" PRId64
                ",\"until_ns\":%" PRId64 ",\"from_wall_ns\":%" PRIu64 ",\"until_wall_ns\":%" PRIu64
                ",\"schema\":",
                s->place[0].gen, s->place[s->places - 1].gen, in->from, in->until,
                wall_of(pass, in->from), wall_of(pass, in->until));
  TB_TRY(put_schema(out, mem));
  tb_buf_byte(out, ',');
  to_why_json(why, s->ask->rows_max, out);
  tb_buf_text(out, "}\n");
  return out->rc;
}

static tb_rc explain(const struct source *source, const struct to_why_interval *interval,
                     const struct tc__places *places, struct tb_mem *mem, struct tb_diag *diag,
                     struct tb_buf *out) {
  struct pass pass = { .source = *source };
  struct to_why why;

  tb_rc rc = begin_pass(&pass, mem);
  if (rc == TB_OK) {
    to_why_init(&why, interval, to_span_pull_spans(pass.pull), mem);
    rc = run_pass(&pass, keep_span, &why, diag);
    if (rc == TB_OK) rc = to_why_explain(&why);
    if (rc == TB_OK) rc = write(&why, &pass, places, mem, out);
    to_why_fini(&why);
  }
  end_pass(&pass);
  return rc;
}

static tb_rc find_and_explain(struct source *source, const struct tc__places *places,
                              struct tb_diag *diag, struct tb_buf *out) {
  struct to_why_interval interval;
  struct tb_mem mem;

  TB_TRY(tc__places_check_size(places, diag));
  choose_places(places, source);
  if (source->places == 0)
    return tb_fail(diag, TB_NOTFOUND, "what was traced then has expired: retention took its bytes");
  tc__mem_init(source->t, &mem);
  tb_rc rc = find_interval(source, &mem, diag, &interval);
  if (rc == TB_OK) rc = explain(source, &interval, places, &mem, diag, out);
  return tc__mem_rc(source->t, rc, diag);
}

tb_rc tc_timeline_why(struct tc_timeline *t, struct tc_query_session *session,
                      const struct tc_timeline_why_ask *ask, struct tb_diag *diag,
                      struct tb_buf *out) {
  struct source source = { .t = t, .session = session, .ask = ask, .diag = diag };
  struct tc__places places = { .mem = out->mem };

  tb_rc rc =
      tc__places_find(session, ask->stream, ask->from_wall_ns, ask->until_wall_ns, diag, &places);
  if (rc == TB_OK) rc = find_and_explain(&source, &places, diag, out);
  tc__places_fini(&places);
  return rc;
}
