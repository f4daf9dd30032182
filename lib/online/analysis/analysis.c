/* SPDX-License-Identifier: Apache-2.0 */
/* Each event costs one table lookup; most concern no analysis and cost about 1 ns. A slice is cut at the borders of the
 * windows' slots, so that the code below need not compare times. */
#include "online/analysis/analysis.h"

#include <string.h>

#include "online/analysis/analysis_state.h"

enum { REPORT_CHUNK_BYTES = 16 << 10, FINDING_BYTES = 2048 /* of its words */ };

/* How an event of a type is dispatched: always, or if its argument or the running goroutine is followed. */
enum meets { MEETS_NONE, MEETS_BY_ARG, MEETS_BY_CONTEXT, MEETS_KINDS, MEETS_EXPERIMENT };

_Static_assert(TO_ANALYSIS_KINDS <= 32, "a bit for each kind");

static const struct {
  const char *name, *about;
  const struct to_analysis_ops *ops;
} analyses[TO_ANALYSIS_KINDS] = {
#define TO_ANALYSIS(ID, name, about) [TO_ANALYSIS_##ID] = { #name, about, &to__analysis_##name },
#include "online/analysis/analyses.def"
#undef TO_ANALYSIS
};

const char *to_analysis_name(enum to_analysis_kind kind) {
  return analyses[kind].name;
}
const char *to_analysis_about(enum to_analysis_kind kind) {
  return analyses[kind].about;
}

const struct to_schema *to_analysis_schema(enum to_analysis_kind kind) {
  return &analyses[kind].ops->schema;
}

bool to_analysis_find(const char *name, enum to_analysis_kind *out) {
  for (unsigned i = 0; i < TO_ANALYSIS_KINDS; i++)
    if (strcmp(analyses[i].name, name) == 0) {
      *out = (enum to_analysis_kind)i;
      return true;
    }
  return false;
}

static unsigned bit_of(const struct to_span *span) {
  return span->kind == TO_SPAN_GOROUTINE ? 16u + span->state : span->kind;
}

static tb_rc take_spans(void *self, const struct to_generation *gen, const struct to_span *spans,
                        size_t n) {
  struct to_analyses *a = self;

  for (const struct to_span *span = spans; span < spans + n; span++)
    for (uint32_t kinds = a->takers[bit_of(span)]; kinds != 0; kinds &= kinds - 1)
      TB_TRY(analyses[__builtin_ctz(kinds)].ops->span(a, gen, span));
  return TB_OK;
}

static enum meets follows(uint64_t type) {
  switch (type) {
  case TW_EV_GO_START:
  case TW_EV_GO_UNBLOCK: return MEETS_BY_ARG;
  case TW_EV_GO_STOP:
  case TW_EV_GO_BLOCK:
  case TW_EV_GO_DESTROY: return MEETS_BY_CONTEXT;
  default: return MEETS_NONE;
  }
}

static void set_meets(struct to_analyses *a, unsigned type) {
  bool for_all = type == TW_EV_SYNC || a->event_takers[type] != 0 || (a->watch.events >> type & 1);

  a->meets[type] = MEETS_NONE;
  if (for_all)
    a->meets[type] = MEETS_KINDS;
  else if (a->followed != NULL)
    a->meets[type] = (uint8_t)follows(type);
}

static void set_all_meets(struct to_analyses *a) {
  memset(a->meets, MEETS_EXPERIMENT, sizeof(a->meets));
  for (unsigned type = 0; type < 64; type++) set_meets(a, type);
}

void to__analysis_follow(struct to_analyses *a, enum to_analysis_kind kind,
                         struct to_followed *goroutines) {
  static const uint8_t types[] = { TW_EV_GO_START, TW_EV_GO_UNBLOCK, TW_EV_GO_STOP, TW_EV_GO_BLOCK,
                                   TW_EV_GO_DESTROY };

  a->followed = goroutines;
  a->follower = UINT32_C(1) << kind;
  for (size_t i = 0; i < sizeof(types); i++) set_meets(a, types[i]);
}

