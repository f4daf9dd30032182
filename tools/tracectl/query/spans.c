/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose rows are spans: a pass over the trace. */
#include <string.h>

#include "tools/tracectl/query/scan.h"

/* ---- columns ---- */

static const struct to_span *span(const struct tk_scan *c) {
  return c->at.span;
}

static void v_kind(struct tk_scan *c, struct tk_value *out) {
  tk__name(out, to_span_kind_name((enum to_span_kind)span(c)->kind));
}

static void v_subject(struct tk_scan *c, struct tk_value *out) {
  bool of_the_process =
      span(c)->kind == TO_SPAN_RANGE &&
      to_range_info((enum to_range_kind)span(c)->state)->scope == TO_RESOURCE_NONE;

  if (!of_the_process) tk__id(out, span(c)->id);
}

static void v_life(struct tk_scan *c, struct tk_value *out) {
  tk__life(c, out, span(c)->life);
}

static const char *state_name(const struct to_span *s) {
  static const char *const proc[] = { "undetermined", "notexist", "running", "idle" };
  static const char *const piece[] = { "without-p", "with-p" };

  switch (s->kind) {
  case TO_SPAN_PROC: return proc[s->state];
  case TO_SPAN_THREAD: return tk_thread_state_word(s->state);
  case TO_SPAN_SYSCALL: return piece[s->state];
  case TO_SPAN_RANGE: return to_range_info((enum to_range_kind)s->state)->name;
  default: return tk_go_state_word(s->state);
  }
}

static void v_state(struct tk_scan *c, struct tk_value *out) {
  tk__name(out, state_name(span(c)));
}

static struct to_string name_of(const struct to_span *s) {
  return s->more == NULL ? (struct to_string){ 0 } : s->more->name;
}

/* Go's reason for a wait, the stop's own for a stop of the world; else empty. */
static void v_reason(struct tk_scan *c, struct tk_value *out) {
  const struct to_span *s = span(c);
  bool waits = s->kind == TO_SPAN_GOROUTINE && s->state == TO_GO_WAITING;
  const char *text = waits ? c->at.reason->text : NULL;

  if (s->kind == TO_SPAN_RANGE)
    tk__text(out, name_of(s));
  else if (text != NULL && s->reason >= TO_REASONS) /* freed with the pass */
    tk__text(out, (struct to_string){ text, strlen(text) });
  else
    tk__name(out, text == NULL ? "" : text);
}

static void v_cause(struct tk_scan *c, struct tk_value *out) {
  bool runnable = span(c)->kind == TO_SPAN_GOROUTINE && span(c)->state == TO_GO_RUNNABLE;

  tk__name(out, runnable ? to_cause_name((enum to_cause)span(c)->cause) : "");
}

static void v_from(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, span(c)->from);
}

static void v_wall(struct tk_scan *c, struct tk_value *out) {
  if (c->at.has_wall) tk__number(out, (int64_t)c->at.wall_ns);
}

static void v_until(struct tk_scan *c, struct tk_value *out) {
  if (!span(c)->open) tk__number(out, span(c)->until);
}

static void v_duration(struct tk_scan *c, struct tk_value *out) {
  if (!span(c)->open) tk__number(out, span(c)->until - span(c)->from);
}

static void v_idle(struct tk_scan *c, struct tk_value *out) {
  bool is_idle;

  if (tk_pass_is_idle(c->pass, &c->at, &is_idle) != TB_OK)
    tk__fault(out, TK_VALUE_NO_MEMORY);
  else
    tk__number(out, is_idle);
}

static void v_from_known(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, span(c)->from_known);
}

static void v_until_known(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, span(c)->until_known);
}

/* number: in the pass. */
static void put_stack(struct tk_scan *c, struct tk_value *out, uint32_t number) {
  const struct to_callstack *stack = tk_pass_stack(c->pass, number);

  if (tk_numbers_find(&c->numbers, c->trace, number, stack, &number) != TB_OK)
    tk__fault(out, TK_VALUE_NO_MEMORY);
  else
    tk__stack(c, out, number);
}

static void v_stack(struct tk_scan *c, struct tk_value *out) {
  put_stack(c, out, c->at.stack);
}

static void v_end_stack(struct tk_scan *c, struct tk_value *out) {
  put_stack(c, out, c->at.end_stack);
}

static void v_by_life(struct tk_scan *c, struct tk_value *out) {
  tk__life(c, out, span(c)->by_life);
}

static void v_by_thread(struct tk_scan *c, struct tk_value *out) {
  tk__id(out, span(c)->by_thread);
}

static void v_by_stack(struct tk_scan *c, struct tk_value *out) {
  put_stack(c, out, c->at.by_stack);
}

static void v_proc(struct tk_scan *c, struct tk_value *out) {
  tk__id(out, span(c)->proc);
}

static void v_thread(struct tk_scan *c, struct tk_value *out) {
  tk__id(out, span(c)->thread);
}

