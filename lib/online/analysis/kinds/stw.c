/* SPDX-License-Identifier: Apache-2.0 */
/* Stop-the-world time: STWBegin to STWEnd on the goroutine that stopped the world.
 *
 * Time to stop is the first part of it. The runtime writes STWBegin before it asks any P to stop. Then every running P answers
 *      with ProcStop, and Ps held by threads in system calls are taken by ProcSteal. So the world is stopped as soon as no P
 *      runs but the stopper's, and time to stop lasts from STWBegin to this moment; runtime/metrics calls it
 *      /sched/pauses/stopping. To compute it, the number of running Ps must be known. It is known after the start of the trace
 *      was seen, or after one whole generation, in which every P is named. ("start trace" is written when the world is stopped
 *      already, so that stop has no time to stop.) If the number is not known, or the world is not stopped before STWEnd,
 *      nothing is counted.
 *
 * A stop of the world has 4 to 20 events. What matters is the cost of each start and stop of a P, 1 ns. */
#include <assert.h>
#include <string.h>

#include "base/grow.h"
#include "online/analysis/analysis_state.h"
#include "online/event/text.h"
#include "online/event/view.h"

enum { TEXT_CHUNK_BYTES = 2 << 10, SLUG_BYTES_MAX = 64 };
#define RETIRE_EVERY_NS INT64_C(30000000000)
#define OTHER_REASONS   "other reasons"

enum { TO_STW_OPEN_MAX = 16, TO_STW_REASONS_MAX = 48, TO_STW_STOPPERS_MAX = 1024 };

struct to_stw_kind { /* figures of one reason */
  struct to_string text;
  const char *id;
  uint32_t series;
  uint64_t open;
  uint64_t total_ns; /* of stops that have ended, since the start */
};
struct to_stw_who { /* figures of one goroutine and reason */
  int64_t g;
  uint32_t kind, series;
  to_ns last;
};
struct to_stw_stop {
  int64_t g;
  to_ns begin;
  uint32_t kind, stack;
  int64_t own_procs; /* 1: the stopper's own P goes on running */
  bool stopping;     /* other Ps run still */
};

struct to_stw {
  uint32_t stopped, time_to_stop; /* series */
  struct tb_arena text;
  struct to_stw_kind kind[TO_STW_REASONS_MAX + 1]; /* the last one has all further reasons */
  size_t kinds;
  struct to_stw_who *who; /* rows from `whos` to whos_made are free and have a series */
  size_t whos, whos_made, whos_room;
  struct tb_map who_of; /* goroutine and reason: place in who */
  uint32_t who_other;   /* series */
  to_ns retired;        /* time of the last search for old rows */
  struct to_stw_stop stop[TO_STW_OPEN_MAX];
  size_t stops;
  int64_t running;  /* Ps that run or are held by a thread in a call */
  unsigned syncs;   /* in this epoch */
  bool procs_known; /* running counts every P */
};

static struct to_stw *state(const struct to_analyses *a) {
  return a->state[TO_ANALYSIS_STW];
}

enum { STOPPED, TIME_TO_STOP, WALL, FIGURES };
static const struct to_field figure[FIGURES] = {
  [STOPPED] = { "stopped", TO_VALUE_DISTRIBUTION,
                .about = "Stop-the-world pauses (of all goroutines at once) that ended." },
  [TIME_TO_STOP] = { "time_to_stop", TO_VALUE_DISTRIBUTION,
                     .about =
                         "The part of each until the last P stood, where the trace shows it." },
  [WALL] = { "wall_share", TO_VALUE_SHARE,
             .about = "Share of the window in which the world was stopped.", .of_time = true },
};
enum { REASON, REASON_ID, REASON_STOPPED, REASON_OPEN, REASON_COLUMNS };
static const struct to_field reason_column[REASON_COLUMNS] = {
  [REASON] = { "reason", TO_VALUE_TEXT, .about = "As the trace says it." },
  [REASON_ID] = { "id", TO_VALUE_TEXT, .about = "One name for all versions of Go.",
                  .label = "reason" },
  [REASON_STOPPED] = { "stopped", TO_VALUE_DISTRIBUTION,
                       .about = "Time the world was stopped, by reason.",
                       .metric = "trace_stw_seconds" },
  [REASON_OPEN] = { "open", TO_VALUE_COUNT, .about = "Stops that have not ended.",
                    .over_time = TO_OVER_LAST },
};
enum { STOPPER, STOPPER_REASON, STOPPER_STOPPED, STOPPER_STACK, STOPPER_COLUMNS };
static const struct to_field stopper_column[STOPPER_COLUMNS] = {
  [STOPPER] = { "goroutine", TO_VALUE_ID },
  [STOPPER_REASON] = { "reason", TO_VALUE_TEXT },
  [STOPPER_STOPPED] = { "stopped", TO_VALUE_DISTRIBUTION },
  [STOPPER_STACK] = { "stack", TO_VALUE_STACK, .about = "Of the longest stop." },
};
enum { BY_REASON, BY_STOPPER, TABLES };
static const struct to_table_schema table[TABLES] = {
  [BY_REASON] = { .name = "by_reason",
                  .about = "By reason",
                  .order_about = "most time first",
                  .keys = 2,
                  .columns = REASON_COLUMNS,
                  .column = reason_column,
                  .order = { { REASON_STOPPED + 1 } } },
  [BY_STOPPER] = { .name = "by_goroutine",
                   .about = "Goroutines that stopped the world",
                   .order_about = "most time first, with the stack of the longest",
                   .keys = 2,
                   .columns = STOPPER_COLUMNS,
                   .column = stopper_column,
                   .order = { { STOPPER_STOPPED + 1 }, { STOPPER + 1, .rising = true } } },
};

