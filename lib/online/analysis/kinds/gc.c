/* SPDX-License-Identifier: Apache-2.0 */
/* Garbage collection: its cycles, from GCBegin to GCEnd, mark assists of goroutines, and the share of the Ps that was left to the
 * program (online/analysis/mutator.h).
 *
 * Scheduling events are read only for goroutines that worked for the collector, and without every_curve only while a cycle
 * marks: at other times none works for it. */
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "online/analysis/analysis_state.h"
#include "online/analysis/mutator.h"
#include "online/event/text.h"

enum { CYCLES_KEPT = 64 };
#define NO_CURVES                                                                                  \
  "mmu_with_sweep and mmu_per_proc cost much, so they are in a report of gc alone: tracectl "      \
  "report gc FILE"
#define ASSISTS_SHARE 0.1 /* share of the running time that is a finding */

struct to_gc_cycle {
  to_ns begin, end;
  bool open, begin_known;
  int64_t sweep_termination_ns, mark_termination_ns, assist_ns;
  uint64_t worked_ns, idled_ns; /* while the cycle is open: the workers' times before it began */
  int64_t before, after, goal;  /* bytes; -1: not known */
};

struct gc_state {
  struct to_mutator mutator;
  uint32_t cycle, assist, sweep, background, idle; /* series */
  uint32_t *of_entry; /* series of assists + 1, by entry; 0: none yet */
  size_t of_entries;
  struct to_gc_cycle kept[CYCLES_KEPT]; /* a ring; the last one is (cycles - 1) % CYCLES_KEPT */
  uint64_t cycles;
  int64_t heap, goal; /* bytes; -1: not known */
  bool watches;       /* scheduling events are read */
  struct to__over over;
};

static struct gc_state *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_GC];
}

/* ---- what it says ---- */

enum { CYCLE, WALL, BACKGROUND, IDLE, ASSIST, SWEEP, LIVE, GOAL, LOWEST_10MS, JOINED, FIGURES };
static const struct to_field figure[FIGURES] = {
  [CYCLE] = { "cycles", TO_VALUE_DISTRIBUTION,
              .about = "Cycles of the garbage collector that ended: how long each took.",
              .metric = "trace_gc_cycle_seconds" },
  [WALL] = { "wall_share", TO_VALUE_SHARE,
             .about = "Share of the window in which a cycle was under way.",
             .metric = "trace_gc_wall_share", .of_time = true },
  [BACKGROUND] = { "background_ns", TO_VALUE_NS,
                   .about =
                       "Time of Ps that the collector's own workers took in cycles that ended." },
  [IDLE] = { "idle_ns", TO_VALUE_NS,
             .about = "Time that its workers ran on Ps that had nothing else to do." },
  [ASSIST] = { "assist", TO_VALUE_DISTRIBUTION,
               .about = "Mark assists: goroutines that allocate are made to help the collector.",
               .metric = "trace_gc_assist_seconds" },
  [SWEEP] = { "sweep", TO_VALUE_DISTRIBUTION,
              .about = "Goroutines that allocate clear up memory first, which cycles left free.",
              .metric = "trace_gc_sweep_seconds" },
  [LIVE] = { "heap_bytes", TO_VALUE_BYTES, .about = "Size of the heap's objects now.",
             .over_time = TO_OVER_LAST },
  [GOAL] = { "heap_goal_bytes", TO_VALUE_BYTES,
             .about = "The collector means to end its next cycle before the heap is larger.",
             .over_time = TO_OVER_LAST },
  [LOWEST_10MS] = { "mutator_10ms_share", TO_VALUE_SHARE,
                    .about = "What the program had of its Ps in the worst 10 ms.",
                    .metric = "trace_gc_mutator_10ms_share" },
  [JOINED] = { "joined_steps", TO_VALUE_COUNT,
               .about = "Changes too many to keep: if not 0, utilisations are lower bounds.",
               .over_time = TO_OVER_LAST },
};

