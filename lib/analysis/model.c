/* SPDX-License-Identifier: Apache-2.0 */
/* Each event goes to the spans, and what it ends comes back through their sink at once. Questions go to their tables. */
#include "analysis/model.h"

#include <assert.h>
#include <string.h>

#include "spans/state.h"

struct to_model {
  struct tb_mem *mem;
  struct to_spans *spans;
  uint64_t gomaxprocs;
  uint64_t in_gen; /* the generation that has begun; TB_NO_GEN: none */

  const struct to_event *ev;  /* that is taken: its spans come next */
  struct to_duration *lasted; /* its own */
  struct to_effects *out;     /* NULL: only durations are wanted */
  struct to_name *label;      /* of the span that it ends: lent with its effects */
};

/* --- what an event ends ------------------------------------------------------------------------ */

/* A task or a region that was not seen to begin is one that we know nothing of. */
static bool has_duration(const struct to_span *span) {
  switch (span->kind) {
  case TO_SPAN_GOROUTINE: return span->state != TO_GO_UNDETERMINED;
  case TO_SPAN_RANGE: return true;
  case TO_SPAN_TASK:
  case TO_SPAN_REGION: return span->from_known;
  default: return false;
  }
}

static struct to_duration duration_of(const struct to_span *span) {
  return (struct to_duration){ true, !span->from_known,
                               (uint64_t)span->until - (uint64_t)span->from };
}

/* A piece of a call. The first one that ends by losing its P says that the call blocks, at the latest the end does. */
static void add_piece(struct to_model *model, const struct to_generation *gen,
                      const struct to_span *span) {
  const struct to_event *ev = model->ev;
  struct to_effects *out = model->out;
  bool is_whole = model->lasted->known && model->lasted->ns == duration_of(span).ns;
  bool ends_blocked = ev->type == TW_EV_GO_SYSCALL_END_BLOCKED && is_whole;
  bool has_stack = span->stack != 0 && span->stack < TO_STACK_KEPT;

  if (!span->lost_proc && !ends_blocked) return;
  int64_t proc = ev->type == TW_EV_PROC_STEAL ? (int64_t)ev->args[0] : span->proc;
  out->syscall_blocked = true;
  out->blocked =
      (struct to_blocked_syscall){ .g = span->id,
                                   .m = span->thread,
                                   .p = ev->type == TW_EV_PROC_STOP ? ev->p : proc,
                                   .since = span->from,
                                   .stack = has_stack ? span->stack : TO_NO_STACK,
                                   .gen = gen == NULL ? TB_NO_GEN : to_generation_number(gen),
                                   .lower_bound = !span->from_known };
}

static void add_proc(struct to_model *model, const struct to_span *span) {
  *model->lasted = duration_of(span);
  if (model->ev->type == TW_EV_PROC_STEAL) model->out->stolen_from = span->thread;
}

static void add_thread(struct to_model *model, const struct to_span *span) {
  const struct to_thread_life *t = tb_map_at(&model->spans->threads, (uint64_t)span->id);
  struct to_effects *out = model->out;

  if (t == NULL || out->threads == TO_THREAD_CHANGES_MAX) return;
  out->thread[out->threads++] = (struct to_thread_change){
    .m = span->id,
    .g = t->goroutine,
    .from = (enum to_thread_state)span->state,
    .to = (enum to_thread_state)t->state,
    .lasted_ns = (uint64_t)span->until - (uint64_t)span->from,
    .lower_bound = !span->from_known,
  };
}

static tb_rc add_effects(struct to_model *model, const struct to_generation *gen,
                         const struct to_span *span) {
  switch (span->kind) {
  case TO_SPAN_GOROUTINE:
    if (span->more == NULL || model->label != NULL) return TB_OK;
    return to__name_hold(&model->spans->names, span->more->name, &model->label);
  case TO_SPAN_SYSCALL: add_piece(model, gen, span); return TB_OK;
  case TO_SPAN_PROC: add_proc(model, span); return TB_OK;
  case TO_SPAN_THREAD: add_thread(model, span); return TB_OK;
  default: return TB_OK;
  }
}

static tb_rc take_spans(void *self, const struct to_generation *gen, const struct to_span *span,
                        size_t n) {
  struct to_model *model = self;

  for (; n > 0; n--, span++) {
    if (!span->until_known) continue; /* cut: its own end has not come */
    const struct to_event *ev = model->ev;
    while (ev->time != span->until) ev++;
    model->lasted += ev - model->ev;
    model->ev = ev;
    if (has_duration(span)) *model->lasted = duration_of(span);
    if (model->out != NULL) TB_TRY(add_effects(model, gen, span));
  }
  return TB_OK;
}

