/* SPDX-License-Identifier: Apache-2.0 */
/* How busy the Ps are, and how they are taken from system calls. A P is busy while a thread holds it: for Go code, or for
 * a system call that may be short. The time of calls is counted while spans are made.
 *
 * Times are totals (online/measure/totals.h), not spans: a P may run for minutes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "online/analysis/analysis_state.h"
#include "online/event/view.h"
#include "online/measure/totals.h"

enum { PROCS_MAX = 1024, CHANGES_KEPT = 64 };
/* Totals of P number p are at OF_PROC * p plus one of these. */
enum { RUNNING, IDLE, CALL, STOLEN, RETAKEN, CLAIMED, STOPPED, HANDED_OFF, OF_PROC };

struct to_procs_change {
  to_ns at;
  int64_t before, after; /* before -1: unknown */
};

/* Finding: this many goroutines wait for each P on average. */
#define STARVED_LENGTH 2.0

struct to_procs {
  struct to_totals of_proc, of_busy; /* of_busy: time by number of busy Ps */
  struct to_proc_seen {
    to_ns since;
    uint8_t state; /* enum to_proc_state; UNDETERMINED: unknown */
  } * proc;
  size_t seen, room; /* seen: Ps from this number on have not been seen */
  size_t busy;
  to_ns since;                                 /* when busy last changed */
  bool heard;                                  /* a P's state was seen in this epoch */
  int64_t procs;                               /* GOMAXPROCS; -1: unknown */
  struct to_procs_change change[CHANGES_KEPT]; /* a ring */
  uint64_t changes;
  uint64_t proc_ns; /* sum over all Ps, up to the last whole generation */
  struct to__over over;
};

static struct to_procs *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_PROCS];
}

