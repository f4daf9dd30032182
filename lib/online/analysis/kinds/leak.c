/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines that may never end: pile-ups of waiting goroutines that only grow.
 *
 * Every 10 s of the trace's clock the waiting goroutines are counted by the stack where they wait. A pile-up that grew in each of
 * six periods is a leak, unless a goroutine left it that had waited a whole period. A leak ends when such a goroutine leaves or
 * the pile-up is empty; whoever has the analyses may know it from before. A report lists its goroutines by place of creation, in one pass over all goroutines. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "online/analysis/analysis_state.h"
#include "online/analysis/kinds/before.h"
#include "online/analysis/kinds/leak.h"

enum { PERIODS = 6, PILE_MIN = 10 };
#define PERIOD_NS INT64_C(10000000000)
#define SECOND    INT64_C(1000000000)

/* Goroutines that wait at one stack. */
struct pile {
  uint32_t waiting, before; /* at the end of the last period; before the first one of the row */
  uint32_t now;             /* being counted */
  uint8_t rises;            /* periods in a row in which it grew; at most PERIODS */
  bool left;                /* in this period a goroutine left that had waited a whole period */
  bool is_leak;
  to_ns period; /* the first one of the row */
};

struct to_leak {
  to_ns period; /* index of the open period: time / PERIOD_NS */
  to_ns begin;  /* of the readings */
  bool has_begin;
  unsigned readings;
  struct pile *pile; /* by number of the stack */
  size_t piles, leaks;
};

static struct to_leak *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_LEAK];
}

enum { SUSPECTS, READ, FIGURES };
static const struct to_field figure[FIGURES] = {
  [SUSPECTS] = { "suspects", TO_VALUE_COUNT,
                 .about = "Goroutines that have waited so long that they may never end: a hint.",
                 .over_time = TO_OVER_LAST },
  [READ] = { "periods", TO_VALUE_COUNT, .about = "Periods of 10 s seen so far, at most 6 in a row.",
             .over_time = TO_OVER_LAST },
};

enum { SITE, STACK, COUNT, OLDEST, ALIVE, ROSE, MEDIAN, COLUMNS };
static const struct to_field column[COLUMNS] = {
  [SITE] = { "creation_stack", TO_VALUE_STACK,
             .about =
                 "Where the goroutines were created; where they begin if the runtime created them "
                 "(time.AfterFunc). Empty: unknown places, or places above the limit." },
  [STACK] = { "stack", TO_VALUE_STACK, .about = "Where they wait." },
  [COUNT] = { "count", TO_VALUE_COUNT,
              .about = "Goroutines of this place that have waited there for 10 s or longer." },
  [OLDEST] = { "oldest_wait_ns", TO_VALUE_NS, .about = "The longest of these waits, so far." },
  [ALIVE] = { "alive", TO_VALUE_COUNT, .about = "All live goroutines that were created there." },
  [ROSE] = { "rise", TO_VALUE_COUNT,
             .about = "How many more wait at the stack than before it began to grow." },
  [MEDIAN] = { "median_life_ns", TO_VALUE_NS,
               .about = "Half of those that ended lived no longer; empty: none has ended." },
};
enum { SUSPECT_SITES, TABLES };
static const struct to_table_schema table[TABLES] = {
  [SUSPECT_SITES] = { .name = "suspects",
                      .about = "Suspected goroutine leaks",
                      .order_about = "most first",
                      .keys = 2,
                      .columns = COLUMNS,
                      .column = column,
                      .order = { { COUNT + 1 }, { OLDEST + 1 } },
                      .is_list = true,
                      .is_now = true },
};

/* ---- readings ---- */

static tb_rc find_pile(struct to_analyses *a, const struct to_generation *gen, uint64_t stack,
                       struct pile **out) {
  struct to_leak *s = state(a);
  void *block = s->pile;
  uint32_t number;

  *out = NULL;
  TB_TRY(to_spans_stack(a->spans, gen, stack, &number));
  if (number <= TO_STACK_OTHER) return TB_OK; /* no place */
  if (number >= s->piles) {
    size_t piles = to_spans_stacks(a->spans);
    TB_TRY(tb_mem_resize(a->mem, &block, s->piles * sizeof(*s->pile), piles * sizeof(*s->pile)));
    s->pile = block;
    memset(s->pile + s->piles, 0, (piles - s->piles) * sizeof(*s->pile));
    s->piles = piles;
  }
  *out = &s->pile[number];
  return TB_OK;
}

static tb_rc on_long_wait(void *self, const struct to_generation *gen, const struct to_life *g) {
  struct pile *pile;

  TB_TRY(find_pile(self, gen, g->stack, &pile));
  if (pile != NULL) pile->left = true;
  return TB_OK;
}

