/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of goroutines: creation, scheduling, blocking, system calls, end. */
#ifndef TO_ORDER_RULES_GO_H
#define TO_ORDER_RULES_GO_H

#include "online/order/rules.h"

TO_HOT tb_rc apply_go_create(struct to_order *o, struct to_step *s) {
  const struct to_g *maker = s->t->g;
  int64_t id = (int64_t)s->arg[0];
  struct to_g *g;

  /* Timers and the network poller create goroutines on a proc without one. */
  if (g_exists(maker) && maker->status != TW_GO_RUNNING)
    return TO_REFUSE(o, s, "%s by goroutine %" PRId64 ", which is not running", TO_NAME(s),
                     maker->id);
  TB_TRY(to__g_claim(o, id, &g));
  if (g_exists(g))
    return TO_REFUSE(o, s, "%s of goroutine %" PRId64 ", which exists", TO_NAME(s), id);
  stage(s)->slot = g->slot;
  to__g_begin(o, g, s->type == TW_EV_GO_CREATE_BLOCKED ? TW_GO_WAITING : TW_GO_RUNNABLE);
  return TB_OK;
}

/* A C thread calls into Go: the goroutine begins in a system call. */
TO_HOT tb_rc apply_go_create_syscall(struct to_order *o, struct to_step *s) {
  int64_t id = (int64_t)s->arg[0];
  struct to_g *g;

  TB_TRY(to__g_claim(o, id, &g));
  if (g_exists(g))
    return TO_REFUSE(o, s, "GoCreateSyscall of goroutine %" PRId64 ", which exists", id);
  stage(s)->slot = g->slot;
  to__g_begin(o, g, TW_GO_SYSCALL);
  to__bind_g(o, s->t, g);
  return TB_OK;
}

/* Finds the named goroutine. Returns TB_AGAIN if it is unknown, not in this status, or not at the previous number yet:
 * an event of another thread must come first. */
TO_HOT tb_rc find_g_in(struct to_order *o, struct to_step *s, enum tw_go_status status) {
  struct to_g *g = s->g = to__g_look(o, (int64_t)s->arg[0]);

  if (g == NULL || g->status != status) return TB_AGAIN;
  return g->seq_gen == o->gen_count && s->arg[1] == g->seq + 1 ? TB_OK : TB_AGAIN;
}

TO_HOT void put_g_in(struct to_order *o, struct to_step *s, enum tw_go_status status) {
  s->g->status = (uint8_t)status;
  s->g->seq_gen = o->gen_count;
  s->g->seq = s->arg[1];
}

TO_HOT tb_rc ready_go_start(struct to_order *o, struct to_step *s) {
  return find_g_in(o, s, TW_GO_RUNNABLE);
}

TO_HOT tb_rc apply_go_start(struct to_order *o, struct to_step *s) {
  stage(s)->slot = s->g->slot;
  put_g_in(o, s, TW_GO_RUNNING);
  to__bind_g(o, s->t, s->g);
  return TB_OK;
}

TO_HOT tb_rc ready_go_unblock(struct to_order *o, struct to_step *s) {
  return find_g_in(o, s, TW_GO_WAITING);
}

/* Needs no context: the system monitor unblocks without proc or goroutine. */
TO_HOT tb_rc apply_go_unblock(struct to_order *o, struct to_step *s) {
  stage(s)->slot = s->g->slot;
  put_g_in(o, s, TW_GO_RUNNABLE);
  return TB_OK;
}

/* For destroy, stop and block, which are always on the thread that runs the goroutine. */
TO_HOT tb_rc apply_go_leave(struct to_order *o, struct to_step *s) {
  struct to_g *g = s->t->g;

  TB_TRY(check_current_g(o, s, TW_GO_RUNNING));
  stage(s);
  if (s->type == TW_EV_GO_DESTROY)
    to__g_end(o, g);
  else
    g->status = s->type == TW_EV_GO_STOP ? TW_GO_RUNNABLE : TW_GO_WAITING;
  to__unbind_g(o, s->t);
  return TB_OK;
}

TO_HOT tb_rc ready_go_switch(struct to_order *o, struct to_step *s) {
  TB_TRY(check_current_g(o, s, TW_GO_RUNNING));
  return find_g_in(o, s, TW_GO_WAITING);
}

/* Three events: the target is unblocked, this one blocks or ends, the target starts. */
TO_HOT tb_rc apply_go_switch(struct to_order *o, struct to_step *s) {
  struct to_g *g = s->t->g;
  int64_t m = s->t->id, p = s->t->p->id;

  stage(s)->slot = s->g->slot;
  struct to_event *leaves =
      stage_as(s, s->type == TW_EV_GO_SWITCH ? TW_EV_GO_BLOCK : TW_EV_GO_DESTROY, m, p, g->id);
  leaves->args[0] = leaves->args[1] = 0; /* no reason, no stack */
  stage_as(s, TW_EV_GO_START, m, p, TO_NONE)->slot = s->g->slot;
  o->added += 2;
  if (s->type == TW_EV_GO_SWITCH)
    g->status = TW_GO_WAITING;
  else
    to__g_end(o, g);
  put_g_in(o, s, TW_GO_RUNNING);
  to__unbind_g(o, s->t);
  to__bind_g(o, s->t, s->g);
  return TB_OK;
}

/* The proc's sequence number shows in which of two system calls the proc was stolen. */
TO_HOT tb_rc apply_syscall_begin(struct to_order *o, struct to_step *s) {
  struct to_p *p = s->t->p;

  TB_TRY(check_current_g(o, s, TW_GO_RUNNING));
  if (!follows(o, s->arg[0], p->seq_gen, p->seq))
    return TO_REFUSE(o, s,
                     "GoSyscallBegin: proc %" PRId64 " goes from %" PRIu64 " of generation %" PRIu64
                     " to %" PRIu64,
                     p->id, p->seq, p->seq_gen, s->arg[0]);
  stage(s);
  s->t->g->status = TW_GO_SYSCALL;
  p->status = TW_PROC_SYSCALL;
  p->seq = s->arg[0];
  return TB_OK;
}