enum {
  LIST_BEGIN,
  LIST_LENGTH,
  LIST_OPEN,
  LIST_LOWER_BOUND,
  LIST_SWEEP_TERMINATION,
  LIST_MARK_TERMINATION,
  LIST_BACKGROUND,
  LIST_IDLE,
  LIST_ASSIST,
  LIST_BEFORE,
  LIST_AFTER,
  LIST_GOAL,
  LIST_COLUMNS
};
static const struct to_field list_column[LIST_COLUMNS] = {
  [LIST_BEGIN] = { "start_ns", TO_VALUE_TIME },
  [LIST_LENGTH] = { "duration_ns", TO_VALUE_NS },
  [LIST_OPEN] = { "open", TO_VALUE_FLAG, .about = "It goes on." },
  [LIST_LOWER_BOUND] = { "lower_bound", TO_VALUE_FLAG,
                         .about = "It began earlier: before the first sync." },
  [LIST_SWEEP_TERMINATION] = { "sweep_termination_ns", TO_VALUE_NS,
                               .about = "The stop-the-world pause at its begin." },
  [LIST_MARK_TERMINATION] = { "mark_termination_ns", TO_VALUE_NS,
                              .about = "The stop-the-world pause at its end." },
  [LIST_BACKGROUND] = { "background_ns", TO_VALUE_NS,
                        .about = "Time of Ps that its workers took, all together." },
  [LIST_IDLE] = { "idle_ns", TO_VALUE_NS,
                  .about = "Time that its workers ran on Ps that had nothing else to do." },
  [LIST_ASSIST] = { "assist_ns", TO_VALUE_NS, .about = "Mark assists that began in it, together." },
  [LIST_BEFORE] = { "heap_before_bytes", TO_VALUE_BYTES },
  [LIST_AFTER] = { "heap_after_bytes", TO_VALUE_BYTES },
  [LIST_GOAL] = { "heap_goal_bytes", TO_VALUE_BYTES, .about = "The goal when it began." },
};

enum { KEY, KEY_ASSIST, KEY_COLUMNS };
static const struct to_field entry_column[KEY_COLUMNS] = {
  [KEY] = { "entry", TO_VALUE_TEXT, .about = "The function that the goroutine began with." },
  [KEY_ASSIST] = { "assist", TO_VALUE_DISTRIBUTION },
};

enum { MMU_WINDOW, MMU_AS_GO, MMU_EXACT, MMU_COLUMNS };
static const struct to_field mmu_column[MMU_COLUMNS] = {
  [MMU_WINDOW] = { "window_ns", TO_VALUE_NS, .about = "The length of time that is looked at." },
  [MMU_AS_GO] = { "utilization", TO_VALUE_SHARE,
                  .about = "As Go's tools compute it: they count a mark worker that was "
                           "started twice for ever." },
  [MMU_EXACT] = { "exact_utilization", TO_VALUE_SHARE,
                  .about = "The same with mark workers only while they run." },
};

/* Tables by P, without sweeps and with them. */
enum { PROC_WINDOW, PROC_AS_GO, PROC_EXACT, PROC_SWEEP_AS_GO, PROC_SWEEP_EXACT, PROC_COLUMNS };
static const struct to_field proc_column[PROC_COLUMNS] = {
  [PROC_WINDOW] = { "window_ns", TO_VALUE_NS, .about = "The length of time that is looked at." },
  [PROC_AS_GO] = { "utilization", TO_VALUE_SHARE, .about = "As Go's tools compute it." },
  [PROC_EXACT] = { "exact_utilization", TO_VALUE_SHARE,
                   .about = "The same with mark workers only while they run." },
  [PROC_SWEEP_AS_GO] = { "with_sweep_utilization", TO_VALUE_SHARE,
                         .about = "As utilization, and sweeps take from it, too." },
  [PROC_SWEEP_EXACT] = { "with_sweep_exact_utilization", TO_VALUE_SHARE,
                         .about = "As exact_utilization, and sweeps take from it, too." },
};

