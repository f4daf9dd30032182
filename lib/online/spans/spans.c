/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the events. An event finds its goroutine without a search, by the orderer's slot or by the P that it
 * runs on. The event's type determines the state that it ends; a span is only made if that state is wanted.
 *
 * A goroutine in a call whose P was taken is found by its thread: these calls, which are few, are in a map. */
#include "online/spans/spans.h"

#include <string.h>

#include "online/event/status.h"
#include "online/spans/out.h"
#include "online/spans/state.h"
#include "online/spans/waits.h"

/* --- output ------------------------------------------------------------------------------------- */

struct to_span *to__spans_put(struct to_spans *s, const struct to_event *ev,
                              enum to_span_kind kind) {
  const struct to_life *by = to__spans_context(s, ev);
  struct to_span *span = &s->slice->out[s->n++];

  *span = (struct to_span){ .kind = kind,
                            .until = ev->time,
                            .proc = TO_NONE,
                            .thread = TO_NONE,
                            .by_life = by == NULL ? 0 : by->life,
                            .by = ev->g,
                            .by_thread = ev->m,
                            .until_known = true,
                            .slot = by == NULL ? 0 : slot_of(s, by) };
  return span;
}

/* --- goroutines -------------------------------------------------------------------------------- */

COLD tb_rc grow(struct to_spans *s, uint32_t slot) {
  void *lives = s->lives, *births = s->births;
  size_t room = s->slots;

  while (room <= slot) room *= 2;
  if (s->births_room < room) { /* an earlier call may have grown only births */
    TB_TRY(tb_mem_resize(s->mem, &births, s->births_room * sizeof *s->births,
                         room * sizeof *s->births));
    s->births = births;
    s->births_room = room;
  }
  TB_TRY(tb_mem_resize(s->mem, &lives, s->slots * sizeof *s->lives, room * sizeof *s->lives));
  s->lives = lives;
  s->slots = room;
  return TB_OK;
}

/* Prepares the slot of a life that begins. Slots below slots_end have been used in this epoch. */
HOT tb_rc claim_slot(struct to_spans *s, uint32_t slot, int64_t id, to_ns at) {
  if (TB_UNLIKELY(slot >= s->slots_end)) {
    if (TB_UNLIKELY(slot >= s->slots)) TB_TRY(grow(s, slot));
    while (s->slots_end <= slot) s->lives[s->slots_end++] = (struct to_life){ .id = TO_FREE_SLOT };
  }
  if (TB_UNLIKELY(s->knows_ids)) {
    uint64_t *place;
    TB_TRY(tb_map_put(&s->by_id, (uint64_t)id, &place, NULL));
    *place = slot;
  }
  if (TB_LIKELY(s->lives[slot].life == 0 || s->sums == NULL)) return TB_OK;
  const struct to_birth *birth = &s->births[slot]; /* a forged trace */
  return to_span_sums_end(s->sums, slot, birth->at, at, birth->known);
}

/* Begins a life in a claimed slot, after the sums have begun it. */
HOT struct to_life *begin_claimed(struct to_spans *s, uint32_t slot, int64_t id,
                                  enum to_go_state state, const struct to_birth *birth) {
  struct to_life *g = &s->lives[slot];

  to__spans_count(s, g->life != 0 ? (enum to_go_state)g->state : TO_GO_NOT_EXIST, state, birth->at);
  if (TB_UNLIKELY(g->life != 0)) leave_queue(s, g);
  if (s->wakers != NULL) to_wakers_forget(s->wakers, slot);
  *g = (struct to_life){ .since = birth->at,
                         .id = id,
                         .life = ++s->last_life,
                         .made_by = TO_NONE,
                         .state = (uint8_t)state,
                         .known = birth->known };
  s->births[slot] = *birth;
  return g;
}

