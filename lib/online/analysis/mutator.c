/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/mutator.h"

#include <string.h>

#include "base/grow.h"
#include "online/event/text.h"
#include "wire/spec.h"

#define NONE_YET 2.0 /* above every mean */

enum {
  ASSISTS = 1,         /* it is in a mark assist */
  WAS_DEDICATED = 2,   /* it was a dedicated background worker before */
  WAS_FRACTIONAL = 4,  /* it was a fractional one before */
  WORKS_DEDICATED = 8, /* it runs as a dedicated one now */
  WORKS_FRACTIONAL = 16,
  RESTS = 32,  /* it waits */
  IDLES = 64,  /* it runs as an idle worker, on a P that is free */
  HELPS = 128, /* it runs, and is in a mark assist */
};
#define WAS_WORKER (uint64_t)(WAS_DEDICATED | WAS_FRACTIONAL)
#define WORKS      (uint64_t)(WORKS_DEDICATED | WORKS_FRACTIONAL)

static bool has_sweep(unsigned set) {
  return set == TO_MUTATOR_SWEEP || set == TO_MUTATOR_PROC_SWEEP;
}

static bool is_per_proc(unsigned set) {
  return set == TO_MUTATOR_PROC || set == TO_MUTATOR_PROC_SWEEP;
}

/* Dedicated workers do not count if each P is considered alone. */
static bool was_worker(unsigned set, uint64_t bits) {
  return (bits & (is_per_proc(set) ? WAS_FRACTIONAL : WAS_WORKER)) != 0;
}

static bool is_worker(unsigned set, uint64_t bits) {
  return (bits & (is_per_proc(set) ? WORKS_FRACTIONAL : WORKS)) != 0;
}

/* ---- curves ---- */

static struct to_utilization *curve_of(const struct to_mutator_of *s, size_t p, unsigned way) {
  return &s->curve[TO_MUTATOR_WAYS * p + way];
}

/* Adds the next curve of a set. The first generation may lower the steps of curves of all Ps. */
static tb_rc add_curve(struct to_mutator *m, unsigned set) {
  struct to_mutator_of *s = &m->set[set];

  TB_TRY(TB_MEM_GROW(m->mem, s->curve, s->curves_room, s->curves));
  struct to_utilization *curve = &s->curve[s->curves++];
  to_utilization_init(curve);
  if (set != TO_MUTATOR_PLAIN) curve->steps_max = TO_MUTATOR_STEPS_MAX;
  if (is_per_proc(set)) to_utilization_started(curve);
  return TB_OK;
}

static double level_of(const struct to_mutator *m, unsigned set, size_t p, unsigned way) {
  const struct to_mutator_of *s = &m->set[set];

  if (m->stops > 0) return 0;
  if (!is_per_proc(set)) return 1 - (double)s->taken[way] / (double)m->procs;
  return p < s->on_room && s->on[p][way] > 0 ? 0 : 1;
}

static tb_rc note_curves(struct to_mutator *m, unsigned set, size_t p, to_ns time) {
  uint32_t procs = m->procs_before != 0 ? m->procs_before : m->procs;

  for (unsigned way = 0; way < TO_MUTATOR_WAYS; way++)
    TB_TRY(to_utilization_step(curve_of(&m->set[set], p, way), m->mem, time,
                               level_of(m, set, p, way), procs));
  return TB_OK;
}

/* Applies the event to one P or to all. Most events of a watched goroutine change nothing. */
static tb_rc note(struct to_mutator *m, const struct to_event *ev) {
  bool changes_all =
      ev->type == TW_EV_STW_BEGIN || ev->type == TW_EV_STW_END || ev->type == TW_EV_PROCS_CHANGE;

  if (!m->changed) return TB_OK;
  for (unsigned set = 0; set < m->sets; set++) {
    size_t n = m->set[set].curves / TO_MUTATOR_WAYS;
    if (m->procs < n) n = m->procs;
    if (!is_per_proc(set) || changes_all)
      for (size_t p = 0; p < n; p++) TB_TRY(note_curves(m, set, p, ev->time));
    else if (ev->p >= 0 && (uint64_t)ev->p < n)
      TB_TRY(note_curves(m, set, (size_t)ev->p, ev->time));
  }
  m->procs_before = m->procs;
  m->changed = false;
  return TB_OK;
}