enum { BY_ENTRY, MMU, CYCLE_LIST, MMU_SWEEP, MMU_PROC, TABLES };
#define MMU_TABLE(its_name, its_about, its_columns, its_column)                                    \
  {                                                                                                \
    .name = its_name, .about = its_about, .order_about = "shortest first", .keys = 1,              \
    .columns = its_columns, .column = its_column, .order = { { MMU_WINDOW + 1, .rising = true } }, \
    .is_list = true                                                                                \
  }
static const struct to_table_schema table[TABLES] = {
  [BY_ENTRY] = { .name = "by_entry",
                 .about = "Mark assists by entry function",
                 .order_about = "most time first",
                 .keys = 1,
                 .columns = KEY_COLUMNS,
                 .column = entry_column,
                 .order = { { KEY_ASSIST + 1 } } },
  [MMU] = MMU_TABLE("mmu", "What the program had of its Ps in the worst stretch of each length",
                    MMU_COLUMNS, mmu_column),
  [MMU_SWEEP] =
      MMU_TABLE("mmu_with_sweep", "The same where sweeps take from it, too (gc of a file only)",
                MMU_COLUMNS, mmu_column),
  [MMU_PROC] =
      MMU_TABLE("mmu_per_proc", "What it had of the P that had the least (gc of a file only)",
                PROC_COLUMNS, proc_column),
  [CYCLE_LIST] = { .name = "cycles",
                   .about = "The last cycles",
                   .order_about = "latest first",
                   .keys = 1,
                   .columns = LIST_COLUMNS,
                   .column = list_column,
                   .order = { { LIST_BEGIN + 1 } },
                   .is_list = true },
};

static tb_rc gc_init(struct to_analyses *a) {
  static const uint8_t sweeps[] = { TW_EV_GC_SWEEP_ACTIVE, TW_EV_GC_SWEEP_BEGIN,
                                    TW_EV_GC_SWEEP_END };
  struct gc_state *s = state(a);
  uint32_t *const series[] = { &s->cycle, &s->assist, &s->sweep, &s->background, &s->idle };

  TB_TRY(to_mutator_init(&s->mutator, a->mem, a->config.every_curve));
  for (size_t i = 0; i < sizeof(sweeps) && a->config.every_curve; i++)
    a->event_takers[sweeps[i]] |= UINT32_C(1) << TO_ANALYSIS_GC;
  s->heap = s->goal = -1;
  for (size_t i = 0; i < sizeof(series) / sizeof(*series); i++)
    TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, series[i]));
  return TB_OK;
}

static void gc_fini(struct to_analyses *a) {
  to_mutator_fini(&state(a)->mutator);
  tb_mem_free(a->mem, state(a)->of_entry, state(a)->of_entries * sizeof(uint32_t));
}

/* ---- cycles ---- */

static struct to_gc_cycle *last_cycle(struct gc_state *s) {
  return s->cycles == 0 ? NULL : &s->kept[(s->cycles - 1) % CYCLES_KEPT];
}

/* Returns the open or the last cycle at this time; NULL: it is not kept. */
static struct to_gc_cycle *cycle_at(struct gc_state *s, to_ns time) {
  for (uint64_t i = s->cycles; i > 0 && s->cycles - i < CYCLES_KEPT; i--) {
    struct to_gc_cycle *cycle = &s->kept[(i - 1) % CYCLES_KEPT];
    if (cycle->begin <= time) return cycle;
  }
  return NULL;
}

static void begin_cycle(struct to_analyses *a, to_ns begin, bool known) {
  struct gc_state *s = state(a);
  struct to_gc_cycle *cycle = last_cycle(s);

  if (cycle != NULL && cycle->open) return; /* a generation restates it */
  s->cycles++;
  *last_cycle(s) = (struct to_gc_cycle){ .begin = begin,
                                         .open = true,
                                         .begin_known = known,
                                         .worked_ns = s->mutator.worked_ns,
                                         .idled_ns = s->mutator.idled_ns,
                                         .before = s->heap,
                                         .after = -1,
                                         .goal = s->goal };
}