/* Begins the life of a goroutine that existed before the trace, or that no event has created. */
COLD tb_rc begin_life(struct to_spans *s, uint32_t slot, int64_t id, enum to_go_state state,
                      struct to_life **out) {
  const struct to_birth birth = { .at = s->began,
                                  .creator_id = TO_NONE,
                                  .creator_thread = TO_NONE };

  TB_TRY(claim_slot(s, slot, id, birth.at));
  if (s->sums != NULL) TB_TRY(to_span_sums_begin(s->sums, slot));
  *out = begin_claimed(s, slot, id, state, &birth);
  return TB_OK;
}

/* Begins the life of a goroutine that the event creates. */
HOT tb_rc begin_created(struct to_spans *s, const struct to_generation *gen,
                        const struct to_event *ev, enum to_go_state state,
                        const struct to_birth *birth, struct to_life **out) {
  int64_t id = (int64_t)ev->args[0];

  TB_TRY(claim_slot(s, ev->slot, id, ev->time));
  if (s->sums != NULL)
    TB_TRY(to_span_sums_create(s->sums, gen, ev->slot, s->last_life + 1, birth->stack, birth->entry,
                               ev->time));
  *out = begin_claimed(s, ev->slot, id, state, birth);
  return TB_OK;
}

COLD struct to_life *subject_far(struct to_spans *s, const struct to_event *ev) {
  struct to_life *g = NULL;

  s->rc = begin_life(s, ev->slot, (int64_t)ev->args[0], TO_GO_UNDETERMINED, &g);
  return g;
}

/* Returns the goroutine of the event's slot, and begins its life if the trace never named it. NULL: see s->rc. */
HOT struct to_life *subject(struct to_spans *s, const struct to_event *ev) {
  struct to_life *g = &s->lives[ev->slot];

  return TB_LIKELY(ev->slot < s->slots_end && g->life != 0) ? g : subject_far(s, ev);
}

COLD void count_forged(struct to_spans *s, const struct to_life *g, enum to_go_state state,
                       to_ns now) {
  to__spans_count(s, (enum to_go_state)g->state, state, now);
}

/* before: its state until now, except in a forged trace. */
HOT void enter(struct to_spans *s, struct to_life *g, enum to_go_state before,
               enum to_go_state state, enum to_cause cause, const struct to_event *ev) {
  if (TB_LIKELY(g->state == before))
    to__spans_count(s, before, state, ev->time);
  else
    count_forged(s, g, state, ev->time);
  g->since = ev->time;
  g->state = (uint8_t)state;
  g->reason = TO_REASON_OTHER;
  g->cause = (uint8_t)cause;
  g->known = true;
}

COLD tb_rc put_on_far_proc(struct to_spans *s, int64_t proc, uint32_t slot) {
  uint64_t *place;

  if (proc == TO_NONE) return TB_OK;
  TB_TRY(tb_map_put(&s->runs_on_far, (uint64_t)proc, &place, NULL));
  *place = slot;
  return TB_OK;
}

HOT void made_by(struct to_life *g, int64_t id, uint64_t life, uint64_t stack) {
  g->made_by = id;
  g->made_by_life = life;
  g->made_by_stack = stack;
}

/* Binds a P to the goroutine, which is found by that P from now on. */
TB_MUST HOT tb_rc put_on_proc(struct to_spans *s, int64_t proc, uint32_t slot) {
  uint64_t place = (uint64_t)proc + 1;

  if (TB_UNLIKELY(place - 1 >= TO_SPANS_PROCS_NEAR)) return put_on_far_proc(s, proc, slot);
  s->runs_on[place] = slot;
  return TB_OK;
}

static tb_rc bind_thread(struct to_spans *s, struct to_life *g) {
  uint64_t *slot;

  if (g->thread == TO_NONE) return TB_OK;
  TB_TRY(tb_map_put(&s->calls_by_thread, (uint64_t)g->thread, &slot, NULL));
  *slot = slot_of(s, g);
  g->by_thread = true;
  return TB_OK;
}

/* Unbinds the goroutine's thread when its call ends. */
static void unbind_thread(struct to_spans *s, struct to_life *g) {
  const uint64_t *slot;

  if (TB_LIKELY(!g->by_thread)) return;
  g->by_thread = false;
  slot = tb_map_find(&s->calls_by_thread, (uint64_t)g->thread);
  if (slot != NULL && *slot == slot_of(s, g))
    tb_map_remove(&s->calls_by_thread, (uint64_t)g->thread);
}