static tb_rc init(struct to_analyses *a) {
  struct to_spans_config config = { .stacks_max = a->config.stacks_max };

  if (a->config.room == NULL) {
    TB_TRY(tb_mem_alloc(a->mem, sizeof(*a->own_room), &a->own_room));
    to_analysis_room_init(a->own_room, a->mem, a->mem);
    a->config.room = a->own_room;
  }
  to_windows_init(&a->windows, a->mem, &a->config.room->tally);
  config.slice = &a->config.room->slice;
  config.stacks = &a->config.room->stacks;
  a->windows.sparing = a->config.is_live;
  a->windows.has_stretches = a->config.has_stretches;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    config.wanted |= analyses[k].ops->spans | analyses[k].ops->wants;
    for (unsigned bit = 0; bit < 32; bit++)
      if (analyses[k].ops->spans >> bit & 1) a->takers[bit] |= UINT32_C(1) << k;
    for (unsigned type = 0; type < 64; type++)
      if (analyses[k].ops->events >> type & 1) a->event_takers[type] |= UINT32_C(1) << k;
  }
  TB_TRY(to_spans_new(a->mem, &config, (struct to_span_sink){ a, take_spans }, &a->spans));
  to_spans_want_pieces(a->spans, false);
  a->stacks = &a->spans->stacks;
  TB_TRY(to_idle_init(&a->idle, a->mem, a->stacks, &a->spans->known_reasons, a->config.idle));
  TB_TRY(to_span_sums_init(&a->sums, a->mem, &a->windows, a->stacks, &a->idle,
                           &a->config.room->sums, a->config.stacks_max));
  a->spans->sums = &a->sums;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    size_t bytes = analyses[k].ops->state_bytes;
    if (bytes > 0) TB_TRY(tb_mem_alloc(a->mem, bytes, &a->state[k]));
  }
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (analyses[k].ops->init != NULL) TB_TRY(analyses[k].ops->init(a));
  set_all_meets(a);
  return TB_OK;
}

tb_rc to_analyses_new(struct tb_mem *mem, const struct to_analysis_config *config,
                      struct to_analyses **out) {
  struct to_analyses *a;

  TB_TRY(tb_mem_alloc(mem, sizeof(struct to_analyses), &a));
  a->mem = mem;
  a->config = *config;
  tb_arena_init(&a->report_arena, mem, REPORT_CHUNK_BYTES);
  tb_rc rc = init(a);
  if (rc != TB_OK) {
    to_analyses_free(a);
    return rc;
  }
  *out = a;
  return TB_OK;
}

void to_analyses_free(struct to_analyses *a) {
  if (a == NULL) return;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    if (a->state[k] == NULL) continue;
    if (analyses[k].ops->fini != NULL) analyses[k].ops->fini(a);
    tb_mem_free(a->mem, a->state[k], analyses[k].ops->state_bytes);
  }
  to_span_sums_fini(&a->sums);
  to_idle_fini(&a->idle);
  to_spans_free(a->spans);
  tb_arena_fini(&a->report_arena);
  to_windows_fini(&a->windows);
  if (a->own_room != NULL) to_analysis_room_fini(a->own_room);
  tb_mem_free(a->mem, a->own_room, sizeof(*a->own_room));
  tb_mem_free(a->mem, a, sizeof(*a));
}

tb_rc to_analyses_idle(struct to_analyses *a, const char *patterns) {
  TB_TRY(to_idle_replace(&a->idle, patterns));
  to_span_sums_idle_changed(&a->sums);
  return TB_OK;
}

/* Makes the room this stream's. */
static tb_rc take_turn(struct to_analyses *a) {
  if (a->windows.tally->owner == &a->windows) return TB_OK;
  to_span_sums_turn(&a->sums);
  return to_windows_attach(&a->windows);
}

static tb_rc settle(struct to_analyses *a) {
  if (a->settled) return TB_OK;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (analyses[k].ops->settle != NULL) TB_TRY(analyses[k].ops->settle(a));
  a->settled = true;
  return TB_OK;
}

static tb_rc move_windows(struct to_analyses *a, to_ns time) {
  bool opens = time < a->windows.open.begin || time >= to_windows_border(&a->windows);

  if (TB_LIKELY(!opens)) return TB_OK;
  TB_TRY(settle(a));
  TB_TRY(to_windows_move(&a->windows, time));
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (analyses[k].ops->slot != NULL) TB_TRY(analyses[k].ops->slot(a));
  return TB_OK;
}

static void note_generation(struct to_analyses *a, const struct to_generation *gen) {
  struct to_clock clock;

  to_stack_table_generation(a->stacks);
  if (!a->in_epoch) {
    a->in_epoch = true;
    a->epochs++;
    a->epoch_gen = to_generation_number(gen);
    a->generations = 0;
  }
  a->generations++;
  if (to_generation_clock(gen, &clock))
    to_analyses_clock(a, clock.trace_ns,
                      (uint64_t)clock.wall_s * UINT64_C(1000000000) + (uint64_t)clock.wall_ns);
}

