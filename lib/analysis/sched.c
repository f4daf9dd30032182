/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for a P, and how long: the time a goroutine is runnable before it runs.
 *
 * A wait is counted once, in the series of its combination: the goroutine's own stack, the stack of what made it
 * runnable, and why. The tables are sums over combinations, made when a report is asked for. The function that a
 * goroutine began with is the outermost one of its stack.
 *
 * A combination is a part of its entry function with that cause, which is a part of the cause: where lengths are too
 * many for the pool, the tables of few rows lose their quantiles last.
 *
 * Combinations beyond stacks_max share one for each cause. A span costs a look into a small cache of this generation's
 * stack ids, a bucket and a sum: about 8 ns. */
#include <string.h>

#include "analysis/analysis_state.h"
#include "analysis/top_rows.h"
#include "base/grow.h"

enum { RECENT = 256, LONGEST = 16, CANDIDATES_MAX = (TO_SLOTS_MAX + 2) * LONGEST };

struct combination {
  uint32_t stack, waker, series;
  uint32_t entry; /* its place + 1; 0: none */
  uint8_t cause;
};
struct entry { /* a function with a cause: only parts of it are counted */
  uint32_t stack, series;
};
struct recent {
  uint64_t stack, waker; /* ids of the generation, or kept */
  uint32_t generation;   /* 0: a free place */
  uint32_t combination;
  uint8_t cause;
};
struct wait {
  to_ns from, until;
  int64_t goroutine, waker;
  uint32_t combination;
  uint32_t longer; /* waits that came later */
  bool past;       /* the clock has fallen since: it is in no window but all */
};

struct to_sched {
  uint32_t all, cut, wasted; /* series */
  uint32_t by_cause[TO_CAUSES];
  struct tb_map by_key, entry_of;
  struct entry *entry;
  size_t entries, entries_room;
  struct combination *combination; /* the first ones are those of the rest, by cause */
  size_t n, room;
  struct recent recent[RECENT];
  uint64_t wasted_ns; /* counted so far */
  /* The longest waits of the open slot, and those of older slots that may be among the longest of some window. */
  struct wait longest[LONGEST], *candidate;
  size_t n_longest, n_candidates, candidates_room;
  to_ns slot, shortest; /* of the longest, once there are enough */
  to_ns first;          /* of the windows, when the slot began */
};

static struct to_sched *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_SCHED];
}

/* ---- what it says ---- */

enum { LATENCY, WAITING, WASTED, CUT, FIGURES };
static const struct to_field figure[FIGURES] = {
  [LATENCY] = { "latency", TO_VALUE_DISTRIBUTION,
                .about =
                    "How long goroutines that could run waited for a P, the right to run Go code.",
                .metric = "trace_sched_latency_seconds" },
  [WAITING] = { "waiting", TO_VALUE_COUNT, .about = "Goroutines that wait for a P now." },
  [WASTED] = { "wasted_share", TO_VALUE_SHARE,
               .about = "Share of the window in which a goroutine waited while a P was idle." },
  [CUT] = { "cut", TO_VALUE_COUNT,
            .about = "Waits that a hole in the stream cut off: they are in no latency." },
};

