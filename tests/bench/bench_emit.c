/* SPDX-License-Identifier: Apache-2.0 */
/* bench_emit SERVER CERTS THREADS [STACKS]: measures the cost of an event for the thread that emits it, streaming to a
 * running collector. STACKS: "pointers" or "tables", the method by which events capture a stack, if they may have one,
 * of DEPTH functions.
 *
 * Prints, tab-separated: the floor, ta_workers() (two numbers), ta_region_begin()/end() (three each), one
 * ta_fiber_switch(), ta_wait_begin() and end() (the first of which has a stack in Go, too), the same for one of a few locks,
 * in ns of the thread's CPU an event; bytes an event of the regions; how long one event of 10,000 takes at most, ns; events dropped.
 *
 * The floor is the least work of any writer: a call, a flag, a reading of the counter, and two varints into memory of
 * the thread's own. Rounds of the floor and of the agent alternate, and the median of each counts. A round is a burst
 * of events; between rounds the thread sleeps until the collector has caught up, so that the agent's memory is never
 * full: a dropped event would cost less. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <x86intrin.h>

#include "traceagent.h"

enum {
  BURST = 20000,
  ROUNDS = 60,
  THREADS_MAX = 16,
  BATCH = 64 << 10,
  KINDS = 6,
  SINGLE = 200000,
  DEPTH = 10
};

_Noreturn static void fail(const char *what, int error) {
  fprintf(stderr, "bench_emit: %s: %s\n", what, ta_strerror(error));
  exit(1);
}

/* The floor. */

struct floor {
  unsigned char bytes[2][BATCH + 64];
  unsigned char *pos, *end;
  uint64_t time;
  unsigned at;
};
static __thread struct floor own;
static volatile int flag = 1;

static __attribute__((noinline)) void swap_batches(void) {
  own.at ^= 1;
  own.pos = own.bytes[own.at];
  own.end = own.pos + BATCH;
}

static unsigned char *number(unsigned char *pos, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *pos++ = (unsigned char)(value | 0x80);
  *pos++ = (unsigned char)value;
  return pos;
}

static __attribute__((noinline)) void floor_event(uint8_t type, uint64_t a, uint64_t b) {
  if (!flag) return;
  if (own.pos >= own.end) swap_batches();
  uint64_t now = __rdtsc() >> 4;
  unsigned char *pos = own.pos;
  *pos++ = type;
  pos = number(pos, now - own.time);
  own.time = now;
  own.pos = number(number(pos, a), b);
}

/* The agent. */

static ta_name name;

static void floor_burst(void) {
  for (unsigned i = 0; i < BURST; i++) floor_event(9, i & 0x3fff, 0);
}
static void workers_burst(void) {
  for (unsigned i = 0; i < BURST; i++) ta_workers(i & 0x3fff);
}
static void region_burst(void) {
  for (unsigned i = 0; i < BURST / 2; i++) {
    ta_region_begin(name, 0);
    ta_region_end();
  }
}
static __thread ta_fiber fiber;
static void switch_burst(void) {
  for (unsigned i = 0; i < BURST / 2; i++) {
    ta_fiber_switch(fiber);
    ta_fiber_switch(0);
  }
}
static void wait_burst(void) {
  for (unsigned i = 0; i < BURST / 2; i++) {
    ta_wait_begin(TA_WAIT_MUTEX);
    ta_wait_end();
  }
}
static void lock_burst(void) {
  static const char lock[16];

  for (unsigned i = 0; i < BURST / 2; i++) {
    ta_wait_begin_for(TA_WAIT_MUTEX, &lock[i % sizeof lock]);
    ta_wait_end();
  }
}
static void (*const bursts[KINDS])(void) = { floor_burst,  workers_burst, region_burst,
                                             switch_burst, wait_burst,    lock_burst };

/* Recurses until each stack is as long as requested. */
__attribute__((noinline)) static void run_under(unsigned depth, void (*burst)(void)) {
  if (depth == 0)
    burst();
  else
    run_under(depth - 1, burst);
  __asm__ volatile("" ::: "memory");
}

