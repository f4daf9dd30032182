/* SPDX-License-Identifier: Apache-2.0 */
/* Stop-the-world time: STWBegin to STWEnd on the goroutine that stopped the world.
 *
 * Time to stop, of that: the runtime writes STWBegin before it asks any P to stop, every P that runs answers
 * with ProcStop, and those held by threads in system calls are taken by ProcSteal. So
 * the world stands at the first moment at which no P but the stopper's runs, and time to stop is
 * from the begin to there: what runtime/metrics calls /sched/pauses/stopping. It needs the number of
 * running Ps, which is known once the trace was seen to start ("start trace" is written with the
 * world stopped, hence never has a time to stop of its own) or after one whole generation, in
 * which every P is named. Where it is not known, or not reached before the end, nothing is counted.
 *
 * A world that stops writes 4 to 20 events; the cost that counts is 1 ns for each P's start and
 * stop. */
#include <assert.h>
#include <string.h>

#include "analysis/analysis_state.h"
#include "analysis/top_rows.h"
#include "event/view.h"

enum { TEXT_CHUNK_BYTES = 2 << 10, SLUG_BYTES_MAX = 64 };
#define RETIRE_EVERY_NS INT64_C(30000000000)
#define OTHER_REASONS   "other reasons"

static const struct {
  const char *reason, *id;
} reasons[] = {
#define TO_STW_REASON(reason, id) { reason, id },
#include "event/stw_reasons.def"
#undef TO_STW_REASON
};

static tb_rc stw_init(struct to_analyses *a) {
  struct to_stw *s = &a->stw;

  tb_arena_init(&s->text, a->mem, TEXT_CHUNK_BYTES);
  tb_map_init(&s->who_of, a->mem, tb_seed());
  s->retired = INT64_MIN;
  s->stopped_hist = to_windows_hist(&a->windows);
  s->time_to_stop_hist = to_windows_hist(&a->windows);
  TB_TRY(to_windows_series(&a->windows, &s->stopped));
  TB_TRY(to_windows_series(&a->windows, &s->time_to_stop));
  return to_windows_series(&a->windows, &s->who_other);
}

static void stw_fini(struct to_analyses *a) {
  tb_arena_fini(&a->stw.text);
  tb_map_fini(&a->stw.who_of);
}

/* ---- reasons ---- */