static void end_period(struct pile *pile, to_ns period) {
  bool grew = pile->now > pile->waiting && !pile->left;

  if (grew && pile->rises == 0 && !pile->is_leak) {
    pile->before = pile->waiting;
    pile->period = period;
  }
  if (!grew)
    pile->rises = 0;
  else if (pile->rises < PERIODS)
    pile->rises++;
  pile->is_leak = !pile->left && pile->now > 0 && (pile->is_leak || pile->rises == PERIODS);
}

static tb_rc count_waiting(struct to_analyses *a) {
  const struct to_spans *spans = a->spans;
  struct pile *pile;

  for (uint32_t slot = 1; slot < spans->slots_end; slot++) {
    const struct to_life *g = &spans->lives[slot];
    if (g->life == 0 || g->state != TO_GO_WAITING) continue;
    TB_TRY(find_pile(a, a->generation, g->stack, &pile));
    if (pile != NULL) pile->now++;
  }
  return TB_OK;
}

/* A leak that was known before the trace began goes on if it is a pile-up still, although it may not grow any more. */
static void recognise(struct to_analyses *a, struct pile *pile, uint32_t number) {
  if (pile->now < PILE_MIN || a->config.was_leak == NULL) return;
  pile->is_leak = a->config.was_leak(a->config.self, to_stack_table_stack(a->stacks, number));
  pile->before = pile->now;
  pile->period = state(a)->period;
}

/* has_gap: no event came in a period before. */
static tb_rc read_piles(struct to_analyses *a, bool has_gap) {
  struct to_leak *s = state(a);

  TB_TRY(count_waiting(a));
  s->leaks = 0;
  for (size_t i = 0; i < s->piles; i++) {
    struct pile *pile = &s->pile[i];
    if (s->readings > 0)
      end_period(pile, s->period);
    else
      recognise(a, pile, (uint32_t)i);
    if (has_gap) pile->rises = 0;
    s->leaks += pile->is_leak;
    pile->waiting = pile->now;
    pile->now = 0;
    pile->left = false;
  }
  if (s->readings <= PERIODS) s->readings++;
  return TB_OK;
}

static void forget(struct to_leak *s) {
  s->has_begin = false;
  s->readings = 0;
  s->leaks = 0;
  if (s->piles > 0) memset(s->pile, 0, s->piles * sizeof(*s->pile));
}

static tb_rc leak_slot(struct to_analyses *a) {
  struct to_leak *s = state(a);
  to_ns begin = a->windows.open.begin;
  to_ns period = begin / PERIOD_NS - (begin % PERIOD_NS < 0);
  uint64_t passed = (uint64_t)period - (uint64_t)s->period;

  if (passed == 0 && s->has_begin) return TB_OK;
  if (period < s->period || passed > PERIODS || !a->spans->heard)
    forget(s);
  else if (passed > 0)
    TB_TRY(read_piles(a, passed > 1));
  s->period = period;
  if (!s->has_begin) s->begin = begin > a->windows.first ? begin : a->windows.first;
  s->has_begin = true;
  return TB_OK;
}

static tb_rc leak_init(struct to_analyses *a) {
  a->spans->long_wait = (struct to_long_wait){ PERIOD_NS, a, on_long_wait };
  return TB_OK;
}

static void leak_fini(struct to_analyses *a) {
  struct to_leak *s = state(a);

  tb_mem_free(a->mem, s->pile, s->piles * sizeof(*s->pile));
}

static void leak_epoch(struct to_analyses *a) {
  forget(state(a));
}

bool to__leak_is_at(const struct to_analyses *a, uint32_t stack) {
  const struct to_leak *s = state(a);

  return stack < s->piles && s->pile[stack].is_leak;
}

/* ---- suspects ---- */

/* Goroutines created at one place that wait at one stack. */
struct waiters {
  uint32_t count; /* those that have waited a whole period */
  to_ns oldest;
  bool is_least;     /* the begin of the oldest wait is not known: it was before */
  int64_t goroutine; /* the one with the oldest wait */
};

static tb_rc add_waiter(struct to_analyses *a, struct tb_map *waiters, const struct to_life *g,
                        uint32_t site) {
  to_ns wait = a->spans->now - g->since;
  struct waiters *w;
  uint32_t stack;
  uint64_t *place;
  bool fresh;

  TB_TRY(to_spans_stack(a->spans, a->generation, g->stack, &stack));
  if (!to__leak_is_at(a, stack)) return TB_OK;
  TB_TRY(tb_map_put(waiters, (uint64_t)site << 32 | stack, &place, &fresh));
  if (fresh) {
    TB_TRY(tb_arena_alloc(&a->report_arena, sizeof(*w), &w));
    *w = (struct waiters){ .goroutine = g->id };
    *place = (uintptr_t)w;
  }
  w = (struct waiters *)(uintptr_t)*place;
  w->count++;
  if (wait <= w->oldest) return TB_OK;
  w->oldest = wait;
  w->is_least = !g->known;
  w->goroutine = g->id;
  return TB_OK;
}