/* Ends the curves of a P that no longer exists. If it existed for less than a window, its whole time counts. */
static tb_rc end_curves(struct to_mutator *m, struct to_mutator_of *s, size_t p, to_ns time) {
  for (unsigned way = 0; way < TO_MUTATOR_WAYS; way++) {
    struct to_utilization *curve = curve_of(s, p, way);
    double lowest;
    TB_TRY(to_utilization_step(curve, m->mem, time, 0, 1));
    for (unsigned i = 0; i < TO_LENGTHS; i++)
      if (to_utilization_lowest(curve, NULL, TO_WINDOW_ALL, time, i, &lowest) &&
          lowest < s->ended[way][i])
        s->ended[way][i] = lowest;
    to_utilization_cut(curve);
    to_utilization_started(curve);
  }
  return TB_OK;
}

/* Ranges that the first generation finds open have lasted since the begin. */
static void lower(struct to_mutator *m, unsigned set, bool as_go, bool exact) {
  struct to_mutator_of *s = &m->set[set];

  if (as_go) to_utilization_lower(curve_of(s, 0, TO_AS_GO));
  if (exact) to_utilization_lower(curve_of(s, 0, TO_EXACT));
  m->changed = true;
}

/* ---- begin and end ---- */

tb_rc to_mutator_init(struct to_mutator *m, struct tb_mem *mem, bool every_curve) {
  *m = (struct to_mutator){ .mem = mem, .sets = every_curve ? TO_MUTATOR_SETS : 1 };
  tb_map_init(&m->watched, mem, tb_seed());
  for (unsigned set = 0; set < TO_MUTATOR_SETS; set++)
    for (unsigned way = 0; way < TO_MUTATOR_WAYS; way++) {
      for (unsigned i = 0; i < TO_LENGTHS; i++) m->set[set].ended[way][i] = NONE_YET;
      if (set < m->sets && !is_per_proc(set)) TB_TRY(add_curve(m, set));
    }
  return TB_OK;
}

void to_mutator_fini(struct to_mutator *m) {
  if (m->mem == NULL) return;
  for (struct to_mutator_of *s = m->set; s < m->set + TO_MUTATOR_SETS; s++) {
    for (size_t i = 0; i < s->curves; i++) to_utilization_fini(&s->curve[i], m->mem);
    tb_mem_free(m->mem, s->curve, s->curves_room * sizeof(*s->curve));
    tb_mem_free(m->mem, s->on, s->on_room * sizeof(*s->on));
  }
  tb_map_fini(&m->watched);
}

tb_rc to_mutator_slot(struct to_mutator *m, const struct to_windows *w) {
  for (struct to_mutator_of *s = m->set; s < m->set + m->sets; s++)
    for (size_t i = 0; i < s->curves; i++) TB_TRY(to_utilization_slot(&s->curve[i], w));
  return TB_OK;
}

void to_mutator_epoch(struct to_mutator *m) {
  for (unsigned set = 0; set < m->sets; set++) {
    struct to_mutator_of *s = &m->set[set];
    for (size_t i = 0; i < s->curves; i++) {
      to_utilization_cut(&s->curve[i]);
      if (is_per_proc(set)) to_utilization_started(&s->curve[i]);
    }
    if (s->on_room > 0) memset(s->on, 0, s->on_room * sizeof(*s->on));
    memset(s->taken, 0, sizeof(s->taken));
  }
  tb_map_clear(&m->watched);
  memset(&m->follows, 0, sizeof(m->follows));
  m->procs = m->procs_before = 0;
  m->changed = false;
  m->awake = m->working = m->idling = m->helping = m->forgotten = 0;
  m->stops = 0;
  m->syncs = 0;
  m->marking = false;
}

/* ---- Ps ---- */

static void put_on(struct to_mutator *m, struct to_mutator_of *s, size_t p, unsigned way,
                   int32_t by) {
  bool was_taken = s->on[p][way] > 0;

  s->on[p][way] += by;
  bool is_taken = s->on[p][way] > 0;
  s->taken[way] += (uint32_t)is_taken - (uint32_t)was_taken;
  m->changed |= is_taken != was_taken;
}