static bool text_is(struct to_string text, const char *other) {
  return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

/* "/stw/other/", then letters and digits, a dash for whatever stands between them. */
static tb_rc derive_id(struct to_stw *s, struct to_string reason, const char **out) {
  static const char prefix[] = "/stw/other/";
  char id[sizeof(prefix) + SLUG_BYTES_MAX];
  size_t n = sizeof(prefix) - 1;
  bool gap = false;

  memcpy(id, prefix, n);
  for (size_t i = 0; i < reason.len && n < sizeof(id) - 2; i++) {
    unsigned char c = (unsigned char)reason.data[i];
    if (c >= 'A' && c <= 'Z') c = (unsigned char)(c - 'A' + 'a');
    bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (word && gap && n > sizeof(prefix) - 1) id[n++] = '-';
    if (word) id[n++] = (char)c;
    gap = !word;
  }
  if (n == sizeof(prefix) - 1) n--; /* not one word: "/stw/other" */
  id[n] = '\0';
  TB_TRY(tb_arena_copy(&s->text, id, n + 1, out));
  return TB_OK;
}

static tb_rc add_kind(struct to_analyses *a, struct to_string reason) {
  struct to_stw *s = &a->stw;
  struct to_stw_kind *kind = &s->kind[s->kinds];
  void *copy;

  TB_TRY(tb_arena_take(&s->text, reason.len + 1, &copy));
  if (reason.len > 0) memcpy(copy, reason.data, reason.len);
  ((char *)copy)[reason.len] = '\0';
  kind->text = (struct to_string){ .data = copy, .len = reason.len };
  kind->id = NULL;
  for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
    if (text_is(reason, reasons[i].reason)) kind->id = reasons[i].id;
  if (kind->id == NULL) TB_TRY(derive_id(s, reason, &kind->id));
  TB_TRY(to_windows_series(&a->windows, &kind->series));
  kind->hist = to_windows_hist(&a->windows);
  s->kinds++;
  return TB_OK;
}

static tb_rc find_kind(struct to_analyses *a, const struct to_generation *gen, uint64_t string,
                       uint32_t *out_kind) {
  struct to_stw *s = &a->stw;
  struct to_string reason;

  if (!to_generation_string(gen, string, &reason))
    reason = (struct to_string){ .data = "", .len = 0 };
  for (uint32_t i = 0; i < s->kinds; i++)
    if (s->kind[i].text.len == reason.len &&
        (reason.len == 0 || memcmp(s->kind[i].text.data, reason.data, reason.len) == 0)) {
      *out_kind = i;
      return TB_OK;
    }
  if (s->kinds >= TO_STW_REASONS_MAX) /* the place after the last is theirs */
    reason = (struct to_string){ .data = OTHER_REASONS, .len = sizeof(OTHER_REASONS) - 1 };
  if (s->kinds <= TO_STW_REASONS_MAX) TB_TRY(add_kind(a, reason));
  *out_kind = (uint32_t)s->kinds - 1;
  return TB_OK;
}

/* ---- who ---- */

static uint64_t who_key(int64_t g, uint32_t kind) {
  return ((uint64_t)g << 6) + kind;
}

/* Rows that no window shows any more make room; what they had stays in "other". */
static void retire_whos(struct to_analyses *a, to_ns now) {
  struct to_stw *s = &a->stw;

  if (s->retired > now - RETIRE_EVERY_NS) return;
  s->retired = now;
  for (size_t i = 0; i < s->whos;) {
    struct to_stw_who *who = &s->who[i], *last = &s->who[s->whos - 1];
    if (!to_windows_retire(&a->windows, who->series, s->who_other, who->last)) {
      i++;
      continue;
    }
    tb_map_remove(&s->who_of, who_key(who->g, who->kind));
    struct to_stw_who freed = *who;
    *who = *last;
    *last = freed; /* the next one uses its series again */
    if (who != last) *tb_map_find(&s->who_of, who_key(who->g, who->kind)) = i;
    s->whos--;
  }
}

static tb_rc find_who(struct to_analyses *a, int64_t g, uint32_t kind, to_ns now,
                      uint32_t *out_series) {
  struct to_stw *s = &a->stw;
  uint64_t *place = tb_map_find(&s->who_of, who_key(g, kind));
  struct to_stw_who *who;

  if (place == NULL) {
    *out_series = s->who_other;
    if (s->whos == TO_STW_STOPPERS_MAX) retire_whos(a, now);
    if (s->whos == TO_STW_STOPPERS_MAX) return TB_OK;
    who = &s->who[s->whos];
    uint32_t series = who->series;
    if (series == 0) TB_TRY(to_windows_series(&a->windows, &series));
    TB_TRY(tb_map_put(&s->who_of, who_key(g, kind), &place, NULL));
    *place = s->whos++;
    *who = (struct to_stw_who){ .g = g, .kind = kind, .series = series };
  }
  who = &s->who[*place];
  who->last = now;
  *out_series = who->series;
  return TB_OK;
}

/* ---- events ---- */

static tb_rc world_stands(struct to_analyses *a, to_ns begin, to_ns now) {
  TB_TRY(to_windows_record(&a->windows, a->stw.time_to_stop_hist, begin, now));
  to_windows_add(&a->windows, a->stw.time_to_stop, begin, now, 0, false);
  return TB_OK;
}

static tb_rc begin_stop(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct to_stw *s = &a->stw;
  struct to_stw_stop stop = { .g = ev->g, .begin = ev->time, .own_procs = ev->p != TO_NONE };

  TB_TRY(find_kind(a, gen, ev->args[0], &stop.kind));
  TB_TRY(to_stack_table_index(&a->stacks, gen, ev->args[1], &stop.stack));
  if (s->stops == TO_STW_OPEN_MAX) { /* a world stops once at a time: only a made-up trace does */
    s->kind[s->stop[0].kind].open--;
    memmove(s->stop, s->stop + 1, --s->stops * sizeof(*s->stop));
  }
  if (text_is(s->kind[stop.kind].text, "start trace")) {
    s->procs_known = true; /* a P that runs from here on says so first */
  } else if (s->procs_known) {
    stop.stopping = s->running > stop.own_procs;
    if (!stop.stopping) TB_TRY(world_stands(a, ev->time, ev->time));
  }
  s->kind[stop.kind].open++;
  s->stop[s->stops++] = stop;
  return TB_OK;
}

static void report(const struct to_analyses *a, const struct to_stw_stop *stop,
                   const struct to_event *end) {
  const struct to_stw_kind *kind = &a->stw.kind[stop->kind];
  struct to_watched span = { .what = TO_WORLD_RESTARTED,
                             .begin = stop->begin,
                             .end = end->time,
                             .goroutine = stop->g,
                             .thread = end->m,
                             .stack = to_stack_table_stack(&a->stacks, stop->stack),
                             .reason = kind->text,
                             .id = kind->id };

  a->watch.span(a->watch.self, &span);
}

static tb_rc end_stop(struct to_analyses *a, const struct to_event *ev) {
  struct to_windows *w = &a->windows;
  struct to_stw *s = &a->stw;
  size_t i = s->stops;
  uint32_t who;

  while (i > 0 && s->stop[i - 1].g != ev->g) i--;
  if (i == 0) return TB_OK; /* an epoch began in its middle */
  struct to_stw_stop stop = s->stop[i - 1];
  s->stops--;
  memmove(&s->stop[i - 1], &s->stop[i], (s->stops - (i - 1)) * sizeof(*s->stop));
  s->kind[stop.kind].open--;
  if (a->watch.span != NULL) report(a, &stop, ev);

  TB_TRY(find_who(a, stop.g, stop.kind, ev->time, &who));
  const struct to_stw_kind *kind = &s->kind[stop.kind];
  TB_TRY(to_windows_record(w, s->stopped_hist, stop.begin, ev->time));
  to_windows_add(w, s->stopped, stop.begin, ev->time, stop.stack, false);
  TB_TRY(to_windows_record(w, kind->hist, stop.begin, ev->time));
  to_windows_add(w, kind->series, stop.begin, ev->time, stop.stack, false);
  to_windows_add(w, who, stop.begin, ev->time, stop.stack, false);
  return TB_OK;
}

static tb_rc proc_stopped(struct to_analyses *a, to_ns now) {
  struct to_stw *s = &a->stw;

  if (s->running > 0) s->running--;
  if (TB_LIKELY(s->stops == 0)) return TB_OK;
  struct to_stw_stop *stop = &s->stop[s->stops - 1];
  if (!stop->stopping || s->running > stop->own_procs) return TB_OK;
  stop->stopping = false;
  return world_stands(a, stop->begin, now);
}

static tb_rc take_proc(struct to_analyses *a, const struct to_event *ev) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  if (tr.from == tr.to)
    return TB_OK; /* a status, or a steal of a proc idle since its thread gave it up */
  if (tr.to != TO_PROC_RUNNING)
    return tr.from == TO_PROC_RUNNING ? proc_stopped(a, ev->time) : TB_OK;
  a->stw.running++;
  return TB_OK;
}

