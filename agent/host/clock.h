/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's two clocks. Timers use the monotonic one only; the wall clock is data. */
#ifndef TA_HOST_CLOCK_H
#define TA_HOST_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/host/counter.h"

static inline uint64_t ta_clock_ns(clockid_t clock) {
  struct timespec now;

  if (__builtin_expect(!atomic_load_explicit(&ta_counter_is_off, memory_order_relaxed), 1))
    clock_gettime(clock, &now);
  else
    syscall(SYS_clock_gettime, clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t ta_mono_ns(void) {
  return ta_clock_ns(CLOCK_MONOTONIC);
}
static inline uint64_t ta_wall_ns(void) {
  return ta_clock_ns(CLOCK_REALTIME);
}

static inline struct timespec ta_timespec(uint64_t ns) {
  return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u) };
}

/* The monotonic time at which a public call's deadline passes; UINT64_MAX (never) for ms < 0 and on overflow. */
static inline uint64_t ta_deadline_ns(int64_t ms) {
  uint64_t now = ta_mono_ns(), ns_per_ms = 1000000;

  if (ms < 0 || (uint64_t)ms > (UINT64_MAX - now) / ns_per_ms) return UINT64_MAX;
  return now + (uint64_t)ms * ns_per_ms;
}

/* Makes a condition variable whose deadlines are ta_timespec() of the monotonic clock. */
static inline void ta_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attr;

  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &attr);
  pthread_condattr_destroy(&attr);
}

#endif
