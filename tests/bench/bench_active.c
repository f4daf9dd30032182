/* SPDX-License-Identifier: Apache-2.0 */
/* bench_active SERVER CERTS AGENTS SECONDS GENERATION_BYTES EVERY_MS: so many agents in one process; each writes a
 * generation of about that size, waits until all of it is acked, and rests until its next one is due.
 *
 * Prints "ACKS<TAB>P50<TAB>P99<TAB>MAX", times in ms: from before ta_forward_write() to the end of ta_forward_sync(). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "fault/seeded_trace.h"
#include "traceagent.h"

enum { AGENTS_MAX = 1000, WAIT_MS = 60000, SPOOL_BYTES = 4 << 20 };

static const char *server, *certs;
static unsigned generation_bytes, every_ms;
static double seconds;
static pthread_barrier_t all_there;

struct active {
  pthread_t thread;
  unsigned seed;
  double *ms;
  size_t n, cap;
};

static _Noreturn void fail(const char *what, int error) {
  fprintf(stderr, "bench_active: %s: %s\n", what, ta_strerror(error));
  exit(1);
}

static uint64_t mono_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void rest_until(uint64_t due_ns) {
  struct timespec at = { .tv_sec = (time_t)(due_ns / 1000000000),
                         .tv_nsec = (long)(due_ns % 1000000000) };

  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

static void write_and_wait(ta_forward *f, const void *bytes, size_t n) {
  int error = ta_forward_write(f, bytes, n);

  if (error != TA_OK) fail("write", error);
  error = ta_forward_sync(f, WAIT_MS);
  if (error != TA_OK) fail("waiting for acks", error);
}

static void *run(void *self) {
  struct active *a = self;
  struct tt_seeded trace = { .seed = a->seed, .generation_bytes = generation_bytes };
  struct ta_forward_config config = { .size = sizeof config,
                                      .server = server,
                                      .certs = certs,
                                      .service = "active",
                                      .spool_bytes = SPOOL_BYTES };
  unsigned char *bytes = malloc(tt_seeded_room(&trace));
  uint64_t gen = 0, batches;
  ta_forward *f;

  prctl(PR_SET_TIMERSLACK, 1);
  int error = ta_forward_open(&config, &f);
  if (error != TA_OK || bytes == NULL) fail("open", error);
  write_and_wait(f, bytes, tt_seeded_header(bytes));
  pthread_barrier_wait(&all_there);
  uint64_t every_ns = (uint64_t)every_ms * 1000000, began = mono_ns(),
           due = began + every_ns * a->seed / AGENTS_MAX; /* not all at once */
  for (; a->n < a->cap; due += every_ns) {
    size_t n = tt_seeded_generation(&trace, ++gen, bytes, &batches);
    rest_until(due);
    uint64_t from = mono_ns();
    if ((double)(from - began) > seconds * 1e9) break;
    write_and_wait(f, bytes, n);
    a->ms[a->n++] = (double)(mono_ns() - from) / 1e6;
  }
  error = ta_forward_close(f, WAIT_MS);
  if (error != TA_OK) fail("close", error);
  free(bytes);
  return NULL;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
  static struct active agents[AGENTS_MAX];
  unsigned count = argc == 7 ? (unsigned)atoi(argv[3]) : 0;
  size_t n = 0;

  if (count == 0 || count > AGENTS_MAX) return 2;
  server = argv[1];
  certs = argv[2];
  seconds = atof(argv[4]);
  generation_bytes = (unsigned)atoi(argv[5]);
  every_ms = (unsigned)atoi(argv[6]);
  size_t cap = (size_t)(seconds * 1000) / every_ms + 2;
  double *all = malloc(count * cap * sizeof *all);
  if (all == NULL || pthread_barrier_init(&all_there, NULL, count) != 0) return 1;
  for (unsigned i = 0; i < count; i++) {
    agents[i] = (struct active){ .seed = i + 1, .ms = malloc(cap * sizeof(double)), .cap = cap };
    if (agents[i].ms == NULL || pthread_create(&agents[i].thread, NULL, run, &agents[i]) != 0)
      return 1;
  }
  for (unsigned i = 0; i < count; i++) {
    pthread_join(agents[i].thread, NULL);
    for (size_t k = 0; k < agents[i].n; k++) all[n++] = agents[i].ms[k];
    free(agents[i].ms);
  }
  if (n == 0) return 1;
  qsort(all, n, sizeof *all, ascending);
  printf("%zu\t%.3f\t%.3f\t%.3f\n", n, all[(n - 1) / 2], all[(n - 1) * 99 / 100], all[n - 1]);
  free(all);
  return 0;
}
