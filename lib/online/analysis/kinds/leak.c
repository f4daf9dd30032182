/* SPDX-License-Identifier: Apache-2.0 */
/* Goroutines that may never end: places of creation whose live, waiting goroutines become more and more.
 *
 * Every 10 s of the trace's clock the live goroutines are read by place of creation (online/spans/sums.h counts them). A report examines
 * the places that rose five times in a row, in one pass over the goroutines. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "online/analysis/analysis_state.h"

enum { RISES = 5, READINGS = RISES + 1, LIVES_FACTOR = 10, SHARE_OF_RISE = 5 };
#define PERIOD_NS        INT64_C(10000000000)
#define LIMIT_UNKNOWN_NS INT64_C(30000000000)

struct to_leak {
  to_ns period; /* index of the open period: time / PERIOD_NS */
  unsigned readings;
  struct reading {
    uint32_t alive[READINGS]; /* oldest first */
  } * site;
  size_t sites, room;
};

static struct to_leak *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_LEAK];
}

enum { SUSPECTS, READ, FIGURES };
static const struct to_field figure[FIGURES] = {
  [SUSPECTS] = { "suspects", TO_VALUE_COUNT,
                 .about = "Goroutines that have waited so long that they may never end: a hint.",
                 .over_time = TO_OVER_LAST },
  [READ] = { "periods", TO_VALUE_COUNT, .about = "Periods of 10 s seen so far, at most 5 in a row.",
             .over_time = TO_OVER_LAST },
};

enum { SITE, STACK, COUNT, OLDEST, ALIVE, ROSE, MEDIAN, COLUMNS };
static const struct to_field column[COLUMNS] = {
  [SITE] = { "creation_stack", TO_VALUE_STACK,
             .about =
                 "Where the goroutines were created; where they begin if the runtime created them "
                 "(time.AfterFunc). Empty: unknown places, or places above the limit." },
  [STACK] = { "stack", TO_VALUE_STACK, .about = "Where they wait." },
  [COUNT] = { "count", TO_VALUE_COUNT, .about = "Goroutines that wait there for too long." },
  [OLDEST] = { "oldest_wait_ns", TO_VALUE_NS, .about = "The longest of these waits, so far." },
  [ALIVE] = { "alive", TO_VALUE_COUNT, .about = "All live goroutines that were created there." },
  [ROSE] = { "rise", TO_VALUE_COUNT, .about = "How many more lived after the last five periods." },
  [MEDIAN] = { "median_life_ns", TO_VALUE_NS,
               .about = "Half of those that ended lived no longer; empty: none has ended." },
};
enum { SUSPECT_SITES, TABLES };
static const struct to_table_schema table[TABLES] = {
  [SUSPECT_SITES] = { .name = "suspects",
                      .about = "Goroutines that may never end (a hint)",
                      .order_about = "most first",
                      .keys = 2,
                      .columns = COLUMNS,
                      .column = column,
                      .order = { { COUNT + 1 }, { OLDEST + 1 } },
                      .is_list = true,
                      .is_now = true },
};

/* ---- readings ---- */

static to_ns period_of(to_ns time) {
  return time / PERIOD_NS - (time % PERIOD_NS < 0);
}

static tb_rc read_sites(struct to_analyses *a) {
  struct to_leak *s = state(a);

  for (; s->sites < a->sums.sites; s->sites++) {
    TB_TRY(TB_MEM_GROW(a->mem, s->site, s->room, s->sites));
    s->site[s->sites] = (struct reading){ .alive = { 0 } };
  }
  for (size_t i = 0; i < s->sites; i++) {
    uint32_t *alive = s->site[i].alive;
    memmove(alive, alive + 1, (READINGS - 1) * sizeof(*alive));
    alive[READINGS - 1] = a->sums.site[i].alive;
  }
  if (s->readings < READINGS) s->readings++;
  return TB_OK;
}

static tb_rc leak_slot(struct to_analyses *a) {
  struct to_leak *s = state(a);
  to_ns period = period_of(a->windows.open.begin);
  uint64_t passed = (uint64_t)period - (uint64_t)s->period;

  if (period < s->period || passed > READINGS || !a->spans->heard) {
    s->readings = 0;
    s->period = period;
    return TB_OK;
  }
  for (; s->period < period; s->period++) TB_TRY(read_sites(a));
  return TB_OK;
}

static void leak_fini(struct to_analyses *a) {
  struct to_leak *s = state(a);

  tb_mem_free(a->mem, s->site, s->room * sizeof(*s->site));
}

static void leak_epoch(struct to_analyses *a) {
  state(a)->readings = 0;
}