static void end_cycle(struct to_analyses *a, to_ns end) {
  struct gc_state *s = state(a);
  struct to_gc_cycle *cycle = last_cycle(s);

  if (cycle == NULL || !cycle->open) return;
  cycle->open = false;
  cycle->end = end;
  cycle->after = s->heap;
  cycle->worked_ns = s->mutator.worked_ns - cycle->worked_ns;
  cycle->idled_ns = s->mutator.idled_ns - cycle->idled_ns;
  to_windows_sum(&a->windows, s->background, end - (to_ns)cycle->worked_ns, end, 0, false);
  to_windows_sum(&a->windows, s->idle, end - (to_ns)cycle->idled_ns, end, 0, false);
}

/* Scheduling events are read while a cycle marks, and always with every_curve. */
static void watch(struct to_analyses *a) {
  struct to_mutator *m = &state(a)->mutator;
  bool watches = to_mutator_watches(m);

  if (watches == state(a)->watches) return;
  state(a)->watches = watches;
  to__analysis_follow(a, TO_ANALYSIS_GC, watches ? &m->follows : NULL);
}

static int64_t bytes_of(const struct to_event *ev) {
  return ev->args[0] > INT64_MAX ? INT64_MAX : (int64_t)ev->args[0];
}

static tb_rc gc_event(struct to_analyses *a, const struct to_generation *gen,
                      const struct to_event *ev) {
  struct gc_state *s = state(a);
  struct to_gc_cycle *cycle;

  switch (ev->type) {
  case TW_EV_HEAP_ALLOC: s->heap = bytes_of(ev); return TB_OK;
  case TW_EV_HEAP_GOAL: s->goal = bytes_of(ev); return TB_OK;
  default: break;
  }
  TB_TRY(to_mutator_event(&s->mutator, gen, ev));
  watch(a);
  switch (ev->type) {
  case TW_EV_GC_BEGIN: begin_cycle(a, ev->time, true); return TB_OK;
  case TW_EV_GC_ACTIVE: begin_cycle(a, ev->time, false); return TB_OK;
  case TW_EV_GC_END:
    cycle = last_cycle(s);
    if (cycle != NULL && cycle->open)
      TB_TRY(to_windows_add(&a->windows, s->cycle, cycle->begin, ev->time, 0, !cycle->begin_known));
    end_cycle(a, ev->time);
    return TB_OK;
  default: return TB_OK;
  }
}

/* ---- assists, sweeps, stops ---- */

static tb_rc find_entry(struct to_analyses *a, uint32_t entry, uint32_t *out_series) {
  struct gc_state *s = state(a);

  while (s->of_entries <= entry) {
    size_t room = s->of_entries;
    TB_TRY(TB_MEM_GROW(a->mem, s->of_entry, room, s->of_entries));
    memset(s->of_entry + s->of_entries, 0, (room - s->of_entries) * sizeof(*s->of_entry));
    s->of_entries = room;
  }
  if (s->of_entry[entry] == 0) {
    TB_TRY(to_windows_series(&a->windows, s->assist, out_series));
    s->of_entry[entry] = *out_series + 1;
  }
  *out_series = s->of_entry[entry] - 1;
  return TB_OK;
}

static tb_rc take_assist(struct to_analyses *a, const struct to_generation *gen,
                         const struct to_span *span) {
  struct to_gc_cycle *cycle = cycle_at(state(a), span->from);
  uint32_t entry, series;

  if (cycle != NULL) cycle->assist_ns += span->until - span->from;
  TB_TRY(to_span_sums_entry_of(&a->sums, gen, span->stack, &entry));
  TB_TRY(find_entry(a, entry, &series));
  return to_windows_add(&a->windows, series, span->from, span->until, 0, !span->from_known);
}