enum { PROCS, BUSY, CHANGES, FIGURES };
static const struct to_field figure[FIGURES] = {
  [PROCS] = { "procs", TO_VALUE_COUNT,
              .about = "Ps that there are now (GOMAXPROCS): so many goroutines can run at once.",
              .metric = "trace_gomaxprocs", .over_time = TO_OVER_LAST },
  [BUSY] = { "busy_share", TO_VALUE_SHARE, .about = "Share of their time in which Ps were busy.",
             .metric = "trace_procs_busy_share" },
  [CHANGES] = { "changes", TO_VALUE_COUNT, .about = "Changes of GOMAXPROCS since the start.",
                .over_time = TO_OVER_LAST },
};
enum {
  PROC,
  PROC_BUSY,
  PROC_RUNNING,
  PROC_IDLE,
  PROC_STOLEN,
  PROC_CALL,
  PROC_RETAKEN,
  PROC_CLAIMED,
  PROC_STOPPED,
  PROC_HANDED_OFF,
  PROC_COLUMNS
};
static const struct to_field proc_column[PROC_COLUMNS] = {
  [PROC] = { "proc", TO_VALUE_ID },
  [PROC_BUSY] = { "busy_share", TO_VALUE_SHARE,
                  .about = "Of the time in which its state is known." },
  [PROC_RUNNING] = { "running_ns", TO_VALUE_NS,
                     .about = "A thread held it: for Go code, or for a system call." },
  [PROC_IDLE] = { "idle_ns", TO_VALUE_NS },
  [PROC_STOLEN] = { "stolen", TO_VALUE_COUNT,
                    .about = "Times it was taken from a thread in a system call." },
  [PROC_CALL] = { "syscall_ns", TO_VALUE_NS,
                  .about = "Part of running_ns in which a system call held it." },
  [PROC_RETAKEN] = { "retaken", TO_VALUE_COUNT,
                     .about = "Part of stolen: by the runtime's monitor, as the call took long." },
  [PROC_CLAIMED] = { "claimed", TO_VALUE_COUNT,
                     .about = "Part of stolen: by a goroutine that returned from another call." },
  [PROC_STOPPED] = { "stopped", TO_VALUE_COUNT,
                     .about = "Part of stolen: by a running goroutine, mostly to stop the world." },
  [PROC_HANDED_OFF] = { "handed_off", TO_VALUE_COUNT,
                        .about = "Times that a call gave it up at once as it was known to block; "
                                 "not part of stolen." },
};
enum { AT_ONCE, AT_ONCE_TIME, AT_ONCE_SHARE, AT_ONCE_COLUMNS };
static const struct to_field busy_column[AT_ONCE_COLUMNS] = {
  [AT_ONCE] = { "busy", TO_VALUE_ID, .about = "Ps that were busy at once." },
  [AT_ONCE_TIME] = { "time_ns", TO_VALUE_NS },
  [AT_ONCE_SHARE] = { "time_share", TO_VALUE_SHARE },
};
enum { CHANGE_AT, CHANGE_BEFORE, CHANGE_AFTER, CHANGE_COLUMNS };
static const struct to_field change_column[CHANGE_COLUMNS] = {
  [CHANGE_AT] = { "time_ns", TO_VALUE_TIME },
  [CHANGE_BEFORE] = { "before", TO_VALUE_COUNT },
  [CHANGE_AFTER] = { "procs", TO_VALUE_COUNT },
};
enum { BY_PROC, BY_BUSY, GOMAXPROCS, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BY_PROC] = { .name = "by_proc",
                .about = "By P",
                .order_about = "busiest first",
                .keys = 1,
                .columns = PROC_COLUMNS,
                .column = proc_column,
                .order = { { PROC_RUNNING + 1 }, { PROC + 1, .rising = true } } },
  [BY_BUSY] = { .name = "by_busy",
                .about = "By the number of Ps that were busy at once",
                .order_about = "fewest first",
                .keys = 1,
                .columns = AT_ONCE_COLUMNS,
                .column = busy_column,
                .order = { { AT_ONCE + 1, .rising = true } } },
  [GOMAXPROCS] = { .name = "gomaxprocs",
                   .about = "Changes of GOMAXPROCS",
                   .order_about = "latest first",
                   .keys = 1,
                   .columns = CHANGE_COLUMNS,
                   .column = change_column,
                   .order = { { CHANGE_AT + 1 } },
                   .is_list = true },
};

static tb_rc procs_init(struct to_analyses *a) {
  state(a)->procs = -1;
  return TB_OK;
}

static void procs_fini(struct to_analyses *a) {
  to_totals_fini(&state(a)->of_proc, a->mem);
  to_totals_fini(&state(a)->of_busy, a->mem);
  tb_mem_free(a->mem, state(a)->proc, state(a)->room * sizeof(struct to_proc_seen));
}

static uint64_t between(to_ns from, to_ns until) {
  return until > from ? (uint64_t)until - (uint64_t)from : 0;
}

/* Adds a P's time until now to its totals. */
static void settle_proc(struct to_procs *s, size_t p, to_ns now) {
  uint64_t *total = &s->of_proc.now[OF_PROC * p];

  if (s->proc[p].state == TO_PROC_RUNNING) total[RUNNING] += between(s->proc[p].since, now);
  if (s->proc[p].state == TO_PROC_IDLE) total[IDLE] += between(s->proc[p].since, now);
  s->proc[p].since = now;
}

/* In a forged trace a call may vanish from its P, with its time; a total must not shrink. */
static void settle_calls(const struct to_analyses *a, to_ns now) {
  struct to_procs *s = state(a);

  for (size_t p = 0; p < s->seen; p++) {
    uint64_t *total = &s->of_proc.now[OF_PROC * p + CALL];
    uint64_t time = to_spans_call_time(a->spans, (int64_t)p, now);
    if (time > *total) *total = time;
  }
}

static void settle_busy(struct to_procs *s, to_ns now) {
  if (s->heard) s->of_busy.now[s->busy] += between(s->since, now);
  s->since = now;
}

