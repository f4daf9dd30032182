/* SPDX-License-Identifier: Apache-2.0 */
/* Handles rare events: ranges, tasks, regions, labels. Open ones are found in maps. */
#include <stddef.h>
#include <string.h>

#include "online/spans/state.h"

/* --- names that outlive their generation -------------------------------------------------------- */

static tb_rc hold_name(struct to_spans *s, const struct to_generation *gen, uint64_t id,
                       struct to_name **out) {
  struct to_string text;

  *out = NULL;
  if (s->times_only || gen == NULL || !to_generation_string(gen, id, &text) || text.len == 0)
    return TB_OK;
  return to__name_hold(&s->names, text, out);
}

/* Lends a name to a span; it is released after the sink got the slice. */
static struct to_string lend(struct to_spans *s, struct to_name *name) {
  if (name != NULL) s->slice->done[s->n_done++] = name;
  return to__name_text(name);
}

/* Releases a name that a span of this slice may lend. */
static tb_rc release_later(struct to_spans *s, const struct to_generation *gen,
                           struct to_name *name) {
  if (s->n_done >= TO_SPANS_SLICE) TB_TRY(to__spans_flush(s, gen));
  lend(s, name);
  return TB_OK;
}

static void release_name(struct to_spans *s, struct to_name *name) {
  if (name != NULL) to__name_release(&s->names, name);
}

static uint64_t context_life(struct to_spans *s, const struct to_event *ev) {
  const struct to_life *g = to__spans_context(s, ev);

  return g == NULL ? 0 : g->life;
}

/* --- memory of open ranges, tasks and regions --------------------------------------------------- */