enum { NOW_GOROUTINE, NOW_AGE, NOW_CAUSE, NOW_LOWER_BOUND, NOW_STACK, NOW_WAKER, NOW_COLUMNS };
static const struct to_field now_column[NOW_COLUMNS] = {
  [NOW_GOROUTINE] = { "goroutine", TO_VALUE_ID },
  [NOW_AGE] = { "age_ns", TO_VALUE_NS },
  [NOW_CAUSE] = { "cause", TO_VALUE_TEXT, .about = "Why it became runnable." },
  [NOW_LOWER_BOUND] = { "lower_bound", TO_VALUE_FLAG,
                        .about = "It waits for longer: since before the first sync." },
  [NOW_STACK] = { "stack", TO_VALUE_STACK },
  [NOW_WAKER] = { "waker", TO_VALUE_ID, .about = "The goroutine that made it runnable." },
};
enum {
  LONG_GOROUTINE,
  LONG_BEGIN,
  LONG_LATENCY,
  LONG_CAUSE,
  LONG_WAKER,
  LONG_STACK,
  LONG_WAKER_STACK,
  LONG_COLUMNS
};
static const struct to_field long_column[LONG_COLUMNS] = {
  [LONG_GOROUTINE] = { "goroutine", TO_VALUE_ID },
  [LONG_BEGIN] = { "start_ns", TO_VALUE_TIME },
  [LONG_LATENCY] = { "latency_ns", TO_VALUE_NS },
  [LONG_CAUSE] = { "cause", TO_VALUE_TEXT, .about = "Why it became runnable." },
  [LONG_WAKER] = { "waker", TO_VALUE_ID, .about = "The goroutine that made it runnable." },
  [LONG_STACK] = { "stack", TO_VALUE_STACK },
  [LONG_WAKER_STACK] = { "waker_stack", TO_VALUE_STACK },
};
enum { KEY, KEY_LATENCY, KEY_COLUMNS };
static const struct to_field entry_column[KEY_COLUMNS] = {
  [KEY] = { "entry", TO_VALUE_TEXT, .about = "The function that the goroutine began with." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};
static const struct to_field cause_column[KEY_COLUMNS] = {
  [KEY] = { "cause", TO_VALUE_TEXT, .about = "Why the goroutine became runnable." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};
static const struct to_field stack_column[KEY_COLUMNS] = {
  [KEY] = { "stack", TO_VALUE_STACK, .about = "Where the goroutine goes on." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};
static const struct to_field waker_column[KEY_COLUMNS] = {
  [KEY] = { "waker_stack", TO_VALUE_STACK,
            .about = "Where it was made runnable; empty: by the runtime (network, timers)." },
  [KEY_LATENCY] = { "latency", TO_VALUE_DISTRIBUTION },
};

enum { WAITING_NOW, LONGEST_WAITS, BY_ENTRY, BY_CAUSE, BY_STACK, BY_WAKER, TABLES };
#define BY_KEY(its_name, its_about, its_columns)                                                   \
  {                                                                                                \
    .name = its_name, .about = its_about, .order_about = "most time first", .keys = 1,             \
    .columns = KEY_COLUMNS, .column = its_columns, .order = {                                      \
      { KEY_LATENCY + 1 }                                                                          \
    }                                                                                              \
  }
static const struct to_table_schema table[TABLES] = {
  [WAITING_NOW] = { .name = "waiting_now",
                    .about = "Waiting for a P now",
                    .order_about = "oldest first",
                    .keys = 1,
                    .columns = NOW_COLUMNS,
                    .column = now_column,
                    .order = { { NOW_AGE + 1 }, { NOW_GOROUTINE + 1, .rising = true } },
                    .is_list = true },
  [LONGEST_WAITS] = { .name = "longest",
                      .about = "Longest waits for a P",
                      .order_about = "longest first",
                      .keys = 2,
                      .columns = LONG_COLUMNS,
                      .column = long_column,
                      .order = { { LONG_LATENCY + 1 }, { LONG_BEGIN + 1, .rising = true } },
                      .is_list = true },
  [BY_ENTRY] = BY_KEY("by_entry", "By entry function", entry_column),
  [BY_CAUSE] = BY_KEY("by_cause", "By cause", cause_column),
  [BY_STACK] = BY_KEY("by_stack", "By stack", stack_column),
  [BY_WAKER] = BY_KEY("by_waker", "By the waker's stack", waker_column),
};

/* ---- combinations ---- */

static const struct to_frame *entry_frame(const struct to_callstack *stack) {
  return stack != NULL && stack->len > 0 ? stack->frames[stack->len - 1] : NULL;
}

static tb_rc add_entry(struct to_analyses *a, uint32_t stack, enum to_cause cause) {
  struct to_sched *s = state(a);
  uint32_t series;

  TB_TRY(TB_MEM_GROW(a->mem, s->entry, s->entries_room, s->entries));
  TB_TRY(to_windows_series(&a->windows, s->by_cause[cause], &series));
  s->entry[s->entries++] = (struct entry){ stack, series };
  return TB_OK;
}

/* Texts of a stack table are kept once: their place is their name. */
static tb_rc find_entry(struct to_analyses *a, uint32_t stack, enum to_cause cause, uint32_t *out) {
  const struct to_frame *frame = entry_frame(to_stack_table_stack(a->stacks, stack));
  struct to_sched *s = state(a);
  uint64_t *place;

  *out = 0;
  if (frame == NULL) return TB_OK;
  uint64_t key = (uint64_t)(uintptr_t)frame->function.data * TO_CAUSES + cause;
  TB_TRY(tb_map_put(&s->entry_of, key, &place, NULL));
  if (*place == 0) {
    TB_TRY(add_entry(a, stack, cause));
    *place = s->entries;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

static tb_rc add_combination(struct to_analyses *a, uint32_t stack, uint32_t waker,
                             enum to_cause cause) {
  struct to_sched *s = state(a);
  uint32_t series, entry;

  TB_TRY(find_entry(a, stack, cause, &entry));
  TB_TRY(TB_MEM_GROW(a->mem, s->combination, s->room, s->n));
  TB_TRY(to_windows_series(&a->windows, entry > 0 ? s->entry[entry - 1].series : s->by_cause[cause],
                           &series));
  s->combination[s->n++] = (struct combination){ stack, waker, series, entry, (uint8_t)cause };
  return TB_OK;
}

static tb_rc sched_init(struct to_analyses *a) {
  struct to_sched *s = state(a);

  tb_map_init(&s->by_key, a->mem, tb_seed());
  tb_map_init(&s->entry_of, a->mem, tb_seed());
  s->slot = INT64_MIN;
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->all));
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->cut));
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->wasted));
  for (unsigned cause = 0; cause < TO_CAUSES; cause++)
    TB_TRY(to_windows_series(&a->windows, s->all, &s->by_cause[cause]));
  for (unsigned cause = 0; cause < TO_CAUSES; cause++)
    TB_TRY(add_combination(a, TO_STACK_OTHER, TO_STACK_OTHER, (enum to_cause)cause));
  return TB_OK;
}

