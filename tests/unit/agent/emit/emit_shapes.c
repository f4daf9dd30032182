/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/agent/emit/emit_shapes.h"

#include <pthread.h>
#include <string.h>

#include "agent/host/clock.h"
#include "tests/unit/agent/emit/emit_scene.h"
#include "traceexperiment.h"

static void gens(int n) {
  for (int i = 0; i < n; i++) emit_end_generation();
}

/* Takes longer than a call that does not count as blocked. */
static void pass_time(void) {
  for (uint64_t end = ta_mono_ns() + 100000; ta_mono_ns() < end;) {
  }
}

static void on_thread(void *(*body)(void *), void *arg) {
  pthread_t thread;

  pthread_create(&thread, NULL, body, arg);
  pthread_join(thread, NULL);
}

static void first_event_attaches(void) {
  ta_region_begin(ta_name_of("alone"), 0);
  ta_region_end();
}

static void *silent(void *arg) {
  ta_thread_attach(ta_name_of(arg));
  return NULL;
}

static void threads_come_and_go(void) {
  ta_thread_attach(ta_name_of("main"));
  for (int i = 0; i < 20; i++) {
    on_thread(silent, i % 2 ? (char[]){ "odd" } : (char[]){ "even" });
    if (i % 6 == 5) emit_end_generation();
  }
  ta_thread_detach();
  ta_thread_detach();
  ta_heap_alloc(1);
}

static void memory_is_reported(void) {
  static char arena[1 << 16];

  for (int i = 0; i < 2; i++) {
    for (int what = TA_SPAN_EXISTS; what <= TA_STACK_FREE; what++)
      ta_memory_tell((enum ta_memory)what, arena + 64 * what, 1u << what, ta_name_of("item"));
    on_thread(silent, (char[]){ "other" });
    gens(1);
  }
}

static void a_new_name_is_taken(void) {
  ta_thread_attach(ta_name_of("before"));
  gens(1);
  ta_thread_attach(ta_name_of("after"));
  gens(2);
}

static void waits_have_reasons(void) {
  for (ta_name reason = TA_WAIT_MUTEX; reason <= TA_WAIT_NETWORK; reason++) {
    ta_wait_begin(reason);
    ta_wait_end();
  }
  ta_wait_begin(ta_name_of("quota"));
  ta_wait_end();
}

static void waits_have_objects(void) {
  static char lock[3];

  for (int i = 0; i < 9; i++) {
    ta_wait_begin_for(i < 6 ? TA_WAIT_MUTEX : TA_WAIT_COND, &lock[i % 3]);
    if (i == 4) gens(2);
    ta_wait_release(&lock[i % 3], i & 1);
    ta_wait_end();
    if (i == 7) emit_end_generation();
  }
}

static void a_wait_inside_another_says_nothing(void) {
  ta_wait_begin(TA_WAIT_COND);
  ta_syscall_begin();
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_end();
  ta_syscall_end();
  ta_wait_end();
  ta_syscall_begin();
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_end();
  ta_syscall_end();
}

static void a_wait_lasts_for_generations(void) {
  ta_wait_begin(TA_WAIT_SLEEP);
  gens(3);
  ta_wait_end();
}

static void calls_return_at_once_or_not(void) {
  for (int i = 0; i < 3; i++) {
    ta_syscall_begin();
    ta_syscall_end();
    ta_syscall_begin();
    pass_time();
    ta_syscall_end();
  }
}

static void a_call_lasts_for_generations(void) {
  ta_heap_alloc(1);
  for (int n = 0; n < 4; n++) {
    ta_syscall_begin();
    gens(n);
    pass_time();
    ta_syscall_end();
  }
  ta_syscall_begin();
  gens(1);
  ta_syscall_end();
  ta_heap_alloc(2);
}

static void a_thread_is_silent_for_generations(void) {
  ta_heap_alloc(1);
  gens(3);
  ta_heap_alloc(2);
  gens(1);
}

static void *sits_in_a_call(void *arg) {
  pthread_barrier_t *met = arg;

  ta_syscall_begin();
  pthread_barrier_wait(met);
  pthread_barrier_wait(met);
  return NULL;
}