/* Ranges, tasks and regions begin and end all the time: free blocks are reused. */
struct to_spare {
  struct to_spare *next;
};
union block {
  struct to_open_link link; /* the first member of each */
  struct to_open_range range;
  struct to_open_region region;
  struct to_open_task task;
};
#define BEGINS_AS_LINK(type)                                                                       \
  _Static_assert(offsetof(struct type, below) == offsetof(struct to_open_link, below) &&           \
                     offsetof(struct type, name) == offsetof(struct to_open_link, name) &&         \
                     offsetof(struct type, stack) == offsetof(struct to_open_link, stack),         \
                 #type " begins as struct to_open_link")
BEGINS_AS_LINK(to_open_range);
BEGINS_AS_LINK(to_open_region);
BEGINS_AS_LINK(to_open_task);
enum { BLOCK = sizeof(union block) };

static tb_rc acquire_block(struct to_spans *s, void *out) {
  struct to_spare *spare = s->spare;

  if (spare == NULL) return tb_mem_alloc(s->mem, BLOCK, out);
  s->spare = spare->next;
  memcpy(out, &spare, sizeof spare);
  return TB_OK;
}

static void release_block(struct to_spans *s, void *block) {
  struct to_spare *spare = block;

  if (spare == NULL) return;
  spare->next = s->spare;
  s->spare = spare;
}

static void free_spare(struct to_spans *s) {
  for (struct to_spare *spare; (spare = s->spare) != NULL;) {
    s->spare = spare->next;
    tb_mem_free(s->mem, spare, BLOCK);
  }
}

/* --- ranges ------------------------------------------------------------------------------------ */

static bool is_of_goroutine(unsigned kind) {
  static const bool is[TO_RANGES] = {
#define TO_RANGE(ID, begin, name, id, scope, ...)                                                  \
  [TO_RANGE_##ID] = TO_RESOURCE_##scope == TO_RESOURCE_GOROUTINE,
#include "online/event/ranges.def"
#undef TO_RANGE
  };

  return is[kind];
}

/* Returns the goroutine of the event's context if the range is its own, or is a sweep of its P; otherwise NULL, also if it is
 * unknown. */
static struct to_life *goroutine_of(struct to_spans *s, const struct to_event *ev,
                                    const struct to_event_range *range) {
  bool its_own =
      range->kind == TO_RANGE_GC_SWEEP || (is_of_goroutine(range->kind) && range->id == ev->g);

  return its_own ? to__spans_context(s, ev) : NULL;
}

static tb_rc begin_range(struct to_spans *s, const struct to_generation *gen,
                         const struct to_event *ev, const struct to_event_range *range) {
  bool active = range->phase == TO_KIND_RANGE_ACTIVE;
  struct to_open_range *open;
  uint64_t *top;

  TB_TRY(tb_map_put(&s->ranges[range->kind], (uint64_t)range->id, &top, NULL));
  if (active && *top != 0) return TB_OK;
  tb_rc rc = acquire_block(s, &open);
  if (rc != TB_OK) {
    if (*top == 0) tb_map_remove(&s->ranges[range->kind], (uint64_t)range->id);
    return rc;
  }
  struct to_open_range *below = (struct to_open_range *)(uintptr_t)*top;
  *open = (struct to_open_range){ .below = below,
                                  .id = range->id,
                                  .text = range->text,
                                  .stack = to__stack_of(s, ev),
                                  .since = active ? s->began : ev->time,
                                  .known = !active };
  if (below != NULL) below->above = open;
  *top = (uintptr_t)open;
  if (range->kind == TO_RANGE_STW) TB_TRY(to__open_stop_begins(s, open, ev->time));
  struct to_life *g = goroutine_of(s, ev, range);
  if (g != NULL) {
    open->life = g->life;
    open->slot = (uint32_t)(g - s->lives);
    if (is_of_goroutine(range->kind)) g->more |= TO_MORE_RANGES;
  }
  return hold_name(s, gen, range->text, &open->name);
}

/* Removes a range from its list; NULL: none with this text. (A goroutine may stop the world for two reasons.) */
static struct to_open_range *take_open(struct to_spans *s, unsigned kind, int64_t id,
                                       uint64_t text) {
  struct tb_map *ranges = &s->ranges[kind];
  uint64_t *top = tb_map_find(ranges, (uint64_t)id);

  if (top == NULL) return NULL;
  struct to_open_range *first = (struct to_open_range *)(uintptr_t)*top;
  struct to_open_range *open = kind == TO_RANGE_STW ? to__open_stop_take(s, id, text) : NULL;
  if (open == NULL) open = first;
  while (open != NULL && open->text != text) open = open->below;
  if (open == NULL) return NULL;
  struct to_open_range *below = open->below;
  if (below != NULL) below->above = open->above;
  if (open->above != NULL) open->above->below = open->below;
  if (open == first) first = below;
  *top = (uintptr_t)first;
  /* The entry of a P stays, because the P's next range begins soon. The entry of a known goroutine stays until the goroutine
   * ends. */
  if (first == NULL && is_of_goroutine(kind) && open->life == 0)
    tb_map_remove(ranges, (uint64_t)id);
  return open;
}

/* Like Go's summaries, attributes a P's range to the goroutine that was on the P at its begin and at its end. */
static void sum_range(struct to_spans *s, const struct to_span *span,
                      const struct to_open_range *open) {
  bool met = open->life == 0 && is_of_goroutine(span->state) && span->id == span->by;
  struct to_span range = *span;

  if (s->sums == NULL || span->by_life == 0 || (open->life != span->by_life && !met)) return;
  range.life = span->by_life;
  range.stack = range.end_stack = range.by_stack = 0;
  tb_rc rc = to_span_sums_range(s->sums, &range);
  if (rc != TB_OK) s->failed = rc;
}

static struct to_span *put_range(struct to_spans *s, const struct to_event *ev, unsigned kind,
                                 int64_t id, struct to_open_range *open) {
  struct to_span *span = to__spans_put(s, ev, TO_SPAN_RANGE);

  if (kind == TO_RANGE_STW) to__spans_stop(s, false, ev->time);
  span->from = open->since;
  span->id = id;
  span->state = (uint8_t)kind;
  span->from_known = open->known;
  sum_range(s, span, open);
  if (is_of_goroutine(kind))
    span->life = open->life != 0 || id != ev->g ? open->life : span->by_life;
  span->stack = open->stack;
  if (open->name != NULL) to__spans_more(s, span)->name = lend(s, open->name);
  release_block(s, open);
  return span;
}

static tb_rc take_range(struct to_spans *s, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct to_event_range range;

  if (ev->type == TW_EV_GC_MARK_ASSIST_BEGIN || ev->type == TW_EV_GC_MARK_ASSIST_END)
    to__region_assists(s, ev);
  if (!to__wants(s, TO_WANT(RANGE)) || !to_event_range(ev, &range)) return TB_OK;
  if (range.phase != TO_KIND_RANGE_END) return begin_range(s, gen, ev, &range);
  struct to_open_range *open = take_open(s, range.kind, range.id, range.text);
  if (open != NULL) put_range(s, ev, range.kind, range.id, open);
  return TB_OK;
}

/* --- tasks ------------------------------------------------------------------------------------- */

/* Finds or makes an open task. A new one has no name; its other fields are not set. */
static tb_rc claim_task(struct to_spans *s, uint64_t id, struct to_open_task **out) {
  uint64_t *place;
  bool fresh;

  TB_TRY(tb_map_put(&s->tasks, id, &place, &fresh));
  if (!fresh) {
    *out = (struct to_open_task *)(uintptr_t)*place;
    return TB_OK;
  }
  tb_rc rc = acquire_block(s, out);
  if (rc != TB_OK) {
    tb_map_remove(&s->tasks, id);
    return rc;
  }
  (*out)->name = NULL;
  *place = (uintptr_t)*out;
  return TB_OK;
}

static tb_rc begin_task(struct to_spans *s, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct to_open_task *open;
  struct to_user_event user;

  to_event_user(ev, &user);
  TB_TRY(claim_task(s, user.task, &open));
  release_name(s, open->name);
  *open = (struct to_open_task){
    .since = ev->time, .parent = user.parent, .life = context_life(s, ev), .goroutine = ev->g
  };
  open->stack = to__stack_of(s, ev);
  return hold_name(s, gen, user.name, &open->name);
}

/* A task whose begin was not seen is taken to have begun with the epoch. */
static tb_rc end_task(struct to_spans *s, const struct to_generation *gen,
                      const struct to_event *ev) {
  struct to_user_event user;

  to_event_user(ev, &user);
  struct to_open_task *open = tb_map_at(&s->tasks, user.task);
  struct to_span *span = to__spans_put(s, ev, TO_SPAN_TASK);
  struct to_span_more *more = to__spans_more(s, span);
  const struct to_life *g = to__spans_context(s, ev);
  span->end_stack = span->by_stack = to__stack_of(s, ev);
  if (g != NULL && open != NULL && g->life == open->life && g->since > open->since)
    span->by_stack = g->stack;
  span->from = open == NULL ? s->began : open->since;
  span->from_known = open != NULL;
  span->life = open == NULL ? 0 : open->life;
  span->stack = open == NULL ? 0 : open->stack;
  more->value = user.task;
  more->parent = user.parent;
  more->goroutine = open == NULL ? TO_NONE : open->goroutine;
  if (!s->times_only && gen != NULL) more->name = to_generation_extra_string(gen, user.name);
  if (open != NULL && open->name != NULL) more->name = lend(s, open->name);
  if (open == NULL) return TB_OK;
  tb_map_remove(&s->tasks, user.task);
  release_block(s, open);
  return TB_OK;
}

/* --- regions and labels ------------------------------------------------------------------------ */

static uint64_t slot_of(const struct to_spans *s, const struct to_life *g) {
  return (uint64_t)(g - s->lives);
}

static tb_rc begin_region(struct to_spans *s, const struct to_generation *gen,
                          const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);
  struct to_open_region *open;
  struct to_user_event user;
  uint64_t *top;

  if (g == NULL) return TB_OK;
  to_event_user(ev, &user);
  to__region_counts(s, g, g->state, ev->time);
  TB_TRY(tb_map_put(&s->regions, slot_of(s, g), &top, NULL));
  tb_rc rc = acquire_block(s, &open);
  if (rc != TB_OK) {
    if (*top == 0) tb_map_remove(&s->regions, slot_of(s, g));
    return rc;
  }
  *open = (struct to_open_region){ .below = (void *)(uintptr_t)*top,
                                   .task = user.task,
                                   .since = ev->time,
                                   .counted_until = ev->time };
  open->time.in_its_task = to__region_in_its_task(open);
  *top = (uintptr_t)open;
  g->more |= TO_MORE_REGIONS;
  open->stack = to__stack_of(s, ev);
  return hold_name(s, gen, user.name, &open->name);
}

/* Removes a goroutine's innermost region; the caller releases the block. NULL: none is open. */
static struct to_open_region *take_region(struct to_spans *s, struct to_life *g, to_ns now) {
  uint64_t *top = tb_map_find(&s->regions, slot_of(s, g));

  if (top == NULL) return NULL;
  to__region_counts(s, g, g->state, now);
  struct to_open_region *open = (struct to_open_region *)(uintptr_t)*top;
  to__region_joins(open, now);
  *top = (uintptr_t)open->below;
  if (*top == 0) {
    tb_map_remove(&s->regions, slot_of(s, g));
    g->more &= (uint8_t)~TO_MORE_REGIONS;
  }
  return open;
}

/* Lends the name of an open task. */
static struct to_string lend_task_name(struct to_spans *s, uint64_t id) {
  struct to_open_task *task = tb_map_at(&s->tasks, id);

  if (task == NULL || task->name == NULL || task->name->holders == UINT32_MAX)
    return (struct to_string){ 0 };
  task->name->holders++;
  return lend(s, task->name);
}

static struct to_span *put_region(struct to_spans *s, const struct to_event *ev,
                                  const struct to_life *g, const struct to_open_region *open) {
  struct to_span *span = to__spans_put(s, ev, TO_SPAN_REGION);

  span->from = open == NULL ? s->began : open->since;
  span->from_known = open != NULL;
  span->id = g->id;
  span->life = g->life;
  span->slot = (uint32_t)slot_of(s, g);
  struct to_span_more *more = to__spans_more(s, span);
  if (open == NULL) return span;
  span->stack = open->stack;
  more->value = open->task;
  more->name = lend(s, open->name);
  more->text = lend_task_name(s, open->task);
  s->slice->region_time[span - s->slice->out] = open->time;
  more->region = &s->slice->region_time[span - s->slice->out];
  return span;
}

static tb_rc cut_regions(struct to_spans *s, const struct to_generation *gen,
                         const struct to_event *ev, struct to_life *g) {
  for (struct to_open_region *open; (open = take_region(s, g, ev->time)) != NULL;) {
    tb_rc rc = s->n > TO_SPANS_SLICE - TO_SPANS_EVENT_MAX ? to__spans_flush(s, gen) : TB_OK;
    if (rc == TB_OK && to__wants(s, TO_WANT(REGION)))
      put_region(s, ev, g, open)->until_known = false;
    else
      release_name(s, open->name);
    release_block(s, open);
    TB_TRY(rc);
  }
  return TB_OK;
}

static tb_rc end_region(struct to_spans *s, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);
  struct to_user_event user;

  if (g == NULL) return TB_OK;
  to_event_user(ev, &user);
  if (TB_UNLIKELY(user.nesting == TO_NESTING_LOST)) return TB_OK;
  if (TB_UNLIKELY(user.nesting == TO_MISNESTED)) {
    TB_TRY(to__misnested(s, gen, ev, tb_map_at(&s->regions, slot_of(s, g))));
    return cut_regions(s, gen, ev, g);
  }
  struct to_open_region *open = take_region(s, g, ev->time);
  struct to_span *span = put_region(s, ev, g, open);
  struct to_span_more *more = &s->slice->more[span - s->slice->out];
  span->end_stack = span->by_stack = to__stack_of(s, ev);
  if (more->name.len == 0) more->name = to__string_of(s, gen, user.name);
  if (open == NULL) more->value = user.task;
  release_block(s, open);
  return TB_OK;
}