static void sched_fini(struct to_analyses *a) {
  struct to_sched *s = state(a);

  tb_map_fini(&s->by_key);
  tb_map_fini(&s->entry_of);
  tb_mem_give(a->mem, s->entry, s->entries_room * sizeof(*s->entry));
  tb_mem_give(a->mem, s->combination, s->room * sizeof(*s->combination));
  tb_mem_give(a->mem, s->candidate, s->candidates_room * sizeof(*s->candidate));
}

/* The generation's stacks have got their numbers. */
static tb_rc find_combination(struct to_analyses *a, uint32_t stack, uint32_t waker,
                              enum to_cause cause, uint32_t *out) {
  struct to_sched *s = state(a);
  uint64_t key = ((uint64_t)stack << 32 | waker) * TO_CAUSES + cause, *place;
  bool fresh;

  *out = cause;
  if (s->n - TO_CAUSES >= a->config.stacks_max && tb_map_find(&s->by_key, key) == NULL)
    return TB_OK;
  TB_TRY(tb_map_put(&s->by_key, key, &place, &fresh));
  if (fresh) {
    tb_rc rc = add_combination(a, stack, waker, cause);
    if (rc != TB_OK) {
      tb_map_remove(&s->by_key, key);
      return rc;
    }
    *place = s->n - 1;
  }
  *out = (uint32_t)*place;
  return TB_OK;
}

