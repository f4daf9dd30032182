/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of the garbage collector, and of ranges of time on goroutines and procs. */
#ifndef TO_ORDER_RULES_GC_H
#define TO_ORDER_RULES_GC_H

#include "online/order/rules.h"

/* Begin and end of a cycle can be on any thread: one sequence of numbers orders them. In the first
 * generation a cycle may be stated as active, once. */
TO_HOT tb_rc ready_gc_active(struct to_order *o, struct to_step *s) {
  return is_first_gen(o) || s->arg[0] == o->gc_seq + 1 ? TB_OK : TB_AGAIN;
}

TO_HOT tb_rc apply_gc_active(struct to_order *o, struct to_step *s) {
  if (is_first_gen(o)) {
    if (o->gc != TO_GC_UNDETERMINED) return TO_REFUSE(o, s, "GCActive is not the first GC event");
  } else {
    if (o->gc != TO_GC_RUNNING) return TO_REFUSE(o, s, "GCActive while no GC runs");
    TB_TRY(check_need(o, s, HAS, HAS, HAS));
  }
  stage(s);
  o->gc_seq = s->arg[0];
  o->gc = TO_GC_RUNNING;
  return TB_OK;
}

TO_HOT tb_rc ready_gc_begin(struct to_order *o, struct to_step *s) {
  return o->gc == TO_GC_UNDETERMINED || s->arg[0] == o->gc_seq + 1 ? TB_OK : TB_AGAIN;
}

TO_HOT tb_rc apply_gc_begin(struct to_order *o, struct to_step *s) {
  if (o->gc == TO_GC_RUNNING) return TO_REFUSE(o, s, "GCBegin while a GC runs");
  if (o->gc == TO_GC_NOT_RUNNING) TB_TRY(check_need(o, s, HAS, HAS, HAS));
  stage(s);
  o->gc_seq = s->arg[0];
  o->gc = TO_GC_RUNNING;
  return TB_OK;
}

TO_HOT tb_rc ready_gc_end(struct to_order *o, struct to_step *s) {
  if (s->arg[0] != o->gc_seq + 1) return TB_AGAIN;
  return o->gc == TO_GC_RUNNING ? TB_OK : TO_REFUSE(o, s, "GCEnd while no GC is known to run");
}

TO_HOT tb_rc apply_gc_end(struct to_order *o, struct to_step *s) {
  stage(s);
  o->gc_seq = s->arg[0];
  o->gc = TO_GC_NOT_RUNNING;
  return TB_OK;
}

TO_HOT tb_rc begin_range(struct to_order *o, struct to_step *s, struct to_ranges *ranges,
                         uint64_t text) {
  if (to__has_range(ranges, s->type, text))
    return TO_REFUSE(o, s, "%s: the range is open already", TO_NAME(s));
  return to__begin_range(o, ranges, s->type, text);
}

TO_HOT tb_rc end_range(struct to_order *o, struct to_step *s, struct to_ranges *ranges,
                       uint64_t *out_text) {
  if (to__end_range(ranges, tw_specs[s->type].opens, out_text)) return TB_OK;
  return TO_REFUSE(o, s, "%s: no such range is open", TO_NAME(s));
}

TO_HOT tb_rc apply_sweep_begin(struct to_order *o, struct to_step *s) {
  if (s->t->p->sweeps) return TO_REFUSE(o, s, "%s: the range is open already", TO_NAME(s));
  s->t->p->sweeps = true;
  stage(s);
  return TB_OK;
}

TO_HOT tb_rc apply_sweep_end(struct to_order *o, struct to_step *s) {
  if (!s->t->p->sweeps) return TO_REFUSE(o, s, "%s: no such range is open", TO_NAME(s));
  s->t->p->sweeps = false;
  stage(s);
  return TB_OK;
}

TO_HOT tb_rc apply_sweep_active(struct to_order *o, struct to_step *s) {
  struct to_p *p = to__p_find(o, (int64_t)s->arg[0]);

  if (p == NULL)
    return TO_REFUSE(o, s, "GCSweepActive on proc %" PRId64 ", which does not exist",
                     (int64_t)s->arg[0]);
  TB_TRY(check_restated(o, s, p->sweeps));
  p->sweeps = true;
  stage(s);
  return TB_OK;
}

/* The goroutine may be blocked in its assist. */
TO_HOT tb_rc apply_assist_active(struct to_order *o, struct to_step *s) {
  struct to_g *g = to__g_find(o, (int64_t)s->arg[0]);
  struct to_g_more *more;

  if (g == NULL)
    return TO_REFUSE(o, s, "GCMarkAssistActive on goroutine %" PRId64 ", which does not exist",
                     (int64_t)s->arg[0]);
  TB_TRY(to__g_more(o, g, &more));
  TB_TRY(check_restated(o, s, more->ranges.assist != 0));
  if (more->ranges.assist == 0)
    TB_TRY(to__begin_range(o, &more->ranges, TW_EV_GC_MARK_ASSIST_BEGIN, 0));
  stage(s);
  return TB_OK;
}

TO_HOT tb_rc check_known_g(struct to_order *o, struct to_step *s) {
  if (TB_LIKELY(g_exists(s->t->g))) return TB_OK;
  return TO_REFUSE(o, s, "%s on goroutine %" PRId64 ", which does not exist", TO_NAME(s),
                   s->t->g->id);
}

/* For stop-the-world and mark assist; two stops of different kinds may be open at once. */
TO_HOT tb_rc apply_go_range_begin(struct to_order *o, struct to_step *s) {
  struct to_g_more *more;

  TB_TRY(check_known_g(o, s));
  TB_TRY(to__g_more(o, s->t->g, &more));
  TB_TRY(begin_range(o, s, &more->ranges, s->type == TW_EV_STW_BEGIN ? s->arg[0] : 0));
  stage(s);
  return TB_OK;
}

TO_HOT tb_rc apply_go_range_end(struct to_order *o, struct to_step *s) {
  struct to_g_more *more;
  uint64_t text;

  TB_TRY(check_known_g(o, s));
  TB_TRY(to__g_more(o, s->t->g, &more));
  TB_TRY(end_range(o, s, &more->ranges, &text));
  struct to_event *ev = stage(s);
  if (s->type == TW_EV_STW_END) ev->args[0] = text;
  return TB_OK;
}

#endif
