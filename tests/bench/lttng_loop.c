/* SPDX-License-Identifier: Apache-2.0 */
/* lttng_loop THREADS EVENTS: measures the cost of an LTTng-UST event of two numbers for the thread that passes it, on
 * or off as the session is set: ns of its CPU, the mean of the threads' medians of rounds, and of their fastest. Built
 * by bench_lttng.sh if LTTng is installed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_point.h"

enum { ROUNDS = 25, THREADS_MAX = 16 };

struct result {
  pthread_t thread;
  double median, fastest;
};

static unsigned long events;

static double cpu_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

/* As in bench_points.c: uses the number, and may not assume anything about memory. */
static void pass(unsigned long n) {
  for (unsigned long i = 0; i < n; i++) {
    lttng_ust_tracepoint(tracecollect_bench, two_numbers, i, (unsigned)i);
    __asm__ volatile("" ::"r"(i) : "memory");
  }
}

static void *work(void *self) {
  struct result *r = self;
  double ns[ROUNDS];

  pass(events / 10); /* warm up */
  for (int round = 0; round < ROUNDS; round++) {
    double began = cpu_ns();
    pass(events);
    ns[round] = (cpu_ns() - began) / (double)events;
    nanosleep(&(struct timespec){ .tv_nsec = 12000000 },
              NULL); /* so that the reader can catch up */
  }
  qsort(ns, ROUNDS, sizeof *ns, by_size);
  r->median = ns[ROUNDS / 2];
  r->fastest = ns[0];
  return NULL;
}

int main(int argc, char **argv) {
  struct result r[THREADS_MAX];
  double median = 0, fastest = 0;
  int threads = argc == 3 ? atoi(argv[1]) : 0;

  if (threads < 1 || threads > THREADS_MAX) return 2;
  events = strtoul(argv[2], NULL, 10);
  for (int i = 0; i < threads; i++) pthread_create(&r[i].thread, NULL, work, &r[i]);
  for (int i = 0; i < threads; i++) {
    pthread_join(r[i].thread, NULL);
    median += r[i].median / threads;
    fastest += r[i].fastest / threads;
  }
  printf("%.3f\t%.3f\n", median, fastest);
  return 0;
}
