/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/emit/misuses.h"

#include "agent/emit/events/put.h"
#include "traceagent.h"
#include "traceexperiment.h"

static void status(bool of_go) {
  struct ta_thread *t = ta_enter();

  if (of_go)
    ta_put_go_status(t, t->go, TW_GO_BAD, false);
  else
    ta_put_proc_status(t, TW_PROC_BAD);
  ta_leave(t);
}
static void a_bad_go_status(void) {
  status(true);
}
static void a_bad_proc_status(void) {
  status(false);
}

static void a_region_that_was_not_begun(void) {
  ta_region_end();
}
static void a_wait_that_was_not_begun(void) {
  ta_wait_end();
}
static void a_call_that_was_not_begun(void) {
  ta_syscall_end();
}
static void a_region_in_a_wait(void) {
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_region_begin(0, 0);
  ta_wait_end();
}
static void a_log_without_text(void) {
  ta_log(0, 0, NULL);
}
static void a_pause_in_a_pause(void) {
  ta_pause_begin(0);
  ta_pause_begin(0);
  ta_pause_end();
}
static void a_pause_that_was_not_begun(void) {
  ta_pause_end();
}
static void a_fiber_that_is_none(void) {
  ta_fiber_switch(12345);
}
static void a_fiber_that_runs_woken(void) {
  ta_fiber f = ta_fiber_create(0, 0);

  ta_fiber_switch(f);
  ta_fiber_unblock(f);
  ta_fiber_end();
}
static void a_thread_that_yields(void) {
  ta_fiber_yield(0);
}
static void a_thread_ended_as_a_fiber(void) {
  ta_fiber_end();
}
static void a_collection_in_a_collection(void) {
  ta_gc_begin();
  ta_gc_begin();
}
static void a_collection_that_was_not_begun(void) {
  ta_gc_end();
}
static void a_sweep_in_a_sweep(void) {
  ta_gc_sweep_begin();
  ta_gc_sweep_begin();
}
static void a_sweep_that_was_not_begun(void) {
  ta_gc_sweep_end(0, 0);
}
static void an_assist_in_an_assist(void) {
  ta_gc_assist_begin();
  ta_gc_assist_begin();
}
static void an_assist_that_was_not_begun(void) {
  ta_gc_assist_end();
}
static void a_mark_in_a_hold(void) {
  ta_hold_begin();
  ta_heap_alloc(1);
  ta_hold_end();
}

#define MISUSE(name, said)                                                                         \
  { #name, name, said }
const struct misuse misuses[] = {
  MISUSE(a_bad_go_status, "status of a goroutine"),
  MISUSE(a_bad_proc_status, "status of a proc"),
  MISUSE(a_region_that_was_not_begun, "ta_region_end()"),
  MISUSE(a_wait_that_was_not_begun, "ta_wait_end()"),
  MISUSE(a_call_that_was_not_begun, "ta_syscall_end()"),
  MISUSE(a_region_in_a_wait, "from a thread that waits"),
  MISUSE(a_log_without_text, "ta_log()"),
  MISUSE(a_pause_in_a_pause, "ta_pause_begin()"),
  MISUSE(a_pause_that_was_not_begun, "ta_pause_end()"),
  MISUSE(a_fiber_that_is_none, "ta_fiber_switch()"),
  MISUSE(a_fiber_that_runs_woken, "ta_fiber_unblock()"),
  MISUSE(a_thread_that_yields, "ta_fiber_yield()"),
  MISUSE(a_thread_ended_as_a_fiber, "ta_fiber_end()"),
  MISUSE(a_collection_in_a_collection, "ta_gc_begin()"),
  MISUSE(a_collection_that_was_not_begun, "ta_gc_end()"),
  MISUSE(a_sweep_in_a_sweep, "ta_gc_sweep_begin()"),
  MISUSE(a_sweep_that_was_not_begun, "ta_gc_sweep_end()"),
  MISUSE(an_assist_in_an_assist, "ta_gc_assist_begin()"),
  MISUSE(an_assist_that_was_not_begun, "ta_gc_assist_end()"),
  MISUSE(a_mark_in_a_hold, "ta_hold_begin()"),
};
const size_t misuse_count = sizeof misuses / sizeof *misuses;
