/* SPDX-License-Identifier: Apache-2.0 */
/* A program's emitted events are a valid trace, whatever the program does, also if memory or
 * time run out. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/clock.h"
#include "support/patience.h"
#include "tests/unit/agent/emit/emit_read.h"
#include "tests/unit/agent/emit/emit_shapes.h"
#include "traceexperiment.h"

static bool is_status(uint8_t type) {
  return type == TW_EV_GO_STATUS || type == TW_EV_GO_STATUS_STACK || type == TW_EV_PROC_STATUS;
}

/* Ends the session, and expects its single trace to have these events, without statuses and Syncs. */
static void expect_events(struct emitted *e, const char *names) {
  char text[2000] = "";

  cr_assert_eq(emit_end(e), 0);
  cr_assert_eq(e->traces, 1);
  struct tt_run run = read_trace(e, 0, names);
  for (size_t i = 0; i < run.count; i++) {
    if (is_status(run.events[i].type) || run.events[i].type == TW_EV_SYNC) continue;
    if (text[0] != 0) strcat(text, " ");
    strcat(text, tw_spec(run.events[i].type)->name);
  }
  cr_assert_str_eq(text, names);
  tt_run_fini(&run);
  emit_free(e);
}

static bool until(bool (*fits)(const struct ta_emit_status *)) {
  for (int ms = 0; ms < TT_PATIENCE_MS; ms += 5) {
    struct ta_emit_status status = status_now();
    if (fits(&status)) return true;
    poll(NULL, 0, 5);
  }
  return false;
}

static void every_shape(unsigned version) {
  for (size_t i = 0; i < emit_shape_count; i++) {
    struct emitted e;
    cr_assert_eq(emit_begin_version(&e, version), 0);
    emit_shapes[i].run();
    cr_assert_eq(emit_end(&e), 0);
    cr_assert_eq(e.traces, 1, "%s", emit_shapes[i].name);
    cr_assert_eq(e.lost, 0, "%s", emit_shapes[i].name);
    struct tt_run run = read_trace(&e, 0, emit_shapes[i].name);
    cr_assert_eq(run.generations, e.ended, "%s", emit_shapes[i].name);
    tt_run_fini(&run);
    emit_free(&e);
  }
}

/* E1, E4, E5, E8, E10: the reader refuses a status that is missing, late or written twice, a range that a generation does not
 * restate, and a torn event. E14: one of the shapes has texts that are cut. */
Test(emit, every_shape_is_a_trace_of_1_22) {
  every_shape(22);
}
Test(emit, every_shape_is_a_trace_of_1_23) {
  every_shape(23);
}
Test(emit, every_shape_is_a_trace_of_1_25) {
  every_shape(25);
}
Test(emit, every_shape_is_a_trace_of_1_26) {
  every_shape(26);
}

/* Abbreviations for expected events. */

#define ATTACHED "ProcStart GoCreate GoStart "

Test(emit, a_wait_gives_up_the_proc) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_end();
  expect_events(&e, ATTACHED "GoBlock ProcStop GoUnblock ProcStart GoStart");
}

Test(emit, a_short_call_keeps_it) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  /* Nothing is nested, so only the clock decides. Of many calls the shortest one is short enough. */
  for (int i = 0; i < 1000; i++) {
    ta_syscall_begin();
    ta_syscall_end();
  }
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0, "calls");
  size_t ends = 0;
  for (size_t i = 0; i < run.count; i++) ends += run.events[i].type == TW_EV_GO_SYSCALL_END;
  cr_assert_geq(ends, 1);
  tt_run_fini(&run);
  emit_free(&e);
}

Test(emit, a_call_over_a_generation_has_lost_it) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_syscall_begin();
  emit_end_generation();
  ta_syscall_end();
  expect_events(&e, ATTACHED "GoSyscallBegin ProcStop GoSyscallEndBlocked ProcStart GoStart");
}

Test(emit, a_switch_is_one_event_from_1_23_on) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber_switch(ta_fiber_create(ta_name_of("f"), 1));
  ta_fiber_end();
  /* The reader returns a switch as three events. */
  expect_events(&e, ATTACHED
                "GoCreateBlocked GoSwitch GoBlock GoStart GoSwitchDestroy GoDestroy GoStart");
}

Test(emit, a_switch_of_1_22_is_three_events) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 22), 0);
  ta_fiber_switch(ta_fiber_create(ta_name_of("f"), 1));
  ta_fiber_end();
  expect_events(&e, ATTACHED "GoCreate GoBlock GoStart GoUnblock GoDestroy GoStart");
}