/* Binds a running goroutine that had no known P to the event's P. */
static void bind_proc(struct to_spans *s, struct to_life *g, const struct to_event *ev) {
  uint64_t place = (uint64_t)ev->p + 1;

  if (g->state != TO_GO_RUNNING || place == 0 || place > TO_SPANS_PROCS_NEAR) return;
  unbind_thread(s, g);
  g->proc = ev->p;
  s->runs_on[place] = slot_of(s, g);
}

/* Makes by_id. A real trace binds each goroutine to one P or thread; a forged one to several. */
static tb_rc map_ids(struct to_spans *s) {
  uint64_t *place;

  if (s->knows_ids) return TB_OK;
  for (uint32_t slot = 0; slot < s->slots_end; slot++) {
    if (s->lives[slot].life == 0) continue;
    TB_TRY(tb_map_put(&s->by_id, (uint64_t)s->lives[slot].id, &place, NULL));
    *place = slot;
  }
  s->knows_ids = true;
  return TB_OK;
}

struct to_life *to__spans_by_id(struct to_spans *s, int64_t id) {
  tb_rc rc = map_ids(s);

  if (rc != TB_OK) {
    tb_map_clear(&s->by_id);
    s->failed = rc;
    return NULL;
  }
  const uint64_t *slot = tb_map_find(&s->by_id, (uint64_t)id);
  return slot == NULL ? NULL : &s->lives[*slot];
}

struct to_life *to__spans_context_far(struct to_spans *s, const struct to_event *ev) {
  const uint64_t *slot;

  if (ev->g == TO_NONE) return NULL;
  slot = tb_map_find(&s->calls_by_thread, (uint64_t)ev->m);
  bool by_thread = slot != NULL && s->lives[*slot].id == ev->g && s->lives[*slot].life != 0;
  struct to_life *g = by_thread ? &s->lives[*slot] : to__spans_by_id(s, ev->g);
  if (g != NULL) bind_proc(s, g, ev);
  return g;
}

COLD tb_rc create(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev,
                  enum to_go_state state) {
  const struct to_life *creator = to__spans_context(s, ev);
  const struct to_birth birth = { .at = ev->time,
                                  .creator = creator == NULL ? 0 : creator->life,
                                  .creator_id = ev->g,
                                  .creator_thread = ev->m,
                                  .entry = ev->args[1],
                                  .stack = ev->args[2],
                                  .known = true };
  struct to_life *g;

  TB_TRY(begin_created(s, gen, ev, state, &birth, &g));
  g->stack = birth.entry;
  if (state != TO_GO_RUNNABLE) return TB_OK;
  g->cause = TO_CAUSE_CREATED;
  made_by(g, ev->g, birth.creator, birth.stack);
  return TB_OK;
}

COLD tb_rc create_in_call(struct to_spans *s, const struct to_generation *gen,
                          const struct to_event *ev) {
  const struct to_birth birth = {
    .at = ev->time, .creator_id = TO_NONE, .creator_thread = ev->m, .known = true
  };
  struct to_life *g;

  TB_TRY(begin_created(s, gen, ev, TO_GO_SYSCALL, &birth, &g));
  g->thread = ev->m;
  g->proc = TO_NONE;
  g->piece_since = ev->time;
  g->without_p = true;
  TB_TRY(bind_thread(s, g));
  return to__spans_thread(s, ev, ev->m, TO_THREAD_BLOCKED);
}