static const struct {
  const char *reason, *id;
} reasons[] = {
#define TO_STW_REASON(reason, id) { reason, id },
#include "online/event/stw_reasons.def"
#undef TO_STW_REASON
};

static tb_rc stw_init(struct to_analyses *a) {
  struct to_stw *s = state(a);

  tb_arena_init(&s->text, a->mem, TEXT_CHUNK_BYTES);
  tb_map_init(&s->who_of, a->mem, tb_seed());
  s->retired = INT64_MIN;
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->stopped));
  TB_TRY(to_windows_series(&a->windows, TO_NO_SERIES, &s->time_to_stop));
  return to_windows_series(&a->windows, TO_NO_SERIES, &s->who_other);
}

static void stw_fini(struct to_analyses *a) {
  tb_arena_fini(&state(a)->text);
  tb_map_fini(&state(a)->who_of);
  tb_mem_free(a->mem, state(a)->who, state(a)->whos_room * sizeof(struct to_stw_who));
}

/* ---- reasons ---- */

/* Writes "/stw/other/", letters and digits of the reason, and a dash for other characters. */
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
  if (n == sizeof(prefix) - 1) n--; /* no letter or digit: "/stw/other" */
  id[n] = '\0';
  TB_TRY(tb_arena_copy(&s->text, id, n + 1, out));
  return TB_OK;
}

static tb_rc add_kind(struct to_analyses *a, struct to_string reason) {
  struct to_stw *s = state(a);
  struct to_stw_kind *kind = &s->kind[s->kinds];
  void *copy;

  TB_TRY(tb_arena_alloc(&s->text, reason.len + 1, &copy));
  if (reason.len > 0) memcpy(copy, reason.data, reason.len);
  ((char *)copy)[reason.len] = '\0';
  kind->text = (struct to_string){ .data = copy, .len = reason.len };
  kind->id = NULL;
  for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
    if (to_string_is(reason, reasons[i].reason)) kind->id = reasons[i].id;
  if (kind->id == NULL) TB_TRY(derive_id(s, reason, &kind->id));
  TB_TRY(to_windows_series(&a->windows, s->stopped, &kind->series));
  s->kinds++;
  return TB_OK;
}

static tb_rc find_kind(struct to_analyses *a, const struct to_generation *gen, uint64_t string,
                       uint32_t *out_kind) {
  struct to_stw *s = state(a);
  struct to_string reason;

  if (!to_generation_string(gen, string, &reason))
    reason = (struct to_string){ .data = "", .len = 0 };
  for (uint32_t i = 0; i < s->kinds; i++)
    if (s->kind[i].text.len == reason.len &&
        (reason.len == 0 || memcmp(s->kind[i].text.data, reason.data, reason.len) == 0)) {
      *out_kind = i;
      return TB_OK;
    }
  if (s->kinds >= TO_STW_REASONS_MAX) /* further reasons share the place after the last */
    reason = (struct to_string){ .data = OTHER_REASONS, .len = sizeof(OTHER_REASONS) - 1 };
  if (s->kinds <= TO_STW_REASONS_MAX) TB_TRY(add_kind(a, reason));
  *out_kind = (uint32_t)s->kinds - 1;
  return TB_OK;
}

/* ---- who ---- */

static uint64_t who_key(int64_t g, uint32_t kind) {
  return ((uint64_t)g << 6) + kind;
}