static tb_rc find_waiters(struct to_analyses *a, struct tb_map *waiters) {
  const struct to_spans *spans = a->spans;

  for (uint32_t slot = 1; slot < spans->slots_end; slot++) {
    const struct to_life *g = &spans->lives[slot];
    if (g->life == 0 || g->state != TO_GO_WAITING || spans->now - g->since < PERIOD_NS) continue;
    TB_TRY(add_waiter(a, waiters, g, a->sums.goroutine[slot].site));
  }
  return TB_OK;
}

/* One place of creation, and one stack where goroutines created there wait. */
struct suspects {
  uint32_t site, stack;
  const struct waiters *waiters;
};
typedef tb_rc suspects_fn(struct to_analyses *a, void *self, const struct suspects *suspects);

static tb_rc each_of(struct to_analyses *a, const struct tb_map *waiters, suspects_fn *each,
                     void *self) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(waiters, &i, &key, &value);) {
    const struct suspects s = { .site = (uint32_t)(key >> 32),
                                .stack = (uint32_t)key,
                                .waiters = (const struct waiters *)(uintptr_t)value };
    TB_TRY(each(a, self, &s));
  }
  return TB_OK;
}

static tb_rc each_suspect(struct to_analyses *a, suspects_fn *each, void *self) {
  struct tb_map waiters;

  if (state(a)->leaks == 0) return TB_OK;
  tb_map_init(&waiters, a->mem, tb_seed());
  tb_rc rc = find_waiters(a, &waiters);
  if (rc == TB_OK) rc = each_of(a, &waiters, each, self);
  tb_map_fini(&waiters);
  return rc;
}

static uint32_t rise_of(const struct to_analyses *a, uint32_t stack) {
  const struct pile *pile = &state(a)->pile[stack];

  return pile->waiting > pile->before ? pile->waiting - pile->before : 0;
}

/* ---- report ---- */

struct rows {
  struct to_draft *d;
  const struct to_view *view;
};

/* A place of which no goroutine has ended has no median. */
static tb_rc set_median(const struct rows *rows, uint32_t series, struct to_draft_value *out) {
  const struct to_view_part part = { .series = series };
  struct to_distribution d = { .sum = to_view_sum(rows->view, series) };
  uint64_t bucket[TO_BUCKETS_MAX];

  if (d.sum.count == 0) return TB_OK;
  TB_TRY(to_view_quantiles(rows->view, &part, 1, bucket, &d));
  to_draft_number(out, (int64_t)(d.has_quantiles ? d.p50_ns : d.sum.total_ns / d.sum.count));
  return TB_OK;
}

static tb_rc add_row(struct to_analyses *a, void *self, const struct suspects *s) {
  const struct rows *rows = self;
  const struct to_sums_site *of = &a->sums.site[s->site];
  struct to_draft_value *row, *suspects = to_draft_figure(rows->d, SUSPECTS);

  TB_TRY(to_draft_new_row(rows->d, SUSPECT_SITES, &row));
  to_draft_stack(&row[SITE], to_stack_table_stack(a->stacks, of->stack));
  to_draft_stack(&row[STACK], to_stack_table_stack(a->stacks, s->stack));
  to_draft_number(&row[COUNT], s->waiters->count);
  to_draft_number(&row[OLDEST], s->waiters->oldest);
  to_draft_number(&row[ALIVE], of->alive);
  to_draft_number(&row[ROSE], rise_of(a, s->stack));
  to_draft_number(suspects, suspects->value.number + s->waiters->count);
  return set_median(rows, of->lives, &row[MEDIAN]);
}

static tb_rc say_too_short(struct to_analyses *a, struct to_draft *d) {
  enum { NOTE_BYTES = 200 };
  const struct to_leak *s = state(a);
  to_ns last = (s->period + 1 + PERIODS - (to_ns)s->readings) * PERIOD_NS;
  char text[NOTE_BYTES], *copy;

  if (!s->has_begin) return TB_OK; /* no events */
  int n = snprintf(text, sizeof text,
                   "A leak is found by %d counts of the waiting goroutines, one each %d s: that "
                   "needs %" PRId64 " s of this trace, and there are %" PRId64 " s.",
                   PERIODS + 1, (int)(PERIOD_NS / SECOND), (last - s->begin + SECOND - 1) / SECOND,
                   (a->spans->now - s->begin) / SECOND);
  TB_TRY(tb_arena_copy(d->arena, text, (size_t)n + 1, &copy));
  return to_draft_note(d, copy);
}

