/* SPDX-License-Identifier: Apache-2.0 */
/* Probes: which probes are called, in which order, and what an unlock waits for. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/probe/call.h"
#include "support/patience.h"
#include "tested.trace.h"

//trace:event happened(int n)
//trace:event jobBegin(const char *name, unsigned long size, bool last)
//trace:event jobEnd(double took, const struct timespec *when)
//trace:event nothing()

static char heard[200];

static void hear(void *self, int n) {
  snprintf(heard + strlen(heard), sizeof heard - strlen(heard), "%s%d ", (const char *)self, n);
}

static void expect_heard(const char *text) {
  cr_assert_str_eq(heard, text);
  heard[0] = '\0';
}

static char a[] = "a", b[] = "b", c[] = "c";

static void attach(struct ta_probe_group *group, struct ta_probe *probe, char *self) {
  cr_assert_eq(ta_lock(), TA_OK);
  cr_assert_eq(happened_attach(group, probe, hear, self), TA_OK);
  cr_assert_eq(ta_unlock(), TA_OK);
}

static void detach(struct ta_probe *probe) {
  cr_assert_eq(ta_lock(), TA_OK);
  cr_assert_eq(ta_probe_detach(probe), TA_OK);
  cr_assert_eq(ta_unlock(), TA_OK);
}

Test(points, probes_are_called_in_the_order_of_their_attachment) {
  struct ta_probe pa = { 0 }, pb = { 0 }, pc = { 0 };

  happened(1);
  attach(NULL, &pa, a);
  attach(NULL, &pb, b);
  attach(NULL, &pc, c);
  happened(2);
  expect_heard("a2 b2 c2 ");
  detach(&pa);
  happened(3);
  attach(NULL, &pa, a); /* at the end of the list */
  happened(4);
  expect_heard("b3 c3 b4 c4 a4 ");
  cr_assert_eq(ta_probe_next(&pb), &pc);
  cr_assert_eq(ta_probe_next(&pc), &pa);
  cr_assert_null(ta_probe_next(&pa));
  detach(&pb);
  detach(&pa);
  detach(&pc);
  happened(5);
  expect_heard("");
}

Test(points, a_group_is_detached_at_once) {
  struct ta_probe pa = { 0 }, pb = { 0 }, pc = { 0 };
  struct ta_probe_group group = { 0 }, other = { 0 };

  attach(&group, &pa, a);
  attach(NULL, &pb, b);
  attach(NULL, &pc, c);
  ta_lock();
  cr_assert_eq(ta_probe_group_add(&group, &pc), TA_OK);
  cr_assert_eq(ta_probe_group_add(&other, &pc), TA_E_MISUSE); /* pc is in a group already */
  ta_unlock();
  cr_assert_eq(ta_probe_group_done(&group), TA_OK);
  happened(1);
  expect_heard("b1 ");
  cr_assert_eq(ta_probe_group_done(&group), TA_OK); /* empty */
  attach(&group, &pa, a);                           /* both probes are new again */
  detach(&pa);
  cr_assert_null(group.first);
  detach(&pb);
}

Test(points, what_makes_no_sense_is_refused) {
  struct ta_probe pa = { 0 }, fresh = { 0 };
  struct ta_probe_group group = { 0 };

  cr_assert_eq(happened_attach(NULL, &pa, hear, a), TA_E_MISUSE); /* not under the lock */
  cr_assert_eq(ta_unlock(), TA_E_MISUSE);
  attach(NULL, &pa, a);
  cr_assert_eq(ta_probe_detach(&pa), TA_E_MISUSE);
  cr_assert_eq(ta_probe_group_add(&group, &pa), TA_E_MISUSE);
  cr_assert_eq(ta_lock(), TA_OK);
  cr_assert_eq(ta_lock(), TA_E_MISUSE);
  cr_assert_eq(happened_attach(NULL, &pa, hear, a), TA_E_MISUSE); /* pa is attached already */
  cr_assert_eq(ta_probe_detach(&fresh), TA_E_MISUSE);
  cr_assert_eq(ta_probe_group_done(&group), TA_E_MISUSE); /* under the lock */
  cr_assert_eq(ta_probe_detach(&pa), TA_OK);
  cr_assert_eq(ta_probe_detach(&pa), TA_E_MISUSE);
  cr_assert_eq(happened_attach(NULL, &pa, hear, a), TA_E_MISUSE); /* pa may still be running */
  cr_assert_eq(ta_unlock(), TA_OK);
  happened(1);
  expect_heard("");
}

