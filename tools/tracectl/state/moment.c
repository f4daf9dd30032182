/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/state/moment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/times.h"
#include "tools/tracectl/term/tracectl.h"
#include "tools/tracectl/trace_file/trace_range.h"
#include "tools/tracectl/trace_file/trace_run.h"

struct finding {
  const struct tk_at *at;
  struct tk_moment *out;
  const struct to_generation *gen;
  uint64_t gen_number;
  bool has_clock, any, is_found;
  struct to_clock clock;
  to_ns first, last; /* events so far */
};

static tb_rc ignore(void *self, const struct to_generation *gen, const struct to_span *spans,
                    size_t n) {
  (void)self;
  (void)gen;
  (void)spans;
  (void)n;
  return TB_OK;
}

static tb_rc row_of(struct tk_moment *m, uint32_t slot, struct tk_moment_goroutine **out) {
  if (slot >= m->room) {
    size_t room = m->room == 0 ? 256 : m->room;
    while (room <= slot) room *= 2;
    void *rows = realloc(m->goroutine, room * sizeof *m->goroutine);
    if (rows == NULL) return TB_NOMEM;
    m->goroutine = rows;
    memset(m->goroutine + m->room, 0, (room - m->room) * sizeof *m->goroutine);
    m->room = room;
  }
  if (slot >= m->n) m->n = slot + 1;
  *out = &m->goroutine[slot];
  return TB_OK;
}

static tb_rc find_stack(struct finding *f, uint64_t id, const struct to_callstack **out) {
  uint32_t number;

  TB_TRY(to_spans_stack(f->out->spans, f->gen, id, &number));
  *out = number > TO_STACK_OTHER ? to_spans_callstack(f->out->spans, number) : NULL;
  return TB_OK;
}

static tb_rc set_state(struct finding *f, struct tk_moment_goroutine *g,
                       const struct to_span *span) {
  g->is_known = true;
  g->id = span->id;
  g->life = span->life;
  g->state = (enum to_go_state)span->state;
  g->reason = to_spans_reason(f->out->spans, span->reason);
  g->since = span->from;
  g->since_known = span->from_known;
  g->proc = span->proc;
  g->thread = span->thread;
  return find_stack(f, span->stack, &g->stack);
}

static tb_rc set_life(struct finding *f, struct tk_moment_goroutine *g,
                      const struct to_span *span) {
  g->created_known = span->from_known;
  g->created = span->from;
  g->creator = span->by;
  TB_TRY(find_stack(f, span->stack, &g->entry));
  TB_TRY(find_stack(f, span->end_stack, &g->creation));
  if (span->more == NULL || span->more->name.len == 0) return TB_OK;
  g->label =
      calloc(1, span->more->name.len + 1); /* not NUL-terminated: strndup() stops at its length */
  if (g->label == NULL) return TB_NOMEM;
  memcpy(g->label, span->more->name.data, span->more->name.len);
  return TB_OK;
}

static tb_rc take_open(void *self, const struct to_span *span) {
  struct finding *f = self;
  struct tk_moment_goroutine *g;

  if (span->kind != TO_SPAN_GOROUTINE && span->kind != TO_SPAN_LIFE) return TB_OK;
  TB_TRY(row_of(f->out, span->slot, &g));
  return span->kind == TO_SPAN_LIFE ? set_life(f, g, span) : set_state(f, g, span);
}

static int compare(const void *a, const void *b) {
  const struct tk_moment_goroutine *one = a, *other = b;

  if (one->since != other->since) return one->since < other->since ? -1 : 1;
  return (one->id > other->id) - (one->id < other->id);
}

static tb_rc take_moment(struct finding *f, to_ns at) {
  struct tk_moment *m = f->out;
  size_t n = 0;

  m->at = at;
  m->gen = f->gen_number;
  m->has_wall = f->has_clock;
  if (f->has_clock) m->wall_ns = tk_wall_of(&f->clock, at);
  TB_TRY(to_spans_open(m->spans, take_open, f));
  for (size_t i = 0; i < m->n; i++) { /* skips slots without a goroutine */
    if (m->goroutine[i].is_known)
      m->goroutine[n++] = m->goroutine[i];
    else
      free(m->goroutine[i].label);
  }
  m->n = n;
  if (n > 0) qsort(m->goroutine, n, sizeof *m->goroutine, compare);
  f->is_found = true;
  return TB_OK;
}