/* Frees rows that no window shows any more; their figures stay in "other". */
static tb_rc retire_whos(struct to_analyses *a, to_ns now) {
  uint32_t retired[TO_STW_STOPPERS_MAX];
  struct to_stw *s = state(a);
  size_t n = 0;

  if ((uint64_t)now - (uint64_t)s->retired < (uint64_t)RETIRE_EVERY_NS)
    return TB_OK; /* the clock may go back */
  s->retired = now;
  for (size_t i = 0; i < s->whos;) {
    struct to_stw_who *who = &s->who[i], *last = &s->who[s->whos - 1];
    if (to_windows_show(&a->windows, who->last)) {
      i++;
      continue;
    }
    retired[n++] = who->series;
    tb_map_remove(&s->who_of, who_key(who->g, who->kind));
    struct to_stw_who freed = *who;
    *who = *last;
    *last = freed; /* the next row uses the series again */
    if (who != last) *tb_map_find(&s->who_of, who_key(who->g, who->kind)) = i;
    s->whos--;
  }
  return to_windows_retire(&a->windows, retired, n, s->who_other);
}

/* Returns TO_NO_SERIES if there is no place. */
static tb_rc find_who(struct to_analyses *a, int64_t g, uint32_t kind, to_ns now,
                      uint32_t *out_series) {
  struct to_stw *s = state(a);
  uint64_t *place = tb_map_find(&s->who_of, who_key(g, kind));
  struct to_stw_who *who;

  if (place == NULL) {
    *out_series = TO_NO_SERIES;
    if (s->whos == TO_STW_STOPPERS_MAX) TB_TRY(retire_whos(a, now));
    if (s->whos == TO_STW_STOPPERS_MAX) return TB_OK;
    if (s->whos == s->whos_made) {
      TB_TRY(TB_MEM_GROW(a->mem, s->who, s->whos_room, s->whos_made));
      s->who[s->whos_made++] = (struct to_stw_who){ 0 };
    }
    who = &s->who[s->whos];
    uint32_t series = who->series;
    uint32_t parent = s->kind[kind].series;
    if (series == 0) TB_TRY(to_windows_series(&a->windows, parent, &series));
    to_windows_reuse(&a->windows, series, parent);
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
  return to_windows_add(&a->windows, state(a)->time_to_stop, begin, now, 0, false);
}

static tb_rc begin_stop(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_event *ev) {
  struct to_stw *s = state(a);
  struct to_stw_stop stop = { .g = ev->g, .begin = ev->time, .own_procs = ev->p != TO_NONE };

  TB_TRY(find_kind(a, gen, ev->args[0], &stop.kind));
  TB_TRY(to_stack_table_index(a->stacks, gen, ev->args[1], &stop.stack));
  if (s->stops ==
      TO_STW_OPEN_MAX) { /* the world stops once at a time: only an invalid trace has more */
    s->kind[s->stop[0].kind].open--;
    memmove(s->stop, s->stop + 1, --s->stops * sizeof(*s->stop));
  }
  if (to_string_is(s->kind[stop.kind].text, "start trace")) {
    s->procs_known = true; /* from here on, each P that starts to run has an event */
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
  const struct to_stw_kind *kind = &state(a)->kind[stop->kind];
  struct to_watched span = { .what = TO_WORLD_RESTARTED,
                             .begin = stop->begin,
                             .end = end->time,
                             .goroutine = stop->g,
                             .thread = end->m,
                             .stack = to_stack_table_stack(a->stacks, stop->stack),
                             .reason = kind->text,
                             .id = kind->id };

  a->watch.span(a->watch.self, &span);
}

static tb_rc end_stop(struct to_analyses *a, const struct to_event *ev) {
  struct to_windows *w = &a->windows;
  struct to_stw *s = state(a);
  size_t i = s->stops;
  uint32_t who;

  while (i > 0 && s->stop[i - 1].g != ev->g) i--;
  if (i == 0) return TB_OK; /* the epoch began during the stop */
  struct to_stw_stop stop = s->stop[i - 1];
  s->stops--;
  memmove(&s->stop[i - 1], &s->stop[i], (s->stops - (i - 1)) * sizeof(*s->stop));
  s->kind[stop.kind].open--;
  if (a->watch.span != NULL) report(a, &stop, ev);

  TB_TRY(find_who(a, stop.g, stop.kind, ev->time, &who));
  uint32_t kind = s->kind[stop.kind].series;
  s->kind[stop.kind].total_ns += (uint64_t)ev->time - (uint64_t)stop.begin;
  if (who == TO_NO_SERIES) {
    TB_TRY(to_windows_add(w, kind, stop.begin, ev->time, stop.stack, false));
    who = s->who_other;
  }
  return to_windows_add(w, who, stop.begin, ev->time, stop.stack, false);
}

static size_t stw_stops(const struct to_analyses *a, size_t max, struct to_stop_total *out) {
  const struct to_stw *s = state(a);
  size_t n = s->kinds < max ? s->kinds : max;

  for (size_t i = 0; i < n; i++)
    out[i] = (struct to_stop_total){ .id = s->kind[i].id, .total_ns = s->kind[i].total_ns };
  return n;
}

static tb_rc proc_stopped(struct to_analyses *a, to_ns now) {
  struct to_stw *s = state(a);

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
    return TB_OK; /* a status, or a steal of a P that is idle since its thread released it */
  if (tr.to != TO_PROC_RUNNING)
    return tr.from == TO_PROC_RUNNING ? proc_stopped(a, ev->time) : TB_OK;
  state(a)->running++;
  return TB_OK;
}

static tb_rc stw_event(struct to_analyses *a, const struct to_generation *gen,
                       const struct to_event *ev) {
  struct to_stw *s = state(a);

  switch (ev->type) {
  case TW_EV_STW_BEGIN: return begin_stop(a, gen, ev);
  case TW_EV_STW_END: return end_stop(a, ev);
  case TW_EV_PROC_START: s->running++; return TB_OK;
  case TW_EV_PROC_STOP: return proc_stopped(a, ev->time);
  case TW_EV_PROC_STEAL:
  case TW_EV_PROC_STATUS: return take_proc(a, ev);
  case TW_EV_SYNC:
    if (++s->syncs > 1) s->procs_known = true;
    return TB_OK;
  default: return TB_OK;
  }
}

static void stw_epoch(struct to_analyses *a) {
  struct to_stw *s = state(a);

  for (size_t i = 0; i < s->kinds; i++) s->kind[i].open = 0;
  s->stops = 0;
  s->running = 0;
  s->syncs = 0;
  s->procs_known = false;
}

/* ---- the report ---- */

static tb_rc report_reasons(struct to_analyses *a, struct to_draft *d) {
  const struct to_stw *s = state(a);
  struct to_draft_value *row;

  for (uint32_t i = 0; i < s->kinds; i++) {
    const struct to_stw_kind *kind = &s->kind[i];
    if (to_view_cell(d->view, kind->series) == NULL && kind->open == 0) continue;
    TB_TRY(to_draft_new_row(d, BY_REASON, &row));
    to_draft_text(&row[REASON], kind->text);
    to_draft_text(&row[REASON_ID], (struct to_string){ kind->id, strlen(kind->id) });
    to_draft_number(&row[REASON_OPEN], (int64_t)kind->open);
    TB_TRY(to_draft_series(d, &row[REASON_STOPPED], kind->series));
  }
  return TB_OK;
}

static tb_rc report_stoppers(struct to_analyses *a, struct to_draft *d) {
  const struct to_stw *s = state(a);
  struct to_draft_value *row;

  for (const struct to_stw_who *who = s->who; who < s->who + s->whos; who++) {
    const struct to_count *cell = to_view_cell(d->view, who->series);
    if (cell == NULL) continue;
    TB_TRY(to_draft_new_row(d, BY_STOPPER, &row));
    to_draft_number(&row[STOPPER], who->g);
    to_draft_text(&row[STOPPER_REASON], s->kind[who->kind].text);
    TB_TRY(to_draft_series(d, &row[STOPPER_STOPPED], who->series));
    to_draft_stack(&row[STOPPER_STACK], to_stack_table_stack(a->stacks, cell->tag));
  }
  if (to_view_cell(d->view, s->who_other) == NULL) return TB_OK;
  TB_TRY(to_draft_other(d, BY_STOPPER, &row));
  return to_draft_series(d, &row[STOPPER_STOPPED], s->who_other);
}

static tb_rc stw_report(struct to_analyses *a, const struct to_view *view, struct to_draft *d) {
  const struct to_stw *s = state(a);

  TB_TRY(to_draft_series(d, to_draft_figure(d, STOPPED), s->stopped));
  TB_TRY(to_draft_series(d, to_draft_figure(d, TIME_TO_STOP), s->time_to_stop));
  to_draft_share(
      to_draft_figure(d, WALL),
      to__share_of_wall(view, s->stopped, s->stops > 0 ? s->stop[0].begin : view->until));
  TB_TRY(report_reasons(a, d));
  return report_stoppers(a, d);
}

const struct to_analysis_ops to__analysis_stw = {
  .schema = { .figures = FIGURES, .tables = TABLES, .figure = figure, .table = table },
  .state_bytes = sizeof(struct to_stw),
  .events = TO_ANALYSIS_EVENT(STW_BEGIN) | TO_ANALYSIS_EVENT(STW_END) |
            TO_ANALYSIS_EVENT(PROC_START) | TO_ANALYSIS_EVENT(PROC_STOP) |
            TO_ANALYSIS_EVENT(PROC_STEAL) | TO_ANALYSIS_EVENT(PROC_STATUS) |
            TO_ANALYSIS_EVENT(SYNC),
  .init = stw_init,
  .fini = stw_fini,
  .event = stw_event,
  .epoch = stw_epoch,
  .report = stw_report,
  .stops = stw_stops,
};
