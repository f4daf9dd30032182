/* SPDX-License-Identifier: Apache-2.0 */
/* E2: a thread runs the goroutine that its creator wrote, however long the thread takes to
 * start. A thread without a traced creator, or one that starts in another session, creates its
 * own goroutine. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

#include "agent/emit/events/act.h"
#include "agent/emit/events/spawn.h"
#include "support/order_text.h"
#include "tests/unit/agent/emit/emit_scene.h"

struct reported {
  struct tt_run run;
  size_t made, made_by_nobody; /* goroutines */
};

static struct reported end(struct emitted *e) {
  struct reported reported = { 0 };

  cr_assert_eq(emit_end(e), 0);
  cr_assert_eq(e->traces, 1);
  tt_order_bytes(&reported.run, e->trace[0].bytes, e->trace[0].n);
  TT_OK(reported.run);
  for (size_t i = 0; i < reported.run.count; i++) {
    if (reported.run.events[i].type != TW_EV_GO_CREATE) continue;
    reported.made++;
    reported.made_by_nobody += reported.run.events[i].g < 0;
  }
  emit_free(e);
  return reported;
}

/* Returns the first event of its type that names that goroutine, or belongs to it. */
static const struct to_event *find(const struct reported *reported, enum tw_event type,
                                   uint64_t id) {
  const struct to_event *found = NULL;

  for (size_t i = 0; i < reported->run.count && found == NULL; i++) {
    const struct to_event *ev = &reported->run.events[i];
    if (ev->type == type && (ev->args[0] == id || ev->g == (int64_t)id)) found = ev;
  }
  cr_assert_not_null(found, "no event %d of goroutine %lu", (int)type, (unsigned long)id);
  return found;
}

static void *live(void *arg) {
  ta_spawned_is_mine(*(const struct ta_spawned *)arg);
  ta_thread_attach(0);
  ta_heap_alloc(2);
  return NULL;
}

static void make(struct ta_spawned birth) {
  pthread_t thread;

  cr_assert_eq(pthread_create(&thread, NULL, live, &birth), 0);
  cr_assert_eq(pthread_join(thread, NULL), 0);
}

static struct ta_spawned report(void) {
  return ta_spawned_begin(ta_name_of("kid"), ta_name_of("make"), NULL);
}

Test(emit_births, who_makes_a_thread_is_who_made_its_goroutine) {
  static const unsigned versions[] = { 22, 23, 25, 26 };
  struct emitted e;

  for (unsigned i = 0; i < 4 * 4; i++) {
    cr_assert_eq(emit_begin_version(&e, versions[i / 4]), 0);
    struct ta_spawned birth = report();
    cr_assert_not_null(birth.go);
    for (unsigned gens = 0; gens < i % 4; gens++) emit_end_generation();
    make(birth);
    struct reported reported = end(&e);
    cr_assert_eq(reported.made, 2);
    cr_assert_eq(reported.made_by_nobody, 1); /* this thread's */
    const struct to_event *made = find(&reported, TW_EV_GO_CREATE, birth.id);
    const struct to_event *runs = find(&reported, TW_EV_GO_START, birth.id);
    cr_assert(made->g >= 0 && made->args[0] == birth.id);
    cr_assert_eq(made->args[1], ta_name_of("kid"));
    cr_assert_eq(made->args[2], ta_name_of("make"));
    cr_assert_neq(made->m, runs->m);
    cr_assert_eq(find(&reported, TW_EV_GO_DESTROY, birth.id)->m, runs->m);
    tt_run_fini(&reported.run);
  }
}

Test(emit_births, of_a_thread_that_could_not_be_made_the_story_ends) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  struct ta_spawned birth = report();
  emit_end_generation();
  ta_spawned_fail(birth);
  ta_heap_alloc(1);
  struct reported reported = end(&e);
  const struct to_event *made = find(&reported, TW_EV_GO_CREATE, birth.id);
  cr_assert_eq(find(&reported, TW_EV_GO_DESTROY, birth.id)->m, made->m);
  cr_assert_eq(find(&reported, TW_EV_HEAP_ALLOC, 1)->g, made->g);
  tt_run_fini(&reported.run);
}

Test(emit_births, a_thread_that_comes_into_another_session_makes_itself) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  struct ta_spawned birth = report();
  struct reported reported = end(&e);
  tt_run_fini(&reported.run);
  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_spawned_fail(birth); /* says nothing */
  make(birth);
  reported = end(&e);
  cr_assert_eq(reported.made, 1);
  cr_assert_eq(reported.made_by_nobody, 1);
  tt_run_fini(&reported.run);
}

Test(emit_births, nothing_is_told_without_a_session_or_in_the_middle_of_a_wait) {
  struct emitted e;

  cr_assert_null(report().go);
  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_wait_begin(TA_WAIT_MUTEX);
  struct ta_spawned birth = report();
  cr_assert_null(birth.go);
  make(birth);
  ta_wait_end();
  struct reported reported = end(&e);
  cr_assert_eq(reported.made_by_nobody, 2);
  tt_run_fini(&reported.run);
}