/* --- begin and end ----------------------------------------------------------------------------- */

static void drop_label(struct to_model *model) {
  if (model->label != NULL) to__name_let_go(&model->spans->names, model->label);
  model->label = NULL;
}

void to_model_epoch(struct to_model *model) {
  drop_label(model);
  tb_rc rc = to_spans_epoch(model->spans);
  assert(rc == TB_OK); /* the sink's answer */
  (void)rc;
  model->gomaxprocs = 0;
  model->in_gen = TB_NO_GEN;
}

static tb_rc new_of(struct tb_mem *mem, const struct to_spans_config *config,
                    struct to_model **out) {
  struct to_model *model;

  TB_TRY(tb_mem_take(mem, sizeof *model, &model));
  model->mem = mem;
  tb_rc rc = to_spans_new(mem, config, (struct to_span_sink){ model, take_spans }, &model->spans);
  if (rc == TB_OK)
    *out = model;
  else
    tb_mem_give(mem, model, sizeof *model);
  return rc;
}

enum { DURATIONS = TO_WANT(GOROUTINE) | TO_WANT(RANGE) | TO_WANT(TASK) | TO_WANT(REGION) };

tb_rc to_model_new_durations(struct tb_mem *mem, struct to_model **out) {
  const struct to_spans_config config = { .wanted = DURATIONS, .times_only = true };

  return new_of(mem, &config, out);
}

tb_rc to_model_new(struct tb_mem *mem, struct to_model **out) {
  const struct to_spans_config config = { .wanted = DURATIONS | TO_WANT(SYSCALL) | TO_WANT(PROC) |
                                                    TO_WANT(THREAD) };

  return new_of(mem, &config, out);
}

void to_model_free(struct to_model *model) {
  if (model == NULL) return;
  drop_label(model);
  to_spans_free(model->spans);
  tb_mem_give(model->mem, model, sizeof *model);
}

/* --- events ------------------------------------------------------------------------------------ */

static bool is_mismatch(const struct to_model *model, const struct to_event *ev) {
  struct to_thread_now thread;

  if (ev->m == TO_NONE || !to_model_thread(model, ev->m, &thread))
    return false; /* nothing to compare with */
  return (ev->g != TO_NONE && ev->g != thread.g) || (ev->p != TO_NONE && ev->p != thread.p);
}

static void report_generation(struct to_model *model, const struct to_generation *gen,
                              struct to_effects *out) {
  out->generation_ends = model->in_gen;
  model->in_gen = gen == NULL ? TB_NO_GEN : to_generation_number(gen);
  out->generation_begins = model->in_gen;
  out->gomaxprocs = model->gomaxprocs;
}

static void add_rest(struct to_model *model, const struct to_generation *gen,
                     const struct to_event *ev, struct to_effects *out) {
  switch (to_event_kind(ev)) {
  case TO_KIND_SYNC: report_generation(model, gen, out); break;
  case TO_KIND_STACK_SAMPLE: out->context_mismatch = is_mismatch(model, ev); break;
  case TO_KIND_METRIC:
    if (to_event_metric(ev) == TO_METRIC_GOMAXPROCS)
      model->gomaxprocs = out->gomaxprocs = ev->args[0];
    break;
  default: break;
  }
}

static enum to_reason reason_of(const struct to_life *g) {
  return g->reason < TO_REASONS ? (enum to_reason)g->reason : TO_REASON_OTHER;
}

tb_rc to_model_event(struct to_model *model, const struct to_generation *gen,
                     const struct to_event *ev, struct to_effects *out) {
  struct to_spans *s = model->spans;

  *out = (struct to_effects){ .stolen_from = TO_NONE };
  drop_label(model);
  const struct to_life *by = to__spans_context(s, ev);
  size_t slot = by == NULL ? 0 : (size_t)(by - s->lives);
  uint64_t life = by == NULL ? 0 : by->life;
  struct to_duration lasted = { 0 };
  model->ev = ev;
  model->lasted = &lasted;
  model->out = out;
  TB_TRY(to_spans_events(s, gen, ev, 1));
  out->ends = lasted.known;
  out->lasted_ns = lasted.ns;
  out->lower_bound = lasted.lower_bound;
  add_rest(model, gen, ev, out);
  by = &s->lives[slot]; /* the table may stand elsewhere now */
  bool is_alive = life != 0 && by->life == life;
  if (is_alive && (ev->type == TW_EV_GO_BLOCK || ev->type == TW_EV_GO_STOP))
    out->reason = reason_of(by);
  if (model->label != NULL)
    out->label = to__name_text(model->label);
  else if (is_alive)
    out->label = to__spans_label(s, by);
  return TB_OK;
}

