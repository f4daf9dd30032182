/* SPDX-License-Identifier: Apache-2.0 */
/* The heap: its size and goal over time, from events that every trace has; live objects and allocations, from events of
 * the AllocFree experiment.
 *
 * The last five minutes are stored in stretches as long as the windows' slots, the whole time in 64 stretches that double in
 * length as it grows. */
#include <string.h>

#include "online/analysis/analysis_state.h"
#include "online/measure/live_objects.h"

#define SECOND INT64_C(1000000000)

#define NO_OBJECTS                                                                                 \
  "This trace does not show objects. A Go program (1.23 or later) writes them with "               \
  "GODEBUG=traceallocfree=1, a C program with allocfree in its agent's configuration."

enum { SLOTS_MAX = 48, STRETCHES_MAX = 64 };

struct to_heap_stretch {
  to_ns begin, at; /* at: of the last value */
  uint64_t min, max, last, goal;
};

struct to_heap {
  struct to_live_objects objects;
  struct to_heap_stretch open;            /* the open slot's */
  struct to_heap_stretch slot[SLOTS_MAX]; /* of the last minutes, rising */
  struct to_heap_stretch stretch[STRETCHES_MAX];
  size_t slots, stretches;
  to_ns stretch_ns, windows_first, last_slot;
  bool is_open, known, goal_known;
  uint64_t now, goal, min, max; /* min, max: over the whole time */
  uint64_t mark_min, mark_max;  /* since the mark */
};

static struct to_heap *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_HEAP];
}

enum {
  HEAP,
  HEAP_MIN,
  HEAP_MAX,
  GOAL,
  ALLOCFREE,
  LIVE,
  LIVE_BYTES,
  ALLOCATIONS,
  ALLOCATED,
  ALLOC_RATE,
  UNTRACKED,
  FIGURES
};
static const struct to_field figure[FIGURES] = {
  [HEAP] = { "heap_bytes", TO_VALUE_BYTES,
             .about = "Size of the heap now, dead objects that are not swept included.",
             .metric = "trace_heap_bytes", .over_time = TO_OVER_LAST },
  [HEAP_MIN] = { "heap_min_bytes", TO_VALUE_BYTES, .about = "Minimum in the window.",
                 .over_time = TO_OVER_LEAST },
  [HEAP_MAX] = { "heap_max_bytes", TO_VALUE_BYTES, .about = "Maximum in the window.",
                 .over_time = TO_OVER_GREATEST },
  [GOAL] = { "goal_bytes", TO_VALUE_BYTES,
             .about = "Size at which the garbage collector wants to have finished its next cycle.",
             .metric = "trace_heap_goal_bytes", .over_time = TO_OVER_LAST },
  [ALLOCFREE] = { "has_objects", TO_VALUE_FLAG,
                  .about = "1: the trace shows each object, so the figures below are known." },
  [LIVE] = { "live_objects", TO_VALUE_COUNT, .about = "Objects that have not been freed.",
             .metric = "trace_heap_live_objects", .over_time = TO_OVER_LAST },
  [LIVE_BYTES] = { "live_bytes", TO_VALUE_BYTES, .about = "Their total size.",
                   .metric = "trace_heap_live_bytes", .over_time = TO_OVER_LAST },
  [ALLOCATIONS] = { "allocations", TO_VALUE_COUNT, .about = "Objects allocated in the window." },
  [ALLOCATED] = { "allocated_bytes", TO_VALUE_BYTES, .about = "Their total size." },
  [ALLOC_RATE] = { "alloc_rate_bytes", TO_VALUE_BYTES,
                   .about = "Bytes allocated per second of the window.",
                   .metric = "trace_heap_alloc_rate_bytes", .over_time = TO_OVER_MEAN },
  [UNTRACKED] = { "untracked", TO_VALUE_COUNT,
                  .about = "Objects since the start that exceeded the limit: they are in "
                           "no live figure.",
                  .over_time = TO_OVER_LAST },
};

