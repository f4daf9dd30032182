/* SPDX-License-Identifier: Apache-2.0 */
/* Times of goroutines by entry function, as in Go's summaries of goroutines; their number, and the places where they
 * were created.
 *
 * Sums of ended spans come from online/spans/sums.h. Open ones are added up in one pass over the live goroutines, once for
 * all reports between two events. */
#include <string.h>

#include "online/analysis/analysis_state.h"
#include "online/analysis/kinds/before.h"
#include "online/event/tables.h"

/* Sums over the live goroutines with one entry function. */
struct open_entry {
  uint64_t total, running, runnable, call, call_lost, without_p;
  uint64_t waiting[TO_REASONS_MAX], range[TO_SUMS_RANGES];
  to_ns oldest;
};

struct goroutines_state {
  uint32_t in_state, most[TO_GO_SYSCALL + 1], area[TO_GO_SYSCALL + 1]; /* series */
  uint64_t counted[TO_GO_SYSCALL + 1]; /* part of area that has been counted */
  struct to_spans_states states;
  struct open_entry *entry; /* by entry function */
  to_ns *oldest;            /* birth, by place of creation */
  size_t entries, sites;
  uint64_t walked_at; /* events when entry and oldest were made */
  to_ns walked_until;
  bool walked;
};

static struct goroutines_state *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_GOROUTINES];
}

enum { ALIVE, CREATED, ENDED, CREATED_RATE, ENDED_RATE, FIGURES };
static const struct to_field figure[FIGURES] = {
  [ALIVE] = { "alive", TO_VALUE_COUNT, .about = "Goroutines that live now.",
              .over_time = TO_OVER_LAST },
  [CREATED] = { "created", TO_VALUE_COUNT, .about = "Goroutines that were created." },
  [ENDED] = { "life", TO_VALUE_DISTRIBUTION,
              .about = "How long goroutines that have ended lived." },
  [CREATED_RATE] = { "created_per_s", TO_VALUE_COUNT,
                     .about = "Goroutines created per second of the window, rounded.",
                     .over_time = TO_OVER_MEAN },
  [ENDED_RATE] = { "ended_per_s", TO_VALUE_COUNT,
                   .about = "Goroutines that ended per second of the window, rounded.",
                   .over_time = TO_OVER_MEAN },
};