static bool is_followed(const struct to_analyses *a, const struct to_event *ev, enum meets meets) {
  int64_t g = meets == MEETS_BY_ARG ? (int64_t)ev->args[0] : ev->g;

  return to_followed_has(a->followed, g);
}

static tb_rc take_event(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_event *ev) {
  uint32_t kinds = a->event_takers[ev->type];
  enum meets follow = a->followed != NULL ? follows(ev->type) : MEETS_NONE;

  if (ev->type == TW_EV_SYNC) note_generation(a, gen);
  if (follow != MEETS_NONE && is_followed(a, ev, follow)) kinds |= a->follower;
  for (; kinds != 0; kinds &= kinds - 1)
    TB_TRY(analyses[__builtin_ctz(kinds)].ops->event(a, gen, ev));
  if (a->watch.events >> ev->type & 1) a->watch.event(a->watch.self, gen, ev);
  return TB_OK;
}

/* Returns the first of the events that may concern an analysis. Most do not, so it looks at four at once. */
static const struct to_event *skip_unmet(const struct to_analyses *a, const struct to_event *ev,
                                         const struct to_event *end) {
  const uint8_t *meets = a->meets;

  if (ev < end && meets[ev->type] != MEETS_NONE) return ev;
  while (end - ev >= 4 && (meets[ev[0].type] | meets[ev[1].type] | meets[ev[2].type] |
                           meets[ev[3].type]) == MEETS_NONE)
    ev += 4;
  while (ev < end && meets[ev->type] == MEETS_NONE) ev++;
  return ev;
}

static tb_rc take_events(struct to_analyses *a, const struct to_generation *gen,
                         const struct to_event *events, size_t n) {
  const struct to_event *end = events + n;

  for (const struct to_event *ev = events; (ev = skip_unmet(a, ev, end)) < end; ev++) {
    enum meets meets = (enum meets)a->meets[ev->type];
    if (meets == MEETS_EXPERIMENT)
      a->met_experiment = true;
    else if (meets == MEETS_KINDS || is_followed(a, ev, meets))
      TB_TRY(take_event(a, gen, ev));
  }
  return TB_OK;
}

/* Makes the few spans of a trace with experiments piece by piece: each event needs its goroutine's state then. */
static tb_rc take_experiments(struct to_analyses *a, const struct to_generation *gen,
                              const struct to_event *events, size_t n) {
  size_t done = 0;

  a->met_experiment = false;
  for (size_t i = 0; i < n; i++) {
    if (events[i].type < 64) continue;
    TB_TRY(to_spans_events(a->spans, gen, events + done, i + 1 - done));
    done = i + 1;
    for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
      if (analyses[k].ops->experiment != NULL)
        TB_TRY(analyses[k].ops->experiment(a, gen, &events[i]));
  }
  return done == n ? TB_OK : to_spans_events(a->spans, gen, events + done, n - done);
}

static tb_rc make_spans(struct to_analyses *a, const struct to_generation *gen,
                        const struct to_event *events, size_t n) {
  return a->met_experiment ? take_experiments(a, gen, events, n)
                           : to_spans_events(a->spans, gen, events, n);
}

/* Counts those of n events, n > 0, that are before the open slot's end. */
static size_t count_before(const struct to_event *events, size_t n, to_ns border) {
  size_t low = 0;

  if (events[n - 1].time < border) return n;
  while (low < n) { /* time rises */
    size_t middle = low + (n - low) / 2;
    if (events[middle].time < border)
      low = middle + 1;
    else
      n = middle;
  }
  return low;
}

tb_rc to_analyses_events(struct to_analyses *a, const struct to_generation *gen,
                         const struct to_event *events, size_t n) {
  if (gen == NULL) { /* the Sync at a file's end */
    if (n > 0) a->ended = events[n - 1].time;
    return TB_OK;
  }
  TB_TRY(a->failed);
  TB_TRY(take_turn(a));
  uint64_t number = to_generation_number(gen);

  a->generation = gen;
  if (n > 0) a->ended = events[n - 1].time;
  if (a->report_arena.bytes > 0) tb_arena_reset(&a->report_arena); /* lent until now */
  while (n > 0) {
    TB_TRY(move_windows(a, events[0].time));
    size_t here = count_before(events, n, to_windows_border(&a->windows));
    if (here == 0) here = n; /* the last possible slot: time ends with it */
    to_windows_note(&a->windows, here, number, events[here - 1].time);
    if (TB_UNLIKELY(to_spans_thins(a->spans))) to_windows_note_thinned(&a->windows, here);
    a->settled = false;
    TB_TRY(take_events(a, gen, events, here));
    TB_TRY(make_spans(a, gen, events, here));
    events += here;
    n -= here;
  }
  return TB_OK;
}