/* Emits a heap event first, as a handler of the thread may do before. */
static void *live_first(void *arg) {
  ta_heap_alloc(3);
  return live(arg);
}

Test(emit_births, a_thread_that_is_there_already_ends_what_was_told_of_it) {
  struct emitted e;
  pthread_t thread;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  struct ta_spawned birth = report();
  cr_assert_eq(pthread_create(&thread, NULL, live_first, &birth), 0);
  cr_assert_eq(pthread_join(thread, NULL), 0);
  struct reported reported = end(&e);
  cr_assert_eq(reported.made, 3);
  cr_assert_eq(reported.made_by_nobody, 2);
  const struct to_event *kid = find(&reported, TW_EV_HEAP_ALLOC, 3);
  cr_assert_neq(kid->g, (int64_t)birth.id);
  cr_assert_eq(find(&reported, TW_EV_GO_DESTROY, birth.id)->m, kid->m);
  cr_assert_eq(find(&reported, TW_EV_HEAP_ALLOC, 2)->g, kid->g);
  tt_run_fini(&reported.run);
}

static void *find_no_place(void *arg) {
  ta_spawned_is_mine(*(const struct ta_spawned *)arg);
  ta_spawned_is_over();
  return NULL;
}

Test(emit_births, what_was_told_of_a_thread_that_said_nothing_ends_with_the_next) {
  struct emitted e;
  pthread_t thread;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  struct ta_spawned birth = report();
  cr_assert_eq(pthread_create(&thread, NULL, find_no_place, &birth), 0);
  cr_assert_eq(pthread_join(thread, NULL), 0);
  emit_end_generation();
  struct ta_spawned next = report();
  make(next);
  struct reported reported = end(&e);
  cr_assert_eq(reported.made, 3);
  const struct to_event *made = find(&reported, TW_EV_GO_CREATE, next.id);
  cr_assert_eq(find(&reported, TW_EV_GO_DESTROY, birth.id)->m, made->m);
  tt_run_fini(&reported.run);
}

/* Another thread runs the goroutine that was meant for this one. */
Test(emit_births, who_finds_it_taken_makes_itself) {
  struct emitted e;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  struct ta_spawned birth = report();
  ta_fiber_switch(ta_fiber_of(birth.go));
  make(birth);
  ta_fiber_end();
  struct reported reported = end(&e);
  cr_assert_eq(reported.made, 3);
  cr_assert_eq(reported.made_by_nobody, 2);
  tt_run_fini(&reported.run);
}

static pthread_barrier_t meeting;

static void *live_for_long(void *arg) {
  void *answer = live(arg);

  pthread_barrier_wait(&meeting);
  pthread_barrier_wait(&meeting);
  return answer;
}

Test(emit_births, what_runs_already_cannot_be_ended_and_nothing_else_is) {
  struct emitted e;
  pthread_t thread;

  cr_assert_eq(emit_begin_version(&e, 26), 0);
  ta_fiber fiber = ta_fiber_create(ta_name_of("fiber"), 0);
  ta_fiber_switch(fiber);
  struct ta_spawned birth = report();
  pthread_barrier_init(&meeting, NULL, 2);
  cr_assert_eq(pthread_create(&thread, NULL, live_for_long, &birth), 0);
  pthread_barrier_wait(&meeting);
  ta_spawned_fail(birth);
  cr_assert_eq(ta_fiber_self(), fiber);
  pthread_barrier_wait(&meeting);
  cr_assert_eq(pthread_join(thread, NULL), 0);
  ta_fiber_end();
  struct reported reported = end(&e);
  cr_assert_eq(reported.made, 3);
  tt_run_fini(&reported.run);
}

/* Many births at once, while generations end as fast as they can. */

enum { MAKERS = 4, KIDS = 25 };
static atomic_int making;

static void *make_kids(void *arg) {
  for (int i = 0; i < KIDS; i++) {
    struct ta_spawned birth = report();
    if (i % 5 == 4)
      ta_spawned_fail(birth);
    else
      make(birth);
  }
  making--;
  return arg;
}

Test(emit_births, whoever_is_made_meanwhile_it_is_a_trace) {
  struct ta_emit_config config = { .version = 26, .generation_ms = 60000 };
  pthread_t maker[MAKERS];
  struct emitted e;

  cr_assert_eq(emit_begin(&e, &config, 32 << 20), 0); /* no generation is lost */
  making = MAKERS;
  for (int i = 0; i < MAKERS; i++) pthread_create(&maker[i], NULL, make_kids, NULL);
  while (making > 0) emit_end_generation();
  for (int i = 0; i < MAKERS; i++) pthread_join(maker[i], NULL);
  struct reported reported = end(&e);
  cr_assert_eq(reported.made, MAKERS + MAKERS * KIDS);
  cr_assert_eq(reported.made_by_nobody, MAKERS);
  tt_run_fini(&reported.run);
}