static void a_thread_ends_inside_a_call(void) {
  pthread_barrier_t met;
  pthread_t thread;

  pthread_barrier_init(&met, NULL, 2);
  pthread_create(&thread, NULL, sits_in_a_call, &met);
  pthread_barrier_wait(&met);
  gens(2);
  pthread_barrier_wait(&met);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&met);
}

/* Fibers. */

static void a_fiber_runs_to_its_end(void) {
  ta_fiber f = ta_fiber_create(ta_name_of("fiber"), 0);

  ta_fiber_switch(f);
  ta_region_begin(ta_name_of("work"), 0);
  ta_fiber_end();
}

static void fibers_switch_to_one_another(void) {
  ta_fiber a = ta_fiber_create(ta_name_of("a"), 1), b = ta_fiber_create(ta_name_of("b"), 0);

  for (int i = 0; i < 5; i++) {
    ta_fiber_switch(a);
    ta_fiber_switch(b);
    ta_fiber_switch(b);
    if (i == 2) emit_end_generation();
  }
  ta_fiber_switch(0);
  ta_fiber_switch(a);
  ta_fiber_end();
  ta_fiber_switch(b);
  ta_fiber_end();
}

static void fibers_block_and_are_woken(void) {
  ta_fiber f = ta_fiber_create(ta_name_of("reader"), 0);

  for (int i = 0; i < 4; i++) {
    ta_fiber_switch(f);
    ta_fiber_block(TA_WAIT_POLL);
    if (i % 2) gens(i);
    ta_fiber_unblock(f);
    if (i > 1) gens(2);
  }
  ta_fiber_switch(f);
  ta_wait_begin(TA_WAIT_MUTEX);
  gens(1);
  ta_wait_end();
  ta_syscall_begin();
  pass_time();
  gens(2);
  ta_syscall_end();
  ta_fiber_end();
}

static void *run_once(void *arg) {
  ta_fiber *f = arg;

  ta_fiber_switch(*f);
  ta_fiber_block(TA_WAIT_POLL);
  return NULL;
}

static void a_fiber_goes_from_thread_to_thread(void) {
  ta_fiber f = ta_fiber_create(ta_name_of("request"), 0);

  for (int i = 0; i < 6; i++) {
    on_thread(run_once, &f);
    if (i % 2) ta_fiber_unblock(f);
    if (i > 3) gens(1);
  }
  ta_fiber_switch(f);
  ta_fiber_end();
}

static void fibers_are_left_behind(void) {
  for (int i = 0; i < 100; i++) {
    ta_fiber f = ta_fiber_create(ta_name_of("left"), i % 3 == 0);
    if (i % 5 == 0) ta_fiber_switch(f);
    if (i % 25 == 0) emit_end_generation();
  }
  gens(3);
}

static void *waits_for_a_friend(void *arg) {
  pthread_barrier_t *met = ((void **)arg)[0];
  ta_fiber *self = ((void **)arg)[1];

  *self = ta_fiber_self();
  ta_wait_begin(TA_WAIT_COND);
  pthread_barrier_wait(met);
  pthread_barrier_wait(met);
  ta_wait_end();
  return NULL;
}

static void a_thread_is_woken_by_another(void) {
  pthread_barrier_t met;
  pthread_t thread;
  ta_fiber friend = 0;

  pthread_barrier_init(&met, NULL, 2);
  for (int i = 0; i < 3; i++) {
    pthread_create(&thread, NULL, waits_for_a_friend, (void *[]){ &met, &friend });
    pthread_barrier_wait(&met);
    gens(i);
    ta_fiber_switch(friend); /* no thread may start another thread's own goroutine */
    ta_fiber_unblock(friend);
    gens(i);
    ta_fiber_unblock(friend);
    pthread_barrier_wait(&met);
    pthread_join(thread, NULL);
  }
  pthread_barrier_destroy(&met);
}

/* Marks. */

static void regions_nest(void) {
  ta_task task = ta_task_begin(ta_name_of("outer task"), 0);

  ta_region_begin(ta_name_of("a"), task);
  ta_region_begin(ta_name_of("b"), 0);
  gens(2);
  ta_region_end();
  ta_region_begin(ta_name_of("b"), task);
  ta_region_end();
  ta_region_end();
  ta_region_end();
  for (int i = 0; i < 100; i++) ta_region_begin(ta_name_of("deep"), 0);
  emit_end_generation();
  for (int i = 0; i < 100; i++) ta_region_end();
  ta_task_end(task);
}

