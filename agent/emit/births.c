/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/births.h"

#include "agent/emit/act.h"

static __thread struct ta_birth mine __attribute__((tls_model("initial-exec")));

/* A thread without a place says nothing, so nothing is said of it. */
struct ta_birth ta_birth_begin(ta_name name, ta_name call, const void *from) {
  struct ta_birth birth = { 0 };
  struct ta_thread *t = ta_enter();

  if (t == NULL) return birth;
  if (t->hold == TA_HOLDS_RUNNING && !ta_threads_are_all_taken())
    birth.go = ta_act_create(t, ta_name_known(name), false, call, from);
  if (birth.go != NULL) {
    birth.id = ta_go_id(birth.go);
    birth.session = ta_emit.session;
  }
  ta_leave(t);
  return birth;
}

static bool is_current(struct ta_birth birth) {
  return birth.go != NULL && birth.session == ta_emit.session && ta_go_id(birth.go) == birth.id;
}

void ta_birth_fail(struct ta_birth birth) {
  if (!is_current(birth)) return;
  ta_fiber self = ta_fiber_self();
  ta_fiber_switch(ta_fiber_of(birth.go));
  ta_fiber_end();
  ta_fiber_switch(self);
}

void ta_birth_is_mine(struct ta_birth birth) {
  mine = birth;
}

struct ta_go *ta_birth_take(void) {
  struct ta_birth birth = mine;

  mine = (struct ta_birth){ 0 };
  return is_current(birth) ? birth.go : NULL;
}