/* A probe that detaches itself, as a probe that waits for one event does. */

static void hear_once(void *self, int n) {
  hear(a, n);
  cr_assert_eq(ta_lock(), TA_OK);
  cr_assert_eq(ta_probe_detach(self), TA_OK);
  cr_assert_eq(ta_unlock(), TA_OK);
}

Test(points, a_probe_may_detach_itself) {
  struct ta_probe once = { 0 }, pb = { 0 };

  ta_lock();
  happened_attach(NULL, &once, hear_once, &once);
  ta_unlock();
  attach(NULL, &pb, b);
  happened(1);
  happened(2);
  expect_heard("a1 b1 b2 ");
  cr_assert_not_null(once.at); /* new only after an unlock outside of probes */
  detach(&pb);
  cr_assert_null(once.at);
}

static void nest(void *self, int n) {
  hear(self, n);
  if (n > 0) happened(n - 1);
}

Test(points, events_may_come_within_probes) {
  struct ta_probe probe = { 0 };

  ta_lock();
  happened_attach(NULL, &probe, nest, a);
  ta_unlock();
  happened(3);
  expect_heard("a3 a2 a1 a0 ");
  detach(&probe);
}

/* Unlock waits. */

static sem_t entered, may_leave;
static atomic_bool left, unlocked;

static void stay(void *self, int n) {
  (void)self, (void)n;
  sem_post(&entered);
  sem_wait(&may_leave);
  cr_assert_not(atomic_load(&unlocked));
  atomic_store(&left, true);
}

static void *passes(void *self) {
  happened(1);
  return self;
}

static void *lets_go(void *self) {
  sem_post(&may_leave);
  return self;
}

Test(points, unlock_waits_for_a_probe_that_runs) {
  struct ta_probe probe = { 0 };
  pthread_t passing, letting;

  sem_init(&entered, 0, 0);
  sem_init(&may_leave, 0, 0);
  ta_lock();
  happened_attach(NULL, &probe, stay, NULL);
  ta_unlock();
  pthread_create(&passing, NULL, passes, NULL);
  sem_wait(&entered);
  ta_lock();
  ta_probe_detach(&probe);
  pthread_create(&letting, NULL, lets_go, NULL);
  ta_unlock();
  cr_assert(atomic_load(&left));
  atomic_store(&unlocked, true);
  cr_assert_null(probe.at);
  pthread_join(passing, NULL);
  pthread_join(letting, NULL);
}

/* Some threads pass the event while others attach and detach probes. After the unlock the memory that a probe used belongs to
 * the detaching thread again, which overwrites it. A probe that still ran would notice this (and so would ThreadSanitizer). */

enum { PASSERS = 3, CHANGERS = 2, ROUNDS = 51, ROUNDS_FULL = 300 };

static int rounds(void) {
  return tt_full() ? ROUNDS_FULL : ROUNDS;
}

static atomic_int over;
static atomic_ulong passed;

static void look(void *self, int n) {
  (void)n;
  cr_assert_eq(*(int *)self, 7);
  atomic_fetch_add(&passed, 1);
}

static void *pass_on(void *self) {
  while (!atomic_load(&over)) happened(1);
  return self;
}

static void *change(void *self) {
  static __thread struct ta_probe probe[2];

  for (int i = 0; i < rounds(); i++) {
    int *mine = malloc(sizeof *mine);
    struct ta_probe_group group = { 0 };
    *mine = 7;
    ta_lock();
    happened_attach(&group, &probe[0], look, mine);
    happened_attach(&group, &probe[1], look, mine);
    ta_unlock();
    unsigned long before = atomic_load(&passed);
    while (i % 50 == 0 && atomic_load(&passed) == before) sched_yield();
    ta_probe_group_done(&group);
    *mine = 0;
    free(mine);
  }
  return self;
}