static void settle(const struct to_analyses *a, to_ns now) {
  struct to_procs *s = state(a);

  for (size_t p = 0; p < s->seen; p++) settle_proc(s, p, now);
  settle_calls(a, now);
  settle_busy(s, now);
}

static tb_rc see_proc(struct to_analyses *a, size_t p) {
  struct to_procs *s = state(a);

  TB_TRY(to_totals_reserve(&s->of_proc, a->mem, OF_PROC * (p + 1)));
  while (s->seen <= p) {
    TB_TRY(TB_MEM_GROW(a->mem, s->proc, s->room, s->seen));
    s->proc[s->seen++] = (struct to_proc_seen){ 0 };
  }
  return TB_OK;
}

static tb_rc set_state(struct to_analyses *a, size_t p, uint8_t to, to_ns now) {
  struct to_procs *s = state(a);

  if (p >= s->seen) TB_TRY(see_proc(a, p));
  if (s->of_busy.n < s->busy + 2) TB_TRY(to_totals_reserve(&s->of_busy, a->mem, s->busy + 2));
  uint8_t from = s->proc[p].state;
  if (from == to) return TB_OK;
  settle_proc(s, p, now);
  settle_busy(s, now);
  s->heard = true;
  s->proc[p].state = to;
  s->busy += (size_t)(to == TO_PROC_RUNNING) - (size_t)(from == TO_PROC_RUNNING);
  return TB_OK;
}

/* Counts a lost P by what took it, which the event's own P and goroutine show: the monitor has neither, and a goroutine in a
 * call has no P. If a thread takes its own P because its goroutine ends in the call, or if the P was abandoned, no cause is
 * counted. */
static void count_loss(const struct to_event *ev, uint64_t *total) {
  bool by_itself = ev->p == (int64_t)ev->args[0] || ev->m == (int64_t)ev->args[2];

  if (ev->type != TW_EV_PROC_STEAL) return;
  total[STOLEN]++;
  if (by_itself || ev->args[3] == TW_PROC_SYSCALL_ABANDONED) return;
  if (ev->p != TO_NONE)
    total[STOPPED]++;
  else
    total[ev->g == TO_NONE ? RETAKEN : CLAIMED]++;
}

static tb_rc take_proc(struct to_analyses *a, const struct to_event *ev) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  if (tr.id < 0 || tr.id >= PROCS_MAX) return TB_OK;
  TB_TRY(set_state(a, (size_t)tr.id, tr.to, ev->time));
  count_loss(ev, &state(a)->of_proc.now[OF_PROC * (size_t)tr.id]);
  return TB_OK;
}

static void take_change(struct to_procs *s, const struct to_event *ev) {
  int64_t after = ev->args[0] > INT64_MAX ? INT64_MAX : (int64_t)ev->args[0];

  if (after == s->procs) return; /* each generation repeats it */
  if (s->procs >= 0)
    s->change[s->changes++ % CHANGES_KEPT] =
        (struct to_procs_change){ .at = ev->time, .before = s->procs, .after = after };
  s->procs = after;
}

static tb_rc procs_event(struct to_analyses *a, const struct to_generation *gen,
                         const struct to_event *ev) {
  (void)gen;
  switch (ev->type) {
  case TW_EV_PROC_START: /* most are starts and stops, so no struct to_transition is made for them */
    return ev->args[0] < PROCS_MAX ? set_state(a, ev->args[0], TO_PROC_RUNNING, ev->time) : TB_OK;
  case TW_EV_PROC_STOP:
    if ((uint64_t)ev->p >= PROCS_MAX) return TB_OK;
    TB_TRY(set_state(a, (size_t)ev->p, TO_PROC_IDLE, ev->time));
    state(a)->of_proc.now[OF_PROC * (size_t)ev->p + HANDED_OFF] += ev->g != TO_NONE;
    return TB_OK;
  case TW_EV_PROCS_CHANGE: take_change(state(a), ev); return TB_OK;
  default: return take_proc(a, ev);
  }
}