tb_rc to_analyses_generation_ends(struct to_analyses *a, const struct to_generation *gen) {
  a->generation = NULL;
  TB_TRY(take_turn(a));
  TB_TRY(to_spans_generation_ends(a->spans, gen));
  return to_windows_settle(&a->windows);
}

void to_analyses_thin(struct to_analyses *a, bool thins) {
  to_spans_thin(a->spans, thins);
}

void to_analyses_epoch(struct to_analyses *a) {
  a->in_epoch = false;
  a->generation = NULL;
  a->failed = take_turn(a);
  if (a->failed == TB_OK) a->failed = settle(a);
  if (a->failed == TB_OK) a->failed = to_spans_epoch(a->spans);
  to_windows_note(&a->windows, 0, 0, a->windows.last); /* spans were cut: views are out of date */
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (analyses[k].ops->epoch != NULL) analyses[k].ops->epoch(a);
}

void to_analyses_clock(struct to_analyses *a, to_ns trace_ns, uint64_t wall_ns) {
  a->has_clock = true;
  a->clock_trace_ns = trace_ns;
  a->clock_wall_ns = wall_ns;
}

uint64_t to_analyses_wall(const struct to_analyses *a, to_ns trace_ns) {
  if (!a->has_clock) return 0;
  return a->clock_wall_ns + ((uint64_t)trace_ns - (uint64_t)a->clock_trace_ns);
}

void to_analyses_watch(struct to_analyses *a, const struct to_watch *watch) {
  a->watch = watch != NULL ? *watch : (struct to_watch){ .span = NULL };
  to_spans_want_pieces(a->spans, a->watch.span != NULL);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (analyses[k].ops->watched != NULL) analyses[k].ops->watched(a);
  set_all_meets(a);
}

void to_analyses_overdue(struct to_analyses *a, to_ns age_ns) {
  if (a->watch.span == NULL) return;
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS && a->failed == TB_OK; k++)
    if (analyses[k].ops->overdue != NULL) a->failed = analyses[k].ops->overdue(a, age_ns);
}

static tb_rc settle_sums(struct to_analyses *a) {
  if (a->sums.n_held == 0) return TB_OK;
  to_windows_note(&a->windows, 0, 0, a->windows.last); /* views are out of date */
  return to_span_sums_settle(&a->sums, 0);
}

tb_rc to_analyses_mark(struct to_analyses *a) {
  TB_TRY(take_turn(a));
  TB_TRY(settle_sums(a));
  TB_TRY(settle(a));
  TB_TRY(to_windows_mark(&a->windows));
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (analyses[k].ops->mark != NULL) TB_TRY(analyses[k].ops->mark(a));
  return TB_OK;
}
static const char THINNED[] =
    "The collector was overloaded and thinned the stream: states of goroutines are counted for the "
    "analysed share of the events, and not scaled up.";

struct ask {
  size_t rows_max;
  bool totals, is_of_figures;
};

static tb_rc make_report(struct to_analyses *a, enum to_analysis_kind kind, enum to_window window,
                         struct ask ask, const struct to_report **out) {
  struct to_draft draft;
  struct to_view view;

  tb_arena_reset(&a->report_arena);
  TB_TRY(take_turn(a));
  TB_TRY(settle_sums(a));
  TB_TRY(settle(a));
  TB_TRY(to_windows_view(&a->windows, window, &view));
  a->report = (struct to_report){
    .kind = kind,
    .schema = &analyses[kind].ops->schema,
    .program = to_spans_program(a->spans),
    .window = window,
    .from = view.from,
    .until = view.until,
    .from_wall_ns = to_analyses_wall(a, view.from),
    .until_wall_ns = to_analyses_wall(a, view.until),
    .first_gen = view.stretch.first_gen,
    .last_gen = view.stretch.last_gen,
    .events = view.stretch.events,
    .thinned_events = analyses[kind].ops->thins ? view.stretch.thinned : 0,
    .epochs = a->epochs,
  };
  tb_rc rc = to_draft_begin(&draft, a->report.schema, &view, &a->report_arena);
  draft.totals = ask.totals;
  draft.is_of_figures = ask.is_of_figures;
  if (a->report.thinned_events > 0 && rc == TB_OK) rc = to_draft_note(&draft, THINNED);
  if (rc == TB_OK) rc = analyses[kind].ops->report(a, &view, &draft);
  if (rc == TB_OK) rc = to_draft_finish(&draft, ask.rows_max, &a->report);
  to_draft_fini(&draft);
  *out = &a->report;
  return rc;
}