Test(points, nothing_runs_behind_an_unlock) {
  pthread_t passer[PASSERS], changer[CHANGERS];

  for (int i = 0; i < PASSERS; i++) pthread_create(&passer[i], NULL, pass_on, NULL);
  for (int i = 0; i < CHANGERS; i++) pthread_create(&changer[i], NULL, change, NULL);
  for (int i = 0; i < CHANGERS; i++) pthread_join(changer[i], NULL);
  atomic_store(&over, 1);
  for (int i = 0; i < PASSERS; i++) pthread_join(passer[i], NULL);
  cr_assert_gt(atomic_load(&passed), 0);
}

/* K6: one probe at each of three events, attached and detached one by one, while threads pass the events without pause. After
 * the unlock no call of the probe is in progress, and none begins. */

struct watched {
  atomic_int inside;
  atomic_bool detached;
  int plain; /* after the unlock the changer may write it, also for ThreadSanitizer */
};

static void be_watched(struct watched *w) {
  atomic_fetch_add(&w->inside, 1);
  cr_assert_not(atomic_load(&w->detached));
  cr_assert_eq(w->plain, 7);
  atomic_fetch_sub(&w->inside, 1);
  atomic_fetch_add(&passed, 1);
}
static void watch_happened(void *self, int n) {
  (void)n;
  be_watched(self);
}
static void watch_end(void *self, double took, const struct timespec *when) {
  (void)took, (void)when;
  be_watched(self);
}
static void watch_nothing(void *self) {
  be_watched(self);
}

static void *pass_all(void *self) {
  while (!atomic_load(&over)) {
    happened(1);
    jobEnd(0.5, NULL);
    nothing();
  }
  return self;
}

enum { WATCHED = 3 };
static void attach_one(int which, struct ta_probe *probe, struct watched *w) {
  int error = which == 0   ? happened_attach(NULL, probe, watch_happened, w)
              : which == 1 ? jobEnd_attach(NULL, probe, watch_end, w)
                           : nothing_attach(NULL, probe, watch_nothing, w);

  cr_assert_eq(error, TA_OK);
}

static void *storm(void *self) {
  for (int i = 0; i < rounds(); i++) {
    struct watched *w = calloc(WATCHED, sizeof *w);
    struct ta_probe *probe = calloc(WATCHED, sizeof *probe);
    unsigned long before = atomic_load(&passed);
    ta_lock();
    for (int k = 0; k < WATCHED; k++) {
      w[k].plain = 7;
      attach_one(k, &probe[k], &w[k]);
    }
    ta_unlock();
    while (i % 20 == 0 && atomic_load(&passed) == before) sched_yield();
    for (int k = 0; k < WATCHED; k++) {
      detach(&probe[k]);
      atomic_store(&w[k].detached, true);
      w[k].plain = 0;
      cr_assert_eq(atomic_load(&w[k].inside), 0);
    }
    free(w);
    free(probe);
  }
  return self;
}

Test(points, no_call_is_in_progress_behind_an_unlock) {
  pthread_t passer[PASSERS], changer[CHANGERS];

  atomic_store(&over, 0);
  for (int i = 0; i < PASSERS; i++) pthread_create(&passer[i], NULL, pass_all, NULL);
  for (int i = 0; i < CHANGERS; i++) pthread_create(&changer[i], NULL, storm, NULL);
  for (int i = 0; i < CHANGERS; i++) pthread_join(changer[i], NULL);
  atomic_store(&over, 1);
  for (int i = 0; i < PASSERS; i++) pthread_join(passer[i], NULL);
  cr_assert_gt(atomic_load(&passed), 0);
}

/* K9: ta_probe_next() needs no lock. Within a probe the whole list may be followed. */

static struct ta_probe anchor;
static atomic_ulong walked;

static void walk(void *self, int n) {
  (void)n;
  for (const struct ta_probe *p = self; p != NULL; p = ta_probe_next(p))
    cr_assert(p->self == self || *(int *)p->self == 7);
  atomic_fetch_add(&walked, 1);
}

static void *ask(void *probe) {
  while (!atomic_load(&over)) {
    cr_assert_neq(ta_probe_next(probe), probe);
    ta_probe_next(&anchor);
  }
  return NULL;
}

