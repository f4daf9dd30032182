/* SPDX-License-Identifier: Apache-2.0 */
#include "online/analysis/mutator.h"

#include <string.h>

#include "base/grow.h"
#include "wire/spec.h"

enum {
  ASSISTS = 1, /* it is in a mark assist */
  WORKER = 2,  /* it was a background worker once */
  WORKS = 4,   /* it runs as one now */
  RESTS = 8,   /* it waits */
  IDLES = 16,  /* it runs as one where its P has nothing else to do */
  HELPS = 32,  /* it runs, and is in a mark assist */
};

void to_mutator_init(struct to_mutator *m, struct tb_mem *mem) {
  *m = (struct to_mutator){ .mem = mem };
  to_utilization_init(&m->as_go);
  to_utilization_init(&m->exact);
  tb_map_init(&m->watched, mem, tb_seed());
}

void to_mutator_fini(struct to_mutator *m) {
  if (m->mem == NULL) return;
  to_utilization_fini(&m->as_go, m->mem);
  to_utilization_fini(&m->exact, m->mem);
  tb_map_fini(&m->watched);
  tb_mem_give(m->mem, m->proc, m->procs_room * sizeof(*m->proc));
}

/* ---- Ps ---- */

static void count(int32_t *place, int32_t by, uint32_t *on) {
  *on -= *place > 0;
  *place += by;
  *on += *place > 0;
}

/* Go's reader counts on a P that is there, or fails. */
static tb_rc add(struct to_mutator *m, int64_t p, int32_t as_go, int32_t exact) {
  if (p < 0 || p >= m->is.procs || p >= TO_MUTATOR_PROCS_MAX) return TB_OK;
  while (m->procs_room <= (size_t)p) {
    size_t room = m->procs_room;
    TB_TRY(TB_MEM_GROW(m->mem, m->proc, m->procs_room, m->procs_room));
    memset(m->proc + room, 0, (m->procs_room - room) * sizeof(*m->proc));
  }
  count(&m->proc[p].as_go, as_go, &m->is.as_go);
  count(&m->proc[p].exact, exact, &m->is.exact);
  return TB_OK;
}

static void set_procs(struct to_mutator *m, uint64_t procs) {
  m->is.procs = procs > UINT32_MAX ? UINT32_MAX : (uint32_t)procs;
  for (size_t p = m->is.procs; p < m->procs_room; p++) { /* new ones begin with nothing */
    count(&m->proc[p].as_go, -m->proc[p].as_go, &m->is.as_go);
    count(&m->proc[p].exact, -m->proc[p].exact, &m->is.exact);
  }
}

static double level_of(const struct to_mutator_level *is, uint32_t on) {
  return is->stops ? 0 : 1 - (double)on / (double)is->procs;
}

static bool is_same(const struct to_mutator_level *a, const struct to_mutator_level *b) {
  return a->procs == b->procs && a->as_go == b->as_go && a->exact == b->exact &&
         a->stops == b->stops;
}

/* Most of what a watched goroutine does changes nothing. */
static tb_rc note(struct to_mutator *m, to_ns time) {
  uint32_t procs = m->noted.procs != 0 ? m->noted.procs : m->is.procs;

  m->is.stops = m->stops > 0;
  if (is_same(&m->is, &m->noted) && !m->lowered) return TB_OK;
  if (m->is.procs > 0) {
    TB_TRY(to_utilization_step(&m->as_go, m->mem, time, level_of(&m->is, m->is.as_go), procs));
    TB_TRY(to_utilization_step(&m->exact, m->mem, time, level_of(&m->is, m->is.exact), procs));
  }
  m->noted = m->is;
  m->lowered = false;
  return TB_OK;
}

/* ---- goroutines ---- */

static bool is_awake(uint64_t bits) {
  return (bits & ASSISTS) != 0 || ((bits & (WORKER | IDLES)) != 0 && (bits & RESTS) == 0);
}

static uint64_t bits_of(const struct to_mutator *m, int64_t g) {
  const uint64_t *bits = NULL;

  if (to_followed_has(&m->follows, g)) bits = tb_map_find(&m->watched, (uint64_t)g);
  return bits == NULL ? 0 : *bits;
}

static tb_rc set_bits(struct to_mutator *m, int64_t g, uint64_t old, uint64_t bits) {
  uint64_t *place;

  if (bits == old) return TB_OK;
  if ((bits & (ASSISTS | WORKER | IDLES)) == 0) {
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

/* At the end of a cycle few are left. */
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

  TB_TRY(add(m, ev->p, 1, runs));
  return set_bits(m, g, bits, (bits | ASSISTS | (runs ? HELPS : 0)) & ~(uint64_t)RESTS);
}

/* Go's reader counts it on the event's P, whichever goroutine runs there. */
static tb_rc meet_assist(struct to_mutator *m, const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0];

  if (m->syncs > 1) return TB_OK; /* its begin was seen */
  m->lowered = true;
  if (ev->g != TO_NONE) to_utilization_lower(&m->as_go);
  if (ev->g == g) to_utilization_lower(&m->exact);
  return begin_assist(m, ev, g);
}

static tb_rc end_assist(struct to_mutator *m, const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g);

  TB_TRY(add(m, ev->p, -1, (bits & ASSISTS) != 0 ? -1 : 0));
  return set_bits(m, ev->g, bits, bits & ~(uint64_t)(ASSISTS | HELPS));
}

static bool is_text(struct to_string text, const char *other) {
  return text.len == strlen(other) && memcmp(text.data, other, text.len) == 0;
}