static void *leaves_all_open(void *arg) {
  (void)arg;
  ta_region_begin(ta_name_of("outer"), 0);
  ta_pause_begin(ta_name_of("left open"));
  ta_pause_end();
  ta_fiber_switch(ta_fiber_create(ta_name_of("orphan"), 0));
  ta_region_begin(ta_name_of("inner"), 0);
  ta_pause_begin(ta_name_of("left open"));
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_begin(TA_WAIT_MUTEX);
  return NULL;
}

static void a_thread_ends_with_all_open(void) {
  for (int i = 0; i < 4; i++) {
    on_thread(leaves_all_open, NULL);
    if (i % 2) emit_end_generation();
  }
}

static void *ends_a_task(void *arg) {
  ta_log(*(ta_task *)arg, ta_name_of("by"), "another thread");
  ta_task_end(*(ta_task *)arg);
  return NULL;
}

static void tasks_go_from_thread_to_thread(void) {
  ta_task parent = ta_task_begin(ta_name_of("request"), 0), child;

  for (int i = 0; i < 200; i++) {
    child = ta_task_begin(ta_name_of("query"), parent);
    if (i % 40 == 0) emit_end_generation();
    if (i % 40 < 2) on_thread(ends_a_task, &child);
  }
  ta_task_end(parent);
  ta_task_end(parent);
}

static void texts_are_cut(void) {
  char text[3000];
  ta_name key = ta_name_of("text");

  memset(text, 'x', sizeof text);
  text[sizeof text - 1] = 0;
  ta_log(0, key, text);
  for (int at = 1020; at < 1026; at++) {
    memset(text, 'x', sizeof text - 1);
    memcpy(text + at, "\xe2\x82\xac", 3);
    ta_log(0, key, text);
  }
  memset(text, '\xe2', sizeof text - 1); /* not valid UTF-8 */
  ta_log(0, key, text);
  memset(text, '\x80', sizeof text - 1);
  ta_log(0, key, text);
  ta_log(0, key, "");
  ta_log(0, 0, "no key");
  ta_region_begin(ta_name_of(text), 0);
  ta_region_end();
  for (int i = 0; i < 200; i++) ta_log(0, key, text); /* more text than a batch holds */
}

static void figures(void) {
  ta_workers(4);
  ta_heap_alloc(UINT64_MAX);
  ta_heap_goal(1 << 20);
  ta_label(ta_name_of("quick"));
  gens(2);
  ta_label(0);
  gens(1);
  ta_workers(8);
}

static void the_world_stops(void) {
  ta_pause_begin(ta_name_of("reload"));
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_wait_end();
  ta_heap_alloc(1);
  ta_pause_end();
  emit_end_generation();
  ta_pause_begin(ta_name_of("reload"));
  ta_pause_end();
}

/* A program with a runtime of its own: its fibers and its heap. */

static void fibers_yield(void) {
  ta_fiber a = ta_fiber_create(ta_name_of("a"), 0), b = ta_fiber_create(ta_name_of("b"), 1);

  for (int i = 0; i < 6; i++) {
    ta_fiber_switch(a);
    ta_fiber_yield(ta_name_of("its time is up"));
    if (i % 3 == 2) gens(i);
    ta_fiber_switch(b);
    ta_fiber_yield(0);
  }
  on_thread(run_once, &a);
  ta_fiber_switch(b);
  ta_fiber_end();
}

static void the_heap_is_collected(void) {
  ta_gc_begin();
  ta_gc_end();
  gens(1);
  for (int i = 0; i < 3; i++) {
    ta_gc_begin();
    gens(i);
    ta_heap_alloc(1);
    gens(i);
    ta_gc_end();
    ta_gc_begin();
    ta_gc_end();
  }
  ta_gc_begin();
  gens(1);
}

static void *collects(void *arg) {
  if (arg == NULL)
    ta_gc_begin();
  else
    ta_gc_end();
  return NULL;
}

/* No goroutine runs in the second generation, and the thread that ends the collection is new. */
static void a_collection_goes_from_thread_to_thread(void) {
  ta_thread_attach(0);
  for (int i = 0; i < 3; i++) {
    on_thread(collects, NULL);
    ta_wait_begin(TA_WAIT_JOIN);
    gens(3);
    ta_wait_end();
    on_thread(collects, &i);
    gens(1);
  }
}