/* Counts on a P. Skips a P that does not exist, for which Go's reader fails. */
static tb_rc add_on_proc(struct to_mutator *m, unsigned set, int64_t p, int32_t as_go,
                         int32_t exact) {
  struct to_mutator_of *s = &m->set[set];

  if (p < 0 || p >= m->procs || p >= TO_MUTATOR_PROCS_MAX) return TB_OK;
  while (s->on_room <= (size_t)p) {
    size_t room = s->on_room;
    TB_TRY(TB_MEM_GROW(m->mem, s->on, s->on_room, s->on_room));
    memset(s->on + room, 0, (s->on_room - room) * sizeof(*s->on));
  }
  put_on(m, s, (size_t)p, TO_AS_GO, as_go);
  put_on(m, s, (size_t)p, TO_EXACT, exact);
  return TB_OK;
}

static tb_rc set_procs(struct to_mutator *m, uint64_t procs, to_ns time) {
  uint32_t before = m->procs;

  m->procs = procs > UINT32_MAX ? UINT32_MAX : (uint32_t)procs;
  m->changed = true;
  for (unsigned set = 0; set < m->sets; set++) {
    struct to_mutator_of *s = &m->set[set];
    size_t wanted = m->procs < TO_MUTATOR_CURVES_MAX ? m->procs : TO_MUTATOR_CURVES_MAX;
    for (size_t p = m->procs; p < s->on_room; p++) /* a P that is new again begins at 0 */
      for (unsigned way = 0; way < TO_MUTATOR_WAYS; way++) put_on(m, s, p, way, -s->on[p][way]);
    if (!is_per_proc(set)) continue;
    for (size_t p = m->procs; p < before && p < s->curves / TO_MUTATOR_WAYS; p++)
      TB_TRY(end_curves(m, s, p, time));
    while (s->curves < TO_MUTATOR_WAYS * wanted) TB_TRY(add_curve(m, set));
  }
  return TB_OK;
}

/* ---- goroutines ---- */

static bool is_awake(uint64_t bits) {
  return (bits & ASSISTS) != 0 || ((bits & (WAS_WORKER | IDLES)) != 0 && (bits & RESTS) == 0);
}

static uint64_t bits_of(const struct to_mutator *m, int64_t g) {
  const uint64_t *bits = NULL;

  if (to_followed_has(&m->follows, g)) bits = tb_map_find(&m->watched, (uint64_t)g);
  return bits == NULL ? 0 : *bits;
}

static tb_rc set_bits(struct to_mutator *m, int64_t g, uint64_t old, uint64_t bits) {
  uint64_t *place;

  if (bits == old) return TB_OK;
  if ((bits & (ASSISTS | WAS_WORKER | IDLES)) == 0) {
    tb_map_remove(&m->watched, (uint64_t)g);
    m->forgotten++;
    bits = 0;
  } else {
    if (old == 0 && m->watched.count == TO_MUTATOR_WATCHED_MAX) return TB_OK;
    TB_TRY(tb_map_put(&m->watched, (uint64_t)g, &place, NULL));
    *place = bits;
    to_followed_add(&m->follows, g);
  }
  m->awake += (size_t)is_awake(bits) - (size_t)is_awake(old);
  m->working += (size_t)((bits & WORKS) != 0) - (size_t)((old & WORKS) != 0);
  m->idling += (size_t)((bits & IDLES) != 0) - (size_t)((old & IDLES) != 0);
  m->helping += (size_t)((bits & HELPS) != 0) - (size_t)((old & HELPS) != 0);
  return TB_OK;
}

/* Called at the end of a cycle, when few are left. */
static void tidy(struct to_mutator *m) {
  uint64_t g, bits;

  if (m->forgotten <= m->watched.slots / 4) return;
  m->forgotten = 0;
  memset(&m->follows, 0, sizeof(m->follows));
  for (size_t i = 0; tb_map_next(&m->watched, &i, &g, &bits);)
    to_followed_add(&m->follows, (int64_t)g);
}

static tb_rc begin_assist(struct to_mutator *m, const struct to_event *ev, int64_t g) {
  uint64_t bits = bits_of(m, g);
  bool runs = g == ev->g && (bits & ASSISTS) == 0;

  for (unsigned set = 0; set < m->sets; set++) TB_TRY(add_on_proc(m, set, ev->p, 1, runs));
  return set_bits(m, g, bits, (bits | ASSISTS | (runs ? HELPS : 0)) & ~(uint64_t)RESTS);
}