static __attribute__((noinline)) tb_rc look_up(struct to_analyses *a,
                                               const struct to_generation *gen,
                                               const struct to_span *span, struct recent *recent) {
  uint32_t stack, waker, combination;

  TB_TRY(to_spans_stack(a->spans, gen, span->stack, &stack));
  TB_TRY(to_spans_stack(a->spans, gen, span->by_stack, &waker));
  TB_TRY(find_combination(a, stack, waker, (enum to_cause)span->cause, &combination));
  *recent = (struct recent){ .stack = span->stack,
                             .waker = span->by_stack,
                             .generation = a->stacks->epoch,
                             .combination = combination,
                             .cause = span->cause };
  return TB_OK;
}

/* ---- the longest waits ---- */

static to_ns length_of(const struct wait *wait) {
  return wait->until - wait->from;
}

/* The slot of the windows that a wait lies in, from 1; 0: it is in no window but all. */
static size_t slot_of(const struct to_windows *w, const struct wait *wait) {
  size_t n = w->slots;

  while (n > 0 && w->slot[n - 1].begin > wait->until) n--;
  return wait->past ? 0 : n;
}

/* Leaves the longest of n waits, in their order. */
static size_t leave_longest(struct wait *wait, size_t n) {
  for (; n > LONGEST; n--) {
    size_t at = 0;
    for (size_t i = 1; i < n; i++)
      if (length_of(&wait[i]) < length_of(&wait[at])) at = i;
    memmove(&wait[at], &wait[at + 1], (n - 1 - at) * sizeof(*wait));
  }
  return n;
}

/* A window is a sum of slots, so the longest of each slot are enough. They stand in the order of slots. */
static void keep_longest_of_slots(struct to_analyses *a) {
  struct to_sched *s = state(a);
  size_t kept = 0, end;

  for (size_t begin = 0; begin < s->n_candidates; begin = end) {
    size_t slot = slot_of(&a->windows, &s->candidate[begin]);
    end = begin + 1;
    while (end < s->n_candidates && slot_of(&a->windows, &s->candidate[end]) == slot) end++;
    memmove(&s->candidate[kept], &s->candidate[begin], (end - begin) * sizeof(*s->candidate));
    kept += leave_longest(&s->candidate[kept], end - begin);
  }
  s->n_candidates = kept;
}

/* A wait of an older slot matters while fewer than LONGEST later ones are longer. Those are about LONGEST * log(slots);
 * many more only where waits get ever shorter. */
static tb_rc keep_candidate(struct to_analyses *a, const struct wait *wait) {
  struct to_sched *s = state(a);
  size_t kept = 0;

  for (size_t i = 0; i < s->n_candidates; i++) {
    struct wait *older = &s->candidate[i];
    older->longer += length_of(wait) > length_of(older);
    if (older->longer < LONGEST) s->candidate[kept++] = *older;
  }
  s->n_candidates = kept;
  if (kept == CANDIDATES_MAX) keep_longest_of_slots(a);
  TB_TRY(TB_MEM_GROW(a->mem, s->candidate, s->candidates_room, s->n_candidates));
  s->candidate[s->n_candidates++] = *wait;
  return TB_OK;
}

static tb_rc close_slot(struct to_analyses *a) {
  struct to_sched *s = state(a);

  for (size_t i = 0; i < s->n_longest; i++) TB_TRY(keep_candidate(a, &s->longest[i]));
  if (s->first != a->windows.windows_first || s->slot > a->windows.open_begin)
    for (size_t i = 0; i < s->n_candidates; i++) s->candidate[i].past = true;
  s->n_longest = 0;
  s->shortest = -1;
  s->slot = a->windows.open_begin;
  s->first = a->windows.windows_first;
  return TB_OK;
}

