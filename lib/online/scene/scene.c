/* SPDX-License-Identifier: Apache-2.0 */
#include "online/scene/scene.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "online/scene/reading.h"

enum { PROCS_MAX = 65536 };

const char *to_look_name(enum to_look look) {
  static const char *const names[] = {
#define TO_LOOK(ID, name) name,
#include "online/scene/looks.def"
#undef TO_LOOK
  };

  return look < TO_LOOKS ? names[look] : "";
}

struct builder {
  struct to_scene *scene;
  struct tb_map goroutine, thread; /* index by id */
  struct to_reading reading;
};

/* ---- goroutines, threads, names ---- */

static tb_rc find_goroutine(struct builder *b, int64_t id, uint32_t *out) {
  struct to_scene *s = b->scene;
  uint64_t *index;
  bool is_fresh;

  TB_TRY(tb_map_put(&b->goroutine, (uint64_t)id, &index, &is_fresh));
  if (is_fresh) {
    TB_TRY(TB_MEM_GROW(s->mem, s->goroutine, s->goroutines_room, s->goroutines));
    s->goroutine[s->goroutines] = (struct to_scene_goroutine){ .id = id };
    *index = s->goroutines++;
  }
  *out = (uint32_t)*index;
  return TB_OK;
}

static tb_rc find_thread(struct builder *b, int64_t id, uint32_t *out) {
  struct to_scene *s = b->scene;
  uint64_t *index;
  bool is_fresh;

  *out = TO_SCENE_NONE;
  if (id == TO_NONE) return TB_OK;
  TB_TRY(tb_map_put(&b->thread, (uint64_t)id, &index, &is_fresh));
  if (is_fresh) {
    TB_TRY(TB_MEM_GROW(s->mem, s->thread, s->threads_room, s->threads));
    s->thread[s->threads] = id;
    *index = s->threads++;
  }
  *out = (uint32_t)*index;
  return TB_OK;
}

/* is_sure: the goroutine begins with this stack; otherwise the stack's outermost frame is a guess. */
static tb_rc name_entry(struct builder *b, const struct to_generation *gen, uint32_t goroutine,
                        uint64_t stack, bool is_sure) {
  struct to_scene_goroutine *g = &b->scene->goroutine[goroutine];
  uint32_t number;

  if (stack == 0 || g->entry_is_sure || (g->entry != 0 && !is_sure)) return TB_OK;
  TB_TRY(to_spans_stack(b->reading.spans, gen, stack, &number));
  const struct to_frame *frame =
      to_callstack_entry(to_spans_callstack(b->reading.spans, number), is_sure);
  if (frame == NULL) return TB_OK;
  g->entry_is_sure = is_sure;
  return to_texts_add(&b->scene->names, frame->function, &g->entry);
}

static to_ns begin_of(const struct builder *b, const struct to_span *span) {
  return span->from_known ? span->from : b->reading.from;
}

static tb_rc add_span(struct builder *b, const struct to_generation *gen,
                      const struct to_span *span, enum to_look look) {
  struct to_scene *s = b->scene;
  struct to_scene_span to = { .from = begin_of(b, span),
                              .until = span->until,
                              .proc = span->proc == TO_NONE ? -1 : (int32_t)span->proc,
                              .look = look,
                              .from_known = span->from_known,
                              .open = span->open };

  TB_TRY(find_goroutine(b, span->id, &to.goroutine));
  TB_TRY(find_thread(b, span->thread, &to.thread));
  TB_TRY(name_entry(b, gen, to.goroutine, span->stack, false));
  TB_TRY(name_entry(b, gen, to.goroutine, span->end_stack, false));
  TB_TRY(TB_MEM_GROW(s->mem, s->span, s->spans_room, s->spans));
  s->span[s->spans++] = to;
  s->goroutine[to.goroutine].n++;
  return TB_OK;
}

static tb_rc add_mark(struct builder *b, const struct to_span *span, enum to_look look) {
  static const struct to_span_more nothing = { .goroutine = TO_NONE };
  const struct to_span_more *more = span->more != NULL ? span->more : &nothing;
  bool has_none = look == TO_LOOK_METRIC || look == TO_LOOK_GC_MARK;
  int64_t goroutine = look == TO_LOOK_TASK ? more->goroutine : span->id;
  struct to_scene *s = b->scene;
  struct to_scene_mark to = { .from = begin_of(b, span),
                              .until = span->until,
                              .value = more->value,
                              .goroutine = TO_SCENE_NONE,
                              .look = look,
                              .state = span->state,
                              .from_known = span->from_known,
                              .open = span->open };

  if (!has_none && goroutine > 0) TB_TRY(find_goroutine(b, goroutine, &to.goroutine));
  TB_TRY(to_texts_add(&s->names, look == TO_LOOK_LOG ? more->text : more->name, &to.name));
  TB_TRY(TB_MEM_GROW(s->mem, s->mark, s->marks_room, s->marks));
  s->mark[s->marks++] = to;
  return TB_OK;
}