static tb_rc stw_event(struct to_analyses *a, const struct to_generation *gen,
                       const struct to_event *ev) {
  struct to_stw *s = &a->stw;

  switch (ev->type) {
  case TW_EV_STW_BEGIN: return begin_stop(a, gen, ev);
  case TW_EV_STW_END: return end_stop(a, ev);
  case TW_EV_PROC_START:
  case TW_EV_PROC_STOP:
  case TW_EV_PROC_STEAL:
  case TW_EV_PROC_STATUS: return take_proc(a, ev);
  case TW_EV_SYNC:
    if (++s->syncs > 1) s->procs_known = true;
    return TB_OK;
  default: return TB_OK;
  }
}

static void stw_epoch(struct to_analyses *a) {
  struct to_stw *s = &a->stw;

  for (size_t i = 0; i < s->kinds; i++) s->kind[i].open = 0;
  s->stops = 0;
  s->running = 0;
  s->syncs = 0;
  s->procs_known = false;
}

/* ---- the report ---- */

static bool reason_before(const void *rows, uint32_t a, uint32_t b) {
  const struct to_stw_reason *x = (const struct to_stw_reason *)rows + a;
  const struct to_stw_reason *y = (const struct to_stw_reason *)rows + b;

  if (x->stopped.sum.total_ns != y->stopped.sum.total_ns)
    return x->stopped.sum.total_ns > y->stopped.sum.total_ns;
  return a < b;
}

static tb_rc report_reasons(struct to_analyses *a, const struct to_view *view) {
  struct to_stw_report *r = &a->report.stw;
  const struct to_stw *s = &a->stw;
  struct to_stw_reason found[TO_STW_REASONS_MAX + 1], *listed;
  uint32_t rank[TO_STW_REASONS_MAX + 1];

  for (uint32_t i = 0; i < s->kinds; i++) {
    const struct to_stw_kind *kind = &s->kind[i];
    if (to_view_cell(view, kind->series) == NULL && kind->open == 0) continue;
    rank[r->reasons] = (uint32_t)r->reasons;
    found[r->reasons++] = (struct to_stw_reason){
      .reason = kind->text,
      .id = kind->id,
      .stopped = to_view_distribution(view, kind->hist, to_view_sum(view, kind->series)),
      .open = kind->open,
    };
  }
  to_top_rows(rank, r->reasons, reason_before, found);
  TB_TRY(tb_arena_take(&a->report_arena, (r->reasons + 1) * sizeof(*listed), &listed));
  for (size_t i = 0; i < r->reasons; i++) listed[i] = found[rank[i]];
  r->reason = listed;
  return TB_OK;
}