tb_rc to_model_durations(struct to_model *model, const struct to_generation *gen,
                         const struct to_event *events, size_t n, struct to_duration *out) {
  tb_rc first = TB_OK;

  memset(out, 0, n * sizeof *out);
  model->ev = events;
  model->lasted = out;
  model->out = NULL;
  for (size_t taken; n > 0; events += taken, n -= taken) {
    tb_rc rc = to_spans_events(model->spans, gen, events, n);
    if (first == TB_OK) first = rc;
    taken = model->spans->taken;
  }
  return first;
}

/* --- questions --------------------------------------------------------------------------------- */

static const struct to_thread_life *find_thread(const struct to_model *model, int64_t id) {
  return tb_map_at(&model->spans->threads, (uint64_t)id);
}

static void describe(const struct to_model *model, const struct to_life *g,
                     struct to_goroutine *out) {
  bool on_thread = g->state == TO_GO_RUNNING || g->state == TO_GO_SYSCALL;
  const struct to_thread_life *t = on_thread ? find_thread(model, g->thread) : NULL;

  *out = (struct to_goroutine){ .id = g->id,
                                .state = (enum to_go_state)g->state,
                                .since = g->since,
                                .lower_bound = !g->known,
                                .m = on_thread ? g->thread : TO_NONE,
                                .p = t == NULL ? TO_NONE : t->proc,
                                .reason = reason_of(g),
                                .why = to_spans_reason(model->spans, g->reason),
                                .blocked = g->state == TO_GO_SYSCALL && to__lost_proc(g),
                                .label = to__spans_label(model->spans, g) };
}

static bool is_known(const struct to_life *g) {
  return g->life != 0 && g->id != TO_NONE;
}

bool to_model_goroutine(const struct to_model *model, int64_t id, struct to_goroutine *out) {
  const struct to_life *g = to__spans_by_id(model->spans, id);

  if (g == NULL || !is_known(g) || g->id != id) return false;
  describe(model, g, out);
  return true;
}

bool to_model_next_goroutine(const struct to_model *model, size_t *pos, struct to_goroutine *out) {
  const struct to_spans *s = model->spans;

  while (++*pos < s->slots_end) { /* slot 0 is no goroutine's */
    if (!is_known(&s->lives[*pos])) continue;
    describe(model, &s->lives[*pos], out);
    return true;
  }
  return false;
}

size_t to_model_goroutines(const struct to_model *model) {
  const struct to_spans *s = model->spans;
  size_t n = 0;

  for (size_t slot = 1; slot < s->slots_end; slot++) n += is_known(&s->lives[slot]);
  return n;
}

bool to_model_thread(const struct to_model *model, int64_t id, struct to_thread_now *out) {
  const struct to_thread_life *t = find_thread(model, id);

  if (t == NULL) return false;
  *out = (struct to_thread_now){ .id = id,
                                 .g = t->goroutine,
                                 .p = t->proc,
                                 .state = (enum to_thread_state)t->state,
                                 .since = t->since,
                                 .lower_bound = !t->known };
  return true;
}

bool to_model_proc(const struct to_model *model, int64_t id, struct to_proc_now *out) {
  const struct to_proc_life *p = tb_map_at(&model->spans->procs, (uint64_t)id);
  struct to_thread_now thread;

  if (p == NULL) return false;
  *out = (struct to_proc_now){ .id = id,
                               .m = p->state == TO_PROC_RUNNING ? p->thread : TO_NONE,
                               .state = (enum to_proc_state)p->state };
  out->syscall = out->m != TO_NONE && to_model_thread(model, out->m, &thread) &&
                 thread.state == TO_THREAD_SYSCALL;
  return true;
}

bool to_model_range(const struct to_model *model, enum to_range_kind kind, int64_t id,
                    to_ns *out_since, bool *out_lower_bound) {
  const struct to_open_range *open = tb_map_at(&model->spans->ranges[kind], (uint64_t)id);

  if (open == NULL) return false;
  *out_since = open->since;
  *out_lower_bound = !open->known;
  return true;
}

uint64_t to_model_gomaxprocs(const struct to_model *model) {
  return model->gomaxprocs;
}