/* Ends a life and all that is open on its goroutine. */
COLD tb_rc end_life(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev,
                    struct to_life *g) {
  const struct to_birth *birth = &s->births[slot_of(s, g)];
  struct to_string label = { 0 };

  if (TB_UNLIKELY(g->more != 0)) TB_TRY(to__spans_end_more(s, gen, ev, g, &label));
  if (s->sums != NULL) {
    TB_TRY(to_span_sums_settle(s->sums, g->life));
    TB_TRY(to_span_sums_end(s->sums, slot_of(s, g), birth->at, ev->time, birth->known));
  }
  if (to__wants(s, TO_WANT(LIFE))) {
    struct to_span *span = to__spans_put(s, ev, TO_SPAN_LIFE);
    span->from = birth->at;
    span->id = g->id;
    span->life = g->life;
    span->slot = slot_of(s, g);
    span->by_life = birth->creator;
    span->by = birth->creator_id;
    span->by_thread = birth->creator_thread;
    span->stack = birth->entry;
    span->end_stack = birth->stack;
    span->from_known = birth->known;
    if (label.len > 0) to__spans_more(s, span)->name = label;
  }
  if (TB_UNLIKELY(s->knows_ids)) tb_map_remove(&s->by_id, (uint64_t)g->id);
  to__spans_count(s, (enum to_go_state)g->state, TO_GO_NOT_EXIST, ev->time);
  leave_queue(s, g);
  g->life = 0;
  g->id = TO_FREE_SLOT;
  return TB_OK;
}

HOT tb_rc start(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev) {
  struct to_life *g = subject(s, ev);

  if (TB_UNLIKELY(g == NULL)) return s->rc;
  put_runnable(s, gen, g, ev);
  enter(s, g, TO_GO_RUNNABLE, TO_GO_RUNNING, TO_CAUSE_UNKNOWN, ev);
  g->thread = ev->m;
  g->proc = ev->p;
  TB_TRY(put_on_proc(s, ev->p, ev->slot));
  return to__spans_thread(s, ev, ev->m, TO_THREAD_RUNNING);
}

/* Handles GoBlock and GoStop: a running goroutine leaves its thread. */
HOT tb_rc leave(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev,
                enum to_go_state state) {
  struct to_life *g = to__spans_context(s, ev);
  uint64_t stack = ev->args[1];

  if (TB_UNLIKELY(g == NULL)) return TB_OK;
  put_state(s, gen, g, slot_of(s, g), TO_GO_RUNNING, ev, g->life, stack, stack, false);
  if (TB_UNLIKELY(g->more != 0)) to__spans_label_off(s, g);
  enter(s, g, TO_GO_RUNNING, state, TO_CAUSE_UNKNOWN, ev);
  g->stack = stack;
  const struct to_reason_met *met = reason_of(s, gen, ev->args[0]);
  g->reason = met->reason;
  if (state != TO_GO_RUNNABLE) {
    g->lock = met->lock;
    g->holder = met->holder;
    if (to_queues_want(s->queues, g->reason)) TB_TRY(enter_queue(s, gen, g));
    return to__spans_thread(s, ev, ev->m, TO_THREAD_IDLE);
  }
  made_by(g, g->id, g->life, stack);
  g->cause = g->reason == TO_REASON_PREEMPTED ? TO_CAUSE_PREEMPTED : TO_CAUSE_YIELDED;
  return to__spans_thread(s, ev, ev->m, TO_THREAD_IDLE);
}

COLD tb_rc destroy(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);

  if (TB_UNLIKELY(g == NULL)) return TB_OK;
  put_state(s, gen, g, slot_of(s, g), TO_GO_RUNNING, ev, g->life, 0, 0, false);
  TB_TRY(to__spans_thread(s, ev, ev->m, TO_THREAD_IDLE));
  return end_life(s, gen, ev, g);
}

HOT tb_rc unblock(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev,
                  uint64_t stack) {
  struct to_life *g = subject(s, ev);

  if (TB_UNLIKELY(g == NULL)) return s->rc;
  const struct to_life *by = to__spans_context(s, ev);
  put_state(s, gen, g, ev->slot, TO_GO_WAITING, ev, by == NULL ? 0 : by->life, 0, stack, false);
  if (TB_UNLIKELY(s->locks.n > 0) && s->lock_waits != NULL)
    TB_TRY(count_lock(s, gen, g, by, ev, stack));
  TB_TRY(wake_from_queue(s, g, ev->slot, by));
  enter(s, g, TO_GO_WAITING, TO_GO_RUNNABLE, TO_CAUSE_UNBLOCKED, ev);
  made_by(g, ev->g, by == NULL ? 0 : by->life, stack);
  return TB_OK;
}