static void note_long(struct to_sched *s, const struct to_span *span, uint32_t combination) {
  struct wait wait = { .from = span->from,
                       .until = span->until,
                       .goroutine = span->id,
                       .waker = span->by,
                       .combination = combination };
  size_t place = s->n_longest;

  if (place < LONGEST) {
    s->longest[s->n_longest++] = wait;
  } else {
    place = 0;
    for (size_t i = 1; i < LONGEST; i++)
      if (s->longest[i].until - s->longest[i].from <
          s->longest[place].until - s->longest[place].from)
        place = i;
    s->longest[place] = wait;
  }
  if (s->n_longest < LONGEST) return;
  s->shortest = INT64_MAX;
  for (size_t i = 0; i < LONGEST; i++)
    if (s->longest[i].until - s->longest[i].from < s->shortest)
      s->shortest = s->longest[i].until - s->longest[i].from;
}

/* ---- spans ---- */

static tb_rc sched_span(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_span *span) {
  struct to_sched *s = state(a);
  struct recent *recent =
      &s->recent[(span->stack * 31 + span->by_stack * 7 + span->cause) % RECENT];

  if (TB_UNLIKELY(!span->until_known)) {
    to_windows_sum(&a->windows, s->cut, span->from, span->until, 0, false);
    return TB_OK;
  }
  if (TB_UNLIKELY(recent->stack != span->stack || recent->waker != span->by_stack ||
                  recent->cause != span->cause || recent->generation != a->stacks->epoch))
    TB_TRY(look_up(a, gen, span, recent));
  if (TB_UNLIKELY(s->slot != a->windows.open_begin)) TB_TRY(close_slot(a));
  if (TB_UNLIKELY(span->until - span->from > s->shortest)) note_long(s, span, recent->combination);
  return to_windows_add(&a->windows, s->combination[recent->combination].series, span->from,
                        span->until, 0, !span->from_known);
}

static tb_rc sched_slice(struct to_analyses *a) {
  struct to_sched *s = state(a);
  uint64_t wasted = to_spans_wasted(a->spans), more = wasted - s->wasted_ns;

  if (more == 0) return TB_OK;
  s->wasted_ns = wasted;
  to_windows_sum(&a->windows, s->wasted, a->windows.last - (to_ns)more, a->windows.last, 0, false);
  return TB_OK;
}

/* ---- the report ---- */

static struct to_string cause_text(enum to_cause cause) {
  const char *name = to_cause_name(cause);
  return (struct to_string){ name, strlen(name) };
}

static tb_rc entry_row(struct to_analyses *a, struct to_draft *d, uint32_t stack,
                       struct to_draft_value **row) {
  const struct to_frame *entry = entry_frame(to_stack_table_stack(a->stacks, stack));

  if (stack == TO_STACK_OTHER) return to_draft_other(d, BY_ENTRY, row);
  TB_TRY(to_draft_row(d, BY_ENTRY, entry == NULL ? 0 : (uintptr_t)entry->function.data, row));
  if (entry != NULL) to_draft_text(&(*row)[KEY], entry->function);
  return TB_OK;
}

static tb_rc cause_row(struct to_draft *d, enum to_cause cause, struct to_draft_value **row) {
  TB_TRY(to_draft_row(d, BY_CAUSE, cause, row));
  to_draft_text(&(*row)[KEY], cause_text(cause));
  return TB_OK;
}

static tb_rc add_stack(struct to_analyses *a, struct to_draft *d, unsigned by, uint32_t stack,
                       uint32_t series) {
  struct to_draft_value *row;

  if (stack == TO_STACK_OTHER)
    TB_TRY(to_draft_other(d, by, &row));
  else
    TB_TRY(to_draft_row(d, by, stack, &row));
  to_draft_stack(&row[KEY], to_stack_table_stack(a->stacks, stack));
  return to_draft_series(d, &row[KEY_LATENCY], series);
}

static bool has_waker(enum to_cause cause) {
  return cause == TO_CAUSE_CREATED || cause == TO_CAUSE_UNBLOCKED;
}