static tb_rc set_label(struct to_spans *s, const struct to_generation *gen,
                       const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);
  struct to_label *label;
  struct to_name *name;
  bool fresh;

  if (g == NULL || s->times_only) return TB_OK;
  TB_TRY(hold_name(s, gen, ev->args[0], &name));
  tb_rc rc = tb_map_claim(&s->labels, slot_of(s, g), sizeof *label, &label, &fresh);
  if (rc != TB_OK) {
    release_name(s, name);
    return rc;
  }
  struct to_name *old = label->name;
  *label = (struct to_label){ .name = name, .on = true };
  g->more |= TO_MORE_LABEL;
  return release_later(s, gen, old);
}

struct to_string to__spans_label(const struct to_spans *s, const struct to_life *g) {
  const struct to_label *label =
      (g->more & TO_MORE_LABEL) == 0 ? NULL : tb_map_at(&s->labels, slot_of(s, g));

  return label == NULL || !label->on ? (struct to_string){ 0 } : to__name_text(label->name);
}

void to__spans_label_off(struct to_spans *s, const struct to_life *g) {
  struct to_label *label =
      (g->more & TO_MORE_LABEL) == 0 ? NULL : tb_map_at(&s->labels, slot_of(s, g));

  if (label != NULL) label->on = false;
}

