/* SPDX-License-Identifier: Apache-2.0 */
/* The monotonic clock, for durations and waits, and the wall clock, whose time is only stored and shown. */
#ifndef TC_BASE_CLOCK_H
#define TC_BASE_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t tc_clock_ns(clockid_t clock) {
  struct timespec ts;

  clock_gettime(clock, &ts);
  return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t tc_mono_ns(void) {
  return tc_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t tc_wall_ns(void) {
  return tc_clock_ns(CLOCK_REALTIME);
}

/* Prepares a condition variable for deadlines from tc_from_now(). */
static inline void tc_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t clock;

  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &clock);
  pthread_condattr_destroy(&clock);
}

static inline struct timespec tc_after(struct timespec at, unsigned ms) {
  at.tv_sec += ms / 1000;
  at.tv_nsec += (long)(ms % 1000) * 1000000;
  if (at.tv_nsec >= 1000000000) {
    at.tv_sec++;
    at.tv_nsec -= 1000000000;
  }
  return at;
}

static inline struct timespec tc_from_now(unsigned ms) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return tc_after(now, ms);
}

static inline bool tc_is_past(struct timespec at) {
  struct timespec now = tc_from_now(0);

  return now.tv_sec > at.tv_sec || (now.tv_sec == at.tv_sec && now.tv_nsec >= at.tv_nsec);
}

#endif