static tb_rc add_state(struct builder *b, const struct to_generation *gen,
                       const struct to_span *span) {
  switch (span->state) {
  case TO_GO_RUNNING: return add_span(b, gen, span, TO_LOOK_RUNNING);
  case TO_GO_RUNNABLE: return add_span(b, gen, span, TO_LOOK_RUNNABLE);
  case TO_GO_WAITING:
    return add_span(b, gen, span,
                    TO_LOOK_WAITING + to_spans_reason(b->reading.spans, span->reason)->wait_class);
  default: return TB_OK; /* calls: TO_SPAN_SYSCALL */
  }
}

static tb_rc add_life(struct builder *b, const struct to_generation *gen,
                      const struct to_span *span) {
  uint32_t goroutine;

  if (!span->from_known) return TB_OK;
  TB_TRY(find_goroutine(b, span->id, &goroutine));
  return name_entry(b, gen, goroutine, span->stack, true);
}

static tb_rc add_range(struct builder *b, const struct to_span *span) {
  switch (span->state) {
  case TO_RANGE_STW: return add_mark(b, span, TO_LOOK_STW);
  case TO_RANGE_GC_MARK: return add_mark(b, span, TO_LOOK_GC_MARK);
  case TO_RANGE_GC_MARK_ASSIST: return add_mark(b, span, TO_LOOK_GC_ASSIST);
  default: return TB_OK;
  }
}

static tb_rc add_one(struct builder *b, const struct to_generation *gen,
                     const struct to_span *span) {
  switch (span->kind) {
  case TO_SPAN_GOROUTINE: return add_state(b, gen, span);
  case TO_SPAN_SYSCALL:
    return add_span(b, gen, span, span->state == 1 ? TO_LOOK_SYSCALL : TO_LOOK_SYSCALL_NO_P);
  case TO_SPAN_LIFE: return add_life(b, gen, span);
  case TO_SPAN_RANGE: return add_range(b, span);
  case TO_SPAN_TASK: return add_mark(b, span, TO_LOOK_TASK);
  case TO_SPAN_REGION: return add_mark(b, span, TO_LOOK_REGION);
  case TO_SPAN_LOG: return add_mark(b, span, TO_LOOK_LOG);
  case TO_SPAN_SAMPLE: return add_mark(b, span, TO_LOOK_SAMPLE);
  case TO_SPAN_METRIC: return add_mark(b, span, TO_LOOK_METRIC);
  default: return TB_OK;
  }
}

static tb_rc on_spans(void *self, const struct to_generation *gen, const struct to_span *spans,
                      size_t n) {
  for (size_t i = 0; i < n; i++) TB_TRY(add_one(self, gen, &spans[i]));
  return TB_OK;
}

static tb_rc on_open(void *self, const struct to_span *span) {
  return add_one(self, NULL, span);
}

/* ---- columns ---- */

static int by_id(const void *a, const void *b) {
  const struct to_scene_goroutine *one = a, *other = b;

  return (one->id > other->id) - (one->id < other->id);
}

/* Sorts goroutines by id. place[i]: new index of goroutine i. */
static void sort_goroutines(struct builder *b, uint32_t *place) {
  struct to_scene *s = b->scene;
  uint32_t first = 0;

  qsort(s->goroutine, s->goroutines, sizeof *s->goroutine, by_id);
  for (uint32_t i = 0; i < s->goroutines; i++) {
    place[*tb_map_find(&b->goroutine, (uint64_t)s->goroutine[i].id)] = i;
    s->goroutine[i].first = first;
    first += s->goroutine[i].n;
  }
}

/* to[i]: new index of span i. Spans of one goroutine are already in order. next: scratch, a number per goroutine. */
static void sort_spans(struct to_scene *s, const uint32_t *place, struct to_scene_span *sorted,
                       uint32_t *next, uint32_t *to) {
  for (size_t i = 0; i < s->goroutines; i++) next[i] = s->goroutine[i].first;
  for (size_t i = 0; i < s->spans; i++) {
    uint32_t goroutine = place[s->span[i].goroutine];

    to[i] = next[goroutine]++;
    sorted[to[i]] = s->span[i];
    sorted[to[i]].goroutine = goroutine;
  }
  for (size_t i = 0; i < s->marks; i++)
    if (s->mark[i].goroutine != TO_SCENE_NONE) s->mark[i].goroutine = place[s->mark[i].goroutine];
}

static uint32_t proc_of(const struct to_scene_span *span) {
  return (uint32_t)span->proc;
}

static uint32_t thread_of(const struct to_scene_span *span) {
  return span->thread;
}