static void *runs_fiber(void *fiber) {
  ta_fiber_switch(*(ta_fiber *)fiber);
  ta_region_begin(ta_name_of("left"), 0);
  return NULL;
}

Test(emit, a_thread_that_ends_closes_what_is_open) {
  struct emitted e;
  pthread_t thread;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber f = ta_fiber_create(ta_name_of("f"), 0);
  pthread_create(&thread, NULL, runs_fiber, &f);
  pthread_join(thread, NULL);
  ta_fiber_switch(f);
  ta_region_end();
  /* The region still belongs to the fiber. */
  expect_events(&e, ATTACHED "GoCreate " ATTACHED "GoBlock GoStart UserRegionBegin "
                             "GoUnblock GoBlock GoStart GoDestroy ProcStop "
                             "GoSwitch GoBlock GoStart UserRegionEnd");
}

Test(emit, nothing_is_written_outside_a_session) {
  struct emitted e;

  ta_heap_alloc(1);
  cr_assert_eq(ta_task_begin(1, 0), 0);
  cr_assert_eq(ta_emit_sync(0), TA_E_OFF);
  cr_assert_eq(ta_emit_stop(0), TA_E_OFF);
  cr_assert_eq(emit_begin_version(&e, 26), 0);
  cr_assert_eq(emit_end(&e), 0);
  ta_heap_alloc(1);
  cr_assert_eq(e.traces, 1);
  emit_free(&e);
}

Test(emit, one_session_at_a_time_and_only_as_it_may_be) {
  struct emitted e, other;
  const struct ta_emit_config wrong[] = { { .version = 24 },
                                          { .generation_ms = 49 },
                                          { .generation_bytes = 1000 } };

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    cr_assert_eq(emit_begin(&e, &wrong[i], 1 << 20), TA_E_CONFIG);
  cr_assert_eq(emit_begin_version(&e, 26), 0);
  cr_assert_eq(emit_begin_version(&other, 26), TA_E_BUSY);
  cr_assert_eq(emit_end(&e), 0);
  emit_free(&e);
}

Test(emit, errno_is_the_hosts) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  errno = 4711;
  ta_heap_alloc(1);
  ta_log(0, ta_name_of("key"), "text");
  ta_emit_sync(TT_PATIENCE_MS);
  ta_thread_detach();
  cr_assert_eq(errno, 4711);
  cr_assert_eq(emit_end(&e), 0);
  emit_free(&e);
}

/* Time. */

static void check_clock(int monotonic) {
  struct ta_emit_config config = { .generation_ms = 60000, .monotonic_clock = monotonic };
  struct emitted e;
  uint64_t before[2], after[2];

  cr_assert_eq(emit_begin(&e, &config, 1 << 20), 0);
  ta_heap_alloc(0);
  for (int i = 0; i < 2; i++) {
    before[i] = ta_mono_ns();
    ta_heap_goal(1);
    after[i] = ta_mono_ns();
    while (ta_mono_ns() < after[i] + 20000000) {
    }
  }
  if (monotonic) cr_assert_eq(status_now().cycle_clock, 0);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0, "clock");
  to_ns at[2] = { 0 };
  size_t n = 0;
  for (size_t i = 0; i < run.count; i++)
    if (run.events[i].type == TW_EV_HEAP_GOAL && n < 2) at[n++] = run.events[i].time;
  to_ns slack = 20000 + (to_ns)(after[1] - before[0]) / 1000, apart = at[1] - at[0];
  cr_assert_geq(apart, (to_ns)(before[1] - after[0]) - slack);
  cr_assert_leq(apart, (to_ns)(after[1] - before[0]) + slack);
  tt_run_fini(&run);
  emit_free(&e);
}

#ifndef __SANITIZE_THREAD__ /* the sanitizer's allocator reads the clock */
/* Emits while rdtsc, and with it the vdso's clock, would end the thread. */
struct without_counter {
  struct emitted e;
  bool forbidden, by_counter;
  int error;
};

static void *emit_without_counter(void *self) {
  struct without_counter *w = self;
  struct ta_emit_config config = { .generation_ms = 60000 };

  w->forbidden = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0; /* some processors cannot */
  w->error = emit_begin(&w->e, &config, 1 << 20);
  ta_heap_goal(1);
  w->by_counter = status_now().cycle_clock != 0;
  w->error |= ta_emit_sync(-1);
  ta_thread_detach();
  w->error |= emit_end(&w->e);
  prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0);
  return NULL;
}

