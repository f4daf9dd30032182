/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of procs: their holders, and losing them in system calls. */
#ifndef TO_ORDER_RULES_PROC_H
#define TO_ORDER_RULES_PROC_H

#include "online/order/rules.h"

/* The event is too early until the proc is idle at the previous sequence number. It is also too early while this thread holds
 * another proc: a later event will steal that proc from the thread's system call. */
TO_HOT tb_rc ready_proc_start(struct to_order *o, struct to_step *s) {
  struct to_p *p = s->p = to__p_find(o, (int64_t)s->arg[0]);

  if (p == NULL || p->status != TW_PROC_IDLE || !follows(o, s->arg[1], p->seq_gen, p->seq) ||
      has_p(s->t))
    return TB_AGAIN;
  return TB_OK;
}

TO_HOT tb_rc apply_proc_start(struct to_order *o, struct to_step *s) {
  stage(s);
  s->p->status = TW_PROC_RUNNING;
  s->p->seq_gen = o->gen_number;
  s->p->seq = s->arg[1];
  set_p(o, s->t, s->p);
  return TB_OK;
}

TO_HOT tb_rc apply_proc_stop(struct to_order *o, struct to_step *s) {
  struct to_p *p = s->t->p;

  if (p->status != TW_PROC_RUNNING && p->status != TW_PROC_SYSCALL)
    return TO_REFUSE(o, s, "ProcStop of proc %" PRId64 ", which does not run", p->id);
  stage(s);
  p->status = TW_PROC_IDLE;
  set_p(o, s->t, &o->no_p);
  return TB_OK;
}

TO_HOT tb_rc ready_proc_steal(struct to_order *o, struct to_step *s) {
  struct to_p *p = s->p = to__p_find(o, (int64_t)s->arg[0]);

  if (p == NULL || (p->status != TW_PROC_SYSCALL && p->status != TW_PROC_SYSCALL_ABANDONED) ||
      !follows(o, s->arg[1], p->seq_gen, p->seq))
    return TB_AGAIN;
  return TB_OK;
}

TO_HOT tb_rc apply_proc_steal(struct to_order *o, struct to_step *s) {
  struct to_p *p = s->p;
  int64_t victim_id = (int64_t)s->arg[2];
  struct to_thread *victim = s->t;

  if (p->status == TW_PROC_SYSCALL_ABANDONED) {
    victim = NULL; /* its thread may have left it already */
  } else if (victim_id != s->t->id) {
    victim = to__thread_find(o, victim_id);
    if (victim == NULL || !victim->exists)
      return TO_REFUSE(o, s,
                       "proc %" PRId64 " is stolen from thread %" PRId64 ", which does not exist",
                       p->id, victim_id);
  }
  if (victim != NULL && victim->p != p)
    return TO_REFUSE(o, s,
                     "proc %" PRId64 " is stolen from thread %" PRId64 ", which has proc %" PRId64,
                     p->id, victim_id, victim->p->id);
  stage(s)->args[3] = p->status;
  p->status = TW_PROC_IDLE;
  p->seq_gen = o->gen_number;
  p->seq = s->arg[1];
  if (victim != NULL) set_p(o, victim, &o->no_p);
  return TB_OK;
}

tb_rc to__proc_holder(struct to_order *o, const struct to_thread *t, struct to_p *p,
                      struct to_thread **out);

/* The first event of a proc in a generation; resets its sequence numbers. */
TO_HOT tb_rc apply_proc_status(struct to_order *o, struct to_step *s) {
  int64_t id = (int64_t)s->arg[0];
  uint8_t status = (uint8_t)s->arg[1], reported = status, old_state;
  const struct to_thread *holder = s->t;
  struct to_p *p = to__p_find(o, id);

  if (status >= TW_PROC_STATUSES)
    return TO_REFUSE(o, s, "proc %" PRId64 " has no status %u", id, status);
  old_state = to__proc_state_of(status);
  if (p == NULL) {
    TB_TRY(to__p_begin(o, id, status, &p));
    old_state = is_first_gen(o) ? TO_PROC_UNDETERMINED : TO_PROC_NOT_EXIST;
  } else if (status == TW_PROC_SYSCALL_ABANDONED && p->status == TW_PROC_SYSCALL) {
    /* The writer no longer knew the proc's thread, but we do. The event is delivered on that thread, not on the one
     * that steals the proc. */
    struct to_thread *found;
    TB_TRY(to__proc_holder(o, s->t, p, &found));
    holder = found;
    reported = TW_PROC_SYSCALL;
    old_state = TO_PROC_RUNNING;
  } else if (p->status != status) {
    return TO_REFUSE(o, s, "proc %" PRId64 " is stated to have status %u, but has %u", id, status,
                     p->status);
  }
  struct to_event *ev =
      stage_as(s, s->type, holder->id, holder == s->t ? s->t->p->id : p->id, holder->g->id);
  ev->args[1] = reported;
  ev->args[2] = old_state;
  p->seq_gen = o->gen_number;
  p->seq = 0;
  if (has_m(s->t) && (status == TW_PROC_RUNNING || status == TW_PROC_SYSCALL)) set_p(o, s->t, p);
  return TB_OK;
}

#endif
