/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/mutators.h"

#include <string.h>

#include "base/grow.h"
#include "online/analysis/mutator.h"
#include "wire/spec.h"

#define NONE_YET 2.0 /* above every mean */

enum bits {
  ASSISTS = 1,         /* it is in a mark assist */
  WAS_DEDICATED = 2,   /* it was such a worker once */
  WAS_FRACTIONAL = 4,  /* or another one */
  WORKS_DEDICATED = 8, /* it runs as one now */
  WORKS_FRACTIONAL = 16,
};
#define WORKS (uint64_t)(WORKS_DEDICATED | WORKS_FRACTIONAL)

static bool has_sweep(unsigned set) {
  return set != TO_MUTATORS_PROC;
}

static bool is_per_proc(unsigned set) {
  return set != TO_MUTATORS_SWEEP;
}

/* For each P alone dedicated workers do not count. */
static bool was_worker(unsigned set, uint64_t bits) {
  return (bits & (is_per_proc(set) ? WAS_FRACTIONAL : WAS_DEDICATED | WAS_FRACTIONAL)) != 0;
}

static bool is_worker(unsigned set, uint64_t bits) {
  return (bits & (is_per_proc(set) ? WORKS_FRACTIONAL : WORKS)) != 0;
}

/* ---- begin and end ---- */

tb_rc to_mutators_new(struct tb_mem *mem, struct to_mutators **out) {
  struct to_mutators *m;

  TB_TRY(tb_mem_take(mem, sizeof(*m), &m));
  *m = (struct to_mutators){ .mem = mem };
  tb_map_init(&m->goroutines, mem, tb_seed());
  for (struct to_mutators_of *s = m->set; s < m->set + TO_MUTATORS; s++)
    for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++)
      for (unsigned i = 0; i < TO_LENGTHS; i++) s->ended[way][i] = NONE_YET;
  *out = m;
  return TB_OK;
}

void to_mutators_free(struct to_mutators *m) {
  if (m == NULL) return;
  for (struct to_mutators_of *s = m->set; s < m->set + TO_MUTATORS; s++) {
    for (size_t i = 0; i < s->curves; i++)
      for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++)
        to_utilization_fini(&s->curve[i][way], m->mem);
    tb_mem_give(m->mem, s->curve, s->curves_room * sizeof(*s->curve));
    tb_mem_give(m->mem, s->on, s->on_room * sizeof(*s->on));
  }
  tb_map_fini(&m->goroutines);
  tb_mem_give(m->mem, m, sizeof(*m));
}

/* ---- curves ---- */

static double level_of(const struct to_mutators *m, unsigned set, size_t p, unsigned way) {
  const struct to_mutators_of *s = &m->set[set];

  if (m->stops > 0) return 0;
  if (!is_per_proc(set)) return 1 - (double)s->taken[way] / (double)m->procs;
  return p < s->on_room && s->on[p][way] > 0 ? 0 : 1;
}

static tb_rc note_curve(struct to_mutators *m, unsigned set, size_t p, to_ns time) {
  uint32_t procs = m->procs_before != 0 ? m->procs_before : m->procs;

  for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++)
    TB_TRY(to_utilization_step(&m->set[set].curve[p][way], m->mem, time, level_of(m, set, p, way),
                               procs));
  return TB_OK;
}

/* What the event changed: at most one P, or all. */
static tb_rc note(struct to_mutators *m, const struct to_event *ev) {
  bool changes_all =
      ev->type == TW_EV_STW_BEGIN || ev->type == TW_EV_STW_END || ev->type == TW_EV_PROCS_CHANGE;

  for (unsigned set = 0; set < TO_MUTATORS; set++) {
    size_t curves =
        is_per_proc(set) && m->procs < m->set[set].curves ? m->procs : m->set[set].curves;
    if (!is_per_proc(set) || changes_all)
      for (size_t p = 0; p < curves; p++) TB_TRY(note_curve(m, set, p, ev->time));
    else if (ev->p >= 0 && (uint64_t)ev->p < curves)
      TB_TRY(note_curve(m, set, (size_t)ev->p, ev->time));
  }
  m->procs_before = m->procs;
  return TB_OK;
}

