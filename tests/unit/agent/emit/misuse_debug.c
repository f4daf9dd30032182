/* SPDX-License-Identifier: Apache-2.0 */
/* misuse_debug NAME: in a session, commits the misuse of that name in misuses.c. The parts of the
 * agent that count misuse are compiled as in a debug build. Exits with 0 if it survives. More names
 * than in misuses.c:
 *
 *   fit                   nothing that is misuse
 *   begun_before          ends what began before the session
 *   written_after_leave   an event outside of a section */
#include <stdlib.h>
#include <string.h>

#include "agent/emit/events/put.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "tests/unit/agent/emit/misuses.h"

static void end_all(void) {
  ta_wait_end();
  ta_syscall_end();
  ta_region_end();
  ta_pause_end();
  ta_gc_end();
  ta_gc_sweep_end(0, 0);
  ta_gc_assist_end();
  ta_fiber_block(TA_WAIT_POLL);
}

static void fit(void) {
  ta_fiber f = ta_fiber_create(0, 0);

  ta_fiber_switch(f);
  ta_region_begin(0, 0);
  ta_gc_begin();
  ta_gc_assist_begin();
  ta_gc_sweep_begin();
  ta_pause_begin(0);
  ta_pause_end();
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_syscall_begin();
  ta_syscall_end();
  ta_wait_end();
  emit_end_generation();
  ta_gc_sweep_end(0, 0);
  ta_gc_assist_end();
  ta_gc_end();
  ta_region_end();
  ta_fiber_yield(0);
  ta_fiber_switch(f);
  ta_fiber_end();
}

static void written_after_leave(void) {
  struct ta_thread *t = ta_enter();

  ta_put(t, TW_EV_HEAP_ALLOC, 1, 1, 0, 0, 0);
  ta_leave(t);
  ta_put(t, TW_EV_HEAP_ALLOC, 1, 2, 0, 0, 0);
}

static void commit(const char *name) {
  if (strcmp(name, "fit") == 0) fit();
  if (strcmp(name, "begun_before") == 0) end_all();
  if (strcmp(name, "written_after_leave") == 0) written_after_leave();
  for (size_t i = 0; i < misuse_count; i++)
    if (strcmp(name, misuses[i].name) == 0) misuses[i].commit();
}

int main(int argc, char **argv) {
  static struct emitted e;

  if (argc != 2 || !ta_misuse_aborts) return 2;
  if (strcmp(argv[1], "begun_before") == 0) ta_region_begin(0, 0);
  if (emit_begin_version(&e, 26) != 0) return 3;
  ta_misuse_aborts = true; /* the scene has cleared it */
  commit(argv[1]);
  if (emit_end(&e) != 0) return 4;
  emit_free(&e);
  return 0;
}