enum { STATE, STATE_NOW, STATE_MEAN, STATE_MOST, STATE_TIME, STATE_COLUMNS };
static const struct to_field state_column[STATE_COLUMNS] = {
  [STATE] = { "state", TO_VALUE_TEXT, .about = "What the goroutines do.", .label = "state" },
  [STATE_NOW] = { "now", TO_VALUE_COUNT, .about = "Goroutines in this state now.",
                  .metric = "trace_goroutines", .over_time = TO_OVER_LAST },
  [STATE_MEAN] = { "mean", TO_VALUE_COUNT, .about = "Their number on average, rounded.",
                   .over_time = TO_OVER_MEAN },
  [STATE_MOST] = { "max", TO_VALUE_COUNT, .about = "The most there were at once.",
                   .over_time = TO_OVER_GREATEST },
  [STATE_TIME] = { "time_ns", TO_VALUE_NS, .about = "Their time in this state, added up." },
};
enum {
  ENTRY,
  ENTRY_COUNT,
  ENTRY_TOTAL,
  ENTRY_EXECUTION,
  ENTRY_SCHED_WAIT,
  ENTRY_BLOCK,
  ENTRY_CALL,
  ENTRY_CALL_BLOCK,
  ENTRY_UNKNOWN,
  ENTRY_WITHOUT_P,
  ENTRY_ALIVE,
  ENTRY_OLDEST,
  ENTRY_ASSIST,
  ENTRY_SWEEP,
  ENTRY_STOP,
  ENTRY_COLUMNS
};
static const struct to_field entry_column[ENTRY_COLUMNS] = {
  [ENTRY] = { "entry", TO_VALUE_TEXT, .about = "The function that the goroutines began with." },
  [ENTRY_COUNT] = { "count", TO_VALUE_COUNT, .about = "Goroutines." },
  [ENTRY_TOTAL] = { "total_ns", TO_VALUE_NS, .about = "Time that they existed." },
  [ENTRY_EXECUTION] = { "execution_ns", TO_VALUE_NS, .about = "Time that they ran." },
  [ENTRY_SCHED_WAIT] = { "sched_wait_ns", TO_VALUE_NS, .about = "Time that they waited for a P." },
  [ENTRY_BLOCK] = { "block_ns", TO_VALUE_NS, .about = "Time that they waited for something else." },
  [ENTRY_CALL] = { "syscall_ns", TO_VALUE_NS, .about = "Time in system calls, with their P." },
  [ENTRY_CALL_BLOCK] = { "syscall_block_ns", TO_VALUE_NS,
                         .about = "Time in system calls after they had lost their P." },
  [ENTRY_UNKNOWN] = { "unknown_ns", TO_VALUE_NS, .about = "The rest of the time." },
  [ENTRY_WITHOUT_P] = { "without_p_ns", TO_VALUE_NS,
                        .about =
                            "Time in system calls without a P; it is part of the columns above." },
  [ENTRY_ALIVE] = { "alive", TO_VALUE_COUNT, .about = "Those that live now.",
                    .over_time = TO_OVER_LAST },
  [ENTRY_OLDEST] = { "oldest_ns", TO_VALUE_NS, .about = "Age of the oldest that lives.",
                     .greatest = true, .over_time = TO_OVER_LAST },
  [ENTRY_ASSIST] = { "gc_assist_ns", TO_VALUE_NS,
                     .about = "Time in mark assists; it is a part of the "
                              "times above, as the next two are." },
  [ENTRY_SWEEP] = { "gc_sweep_ns", TO_VALUE_NS, .about = "Time sweeping." },
  [ENTRY_STOP] = { "stw_ns", TO_VALUE_NS, .about = "Time that they had the world stopped." },
};
enum { REASON_ENTRY, REASON, REASON_BLOCK, REASON_ENDED, REASON_COLUMNS };
static const struct to_field reason_column[REASON_COLUMNS] = {
  [REASON_ENTRY] = { "entry", TO_VALUE_TEXT, .about = "The function they began with." },
  [REASON] = { "reason", TO_VALUE_TEXT, .about = "What they waited for." },
  [REASON_BLOCK] = { "block_ns", TO_VALUE_NS, .about = "Time that they waited for it." },
  [REASON_ENDED] = { "wait", TO_VALUE_DISTRIBUTION, .about = "Waits that have ended." },
};
enum { SITE, SITE_ALIVE, SITE_OLDEST, SITE_CREATED, SITE_LIFE, SITE_COLUMNS };
static const struct to_field site_column[SITE_COLUMNS] = {
  [SITE] = { "creation_stack", TO_VALUE_STACK,
             .about =
                 "Where the goroutines were created; where they begin if the runtime created them "
                 "(time.AfterFunc)." },
  [SITE_ALIVE] = { "alive", TO_VALUE_COUNT, .about = "Those that live now.",
                   .over_time = TO_OVER_LAST },
  [SITE_OLDEST] = { "oldest_ns", TO_VALUE_NS, .about = "Age of the oldest that lives.",
                    .greatest = true, .over_time = TO_OVER_LAST },
  [SITE_CREATED] = { "created", TO_VALUE_COUNT, .about = "Those created in the window." },
  [SITE_LIFE] = { "life", TO_VALUE_DISTRIBUTION, .about = "Lives that have ended." },
};