/* Lists spans by P or thread, in the order of their ends, as they do not overlap. to: new index of each span. */
static tb_rc put_in_order(struct to_scene *s, struct to_scene_order *order, size_t of,
                          uint32_t (*which)(const struct to_scene_span *span), const uint32_t *to) {
  size_t n = 0;

  for (size_t i = 0; i < s->spans; i++) n += which(&s->span[i]) < of;
  if (n == 0) return TB_OK;
  TB_TRY(tb_mem_alloc(s->mem, (of + 2) * sizeof *order->first, &order->first));
  order->of = of;
  TB_TRY(tb_mem_alloc(s->mem, n * sizeof *order->span, &order->span));
  order->n = n;
  /* First first[k + 2] is a count; then first[k + 1] is the place of k's next span. */
  for (size_t i = 0; i < s->spans; i++)
    if (which(&s->span[i]) < of) order->first[which(&s->span[i]) + 2]++;
  for (size_t k = 2; k < of + 2; k++) order->first[k] += order->first[k - 1];
  for (size_t i = 0; i < s->spans; i++)
    if (which(&s->span[i]) < of) order->span[order->first[which(&s->span[i]) + 1]++] = to[i];
  return TB_OK;
}

static size_t procs(const struct to_scene *s) {
  int32_t most = -1;

  for (size_t i = 0; i < s->spans; i++)
    if (s->span[i].proc > most) most = s->span[i].proc;
  return (size_t)most + 1 < PROCS_MAX ? (size_t)(most + 1) : PROCS_MAX;
}

static tb_rc sort_with(struct builder *b, uint32_t *numbers, struct to_scene_span *sorted) {
  struct to_scene *s = b->scene;
  uint32_t *place = numbers, *next = place + s->goroutines, *to = next + s->goroutines;

  sort_goroutines(b, place);
  sort_spans(s, place, sorted, next, to);
  TB_TRY(put_in_order(s, &s->on_proc, procs(s), proc_of, to));
  return put_in_order(s, &s->on_thread, s->threads, thread_of, to);
}

static tb_rc sort(struct builder *b) {
  struct to_scene *s = b->scene;
  size_t bytes = (2 * s->goroutines + s->spans) * sizeof(uint32_t), room = s->spans + 1;
  struct to_scene_span *sorted = NULL;
  uint32_t *numbers = NULL;

  if (s->goroutines == 0) return TB_OK;
  TB_TRY(tb_mem_alloc(s->mem, bytes, &numbers));
  tb_rc rc = tb_mem_alloc(s->mem, room * sizeof *sorted, &sorted);
  if (rc == TB_OK) {
    rc = sort_with(b, numbers, sorted);
    tb_mem_free(s->mem, s->span, s->spans_room * sizeof *s->span);
    s->span = sorted;
    s->spans_room = room;
  }
  tb_mem_free(s->mem, numbers, bytes);
  return rc;
}

static tb_rc build(struct builder *b, const struct to_scene_source *source, struct tb_diag *diag) {
  const struct to_spans_config config = { .wanted = TO_WANT_GO(RUNNING) | TO_WANT_GO(RUNNABLE) |
                                                    TO_WANT_GO(WAITING) | TO_WANT(SYSCALL) |
                                                    TO_WANT(LIFE) | TO_WANT(RANGE) | TO_WANT(TASK) |
                                                    TO_WANT(REGION) | TO_WANT(LOG) |
                                                    TO_WANT(SAMPLE) | TO_WANT(METRIC) };
  const struct to_span_sink sink = { b, on_spans };

  TB_TRY(to__reading_run(&b->reading, b->scene->mem, source, &config, sink, on_open, diag));
  b->scene->gen = b->reading.gen;
  b->scene->program = to_spans_program(b->reading.spans);
  b->scene->from = b->reading.from;
  b->scene->until = b->reading.until;
  b->scene->has_clock = b->reading.has_clock;
  b->scene->clock = b->reading.clock;
  return sort(b);
}

tb_rc to_scene_new(struct tb_mem *mem, const struct to_scene_source *source, struct tb_diag *diag,
                   struct to_scene **out) {
  struct builder b = { .scene = NULL };

  TB_TRY(tb_mem_alloc(mem, sizeof *b.scene, &b.scene));
  b.scene->mem = mem;
  to_texts_init(&b.scene->names, mem);
  tb_map_init(&b.goroutine, mem, tb_seed());
  tb_map_init(&b.thread, mem, tb_seed());
  tb_rc rc = build(&b, source, diag);
  to__reading_fini(&b.reading);
  tb_map_fini(&b.goroutine);
  tb_map_fini(&b.thread);
  if (rc == TB_OK)
    *out = b.scene;
  else
    to_scene_free(b.scene);
  return rc;
}

static void free_order(struct tb_mem *mem, struct to_scene_order *order) {
  if (order->first != NULL) tb_mem_free(mem, order->first, (order->of + 2) * sizeof *order->first);
  tb_mem_free(mem, order->span, order->n * sizeof *order->span);
}

void to_scene_free(struct to_scene *s) {
  if (s == NULL) return;
  struct tb_mem *mem = s->mem;

  to_texts_fini(&s->names);
  tb_mem_free(mem, s->span, s->spans_room * sizeof *s->span);
  tb_mem_free(mem, s->mark, s->marks_room * sizeof *s->mark);
  tb_mem_free(mem, s->goroutine, s->goroutines_room * sizeof *s->goroutine);
  tb_mem_free(mem, s->thread, s->threads_room * sizeof *s->thread);
  free_order(mem, &s->on_proc);
  free_order(mem, &s->on_thread);
  tb_mem_free(mem, s, sizeof *s);
}