/* Cuts a goroutine's open ranges, which the trace does not end. */
static tb_rc end_ranges(struct to_spans *s, const struct to_generation *gen,
                        const struct to_event *ev, const struct to_life *g) {
  static const enum to_range_kind kinds[] = { TO_RANGE_STW, TO_RANGE_GC_MARK_ASSIST };

  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    struct tb_map *ranges = &s->ranges[kinds[i]];
    for (struct to_open_range *open; (open = tb_map_at(ranges, (uint64_t)g->id)) != NULL;) {
      if (s->n > TO_SPANS_SLICE - TO_SPANS_EVENT_MAX) TB_TRY(to__spans_flush(s, gen));
      open = take_open(s, kinds[i], g->id, open->text);
      put_range(s, ev, kinds[i], g->id, open)->until_known = false;
    }
    tb_map_remove(ranges, (uint64_t)g->id);
  }
  return TB_OK;
}

tb_rc to__spans_end_more(struct to_spans *s, const struct to_generation *gen,
                         const struct to_event *ev, struct to_life *g,
                         struct to_string *out_label) {
  struct to_label *label;

  TB_TRY(cut_regions(s, gen, ev, g));
  if ((g->more & TO_MORE_RANGES) != 0) TB_TRY(end_ranges(s, gen, ev, g));
  g->more = 0;
  label = tb_map_at(&s->labels, slot_of(s, g));
  if (label == NULL) return TB_OK;
  struct to_name *name = label->name;
  tb_map_remove(&s->labels, slot_of(s, g));
  tb_mem_free(s->mem, label, sizeof *label);
  *out_label = to__name_text(name);
  return release_later(s, gen, name);
}