enum { STATES, BY_ENTRY, BY_ENTRY_REASON, BY_SITE, TABLES };
static const struct to_table_schema table[TABLES] = {
  [STATES] = { .name = "states",
               .about = "By state",
               .order_about = "most time first",
               .keys = 1,
               .columns = STATE_COLUMNS,
               .column = state_column,
               .order = { { STATE_TIME + 1 } } },
  [BY_ENTRY] = { .name = "by_entry",
                 .about = "By entry function",
                 .order_about = "most execution time first",
                 .keys = 1,
                 .columns = ENTRY_COLUMNS,
                 .column = entry_column,
                 .order = { { ENTRY_EXECUTION + 1 }, { ENTRY_TOTAL + 1 } } },
  [BY_ENTRY_REASON] = { .name = "by_entry_reason",
                        .about = "Waits by entry function and reason",
                        .order_about = "most time first",
                        .keys = 2,
                        .columns = REASON_COLUMNS,
                        .column = reason_column,
                        .order = { { REASON_BLOCK + 1 } } },
  [BY_SITE] = { .name = "by_site",
                .about = "By place of creation",
                .order_about = "most alive first",
                .keys = 1,
                .columns = SITE_COLUMNS,
                .column = site_column,
                .order = { { SITE_ALIVE + 1 }, { SITE_OLDEST + 1 } } },
};

static tb_rc goroutines_init(struct to_analyses *a) {
  struct goroutines_state *s = state(a);

  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->in_state));
  for (unsigned i = TO_GO_RUNNABLE; i <= TO_GO_SYSCALL; i++) {
    TB_TRY(to_windows_series(&a->windows, s->in_state, &s->most[i]));
    TB_TRY(to_windows_series(&a->windows, s->in_state, &s->area[i]));
  }
  return TB_OK;
}

static void goroutines_fini(struct to_analyses *a) {
  struct goroutines_state *s = state(a);

  tb_mem_free(a->mem, s->entry, s->entries * sizeof(*s->entry));
  tb_mem_free(a->mem, s->oldest, s->sites * sizeof(*s->oldest));
}