Test(emit, a_thread_that_may_not_read_the_counter_goes_by_the_kernels_clock) {
  static struct without_counter w;
  pthread_t thread;

  cr_assert_eq(pthread_create(&thread, NULL, emit_without_counter, &w), 0);
  cr_assert_eq(pthread_join(thread, NULL), 0);
  cr_assert_eq(w.error, 0);
  cr_assert(!w.forbidden || !w.by_counter);
  struct tt_run run = read_trace(&w.e, 0, "no-counter");
  size_t goals = 0;
  for (size_t i = 0; i < run.count; i++) goals += run.events[i].type == TW_EV_HEAP_GOAL;
  cr_assert_eq(goals, 1);
  tt_run_fini(&run);
  emit_free(&w.e);
}
#endif

Test(emit, time_is_the_clocks) {
  check_clock(0);
}
Test(emit, time_is_that_of_the_other_clock_too) {
  check_clock(1);
}

static bool ended_thrice(const struct ta_emit_status *status) {
  return status->generations >= 3;
}

Test(emit, generations_end_by_time) {
  struct ta_emit_config config = { .generation_ms = 50 };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 1 << 20), 0);
  ta_heap_alloc(1);
  cr_assert(until(ended_thrice));
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0, "by time");
  cr_assert_geq(run.generations, 4);
  tt_run_fini(&run);
  emit_free(&e);
}

static uint64_t ends_wanted;
static bool ended_as_often(const struct ta_emit_status *status) {
  return status->generations >= ends_wanted;
}

Test(emit, generations_end_by_bytes) {
  struct ta_emit_config config = { .generation_ms = 60000, .generation_bytes = 64 << 10 };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 1 << 20), 0);
  for (ends_wanted = 1; ends_wanted <= 3; ends_wanted++) {
    for (int i = 0; i < 12000; i++) ta_heap_alloc(UINT64_MAX);
    cr_assert(until(ended_as_often));
  }
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 0);
  cr_assert_eq(e.traces, 1);
  struct tt_run run = read_trace(&e, 0, "by bytes");
  cr_assert_eq(run.generations, e.ended);
  tt_run_fini(&run);
  emit_free(&e);
}

/* Pauses. */

Test(emit, no_generation_ends_inside_a_pause) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_pause_begin(ta_name_of("stop"));
  cr_assert_eq(ta_emit_sync(50), TA_E_TIMEOUT);
  cr_assert_eq(status_now().generations, 0);
  ta_pause_end();
  emit_end_generation();
  expect_events(&e, ATTACHED "STWBegin STWEnd");
}

static bool lost_one(const struct ta_emit_status *status) {
  return status->lost_generations == 1;
}

Test(emit, a_pause_without_end_costs_its_generation) {
  struct ta_emit_config config = { .generation_ms = 50 };
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 1 << 20), 0);
  ta_pause_begin(ta_name_of("for ever"));
  cr_assert(until(lost_one));
  ta_heap_alloc(1);
  ta_pause_end();
  ta_pause_begin(ta_name_of("again"));
  ta_pause_end();
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_geq(e.lost, 1); /* on a slow machine the second pause may also be too long */
  for (unsigned i = 0; i < e.traces; i++) {
    struct tt_run run = read_trace(&e, i, "after a pause");
    tt_run_fini(&run);
  }
  emit_free(&e);
}

/* Memory. */

/* An outlet that blocks while the test holds it. */
static atomic_bool held;
static struct ta_outlet behind;

static void put_when_free(void *self, uint64_t gen, const void *bytes, size_t n) {
  while (held) poll(NULL, 0, 1);
  behind.put(self, gen, bytes, n);
}

static void *drops_too(void *arg) {
  (void)arg;
  ta_region_begin(ta_name_of("begun where nothing is kept"), 0);
  return NULL;
}

Test(emit, each_of_4000_names_is_found_again) {
  ta_name names[4000];
  char text[16];

  for (int i = 0; i < 4000; i++) {
    snprintf(text, sizeof text, "name %d", i);
    names[i] = ta_name_of(text);
    cr_assert_neq(names[i], 0);
  }
  for (int i = 0; i < 4000; i++) {
    snprintf(text, sizeof text, "name %d", i);
    cr_assert_eq(ta_name_of(text), names[i], "%s", text);
  }
}