static void *leaves_ranges_open(void *arg) {
  (void)arg;
  ta_gc_sweep_begin();
  ta_fiber_switch(ta_fiber_create(ta_name_of("left in an assist"), 0));
  ta_gc_assist_begin();
  ta_fiber_yield(0);
  ta_gc_assist_begin();
  ta_wait_begin(TA_WAIT_MUTEX);
  return NULL;
}

static void sweeps_and_assists_last_for_generations(void) {
  ta_fiber f = ta_fiber_create(ta_name_of("mutator"), 0);

  ta_fiber_switch(f);
  for (int i = 0; i < 4; i++) {
    ta_gc_assist_begin();
    ta_gc_sweep_begin();
    gens(i); /* the thread emits nothing */
    ta_wait_begin(TA_WAIT_MUTEX);
    gens(i);
    ta_wait_end();
    ta_syscall_begin();
    gens(i);
    ta_syscall_end();
    ta_fiber_yield(0);
    gens(i); /* f is runnable over the generation's end */
    ta_fiber_switch(f);
    ta_fiber_block(TA_WAIT_COND);
    gens(i);
    ta_gc_sweep_end(4096, 512);
    ta_fiber_unblock(f);
    gens(i);
    ta_fiber_switch(f);
    ta_gc_assist_end();
    gens(1);
  }
  ta_gc_assist_begin();
  gens(1);
  ta_fiber_end();
  ta_gc_sweep_begin();
  ta_wait_begin(TA_WAIT_MUTEX);
  gens(1);
  ta_syscall_begin(); /* writes no event, but enters the generation */
  gens(1);
  ta_syscall_end();
  ta_wait_end();
  ta_gc_sweep_end(1, 1);
  for (int i = 0; i < 3; i++) {
    on_thread(leaves_ranges_open, NULL);
    gens(i);
  }
}

enum { COLLECTORS = 4, CYCLES = 300 };

static void *collects_with_others(void *arg) {
  pthread_mutex_t *lock = arg;
  ta_fiber f = ta_fiber_create(ta_name_of("mutator"), 0);

  for (int i = 0; i < CYCLES; i++) {
    pthread_mutex_lock(lock);
    ta_gc_begin();
    if (i % 16 == 3) emit_end_generation();
    pthread_mutex_unlock(lock);
    ta_fiber_switch(f);
    ta_gc_assist_begin();
    ta_gc_sweep_begin();
    ta_fiber_yield(0);
    if (i % 64 == 7) emit_end_generation();
    ta_gc_sweep_end(1, 0);
    ta_fiber_switch(f);
    ta_gc_assist_end();
    ta_fiber_block(TA_WAIT_COND);
    ta_gc_end();
  }
  return NULL;
}

static void many_collect_at_once(void) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_t threads[COLLECTORS];

  for (int i = 0; i < COLLECTORS; i++)
    pthread_create(&threads[i], NULL, collects_with_others, &lock);
  for (int i = 0; i < COLLECTORS; i++) pthread_join(threads[i], NULL);
}

static void nonsense_is_left_out(void) {
  ta_fiber f = ta_fiber_create(ta_name_of("once"), 0);

  ta_wait_end();
  ta_syscall_end();
  ta_region_end();
  ta_pause_end();
  ta_fiber_end();
  ta_fiber_block(TA_WAIT_POLL);
  ta_fiber_yield(0);
  ta_gc_end();
  ta_gc_sweep_end(1, 2);
  ta_gc_assist_end();
  ta_gc_begin();
  ta_gc_begin();
  ta_gc_sweep_begin();
  ta_gc_sweep_begin();
  ta_gc_assist_begin();
  ta_gc_assist_begin();
  ta_gc_end();
  ta_gc_end();
  ta_fiber_switch(0);
  ta_fiber_switch(12345);
  ta_fiber_unblock(f);
  ta_fiber_unblock(99999999);
  ta_fiber_switch(f);
  ta_fiber_switch(f);
  ta_fiber_unblock(f);
  ta_fiber_end();
  ta_fiber_switch(f);
  ta_fiber_unblock(f);
  ta_pause_begin(ta_name_of("twice"));
  ta_pause_begin(ta_name_of("twice"));
  ta_fiber_switch(ta_fiber_create(ta_name_of("in a pause"), 0));
  ta_pause_end();
  ta_wait_begin(TA_WAIT_MUTEX);
  ta_region_begin(ta_name_of("asleep"), 0);
  ta_heap_alloc(1);
  ta_fiber_create(ta_name_of("asleep"), 0);
  ta_pause_begin(ta_name_of("asleep"));
  ta_wait_end();
  ta_wait_begin(4000);
  ta_wait_end();
  ta_region_begin(70000, 5);
  ta_label(UINT32_MAX);
  ta_region_end();
  ta_task_end(0);
  ta_task_end(777);
  ta_thread_attach(4095);
}