HOT void set_call_on(struct to_spans *s, int64_t proc, uint32_t slot) {
  uint64_t place = (uint64_t)proc + 1;

  if (TB_LIKELY(place <= TO_SPANS_PROCS_NEAR)) s->calls_on[place] = slot;
}

/* --- system calls ------------------------------------------------------------------------------ */

HOT tb_rc begin_call(struct to_spans *s, const struct to_generation *gen,
                     const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);
  uint64_t stack = ev->args[1];

  if (TB_UNLIKELY(g == NULL)) return TB_OK;
  put_state(s, gen, g, slot_of(s, g), TO_GO_RUNNING, ev, g->life, stack, stack, false);
  enter(s, g, TO_GO_RUNNING, TO_GO_SYSCALL, TO_CAUSE_UNKNOWN, ev);
  g->stack = stack;
  g->piece_since = ev->time;
  g->without_p = false;
  set_call_on(s, ev->p, slot_of(s, g));
  return to__spans_thread(s, ev, ev->m, TO_THREAD_SYSCALL);
}

HOT tb_rc end_call(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);

  if (TB_UNLIKELY(g == NULL)) return TB_OK;
  put_state(s, gen, g, slot_of(s, g), TO_GO_SYSCALL, ev, g->life, 0, 0, false);
  put_piece(s, gen, g, ev, g->life, false);
  set_call_on(s, g->proc, 0);
  unbind_thread(s, g);
  enter(s, g, TO_GO_SYSCALL, TO_GO_RUNNING, TO_CAUSE_UNKNOWN, ev);
  g->proc = ev->p;
  TB_TRY(put_on_proc(s, ev->p, slot_of(s, g)));
  return to__spans_thread(s, ev, ev->m, TO_THREAD_RUNNING);
}

COLD tb_rc end_blocked_call(struct to_spans *s, const struct to_generation *gen,
                            const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);

  if (g == NULL) return TB_OK;
  put_state(s, gen, g, slot_of(s, g), TO_GO_SYSCALL, ev, g->life, 0, 0, true);
  put_piece(s, gen, g, ev, g->life, false);
  set_call_on(s, g->proc, 0);
  unbind_thread(s, g);
  if (g->more != 0) to__spans_label_off(s, g);
  enter(s, g, TO_GO_SYSCALL, TO_GO_RUNNABLE, TO_CAUSE_SYSCALL, ev);
  made_by(g, g->id, g->life, 0);
  return to__spans_thread(s, ev, ev->m, TO_THREAD_IDLE);
}

COLD tb_rc destroy_in_call(struct to_spans *s, const struct to_generation *gen,
                           const struct to_event *ev) {
  struct to_life *g = to__spans_context(s, ev);

  if (g == NULL) return TB_OK;
  put_state(s, gen, g, slot_of(s, g), TO_GO_SYSCALL, ev, g->life, 0, 0, to__lost_proc(g));
  count_leaving(s, gen, g, ev);
  put_piece(s, gen, g, ev, g->life, false);
  set_call_on(s, g->proc, 0);
  TB_TRY(to__spans_thread(s, ev, ev->m, TO_THREAD_IDLE));
  unbind_thread(s, g);
  return end_life(s, gen, ev, g);
}

COLD tb_rc lose_proc(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev,
                     int64_t proc, int64_t thread) {
  struct to_life *g = in_call(s, proc, thread);

  if (g == NULL || g->without_p) return TB_OK;
  const struct to_life *by = to__spans_context(s, ev);
  put_piece(s, gen, g, ev, by == NULL ? 0 : by->life, true);
  to__region_time(s, g, g->state, ev->time);
  g->piece_since = ev->time;
  g->without_p = true;
  g->unseen = (uint64_t)proc < TO_SPANS_PROCS_NEAR && s->calls_on[proc + 1] != slot_of(s, g);
  set_call_on(s, proc, 0);
  TB_TRY(bind_thread(s, g));
  return to__spans_thread(s, ev, thread, TO_THREAD_BLOCKED);
}