static tb_rc leak_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  unsigned readings = state(a)->readings;
  struct rows rows = { d, view };

  to_draft_number(to_draft_figure(d, SUSPECTS), 0);
  to_draft_number(to_draft_figure(d, READ), readings == 0 ? 0 : readings - 1);
  TB_TRY(each_suspect(a, add_row, &rows));
  if (readings <= PERIODS && to_draft_figure(d, SUSPECTS)->value.number == 0)
    TB_TRY(say_too_short(a, d));
  return to__before_say(a, d);
}

/* ---- findings ---- */

/* All suspects that wait at one stack. */
struct leak {
  struct waiters all;
  uint32_t site, of_site; /* place of creation of the most, if it is known */
};

static tb_rc add_to_leak(struct to_analyses *a, void *self, const struct suspects *s) {
  struct leak *leak = &((struct leak *)self)[s->stack];
  bool is_known = a->sums.site[s->site].stack > TO_STACK_OTHER;

  leak->all.count += s->waiters->count;
  if (s->waiters->oldest > leak->all.oldest || leak->all.oldest == 0) {
    leak->all.oldest = s->waiters->oldest;
    leak->all.is_least = s->waiters->is_least;
    leak->all.goroutine = s->waiters->goroutine;
  }
  if (is_known && s->waiters->count > leak->of_site) {
    leak->site = s->site;
    leak->of_site = s->waiters->count;
  }
  return TB_OK;
}

static const char *place_of(const struct to_frame *frame) {
  return frame == NULL || frame->function.len == 0 ? TO_UNKNOWN_PLACE : frame->function.data;
}

static tb_rc say_leak(struct to_analyses *a, const struct leak *leak, uint32_t number,
                      const struct to_finding_sink *sink) {
  enum { WORDS_BYTES = 400, RISE_BYTES = 80 };
  const struct to_sums_site *of = &a->sums.site[leak->site];
  const struct to_callstack *stack = to_stack_table_stack(a->stacks, number),
                            *site = to_stack_table_stack(a->stacks, of->stack);
  char *words, rise[RISE_BYTES] = "";

  if (rise_of(a, number) > 0)
    snprintf(rise, sizeof rise, "; %" PRIu32 " more wait there than %" PRId64 " s before",
             rise_of(a, number),
             (state(a)->period - state(a)->pile[number].period) * (PERIOD_NS / 1000000000));
  TB_TRY(tb_arena_alloc(&a->report_arena, WORDS_BYTES, &words));
  int n = snprintf(words, WORDS_BYTES, "%s %.120s, they wait at %.120s, the longest for %s%.0f s%s",
                   of->begins ? "created by the runtime, they begin in" : "created at",
                   place_of(to_callstack_own(site)), place_of(to_callstack_own(stack)),
                   leak->all.is_least ? "at least " : "", (double)leak->all.oldest / 1e9, rise);
  struct to_string cause = { "", 0 };
  const struct to_frame *created = to_callstack_own(site);
  if (created != NULL) cause = created->function;
  sink->finding(sink->self, &(struct to_finding){ .kind = TO_FINDING_LEAK,
                                                  .key = number,
                                                  .since = a->spans->now - leak->all.oldest,
                                                  .goroutine = leak->all.goroutine,
                                                  .count = leak->all.count,
                                                  .stack = stack,
                                                  .cause = cause,
                                                  .words = { words, (size_t)n } });
  return TB_OK;
}

static tb_rc leak_findings(struct to_analyses *a, const struct to_finding_sink *sink) {
  size_t n = state(a)->piles;
  struct leak *leaks;

  if (state(a)->leaks == 0) return TB_OK;
  TB_TRY(tb_arena_alloc(&a->report_arena, n * sizeof(*leaks), &leaks));
  memset(leaks, 0, n * sizeof(*leaks));
  TB_TRY(each_suspect(a, add_to_leak, leaks));
  for (uint32_t number = 0; number < n; number++)
    if (leaks[number].all.count > 0) TB_TRY(say_leak(a, &leaks[number], number, sink));
  return TB_OK;
}

const struct to_analysis_ops to__analysis_leak = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_leak),
  .init = leak_init,
  .fini = leak_fini,
  .slot = leak_slot,
  .epoch = leak_epoch,
  .report = leak_report,
  .findings = leak_findings,
};