enum { TIME, TIME_HEAP, TIME_MIN, TIME_MAX, TIME_GOAL, TIME_COLUMNS };
static const struct to_field time_column[TIME_COLUMNS] = {
  [TIME] = { "start_ns", TO_VALUE_TIME },
  [TIME_HEAP] = { "heap_bytes", TO_VALUE_BYTES, .about = "Size at its end." },
  [TIME_MIN] = { "heap_min_bytes", TO_VALUE_BYTES, .over_time = TO_OVER_LEAST },
  [TIME_MAX] = { "heap_max_bytes", TO_VALUE_BYTES, .over_time = TO_OVER_GREATEST },
  [TIME_GOAL] = { "goal_bytes", TO_VALUE_BYTES },
};
enum {
  KEY,
  KEY_LIVE,
  KEY_LIVE_BYTES,
  KEY_ALLOCATIONS,
  KEY_ALLOCATED,
  KEY_RATE,
  KEY_OLDEST,
  KEY_COLUMNS
};
#define COLUMNS(its_name, its_about)                                                               \
  {                                                                                                \
    [KEY] = { its_name, TO_VALUE_TEXT, .about = its_about },                                       \
    [KEY_LIVE] = { "live_objects", TO_VALUE_COUNT, .about = "Objects that have not been freed.",   \
                   .over_time = TO_OVER_LAST },                                                    \
    [KEY_LIVE_BYTES] = { "live_bytes", TO_VALUE_BYTES, .over_time = TO_OVER_LAST },                \
    [KEY_ALLOCATIONS] = { "allocations", TO_VALUE_COUNT, .about = "In the window." },              \
    [KEY_ALLOCATED] = { "allocated_bytes", TO_VALUE_BYTES },                                       \
    [KEY_RATE] = { "alloc_rate_bytes", TO_VALUE_BYTES,                                             \
                   .about = "Bytes allocated per second of the window.",                           \
                   .over_time = TO_OVER_MEAN },                                                    \
    [KEY_OLDEST] = { "oldest_ns", TO_VALUE_NS, .greatest = true, .over_time = TO_OVER_LAST,        \
                     .about = "Age of the oldest live object; at most the "                        \
                              "time since the trace began." },                                     \
  }
static const struct to_field type_column[KEY_COLUMNS] = COLUMNS("type", "Type of the objects.");
static const struct to_field entry_column[KEY_COLUMNS] =
    COLUMNS("entry", "The function that the allocating goroutine began with; empty: "
                     "unknown, or older than the trace.");

enum { OVER_TIME, BY_TYPE, BY_ENTRY, TABLES };
#define BY_KEY(its_name, its_about, its_columns)                                                   \
  {                                                                                                \
    .name = its_name, .about = its_about, .order_about = "most live bytes first", .keys = 1,       \
    .columns = KEY_COLUMNS, .column = its_columns, .order = {                                      \
      { KEY_LIVE_BYTES + 1 },                                                                      \
      { KEY_ALLOCATED + 1 }                                                                        \
    }                                                                                              \
  }
static const struct to_table_schema table[TABLES] = {
  [OVER_TIME] = { .name = "over_time",
                  .about = "Size of the heap over time",
                  .order_about = "earliest first",
                  .keys = 1,
                  .columns = TIME_COLUMNS,
                  .column = time_column,
                  .order = { { TIME + 1, .rising = true } },
                  .is_list = true },
  [BY_TYPE] = BY_KEY("by_type", "Objects by type", type_column),
  [BY_ENTRY] =
      BY_KEY("by_entry", "Objects by the allocating goroutine's entry function", entry_column),
};

static tb_rc heap_init(struct to_analyses *a) {
  state(a)->stretch_ns = to_window_slot(TO_WINDOW_10S);
  return to_live_objects_init(&state(a)->objects, &a->windows);
}

static void heap_fini(struct to_analyses *a) {
  to_live_objects_fini(&state(a)->objects);
}

/* ---- over time ---- */

static to_ns round_down(to_ns time, to_ns step) {
  to_ns rest = time % step;

  return time - (rest < 0 ? rest + step : rest);
}