/* The thread of an abandoned P may already be in another call, which did not lose the P. */
COLD tb_rc steal(struct to_spans *s, const struct to_generation *gen, const struct to_event *ev) {
  TB_TRY(to__spans_proc_status(s, ev));
  bool by_its_own_end = ev->args[1] == 0; /* the next event is the GoDestroySyscall of the call */
  if (by_its_own_end) note_leaving(s, ev);
  if (ev->args[3] == TW_PROC_SYSCALL_ABANDONED || by_its_own_end) return TB_OK;
  return lose_proc(s, gen, ev, (int64_t)ev->args[0], (int64_t)ev->args[2]);
}

COLD tb_rc stop_proc(struct to_spans *s, const struct to_generation *gen,
                     const struct to_event *ev) {
  struct to_life *g = ev->g == TO_NONE ? NULL : to__spans_context(s, ev);

  TB_TRY(to__spans_proc_to(s, ev, ev->p, TO_PROC_IDLE, TO_NONE, true));
  if (g == NULL) return TB_OK;
  return g->state == TO_GO_RUNNING ? bind_thread(s, g) : lose_proc(s, gen, ev, ev->p, ev->m);
}

/* --- statuses ---------------------------------------------------------------------------------- */

static enum to_thread_state thread_state_of(const struct to_life *g) {
  if (g->state != TO_GO_SYSCALL) return TO_THREAD_RUNNING;
  return g->without_p ? TO_THREAD_BLOCKED : TO_THREAD_SYSCALL;
}

/* Begins the life of a goroutine that was in this state before the trace. One in a call may have no P. */
static tb_rc state_first(struct to_spans *s, const struct to_generation *gen,
                         const struct to_event *ev, enum to_go_state state, uint64_t stack) {
  struct to_life *g;

  TB_TRY(begin_life(s, ev->slot, (int64_t)ev->args[0], state, &g));
  to__spans_stop_meets(s, state, ev->time);
  g->stack = stack;
  if (s->sums != NULL) TB_TRY(to_span_sums_meet(s->sums, gen, ev->slot, g->life, stack));
  if (state != TO_GO_RUNNING && state != TO_GO_SYSCALL) return TB_OK;
  g->thread = state == TO_GO_SYSCALL ? (int64_t)ev->args[1] : ev->m;
  g->piece_since = s->began;
  if (state == TO_GO_SYSCALL) {
    g->proc = ev->p;
    g->without_p = ev->p == TO_NONE;
    count_call(s, ev->p, ev->time, s->began); /* the P was unknown until now */
    if (g->without_p) count_part(s, gen, g, ev, s->began, TO_CALL_UNSTATED);
    set_call_on(s, ev->p, ev->slot);
    TB_TRY(bind_thread(s, g));
  } else {
    g->proc = ev->p;
    TB_TRY(ev->p == TO_NONE ? bind_thread(s, g) : put_on_proc(s, ev->p, ev->slot));
  }
  return to__spans_thread(s, ev, g->thread, thread_state_of(g));
}

COLD tb_rc go_status(struct to_spans *s, const struct to_generation *gen,
                     const struct to_event *ev) {
  struct to_transition tr;

  to_event_transition(ev, &tr);
  uint64_t stack = tr.stack == TO_NO_STACK ? 0 : tr.stack;
  bool is_known = ev->slot < s->slots_end && s->lives[ev->slot].life != 0;
  if (!is_known) return state_first(s, gen, ev, (enum to_go_state)tr.to, stack);
  struct to_life *g = &s->lives[ev->slot];
  if (g->stack == 0) g->stack = stack;
  if (s->sums != NULL) TB_TRY(to_span_sums_meet(s->sums, gen, ev->slot, g->life, stack));
  bool elsewhere = ev->m != g->thread || ev->p != g->proc;
  if (TB_LIKELY(g->state != TO_GO_RUNNING || tr.to != TO_GO_RUNNING || !elsewhere)) return TB_OK;
  g->thread = ev->m; /* a forged trace: no event has moved the goroutine */
  g->proc = ev->p;
  return ev->p == TO_NONE ? bind_thread(s, g) : put_on_proc(s, ev->p, ev->slot);
}