TO_HOT tb_rc apply_syscall_end(struct to_order *o, struct to_step *s) {
  struct to_p *p = s->t->p;

  TB_TRY(check_current_g(o, s, TW_GO_SYSCALL));
  if (p->status != TW_PROC_SYSCALL)
    return TO_REFUSE(o, s, "GoSyscallEnd: proc %" PRId64 " is not in a system call", p->id);
  stage(s);
  s->t->g->status = TW_GO_RUNNING;
  p->status = TW_PROC_RUNNING;
  return TB_OK;
}

/* The event implies that the proc was lost: as long as the thread has the proc, the event is too early. A proc acquired since
 * is not in a system call and does not count. */
TO_HOT tb_rc ready_lost_its_proc(struct to_order *o, struct to_step *s) {
  (void)o;
  return has_p(s->t) && s->t->p->status == TW_PROC_SYSCALL ? TB_AGAIN : TB_OK;
}

TO_HOT tb_rc apply_syscall_end_blocked(struct to_order *o, struct to_step *s) {
  TB_TRY(check_current_g(o, s, TW_GO_SYSCALL));
  stage(s);
  s->t->g->status = TW_GO_RUNNABLE;
  to__unbind_g(o, s->t);
  return TB_OK;
}

/* The C thread leaves Go. Its proc, if any, is stolen at once: another thread may get the same id, and
 * could then steal the proc from itself. */
TO_HOT tb_rc apply_go_destroy_syscall(struct to_order *o, struct to_step *s) {
  struct to_p *p = s->t->p;
  bool with_p = has_p(s->t);

  TB_TRY(check_current_g(o, s, TW_GO_SYSCALL));
  if (with_p && p->status != TW_PROC_SYSCALL)
    return TO_REFUSE(o, s, "GoDestroySyscall: proc %" PRId64 " is not in a system call", p->id);
  if (with_p) {
    struct to_event *steal = stage_as(s, TW_EV_PROC_STEAL, s->t->id, p->id, s->t->g->id);
    steal->args[0] = (uint64_t)p->id;
    steal->args[3] = TW_PROC_SYSCALL;
    o->added++;
  }
  stage(s);
  if (with_p) {
    p->status = TW_PROC_SYSCALL_ABANDONED;
    set_p(o, s->t, &o->no_p);
  }
  to__g_end(o, s->t->g);
  to__unbind_g(o, s->t);
  return TB_OK;
}

/* Another thread states a goroutine in a system call: its own thread has no events in this generation. */
TO_HOT tb_rc status_on_other_thread(struct to_order *o, struct to_step *s, struct to_g *g,
                                    int64_t id, int64_t *out_g) {
  struct to_thread *t;

  TB_TRY(to__thread_claim(o, id, &t));
  if (!t->exists) {
    t->exists = true;
    to__bind_g(o, t, g);
    return TB_OK; /* the event's context is the one before the binding */
  }
  if (t->g != g)
    return TO_REFUSE(o, s,
                     "goroutine %" PRId64 " is in a system call on thread %" PRId64
                     ", which has goroutine %" PRId64,
                     g->id, id, t->g->id);
  *out_g = g->id;
  return TB_OK;
}

/* The first event of a goroutine in a generation; resets its sequence numbers. */
TO_HOT tb_rc apply_go_status(struct to_order *o, struct to_step *s) {
  int64_t id = (int64_t)s->arg[0], on = (int64_t)s->arg[1];
  uint8_t status = (uint8_t)s->arg[2], old_state;
  int64_t m = s->t->id, g_before = s->t->g->id;
  struct to_g *g = to__g_find(o, id);

  if (status >= TW_GO_STATUSES)
    return TO_REFUSE(o, s, "goroutine %" PRId64 " has no status %u", id, status);
  old_state = to__go_state_of(status);
  if (g == NULL) {
    if (!is_first_gen(o))
      return TO_REFUSE(
          o, s,
          "status of goroutine %" PRId64 ", which nothing created, after the first generation", id);
    TB_TRY(to__g_claim(o, id, &g));
    to__g_begin(o, g, status);
    old_state = TO_GO_UNDETERMINED;
  } else if (g->status != status) {
    return TO_REFUSE(o, s, "goroutine %" PRId64 " is stated to have status %u, but has %u", id,
                     status, g->status);
  }
  if (status == TW_GO_SYSCALL) {
    if (on == TO_NONE)
      return TO_REFUSE(o, s, "goroutine %" PRId64 " is in a system call without a thread", id);
    if (on != s->t->id) {
      TB_TRY(status_on_other_thread(o, s, g, on, &g_before));
      m = on;
    } else if (!is_first_gen(o) && s->t->g != g) {
      return TO_REFUSE(o, s,
                       "goroutine %" PRId64
                       " is in a system call on this thread, which has goroutine %" PRId64,
                       id, s->t->g->id);
    }
  }
  struct to_event *ev = stage_as(s, s->type, m, s->t->p->id, g_before);
  ev->args[2] = (uint64_t)old_state << 32 | status;
  ev->slot = g->slot;
  g->seq_gen = o->gen_count;
  g->seq = 0;
  if (has_m(s->t) && (status == TW_GO_RUNNING || (status == TW_GO_SYSCALL && on == s->t->id))) {
    to__unbind_g(o, s->t);
    to__bind_g(o, s->t, g);
  }
  return TB_OK;
}

#endif