/* Kinds of spans for which an event is needed. Events that no wanted kind needs are skipped. */
enum {
  FOR_TASK_BEGIN = TO_WANT(TASK),
  FOR_TASK_END = TO_WANT(TASK),
  FOR_REGION_BEGIN = TO_WANT(REGION),
  FOR_REGION_END = TO_WANT(REGION),
  FOR_LOG = TO_WANT(LOG),
  FOR_LABEL = TO_WANT(LIFE) | TO_WANT_GO(RUNNING) | TO_WANT_GO(SYSCALL) | TO_WANT(SAMPLE),
  FOR_STACK_SAMPLE = TO_WANT(SAMPLE),
  FOR_SYNC = 0,
};
static const uint32_t wanted_for[UINT8_MAX + 1] = {
#define GO(...)
#define PROC(...)
#define RANGE(event, ...)       [TW_EV_##event] = TO_WANT(RANGE) | TO_WANT(REGION), /* mark assists */
#define USER(event, which, ...) [TW_EV_##event] = FOR_##which,
#define METRIC(event, ...)      [TW_EV_##event] = TO_WANT(METRIC) | TO_WANT_WASTE,
#define OTHER(event, which)     [TW_EV_##event] = FOR_##which,
#include "online/event/meanings.def"
#undef GO
#undef PROC
#undef RANGE
#undef USER
#undef METRIC
#undef OTHER
};

