/* SPDX-License-Identifier: Apache-2.0 */
/* What a program emits is a trace, whatever it does; and what becomes of it where memory or time run out. */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/clock.h"
#include "support/order_text.h"
#include "support/patience.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "tests/unit/agent/emit/emit_shapes.h"
#include "traceexperiment.h"

/* A whole trace through our reader, which must find no fault. */
static struct tt_run read_trace(const struct emitted *e, unsigned trace, const char *what) {
  struct tt_run run = { 0 };
  char text[300];

  tb_mem_init(&run.mem, tb_mem_libc, NULL, SIZE_MAX);
  tt_order_bytes(&run, e->trace[trace].bytes, e->trace[trace].n);
  tb_diag_format(&run.diag, text, sizeof text);
  cr_assert_eq(run.rc, TB_OK, "%s: %s: %s", what, tb_rc_name(run.rc), text);
  return run;
}

static bool is_status(uint8_t type) {
  return type == TW_EV_GO_STATUS || type == TW_EV_GO_STATUS_STACK || type == TW_EV_PROC_STATUS;
}

/* The session ends; its one trace has these events, statuses and Syncs apart. */
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

static struct ta_emit_status status_now(void) {
  struct ta_emit_status status = { .size = sizeof status };

  cr_assert_eq(ta_emit_status(&status), 0);
  return status;
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

/* E1, E4, E5, E8, E10: the reader refuses a status that is missing, late or told twice, a range that was not told
 * anew, a torn event. E14 is the shape of texts that are cut. */
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

/* What stands for what. */

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
  /* What is nested goes unsaid, so that only the clock decides; the shortest of many is short. */
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
  /* The reader tells one switch as three. */
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
  /* The fiber's region stays the fiber's. */
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

#ifndef __SANITIZE_THREAD__ /* its allocator reads the clock */
/* Emits while rdtsc, and with it the vdso's clock, would end the thread. */
struct without_counter {
  struct emitted e;
  bool forbidden, by_counter;
  int error;
};

static void *emit_without_counter(void *self) {
  struct without_counter *w = self;
  struct ta_emit_config config = { .generation_ms = 60000 };

  w->forbidden = prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0; /* not on every processor */
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
  cr_assert_geq(e.lost, 1); /* on a slow machine the second pause may be too long, too */
  for (unsigned i = 0; i < e.traces; i++) {
    struct tt_run run = read_trace(&e, i, "after a pause");
    tt_run_fini(&run);
  }
  emit_free(&e);
}

/* Memory. */

/* An outlet that stands still while the test says so. */
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

  /* The scene's outlet with a door in front of it; three batches are all there are. */
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
  ends_wanted = 2; /* then all batches are back */
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
  cr_assert_eq(n, MOST - 1); /* and this thread */
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

/* A thread that finds no place for its goroutine tries again with each call, and its end says nothing. */
static void *stay_out(void *arg) {
  ta_heap_alloc(1);
  ta_heap_alloc(1);
  return arg;
}

Test(emit, a_thread_without_a_goroutine_writes_nothing) {
  enum { MOST = 256 };
  pthread_t thread;
  struct emitted e;

  cr_assert_eq(ta_goes_make(MOST), TB_OK);
  cr_assert_eq(emit_begin_version(&e, 26), 0);
  while (ta_fiber_create(TA_WAIT_POLL, 0) != 0)
    ;
  uint64_t before = status_now().dropped;
  pthread_create(&thread, NULL, stay_out, NULL);
  pthread_join(thread, NULL);
  cr_assert_eq(status_now().dropped, before + 3, "two calls, and its end");
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0, "without a place");
  tt_run_fini(&run);
  emit_free(&e);
}

/* E4: its goroutine is made by its first event, and before that there is none whose status could be told. */
Test(emit, a_thread_without_a_goroutine_yet_states_its_proc_alone) {
  struct emitted e;
  size_t procs = 0, made = SIZE_MAX;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_heap_alloc(1);
  cr_assert_eq(emit_end(&e), 0);
  struct tt_run run = read_trace(&e, 0, "a first event");
  for (size_t i = 0; i < run.count; i++) {
    uint8_t type = run.events[i].type;
    if (type == TW_EV_GO_CREATE) made = i;
    if (type == TW_EV_PROC_STATUS) {
      cr_assert_eq(made, SIZE_MAX, "it comes first");
      cr_assert_eq(run.events[i].g, TO_NONE);
      procs++;
    }
    cr_assert_neq(type, TW_EV_GO_STATUS);
    cr_assert_neq(type, TW_EV_GO_STATUS_STACK);
  }
  cr_assert_eq(procs, 1);
  cr_assert_neq(made, SIZE_MAX);
  tt_run_fini(&run);
  emit_free(&e);
}

#ifndef __SANITIZE_THREAD__ /* it wants a megabyte for each */
static void *stays(void *met) {
  ta_heap_alloc(1);
  pthread_barrier_wait(met);
  return NULL;
}

