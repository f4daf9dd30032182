/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts of events: threads continue in the order of the script, and the report of an event
 * that differs is readable. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "expected.trace.h"
#include "support/patience.h"

//trace:event step(int n)

static atomic_int done[3]; /* number of steps that each thread has done */
static struct ta_probe probe;
static ta_expect *x;

static void *walk(void *self) {
  int number = (int)(uintptr_t)self;
  char name[8];

  snprintf(name, sizeof name, "t%d", number);
  ta_expect_name(name);
  for (int n = 1; n <= 3; n++) {
    step(10 * number + n);
    atomic_store(&done[number], n);
  }
  return NULL;
}

static void begin(int64_t deadline_ms) {
  cr_assert_eq(ta_expect_open(deadline_ms, &x), TA_OK);
  ta_lock();
  cr_assert_eq(ta_expect_attach(x, step_point(), &probe), TA_OK);
  ta_unlock();
}

static void start(pthread_t *thread, int number) {
  cr_assert_eq(pthread_create(thread, NULL, walk, (void *)(uintptr_t)number), 0);
}

static void expect_fault(const char *text) {
  cr_assert_str_eq(ta_expect_fault(x), text, "%s", ta_expect_fault(x));
}

Test(expect, threads_go_on_in_the_order_of_the_script) {
  pthread_t one, two;

  begin(TT_PATIENCE_MS);
  start(&one, 1);
  start(&two, 2);
  cr_assert_eq(ta_expect_pause(x, "t2", "expected.step(n=21)"), TA_OK);
  cr_assert_eq(atomic_load(&done[2]), 0); /* the thread is held before the event */
  cr_assert_eq(ta_expect_pause(x, "t2", "expected.step(n=22)"), TA_OK);
  cr_assert_eq(atomic_load(&done[2]), 1);
  cr_assert_eq(atomic_load(&done[1]), 0); /* a thread whose event is not yet due is held, too */
  cr_assert_eq(ta_expect_event(x, "t1", "expected.step(n=11)"), TA_OK);
  cr_assert_eq(ta_expect_event(x, "t2", "expected.step(n=23)"), TA_OK);
  pthread_join(two, NULL);
  cr_assert_eq(ta_expect_event(x, "t1", "expected.step(n=12)"), TA_OK);
  cr_assert_eq(ta_expect_event(x, "t1", "expected.step(n=13)"), TA_OK);
  pthread_join(one, NULL);
  cr_assert_eq(ta_expect_end(x), TA_OK);
  expect_fault("");
  cr_assert_eq(ta_expect_close(x), TA_OK);
  cr_assert_null(probe.at);
}

/* A thread that is cancelled at its point holds nothing that other threads need. */
Test(expect, a_thread_that_is_cancelled_goes_on_to_its_end) {
  pthread_t one;

  begin(TT_PATIENCE_MS);
  start(&one, 1);
  cr_assert_eq(ta_expect_pause(x, "t1", "expected.step(n=11)"), TA_OK);
  pthread_cancel(one);
  cr_assert_eq(ta_expect_event(x, "t1", "expected.step(n=12)"), TA_OK);
  cr_assert_eq(ta_expect_event(x, "t1", "expected.step(n=13)"), TA_OK);
  pthread_join(one, NULL);
  cr_assert_eq(ta_expect_end(x), TA_OK);
  cr_assert_eq(ta_expect_close(x), TA_OK);
}

Test(expect, another_event_is_told_beside_what_was_expected) {
  pthread_t one, two;

  begin(TT_PATIENCE_MS);
  start(&one, 1);
  cr_assert_eq(ta_expect_pause(x, "t1", "expected.step(n=11)"), TA_OK);
  start(&two, 2);
  cr_assert_eq(ta_expect_event(x, "t2", "expected.step(n=21)"), TA_OK);
  cr_assert_eq(ta_expect_pause(x, "t1", "expected.step(n=12)"), TA_OK);
  cr_assert_eq(ta_expect_event(x, "t2", "expected.step(n=23)"), TA_E_UNEXPECTED);
  pthread_join(one, NULL); /* no thread is held any more */
  pthread_join(two, NULL);
  const char *fault = ta_expect_fault(x);
  cr_assert(strstr(fault, "step 4 of the script:\n"
                          "  t1               expected.step(n=11)\n"
                          "  t2               expected.step(n=21)\n"
                          "  t1               expected.step(n=12)\n"
                          "- t2               expected.step(n=23)\n"
                          "+ t2               expected.step(n=22)\n") == fault,
            "%s", fault);
  cr_assert_eq(ta_expect_event(x, "t1", "expected.step(n=13)"), TA_E_MISUSE);
  cr_assert_eq(ta_expect_end(x), TA_E_MISUSE);
  cr_assert_eq(ta_expect_close(x), TA_OK);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *under_lock(void *self) {
  ta_expect_name("locked");
  pthread_mutex_lock(&lock);
  step(1);
  pthread_mutex_unlock(&lock);
  return self;
}

Test(expect, who_cannot_come_is_a_deadlock) {
  pthread_t thread;

  begin(1);
  pthread_mutex_lock(&lock);
  cr_assert_eq(pthread_create(&thread, NULL, under_lock, NULL), 0);
  cr_assert_eq(ta_expect_event(x, "locked", "expected.step(n=1)"), TA_E_TIMEOUT);
  pthread_mutex_unlock(&lock);
  pthread_join(thread, NULL);
  expect_fault("step 1 of the script:\n"
               "- locked           expected.step(n=1)\n"
               "  no event on \"locked\" within 1 ms: a deadlock, or the event does not exist\n");
  cr_assert_eq(ta_expect_close(x), TA_OK);
}

/* The event is still unexpected when the script ends. The thread decides when the event comes,
 * so the wait gets longer and longer. */
Test(expect, an_event_that_nobody_expected_is_told_at_the_end) {
  int error = TA_OK;

  for (unsigned us = 1; error == TA_OK; us *= 2) {
    pthread_t one;
    begin(TT_PATIENCE_MS);
    start(&one, 1);
    usleep(us);
    error = ta_expect_end(x);
    pthread_join(one, NULL);
    if (error != TA_OK)
      expect_fault("step 1 of the script:\n"
                   "waiting at an event that is not expected yet:\n"
                   "  t1               expected.step(n=11)\n");
    cr_assert_eq(ta_expect_close(x), TA_OK);
  }
  cr_assert_eq(error, TA_E_UNEXPECTED);
}
