/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tracectl/query/columns.h"

static void give_text(sqlite3_context *out, struct to_string text) {
  sqlite3_result_text(out, text.data == NULL ? "" : text.data, (int)text.len, SQLITE_TRANSIENT);
}

static void give_name(sqlite3_context *out, const char *name) {
  sqlite3_result_text(out, name, -1, SQLITE_STATIC);
}

/* NULL where there is none. */
static void give_id(sqlite3_context *out, int64_t id) {
  if (id != TO_NONE) sqlite3_result_int64(out, id);
}

static void give_life(sqlite3_context *out, uint64_t life) {
  if (life != 0) sqlite3_result_int64(out, (int64_t)life);
}

static void give_stack(sqlite3_context *out, uint32_t stack) {
  if (stack != TO_STACK_EMPTY) sqlite3_result_int64(out, stack);
}

static void v_stream(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_text(out, c->source->path, -1, SQLITE_STATIC);
}

/* ---- of spans */

static const struct to_span *span(const struct tk_scan *c) {
  return c->at.span;
}

static void v_kind(const struct tk_scan *c, sqlite3_context *out) {
  give_name(out, to_span_kind_name((enum to_span_kind)span(c)->kind));
}

static void v_subject(const struct tk_scan *c, sqlite3_context *out) {
  bool of_the_process =
      span(c)->kind == TO_SPAN_RANGE &&
      to_range_info((enum to_range_kind)span(c)->state)->scope == TO_RESOURCE_NONE;

  if (!of_the_process) give_id(out, span(c)->id);
}

static void v_life(const struct tk_scan *c, sqlite3_context *out) {
  give_life(out, span(c)->life);
}

static const char *state_name(const struct to_span *s) {
  static const char *const goroutine[] = { "undetermined", "notexist", "runnable",
                                           "running",      "waiting",  "syscall" };
  static const char *const proc[] = { "undetermined", "notexist", "running", "idle" };
  static const char *const thread[] = { "idle", "running", "syscall", "blocked" };
  static const char *const piece[] = { "without-p", "with-p" };

  switch (s->kind) {
  case TO_SPAN_PROC: return proc[s->state];
  case TO_SPAN_THREAD: return thread[s->state];
  case TO_SPAN_SYSCALL: return piece[s->state];
  case TO_SPAN_RANGE: return to_range_info((enum to_range_kind)s->state)->name;
  default: return goroutine[s->state];
  }
}

static void v_state(const struct tk_scan *c, sqlite3_context *out) {
  give_name(out, state_name(span(c)));
}

static struct to_string name_of(const struct to_span *s) {
  return s->more == NULL ? (struct to_string){ 0 } : s->more->name;
}

/* Of a wait Go's words, of a stop of the world its own, else empty. */
static void v_reason(const struct tk_scan *c, sqlite3_context *out) {
  const struct to_span *s = span(c);
  bool waits = s->kind == TO_SPAN_GOROUTINE && s->state == TO_GO_WAITING;
  const char *text = waits ? to_reason_info((enum to_reason)s->reason)->text : NULL;

  if (s->kind == TO_SPAN_RANGE)
    give_text(out, name_of(s));
  else
    give_name(out, text == NULL ? "" : text);
}

static void v_cause(const struct tk_scan *c, sqlite3_context *out) {
  bool runnable = span(c)->kind == TO_SPAN_GOROUTINE && span(c)->state == TO_GO_RUNNABLE;

  give_name(out, runnable ? to_cause_name((enum to_cause)span(c)->cause) : "");
}

static void v_from(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int64(out, span(c)->from);
}

static void v_wall(const struct tk_scan *c, sqlite3_context *out) {
  if (c->at.has_wall) sqlite3_result_int64(out, (int64_t)c->at.wall_ns);
}

static void v_until(const struct tk_scan *c, sqlite3_context *out) {
  if (!span(c)->open) sqlite3_result_int64(out, span(c)->until);
}

static void v_from_known(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int(out, span(c)->from_known);
}