static double cpu_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void rest(void) {
  nanosleep(&(struct timespec){ .tv_nsec = 12000000 }, NULL);
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

struct result {
  pthread_t thread;
  double ns[KINDS], slow_ns;
};

static double cycles_ns(void) {
  struct timespec from, to;

  clock_gettime(CLOCK_MONOTONIC, &from);
  uint64_t begin = __rdtsc();
  rest();
  clock_gettime(CLOCK_MONOTONIC, &to);
  uint64_t end = __rdtsc();
  return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
         (double)(end - begin);
}

/* Returns the 99.99th percentile of single events, interruptions of the thread included. */
static double slow_ns(void) {
  double *took = malloc(SINGLE * sizeof *took), ns = cycles_ns();

  for (unsigned i = 0; i < SINGLE; i++) {
    if (i % BURST == 0) rest();
    uint64_t begin = __rdtsc();
    ta_workers(i & 0x3fff);
    took[i] = (double)(__rdtsc() - begin) * ns;
  }
  qsort(took, SINGLE, sizeof *took, by_size);
  ns = took[SINGLE - SINGLE / 10000];
  free(took);
  return ns;
}

static void *work(void *arg) {
  static __thread double ns[KINDS][ROUNDS];
  struct result *r = arg;

  swap_batches();
  own.time = __rdtsc() >> 4;
  fiber = ta_fiber_create(name, 1);
  for (int round = 0; round < ROUNDS; round++) {
    for (int kind = 0; kind < KINDS; kind++) {
      run_under(DEPTH, bursts[kind]); /* warm up, as in a program that does so often */
      rest();
      double began = cpu_ns();
      run_under(DEPTH, bursts[kind]);
      ns[kind][round] = (cpu_ns() - began) / BURST;
    }
  }
  for (int kind = 0; kind < KINDS; kind++) {
    qsort(ns[kind], ROUNDS, sizeof(double), by_size);
    r->ns[kind] = ns[kind][ROUNDS / 2];
  }
  r->slow_ns = slow_ns();
  return NULL;
}

static struct ta_emit_status status_now(void) {
  struct ta_emit_status status = { .size = sizeof status };
  int error = ta_emit_status(&status);

  if (error != TA_OK) fail("status", error);
  return status;
}

static uint64_t produced_bytes(void) {
  struct ta_forward_status status = { .size = sizeof status };
  int error = ta_emit_forward_status(&status);

  if (error != TA_OK) fail("status", error);
  return status.produced_bytes;
}

/* Returns the bytes per event of a region's begin or end, its share of the generation's other
 * batches included. */
static double bytes_an_event(void) {
  enum { BURSTS = 50 };
  ta_emit_sync(10000);
  uint64_t before = produced_bytes();
  for (int i = 0; i < BURSTS; i++) {
    region_burst();
    rest();
  }
  ta_emit_sync(10000);
  return (double)(produced_bytes() - before) / (BURSTS * (double)BURST);
}

int main(int argc, char **argv) {
  struct result r[THREADS_MAX] = { 0 };
  int threads = argc == 4 || argc == 5 ? atoi(argv[3]) : 0;
  struct ta_emit_config how = { .stack_depth = argc == 5 ? DEPTH : 0,
                                .stack_tables = argc == 5 && strcmp(argv[4], "tables") == 0 };

  if (threads < 1 || threads > THREADS_MAX) return 2;
  struct ta_forward_config where = {
    .server = argv[1], .certs = argv[2], .service = "bench", .spool_bytes = 32 << 20
  };
  int error = ta_emit_start(&where, &how);
  if (error != TA_OK) fail("start", error);
  name = ta_name_of("bench");
  for (int i = 0; i < threads; i++) pthread_create(&r[i].thread, NULL, work, &r[i]);
  for (int i = 0; i < threads; i++) pthread_join(r[i].thread, NULL);
  double bytes = bytes_an_event();
  for (int kind = 0; kind < KINDS; kind++) {
    double sum = 0;
    for (int i = 0; i < threads; i++) sum += r[i].ns[kind] / threads;
    printf("%.2f\t", sum);
  }
  printf("%.2f\t%.0f\t%llu\n", bytes, r[0].slow_ns, (unsigned long long)status_now().dropped);
  if ((error = ta_emit_stop(20000)) != TA_OK) fail("stop", error);
  return 0;
}