static bool stopper_before(const void *rows, uint32_t a, uint32_t b) {
  const struct to_stw_stopper *x = (const struct to_stw_stopper *)rows + a;
  const struct to_stw_stopper *y = (const struct to_stw_stopper *)rows + b;

  if (x->stopped.total_ns != y->stopped.total_ns) return x->stopped.total_ns > y->stopped.total_ns;
  return x->goroutine != y->goroutine ? x->goroutine < y->goroutine : a < b;
}

static tb_rc report_stoppers(struct to_analyses *a, const struct to_view *view, size_t rows_max) {
  struct to_stw_report *r = &a->report.stw;
  const struct to_stw *s = &a->stw;
  struct to_stw_stopper other = { .other = true,
                                  .goroutine = TO_NONE,
                                  .reason = { .data = "", .len = 0 },
                                  .stopped = to_view_sum(view, s->who_other) };
  struct to_stw_stopper *found, *listed;
  uint32_t *rank;
  size_t n = 0;

  TB_TRY(tb_arena_take(&a->report_arena, (s->whos + 1) * sizeof(*found), &found));
  TB_TRY(tb_arena_take(&a->report_arena, (s->whos + 1) * sizeof(*rank), &rank));
  for (size_t i = 0; i < s->whos; i++) {
    const struct to_cell *cell = to_view_cell(view, s->who[i].series);
    if (cell == NULL) continue;
    rank[n] = (uint32_t)n;
    found[n++] = (struct to_stw_stopper){
      .goroutine = s->who[i].g,
      .reason = s->kind[s->who[i].kind].text,
      .stopped = to_view_sum(view, s->who[i].series),
      .stack = to_stack_table_stack(&a->stacks, cell->tag),
    };
  }
  to_top_rows(rank, n, stopper_before, found);
  r->stoppers = n < rows_max ? n : rows_max;
  r->stoppers_total = n + (other.stopped.count > 0);
  for (size_t i = r->stoppers; i < n; i++) to__sum_join(&other.stopped, &found[rank[i]].stopped);
  TB_TRY(tb_arena_take(&a->report_arena, (r->stoppers + 1) * sizeof(*listed), &listed));
  for (size_t i = 0; i < r->stoppers; i++) listed[i] = found[rank[i]];
  if (other.stopped.count > 0) listed[r->stoppers++] = other;
  r->stopper = listed;
  return TB_OK;
}

/* The part of the view in which the world stood still. Stops follow one another, so at most one of
 * those that ended in the view reaches out of it. */
static double share_of_wall(const struct to_analyses *a, const struct to_view *view) {
  const struct to_stw *s = &a->stw;
  const struct to_cell *stopped = to_view_cell(view, s->stopped);
  double wall = (double)((uint64_t)view->until - (uint64_t)view->from);
  double ns = 0;

  if (stopped != NULL) {
    ns = (double)stopped->total_ns;
    if (stopped->since < view->from)
      ns -= (double)((uint64_t)view->from - (uint64_t)stopped->since);
  }
  if (s->stops > 0) {
    to_ns begin = s->stop[0].begin > view->from ? s->stop[0].begin : view->from;
    if (view->until > begin) ns += (double)((uint64_t)view->until - (uint64_t)begin);
  }
  if (wall <= 0 || ns <= 0) return 0;
  return ns < wall ? ns / wall : 1;
}

static tb_rc stw_report(struct to_analyses *a, const struct to_view *view, size_t rows_max) {
  const struct to_stw *s = &a->stw;

  a->report.stw = (struct to_stw_report){
    .stopped = to_view_distribution(view, s->stopped_hist, to_view_sum(view, s->stopped)),
    .time_to_stop =
        to_view_distribution(view, s->time_to_stop_hist, to_view_sum(view, s->time_to_stop)),
    .share_of_wall = share_of_wall(a, view),
  };
  TB_TRY(report_reasons(a, view));
  return report_stoppers(a, view, rows_max);
}

const struct to_analysis_ops to__analysis_stw = {
  .events = TO_ANALYSIS_EVENT(STW_BEGIN) | TO_ANALYSIS_EVENT(STW_END) |
            TO_ANALYSIS_EVENT(PROC_START) | TO_ANALYSIS_EVENT(PROC_STOP) |
            TO_ANALYSIS_EVENT(PROC_STEAL) | TO_ANALYSIS_EVENT(PROC_STATUS) |
            TO_ANALYSIS_EVENT(SYNC),
  .init = stw_init,
  .fini = stw_fini,
  .event = stw_event,
  .epoch = stw_epoch,
  .report = stw_report,
};