static tb_rc add_curve(struct to_mutators *m, unsigned set) {
  struct to_mutators_of *s = &m->set[set];

  TB_TRY(TB_MEM_GROW(m->mem, s->curve, s->curves_room, s->curves));
  for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++) {
    struct to_utilization *curve = &s->curve[s->curves][way];
    to_utilization_init(curve);
    curve->steps_max = TO_MUTATORS_STEPS_MAX;
    if (is_per_proc(set)) to_utilization_started(curve); /* none of its steps is lowered */
  }
  s->curves++;
  return TB_OK;
}

/* The P is gone. If it was there for less time than a window has, all of that counts. */
static tb_rc end_curve(struct to_mutators *m, struct to_mutators_of *s, size_t p, to_ns time) {
  for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++) {
    struct to_utilization *curve = &s->curve[p][way];
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

static tb_rc set_procs(struct to_mutators *m, uint64_t procs, to_ns time) {
  uint32_t before = m->procs;

  m->procs = procs > UINT32_MAX ? UINT32_MAX : (uint32_t)procs;
  for (unsigned set = 0; set < TO_MUTATORS; set++) {
    struct to_mutators_of *s = &m->set[set];
    size_t wanted = is_per_proc(set) ? m->procs : m->procs > 0;
    for (size_t p = m->procs; is_per_proc(set) && p < before && p < s->curves; p++)
      TB_TRY(end_curve(m, s, p, time));
    while (s->curves < wanted && s->curves < TO_MUTATORS_PROCS_MAX) TB_TRY(add_curve(m, set));
    for (size_t p = m->procs; p < s->on_room; p++) /* new ones begin with nothing */
      for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++) {
        s->taken[way] -= s->on[p][way] > 0;
        s->on[p][way] = 0;
      }
  }
  return TB_OK;
}

/* Go's reader counts on a P that is there, or fails. */
static tb_rc add(struct to_mutators *m, unsigned set, int64_t p, int32_t as_go, int32_t exact) {
  const int32_t by[TO_MUTATORS_WAYS] = { as_go, exact };
  struct to_mutators_of *s = &m->set[set];

  if (p < 0 || p >= m->procs || p >= TO_MUTATOR_PROCS_MAX) return TB_OK;
  while (s->on_room <= (size_t)p) {
    size_t room = s->on_room;
    TB_TRY(TB_MEM_GROW(m->mem, s->on, s->on_room, s->on_room));
    memset(s->on + room, 0, (s->on_room - room) * sizeof(*s->on));
  }
  for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++) {
    s->taken[way] -= s->on[p][way] > 0;
    s->on[p][way] += by[way];
    s->taken[way] += s->on[p][way] > 0;
  }
  return TB_OK;
}

/* ---- goroutines ---- */

static uint64_t bits_of(const struct to_mutators *m, int64_t g) {
  const uint64_t *bits = tb_map_find(&m->goroutines, (uint64_t)g);

  return bits == NULL ? 0 : *bits;
}

static tb_rc set_bits(struct to_mutators *m, int64_t g, uint64_t bits) {
  uint64_t *place;

  if (bits == 0) {
    tb_map_remove(&m->goroutines, (uint64_t)g);
    return TB_OK;
  }
  if (m->goroutines.count >= TO_MUTATORS_GOROUTINES_MAX && bits_of(m, g) == 0) return TB_OK;
  TB_TRY(tb_map_put(&m->goroutines, (uint64_t)g, &place, NULL));
  *place = bits;
  return TB_OK;
}

static tb_rc begin_assist(struct to_mutators *m, const struct to_event *ev, int64_t g) {
  uint64_t bits = bits_of(m, g);
  bool runs = g == ev->g && (bits & ASSISTS) == 0;

  for (unsigned set = 0; set < TO_MUTATORS; set++) TB_TRY(add(m, set, ev->p, 1, runs));
  return set_bits(m, g, bits | ASSISTS);
}

/* What the first generation meets has been going on since the begin. */
static void lower(struct to_mutators *m, bool as_go, bool exact) {
  struct to_mutators_of *s = &m->set[TO_MUTATORS_SWEEP];

  if (s->curves == 0) return;
  if (as_go) to_utilization_lower(&s->curve[0][TO_AS_GO]);
  if (exact) to_utilization_lower(&s->curve[0][TO_EXACT]);
}