static void v_until_known(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int(out, span(c)->until_known);
}

static void v_stack(const struct tk_scan *c, sqlite3_context *out) {
  give_stack(out, c->at.stack);
}

static void v_end_stack(const struct tk_scan *c, sqlite3_context *out) {
  give_stack(out, c->at.end_stack);
}

static void v_by_life(const struct tk_scan *c, sqlite3_context *out) {
  give_life(out, span(c)->by_life);
}

static void v_by_thread(const struct tk_scan *c, sqlite3_context *out) {
  give_id(out, span(c)->by_thread);
}

static void v_by_stack(const struct tk_scan *c, sqlite3_context *out) {
  give_stack(out, c->at.by_stack);
}

static void v_proc(const struct tk_scan *c, sqlite3_context *out) {
  give_id(out, span(c)->proc);
}

static void v_thread(const struct tk_scan *c, sqlite3_context *out) {
  give_id(out, span(c)->thread);
}

static void v_gen(const struct tk_scan *c, sqlite3_context *out) {
  if (c->at.gen != 0) sqlite3_result_int64(out, (int64_t)c->at.gen);
}

static void v_name(const struct tk_scan *c, sqlite3_context *out) {
  give_text(out, name_of(span(c)));
}

static void v_message(const struct tk_scan *c, sqlite3_context *out) {
  give_text(out, span(c)->more->text);
}

static void v_metric(const struct tk_scan *c, sqlite3_context *out) {
  give_name(out, to_metric_name((enum to_metric)span(c)->state));
}

static void v_value(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int64(out, (int64_t)span(c)->more->value);
}

static void v_task(const struct tk_scan *c, sqlite3_context *out) {
  if (span(c)->more->value != TO_NO_TASK) v_value(c, out);
}

static void v_parent(const struct tk_scan *c, sqlite3_context *out) {
  uint64_t parent = span(c)->more->parent;

  if (parent != TO_NO_TASK && parent != 0) sqlite3_result_int64(out, (int64_t)parent);
}

/* ---- of goroutines, stacks, frames */

static const struct tk_goroutine_row *goroutine(const struct tk_scan *c) {
  return &c->source->goroutine[c->key];
}

static void g_life(const struct tk_scan *c, sqlite3_context *out) {
  give_life(out, c->key);
}

static void g_id(const struct tk_scan *c, sqlite3_context *out) {
  give_id(out, goroutine(c)->id);
}

static void g_entry(const struct tk_scan *c, sqlite3_context *out) {
  const struct tk_goroutine_row *row = goroutine(c);
  const struct to_callstack *stack =
      row->entry_stack == TO_STACK_EMPTY ? NULL : tk_source_stack(c->source, row->entry_stack);

  if (stack == NULL || stack->len == 0) return;
  give_text(out, stack->frames[row->entry_is_outermost ? stack->len - 1 : 0]->function);
}

static void g_created(const struct tk_scan *c, sqlite3_context *out) {
  if (goroutine(c)->created_known) sqlite3_result_int64(out, goroutine(c)->created);
}

static void g_ended(const struct tk_scan *c, sqlite3_context *out) {
  if (goroutine(c)->ended) sqlite3_result_int64(out, goroutine(c)->ended_at);
}

static void g_creator(const struct tk_scan *c, sqlite3_context *out) {
  give_life(out, goroutine(c)->creator);
}

static void g_creation_stack(const struct tk_scan *c, sqlite3_context *out) {
  give_stack(out, goroutine(c)->creation_stack);
}

static void g_label(const struct tk_scan *c, sqlite3_context *out) {
  if (goroutine(c)->label != NULL)
    sqlite3_result_text(out, goroutine(c)->label, -1, SQLITE_TRANSIENT);
}

static void s_stack(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int64(out, (int64_t)c->key);
}

static void s_depth_max(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int64(out, (int64_t)tk_source_stack(c->source, (uint32_t)c->key)->len);
}

static const struct to_frame *frame(const struct tk_scan *c) {
  return tk_source_stack(c->source, (uint32_t)c->key)->frames[c->depth];
}