Test(emit, threads_beyond_their_number_are_counted_and_all_else_goes_on) {
  enum { MOST = 1024, MORE = MOST + 5 };
  static pthread_t thread[MORE];
  pthread_barrier_t met;
  pthread_attr_t attr;
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e;

  pthread_barrier_init(&met, NULL, MORE + 1);
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 128 << 10);
  cr_assert_eq(ta_threads_make(MOST), TB_OK);
  cr_assert_eq(emit_begin(&e, &config, 4 << 20), 0);
  for (int i = 0; i < MORE; i++) cr_assert_eq(pthread_create(&thread[i], &attr, stays, &met), 0);
  pthread_barrier_wait(&met);
  for (int i = 0; i < MORE; i++) pthread_join(thread[i], NULL);
  cr_assert_eq(status_now().dropped, MORE - MOST);
  ta_heap_alloc(1);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 0);
  struct tt_run run = read_trace(&e, 0, "as many as can be");
  size_t allocs = 0;
  for (size_t i = 0; i < run.count; i++) allocs += run.events[i].type == TW_EV_HEAP_ALLOC;
  cr_assert_eq(allocs, MOST + 1);
  tt_run_fini(&run);
  emit_free(&e);
}

/* A crowd of threads that write little, and one among them that writes much, in the memory of the default spool: a
 * quarter of 16 MiB. Generations end while all of them write. */
enum { CROWD = 2000, CROWD_GENERATIONS = 3, CROWD_WAITS = 10, DENSE_REGIONS = 30000 };
static pthread_barrier_t crowd_round;

static void *live_quietly(void *dense) {
  for (int gen = 0; gen < CROWD_GENERATIONS; gen++) {
    pthread_barrier_wait(&crowd_round);
    for (int i = 0; dense == NULL && i < CROWD_WAITS; i++) {
      ta_wait_begin(TA_WAIT_SLEEP);
      ta_wait_end();
    }
    for (int i = 0; dense != NULL && i < DENSE_REGIONS; i++) {
      ta_region_begin(TA_WAIT_POLL, 0);
      ta_region_end();
    }
    pthread_barrier_wait(&crowd_round);
  }
  return NULL;
}

Test(emit, two_thousand_quiet_threads_and_a_dense_one_lose_nothing) {
  static pthread_t thread[CROWD];
  pthread_attr_t attr;
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct emitted e;

  pthread_barrier_init(&crowd_round, NULL, CROWD + 1);
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 128 << 10);
  cr_assert_eq(emit_begin(&e, &config, 4 << 20), 0);
  for (uintptr_t i = 0; i < CROWD; i++)
    cr_assert_eq(pthread_create(&thread[i], &attr, live_quietly, (void *)(uintptr_t)(i == 0)), 0);
  for (int gen = 0; gen < CROWD_GENERATIONS; gen++) {
    pthread_barrier_wait(&crowd_round);
    emit_end_generation();
    pthread_barrier_wait(&crowd_round);
  }
  for (int i = 0; i < CROWD; i++) pthread_join(thread[i], NULL);
  cr_assert_eq(status_now().dropped, 0);
  cr_assert_eq(emit_end(&e), 0);
  cr_assert_eq(e.lost, 0);
  struct tt_run run = read_trace(&e, 0, "a crowd");
  size_t blocks = 0, regions = 0;
  for (size_t i = 0; i < run.count; i++) {
    blocks += run.events[i].type == TW_EV_GO_BLOCK;
    regions += run.events[i].type == TW_EV_USER_REGION_BEGIN;
  }
  cr_assert_eq(blocks, (CROWD - 1) * CROWD_WAITS * CROWD_GENERATIONS);
  cr_assert_eq(regions, DENSE_REGIONS * CROWD_GENERATIONS);
  tt_run_fini(&run);
  emit_free(&e);
}
#endif

/* E2, E13, E16, E17: whatever several threads do to one another's fibers, with generations ending under
 * them and too little memory for most: what is not lost is whole. */
enum { RIOTERS = 4, RIOT_ROUNDS = 3000, RIOT_FIBERS = 5 };
static ta_fiber riot_fibers[RIOT_FIBERS];
static _Atomic ta_fiber rioters[RIOTERS];
static atomic_bool leaves_sections_open; /* and goes on until it no longer does */

