/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in memory: goroutines, found by life or id; stacks and frames, found by number. */
#include "tools/tracectl/query/scan.h"

static const struct tk_goroutine_row *goroutine(const struct tk_scan *c) {
  return &c->trace->goroutine[c->key];
}

static void g_life(struct tk_scan *c, struct tk_value *out) {
  tk__life(c, out, c->key);
}

static void g_id(struct tk_scan *c, struct tk_value *out) {
  tk__id(out, goroutine(c)->id);
}

static void g_entry(struct tk_scan *c, struct tk_value *out) {
  const struct tk_goroutine_row *row = goroutine(c);
  const struct to_callstack *stack =
      row->entry_stack == TO_STACK_EMPTY ? NULL : tk_trace_stack(c->trace, row->entry_stack);

  if (stack == NULL || stack->len == 0) return;
  tk__text(out, stack->frames[row->entry_is_outermost ? stack->len - 1 : 0]->function);
}

static void g_created(struct tk_scan *c, struct tk_value *out) {
  if (goroutine(c)->created_known) tk__number(out, goroutine(c)->created);
}

static void g_ended(struct tk_scan *c, struct tk_value *out) {
  if (goroutine(c)->ended) tk__number(out, goroutine(c)->ended_at);
}

static void g_creator(struct tk_scan *c, struct tk_value *out) {
  tk__life(c, out, goroutine(c)->creator);
}

static void g_creation_stack(struct tk_scan *c, struct tk_value *out) {
  tk__stack(c, out, goroutine(c)->creation_stack);
}

static void g_label(struct tk_scan *c, struct tk_value *out) {
  if (goroutine(c)->label != NULL) tk__words(out, goroutine(c)->label);
}

static void s_stack(struct tk_scan *c, struct tk_value *out) {
  tk__stack(c, out, (uint32_t)c->key);
}

static void s_depth_max(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, (int64_t)tk_trace_stack(c->trace, (uint32_t)c->key)->len);
}

static const struct to_frame *frame(const struct tk_scan *c) {
  return tk_trace_stack(c->trace, (uint32_t)c->key)->frames[c->depth];
}

static void f_depth(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, (int64_t)c->depth);
}

static void f_function(struct tk_scan *c, struct tk_value *out) {
  tk__text(out, frame(c)->function);
}

static void f_file(struct tk_scan *c, struct tk_value *out) {
  tk__text(out, frame(c)->file);
}

static void f_line(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, (int64_t)frame(c)->line);
}

static void f_pc(struct tk_scan *c, struct tk_value *out) {
  tk__number(out, (int64_t)frame(c)->pc);
}

/* Moves to the next existing frame. */
static int find_frame(struct tk_scan *c) {
  for (; c->key < c->end; c->key++, c->depth = 0)
    if (c->depth < tk_trace_stack(c->trace, (uint32_t)c->key)->len) return 1;
  return 0;
}

static int find_goroutine(struct tk_scan *c) {
  while (c->key < c->end && !goroutine(c)->is_known) c->key++;
  return c->key < c->end;
}

/* Returns the requested key, without the trace's number; -1: it is of another trace. */
static int64_t key_here(const struct tk_scan *c) {
  int64_t base = (int64_t)c->trace->number * TK_OF_TRACE, key = c->wants.key;

  return key > base && key < base + TK_OF_TRACE ? key - base : -1;
}

/* Moves to the life at in_ids, if it has the id. A requested life is compared by SQLite. */
static int find_id(struct tk_scan *c) {
  if (c->in_ids == c->trace->ids) return 0;
  c->key = c->trace->by_id[c->in_ids];
  return goroutine(c)->id == c->wants.id;
}

/* All lives, or only the requested one. */
static bool begin_lives(struct tk_scan *c) {
  int64_t life = c->wants.has_key ? key_here(c) : 1;

  c->key = (uint64_t)life;
  c->end = c->wants.has_key ? c->key + 1 : c->trace->lives;
  return life > 0 && c->key < c->trace->lives;
}

static int goroutines_begin(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  if (!tk_trace_read(c->trace, error)) return -1;
  if (!c->wants.has_id) return begin_lives(c) ? find_goroutine(c) : 0;
  if (!tk_trace_sort_ids(c->trace, error)) return -1;
  c->in_ids = tk_trace_find_id(c->trace, c->wants.id);
  return find_id(c);
}

static int goroutines_next(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  (void)error;
  if (c->wants.has_id) {
    c->in_ids++;
    return find_id(c);
  }
  c->key++;
  return find_goroutine(c);
}

/* All stacks, or only the requested one. */
static int stacks_begin(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  uint32_t stack = TO_STACK_OTHER + 1;

  if (!tk_trace_read(c->trace, error)) return -1;
  if (c->wants.has_key && !tk_trace_find_stack(c->trace, key_here(c), &stack)) return 0;
  c->key = stack;
  c->end = c->wants.has_key ? c->key + 1 : c->trace->stacks.count;
  c->depth = 0;
  return find_frame(c);
}

static int stacks_next(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  (void)error;
  c->key++;
  return find_frame(c);
}

static int frames_next(struct tk_scan *c, char error[TK_QUERY_ERROR]) {
  (void)error;
  c->depth++;
  return find_frame(c);
}

static const struct tk_table_ops goroutines = { goroutines_begin, goroutines_next, NULL },
                                 stacks = { stacks_begin, stacks_next, NULL },
                                 frames = { stacks_begin, frames_next, NULL };

const struct tk_query_table tk__memory_tables[] = {
  { .name = "goroutines",
    .ops = &goroutines,
    .is_small = true,
    .column = { { "stream", tk__stream },
                { "life", g_life, TK_PUSH_KEY },
                { "id", g_id, TK_PUSH_ID },
                { "entry", g_entry },
                { "created_ns", g_created },
                { "ended_ns", g_ended },
                { "creator", g_creator },
                { "creation_stack", g_creation_stack },
                { "label", g_label } } },
  { .name = "stacks",
    .ops = &stacks,
    .is_small = true,
    .column = { { "stream", tk__stream },
                { "stack", s_stack, TK_PUSH_KEY },
                { "depth_max", s_depth_max } } },
  { .name = "frames",
    .ops = &frames,
    .is_small = true,
    .column = { { "stream", tk__stream },
                { "stack", s_stack, TK_PUSH_KEY },
                { "depth", f_depth },
                { "function", f_function },
                { "file", f_file },
                { "line", f_line },
                { "pc", f_pc } } },
  { 0 },
};