static tb_rc procs_slot(struct to_analyses *a) {
  settle(a, a->windows.open.begin);
  TB_TRY(to_totals_slot(&state(a)->of_proc, &a->windows));
  return to_totals_slot(&state(a)->of_busy, &a->windows);
}

static tb_rc procs_mark(struct to_analyses *a) {
  settle(a, a->windows.last);
  TB_TRY(to_totals_mark(&state(a)->of_proc, &a->windows));
  return to_totals_mark(&state(a)->of_busy, &a->windows);
}

static void procs_epoch(struct to_analyses *a) {
  struct to_procs *s = state(a);

  settle(a, a->windows.last);
  for (size_t p = 0; p < s->seen; p++) s->proc[p] = (struct to_proc_seen){ 0 };
  s->busy = 0;
  s->heard = false;
  s->over = (struct to__over){ 0 };
}

static double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : (double)part / (double)whole;
}

static void take_totals(struct to_analyses *a, const struct to_draft *d, size_t p,
                        uint64_t out[OF_PROC]) {
  for (size_t i = 0; i < OF_PROC; i++)
    out[i] = to_totals_in(&state(a)->of_proc, d->view, a->report.window, OF_PROC * p + i);
}

static tb_rc report_procs(struct to_analyses *a, struct to_draft *d) {
  static const uint8_t column[OF_PROC] = {
    [RUNNING] = PROC_RUNNING, [IDLE] = PROC_IDLE,
    [CALL] = PROC_CALL,       [STOLEN] = PROC_STOLEN,
    [RETAKEN] = PROC_RETAKEN, [CLAIMED] = PROC_CLAIMED,
    [STOPPED] = PROC_STOPPED, [HANDED_OFF] = PROC_HANDED_OFF,
  };
  const struct to_procs *s = state(a);
  uint64_t all_running = 0, all_idle = 0, of[OF_PROC];
  struct to_draft_value *row;

  for (size_t p = 0; p < s->seen; p++) {
    take_totals(a, d, p, of);
    if (of[RUNNING] + of[IDLE] == 0) continue;
    TB_TRY(to_draft_new_row(d, BY_PROC, &row));
    to_draft_number(&row[PROC], (int64_t)p);
    to_draft_share(&row[PROC_BUSY], share(of[RUNNING], of[RUNNING] + of[IDLE]));
    for (size_t i = 0; i < OF_PROC; i++) to_draft_number(&row[column[i]], (int64_t)of[i]);
    if (p >= TO_SPANS_PROCS_NEAR) row[PROC_CALL].value.none = true;
    all_running += of[RUNNING];
    all_idle += of[IDLE];
  }
  to_draft_share(to_draft_figure(d, BUSY), share(all_running, all_running + all_idle));
  return TB_OK;
}

static tb_rc report_busy(struct to_analyses *a, struct to_draft *d) {
  const struct to_procs *s = state(a);
  enum to_window window = a->report.window;
  struct to_draft_value *row;
  uint64_t all = 0;

  for (size_t i = 0; i < s->of_busy.n; i++) all += to_totals_in(&s->of_busy, d->view, window, i);
  for (size_t i = 0; i < s->of_busy.n; i++) {
    uint64_t ns = to_totals_in(&s->of_busy, d->view, window, i);
    if (ns == 0) continue;
    TB_TRY(to_draft_new_row(d, BY_BUSY, &row));
    to_draft_number(&row[AT_ONCE], (int64_t)i);
    to_draft_number(&row[AT_ONCE_TIME], (int64_t)ns);
    to_draft_share(&row[AT_ONCE_SHARE], share(ns, all));
  }
  return TB_OK;
}