static __attribute__((noinline)) tb_rc
take_wanted(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev) {
  switch (to_event_kind(ev)) {
  case TO_KIND_RANGE_BEGIN:
  case TO_KIND_RANGE_ACTIVE:
  case TO_KIND_RANGE_END: return take_range(s, gen, ev);
  case TO_KIND_TASK_BEGIN: return begin_task(s, gen, ev);
  case TO_KIND_TASK_END: return end_task(s, gen, ev);
  case TO_KIND_REGION_BEGIN: return begin_region(s, gen, ev);
  case TO_KIND_REGION_END: return end_region(s, gen, ev);
  case TO_KIND_LABEL: return set_label(s, gen, ev);
  case TO_KIND_LOG:
  case TO_KIND_STACK_SAMPLE:
  case TO_KIND_METRIC: to__spans_moment(s, gen, ev); return TB_OK;
  default: return TB_OK;
  }
}

tb_rc to__spans_rare(struct to_spans *s, const struct to_generation *gen,
                     const struct to_event *ev) {
  return to__wants(s, wanted_for[ev->type]) ? take_wanted(s, gen, ev) : TB_OK;
}

/* --- stacks of open ranges, tasks and regions --------------------------------------------------- */

static tb_rc keep_open_stacks(struct to_spans *s, const struct to_generation *gen,
                              const struct tb_map *map) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(map, &i, &key, &value);)
    for (union block *open = (union block *)(uintptr_t)value; open != NULL; open = open->link.below)
      TB_TRY(to__spans_keep(s, gen, &open->link.stack));
  return TB_OK;
}

tb_rc to__spans_rare_stacks(struct to_spans *s, const struct to_generation *gen) {
  for (unsigned kind = 0; kind < TO_RANGES; kind++)
    TB_TRY(keep_open_stacks(s, gen, &s->ranges[kind]));
  TB_TRY(keep_open_stacks(s, gen, &s->tasks));
  return keep_open_stacks(s, gen, &s->regions);
}

void to__spans_rare_init(struct to_spans *s) {
  for (unsigned kind = 0; kind < TO_RANGES; kind++)
    tb_map_init(&s->ranges[kind], s->mem, tb_seed());
  tb_map_init(&s->open_stops, s->mem, tb_seed());
  tb_map_init(&s->tasks, s->mem, tb_seed());
  tb_map_init(&s->regions, s->mem, tb_seed());
  tb_map_init(&s->labels, s->mem, tb_seed());
  to__names_init(&s->names, s->mem);
}

/* Releases all open ranges, regions or tasks of the map, with those below each. */
static void drop_open(struct to_spans *s, struct tb_map *map) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(map, &i, &key, &value);)
    for (union block *open = (union block *)(uintptr_t)value, *below; open != NULL; open = below) {
      below = open->link.below;
      release_name(s, open->link.name);
      release_block(s, open);
    }
  tb_map_clear(map);
}

static void drop_labels(struct to_spans *s) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(&s->labels, &i, &key, &value);) {
    struct to_label *label = (struct to_label *)(uintptr_t)value;
    release_name(s, label->name);
    tb_mem_free(s->mem, label, sizeof *label);
  }
  tb_map_clear(&s->labels);
}

void to__spans_rare_clear(struct to_spans *s) {
  for (unsigned kind = 0; kind < TO_RANGES; kind++) drop_open(s, &s->ranges[kind]);
  tb_map_clear(&s->open_stops);
  drop_open(s, &s->tasks);
  drop_open(s, &s->regions);
  free_spare(s);
  drop_labels(s);
}

void to__spans_rare_fini(struct to_spans *s) {
  to__spans_rare_clear(s);
  for (unsigned kind = 0; kind < TO_RANGES; kind++) tb_map_fini(&s->ranges[kind]);
  tb_map_fini(&s->open_stops);
  tb_map_fini(&s->tasks);
  tb_map_fini(&s->regions);
  tb_map_fini(&s->labels);
  if (s->misnesting != NULL) tb_mem_free(s->mem, s->misnesting, sizeof *s->misnesting);
  to__names_fini(&s->names);
}