/* Many threads at once. */

enum { CROWD = 6, ROUNDS = 200 };

struct crowd {
  pthread_mutex_t lock;
  ta_fiber shared[CROWD];
};

static void *one_of_many(void *arg) {
  struct crowd *c = arg;
  ta_name name = ta_name_of("round");

  for (int i = 0; i < ROUNDS; i++) {
    ta_task task = ta_task_begin(name, 0);
    ta_region_begin(name, task);
    ta_wait_begin(TA_WAIT_MUTEX);
    pthread_mutex_lock(&c->lock);
    ta_wait_end();
    ta_fiber_switch(c->shared[i % CROWD]);
    ta_log(task, name, "inside");
    pthread_mutex_unlock(&c->lock);
    ta_syscall_begin();
    ta_syscall_end();
    ta_fiber_block(TA_WAIT_POLL);
    ta_fiber_unblock(c->shared[(i + 1) % CROWD]);
    ta_region_end();
    ta_fiber own = ta_fiber_create(name, i % 2);
    ta_fiber_switch(own);
    ta_fiber_end();
    if (i % 50 == 0) {
      ta_pause_begin(name);
      ta_pause_end();
    }
    ta_task_end(task);
    if (i % 40 == 39) emit_end_generation();
  }
  return NULL;
}

static void many_at_once(void) {
  struct crowd c = { .lock = PTHREAD_MUTEX_INITIALIZER };
  pthread_t threads[CROWD];

  for (int i = 0; i < CROWD; i++) c.shared[i] = ta_fiber_create(ta_name_of("shared"), i % 2);
  for (int i = 0; i < CROWD; i++) pthread_create(&threads[i], NULL, one_of_many, &c);
  for (int i = 0; i < CROWD; i++) pthread_join(threads[i], NULL);
}

#define SHAPE(name)                                                                                \
  { #name, name }
const struct emit_shape emit_shapes[] = {
  SHAPE(first_event_attaches),
  SHAPE(threads_come_and_go),
  SHAPE(memory_is_reported),
  SHAPE(a_new_name_is_taken),
  SHAPE(waits_have_reasons),
  SHAPE(waits_have_objects),
  SHAPE(a_wait_inside_another_says_nothing),
  SHAPE(a_wait_lasts_for_generations),
  SHAPE(calls_return_at_once_or_not),
  SHAPE(a_call_lasts_for_generations),
  SHAPE(a_thread_is_silent_for_generations),
  SHAPE(a_thread_ends_inside_a_call),
  SHAPE(a_fiber_runs_to_its_end),
  SHAPE(fibers_switch_to_one_another),
  SHAPE(fibers_block_and_are_woken),
  SHAPE(a_fiber_goes_from_thread_to_thread),
  SHAPE(fibers_are_left_behind),
  SHAPE(a_thread_is_woken_by_another),
  SHAPE(regions_nest),
  SHAPE(a_thread_ends_with_all_open),
  SHAPE(tasks_go_from_thread_to_thread),
  SHAPE(texts_are_cut),
  SHAPE(figures),
  SHAPE(the_world_stops),
  SHAPE(fibers_yield),
  SHAPE(the_heap_is_collected),
  SHAPE(a_collection_goes_from_thread_to_thread),
  SHAPE(sweeps_and_assists_last_for_generations),
  SHAPE(many_collect_at_once),
  SHAPE(nonsense_is_left_out),
  SHAPE(many_at_once),
};
const size_t emit_shape_count = sizeof emit_shapes / sizeof *emit_shapes;
