/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/events/spawn.h"

#include "agent/emit/events/act.h"

enum { ORPHANS_MAX = 16 };

static __thread struct ta_spawned mine __attribute__((tls_model("initial-exec")));

/* Goroutines whose threads ended without a place; under the session's lock. */
static struct ta_spawned orphan[ORPHANS_MAX];
static atomic_uint orphans;

static void end_an_orphan(void) {
  struct ta_spawned birth = { 0 };

  if (atomic_load_explicit(&orphans, memory_order_relaxed) == 0) return;
  ta_emit_lock();
  if (orphans > 0) birth = orphan[--orphans];
  ta_emit_unlock();
  ta_spawned_fail(birth);
}

/* If all places are taken, the new thread cannot be traced, so no goroutine is written for it. */
struct ta_spawned ta_spawned_begin(ta_name name, ta_name call, const void *from) {
  struct ta_spawned birth = { 0 };
  struct ta_thread *t = ta_enter();

  if (t == NULL) return birth;
  if (t->hold == TA_HOLDS_RUNNING && !ta_threads_are_all_taken())
    birth.go = ta_act_create(t, ta_name_known(name), false, call, from);
  if (birth.go != NULL) {
    birth.id = ta_go_id(birth.go);
    birth.session = ta_emit.session;
  }
  bool can_switch = t->hold == TA_HOLDS_RUNNING && t->pause_gen == 0;
  ta_leave(t);
  if (can_switch) end_an_orphan();
  return birth;
}

static bool is_current(struct ta_spawned birth) {
  return birth.go != NULL && birth.session == ta_emit.session && ta_go_id(birth.go) == birth.id;
}

void ta_spawned_fail(struct ta_spawned birth) {
  if (!is_current(birth)) return;
  ta_fiber self = ta_fiber_self(), unborn = ta_fiber_of(birth.go);
  ta_fiber_switch(unborn);
  if (ta_fiber_self() != unborn)
    return; /* the switch failed: another goroutine runs, which must not be ended */
  ta_fiber_end();
  ta_fiber_switch(self);
}

/* A signal handler may have emitted on this thread. If it did before `mine` was set, the thread has its own goroutine by now.
 * If it did afterwards, the thread has the goroutine that its creator made. */
void ta_spawned_is_mine(struct ta_spawned birth) {
  struct ta_thread *t;

  mine = birth;
  atomic_signal_fence(memory_order_seq_cst);
  if (ta_self == NULL || (t = ta_enter()) == NULL) return;
  bool is_another = t->own != birth.go;
  ta_leave(t);
  if (!is_another) return;
  mine = (struct ta_spawned){ 0 };
  ta_spawned_fail(birth);
}

void ta_spawned_is_over(void) {
  struct ta_spawned birth = mine;

  mine = (struct ta_spawned){ 0 };
  if (birth.go == NULL) return;
  ta_emit_lock();
  if (orphans < ORPHANS_MAX) orphan[orphans++] = birth;
  ta_emit_unlock();
}

struct ta_go *ta_spawned_take(void) {
  struct ta_spawned birth = mine;

  mine = (struct ta_spawned){ 0 };
  return is_current(birth) ? birth.go : NULL;
}
