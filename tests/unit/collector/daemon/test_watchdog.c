/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "collector/daemon/watchdog.h"

enum { THREADS = 3 };

/* A thread that turns on request, as a loop does when its timer fires. */
struct turner {
  pthread_t thread;
  sem_t go, gone;
  atomic_ullong turns;
  atomic_bool end;
};

static void *turn(void *arg) {
  struct turner *t = arg;

  for (;;) {
    sem_wait(&t->go);
    if (atomic_load(&t->end)) return NULL;
    atomic_fetch_add(&t->turns, 1);
    sem_post(&t->gone);
  }
}

static void let_turn(struct turner *t) {
  sem_post(&t->go);
  sem_wait(&t->gone);
}

static int ask(struct tc_watchdog *progress, struct turner *turners) {
  uint64_t turns[THREADS];

  for (int i = 0; i < THREADS; i++) turns[i] = atomic_load(&turners[i].turns);
  return tc_watchdog_stuck(progress, turns, THREADS);
}

Test(progress, a_thread_that_stands_still_is_named_until_it_turns_again) {
  struct tc_watchdog progress = { { 0 } };
  struct turner turners[THREADS];

  for (int i = 0; i < THREADS; i++) {
    sem_init(&turners[i].go, 0, 0);
    sem_init(&turners[i].gone, 0, 0);
    atomic_init(&turners[i].turns, 0);
    atomic_init(&turners[i].end, false);
    pthread_create(&turners[i].thread, NULL, turn, &turners[i]);
  }
  cr_expect_eq(ask(&progress, turners), 0, "one that never turned has made no progress");
  for (int i = 0; i < THREADS; i++) let_turn(&turners[i]);
  cr_expect_eq(ask(&progress, turners), -1);
  for (int stuck = 0; stuck < THREADS; stuck++) {
    for (int i = 0; i < THREADS; i++)
      if (i != stuck) let_turn(&turners[i]);
    cr_expect_eq(ask(&progress, turners), stuck);
    cr_expect_eq(ask(&progress, turners), 0, "nobody turned since the last question");
    for (int i = 0; i < THREADS; i++) let_turn(&turners[i]);
    cr_expect_eq(ask(&progress, turners), -1);
  }
  for (int i = 0; i < THREADS; i++) {
    atomic_store(&turners[i].end, true);
    sem_post(&turners[i].go);
    pthread_join(turners[i].thread, NULL);
    sem_destroy(&turners[i].go);
    sem_destroy(&turners[i].gone);
  }
}

Test(progress, a_count_that_wrapped_or_began_anew_has_moved) {
  struct tc_watchdog progress = { { UINT64_MAX, 7 } };
  uint64_t turns[] = { 0, 3 };

  cr_expect_eq(tc_watchdog_stuck(&progress, turns, 2), -1);
}