static void *change_one(void *self) {
  struct ta_probe *asked = self;

  for (int i = 0; i < rounds(); i++) {
    struct ta_probe *probe = calloc(1, sizeof *probe);
    int mine = 7;
    ta_lock();
    happened_attach(NULL, asked, look, &mine);
    happened_attach(NULL, probe, look, &mine);
    ta_unlock();
    unsigned long before = atomic_load(&walked);
    while (i % 50 == 0 && atomic_load(&walked) == before) sched_yield();
    detach(asked);
    detach(probe);
    free(probe);
  }
  return NULL;
}

Test(points, next_is_safe_at_any_time) {
  static struct ta_probe asked[CHANGERS];
  pthread_t passer[PASSERS], changer[CHANGERS], asker[CHANGERS];

  atomic_store(&over, 0);
  ta_lock();
  happened_attach(NULL, &anchor, walk, &anchor);
  ta_unlock();
  for (int i = 0; i < PASSERS; i++) pthread_create(&passer[i], NULL, pass_on, NULL);
  for (int i = 0; i < CHANGERS; i++) {
    pthread_create(&asker[i], NULL, ask, &asked[i]);
    pthread_create(&changer[i], NULL, change_one, &asked[i]);
  }
  for (int i = 0; i < CHANGERS; i++) pthread_join(changer[i], NULL);
  atomic_store(&over, 1);
  for (int i = 0; i < CHANGERS; i++) pthread_join(asker[i], NULL);
  for (int i = 0; i < PASSERS; i++) pthread_join(passer[i], NULL);
  detach(&anchor);
  cr_assert_gt(atomic_load(&walked), 0);
}

/* A handler that ends its thread: the thread then no longer counts as inside the tracepoint. */

static void end_thread(void *self, int n) {
  (void)n;
  pthread_exit(self);
}

Test(points, a_probe_may_end_its_thread) {
  struct ta_probe probe = { 0 };
  pthread_t thread;
  void *from;

  ta_lock();
  happened_attach(NULL, &probe, end_thread, a);
  ta_unlock();
  for (int i = 0; i < 2; i++) {
    pthread_create(&thread, NULL, passes, NULL);
    pthread_join(thread, &from);
    cr_assert_eq(from, a);
  }
  detach(&probe);
}

/* More threads than there are places for. Each is held inside the probe until all are inside. */

enum { CROWD = 1100 };

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int inside;
  bool may_go;
} crowd = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void gather(void *self, int n) {
  (void)self, (void)n;
  pthread_mutex_lock(&crowd.lock);
  if (++crowd.inside == CROWD) pthread_cond_broadcast(&crowd.changed);
  while (!crowd.may_go) pthread_cond_wait(&crowd.changed, &crowd.lock);
  crowd.inside--;
  pthread_mutex_unlock(&crowd.lock);
}

static void *let_crowd_go(void *self) {
  pthread_mutex_lock(&crowd.lock);
  crowd.may_go = true;
  pthread_cond_broadcast(&crowd.changed);
  pthread_mutex_unlock(&crowd.lock);
  return self;
}

Test(points, threads_without_a_place_are_waited_for_too) {
  static pthread_t thread[CROWD];
  struct ta_probe probe = { 0 };
  pthread_attr_t attr;
  pthread_t letting;

  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 128 << 10);
  ta_lock();
  happened_attach(NULL, &probe, gather, NULL);
  ta_unlock();
  for (int i = 0; i < CROWD; i++) cr_assert_eq(pthread_create(&thread[i], &attr, passes, NULL), 0);
  pthread_mutex_lock(&crowd.lock);
  while (crowd.inside < CROWD) pthread_cond_wait(&crowd.changed, &crowd.lock);
  pthread_mutex_unlock(&crowd.lock);
  ta_lock();
  ta_probe_detach(&probe);
  pthread_create(&letting, NULL, let_crowd_go, NULL);
  ta_unlock();
  cr_assert_eq(crowd.inside, 0); /* no thread is left in the probe, so none can change this */
  for (int i = 0; i < CROWD; i++) pthread_join(thread[i], NULL);
  pthread_join(letting, NULL);
  pthread_attr_destroy(&attr);
}

/* A signal handler passes tracepoints while its thread is anywhere in its own. */

static sem_t handled;