/* Go's reader counts it on the event's P, whichever goroutine runs there. */
static tb_rc meet_assist(struct to_mutators *m, const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0];

  if (m->syncs > 1) return TB_OK; /* its begin was seen */
  lower(m, ev->g != TO_NONE, ev->g == g);
  return begin_assist(m, ev, g);
}

static tb_rc end_assist(struct to_mutators *m, const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g);
  int32_t exact = (bits & ASSISTS) != 0 ? -1 : 0;

  for (unsigned set = 0; set < TO_MUTATORS; set++) TB_TRY(add(m, set, ev->p, -1, exact));
  return set_bits(m, ev->g, bits & ~(uint64_t)ASSISTS);
}

static tb_rc sweep(struct to_mutators *m, const struct to_event *ev, int32_t by) {
  for (unsigned set = 0; set < TO_MUTATORS; set++)
    if (has_sweep(set)) TB_TRY(add(m, set, ev->p, by, by));
  return TB_OK;
}

static tb_rc meet_sweep(struct to_mutators *m, const struct to_event *ev) {
  if (m->syncs > 1) return TB_OK;
  lower(m, true, true);
  return sweep(m, ev, 1);
}

static tb_rc take_label(struct to_mutators *m, const struct to_generation *gen,
                        const struct to_event *ev) {
  uint64_t before = bits_of(m, ev->g), bits = before;

  enum to_worker worker = to_mutator_worker(gen, ev->args[0]);

  if (worker == TO_WORKER_NONE || worker == TO_WORKER_IDLE) return TB_OK;
  bool dedicated = worker == TO_WORKER_DEDICATED;
  bits |= dedicated ? WAS_DEDICATED | WORKS_DEDICATED : WAS_FRACTIONAL | WORKS_FRACTIONAL;
  for (unsigned set = 0; set < TO_MUTATORS; set++)
    if (!dedicated || !is_per_proc(set))
      TB_TRY(add(m, set, ev->p, 1, is_worker(set, bits) && !is_worker(set, before)));
  return set_bits(m, ev->g, bits);
}

static tb_rc start(struct to_mutators *m, const struct to_event *ev) {
  uint64_t bits = bits_of(m, (int64_t)ev->args[0]);
  bool assists = (bits & ASSISTS) != 0;

  for (unsigned set = 0; set < TO_MUTATORS && bits != 0; set++)
    if (assists || was_worker(set, bits)) TB_TRY(add(m, set, ev->p, 1, assists));
  return TB_OK;
}

static tb_rc stop(struct to_mutators *m, const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g);
  bool assists = (bits & ASSISTS) != 0;

  if (bits == 0) return TB_OK;
  for (unsigned set = 0; set < TO_MUTATORS; set++)
    if (assists || was_worker(set, bits))
      TB_TRY(add(m, set, ev->p, -1, -assists - is_worker(set, bits)));
  return set_bits(m, ev->g, ev->type == TW_EV_GO_DESTROY ? 0 : bits & ~WORKS);
}

/* ---- events ---- */

static tb_rc take(struct to_mutators *m, const struct to_generation *gen,
                  const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_PROCS_CHANGE: return set_procs(m, ev->args[0], ev->time);
  case TW_EV_STW_BEGIN: m->stops += to_mutator_stops(gen, ev->args[0]); return TB_OK;
  case TW_EV_STW_END: m->stops -= to_mutator_stops(gen, ev->args[0]); return TB_OK;
  case TW_EV_GC_MARK_ASSIST_ACTIVE: return meet_assist(m, ev);
  case TW_EV_GC_MARK_ASSIST_BEGIN: return begin_assist(m, ev, ev->g);
  case TW_EV_GC_MARK_ASSIST_END: return end_assist(m, ev);
  case TW_EV_GC_SWEEP_ACTIVE: return meet_sweep(m, ev);
  case TW_EV_GC_SWEEP_BEGIN: return sweep(m, ev, 1);
  case TW_EV_GC_SWEEP_END: return sweep(m, ev, -1);
  case TW_EV_GO_LABEL: return take_label(m, gen, ev);
  case TW_EV_GO_START: return start(m, ev);
  default: return stop(m, ev);
  }
}