static void *riot(void *arg) {
  uintptr_t self = (uintptr_t)arg;
  uint64_t random = 88172645463325252u + self;
  ta_name name = ta_name_of("riot");

  for (int i = 0; i < RIOT_ROUNDS || atomic_load(&leaves_sections_open); i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    ta_fiber other = riot_fibers[random / 16 % RIOT_FIBERS];
    unsigned first = atomic_load(&leaves_sections_open) ? 6 : 0; /* others' fibers: none */
    switch (first + random % (16 - first)) {
    case 0: ta_fiber_switch(other); break;
    case 1: ta_fiber_switch(0); break;
    case 2: ta_fiber_block(TA_WAIT_POLL); break;
    case 3: ta_fiber_unblock(other); break;
    case 4: rioters[self] = ta_fiber_self(); break;
    case 5: ta_fiber_unblock(rioters[random / 256 % RIOTERS]); break;
    case 6: ta_wait_begin(TA_WAIT_COND); break;
    case 7:
    case 8: ta_wait_end(); break;
    case 9: ta_syscall_begin(); break;
    case 10: ta_syscall_end(); break;
    case 11:
      ta_fiber_switch(ta_fiber_create(name, random / 32 % 2));
      ta_log(0, name, "in a fiber of its own");
      if (random / 64 % 4 != 0 || atomic_load(&leaves_sections_open)) ta_fiber_end();
      break;
    case 12: ta_region_begin(name, random / 16); break;
    case 13: ta_region_end(); break;
    case 14:
      ta_pause_begin(name);
      ta_heap_alloc(UINT64_MAX);
      ta_pause_end();
      break;
    default:
      if (random / 16 % 64 == 0) ta_thread_detach();
      if (atomic_load(&leaves_sections_open) && random / 1024 % 16 == 0) ta_hold_begin();
      for (int n = atomic_load(&leaves_sections_open) ? 49 : 0; n < 50; n++)
        ta_heap_goal(UINT64_MAX);
    }
  }
  return NULL;
}

static void run_riot(struct emitted *e, uint64_t gens, uint64_t lost) {
  pthread_t thread[RIOTERS];

  for (int i = 0; i < RIOT_FIBERS; i++)
    riot_fibers[i] = ta_fiber_create(ta_name_of("shared"), i % 2);
  for (uintptr_t i = 0; i < RIOTERS; i++) pthread_create(&thread[i], NULL, riot, (void *)i);
  for (uint64_t i = 0; i < gens || e->lost < lost; i++) emit_end_generation();
  atomic_store(&leaves_sections_open, false);
  for (int i = 0; i < RIOTERS; i++) pthread_join(thread[i], NULL);
  cr_assert_eq(emit_end(e), 0);
  uint64_t generations = 0;
  for (unsigned i = 0; i < e->traces; i++) {
    struct tt_run run = read_trace(e, i, "riot");
    generations += run.generations;
    tt_run_fini(&run);
  }
  cr_assert_eq(generations + e->lost, e->ended);
  emit_free(e);
}

static void check_riot(unsigned version, uint64_t memory_bytes) {
  static struct emitted e;
  struct ta_emit_config config = { .version = version,
                                   .generation_ms = 50,
                                   .generation_bytes = 64 << 10 };

  cr_assert_eq(emit_begin(&e, &config, memory_bytes), 0);
  run_riot(&e, RIOTERS, 0);
}

Test(emit, what_threads_do_to_one_another_is_a_trace_of_1_22) {
  check_riot(22, 8 << 20);
}
Test(emit, what_threads_do_to_one_another_is_a_trace_of_1_26) {
  check_riot(26, 8 << 20);
}
Test(emit, with_too_little_memory_what_is_not_lost_is_whole) {
  check_riot(26, 8 * 80 << 10);
}

#ifndef __SANITIZE_THREAD__ /* under which few are ever caught in the middle, and it takes minutes */
/* Any thread is left behind at any moment, and comes in again. */
Test(emit, what_a_flusher_without_patience_does_not_lose_is_whole) {
  static struct emitted e;
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct ta_outlet out = emit_outlet(&e);

  out.patience_ns = 1;
  atomic_store(&leaves_sections_open, true);
  cr_assert_eq(ta_emit_start_to(&out, &config, 8 << 20), 0);
  run_riot(&e, 40, 0);
}
#endif

/* The process. */

Test(emit, a_forked_child_is_off_and_may_begin_anew) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  emit_end_generation(); /* its thread is under way, and allocates nothing any more */
  ta_region_begin(ta_name_of("parent"), 0);
  pid_t child = fork();
  if (child == 0) {
    ta_region_end();
    bool ok = ta_emit_sync(0) == TA_E_OFF;
#ifndef __SANITIZE_THREAD__ /* it allows no threads in a forked child */
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
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* one that does not end by itself */
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

#ifndef __SANITIZE_THREAD__ /* it has a thread of its own, which nobody can tell from the host's */
Test(emit, a_process_ends_with_the_last_thread_of_its_host) {
  expect_exit("leave", 6);
}

/* It stayed for ever, with the agent's threads alone. */
Test(emit, a_process_whose_host_has_left_ends_though_threads_cannot_be_made) {
  expect_exit("leave-without-thread", 6);
  expect_exit("leave-without-threads", 6);
}

Test(emit, a_process_whose_host_has_left_ends_though_the_session_does_not) {
  expect_exit("leave-stuck", 6);
  expect_exit("leave-unstopped", 6);
}
#endif