static void v_gen(struct tk_scan *c, struct tk_value *out) {
  if (c->at.gen != 0) tk__number(out, (int64_t)c->at.gen);
}

static void v_name(struct tk_scan *c, struct tk_value *out) {
  tk__text(out, name_of(span(c)));
}

static void v_message(struct tk_scan *c, struct tk_value *out) {
  tk__text(out, span(c)->more->text);
}

static void v_metric(struct tk_scan *c, struct tk_value *out) {
  tk__name(out, to_metric_name((enum to_metric)span(c)->state));
}

static void v_value(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, (int64_t)span(c)->more->value);
}

static void v_task(struct tk_scan *c, struct tk_value *out) {
  if (span(c)->more->value != TO_NO_TASK) v_value(c, out);
}

static void v_parent(struct tk_scan *c, struct tk_value *out) {
  uint64_t parent = span(c)->more->parent;

  if (parent != TO_NO_TASK && parent != 0) tk__number(out, (int64_t)parent);
}

/* ---- a scan ---- */

/* Returns the table's kinds that have the requested name. */
static uint32_t kinds_of(const struct tk_scan *c) {
  if (c->wants.name[0] == 0) return c->table->kinds;
  for (unsigned i = 0; i < TO_SPAN_KINDS; i++)
    if (strcmp(to_span_kind_name((enum to_span_kind)i), c->wants.name) == 0)
      return c->table->kinds & 1u << i;
  return 0;
}

static int spans_next(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  uint32_t kinds = kinds_of(c);
  int got;

  do got = tk_pass_next(c->pass, &c->at, error);
  while (got == 1 && (kinds & 1u << c->at.span->kind) == 0);
  return got;
}

static int spans_begin(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  uint32_t kinds = kinds_of(c);

  if (kinds == 0) return 0;
  if (!tk_pass_begin(&c->trace->place, kinds, &c->pass, error)) return -1;
  return spans_next(c, error);
}

static void spans_end(struct tk_scan *c) {
  tk_pass_end(c->pass);
  c->pass = NULL;
}

static const struct tk_table_ops ops = { spans_begin, spans_next, spans_end };

/* ---- the tables */

#define KIND(kind) (1u << TO_SPAN_##kind)

const struct tk_query_table tk__span_tables[] = {
  { .name = "spans",
    .ops = &ops,
    .kinds = KIND(GOROUTINE) | KIND(SYSCALL) | KIND(PROC) | KIND(THREAD) | KIND(RANGE),
    .column = { { "stream", tk__stream },
                { "kind", v_kind, TK_PUSH_NAME },
                { "subject", v_subject },
                { "life", v_life },
                { "state", v_state },
                { "reason", v_reason },
                { "from_ns", v_from },
                { "until_ns", v_until },
                { "from_known", v_from_known },
                { "until_known", v_until_known },
                { "stack", v_stack },
                { "end_stack", v_end_stack },
                { "by_life", v_by_life },
                { "by_thread", v_by_thread },
                { "by_stack", v_by_stack },
                { "proc", v_proc },
                { "thread", v_thread },
                { "gen", v_gen },
                { "wall_ns", v_wall },
                { "cause", v_cause },
                { "duration_ns", v_duration, .is_hidden = true },
                { "idle", v_idle, .is_hidden = true } } },
  { .name = "tasks",
    .ops = &ops,
    .kinds = KIND(TASK),
    .column = { { "stream", tk__stream },
                { "task", v_task },
                { "parent", v_parent },
                { "type", v_name },
                { "life", v_life },
                { "from_ns", v_from },
                { "until_ns", v_until },
                { "wall_ns", v_wall },
                { "duration_ns", v_duration, .is_hidden = true } } },
  { .name = "regions",
    .ops = &ops,
    .kinds = KIND(REGION),
    .column = { { "stream", tk__stream },
                { "task", v_task },
                { "type", v_name },
                { "life", v_life },
                { "from_ns", v_from },
                { "until_ns", v_until },
                { "stack", v_stack },
                { "wall_ns", v_wall },
                { "duration_ns", v_duration, .is_hidden = true } } },
  { .name = "logs",
    .ops = &ops,
    .kinds = KIND(LOG),
    .column = { { "stream", tk__stream },
                { "task", v_task },
                { "category", v_name },
                { "message", v_message },
                { "life", v_life },
                { "time_ns", v_from },
                { "wall_ns", v_wall } } },
  { .name = "samples",
    .ops = &ops,
    .kinds = KIND(SAMPLE),
    .column = { { "stream", tk__stream },
                { "time_ns", v_from },
                { "life", v_life },
                { "thread", v_thread },
                { "proc", v_proc },
                { "stack", v_stack },
                { "wall_ns", v_wall } } },
  { .name = "metrics",
    .ops = &ops,
    .kinds = KIND(METRIC),
    .column = { { "stream", tk__stream },
                { "time_ns", v_from },
                { "name", v_metric },
                { "value", v_value },
                { "wall_ns", v_wall } } },
  { 0 },
};