/* Go's reader counts it on the event's P, whichever goroutine runs there. */
static tb_rc meet_assist(struct to_mutator *m, const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0];

  if (m->syncs > 1) return TB_OK; /* its begin was seen */
  for (unsigned set = 0; set < m->sets; set++)
    if (!is_per_proc(set)) lower(m, set, ev->g != TO_NONE, ev->g == g);
  return begin_assist(m, ev, g);
}

static tb_rc end_assist(struct to_mutator *m, const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g);
  int32_t exact = (bits & ASSISTS) != 0 ? -1 : 0;

  for (unsigned set = 0; set < m->sets; set++) TB_TRY(add_on_proc(m, set, ev->p, -1, exact));
  return set_bits(m, ev->g, bits, bits & ~(uint64_t)(ASSISTS | HELPS));
}

static tb_rc sweep(struct to_mutator *m, const struct to_event *ev, int32_t by) {
  for (unsigned set = 0; set < m->sets; set++)
    if (has_sweep(set)) TB_TRY(add_on_proc(m, set, ev->p, by, by));
  return TB_OK;
}

static tb_rc meet_sweep(struct to_mutator *m, const struct to_event *ev) {
  if (m->syncs > 1) return TB_OK;
  lower(m, TO_MUTATOR_SWEEP, true, true);
  return sweep(m, ev, 1);
}

/* Returns the bits of a background worker, by its label; 0: another label. */
static uint64_t worker_bits(const struct to_generation *gen, uint64_t label) {
  struct to_string text;

  if (!to_generation_string(gen, label, &text) || text.len < 3) return 0;
  if (memcmp(text.data, "GC ", 3) != 0) return 0;
  if (to_string_is(text, "GC (idle)")) return IDLES;
  return to_string_is(text, "GC (dedicated)") ? WAS_DEDICATED | WORKS_DEDICATED
                                              : WAS_FRACTIONAL | WORKS_FRACTIONAL;
}

static tb_rc take_label(struct to_mutator *m, const struct to_generation *gen,
                        const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g), worker = worker_bits(gen, ev->args[0]);

  if (worker == 0) return TB_OK;
  for (unsigned set = 0; set < m->sets; set++)
    if (was_worker(set, worker)) TB_TRY(add_on_proc(m, set, ev->p, 1, !is_worker(set, bits)));
  return set_bits(m, ev->g, bits, (bits | worker) & ~(uint64_t)RESTS);
}

static tb_rc start(struct to_mutator *m, const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0];
  uint64_t bits = bits_of(m, g);
  bool assists = (bits & ASSISTS) != 0;

  if (bits == 0) return TB_OK;
  for (unsigned set = 0; set < m->sets; set++)
    if (assists || was_worker(set, bits)) TB_TRY(add_on_proc(m, set, ev->p, 1, assists));
  return set_bits(m, g, bits, (bits | (assists ? HELPS : 0)) & ~(uint64_t)RESTS);
}

/* A worker that is woken before a cycle ends may run after the end. */
static tb_rc wake(struct to_mutator *m, const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0];
  uint64_t bits = bits_of(m, g);

  return set_bits(m, g, bits, bits & ~(uint64_t)RESTS);
}

static tb_rc stop(struct to_mutator *m, const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g), rests = ev->type == TW_EV_GO_BLOCK ? RESTS : 0;
  bool assists = (bits & ASSISTS) != 0;

  if (bits == 0) return TB_OK;
  for (unsigned set = 0; set < m->sets; set++)
    if (assists || was_worker(set, bits))
      TB_TRY(add_on_proc(m, set, ev->p, -1, -assists - is_worker(set, bits)));
  if (ev->type == TW_EV_GO_DESTROY) return set_bits(m, ev->g, bits, 0);
  return set_bits(m, ev->g, bits, (bits & ~(WORKS | IDLES | HELPS)) | rests);
}

/* ---- events ---- */

/* A stop of the world for the collector begins or ends. */
static void stop_world(struct to_mutator *m, const struct to_generation *gen, uint64_t string,
                       int64_t by) {
  struct to_string reason;

  if (!to_generation_string(gen, string, &reason)) return;
  if (memmem(reason.data, reason.len, "GC", 2) == NULL) return;
  m->stops += by;
  m->changed = true;
}