enum to_worker to_mutator_worker(const struct to_generation *gen, uint64_t label) {
  struct to_string text;

  if (!to_generation_string(gen, label, &text) || text.len < 3) return TO_WORKER_NONE;
  if (memcmp(text.data, "GC ", 3) != 0) return TO_WORKER_NONE;
  if (is_text(text, "GC (idle)")) return TO_WORKER_IDLE;
  return is_text(text, "GC (dedicated)") ? TO_WORKER_DEDICATED : TO_WORKER_OTHER;
}

/* 0: it is none. */
static uint64_t worker_bit(const struct to_generation *gen, uint64_t label) {
  enum to_worker worker = to_mutator_worker(gen, label);

  if (worker == TO_WORKER_NONE) return 0;
  return worker == TO_WORKER_IDLE ? IDLES : WORKS;
}

static tb_rc take_label(struct to_mutator *m, const struct to_generation *gen,
                        const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g), bit = worker_bit(gen, ev->args[0]);

  if (bit == 0) return TB_OK;
  if (bit == WORKS) {
    TB_TRY(add(m, ev->p, 1, (bits & WORKS) == 0));
    bit |= WORKER;
  }
  return set_bits(m, ev->g, bits, (bits | bit) & ~(uint64_t)RESTS);
}

static tb_rc start(struct to_mutator *m, const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0];
  uint64_t bits = bits_of(m, g);

  if (bits == 0) return TB_OK;
  if ((bits & (ASSISTS | WORKER)) != 0) TB_TRY(add(m, ev->p, 1, (bits & ASSISTS) != 0));
  return set_bits(m, g, bits, (bits | ((bits & ASSISTS) != 0 ? HELPS : 0)) & ~(uint64_t)RESTS);
}

/* A worker that is woken before the cycle's end may run after it. */
static tb_rc wake(struct to_mutator *m, const struct to_event *ev) {
  int64_t g = (int64_t)ev->args[0];
  uint64_t bits = bits_of(m, g);

  return set_bits(m, g, bits, bits & ~(uint64_t)RESTS);
}

static tb_rc stop(struct to_mutator *m, const struct to_event *ev) {
  uint64_t bits = bits_of(m, ev->g), rests = ev->type == TW_EV_GO_BLOCK ? RESTS : 0;

  if (bits == 0) return TB_OK;
  if ((bits & (ASSISTS | WORKER)) != 0)
    TB_TRY(add(m, ev->p, -1, -((bits & ASSISTS) != 0) - ((bits & WORKS) != 0)));
  if (ev->type == TW_EV_GO_DESTROY) return set_bits(m, ev->g, bits, 0);
  return set_bits(m, ev->g, bits, (bits & ~(uint64_t)(WORKS | IDLES | HELPS)) | rests);
}

/* ---- events ---- */

bool to_mutator_stops(const struct to_generation *gen, uint64_t string) {
  struct to_string reason;

  if (!to_generation_string(gen, string, &reason)) return false;
  for (size_t i = 0; i + 1 < reason.len; i++)
    if (reason.data[i] == 'G' && reason.data[i + 1] == 'C') return true;
  return false;
}

static tb_rc take(struct to_mutator *m, const struct to_generation *gen,
                  const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_PROCS_CHANGE: set_procs(m, ev->args[0]); return TB_OK;
  case TW_EV_STW_BEGIN: m->stops += to_mutator_stops(gen, ev->args[0]); return TB_OK;
  case TW_EV_STW_END: m->stops -= to_mutator_stops(gen, ev->args[0]); return TB_OK;
  case TW_EV_GC_MARK_ASSIST_ACTIVE: return meet_assist(m, ev);
  case TW_EV_GC_MARK_ASSIST_BEGIN: return begin_assist(m, ev, ev->g);
  case TW_EV_GC_MARK_ASSIST_END: return end_assist(m, ev);
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

tb_rc to_mutator_event(struct to_mutator *m, const struct to_generation *gen,
                       const struct to_event *ev) {
  pass_time(m, ev->time);
  switch (ev->type) {
  case TW_EV_SYNC:
    if (++m->syncs != 2) return TB_OK;
    to_utilization_started(&m->as_go);
    to_utilization_started(&m->exact);
    return TB_OK;
  case TW_EV_GC_BEGIN:
  case TW_EV_GC_ACTIVE: m->marking = true; return TB_OK;
  case TW_EV_GC_END:
    m->marking = false;
    tidy(m);
    return TB_OK;
  default: break;
  }
  /* As Go: nothing is counted before GOMAXPROCS is known. */
  if (m->is.procs == 0 && ev->type != TW_EV_PROCS_CHANGE) return TB_OK;
  TB_TRY(take(m, gen, ev));
  return note(m, ev->time);
}

uint64_t to_mutator_helped_ns(const struct to_mutator *m, to_ns until) {
  return m->helped_ns + (until > m->now ? m->helping * ((uint64_t)until - (uint64_t)m->now) : 0);
}

void to_mutator_epoch(struct to_mutator *m) {
  tb_map_clear(&m->watched);
  memset(&m->follows, 0, sizeof(m->follows));
  if (m->procs_room > 0) memset(m->proc, 0, m->procs_room * sizeof(*m->proc));
  to_utilization_cut(&m->as_go);
  to_utilization_cut(&m->exact);
  m->is = m->noted = (struct to_mutator_level){ 0 };
  m->lowered = false;
  m->awake = m->working = m->idling = m->helping = m->forgotten = 0;
  m->stops = 0;
  m->syncs = 0;
  m->marking = false;
}