static bool rises(const struct to_leak *s, size_t site) {
  if (site >= s->sites) return false; /* new since the last reading */
  const uint32_t *alive = s->site[site].alive;

  for (unsigned i = 1; i < READINGS; i++)
    if (alive[i] <= alive[i - 1]) return false;
  return true;
}

struct suspect_site {
  to_ns limit, median; /* limit 0: not a suspect; median -1: unknown */
};

static tb_rc set_limit(struct to_analyses *a, const struct to_view *view, size_t i,
                       struct suspect_site *out) {
  uint32_t series = a->sums.site[i].lives;
  const struct to_view_part part = { .series = series };
  struct to_distribution d = { .sum = to_view_sum(view, series) };
  uint64_t bucket[TO_BUCKETS_MAX];

  *out = (struct suspect_site){ .limit = LIMIT_UNKNOWN_NS, .median = -1 };
  if (d.sum.count == 0) return TB_OK;
  TB_TRY(to_view_quantiles(view, &part, 1, bucket, &d));
  out->median = (to_ns)(d.has_quantiles ? d.p50_ns : d.sum.total_ns / d.sum.count);
  out->limit = out->median < INT64_MAX / LIVES_FACTOR ? out->median * LIVES_FACTOR : INT64_MAX;
  return TB_OK;
}

/* Sets *out to NULL if there are none. Allocates from arena. */
static tb_rc find_suspects(struct to_analyses *a, struct tb_arena *arena,
                           const struct to_view *view, struct suspect_site **out) {
  struct suspect_site *site;
  bool any = false;

  *out = NULL;
  if (state(a)->readings < READINGS) return TB_OK;
  TB_TRY(tb_arena_alloc(arena, a->sums.sites * sizeof(*site), &site));
  for (size_t i = 0; i < a->sums.sites; i++) {
    site[i] = (struct suspect_site){ 0 };
    if (!rises(state(a), i)) continue;
    TB_TRY(set_limit(a, view, i, &site[i]));
    any = true;
  }
  if (any) *out = site;
  return TB_OK;
}

/* Goroutines created at one place that wait at one stack for too long. */
struct waiters {
  uint32_t count;
  to_ns oldest;
  int64_t goroutine; /* the one with the oldest wait */
};

static tb_rc add_waiter(struct to_analyses *a, struct tb_arena *arena, struct tb_map *waiters,
                        const struct to_life *g, uint32_t site) {
  struct waiters *w;
  uint32_t stack;
  uint64_t *place;
  bool fresh;

  TB_TRY(to_spans_stack(a->spans, a->generation, g->stack, &stack));
  TB_TRY(tb_map_put(waiters, (uint64_t)site << 32 | stack, &place, &fresh));
  if (fresh) {
    TB_TRY(tb_arena_alloc(arena, sizeof(*w), &w));
    *w = (struct waiters){ .goroutine = g->id };
    *place = (uintptr_t)w;
  }
  w = (struct waiters *)(uintptr_t)*place;
  w->count++;
  to_ns wait = a->spans->now - g->since;
  if (wait <= w->oldest) return TB_OK;
  w->oldest = wait;
  w->goroutine = g->id;
  return TB_OK;
}

static tb_rc find_waiters(struct to_analyses *a, struct tb_arena *arena,
                          const struct suspect_site *site, struct tb_map *waiters) {
  const struct to_spans *spans = a->spans;

  for (uint32_t slot = 0; slot < spans->slots_end; slot++) {
    const struct to_life *g = &spans->lives[slot];
    if (g->life == 0 || g->state != TO_GO_WAITING) continue;
    uint32_t of = a->sums.goroutine[slot].site;
    if (site[of].limit == 0 || spans->now - g->since <= site[of].limit) continue;
    TB_TRY(add_waiter(a, arena, waiters, g, of));
  }
  return TB_OK;
}

/* One place of creation, and one stack where goroutines created there wait. */
struct suspects {
  uint32_t site, stack;
  uint32_t rise;
  const struct waiters *waiters;
  to_ns median; /* -1: unknown */
};
typedef tb_rc suspects_fn(struct to_analyses *a, void *self, const struct suspects *suspects);

static tb_rc each_of(struct to_analyses *a, const struct suspect_site *site,
                     const struct tb_map *waiters, suspects_fn *each, void *self) {
  uint64_t key, value;

  for (size_t i = 0; tb_map_next(waiters, &i, &key, &value);) {
    uint32_t at = (uint32_t)(key >> 32);
    const uint32_t *alive = state(a)->site[at].alive;
    struct suspects s = { .site = at,
                          .stack = (uint32_t)key,
                          .rise = alive[READINGS - 1] - alive[0],
                          .waiters = (const struct waiters *)(uintptr_t)value,
                          .median = site[at].median };
    if (s.waiters->count >= s.rise / SHARE_OF_RISE) TB_TRY(each(a, self, &s));
  }
  return TB_OK;
}