static void count_sync(struct to_mutators *m) {
  struct to_mutators_of *s = &m->set[TO_MUTATORS_SWEEP];

  if (++m->syncs != 2 || s->curves == 0) return;
  for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++) to_utilization_started(&s->curve[0][way]);
}

static bool takes(const struct to_event *ev) {
  static const uint64_t types =
      UINT64_C(1) << TW_EV_SYNC | UINT64_C(1) << TW_EV_PROCS_CHANGE |
      UINT64_C(1) << TW_EV_STW_BEGIN | UINT64_C(1) << TW_EV_STW_END |
      UINT64_C(1) << TW_EV_GC_MARK_ASSIST_ACTIVE | UINT64_C(1) << TW_EV_GC_MARK_ASSIST_BEGIN |
      UINT64_C(1) << TW_EV_GC_MARK_ASSIST_END | UINT64_C(1) << TW_EV_GC_SWEEP_ACTIVE |
      UINT64_C(1) << TW_EV_GC_SWEEP_BEGIN | UINT64_C(1) << TW_EV_GC_SWEEP_END |
      UINT64_C(1) << TW_EV_GO_LABEL | UINT64_C(1) << TW_EV_GO_START | UINT64_C(1) << TW_EV_GO_STOP |
      UINT64_C(1) << TW_EV_GO_BLOCK | UINT64_C(1) << TW_EV_GO_DESTROY;

  return ev->type < 64 && (types >> ev->type & 1) != 0;
}

tb_rc to_mutators_events(struct to_mutators *m, const struct to_generation *gen,
                         const struct to_event *events, size_t n) {
  for (const struct to_event *ev = events; ev < events + n; ev++) {
    if (!takes(ev)) continue;
    if (ev->type == TW_EV_SYNC) {
      count_sync(m);
      continue;
    }
    /* As Go: nothing is counted before GOMAXPROCS is known. */
    if (m->procs == 0 && ev->type != TW_EV_PROCS_CHANGE) continue;
    TB_TRY(take(m, gen, ev));
    TB_TRY(note(m, ev));
  }
  return TB_OK;
}

tb_rc to_mutators_slot(struct to_mutators *m, const struct to_windows *w) {
  for (const struct to_mutators_of *s = m->set; s < m->set + TO_MUTATORS; s++)
    for (size_t i = 0; i < s->curves; i++)
      for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++)
        TB_TRY(to_utilization_slot(&s->curve[i][way], w));
  return TB_OK;
}

void to_mutators_epoch(struct to_mutators *m) {
  for (unsigned set = 0; set < TO_MUTATORS; set++) {
    struct to_mutators_of *s = &m->set[set];
    for (size_t i = 0; i < s->curves; i++)
      for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++) {
        to_utilization_cut(&s->curve[i][way]);
        if (is_per_proc(set)) to_utilization_started(&s->curve[i][way]);
      }
    if (s->on_room > 0) memset(s->on, 0, s->on_room * sizeof(*s->on));
    memset(s->taken, 0, sizeof(s->taken));
  }
  tb_map_clear(&m->goroutines);
  m->procs = m->procs_before = 0;
  m->stops = 0;
  m->syncs = 0;
}

/* ---- questions ---- */

uint64_t to_mutators_joined(const struct to_mutators *m) {
  uint64_t joined = 0;

  for (const struct to_mutators_of *s = m->set; s < m->set + TO_MUTATORS; s++)
    for (size_t i = 0; i < s->curves; i++)
      for (unsigned way = 0; way < TO_MUTATORS_WAYS; way++) joined += s->curve[i][way].joined;
  return joined;
}

bool to_mutators_lowest(struct to_mutators *m, enum to_mutators_set set, enum to_mutators_way way,
                        const struct to_view *view, enum to_window window, to_ns until,
                        unsigned length, double *out) {
  const struct to_mutators_of *s = &m->set[set];
  double lowest = window == TO_WINDOW_ALL ? s->ended[way][length] : NONE_YET, its;

  for (size_t i = 0; i < s->curves; i++)
    if (to_utilization_lowest(&s->curve[i][way], view, window, until, length, &its) && its < lowest)
      lowest = its;
  *out = lowest;
  return lowest < NONE_YET;
}