/* What parts gave to a series goes, once, where the parts go. */
static tb_rc add_whole(struct to_analyses *a, struct to_draft *d, const struct combination *c,
                       bool *by_cause, bool *by_entry) {
  const struct to_sched *s = state(a);
  uint32_t cause = s->by_cause[c->cause];
  struct to_draft_value *row;

  if (!by_cause[c->cause]) {
    by_cause[c->cause] = true;
    TB_TRY(to_draft_lengths(d, to_draft_figure(d, LATENCY), cause));
    TB_TRY(cause_row(d, (enum to_cause)c->cause, &row));
    TB_TRY(to_draft_lengths(d, &row[KEY_LATENCY], cause));
  }
  if (by_entry[c->entry] || c->entry == 0) return TB_OK;
  by_entry[c->entry] = true;
  const struct entry *entry = &s->entry[c->entry - 1];
  TB_TRY(to_draft_lengths(d, to_draft_figure(d, LATENCY), entry->series));
  TB_TRY(cause_row(d, (enum to_cause)c->cause, &row));
  TB_TRY(to_draft_lengths(d, &row[KEY_LATENCY], entry->series));
  TB_TRY(entry_row(a, d, entry->stack, &row));
  return to_draft_lengths(d, &row[KEY_LATENCY], entry->series);
}

static tb_rc report_combinations(struct to_analyses *a, struct to_draft *d) {
  const struct to_sched *s = state(a);
  bool by_cause[TO_CAUSES] = { false }, *by_entry;
  struct to_draft_value *row;

  TB_TRY(tb_arena_take(d->arena, s->entries + 1, &by_entry));
  memset(by_entry, false, s->entries + 1);
  TB_TRY(to_draft_lengths(d, to_draft_figure(d, LATENCY), s->all));
  for (const struct combination *c = s->combination; c < s->combination + s->n; c++) {
    if (to_view_cell(d->view, c->series) == NULL) continue;
    TB_TRY(add_whole(a, d, c, by_cause, by_entry));
    TB_TRY(to_draft_series(d, to_draft_figure(d, LATENCY), c->series));
    TB_TRY(entry_row(a, d, c->stack, &row));
    TB_TRY(to_draft_series(d, &row[KEY_LATENCY], c->series));
    TB_TRY(cause_row(d, (enum to_cause)c->cause, &row));
    TB_TRY(to_draft_series(d, &row[KEY_LATENCY], c->series));
    TB_TRY(add_stack(a, d, BY_STACK, c->stack, c->series));
    if (has_waker((enum to_cause)c->cause)) TB_TRY(add_stack(a, d, BY_WAKER, c->waker, c->series));
  }
  return TB_OK;
}

static tb_rc add_long(struct to_analyses *a, struct to_draft *d, const struct wait *wait) {
  const struct combination *c = &state(a)->combination[wait->combination];
  struct to_draft_value *row;

  TB_TRY(to_draft_new_row(d, LONGEST_WAITS, &row));
  to_draft_number(&row[LONG_GOROUTINE], wait->goroutine);
  to_draft_number(&row[LONG_BEGIN], wait->from);
  to_draft_number(&row[LONG_LATENCY], wait->until - wait->from);
  to_draft_text(&row[LONG_CAUSE], cause_text((enum to_cause)c->cause));
  to_draft_stack(&row[LONG_STACK], to_stack_table_stack(a->stacks, c->stack));
  if (!has_waker((enum to_cause)c->cause)) return TB_OK;
  if (wait->waker != TO_NONE) to_draft_number(&row[LONG_WAKER], wait->waker);
  to_draft_stack(&row[LONG_WAKER_STACK], to_stack_table_stack(a->stacks, c->waker));
  return TB_OK;
}