Test(emit, a_generation_without_memory_is_lost_whole_and_the_next_is_there) {
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e = { 0 };
  struct ta_outlet out = behind = emit_outlet(&e);
  pthread_t thread;

  /* The scene's outlet, which the test can block; there is memory for three batches only. */
  out.put = put_when_free;
  cr_assert_eq(ta_emit_start_to(&out, &config, 3 * 80 << 10), 0);

  ta_name name = ta_name_of("r");
  ta_region_begin(name, 0);
  emit_end_generation();
  held = true;
  ta_fiber f = ta_fiber_create(name, 0);
  while (status_now().dropped == 0)
    for (int i = 0; i < 1000; i++) ta_heap_alloc(UINT64_MAX);
  ta_region_end();
  ta_fiber_switch(f);
  ta_wait_begin(TA_WAIT_MUTEX);
  pthread_create(&thread, NULL, drops_too, NULL);
  pthread_join(thread, NULL);
  held = false;
  ends_wanted = 2; /* after that all batches are free again */
  cr_assert(until(ended_as_often));
  ta_wait_end();
  ta_fiber_end();
  ta_region_begin(name, 0);
  emit_end_generation();
  ta_region_end();

  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 1);
  cr_assert_eq(e.traces, 2);
  for (unsigned i = 0; i < 2; i++) {
    struct tt_run run = read_trace(&e, i, "around the loss");
    cr_assert_geq(run.generations, 1);
    tt_run_fini(&run);
  }
  emit_free(&e);
}

Test(emit, fibers_beyond_their_number_are_counted_and_all_else_goes_on) {
  struct emitted e;
  ta_fiber last = 0, f;
  uint64_t n = 0;
  enum { MOST = 20000 };

  cr_assert_eq(ta_goes_make(MOST), TB_OK);
  cr_assert_eq(emit_begin_version(&e, 26), 0);
  for (; (f = ta_fiber_create(TA_WAIT_POLL, 0)) != 0; n++) last = f;
  cr_assert_eq(n, MOST - 1); /* this thread has a goroutine, too */
  cr_assert_eq(status_now().dropped, 1);
  emit_end_generation();
  ta_fiber_switch(last);
  ta_fiber_end();
  cr_assert_neq(ta_fiber_create(TA_WAIT_POLL, 0), 0);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0, "as many as can be");
  cr_assert_eq(run.generations, 2);
  tt_run_fini(&run);
  emit_free(&e);
}

/* The process. */

Test(emit, a_forked_child_is_off_and_may_begin_anew) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  emit_end_generation(); /* the flusher runs by now, and allocates nothing any more */
  ta_region_begin(ta_name_of("parent"), 0);
  pid_t child = fork();
  if (child == 0) {
    ta_region_end();
    bool ok = ta_emit_sync(0) == TA_E_OFF;
#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer allows no threads in a forked child */
    struct emitted own;
    ok = ok && emit_begin_version(&own, 26) == 0;
    ta_heap_alloc(1);
    emit_end_generation();
    ok = ok && emit_end(&own) == 0 && own.traces == 1;
    emit_free(&own);
#endif
    emit_free(&e);
    _exit(ok ? 7 : 1);
  }
  int status;
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  ta_region_end();
  expect_events(&e, ATTACHED "UserRegionBegin UserRegionEnd");
}

static void expect_exit(const char *argument, int code) {
  pid_t child = fork();

  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* in case it does not end by itself */
    execl(TT_EXIT_WHILE_EMITTING, TT_EXIT_WHILE_EMITTING, argument, (char *)NULL);
    _exit(127);
  }
  pid_t ended = 0;
  int status;
  TT_WAIT_UNTIL(ended == child || (ended = waitpid(child, &status, WNOHANG)) == child);
  cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == code, "%x", (unsigned)status);
}

Test(emit, exit_does_not_wait_for_anybody) {
  expect_exit(NULL, 5);
}

#ifndef __SANITIZE_THREAD__ /* its own thread would count as a thread of the host */
Test(emit, a_process_ends_with_the_last_thread_of_its_host) {
  expect_exit("leave", 6);
}

/* Such a process once never ended: only the agent's threads were left. */
Test(emit, a_process_whose_host_has_left_ends_though_threads_cannot_be_made) {
  expect_exit("leave-without-thread", 6);
  expect_exit("leave-without-threads", 6);
}

Test(emit, a_process_whose_host_has_left_ends_though_the_session_does_not) {
  expect_exit("leave-stuck", 6);
  expect_exit("leave-unstopped", 6);
}
#endif
