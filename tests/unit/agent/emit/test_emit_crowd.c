/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads: threads without a goroutine, threads beyond the limit, and threads that affect each other. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "tests/unit/agent/emit/emit_read.h"
#include "traceexperiment.h"

/* A thread for whose goroutine there is no place tries again with each call, and writes no event when it ends. */
static void *stay_out(void *arg) {
  ta_heap_alloc(1);
  ta_heap_alloc(1);
  return arg;
}

Test(emit_crowd, a_thread_without_a_goroutine_writes_nothing) {
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

/* E4: a thread's first event makes its goroutine. Before that there is no goroutine whose status could be written. */
Test(emit_crowd, a_thread_without_a_goroutine_yet_states_its_proc_alone) {
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

#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer needs a megabyte for each thread */
static void *stays(void *met) {
  ta_heap_alloc(1);
  pthread_barrier_wait(met);
  return NULL;
}

Test(emit_crowd, threads_beyond_their_number_are_counted_and_all_else_goes_on) {
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

/* Many threads that write little, and one that writes much, in the memory of the default spool:
 * a quarter of 16 MiB. Generations end while all of them write. */
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

Test(emit_crowd, two_thousand_quiet_threads_and_a_dense_one_lose_nothing) {
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

/* E2, E13, E16, E17: several threads switch and wake each other's fibers at random, while generations end, with too little
 * memory for most generations. The generations that are not lost must be whole. */
enum { RIOTERS = 4, RIOT_ROUNDS = 3000, RIOT_FIBERS = 5 };
static ta_fiber riot_fibers[RIOT_FIBERS];
static _Atomic ta_fiber rioters[RIOTERS];
/* While true, the threads also leave holds open, act on no fibers of others, and do not finish. */
static atomic_bool leaves_sections_open;

static void *riot(void *arg) {
  uintptr_t self = (uintptr_t)arg;
  uint64_t random = 88172645463325252u + self;
  ta_name name = ta_name_of("riot");

  for (int i = 0; i < RIOT_ROUNDS || atomic_load(&leaves_sections_open); i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    ta_fiber other = riot_fibers[random / 16 % RIOT_FIBERS];
    unsigned first = atomic_load(&leaves_sections_open) ? 6 : 0; /* 6: no fibers of others */
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

Test(emit_crowd, what_threads_do_to_one_another_is_a_trace_of_1_22) {
  check_riot(22, 8 << 20);
}
Test(emit_crowd, what_threads_do_to_one_another_is_a_trace_of_1_26) {
  check_riot(26, 8 << 20);
}
Test(emit_crowd, with_too_little_memory_what_is_not_lost_is_whole) {
  check_riot(26, 8 * 80 << 10);
}

#ifndef __SANITIZE_THREAD__ /* with it few threads are ever in a section; takes minutes */
/* Threads are left behind at any moment, and enter again. */
Test(emit_crowd, what_a_flusher_without_patience_does_not_lose_is_whole) {
  static struct emitted e;
  struct ta_emit_config config = { .generation_ms = 60000 };
  struct ta_outlet out = emit_outlet(&e);

  out.patience_ns = 1;
  atomic_store(&leaves_sections_open, true);
  cr_assert_eq(ta_emit_start_to(&out, &config, 8 << 20), 0);
  run_riot(&e, 40, 0);
}
#endif
