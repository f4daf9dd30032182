/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for all rules of rules.def.
 *
 * The rules are inline functions in headers that only order.c includes: it expands each row of rules.def
 * in place, with the event's type and number of arguments as constants. That takes a third of the time
 * of calls through a table. In rules, `t` is the event's thread.
 */
#ifndef TO_ORDER_RULES_H
#define TO_ORDER_RULES_H

#include <inttypes.h>
#include <string.h>

#include "online/event/status.h"
#include "online/order/state.h"

enum to_must { ANY, HAS, NOT };

/* Stores the place of the thread's next event in diag. Takes the thread, because a step stays in registers
 * and is never passed to a function that is not inline. */
void to__place(struct to_order *order, const struct to_thread *t);

#define TO_REFUSE(order, step, ...)                                                                \
  (to__place((order), (step)->t), tb_fail((order)->diag, TB_BROKEN, __VA_ARGS__))
#define TO_NAME(step) tw_spec((step)->type)->name

TO_HOT bool has_m(const struct to_thread *t) {
  return (t->has & TO_HAS_M) != 0;
}
TO_HOT bool has_p(const struct to_thread *t) {
  return (t->has & TO_HAS_P) != 0;
}

#define MUST_BITS(what, m, p, g)                                                                   \
  (((m) == (what) ? TO_HAS_M : 0) | ((p) == (what) ? TO_HAS_P : 0) | ((g) == (what) ? TO_HAS_G : 0))

TO_HOT tb_rc check_need(struct to_order *o, struct to_step *s, enum to_must m, enum to_must p,
                        enum to_must g) {
  const unsigned has = MUST_BITS(HAS, m, p, g), reported = has | MUST_BITS(NOT, m, p, g);
  unsigned wrong = (s->t->has ^ has) & reported;

  if (TB_LIKELY(wrong == 0)) return TB_OK;
  if (wrong & TO_HAS_M) return TO_REFUSE(o, s, "%s needs a thread", TO_NAME(s));
  if (wrong & TO_HAS_P)
    return TO_REFUSE(o, s, "%s on a thread %s a proc", TO_NAME(s),
                     p == HAS ? "without" : "that has");
  return TO_REFUSE(o, s, "%s on a thread %s a goroutine", TO_NAME(s),
                   g == HAS ? "without" : "that has");
}

/* Adds an event to this step's output, with the context given here. The event is delivered only after the whole step. Call it
 * before the step changes the context. */
TO_HOT struct to_event *stage_as(struct to_step *s, uint8_t type, int64_t m, int64_t p, int64_t g) {
  struct to_event *ev = s->out++;

  s->last = TB_LIKELY(s->time > s->last) ? s->time : (to_ns)((uint64_t)s->last + 1);
  ev->time = s->last;
  ev->m = m;
  ev->p = p;
  ev->g = g;
  ev->args[0] = s->arg[0];
  ev->args[1] = s->arg[1];
  ev->args[2] = s->arg[2];
  ev->args[3] = s->arg[3];
  ev->type = type;
  return ev;
}

TO_HOT struct to_event *stage(struct to_step *s) {
  return stage_as(s, s->type, s->t->id, s->t->p->id, s->t->g->id);
}

/* Sequence numbers increase by one within a generation; a status resets them. */
TO_HOT bool follows(const struct to_order *o, uint64_t seq, uint64_t last_gen, uint64_t last_seq) {
  return last_gen == o->gen_number && seq == last_seq + 1;
}

TO_HOT bool is_first_gen(const struct to_order *o) {
  return o->gen_number == o->first_gen;
}

/* Only for rules that require a thread, like to__bind_g(). Other rules must check has_m() first. */
TO_HOT void set_p(struct to_order *o, struct to_thread *t, struct to_p *p) {
  t->p = p;
  p->holder = t;
  t->has = (uint8_t)(p == &o->no_p ? t->has & ~TO_HAS_P : t->has | TO_HAS_P);
}

TO_HOT tb_rc ready_always(struct to_order *o, struct to_step *s) {
  (void)o;
  (void)s;
  return TB_OK;
}

/* An event that changes nothing. */
TO_HOT tb_rc apply_note(struct to_order *o, struct to_step *s) {
  (void)o;
  stage(s);
  return TB_OK;
}

/* The goroutine on this thread must be known and in this state. */
TO_HOT tb_rc check_current_g(struct to_order *o, struct to_step *s, enum tw_go_status status) {
  const struct to_g *g = s->t->g;

  if (TB_LIKELY(g->status == status)) return TB_OK;
  if (!g_exists(g))
    return TO_REFUSE(o, s, "%s of goroutine %" PRId64 ", which does not exist", TO_NAME(s), g->id);
  return TO_REFUSE(o, s, "%s of goroutine %" PRId64 ", which is not %s", TO_NAME(s), g->id,
                   status == TW_GO_RUNNING ? "running" : "in a system call");
}

/* Each generation restates its open ranges: in the first one they must be new, later they must be
 * known. */
TO_HOT tb_rc check_restated(struct to_order *o, struct to_step *s, bool is_open) {
  if (is_open && is_first_gen(o))
    return TO_REFUSE(o, s, "%s: the range is open already", TO_NAME(s));
  if (!is_open && !is_first_gen(o)) return TO_REFUSE(o, s, "%s: no such range is open", TO_NAME(s));
  return TB_OK;
}

#endif
