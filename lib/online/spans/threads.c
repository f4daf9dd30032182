/* SPDX-License-Identifier: Apache-2.0 */
/* States of Ps and threads, and the time in which a goroutine could have run on an idle P. */
#include "online/spans/state.h"

/* --- idle Ps ----------------------------------------------------------------------------------- */

__attribute__((noinline)) void to__spans_waste_begins(struct to_spans *s, to_ns now) {
  s->wasting = true;
  s->wasting_since = now;
}

__attribute__((noinline)) void to__spans_waste_ends(struct to_spans *s, to_ns now) {
  s->wasting = false;
  s->wasted += (uint64_t)now - (uint64_t)s->wasting_since;
}

static void note_idle(struct to_spans *s, int64_t id, bool is_idle, to_ns now) {
  uint64_t place = (uint64_t)id + 1;

  if (place == 0 || place > TO_SPANS_PROCS_NEAR || s->idle_procs[place] == is_idle) return;
  s->idle_procs[place] = is_idle;
  s->idle += is_idle ? 1 : -1u;
  to__spans_waste(s, now);
}

/* From now on, Ps from the new number on do not exist; they must not count as idle. */
void to__spans_procs_change(struct to_spans *s, const struct to_event *ev) {
  if (!to__wants(s, TO_WANT_WASTE)) return;
  for (uint64_t id = ev->args[0]; id < TO_SPANS_PROCS_NEAR; id++)
    note_idle(s, (int64_t)id, false, ev->time);
}

/* --- threads ----------------------------------------------------------------------------------- */

static tb_rc claim_thread(struct to_spans *s, int64_t id, struct to_thread_life **out) {
  bool fresh;

  TB_TRY(tb_map_claim(&s->threads, (uint64_t)id, sizeof **out, out, &fresh));
  if (fresh)
    **out = (struct to_thread_life){ .since = s->began, .goroutine = TO_NONE, .proc = TO_NONE };
  return TB_OK;
}

/* Returns the goroutine that the thread has after the event. */
static int64_t goroutine_after(const struct to_event *ev, int64_t id,
                               const struct to_thread_life *before, enum to_thread_state state) {
  if (state == TO_THREAD_IDLE) return TO_NONE;
  switch (ev->type) {
  case TW_EV_GO_START:
  case TW_EV_GO_CREATE_SYSCALL:
  case TW_EV_GO_STATUS:
  case TW_EV_GO_STATUS_STACK: return (int64_t)ev->args[0];
  default: return ev->m == id ? ev->g : before->goroutine;
  }
}

tb_rc to__spans_change_thread(struct to_spans *s, const struct to_event *ev, int64_t id,
                              enum to_thread_state state) {
  bool stated = ev->type == TW_EV_GO_STATUS || ev->type == TW_EV_GO_STATUS_STACK;
  struct to_thread_life *t;

  if (id == TO_NONE) return TB_OK;
  TB_TRY(claim_thread(s, id, &t));
  if (!t->seen) t->state = stated ? (uint8_t)state : TO_THREAD_IDLE;
  t->seen = true;
  t->goroutine = goroutine_after(ev, id, t, state);
  if (t->state == state) return TB_OK;
  struct to_span *span = to__spans_put(s, ev, TO_SPAN_THREAD);
  span->from = t->since;
  span->id = span->thread = id;
  span->state = t->state;
  span->from_known = t->known;
  t->since = ev->time;
  t->state = (uint8_t)state;
  t->known = true;
  return TB_OK;
}

/* --- Ps ---------------------------------------------------------------------------------------- */

/* Sets or clears the P of the P's thread. */
static tb_rc set_thread_proc(struct to_spans *s, const struct to_proc_life *p, bool has) {
  struct to_thread_life *t;

  if (p->state != TO_PROC_RUNNING || p->thread == TO_NONE || !to__wants(s, TO_WANT(THREAD)))
    return TB_OK;
  TB_TRY(claim_thread(s, p->thread, &t));
  if (has)
    t->proc = p->id;
  else if (t->proc == p->id)
    t->proc = TO_NONE;
  return TB_OK;
}

tb_rc to__spans_proc_to(struct to_spans *s, const struct to_event *ev, int64_t id,
                        enum to_proc_state state, int64_t thread, bool known) {
  struct to_proc_life *p;
  bool fresh;

  if (to__wants(s, TO_WANT_WASTE)) note_idle(s, id, state == TO_PROC_IDLE, ev->time);
  if (id == TO_NONE || !to__wants(s, TO_WANT(PROC))) return TB_OK;
  TB_TRY(tb_map_claim(&s->procs, (uint64_t)id, sizeof *p, &p, &fresh));
  if (fresh) {
    *p = (struct to_proc_life){ .since = known ? ev->time : s->began,
                                .id = id,
                                .thread = thread,
                                .state = (uint8_t)state,
                                .known = known };
    return set_thread_proc(s, p, true);
  }
  if (p->state == state) return TB_OK;
  TB_TRY(set_thread_proc(s, p, false));
  struct to_span *span = to__spans_put(s, ev, TO_SPAN_PROC);
  span->from = p->since;
  span->id = id;
  span->proc = id;
  span->thread = p->state == TO_PROC_RUNNING ? p->thread : TO_NONE;
  span->state = p->state;
  span->from_known = p->known;
  p->since = ev->time;
  p->state = (uint8_t)state;
  p->thread = thread;
  p->known = true;
  return set_thread_proc(s, p, true);
}

tb_rc to__spans_proc_status(struct to_spans *s, const struct to_event *ev) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  return to__spans_proc_to(s, ev, tr.id, (enum to_proc_state)tr.to, ev->m,
                           tr.from != TO_PROC_UNDETERMINED);
}

void to__spans_threads_init(struct to_spans *s) {
  tb_map_init(&s->procs, s->mem, tb_seed());
  tb_map_init(&s->threads, s->mem, tb_seed());
}

static void drop_all(struct to_spans *s, struct tb_map *map, size_t bytes) {
  uint64_t id, value;

  for (size_t i = 0; tb_map_next(map, &i, &id, &value);)
    tb_mem_free(s->mem, (void *)(uintptr_t)value, bytes);
  tb_map_clear(map);
}

void to__spans_threads_clear(struct to_spans *s) {
  drop_all(s, &s->procs, sizeof(struct to_proc_life));
  drop_all(s, &s->threads, sizeof(struct to_thread_life));
}

void to__spans_threads_fini(struct to_spans *s) {
  to__spans_threads_clear(s);
  tb_map_fini(&s->procs);
  tb_map_fini(&s->threads);
}