static void take_stop(struct to_analyses *a, const struct to_span *span) {
  struct to_gc_cycle *cycle = cycle_at(state(a), span->from);
  to_ns ns = span->until - span->from;

  if (cycle == NULL || span->more == NULL || (!cycle->open && span->from > cycle->end)) return;
  if (to_string_is(span->more->name, "GC sweep termination")) cycle->sweep_termination_ns += ns;
  if (to_string_is(span->more->name, "GC mark termination")) cycle->mark_termination_ns += ns;
}

static tb_rc gc_span(struct to_analyses *a, const struct to_generation *gen,
                     const struct to_span *span) {
  switch (span->state) {
  case TO_RANGE_GC_MARK_ASSIST: return take_assist(a, gen, span);
  case TO_RANGE_GC_SWEEP:
    return to_windows_add(&a->windows, state(a)->sweep, span->from, span->until, 0,
                          !span->from_known);
  case TO_RANGE_STW: take_stop(a, span); return TB_OK;
  default: return TB_OK;
  }
}

static tb_rc gc_slot(struct to_analyses *a) {
  return to_mutator_slot(&state(a)->mutator, &a->windows);
}

static void gc_epoch(struct to_analyses *a) {
  struct gc_state *s = state(a);
  struct to_gc_cycle *cycle = last_cycle(s);

  if (cycle != NULL && cycle->open) s->cycles--; /* after a hole the cycle's end is not known */
  to_mutator_epoch(&s->mutator);
  watch(a);
  s->heap = s->goal = -1;
  s->over = (struct to__over){ 0 };
}

/* ---- the report ---- */

static void set_bytes(struct to_draft_value *value, int64_t bytes) {
  if (bytes >= 0) to_draft_number(value, bytes);
}

static tb_rc add_cycle(struct to_analyses *a, struct to_draft *d, const struct to_gc_cycle *cycle) {
  const struct to_mutator *m = &state(a)->mutator;
  to_ns until = cycle->open ? d->view->until : cycle->end;
  uint64_t worked = cycle->open ? m->worked_ns - cycle->worked_ns : cycle->worked_ns;
  uint64_t idled = cycle->open ? m->idled_ns - cycle->idled_ns : cycle->idled_ns;
  struct to_draft_value *row;

  TB_TRY(to_draft_new_row(d, CYCLE_LIST, &row));
  to_draft_number(&row[LIST_BEGIN], cycle->begin);
  to_draft_number(&row[LIST_LENGTH], until - cycle->begin);
  to_draft_number(&row[LIST_OPEN], cycle->open);
  to_draft_number(&row[LIST_LOWER_BOUND], !cycle->begin_known);
  to_draft_number(&row[LIST_SWEEP_TERMINATION], cycle->sweep_termination_ns);
  to_draft_number(&row[LIST_MARK_TERMINATION], cycle->mark_termination_ns);
  to_draft_number(&row[LIST_BACKGROUND], (int64_t)worked);
  to_draft_number(&row[LIST_IDLE], (int64_t)idled);
  to_draft_number(&row[LIST_ASSIST], cycle->assist_ns);
  set_bytes(&row[LIST_BEFORE], cycle->before);
  set_bytes(&row[LIST_AFTER], cycle->after);
  set_bytes(&row[LIST_GOAL], cycle->goal);
  return TB_OK;
}

static tb_rc report_cycles(struct to_analyses *a, struct to_draft *d) {
  struct gc_state *s = state(a);
  bool all = a->report.window == TO_WINDOW_ALL;

  for (uint64_t i = s->cycles; i > 0 && s->cycles - i < CYCLES_KEPT; i--) {
    const struct to_gc_cycle *cycle = &s->kept[(i - 1) % CYCLES_KEPT];
    if (all || cycle->open || cycle->end >= d->view->from) TB_TRY(add_cycle(a, d, cycle));
  }
  return TB_OK;
}