static void set_generation(struct finding *f, const struct to_generation *gen) {
  f->gen = gen;
  if (gen == NULL || to_generation_number(gen) == f->gen_number) return;
  f->gen_number = to_generation_number(gen);
  f->has_clock = to_generation_clock(gen, &f->clock);
}

/* Returns false if the trace has no time for it. */
static bool moment_of(const struct finding *f, to_ns *out) {
  *out = f->at->at;
  if (!f->at->is_wall) return true;
  if (!f->has_clock) return false;
  *out = f->clock.trace_ns + (to_ns)(f->at->wall_ns - tk_wall_of(&f->clock, f->clock.trace_ns));
  return true;
}

/* Returns TB_END once the moment is found. */
static tb_rc on_events(void *self, const struct to_generation *gen, const struct to_event *events,
                       size_t n) {
  struct finding *f = self;
  size_t before = 0;
  to_ns at;

  set_generation(f, gen);
  if (!f->any) f->first = events[0].time;
  if (!moment_of(f, &at) || (!f->any && at < f->first)) {
    f->last = events[n - 1].time;
    return TB_END;
  }
  f->any = true;
  while (before < n && events[before].time <= at) before++;
  if (before > 0) {
    f->last = events[before - 1].time;
    TB_TRY(to_spans_events(f->out->spans, gen, events, before));
  }
  if (before == n && gen != NULL) return TB_OK;
  if (before == n && at > f->last) return TB_OK; /* after the trace's end */
  TB_TRY(take_moment(f, at));
  return TB_END;
}

static tb_rc on_end(void *self, const struct to_generation *gen) {
  return to_spans_generation_ends(((struct finding *)self)->out->spans, gen);
}

/* In wall time, too, in which cat prints times. */
static void say_outside(const struct finding *f, const struct tk_place *place,
                        char error[TK_QUERY_ERROR]) {
  char first[TC_TIME_BYTES], last[TC_TIME_BYTES], wall[2 * TC_TIME_BYTES + 16] = "";

  if (f->has_clock) {
    tc_time_format(tk_wall_of(&f->clock, f->first), first);
    tc_time_format(tk_wall_of(&f->clock, f->last), last);
    snprintf(wall, sizeof wall, "; --at %s to %s", first, last);
  }
  snprintf(error, TK_QUERY_ERROR,
           "%s: that is outside of what is read, which has %" PRId64 " to %s%" PRId64 "%s",
           place->name, f->first, f->any ? "" : "at least ", f->last, wall);
}

static bool fail(const struct finding *f, const struct tk_place *place,
                 const struct tk_trace_run *run, char error[TK_QUERY_ERROR]) {
  char why[300];

  tb_diag_format(&run->diag, why, sizeof why);
  if (run->rc != TB_OK && run->rc != TB_END && !run->went_past)
    snprintf(error, TK_QUERY_ERROR, "%s: %s", place->name, why);
  else if (f->at->is_wall && !f->has_clock)
    snprintf(error, TK_QUERY_ERROR,
             "%s: no wall clock is in it (before Go 1.25): --at nanoseconds on its own clock",
             place->name);
  else
    say_outside(f, place, error);
  return false;
}

bool tk_moment_find(const struct tk_place *place, const struct tk_at *at, struct tk_moment *out,
                    char error[TK_QUERY_ERROR]) {
  const struct to_spans_config config = { .wanted = TO_WANT(GOROUTINE) | TO_WANT(LIFE),
                                          .stacks_max = TK_QUERY_STACKS_MAX };
  struct finding f = { .at = at, .out = out };
  const struct tk_trace_ask run_ask = { .verb = place->verb,
                                        .path = place->path,
                                        .part = place->part.end != 0 ? &place->part : NULL,
                                        .sink = { &f, on_events },
                                        .generation_ends = on_end,
                                        .threads = 1,
                                        .past_annotations = true };
  struct tk_trace_run run;

  *out = (struct tk_moment){ 0 };
  error[0] = 0;
  if (to_spans_new(&tk_mem, &config, (struct to_span_sink){ NULL, ignore }, &out->spans) != TB_OK) {
    snprintf(error, TK_QUERY_ERROR, "out of memory");
    return false;
  }
  if (!tk_trace_run(&run_ask, &run)) return false; /* already reported */
  return f.is_found || fail(&f, place, &run, error);
}

void tk_moment_fini(struct tk_moment *m) {
  for (size_t i = 0; i < m->n; i++) free(m->goroutine[i].label);
  free(m->goroutine);
  to_spans_free(m->spans);
}