static tb_rc each_suspect(struct to_analyses *a, struct tb_arena *arena, const struct to_view *view,
                          suspects_fn *each, void *self) {
  struct suspect_site *site;
  struct tb_map waiters;

  TB_TRY(find_suspects(a, arena, view, &site));
  if (site == NULL) return TB_OK;
  tb_map_init(&waiters, a->mem, tb_seed());
  tb_rc rc = find_waiters(a, arena, site, &waiters);
  if (rc == TB_OK) rc = each_of(a, site, &waiters, each, self);
  tb_map_fini(&waiters);
  return rc;
}

static tb_rc add_row(struct to_analyses *a, void *self, const struct suspects *s) {
  struct to_draft *d = self;
  const struct to_sums_site *of = &a->sums.site[s->site];
  struct to_draft_value *row, *suspects = to_draft_figure(d, SUSPECTS);

  TB_TRY(to_draft_new_row(d, SUSPECT_SITES, &row));
  to_draft_stack(&row[SITE], to_stack_table_stack(a->stacks, of->stack));
  to_draft_stack(&row[STACK], to_stack_table_stack(a->stacks, s->stack));
  to_draft_number(&row[COUNT], s->waiters->count);
  to_draft_number(&row[OLDEST], s->waiters->oldest);
  to_draft_number(&row[ALIVE], of->alive);
  to_draft_number(&row[ROSE], s->rise);
  if (s->median >= 0) to_draft_number(&row[MEDIAN], s->median);
  to_draft_number(suspects, suspects->value.number + s->waiters->count);
  return TB_OK;
}

static tb_rc leak_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  unsigned readings = state(a)->readings;

  to_draft_number(to_draft_figure(d, SUSPECTS), 0);
  to_draft_number(to_draft_figure(d, READ), readings == 0 ? 0 : readings - 1);
  if (readings < READINGS)
    return to_draft_note(d, "Leaks can be found after the first minute of the trace.");
  return each_suspect(a, d->arena, view, add_row, d);
}

static const char *place_of(const struct to_frame *frame) {
  return frame == NULL || frame->function.len == 0 ? "an unknown place" : frame->function.data;
}

static tb_rc find_leak(struct to_analyses *a, void *self, const struct suspects *s) {
  enum { WORDS_BYTES = 400 };
  const struct to_finding_sink *sink = self;
  const struct to_callstack *stack = to_stack_table_stack(a->stacks, s->stack),
                            *site = to_stack_table_stack(a->stacks, a->sums.site[s->site].stack);
  char *words;

  TB_TRY(tb_arena_alloc(&a->report_arena, WORDS_BYTES, &words));
  bool begins = a->sums.site[s->site].begins;
  int n = snprintf(words, WORDS_BYTES,
                   "%s %.120s, they wait at %.120s, the longest for %.0f s; %" PRIu32
                   " more live than 50 s before",
                   begins ? "created by the runtime, they begin in" : "created at",
                   place_of(to_callstack_own(site)), place_of(to_callstack_own(stack)),
                   (double)s->waiters->oldest / 1e9, s->rise);
  sink->finding(sink->self, &(struct to_finding){ .kind = TO_FINDING_LEAK,
                                                  .key = (uint64_t)s->site << 32 | s->stack,
                                                  .since = a->spans->now - s->waiters->oldest,
                                                  .goroutine = s->waiters->goroutine,
                                                  .count = s->waiters->count,
                                                  .stack = stack,
                                                  .words = { words, (size_t)n } });
  return TB_OK;
}

/* Readings change every ten seconds. Most calls only find that nothing has risen. */
static tb_rc leak_findings(struct to_analyses *a, const struct to_finding_sink *sink) {
  struct to_view view;
  bool any = false;

  if (state(a)->readings < READINGS) return TB_OK;
  for (size_t i = 0; i < a->sums.sites && !any; i++) any = rises(state(a), i);
  if (!any) return TB_OK;
  TB_TRY(to_windows_view(&a->windows, TO_WINDOW_ALL, &view));
  return each_suspect(a, &a->report_arena, &view, find_leak, (void *)(uintptr_t)sink);
}

const struct to_analysis_ops to__analysis_leak = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_leak),
  .fini = leak_fini,
  .slot = leak_slot,
  .epoch = leak_epoch,
  .report = leak_report,
  .findings = leak_findings,
};
