/* SPDX-License-Identifier: Apache-2.0 */
/* Waits and system calls of threads.
 *
 * A wait releases the proc: the goroutine is blocked with a reason, and no goroutine runs there. At the wait's end the thread
 * writes its own wakeup, unless another thread has written it already (waiters.h).
 *
 * A system call keeps the proc. Only at its end is it known whether it blocked; if so, the loss of the proc is written with the
 * time at which Go's runtime would have noticed. That is allowed, because all of it is in the thread's own batch. Until it ends,
 * a blocking call still has its proc in the trace; reports count the call as blocked by its length. To let another thread take
 * the proc in the trace, each end of a call would have to check whether one has. */
#include "agent/emit/events/act.h"
#include "agent/emit/events/locks.h"
#include "agent/emit/events/waiters.h"
#include "wire/locks.h"

/* A longer system call is one that blocked. Go's runtime first checks after the same 20 us. */
enum { CALL_BLOCKS_TICKS = 20000 / TA_TICK_NS };

_Static_assert((int)TA_WAIT_MUTEX == (int)TA_NAME_WAIT_MUTEX, "waits are named in their order");
_Static_assert((int)TA_WAIT_NETWORK == (int)TA_NAME_WAIT_NETWORK, "waits are named in their order");

static const unsigned waiting = TA_FROM(TA_GO_KEPT_WAITING),
                      runnable = TA_FROM(TA_GO_KEPT_RUNNABLE);

/* Enters a section for the begin of a wait or call. One inside another wait or call is only counted: returns NULL. */
static struct ta_thread *begin(void) {
  struct ta_thread *t = ta_enter();

  if (t == NULL) ta_begins_unreported();
  if (t == NULL || t->hold == TA_HOLDS_RUNNING) return t;
  t->nested++;
  ta_leave(t);
  return NULL;
}

/* Enters a section for the end of a wait or call; hold: what the thread holds meanwhile. */
static struct ta_thread *end(enum ta_holds hold) {
  struct ta_thread *t = ta_enter();

  if (t == NULL) return NULL;
  if (t->nested > 0)
    t->nested--;
  else if (t->hold == hold)
    return t;
  else
    ta_misuse_end(t, "ta_wait_end() or ta_syscall_end() without its begin");
  ta_leave(t);
  return NULL;
}

/* Returns the id of the string with a wait's reason. */
static inline uint64_t reason_of(const struct ta_thread *t, ta_name reason,
                                 struct ta_waited_for what) {
  if (what.object == 0 || ta_emit.version < TW_FIRST_VERSION_WITH_LOCKS)
    return ta_string(t, reason);
  return ta_locks_put(t, ta_name_known(reason), what.object, what.holder);
}

static inline __attribute__((always_inline)) void
wait_begin(ta_name call, ta_name reason, struct ta_waited_for what, const void *from) {
  struct ta_thread *t = begin();

  if (t == NULL) return;
  ta_put_called(t, TW_EV_GO_BLOCK, 1, reason_of(t, reason, what), 0, call, from);
  ta_put_then(t, TW_EV_PROC_STOP, 0, 0, 0);
  ta_change_own(t, TA_GO_KEPT_WAITING, 0);
  ta_hold(t, t->go, TA_HOLDS_NOTHING);
  if (what.at != NULL) ta_waiters_add(t, what.at);
  ta_leave(t);
}

void ta_wait_begin(ta_name reason) {
  wait_begin(0, reason, (struct ta_waited_for){ 0 }, TA_CALLER);
}

void ta_wait_begin_for(ta_name reason, const void *object) {
  wait_begin(0, reason, (struct ta_waited_for){ .at = object, .object = (uintptr_t)object },
             TA_CALLER);
}

void ta_wait_begin_in(ta_name call, ta_name reason, struct ta_waited_for what) {
  wait_begin(call, reason, what, TA_CALLER);
}

void ta_wait_release(const void *object, int all) {
  if (TB_UNLIKELY(ta_is_waited_for(object)))
    ta_wake(object, all != 0 ? TA_WAKE_ALL : TA_WAKE_ONE, 0, TA_CALLER);
}

enum ta_change ta_act_wait_end(struct ta_thread *t) {
  uint64_t id = ta_go_id(t->go), seq;

  ta_waiters_remove(t);
  bool wakes_itself = ta_change(t, t->go, waiting, TA_GO_KEPT_RUNNABLE, 1, &seq) == TA_CHANGED;
  if (wakes_itself) ta_put(t, TW_EV_GO_UNBLOCK, 3, id, seq, 0, 0);
  enum ta_change change = ta_change(t, t->go, runnable, TW_GO_RUNNING, 1, &seq);
  if (change != TA_CHANGED) return change;
  ta_put_proc_start(t, wakes_itself ? t->time + 1 : ta_now(t));
  ta_put_then(t, TW_EV_GO_START, 2, id, seq);
  ta_hold(t, t->go, TA_HOLDS_RUNNING);
  return TA_CHANGED;
}

void ta_wait_end(void) {
  struct ta_thread *t = end(TA_HOLDS_NOTHING);

  while (t != NULL && ta_act_wait_end(t) == TA_LATE) t = ta_again(t);
  if (t == NULL) return;
  ta_act_workers(t);
  ta_leave(t);
}

static inline __attribute__((always_inline)) void syscall_begin(ta_name call, const void *from) {
  struct ta_thread *t = begin();

  if (t == NULL) return;
  ta_put_called(t, TW_EV_GO_SYSCALL_BEGIN, 1, ++t->proc_seq, 0, call, from);
  t->call_ticks = t->time;
  ta_change_own(t, TW_GO_SYSCALL, 0);
  ta_hold(t, t->go, TA_HOLDS_SYSCALL);
  ta_leave(t);
}

void ta_syscall_begin(void) {
  syscall_begin(0, TA_CALLER);
}

void ta_syscall_begin_in(ta_name call) {
  syscall_begin(call, TA_CALLER);
}

void ta_act_call_end(struct ta_thread *t, uint64_t now) {
  bool blocked = now > t->call_ticks + CALL_BLOCKS_TICKS;
  uint64_t seq = ta_change_own(t, TW_GO_RUNNING, blocked ? 1 : 0);

  if (blocked) {
    ta_put_at(t, t->call_ticks + CALL_BLOCKS_TICKS, TW_EV_PROC_STOP, 0, 0, 0, 0, 0);
    ta_put_at(t, now, TW_EV_GO_SYSCALL_END_BLOCKED, 0, 0, 0, 0, 0);
    ta_put_proc_start(t, t->time + 1);
    ta_put_then(t, TW_EV_GO_START, 2, ta_go_id(t->go), seq);
  } else {
    ta_put_at(t, now, TW_EV_GO_SYSCALL_END, 0, 0, 0, 0, 0);
  }
  ta_hold(t, t->go, TA_HOLDS_RUNNING);
}

void ta_syscall_end(void) {
  struct ta_thread *t = end(TA_HOLDS_SYSCALL);

  if (t == NULL) return;
  ta_act_call_end(t, ta_now(t));
  ta_leave(t);
}