static void f_depth(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int64(out, (int64_t)c->depth);
}

static void f_function(const struct tk_scan *c, sqlite3_context *out) {
  give_text(out, frame(c)->function);
}

static void f_file(const struct tk_scan *c, sqlite3_context *out) {
  give_text(out, frame(c)->file);
}

static void f_line(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int64(out, (int64_t)frame(c)->line);
}

static void f_pc(const struct tk_scan *c, sqlite3_context *out) {
  sqlite3_result_int64(out, (int64_t)frame(c)->pc);
}

/* ---- the tables */

#define KIND(kind) (1u << TO_SPAN_##kind)

const struct tk_query_table tk_query_tables[] = {
  { .name = "spans",
    .kinds = KIND(GOROUTINE) | KIND(SYSCALL) | KIND(PROC) | KIND(THREAD) | KIND(RANGE),
    .key = 1,
    .column = { { "stream", v_stream },         { "kind", v_kind },
                { "subject", v_subject },       { "life", v_life },
                { "state", v_state },           { "reason", v_reason },
                { "from_ns", v_from },          { "until_ns", v_until },
                { "from_known", v_from_known }, { "until_known", v_until_known },
                { "stack", v_stack },           { "end_stack", v_end_stack },
                { "by_life", v_by_life },       { "by_thread", v_by_thread },
                { "by_stack", v_by_stack },     { "proc", v_proc },
                { "thread", v_thread },         { "gen", v_gen },
                { "wall_ns", v_wall },          { "cause", v_cause } } },
  { .name = "tasks",
    .kinds = KIND(TASK),
    .key = -1,
    .column = { { "stream", v_stream },
                { "task", v_task },
                { "parent", v_parent },
                { "type", v_name },
                { "life", v_life },
                { "from_ns", v_from },
                { "until_ns", v_until },
                { "wall_ns", v_wall } } },
  { .name = "regions",
    .kinds = KIND(REGION),
    .key = -1,
    .column = { { "stream", v_stream },
                { "task", v_task },
                { "type", v_name },
                { "life", v_life },
                { "from_ns", v_from },
                { "until_ns", v_until },
                { "stack", v_stack },
                { "wall_ns", v_wall } } },
  { .name = "logs",
    .kinds = KIND(LOG),
    .key = -1,
    .column = { { "stream", v_stream },
                { "task", v_task },
                { "category", v_name },
                { "message", v_message },
                { "life", v_life },
                { "time_ns", v_from },
                { "wall_ns", v_wall } } },
  { .name = "samples",
    .kinds = KIND(SAMPLE),
    .key = -1,
    .column = { { "stream", v_stream },
                { "time_ns", v_from },
                { "life", v_life },
                { "thread", v_thread },
                { "proc", v_proc },
                { "stack", v_stack },
                { "wall_ns", v_wall } } },
  { .name = "metrics",
    .kinds = KIND(METRIC),
    .key = -1,
    .column = { { "stream", v_stream },
                { "time_ns", v_from },
                { "name", v_metric },
                { "value", v_value },
                { "wall_ns", v_wall } } },
  { .name = "goroutines",
    .key = 1,
    .of_goroutines = true,
    .column = { { "stream", v_stream },
                { "life", g_life },
                { "id", g_id },
                { "entry", g_entry },
                { "created_ns", g_created },
                { "ended_ns", g_ended },
                { "creator", g_creator },
                { "creation_stack", g_creation_stack },
                { "label", g_label } } },
  { .name = "stacks",
    .key = 1,
    .column = { { "stream", v_stream }, { "stack", s_stack }, { "depth_max", s_depth_max } } },
  { .name = "frames",
    .key = 1,
    .has_depths = true,
    .column = { { "stream", v_stream },
                { "stack", s_stack },
                { "depth", f_depth },
                { "function", f_function },
                { "file", f_file },
                { "line", f_line },
                { "pc", f_pc } } },
  { 0 },
};
