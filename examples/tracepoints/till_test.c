/* SPDX-License-Identifier: Apache-2.0 */
/* A test that holds two threads at their events, and decides who goes on. */
#include <stdio.h>
#include <stdlib.h>

#include "till.h"
#include "till_test.trace.h"

//trace:import "till"

static struct till till = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *ada(void *unused) {
  ta_expect_name("ada");
  till_sell(&till, "Ada", 5);
  return unused;
}

static void *bob(void *unused) {
  ta_expect_name("bob");
  till_sell(&till, "Bob", 7);
  till_refund(&till, "Bob", 20);
  return unused;
}

static void check(ta_expect *x, int error) {
  if (error == TA_OK) return;
  fprintf(stderr, "%s\n%s", ta_strerror(error), ta_expect_fault(x));
  exit(1);
}

static void check_cents(unsigned cents) {
  if (till.cents == cents) return;
  fprintf(stderr, "%u cents are in the till, not %u\n", till.cents, cents);
  exit(1);
}

int main(void) {
  static struct ta_probe begin, end, refused;
  pthread_t a, b;
  ta_expect *x;

  if (ta_expect_open(0, &x) != TA_OK) return 1;
  ta_lock();
  ta_expect_attach(x, till_saleBegin_point(), &begin);
  ta_expect_attach(x, till_saleEnd_point(), &end);
  ta_expect_attach(x, till_refused_point(), &refused);
  ta_unlock();
  pthread_create(&a, NULL, ada, NULL);
  pthread_create(&b, NULL, bob, NULL);

  /* All of Bob's visit comes first, although Ada may have come earlier: she is held at her first event. While both are held,
   * the till does not change. */
  check(x, ta_expect_pause(x, "bob", "till.saleBegin(customer=\"Bob\", cents=7)"));
  check_cents(0);
  check(x, ta_expect_pause(x, "bob", "till.saleEnd(customer=\"Bob\", in_till=7)"));
  check_cents(7);
  check(x, ta_expect_event(x, "bob", "till.refused(customer=\"Bob\", wanted=20, in_till=7)"));
  check(x, ta_expect_event(x, "ada", "till.saleBegin(customer=\"Ada\", cents=5)"));
  check(x, ta_expect_event(x, "ada", "till.saleEnd(customer=\"Ada\", in_till=12)"));

  pthread_join(a, NULL);
  pthread_join(b, NULL);
  check(x, ta_expect_end(x));
  return ta_expect_close(x) != TA_OK;
}