static void join(struct to_heap_stretch *into, const struct to_heap_stretch *later) {
  if (later->min < into->min) into->min = later->min;
  if (later->max > into->max) into->max = later->max;
  into->at = later->at;
  into->last = later->last;
  into->goal = later->goal;
}

/* Joins later into the last of n stretches, or appends it. Returns the new n. */
static size_t append(struct to_heap_stretch *stretch, size_t n, to_ns step,
                     const struct to_heap_stretch *later) {
  to_ns begin = round_down(later->begin, step);

  if (n > 0 && stretch[n - 1].begin == begin) {
    join(&stretch[n - 1], later);
    return n;
  }
  stretch[n] = *later;
  stretch[n].begin = begin;
  return n + 1;
}

static void double_stretches(struct to_heap *s) {
  size_t n = 0;

  s->stretch_ns *= 2;
  for (size_t i = 0; i < s->stretches; i++)
    n = append(s->stretch, n, s->stretch_ns, &s->stretch[i]);
  s->stretches = n;
}

/* Returns how long the stretch of an old value is: values that are older than a window are joined. */
static to_ns step_of(to_ns begin, to_ns now) {
  for (unsigned w = TO_WINDOW_5MIN; w > TO_WINDOW_10S; w--) {
    to_ns step = to_window_slot((enum to_window)w);
    to_ns from = round_down(begin, step);
    if (from <= now - to_window_length((enum to_window)(w - 1)) - step) return step;
  }
  return to_window_slot(TO_WINDOW_10S);
}

static void keep_slot(struct to_heap *s) {
  size_t n = 0;

  for (size_t i = 0; i < s->slots; i++)
    n = append(s->slot, n, step_of(s->slot[i].begin, s->open.begin), &s->slot[i]);
  if (n == SLOTS_MAX) memmove(s->slot, s->slot + 1, --n * sizeof(*s->slot));
  s->slot[n] = s->open;
  s->slots = n + 1;
}

static void close_slot(struct to_heap *s) {
  if (!s->is_open) return;
  s->is_open = false;
  keep_slot(s);
  while (s->stretches == STRETCHES_MAX && s->stretch_ns < INT64_MAX / 4) double_stretches(s);
  if (s->stretches < STRETCHES_MAX)
    s->stretches = append(s->stretch, s->stretches, s->stretch_ns, &s->open);
}

/* If the clock moved backwards, the curve begins again. */
static tb_rc heap_slot(struct to_analyses *a) {
  struct to_heap *s = state(a);
  to_ns now = a->windows.open.begin;

  close_slot(s);
  if (s->windows_first != a->windows.windows_first || now < s->last_slot)
    s->slots = s->stretches = 0;
  s->windows_first = a->windows.windows_first;
  s->last_slot = now;
  return TB_OK;
}

static void take_size(struct to_heap *s, to_ns slot, to_ns time, uint64_t bytes) {
  if (!s->known) s->min = s->max = s->mark_min = s->mark_max = bytes;
  s->known = true;
  s->now = bytes;
  if (bytes < s->min) s->min = bytes;
  if (bytes > s->max) s->max = bytes;
  if (bytes < s->mark_min) s->mark_min = bytes;
  if (bytes > s->mark_max) s->mark_max = bytes;
  struct to_heap_stretch value = {
    .begin = slot, .at = time, .min = bytes, .max = bytes, .last = bytes, .goal = s->goal
  };
  if (s->is_open)
    join(&s->open, &value);
  else
    s->open = value;
  s->is_open = true;
}

static tb_rc heap_mark(struct to_analyses *a) {
  struct to_heap *s = state(a);

  s->mark_min = s->mark_max = s->now;
  return TB_OK;
}

static tb_rc heap_event(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct to_heap *s = state(a);

  switch (ev->type) {
  case TW_EV_SYNC: return to_live_objects_generation(&s->objects, gen);
  case TW_EV_HEAP_ALLOC: take_size(s, a->windows.open.begin, ev->time, ev->args[0]); return TB_OK;
  case TW_EV_HEAP_GOAL:
    s->goal = ev->args[0];
    s->goal_known = true;
    if (s->is_open) s->open.goal = s->goal;
    return TB_OK;
  default: return TB_OK;
  }
}

