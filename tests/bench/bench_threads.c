/* SPDX-License-Identifier: Apache-2.0 */
/* bench_threads THREADS SECONDS [SERVER CERTS MIB]: runs a program of many threads that each sleep ten times a second,
 * which is twenty calls a second; without SERVER they are not traced.
 *
 * Prints, tab-separated: ms of CPU of the program a second; generations, generations lost, events dropped; bytes of the
 * trace a second; most KiB of resident memory.
 *
 * Measures from the time when every thread runs until the first one stops. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "traceagent.h"

enum { PERIOD_NS = 100000000, STACK_BYTES = 64 << 10, WAIT_MS = 60000 };

static atomic_uint running;
static atomic_bool stopping;

_Noreturn static void fail(const char *what, const char *why) {
  fprintf(stderr, "bench_threads: %s: %s\n", what, why);
  exit(1);
}

static struct timespec at_ns(uint64_t ns) {
  return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u) };
}

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;

  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *work(void *first_ns) {
  uint64_t next_ns = (uint64_t)(uintptr_t)first_ns;

  atomic_fetch_add(&running, 1);
  while (!atomic_load_explicit(&stopping, memory_order_relaxed)) {
    struct timespec until = at_ns(next_ns);
    ta_wait_begin(TA_WAIT_SLEEP);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    ta_wait_end();
    next_ns += PERIOD_NS;
  }
  return NULL;
}

static void sleep_ns(uint64_t ns) {
  struct timespec time = at_ns(ns);

  nanosleep(&time, NULL);
}

static void start(pthread_t *thread, int threads) {
  pthread_attr_t attr;

  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  uint64_t now = clock_ns(CLOCK_MONOTONIC) + PERIOD_NS;
  for (int i = 0; i < threads; i++) {
    uint64_t first = now + (uint64_t)i * PERIOD_NS / (uint64_t)threads;
    if (pthread_create(&thread[i], &attr, work, (void *)(uintptr_t)first) != 0)
      fail("pthread_create", "no more threads");
  }
  while (atomic_load(&running) < (unsigned)threads) sleep_ns(1000000);
}

struct now {
  struct ta_emit_status session;
  struct ta_forward_status stream;
};

static struct now status_now(bool traced) {
  struct now now = { .session = { .size = sizeof now.session },
                     .stream = { .size = sizeof now.stream } };

  if (traced &&
      (ta_emit_status(&now.session) != TA_OK || ta_emit_forward_status(&now.stream) != TA_OK))
    fail("status", "off");
  return now;
}

int main(int argc, char **argv) {
  bool traced = argc == 6;
  int threads = argc == 3 || traced ? atoi(argv[1]) : 0, seconds = threads > 0 ? atoi(argv[2]) : 0;
  struct rusage usage;

  if (threads < 1 || seconds < 1) return 2;
  if (traced) {
    struct ta_forward_config where = { .server = argv[3],
                                       .certs = argv[4],
                                       .service = "bench",
                                       .spool_bytes = (uint64_t)atoi(argv[5]) << 20 };
    int error = ta_emit_start(&where, NULL);
    if (error != TA_OK) fail("start", ta_strerror(error));
  }
  pthread_t *thread = calloc((size_t)threads, sizeof *thread);
  if (thread == NULL) fail("calloc", "no memory");
  start(thread, threads);
  uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID), began_ns = clock_ns(CLOCK_MONOTONIC);
  struct now before = status_now(traced);
  sleep_ns((uint64_t)seconds * 1000000000u);
  cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
  double took_s = (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e9;
  struct now after = status_now(traced);
  atomic_store(&stopping, true);
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  getrusage(RUSAGE_SELF, &usage);
  struct now last = status_now(traced);
  printf("%.1f\t%llu\t%llu\t%llu\t%.0f\t%ld\n", (double)cpu_ns / 1e6 / took_s,
         (unsigned long long)last.session.generations,
         (unsigned long long)(last.session.lost_generations + last.stream.lost_generations),
         (unsigned long long)last.session.dropped,
         (double)(after.stream.produced_bytes - before.stream.produced_bytes) / took_s,
         usage.ru_maxrss);
  if (!traced) return 0;
  int error = ta_emit_stop(WAIT_MS);
  if (error != TA_OK) fail("stop", ta_strerror(error));
  return 0;
}