/* Fills a column for each way of a set. */
static bool fill(struct to_analyses *a, struct to_draft *d, enum to_mutator_set set,
                 unsigned length, struct to_draft_value *column) {
  to_ns until = a->ended > d->view->until ? a->ended : d->view->until;
  double lowest;

  for (unsigned way = 0; way < TO_MUTATOR_WAYS; way++) {
    if (!to_mutator_lowest(&state(a)->mutator, set, (enum to_mutator_way)way, d->view,
                           a->report.window, until, length, &lowest))
      return false;
    to_draft_share(&column[way], lowest);
  }
  return true;
}

static tb_rc report_all_procs(struct to_analyses *a, struct to_draft *d, unsigned in,
                              enum to_mutator_set set) {
  struct to_draft_value share[TO_MUTATOR_WAYS] = { 0 }, *row;

  for (unsigned i = 0; i < TO_LENGTHS; i++) {
    if (!fill(a, d, set, i, share)) continue;
    TB_TRY(to_draft_new_row(d, in, &row));
    to_draft_number(&row[MMU_WINDOW], to_utilization_length[i]);
    memcpy(&row[MMU_AS_GO], share, sizeof(share));
    if (set == TO_MUTATOR_PLAIN && to_utilization_length[i] == 10000000)
      to_draft_share(to_draft_figure(d, LOWEST_10MS), share[TO_EXACT].value.share);
  }
  return TB_OK;
}

static tb_rc report_each_proc(struct to_analyses *a, struct to_draft *d) {
  struct to_draft_value share[2][TO_MUTATOR_WAYS] = { 0 }, *row;

  for (unsigned i = 0; i < TO_LENGTHS; i++) {
    if (!fill(a, d, TO_MUTATOR_PROC, i, share[0])) continue;
    if (!fill(a, d, TO_MUTATOR_PROC_SWEEP, i, share[1])) continue;
    TB_TRY(to_draft_new_row(d, MMU_PROC, &row));
    to_draft_number(&row[PROC_WINDOW], to_utilization_length[i]);
    memcpy(&row[PROC_AS_GO], share, sizeof(share));
  }
  return TB_OK;
}

static tb_rc report_assists(struct to_analyses *a, struct to_draft *d) {
  const struct gc_state *s = state(a);
  struct to_draft_value *row;

  for (uint32_t entry = 0; entry < s->of_entries; entry++) {
    uint32_t series = s->of_entry[entry] - 1;
    if (s->of_entry[entry] == 0 || to_view_cell(d->view, series) == NULL) continue;
    TB_TRY(to_draft_series(d, to_draft_figure(d, ASSIST), series));
    if (entry == TO_ENTRY_OTHER)
      TB_TRY(to_draft_other(d, BY_ENTRY, &row));
    else
      TB_TRY(to_draft_new_row(d, BY_ENTRY, &row));
    to_draft_text(&row[KEY], to_span_sums_entry(&a->sums, entry));
    TB_TRY(to_draft_series(d, &row[KEY_ASSIST], series));
  }
  return TB_OK;
}

static tb_rc gc_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  struct gc_state *s = state(a);
  const struct to_gc_cycle *last = last_cycle(s);
  bool is_open = last != NULL && last->open;
  int64_t background = (int64_t)to_view_sum(view, s->background).total_ns;

  TB_TRY(to_draft_series(d, to_draft_figure(d, CYCLE), s->cycle));
  TB_TRY(to_draft_series(d, to_draft_figure(d, SWEEP), s->sweep));
  to_draft_share(to_draft_figure(d, WALL),
                 to__share_of_wall(view, s->cycle, is_open ? last->begin : view->until));
  to_draft_number(to_draft_figure(d, BACKGROUND), background);
  to_draft_number(to_draft_figure(d, IDLE), (int64_t)to_view_sum(view, s->idle).total_ns);
  set_bytes(to_draft_figure(d, LIVE), s->heap);
  set_bytes(to_draft_figure(d, GOAL), s->goal);
  TB_TRY(report_assists(a, d));
  TB_TRY(report_all_procs(a, d, MMU, TO_MUTATOR_PLAIN));
  TB_TRY(report_all_procs(a, d, MMU_SWEEP, TO_MUTATOR_SWEEP));
  TB_TRY(report_each_proc(a, d));
  to_draft_number(to_draft_figure(d, JOINED), (int64_t)to_mutator_joined(&s->mutator));
  if (!a->config.is_live && !a->config.every_curve) TB_TRY(to_draft_note(d, NO_CURVES));
  return report_cycles(a, d);
}

