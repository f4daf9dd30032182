/* SPDX-License-Identifier: Apache-2.0 */
/* States of Ps and of threads. */
#include "spans/state.h"

static void note_idle(struct to_spans *s, int64_t id, bool is_idle, to_ns now) {
  uint64_t place = (uint64_t)id + 1;

  if (place == 0 || place > TO_SPANS_PROCS_NEAR || s->idle_procs[place] == is_idle) return;
  s->idle_procs[place] = is_idle;
  s->idle += is_idle ? 1 : -1u;
  to__spans_waste(s, now);
}

void to__spans_procs_change(struct to_spans *s, const struct to_event *ev) {
  for (uint64_t id = ev->args[0]; id < TO_SPANS_PROCS_NEAR; id++)
    note_idle(s, (int64_t)id, false, ev->time);
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
    return TB_OK;
  }
  if (p->state == state) return TB_OK;
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
  return TB_OK;
}

tb_rc to__spans_proc_status(struct to_spans *s, const struct to_event *ev) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  return to__spans_proc_to(s, ev, tr.id, (enum to_proc_state)tr.to, ev->m,
                           tr.from != TO_PROC_UNDETERMINED);
}

/* --- threads ----------------------------------------------------------------------------------- */

tb_rc to__spans_change_thread(struct to_spans *s, const struct to_event *ev, int64_t id,
                              enum to_thread_state state) {
  bool fresh, stated = ev->type == TW_EV_GO_STATUS || ev->type == TW_EV_GO_STATUS_STACK;
  struct to_thread_life *t;

  if (id == TO_NONE) return TB_OK;
  TB_TRY(tb_map_claim(&s->threads, (uint64_t)id, sizeof *t, &t, &fresh));
  if (fresh)
    *t = (struct to_thread_life){ .since = s->began,
                                  .state = stated ? (uint8_t)state : TO_THREAD_IDLE };
  if (t->state == state) return TB_OK;
  struct to_span *span = to__spans_put(s, ev, TO_SPAN_THREAD);
  span->from = t->since;
  span->id = span->thread = id;
  span->state = t->state;
  span->from_known = t->known;
  *t = (struct to_thread_life){ .since = ev->time, .state = (uint8_t)state, .known = true };
  return TB_OK;
}