tb_rc to_analyses_report(struct to_analyses *a, enum to_analysis_kind kind, enum to_window window,
                         size_t rows_max, const struct to_report **out) {
  return make_report(a, kind, window, (struct ask){ .rows_max = rows_max }, out);
}

tb_rc to_analyses_totals(struct to_analyses *a, enum to_analysis_kind kind, enum to_window window,
                         size_t rows_max, const struct to_report **out) {
  return make_report(a, kind, window, (struct ask){ .rows_max = rows_max, .totals = true }, out);
}

tb_rc to_analyses_figures(struct to_analyses *a, enum to_analysis_kind kind, enum to_window window,
                          bool with_quantiles, const struct to_report **out) {
  const struct ask ask = { .totals = !with_quantiles, .is_of_figures = true };

  return make_report(a, kind, window, ask, out);
}

const char *to_finding_name(enum to_finding_kind kind) {
  static const char *const names[TO_FINDINGS] = { "deadlock", "convoy",  "stall",    "leak",
                                                  "assists",  "starved", "misnested" };
  return names[kind];
}

static bool is_over(const struct to__over *over) {
  return over->in_a_row >= TO__OVER_GENERATIONS && over->at - over->since >= TO__FINDING_NS;
}

bool to__over_look(struct to__over *over, to_ns now, uint64_t part, uint64_t whole, double limit) {
  uint64_t of = whole - over->whole;

  if (over->at != 0 && now <= over->at) return is_over(over);
  over->share = over->at == 0 || of == 0 ? 0 : (double)(part - over->part) / (double)of;
  if (over->in_a_row >= TO__OVER_GENERATIONS)
    limit /= 2; /* a share that swings around the limit is one finding */
  if (over->share < limit)
    over->in_a_row = 0;
  else if (over->in_a_row++ == 0)
    over->since = over->at;
  over->at = now;
  over->part = part;
  over->whole = whole;
  return is_over(over);
}

double to__share_of_wall(const struct to_view *view, uint32_t series, to_ns open_since) {
  const struct to_count *ended = to_view_cell(view, series);
  double wall = (double)((uint64_t)view->until - (uint64_t)view->from), ns = 0;
  to_ns begin = open_since > view->from ? open_since : view->from;

  if (ended != NULL) {
    ns = (double)ended->total_ns;
    if (ended->since < view->from) ns -= (double)((uint64_t)view->from - (uint64_t)ended->since);
  }
  if (view->until > begin) ns += (double)((uint64_t)view->until - (uint64_t)begin);
  if (wall <= 0 || ns <= 0) return 0;
  return ns < wall ? ns / wall : 1;
}

/* Passes findings on in the words of their program. */
struct worded {
  const struct to_finding_sink *sink;
  enum to_program program;
};

static void word_finding(void *self, const struct to_finding *finding) {
  const struct worded *worded = self;
  struct to_finding other = *finding;
  char words[FINDING_BYTES];

  if (worded->program != TO_PROGRAM_GO && finding->words.len > 0) {
    size_t n = to_words_write(worded->program, finding->words.data, words, sizeof words);
    other.words = (struct to_string){ words, n < sizeof words ? n : sizeof words - 1 };
  }
  worded->sink->finding(worded->sink->self, &other);
}

tb_rc to_analyses_findings(struct to_analyses *a, const struct to_finding_sink *sink) {
  struct worded worded = { sink, to_spans_program(a->spans) };
  const struct to_finding_sink in_words = { &worded, word_finding };

  tb_arena_reset(&a->report_arena);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++)
    if (analyses[k].ops->findings != NULL) TB_TRY(analyses[k].ops->findings(a, &in_words));
  return TB_OK;
}

enum to_program to_analyses_program(const struct to_analyses *a) {
  return to_spans_program(a->spans);
}

size_t to_analyses_stops(const struct to_analyses *a, size_t max, struct to_stop_total *out) {
  return to__analysis_stw.stops(a, max, out);
}

const struct to_report *to_analyses_last_report(const struct to_analyses *a) {
  return &a->report;
}
