/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: goroutines that no thread owns. While a fiber runs on a thread, the thread's own goroutine waits.
 *
 * A fiber's handle is its number, with its place in the low bits; so the handle of an ended fiber is recognized. If several
 * threads change one fiber at once, ta_change() lets one of them succeed. */
#include "agent/emit/events/act.h"
#include "agent/emit/events/waiters.h"
#include "traceagent.h"

static const unsigned running = TA_FROM(TW_GO_RUNNING), waiting = TA_FROM(TW_GO_WAITING),
                      kept_waiting = TA_FROM(TA_GO_KEPT_WAITING);

/* A larger stack is a mistake of the caller, and a walk would search all of memory for frames. */
#define STACK_BYTES_MAX (UINT64_C(1) << 40)

static struct ta_go *go_of(ta_fiber fiber) {
  struct ta_go *go = fiber == 0 ? NULL : ta_goes_at((uint32_t)(fiber % TA_GOES_MAX));

  return go != NULL && ta_go_id(go) == fiber >> TA_GOES_LOG2 ? go : NULL;
}

/* Enters a section, but not in a pause: a thread that stops the world must not change goroutines before the pause ends. */
static struct ta_thread *enter_free(void) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL || t->pause_gen == 0) return t;
  ta_misuse(t, "a fiber's switch, block, yield or end between ta_pause_begin() and ta_pause_end()");
  ta_leave(t);
  return NULL;
}

struct ta_go *ta_act_create(struct ta_thread *t, uint32_t name, bool waits, uint32_t call,
                            const void *from) {
  bool blocked = waits && ta_emit.version >= 23;

  ta_emit_lock();
  struct ta_go *go = ta_goes_acquire(name);
  ta_emit_unlock();
  if (go == NULL) {
    atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed);
    return NULL;
  }
  ta_put_called(t, blocked ? TW_EV_GO_CREATE_BLOCKED : TW_EV_GO_CREATE, 2, ta_go_id(go),
                ta_name_stack(t, go), call, from);
  struct ta_doing d = { .gen = ta_gen(t), .status = blocked ? TW_GO_WAITING : TW_GO_RUNNABLE };
  atomic_store(&go->word, ta_doing_word(d));
  if (TB_LIKELY(!ta_is_left_behind(t, atomic_load(&t->left_behind)))) return go;
  /* The creation was written in a generation that is lost. */
  d.status = TA_GO_DEAD;
  atomic_store(&go->word, ta_doing_word(d));
  atomic_fetch_add_explicit(&t->dropped, 1, memory_order_relaxed);
  return NULL;
}

ta_fiber ta_fiber_create(ta_name name, int waits) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) {
    ta_begins_unreported();
    return 0;
  }
  struct ta_go *go = ta_act_create(t, ta_name_known(name), waits != 0, 0, TA_CALLER);
  ta_fiber fiber = go != NULL ? ta_fiber_of(go) : 0;
  ta_leave(t);
  return fiber;
}

ta_fiber ta_fiber_self(void) {
  struct ta_thread *t = ta_enter_running();

  if (t == NULL) return 0;
  ta_fiber self = ta_fiber_of(t->go);
  ta_leave(t);
  return self;
}

void ta_fiber_stack(ta_fiber fiber, const void *low, size_t bytes) {
  struct ta_thread *t = ta_enter();
  struct ta_go *go = go_of(fiber);

  if (t == NULL) return;
  bool lies_somewhere = low != NULL && bytes <= UINTPTR_MAX - (uintptr_t)low;
  if (go != NULL && bytes <= STACK_BYTES_MAX && (lies_somewhere || bytes == 0))
    go->stack = (struct ta_bounds){ (uintptr_t)low, (uintptr_t)low + bytes };
  else
    ta_misuse_end(t, "ta_fiber_stack(): no such fiber, or no such stack");
  ta_leave(t);
}