static tb_rc report_changes(struct to_analyses *a, struct to_draft *d) {
  const struct to_procs *s = state(a);
  bool all = a->report.window == TO_WINDOW_ALL;
  struct to_draft_value *row;

  for (uint64_t i = s->changes; i > 0 && s->changes - i < CHANGES_KEPT; i--) {
    const struct to_procs_change *change = &s->change[(i - 1) % CHANGES_KEPT];
    if (!all && change->at < d->view->from) continue;
    TB_TRY(to_draft_new_row(d, GOMAXPROCS, &row));
    to_draft_number(&row[CHANGE_AT], change->at);
    to_draft_number(&row[CHANGE_BEFORE], change->before);
    to_draft_number(&row[CHANGE_AFTER], change->after);
  }
  return TB_OK;
}

static tb_rc procs_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  struct to_procs *s = state(a);

  settle(a, view->until);
  if (s->procs >= 0) to_draft_number(to_draft_figure(d, PROCS), s->procs);
  to_draft_number(to_draft_figure(d, CHANGES), (int64_t)s->changes);
  TB_TRY(report_procs(a, d));
  TB_TRY(report_busy(a, d));
  return report_changes(a, d);
}

/* Finds the entry function whose goroutines ran most in the last ten seconds, and its share. */
static tb_rc find_runner(struct to_analyses *a, struct to_string *out, double *out_share) {
  uint64_t most = 0, total = 0;
  struct to_view view;

  *out = (struct to_string){ 0 };
  TB_TRY(to_windows_view(&a->windows, TO_WINDOW_10S, &view));
  for (uint32_t entry = 0; entry < a->sums.entries; entry++) {
    uint64_t ns = to_view_sum(&view, a->sums.entry[entry].running).total_ns;
    total += ns;
    if (ns <= most) continue;
    most = ns;
    *out = to_span_sums_entry(&a->sums, entry);
  }
  *out_share = total == 0 ? 0 : (double)most / (double)total;
  return TB_OK;
}

static tb_rc procs_findings(struct to_analyses *a, const struct to_finding_sink *sink) {
  enum { WORDS_BYTES = 300 };
  struct to_procs *s = state(a);
  to_ns now = to_spans_now(a->spans);
  struct to_string runner;
  double share;
  char *words;

  if (s->procs < 0) return TB_OK;
  if (s->over.at != 0 && now > s->over.at)
    s->proc_ns += (uint64_t)(now - s->over.at) * (uint64_t)s->procs;
  if (!to__over_look(&s->over, now, to__runnable_time(a->spans, now), s->proc_ns, STARVED_LENGTH))
    return TB_OK;
  TB_TRY(find_runner(a, &runner, &share));
  TB_TRY(tb_arena_alloc(&a->report_arena, WORDS_BYTES, &words));
  int n =
      snprintf(words, WORDS_BYTES, "%.1f goroutines waited for each of %" PRId64 " Ps on average",
               s->over.share, s->procs);
  if (share > 0) /* no running time is counted while all generations are thinned */
    n += snprintf(words + n, WORDS_BYTES - (size_t)n,
                  "; goroutines of %.120s had %.0f %% of the running time",
                  runner.len > 0 ? runner.data : "an unknown function", 100 * share);
  sink->finding(sink->self, &(struct to_finding){ .kind = TO_FINDING_STARVED,
                                                  .since = s->over.since,
                                                  .goroutine = TO_NONE,
                                                  .words = { words, (size_t)n } });
  return TB_OK;
}

const struct to_analysis_ops to__analysis_procs = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_procs),
  .events = TO_ANALYSIS_EVENT(PROC_START) | TO_ANALYSIS_EVENT(PROC_STOP) |
            TO_ANALYSIS_EVENT(PROC_STEAL) | TO_ANALYSIS_EVENT(PROC_STATUS) |
            TO_ANALYSIS_EVENT(PROCS_CHANGE),
  .init = procs_init,
  .fini = procs_fini,
  .event = procs_event,
  .slot = procs_slot,
  .mark = procs_mark,
  .epoch = procs_epoch,
  .report = procs_report,
  .findings = procs_findings,
};