/* Sums of a forged trace may overflow. */
static int64_t bounded(uint64_t number) {
  return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

static void add_number(struct to_draft_value *value, uint64_t number) {
  to_draft_number(value, bounded((uint64_t)value->value.number + (uint64_t)bounded(number)));
}

/* ---- states over time ---- */

/* The number of goroutines is stored as a length: the sum is time, the maximum the most at once. */
static tb_rc goroutines_settle(struct to_analyses *a) {
  struct goroutines_state *s = state(a);

  to_spans_states(a->spans, &s->states);
  for (unsigned i = TO_GO_RUNNABLE; i <= TO_GO_SYSCALL; i++) {
    const struct to_spans_in_state *is = &s->states.state[i];
    uint64_t more = is->total - s->counted[i];
    s->counted[i] = is->total;
    if (is->most > 0) to_windows_sum(&a->windows, s->most[i], 0, (to_ns)is->most, 0, false);
    if (more > 0) to_windows_sum(&a->windows, s->area[i], 0, (to_ns)more, 0, false);
  }
  return TB_OK;
}

static void goroutines_epoch(struct to_analyses *a) {
  struct goroutines_state *s = state(a);

  memset(s->counted, 0, sizeof s->counted);
  memset(&s->states, 0, sizeof s->states);
  s->walked = false;
}

static tb_rc report_states(struct to_analyses *a, struct to_draft *d) {
  struct goroutines_state *s = state(a);
  uint64_t wall = (uint64_t)d->view->until - (uint64_t)d->view->from;
  struct to_draft_value *row;

  for (unsigned i = TO_GO_RUNNABLE; i <= TO_GO_SYSCALL; i++) {
    const char *name = to_go_state_name((enum to_go_state)i);
    uint64_t area = to_view_sum(d->view, s->area[i]).total_ns;
    TB_TRY(to_draft_new_row(d, STATES, &row));
    to_draft_text(&row[STATE], (struct to_string){ name, strlen(name) });
    to_draft_number(&row[STATE_NOW], (int64_t)s->states.state[i].now);
    to_draft_number(&row[STATE_MEAN], wall == 0 ? 0 : bounded((area + wall / 2) / wall));
    to_draft_number(&row[STATE_MOST], (int64_t)to_view_sum(d->view, s->most[i]).max_ns);
    to_draft_number(&row[STATE_TIME], bounded(area));
  }
  return TB_OK;
}

/* ---- open spans ---- */

/* A file's last moment may be after its last event; goroutines continue until then. */
static to_ns now_of(const struct to_analyses *a) {
  return a->ended > a->spans->now ? a->ended : a->spans->now;
}

static int64_t age(const struct to_analyses *a, to_ns born) {
  return now_of(a) > born ? bounded((uint64_t)now_of(a) - (uint64_t)born) : 0;
}

static tb_rc make_room(struct to_analyses *a, void *array, size_t *have, size_t wanted,
                       size_t item) {
  void **place = array;

  if (*have < wanted) {
    TB_TRY(tb_mem_resize(a->mem, place, *have * item, 2 * wanted * item));
    *have = 2 * wanted;
  }
  if (*have > 0) memset(*place, 0, *have * item);
  return TB_OK;
}

static void add_state(const struct to_life *g, to_ns born, to_ns now, struct open_entry *e) {
  uint64_t ns = (uint64_t)now - (uint64_t)g->since;

  e->total += (uint64_t)now - (uint64_t)born;
  switch ((enum to_go_state)g->state) {
  case TO_GO_RUNNING: e->running += ns; break;
  case TO_GO_RUNNABLE: e->runnable += ns; break;
  case TO_GO_SYSCALL:
    e->call += ns;
    if (g->without_p) e->without_p += (uint64_t)now - (uint64_t)g->piece_since;
    if (to__lost_proc(g) && !g->unseen) e->call_lost += (uint64_t)now - (uint64_t)g->piece_since;
    break;
  case TO_GO_WAITING:
    if (g->reason != TO_REASON_FOREVER)
      e->waiting[g->reason] += ns;
    else
      e->total -= ns; /* Go counts it as ended */
    break;
  default: break;
  }
}

struct open_ranges {
  struct to_analyses *a;
  to_ns now;
  bool met; /* a range of an unknown goroutine was met: it began before the trace */
};

static tb_rc add_range(void *self, const struct to_span *span) {
  struct open_ranges *open = self;
  const struct to_analyses *a = open->a;
  enum to_sums_range kind;

  if (!to_sums_range_of(span->state, &kind)) return TB_OK;
  open->met |= span->by_life == 0;
  if (span->by_life == 0 || a->spans->lives[span->slot].life != span->by_life) return TB_OK;
  state(a)->entry[a->sums.goroutine[span->slot].entry].range[kind] +=
      (uint64_t)open->now - (uint64_t)span->from;
  return TB_OK;
}

static void add_met_ranges(const struct to_spans *spans, int64_t g, to_ns now,
                           struct open_entry *e) {
  static const struct {
    enum to_range_kind kind;
    enum to_sums_range of;
  } kinds[] = { { TO_RANGE_GC_MARK_ASSIST, TO_SUMS_ASSIST }, { TO_RANGE_STW, TO_SUMS_STOP } };

  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    for (const struct to_open_range *range = tb_map_at(&spans->ranges[kinds[i].kind], (uint64_t)g);
         range != NULL; range = range->below)
      if (range->life == 0) e->range[kinds[i].of] += (uint64_t)now - (uint64_t)range->since;
}

static tb_rc sum_open(struct to_analyses *a) {
  struct goroutines_state *s = state(a);
  const struct to_spans *spans = a->spans;
  to_ns now = now_of(a);
  struct open_ranges open = { .a = a, .now = now };

  if (s->walked && s->walked_at == spans->events && s->walked_until == now) return TB_OK;
  TB_TRY(make_room(a, &s->entry, &s->entries, a->sums.entries, sizeof(*s->entry)));
  TB_TRY(make_room(a, &s->oldest, &s->sites, a->sums.sites, sizeof(*s->oldest)));
  for (size_t i = 0; i < s->entries; i++) s->entry[i].oldest = INT64_MAX;
  for (size_t i = 0; i < s->sites; i++) s->oldest[i] = INT64_MAX;
  TB_TRY(to_spans_open_of(spans, TO_SPAN_RANGE, add_range, &open));
  for (uint32_t slot = 0; slot < spans->slots_end; slot++) {
    const struct to_life *g = &spans->lives[slot];
    if (g->life == 0) continue;
    to_ns born = spans->births[slot].at;
    const struct to_sums_goroutine *of = &a->sums.goroutine[slot];
    struct open_entry *e = &s->entry[of->entry];
    add_state(g, born, now, e);
    if (open.met) add_met_ranges(spans, g->id, now, e);
    if (born < e->oldest) e->oldest = born;
    if (born < s->oldest[of->site]) s->oldest[of->site] = born;
  }
  s->walked = true;
  s->walked_at = spans->events;
  s->walked_until = now;
  return TB_OK;
}

/* ---- by entry function ---- */

static tb_rc entry_row(struct to_analyses *a, struct to_draft *d, uint32_t entry,
                       struct to_draft_value **out) {
  if (entry == TO_ENTRY_OTHER)
    TB_TRY(to_draft_other(d, BY_ENTRY, out));
  else
    TB_TRY(to_draft_row(d, BY_ENTRY, entry, out));
  if (!(*out)[ENTRY_COUNT].value.none) return TB_OK;
  if (entry != TO_ENTRY_OTHER) to_draft_text(&(*out)[ENTRY], to_span_sums_entry(&a->sums, entry));
  for (unsigned c = ENTRY_COUNT; c < ENTRY_COLUMNS; c++)
    if (c != ENTRY_OLDEST) to_draft_number(&(*out)[c], 0);
  return TB_OK;
}

static tb_rc reason_row(struct to_analyses *a, struct to_draft *d, uint32_t entry, unsigned reason,
                        struct to_draft_value **out) {
  const char *name = to_spans_reason(a->spans, reason)->display;

  if (entry == TO_ENTRY_OTHER) return to_draft_other(d, BY_ENTRY_REASON, out);
  TB_TRY(to_draft_row(d, BY_ENTRY_REASON, (uint64_t)entry << 8 | reason, out));
  to_draft_text(&(*out)[REASON_ENTRY], to_span_sums_entry(&a->sums, entry));
  to_draft_text(&(*out)[REASON], (struct to_string){ name, strlen(name) });
  return TB_OK;
}

static tb_rc add_wait(struct to_analyses *a, struct to_draft *d, const struct to_span_sum *sum,
                      uint64_t ns) {
  struct to_draft_value *row;

  TB_TRY(reason_row(a, d, sum->entry, sum->why, &row));
  add_number(&row[REASON_BLOCK], ns);
  return to_draft_series(d, &row[REASON_ENDED], sum->series);
}

static tb_rc add_sum(struct to_analyses *a, struct to_draft *d, const struct to_span_sum *sum) {
  struct to_sum of = to_view_sum(d->view, sum->series);
  struct to_draft_value *row;

  TB_TRY(entry_row(a, d, sum->entry, &row));
  switch ((enum to_go_state)sum->state) {
  case TO_GO_NOT_EXIST:
    add_number(&row[ENTRY_COUNT], of.count);
    add_number(&row[ENTRY_TOTAL], of.total_ns);
    return TB_OK;
  case TO_GO_RUNNING: add_number(&row[ENTRY_EXECUTION], of.total_ns); return TB_OK;
  case TO_GO_RUNNABLE: add_number(&row[ENTRY_SCHED_WAIT], of.total_ns); return TB_OK;
  case TO_GO_WAITING:
    add_number(&row[ENTRY_BLOCK], of.total_ns);
    return add_wait(a, d, sum, of.total_ns);
  case TO_GO_SYSCALL:
    if (sum->why == TO_CALL_WHOLE) add_number(&row[ENTRY_CALL], of.total_ns);
    if (sum->why != TO_CALL_WHOLE && sum->why != TO_CALL_UNSTATED)
      add_number(&row[ENTRY_WITHOUT_P], of.total_ns);
    /* The part is counted before its call ends. Only TO_WINDOW_ALL is certain to contain both. */
    if (sum->why == TO_CALL_WITHOUT_PROC ||
        (sum->why == TO_CALL_UNSTATED && a->report.window == TO_WINDOW_ALL))
      add_number(&row[ENTRY_CALL_BLOCK], of.total_ns);
    return TB_OK;
  default: return TB_OK;
  }
}

/* Adds open spans up to now. Only for TO_WINDOW_ALL: other windows would contain only a part of them. */
static tb_rc add_open_time(struct to_analyses *a, struct to_draft *d, uint32_t entry,
                           const struct open_entry *e, struct to_draft_value *row) {
  struct to_draft_value *wait;

  add_number(&row[ENTRY_COUNT], a->sums.entry[entry].alive);
  add_number(&row[ENTRY_TOTAL], e->total);
  add_number(&row[ENTRY_EXECUTION], e->running);
  add_number(&row[ENTRY_SCHED_WAIT], e->runnable + e->call_lost);
  add_number(&row[ENTRY_CALL], e->call);
  add_number(&row[ENTRY_WITHOUT_P], e->without_p);
  for (unsigned r = 0; r < TO_SUMS_RANGES; r++) add_number(&row[ENTRY_ASSIST + r], e->range[r]);
  for (unsigned reason = 0; reason < TO_REASONS_MAX; reason++) {
    if (e->waiting[reason] == 0) continue;
    add_number(&row[ENTRY_BLOCK], e->waiting[reason]);
    TB_TRY(reason_row(a, d, entry, reason, &wait));
    add_number(&wait[REASON_BLOCK], e->waiting[reason]);
  }
  return TB_OK;
}

static int64_t minus(int64_t from, int64_t number) {
  return from > number ? from - number : 0;
}

static void set_unknown_time(struct to_draft_value *row) {
  int64_t call = minus(row[ENTRY_CALL].value.number, row[ENTRY_CALL_BLOCK].value.number);
  int64_t rest = row[ENTRY_TOTAL].value.number;

  to_draft_number(&row[ENTRY_CALL], call);
  for (unsigned c = ENTRY_EXECUTION; c <= ENTRY_CALL_BLOCK; c++)
    rest = minus(rest, row[c].value.number);
  to_draft_number(&row[ENTRY_UNKNOWN], rest);
}

static tb_rc report_ranges(struct to_analyses *a, struct to_draft *d, uint32_t entry) {
  struct to_draft_value *row;

  for (unsigned r = 0; r < TO_SUMS_RANGES; r++) {
    uint32_t series = a->sums.entry[entry].range[r];
    if (series == 0 || to_view_cell(d->view, series - 1) == NULL) continue;
    TB_TRY(entry_row(a, d, entry, &row));
    add_number(&row[ENTRY_ASSIST + r], to_view_sum(d->view, series - 1).total_ns);
  }
  return TB_OK;
}

static tb_rc report_open_entries(struct to_analyses *a, struct to_draft *d) {
  const struct goroutines_state *s = state(a);
  struct to_draft_value *row;

  for (uint32_t i = 0; i < a->sums.entries; i++) {
    uint32_t alive = a->sums.entry[i].alive;
    TB_TRY(report_ranges(a, d, i));
    if (alive == 0) continue;
    TB_TRY(entry_row(a, d, i, &row));
    add_number(&row[ENTRY_ALIVE], alive);
    to_draft_number(&row[ENTRY_OLDEST], age(a, s->entry[i].oldest));
    if (a->report.window == TO_WINDOW_ALL) TB_TRY(add_open_time(a, d, i, &s->entry[i], row));
  }
  return TB_OK;
}

static tb_rc report_entries(struct to_analyses *a, struct to_draft *d) {
  static const enum to_go_state states[] = { TO_GO_NOT_EXIST, TO_GO_RUNNABLE, TO_GO_RUNNING,
                                             TO_GO_WAITING, TO_GO_SYSCALL };
  const struct to_draft_table *rows = &d->table[BY_ENTRY];

  for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
    for (const struct to_span_sum *sum = NULL;
         (sum = to_span_sums_next(&a->sums, d->view, states[i], sum)) != NULL;)
      TB_TRY(add_sum(a, d, sum));
  TB_TRY(report_open_entries(a, d));
  for (size_t i = 0; i < rows->rows; i++) set_unknown_time(rows->row[i]);
  if (rows->other != NULL) set_unknown_time(rows->other);
  return TB_OK;
}

/* ---- by place of creation ---- */

static tb_rc add_site(struct to_analyses *a, struct to_draft *d, uint32_t i) {
  const struct to_sums_site *site = &a->sums.site[i];
  struct to_sum created = to_view_sum(d->view, site->created);
  struct to_draft_value *row;

  add_number(to_draft_figure(d, ALIVE), site->alive);
  add_number(to_draft_figure(d, CREATED), created.count);
  TB_TRY(to_draft_series(d, to_draft_figure(d, ENDED), site->lives));
  if (site->alive == 0 && created.count == 0 && to_view_cell(d->view, site->lives) == NULL)
    return TB_OK;
  if (i == TO_SITE_OTHER)
    TB_TRY(to_draft_other(d, BY_SITE, &row));
  else
    TB_TRY(to_draft_new_row(d, BY_SITE, &row));
  if (i != TO_SITE_OTHER) to_draft_stack(&row[SITE], to_stack_table_stack(a->stacks, site->stack));
  to_draft_number(&row[SITE_ALIVE], site->alive);
  to_draft_number(&row[SITE_CREATED], (int64_t)created.count);
  if (site->alive > 0) to_draft_number(&row[SITE_OLDEST], age(a, state(a)->oldest[i]));
  return to_draft_series(d, &row[SITE_LIFE], site->lives);
}

static int64_t per_second(uint64_t count, const struct to_view *view) {
  double seconds = (double)((uint64_t)view->until - (uint64_t)view->from) / 1e9;

  return seconds > 0 ? (int64_t)((double)count / seconds + 0.5) : 0;
}

static tb_rc goroutines_report(struct to_analyses *a, const struct to_view *view,
                               struct to_draft *d) {
  TB_TRY(to__before_say(a, d));
  TB_TRY(sum_open(a));
  TB_TRY(report_states(a, d));
  TB_TRY(report_entries(a, d));
  to_draft_number(to_draft_figure(d, ALIVE), 0);
  to_draft_number(to_draft_figure(d, CREATED), 0);
  for (uint32_t i = 0; i < a->sums.sites; i++) TB_TRY(add_site(a, d, i));
  uint64_t created = (uint64_t)to_draft_figure(d, CREATED)->value.number;
  uint64_t ended = to_draft_figure(d, ENDED)->sum->distribution.sum.count;
  to_draft_number(to_draft_figure(d, CREATED_RATE), per_second(created, view));
  to_draft_number(to_draft_figure(d, ENDED_RATE), per_second(ended, view));
  return TB_OK;
}

const struct to_analysis_ops to__analysis_goroutines = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .thins = true,
  .state_bytes = sizeof(struct goroutines_state),
  .wants = TO_WANT_STATES | TO_WANT(RANGE),
  .init = goroutines_init,
  .fini = goroutines_fini,
  .settle = goroutines_settle,
  .epoch = goroutines_epoch,
  .report = goroutines_report,
};