COLD tb_rc begin_generation(struct to_spans *s, const struct to_generation *gen, to_ns at) {
  tb_rc rc = s->kept ? TB_OK : to__spans_lose_stacks(s);

  s->kept = false;
  s->generation_from = at;
  if (s->misnesting != NULL) s->misnesting->generation = at;
  if (gen != NULL) s->program = to_program_of(gen);
  memset(s->reasons, 0, sizeof s->reasons);
  to_stack_table_generation(&s->stacks);
  if (s->sums != NULL) to_span_sums_turn(s->sums);
  if (rc == TB_OK) rc = to_lock_table_generation(&s->locks, gen);
  return rc;
}

HOT tb_rc take_event(struct to_spans *s, const struct to_generation *gen,
                     const struct to_event *ev) {
  switch (ev->type) {
  case TW_EV_SYNC: return begin_generation(s, gen, ev->time);
  case TW_EV_GO_START: return start(s, gen, ev);
  case TW_EV_GO_BLOCK: return leave(s, gen, ev, TO_GO_WAITING);
  case TW_EV_GO_STOP: return leave(s, gen, ev, TO_GO_RUNNABLE);
  case TW_EV_GO_UNBLOCK: return unblock(s, gen, ev, ev->args[2]);
  case TW_EV_GO_SWITCH:
  case TW_EV_GO_SWITCH_DESTROY: return unblock(s, gen, ev, 0);
  case TW_EV_GO_SYSCALL_BEGIN: return begin_call(s, gen, ev);
  case TW_EV_GO_SYSCALL_END: return end_call(s, gen, ev);
  case TW_EV_GO_SYSCALL_END_BLOCKED: return end_blocked_call(s, gen, ev);
  case TW_EV_GO_CREATE: return create(s, gen, ev, TO_GO_RUNNABLE);
  case TW_EV_GO_CREATE_BLOCKED: return create(s, gen, ev, TO_GO_WAITING);
  case TW_EV_GO_CREATE_SYSCALL: return create_in_call(s, gen, ev);
  case TW_EV_GO_DESTROY: return destroy(s, gen, ev);
  case TW_EV_GO_DESTROY_SYSCALL: return destroy_in_call(s, gen, ev);
  case TW_EV_GO_STATUS:
  case TW_EV_GO_STATUS_STACK: return go_status(s, gen, ev);
  case TW_EV_PROC_START:
    return to__spans_proc_to(s, ev, (int64_t)ev->args[0], TO_PROC_RUNNING, ev->m, true);
  case TW_EV_PROC_STOP: return stop_proc(s, gen, ev);
  case TW_EV_PROC_STEAL: return steal(s, gen, ev);
  case TW_EV_PROC_STATUS: return to__spans_proc_status(s, ev);
  default: return to__spans_rare(s, gen, ev);
  }
}

tb_rc to_spans_events(struct to_spans *s, const struct to_generation *gen,
                      const struct to_event *events, size_t n) {
  tb_rc rc = TB_OK;

  if (n == 0) return TB_OK;
  if (!s->heard) s->began = events->time;
  s->heard = true;
  const struct to_event *ev = events, *end = events + n;
  while (ev < end) {
    if (TB_UNLIKELY(s->n > TO_SPANS_SLICE - TO_SPANS_EVENT_MAX)) rc = to__spans_flush(s, gen);
    if (TB_LIKELY(rc == TB_OK)) rc = take_event(s, gen, ev);
    ev++;
    if (TB_UNLIKELY(rc != TB_OK)) break;
  }
  s->taken = (size_t)(ev - events);
  s->now = events[n - 1].time;
  s->events += n;
  tb_rc flushed = to__spans_flush(s, gen);
  if (rc == TB_OK) rc = s->failed;
  s->failed = TB_OK;
  return rc != TB_OK ? rc : flushed;
}