static bool longer(const void *waits, uint32_t a, uint32_t b) {
  const struct wait *x = (const struct wait *)waits + a, *y = (const struct wait *)waits + b;
  to_ns x_ns = x->until - x->from, y_ns = y->until - y->from;

  return x_ns != y_ns ? x_ns > y_ns : a < b;
}

/* What is beyond the first ones need not be all there is. */
static tb_rc report_longest(struct to_analyses *a, struct to_draft *d) {
  const struct to_sched *s = state(a);
  bool is_all = a->report.window == TO_WINDOW_ALL;
  struct wait *wait;
  uint32_t *rank, n = 0;

  if (s->slot != a->windows.open_begin) TB_TRY(close_slot(a)); /* no wait has ended in it yet */

  TB_TRY(tb_arena_take(d->arena, (s->n_candidates + LONGEST) * sizeof(*wait), &wait));
  TB_TRY(tb_arena_take(d->arena, (s->n_candidates + LONGEST) * sizeof(*rank), &rank));
  for (size_t i = 0; i < s->n_candidates + s->n_longest; i++) {
    wait[n] = i < s->n_candidates ? s->candidate[i] : s->longest[i - s->n_candidates];
    rank[n] = n;
    n += is_all || (!wait[n].past && wait[n].until >= d->view->from);
  }
  to_top_rows(rank, n, LONGEST, longer, wait);
  for (uint32_t i = 0; i < n && i < LONGEST; i++) TB_TRY(add_long(a, d, &wait[rank[i]]));
  return TB_OK;
}

struct open_waits {
  struct to_analyses *a;
  struct to_draft *draft;
  int64_t n;
};

static tb_rc add_open(void *self, const struct to_span *span) {
  struct open_waits *open = self;
  struct to_draft_value *row;
  uint32_t stack;

  if (span->kind != TO_SPAN_GOROUTINE || span->state != TO_GO_RUNNABLE) return TB_OK;
  open->n++;
  TB_TRY(to_spans_stack(open->a->spans, open->a->generation, span->stack, &stack));
  TB_TRY(to_draft_new_row(open->draft, WAITING_NOW, &row));
  to_draft_number(&row[NOW_GOROUTINE], span->id);
  to_draft_number(&row[NOW_AGE], span->until > span->from ? span->until - span->from : 0);
  to_draft_text(&row[NOW_CAUSE], cause_text((enum to_cause)span->cause));
  to_draft_number(&row[NOW_LOWER_BOUND], !span->from_known);
  to_draft_stack(&row[NOW_STACK], to_stack_table_stack(open->a->stacks, stack));
  if (has_waker((enum to_cause)span->cause) && span->by != TO_NONE)
    to_draft_number(&row[NOW_WAKER], span->by);
  return TB_OK;
}

static double wasted_share(const struct to_analyses *a, const struct to_view *view) {
  double wall = (double)((uint64_t)view->until - (uint64_t)view->from);
  double wasted = (double)to_view_sum(view, state(a)->wasted).total_ns;

  return wall <= 0 ? 0 : wasted < wall ? wasted / wall : 1;
}

static tb_rc sched_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  struct open_waits open = { .a = a, .draft = d };
  const struct to_sched *s = state(a);

  TB_TRY(report_combinations(a, d));
  TB_TRY(report_longest(a, d));
  TB_TRY(to_spans_open(a->spans, add_open, &open));
  to_draft_number(to_draft_figure(d, WAITING), open.n);
  to_draft_share(to_draft_figure(d, WASTED), wasted_share(a, view));
  to_draft_number(to_draft_figure(d, CUT), (int64_t)to_view_sum(view, s->cut).count);
  return TB_OK;
}

const struct to_analysis_ops to__analysis_sched = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_sched),
  .spans = TO_WANT_GO(RUNNABLE) | TO_WANT_WASTE,
  .init = sched_init,
  .fini = sched_fini,
  .span = sched_span,
  .slice = sched_slice,
  .report = sched_report,
};