static void on_signal(int number) {
  (void)number;
  happened(1);
  sem_post(&handled);
}

static void *interrupted(void *self) {
  while (!atomic_load(&over)) happened(1);
  return self;
}

Test(points, a_handler_may_pass_in_the_middle_of_another_passage) {
  struct sigaction action = { .sa_handler = on_signal };
  pthread_t thread, changer;

  sem_init(&handled, 0, 0);
  sigaction(SIGUSR1, &action, NULL);
  atomic_store(&over, 0);
  pthread_create(&thread, NULL, interrupted, NULL);
  pthread_create(&changer, NULL, change, NULL);
  for (int sent = 1; sent <= 200; sent++) {
    pthread_kill(thread, SIGUSR1);
    while (sem_wait(&handled) != 0) continue; /* EINTR */
  }
  pthread_join(changer, NULL);
  atomic_store(&over, 1);
  pthread_join(thread, NULL);
}

Test(points, a_forked_child_has_the_probes_and_may_detach_them) {
  struct ta_probe probe = { 0 };
  int status;

  attach(NULL, &probe, a);
  pid_t child = fork();
  if (child == 0) {
    happened(1);
    bool heard_it = strcmp(heard, "a1 ") == 0;
    ta_lock();
    ta_probe_detach(&probe);
    ta_unlock();
    _exit(heard_it && probe.at == NULL ? 0 : 1);
  }
  cr_assert_eq(waitpid(child, &status, 0), child);
  cr_assert_eq(status, 0);
  detach(&probe);
}

/* Calls as data. */

static char text[200];

static void keep_text(void *self, const struct ta_call *call) {
  size_t n = ta_call_text(call, text, *(size_t *)self);
  cr_assert_eq(n, strlen(text));
}

static void keep(struct ta_probe_group *group, struct ta_tracepoint *at, struct ta_probe *probe,
                 size_t *room) {
  ta_lock();
  cr_assert_eq(ta_call_attach(group, at, probe, keep_text, room), TA_OK);
  ta_unlock();
}

Test(points, a_call_is_told_as_text) {
  struct ta_probe probe[4] = { 0 };
  struct ta_probe_group group = { 0 };
  size_t room = sizeof text;

  keep(&group, happened_point(), &probe[0], &room);
  keep(&group, jobBegin_point(), &probe[1], &room);
  keep(&group, jobEnd_point(), &probe[2], &room);
  keep(&group, nothing_point(), &probe[3], &room);
  happened(-3);
  cr_assert_str_eq(text, "tested.happened(n=-3)");
  jobBegin("a\"b\\c\n\xc3\xa4", 18446744073709551615ul, true);
  cr_assert_str_eq(
      text,
      "tested.jobBegin(name=\"a\\\"b\\\\c\\x0a\xc3\xa4\", size=18446744073709551615, last=true)");
  jobBegin(NULL, 0, false);
  cr_assert_str_eq(text, "tested.jobBegin(name=NULL, size=0, last=false)");
  jobEnd(0.125, NULL);
  cr_assert_str_eq(text, "tested.jobEnd(took=0.125, when=(nil))");
  nothing();
  cr_assert_str_eq(text, "tested.nothing()");
  for (room = 1; room < 30; room++) {
    happened(123456);
    cr_assert(strlen(text) < room && strncmp(text, "tested.happened(n=123456)", strlen(text)) == 0);
  }
  ta_probe_group_done(&group);
}

/* As locales write numbers: with a comma, or with a separator of two bytes. */
Test(points, a_number_has_a_point) {
  static const char *const numbers[][2] = { { "0,125", "0.125" },
                                            { "-1\xd9\xab"
                                              "5e-09",
                                              "-1.5e-09" },
                                            { "-inf", "-inf" },
                                            { "nan", "nan" },
                                            { "7", "7" },
                                            { "0.5", "0.5" } };

  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    snprintf(text, sizeof text, "%s", numbers[i][0]);
    ta__point(text);
    cr_assert_str_eq(text, numbers[i][1]);
  }
}

Test(points, errno_is_the_hosts) {
  struct ta_probe probe = { 0 };

  errno = 1234;
  attach(NULL, &probe, a);
  happened(1);
  detach(&probe);
  cr_assert_eq(errno, 1234);
}