static tb_rc take_event(struct to_mutator *m, const struct to_generation *gen,
                        const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_PROCS_CHANGE: return set_procs(m, ev->args[0], ev->time);
  case TW_EV_STW_BEGIN: stop_world(m, gen, ev->args[0], 1); return TB_OK;
  case TW_EV_STW_END: stop_world(m, gen, ev->args[0], -1); return TB_OK;
  case TW_EV_GC_MARK_ASSIST_ACTIVE: return meet_assist(m, ev);
  case TW_EV_GC_MARK_ASSIST_BEGIN: return begin_assist(m, ev, ev->g);
  case TW_EV_GC_MARK_ASSIST_END: return end_assist(m, ev);
  case TW_EV_GC_SWEEP_ACTIVE: return meet_sweep(m, ev);
  case TW_EV_GC_SWEEP_BEGIN: return sweep(m, ev, 1);
  case TW_EV_GC_SWEEP_END: return sweep(m, ev, -1);
  case TW_EV_GO_LABEL: return take_label(m, gen, ev);
  case TW_EV_GO_START: return start(m, ev);
  case TW_EV_GO_UNBLOCK: return wake(m, ev);
  case TW_EV_GO_STOP:
  case TW_EV_GO_BLOCK:
  case TW_EV_GO_DESTROY: return stop(m, ev);
  default: return TB_OK;
  }
}

static void pass_time(struct to_mutator *m, to_ns now) {
  if (now > m->now) {
    m->worked_ns += m->working * ((uint64_t)now - (uint64_t)m->now);
    m->idled_ns += m->idling * ((uint64_t)now - (uint64_t)m->now);
    m->helped_ns += m->helping * ((uint64_t)now - (uint64_t)m->now);
  }
  m->now = now;
}

/* The second generation ends the first one. */
static void count_sync(struct to_mutator *m) {
  if (++m->syncs != 2) return;
  for (unsigned set = 0; set < m->sets; set++)
    if (!is_per_proc(set))
      for (unsigned way = 0; way < TO_MUTATOR_WAYS; way++)
        to_utilization_started(curve_of(&m->set[set], 0, way));
}

tb_rc to_mutator_event(struct to_mutator *m, const struct to_generation *gen,
                       const struct to_event *ev) {
  pass_time(m, ev->time);
  switch (ev->type) {
  case TW_EV_SYNC: count_sync(m); return TB_OK;
  case TW_EV_GC_BEGIN:
  case TW_EV_GC_ACTIVE: m->marking = true; return TB_OK;
  case TW_EV_GC_END:
    m->marking = false;
    tidy(m);
    return TB_OK;
  default: break;
  }
  /* Like Go, counts nothing before GOMAXPROCS is known. */
  if (m->procs == 0 && ev->type != TW_EV_PROCS_CHANGE) return TB_OK;
  TB_TRY(take_event(m, gen, ev));
  return note(m, ev);
}

/* ---- questions ---- */

uint64_t to_mutator_helped_ns(const struct to_mutator *m, to_ns until) {
  return m->helped_ns + (until > m->now ? m->helping * ((uint64_t)until - (uint64_t)m->now) : 0);
}

uint64_t to_mutator_joined(const struct to_mutator *m) {
  uint64_t joined = 0;

  for (const struct to_mutator_of *s = m->set; s < m->set + m->sets; s++)
    for (size_t i = 0; i < s->curves; i++) joined += s->curve[i].joined;
  return joined;
}

bool to_mutator_lowest(struct to_mutator *m, enum to_mutator_set set, enum to_mutator_way way,
                       const struct to_view *view, enum to_window window, to_ns until,
                       unsigned length, double *out) {
  const struct to_mutator_of *s = &m->set[set];
  double lowest = window == TO_WINDOW_ALL ? s->ended[way][length] : NONE_YET, its;

  for (size_t i = way; i < s->curves; i += TO_MUTATOR_WAYS)
    if (to_utilization_lowest(&s->curve[i], view, window, until, length, &its) && its < lowest)
      lowest = its;
  *out = lowest;
  return lowest < NONE_YET;
}