/* ---- objects ---- */

static tb_rc heap_experiment(struct to_analyses *a, const struct to_generation *gen,
                             const struct to_event *ev) {
  const struct to_life *g = to__spans_context(a->spans, ev);
  uint32_t entry = TO_ENTRY_UNKNOWN;

  if (g != NULL) entry = a->sums.goroutine[g - a->spans->lives].entry;
  return to_live_objects_event(&state(a)->objects, gen, ev, entry);
}

static void heap_epoch(struct to_analyses *a) {
  to_live_objects_forget(&state(a)->objects);
}

static void set_number(struct to_draft_value *value, uint64_t n) {
  to_draft_number(value, n < INT64_MAX ? (int64_t)n : INT64_MAX);
}

static tb_rc add_time(struct to_draft *d, const struct to_heap *s,
                      const struct to_heap_stretch *stretch) {
  struct to_draft_value *row;

  TB_TRY(to_draft_new_row(d, OVER_TIME, &row));
  to_draft_number(&row[TIME], stretch->begin);
  set_number(&row[TIME_HEAP], stretch->last);
  set_number(&row[TIME_MIN], stretch->min);
  set_number(&row[TIME_MAX], stretch->max);
  if (s->goal_known) set_number(&row[TIME_GOAL], stretch->goal);
  return TB_OK;
}

/* Fills out with the window's stretches and all with their sum. Returns how many there are. */
static size_t collect(const struct to_heap *s, enum to_window window, const struct to_view *view,
                      struct to_heap_stretch *out, struct to_heap_stretch *all) {
  size_t n = 0;

  for (size_t i = 0; i < s->slots + s->is_open; i++) {
    const struct to_heap_stretch *slot = i == s->slots ? &s->open : &s->slot[i];
    if (slot->at < view->from) continue;
    if (n == 0)
      *all = *slot;
    else
      join(all, slot);
    n = append(out, n, to_window_slot(window == TO_WINDOW_STRETCH ? TO_WINDOW_5MIN : window), slot);
  }
  return n;
}

static size_t collect_all(const struct to_heap *s, struct to_heap_stretch *out) {
  memcpy(out, s->stretch, s->stretches * sizeof(*out));
  return s->is_open ? append(out, s->stretches, s->stretch_ns, &s->open) : s->stretches;
}

static tb_rc report_size(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  struct to_heap_stretch all = { 0 }, *stretch;
  const struct to_heap *s = state(a);
  size_t n;

  TB_TRY(tb_arena_alloc(d->arena, (STRETCHES_MAX + 1) * sizeof(*stretch), &stretch));
  if (a->report.window == TO_WINDOW_ALL) {
    n = collect_all(s, stretch);
    all = (struct to_heap_stretch){ .min = s->min, .max = s->max };
  } else {
    n = collect(s, a->report.window, view, stretch, &all);
  }
  if (a->report.window == TO_WINDOW_STRETCH)
    all = (struct to_heap_stretch){ .min = s->mark_min, .max = s->mark_max };
  for (size_t i = 0; i < n; i++) TB_TRY(add_time(d, s, &stretch[i]));
  if (s->known) set_number(to_draft_figure(d, HEAP), s->now);
  if (s->goal_known) set_number(to_draft_figure(d, GOAL), s->goal);
  if (!s->known || (n == 0 && a->report.window < TO_WINDOW_ALL)) return TB_OK;
  set_number(to_draft_figure(d, HEAP_MIN), all.min);
  set_number(to_draft_figure(d, HEAP_MAX), all.max);
  return TB_OK;
}

static void add_number(struct to_draft_value *value, uint64_t n) {
  set_number(value, (value->value.none ? 0 : (uint64_t)value->value.number) + n);
}

static uint64_t per_second(const struct to_view *view, uint64_t bytes) {
  double seconds = (double)((uint64_t)view->until - (uint64_t)view->from) / (double)SECOND;

  return seconds > 0 ? (uint64_t)((double)bytes / seconds) : 0;
}