void ta_fiber_unblock(ta_fiber fiber) {
  struct ta_thread *t = ta_enter();
  enum ta_change change = TA_LATE;

  while (t != NULL) {
    struct ta_go *go = go_of(fiber);
    uint64_t seq;
    change = go == NULL ? TA_UNFIT : ta_change(t, go, waiting, TW_GO_RUNNABLE, 1, &seq);
    if (change == TA_UNFIT && go != NULL)
      change = ta_change(t, go, kept_waiting, TA_GO_KEPT_RUNNABLE, 1, &seq);
    if (change == TA_CHANGED) ta_put_from(t, TW_EV_GO_UNBLOCK, 2, ta_go_id(go), seq, 0, TA_CALLER);
    if (change != TA_LATE) break;
    t = ta_again(t);
  }
  if (t == NULL) return;
  if (change == TA_UNFIT)
    ta_misuse_end(t, "ta_fiber_unblock(): no such fiber, or it does not wait");
  ta_leave(t);
}

/* Return the status for a goroutine that waits, or is runnable. t's own goroutine has statuses of its own, because no other
 * thread may start it. */
static uint8_t parked(const struct ta_thread *t, const struct ta_go *go) {
  return go == t->own ? TA_GO_KEPT_WAITING : TW_GO_WAITING;
}
static uint8_t woken(const struct ta_thread *t, const struct ta_go *go) {
  return go == t->own ? TA_GO_KEPT_RUNNABLE : TW_GO_RUNNABLE;
}

/* Makes the running goroutine wait or yield. */
static void leave_go(struct ta_thread *t, enum ta_leaving how, uint32_t reason, const void *from) {
  ta_put_from(t, how == TA_YIELDS ? TW_EV_GO_STOP : TW_EV_GO_BLOCK, 1, ta_string(t, reason), 0, 0,
              from);
  ta_change(t, t->go, running, how == TA_YIELDS ? woken(t, t->go) : parked(t, t->go), 0, NULL);
}

/* Makes go run on t; seq is the number from claim(). */
static void start(struct ta_thread *t, struct ta_go *go, uint64_t seq) {
  ta_put(t, TW_EV_GO_START, 2, ta_go_id(go), seq, 0, 0);
  ta_hold(t, go, TA_HOLDS_RUNNING);
}

/* Makes go running, after waking it if it waits. */
static enum ta_change claim(struct ta_thread *t, struct ta_go *go, uint64_t *seq) {
  enum ta_change change = ta_change(t, go, TA_FROM(parked(t, go)), woken(t, go), 1, seq);

  if (change == TA_LATE) return change;
  if (change == TA_CHANGED) ta_put(t, TW_EV_GO_UNBLOCK, 3, ta_go_id(go), *seq, 0, 0);
  return ta_change(t, go, TA_FROM(woken(t, go)), TW_GO_RUNNING, 1, seq);
}

enum ta_change ta_act_leave_fiber(struct ta_thread *t, enum ta_leaving how, uint32_t reason,
                                  const void *from) {
  uint64_t seq;
  enum ta_change change = claim(t, t->own, &seq);

  if (change != TA_CHANGED) return change;
  leave_go(t, how, reason, from);
  start(t, t->own, seq);
  return TA_CHANGED;
}

static inline __attribute__((always_inline)) void leave_fiber(enum ta_leaving how, ta_name reason,
                                                              const void *from) {
  struct ta_thread *t = enter_free();

  if (t != NULL && t->go == t->own) {
    ta_misuse_end(t, "ta_fiber_block() or ta_fiber_yield(): the thread itself runs, no fiber");
  } else {
    while (t != NULL && ta_act_leave_fiber(t, how, reason, from) == TA_LATE) t = ta_again(t);
  }
  if (t != NULL) ta_leave(t);
}

void ta_fiber_block(ta_name reason) {
  leave_fiber(TA_WAITS, reason, TA_CALLER);
}