/* ---- findings ---- */

/* Finds the entry function whose goroutines assisted most in the last ten seconds. */
static tb_rc find_helper(struct to_analyses *a, struct to_string *out) {
  const struct gc_state *s = state(a);
  struct to_view view;
  uint64_t most = 0;

  *out = (struct to_string){ 0 };
  TB_TRY(to_windows_view(&a->windows, TO_WINDOW_10S, &view));
  for (uint32_t entry = 0; entry < s->of_entries; entry++) {
    uint64_t ns = s->of_entry[entry] == 0 ? 0 : to_view_sum(&view, s->of_entry[entry] - 1).total_ns;
    if (ns <= most) continue;
    most = ns;
    *out = to_span_sums_entry(&a->sums, entry);
  }
  return TB_OK;
}

static tb_rc gc_findings(struct to_analyses *a, const struct to_finding_sink *sink) {
  enum { WORDS_BYTES = 300 };
  const struct to_state_count *running = &a->spans->state_count[TO_GO_RUNNING];
  struct gc_state *s = state(a);
  to_ns now = to_spans_now(a->spans);
  struct to_string helper;
  char *words;

  if (!to__over_look(&s->over, now, to_mutator_helped_ns(&s->mutator, now),
                     running->area + running->n * (uint64_t)now, ASSISTS_SHARE))
    return TB_OK;
  TB_TRY(find_helper(a, &helper));
  TB_TRY(tb_arena_alloc(&a->report_arena, WORDS_BYTES, &words));
  int n = snprintf(words, WORDS_BYTES,
                   "%.0f %% of the time that goroutines ran went into helping the garbage "
                   "collector%s%.120s",
                   100 * s->over.share, helper.len > 0 ? ", most of it in goroutines of " : "",
                   helper.len > 0 ? helper.data : "");
  sink->finding(sink->self, &(struct to_finding){ .kind = TO_FINDING_ASSISTS,
                                                  .since = s->over.since,
                                                  .goroutine = TO_NONE,
                                                  .words = { words, (size_t)n } });
  return TB_OK;
}

const struct to_analysis_ops to__analysis_gc = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct gc_state),
  .spans = TO_WANT(RANGE),
  .events = TO_ANALYSIS_EVENT(PROCS_CHANGE) | TO_ANALYSIS_EVENT(STW_BEGIN) |
            TO_ANALYSIS_EVENT(STW_END) | TO_ANALYSIS_EVENT(GC_ACTIVE) |
            TO_ANALYSIS_EVENT(GC_BEGIN) | TO_ANALYSIS_EVENT(GC_END) |
            TO_ANALYSIS_EVENT(GC_MARK_ASSIST_ACTIVE) | TO_ANALYSIS_EVENT(GC_MARK_ASSIST_BEGIN) |
            TO_ANALYSIS_EVENT(GC_MARK_ASSIST_END) | TO_ANALYSIS_EVENT(HEAP_ALLOC) |
            TO_ANALYSIS_EVENT(HEAP_GOAL) | TO_ANALYSIS_EVENT(GO_LABEL) | TO_ANALYSIS_EVENT(SYNC),
  .init = gc_init,
  .fini = gc_fini,
  .span = gc_span,
  .event = gc_event,
  .slot = gc_slot,
  .epoch = gc_epoch,
  .report = gc_report,
  .findings = gc_findings,
};