static void add_oldest(const struct to_analyses *a, const struct to_allocator *allocator,
                       struct to_draft_value *oldest) {
  if (allocator->live == 0) return;
  int64_t age = to_spans_now(a->spans) - to_live_objects_oldest(&state(a)->objects, allocator);
  if (oldest->value.none || age > oldest->value.number) to_draft_number(oldest, age);
}

static void add_allocator(const struct to_analyses *a, const struct to_view *view,
                          struct to_draft_value *row, const struct to_allocator *allocator) {
  struct to_sum sum = to_view_sum(view, allocator->series);

  add_number(&row[KEY_LIVE], allocator->live);
  add_number(&row[KEY_LIVE_BYTES], allocator->live_bytes);
  add_number(&row[KEY_ALLOCATIONS], sum.count);
  add_number(&row[KEY_ALLOCATED], sum.total_ns);
  set_number(&row[KEY_RATE], per_second(view, (uint64_t)row[KEY_ALLOCATED].value.number));
  add_oldest(a, allocator, &row[KEY_OLDEST]);
}

static tb_rc report_allocator(struct to_analyses *a, struct to_draft *d,
                              const struct to_allocator *allocator, bool is_other) {
  struct to_sum sum = to_view_sum(d->view, allocator->series);
  struct to_draft_value *row;

  if (sum.count == 0 && allocator->live == 0) return TB_OK;
  if (is_other)
    TB_TRY(to_draft_other(d, BY_TYPE, &row));
  else
    TB_TRY(to_draft_row(d, BY_TYPE, (uintptr_t)allocator->type.data, &row));
  if (!is_other) to_draft_text(&row[KEY], allocator->type);
  add_allocator(a, d->view, row, allocator);
  is_other |= allocator->entry == TO_ENTRY_OTHER;
  if (is_other)
    TB_TRY(to_draft_other(d, BY_ENTRY, &row));
  else
    TB_TRY(to_draft_row(d, BY_ENTRY, allocator->entry, &row));
  if (!is_other) to_draft_text(&row[KEY], to_span_sums_entry(&a->sums, allocator->entry));
  add_allocator(a, d->view, row, allocator);
  add_number(to_draft_figure(d, ALLOCATIONS), sum.count);
  add_number(to_draft_figure(d, ALLOCATED), sum.total_ns);
  return TB_OK;
}

static tb_rc report_objects(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  const struct to_live_objects *o = &state(a)->objects;

  add_number(to_draft_figure(d, ALLOCATIONS), 0);
  add_number(to_draft_figure(d, ALLOCATED), 0);
  for (size_t i = 0; i < o->allocators; i++)
    TB_TRY(report_allocator(a, d, &o->allocator[i], i == TO_ALLOCATOR_OTHER));
  set_number(to_draft_figure(d, LIVE), o->live);
  set_number(to_draft_figure(d, LIVE_BYTES), o->live_bytes);
  set_number(to_draft_figure(d, UNTRACKED), o->untracked);
  set_number(to_draft_figure(d, ALLOC_RATE),
             per_second(view, (uint64_t)to_draft_figure(d, ALLOCATED)->value.number));
  return TB_OK;
}

static tb_rc heap_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  TB_TRY(report_size(a, view, d));
  to_draft_number(to_draft_figure(d, ALLOCFREE), state(a)->objects.seen);
  return state(a)->objects.seen ? report_objects(a, view, d) : to_draft_note(d, NO_OBJECTS);
}

const struct to_analysis_ops to__analysis_heap = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_heap),
  .events = TO_ANALYSIS_EVENT(HEAP_ALLOC) | TO_ANALYSIS_EVENT(HEAP_GOAL) | TO_ANALYSIS_EVENT(SYNC),
  .init = heap_init,
  .fini = heap_fini,
  .event = heap_event,
  .experiment = heap_experiment,
  .slot = heap_slot,
  .mark = heap_mark,
  .epoch = heap_epoch,
  .report = heap_report,
};
