/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <nng/nng.h>

#include <nng/supplemental/util/platform.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "nng/clock.h"

enum { WAIT_MS = 20 };

static uint64_t mono_ms(void) {
  return tc_mono_ns() / 1000000;
}

Test(clock, nng_goes_by_the_monotonic_one) {
  uint64_t before = mono_ms();
  nng_time now = nng_clock();

  cr_assert(before <= now && now <= mono_ms());
}

/* If the deadline were of another clock, the wait would be over at once. */
Test(clock, nng_waits_by_the_same_one) {
  nng_mtx *lock;
  nng_cv *never;

  tc__clock_init();
  cr_assert_eq(nng_mtx_alloc(&lock), 0);
  cr_assert_eq(nng_cv_alloc(&never, lock), 0);
  nng_mtx_lock(lock);
  nng_time until = nng_clock() + WAIT_MS;
  cr_assert_eq(nng_cv_until(never, until), NNG_ETIMEDOUT);
  cr_assert_geq(nng_clock(), until);
  nng_mtx_unlock(lock);
  nng_cv_free(never);
  nng_mtx_free(lock);
}

Test(clock, others_get_what_they_ask_for) {
  struct timespec before, now, after;
  pthread_condattr_t attr;
  clockid_t id;

  syscall(SYS_clock_gettime, CLOCK_REALTIME, &before);
  cr_assert_eq(clock_gettime(CLOCK_REALTIME, &now), 0);
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &after);
  cr_assert(before.tv_sec <= now.tv_sec && now.tv_sec <= after.tv_sec);
  cr_assert_eq(pthread_condattr_init(&attr), 0);
  cr_assert_eq(pthread_condattr_getclock(&attr, &id), 0);
  cr_assert_eq(id, CLOCK_REALTIME);
  pthread_condattr_destroy(&attr);
}