void ta_fiber_yield(ta_name reason) {
  leave_fiber(TA_YIELDS, reason, TA_CALLER);
}

/* Writes one event if go waits and the version has GoSwitch; otherwise the events that GoSwitch stands for. */
static enum ta_change switch_to(struct ta_thread *t, struct ta_go *go, const void *from) {
  uint64_t seq;

  if (ta_emit.version >= 23) {
    enum ta_change change = ta_change(t, go, TA_FROM(parked(t, go)), TW_GO_RUNNING, 1, &seq);
    if (change == TA_CHANGED) {
      ta_put(t, TW_EV_GO_SWITCH, 2, ta_go_id(go), seq, 0, 0);
      ta_change(t, t->go, running, parked(t, t->go), 0, NULL);
      ta_hold(t, go, TA_HOLDS_RUNNING);
    }
    if (change != TA_UNFIT) return change;
  }
  enum ta_change change = claim(t, go, &seq);
  if (change != TA_CHANGED) return change;
  leave_go(t, TA_WAITS, TA_NAME_FIBER, from);
  start(t, go, seq);
  return TA_CHANGED;
}

void ta_fiber_switch(ta_fiber fiber) {
  struct ta_thread *t = enter_free();
  enum ta_change change = TA_LATE;

  while (t != NULL) {
    struct ta_go *go = fiber == 0 ? t->own : go_of(fiber);
    change = go == NULL ? TA_UNFIT : go == t->go ? TA_CHANGED : switch_to(t, go, TA_CALLER);
    if (change != TA_LATE) break;
    t = ta_again(t);
  }
  if (t == NULL) {
    ta_begins_unreported();
    return;
  }
  if (change == TA_UNFIT)
    ta_misuse_end(t, "ta_fiber_switch(): no such fiber, or another thread runs it");
  ta_leave(t);
}

/* Frees the goroutine's place at once, unless the flusher may still read it for the generation before, or a waker refers to it. */
void ta_act_destroy(struct ta_thread *t, uint8_t type, unsigned n, uint64_t a, uint64_t b) {
  struct ta_go *go = t->go;
  uint64_t id = ta_go_id(go);
  bool reported = ta_gen_before_is_reported(ta_gen(t)) && !ta_waiters_are_being_woken();

  if (n == 0)
    ta_put(t, type, 0, 0, 0, 0, 0);
  else
    ta_put(t, type, 2, a, b, 0, 0);
  ta_change(t, go, running, TA_GO_DEAD, 0, NULL);
  ta_hold(t, go, TA_HOLDS_NOTHING);
  if (!reported) return;
  ta_emit_lock();
  ta_goes_release(go, id);
  ta_emit_unlock();
}

static enum ta_change end_fiber(struct ta_thread *t, const void *from) {
  uint64_t seq;

  if (ta_emit.version >= 23 &&
      ta_change(t, t->own, kept_waiting, TW_GO_RUNNING, 1, &seq) == TA_CHANGED) {
    ta_act_close_ranges(t, from);
    ta_act_destroy(t, TW_EV_GO_SWITCH_DESTROY, 2, ta_go_id(t->own), seq);
    ta_hold(t, t->own, TA_HOLDS_RUNNING);
    return TA_CHANGED;
  }
  enum ta_change change = claim(t, t->own, &seq);
  if (change != TA_CHANGED) return change;
  ta_act_close_ranges(t, from);
  ta_act_destroy(t, TW_EV_GO_DESTROY, 0, 0, 0);
  start(t, t->own, seq);
  return TA_CHANGED;
}

void ta_fiber_end(void) {
  struct ta_thread *t = enter_free();

  if (t != NULL && t->go == t->own) {
    ta_misuse_end(t, "ta_fiber_end(): the thread itself runs, no fiber");
  } else {
    while (t != NULL && end_fiber(t, TA_CALLER) == TA_LATE) t = ta_again(t);
  }
  if (t != NULL) ta_leave(t);
}
