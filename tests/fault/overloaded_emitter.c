/* SPDX-License-Identifier: Apache-2.0 */
/* Row 17: a program that emits events as fast as it can.
 *
 *     overloaded_emitter ADDRESS CERTS SECONDS [RECORD_MS]
 *
 * Four threads emit events of two numbers without a pause, the agent has 16 MiB. One in 64 events is timed, the reading
 * of the clock included. At the end it prints one line of JSON: the events, the quantiles of their times, the growth of
 * memory. With RECORD_MS the agent is a flight recorder, which is asked for a snap at the end. Then the session ends,
 * and another line reports what became of the data. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/patience.h"
#include "traceagent.h"

enum { THREADS = 4, SPOOL_BYTES = 16 << 20, EACH = 64, NOTED_MAX = 1 << 20 };

struct writer {
  pthread_t thread;
  uint64_t events;
  size_t noted;
  uint32_t ns[NOTED_MAX];
};

static struct writer writers[THREADS];
static atomic_bool over;

static uint64_t now_ns(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void measure(struct writer *w) {
  uint64_t from = now_ns();

  ta_heap_alloc(w->events);
  uint64_t took = now_ns() - from;
  if (w->noted < NOTED_MAX) w->ns[w->noted++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
}

static void *write_all(void *self) {
  struct writer *w = self;

  while (!atomic_load_explicit(&over, memory_order_relaxed)) {
    for (int i = 1; i < EACH; i++) ta_heap_alloc(w->events + (unsigned)i);
    measure(w);
    w->events += EACH;
  }
  return NULL;
}

/* Leaves out the resident pages of library files. */
static uint64_t resident_bytes(void) {
  unsigned long all, resident = 0, of_files = 0;
  FILE *file = fopen("/proc/self/statm", "r");

  if (file == NULL || fscanf(file, "%lu %lu %lu", &all, &resident, &of_files) != 3) exit(3);
  fclose(file);
  return (uint64_t)(resident - of_files) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

/* Returns the quantile over the measured events of all threads. */
static uint32_t quantile(double q) {
  static uint32_t all[THREADS * NOTED_MAX];
  size_t n = 0;

  for (int i = 0; i < THREADS; i++) {
    memcpy(all + n, writers[i].ns, writers[i].noted * sizeof *all);
    n += writers[i].noted;
  }
  qsort(all, n, sizeof *all, by_size);
  return n == 0 ? 0 : all[(size_t)((double)(n - 1) * q)];
}

_Noreturn static void fail(const char *what, int error) {
  fprintf(stderr, "%s: %s\n", what, ta_strerror(error));
  exit(3);
}

static void print_pace(uint64_t seconds, uint64_t memory) {
  uint64_t events = 0;

  for (int i = 0; i < THREADS; i++) events += writers[i].events;
  printf("{\"events\":%" PRIu64 ",\"seconds\":%" PRIu64
         ",\"p50\":%u,\"p9999\":%u,\"memory\":%" PRIu64 ",\"budget\":%u}\n",
         events, seconds, quantile(0.5), quantile(0.9999), memory, SPOOL_BYTES);
  fflush(stdout);
}

/* Ends the current generation with ta_emit_sync(), and waits until all is acked or lost; returns an error on
 * timeout. */
static int end_session(void) {
  struct ta_emit_status s = { .size = sizeof s };
  struct ta_forward_status stream = { .size = sizeof stream };
  int error = ta_emit_sync(TT_PATIENCE_MS);

  if (error == TA_OK) error = ta_emit_status(&s);
  if (error == TA_OK) error = ta_emit_forward_status(&stream);
  if (error != TA_OK) fail("the end", error);
  printf("{\"generations\":%" PRIu64 ",\"lost_generations\":%" PRIu64 ",\"dropped\":%" PRIu64
         ",\"produced_bytes\":%" PRIu64 ",\"acked_bytes\":%" PRIu64 ",\"lost_bytes\":%" PRIu64
         "}\n",
         s.generations, s.lost_generations, s.dropped, stream.produced_bytes, stream.acked_bytes,
         stream.lost_bytes);
  return ta_emit_stop(TT_PATIENCE_MS) == TA_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  if (argc != 4 && argc != 5) {
    fprintf(stderr, "usage: overloaded_emitter ADDRESS CERTS SECONDS [RECORD_MS]\n");
    return 2;
  }
  uint64_t seconds = strtoull(argv[3], NULL, 10);
  struct ta_forward_config where = { .size = sizeof where,
                                     .server = argv[1],
                                     .certs = argv[2],
                                     .service = "fault",
                                     .instance = "emitter",
                                     .spool_bytes = SPOOL_BYTES,
                                     .record_ms = argc == 5 ? strtoull(argv[4], NULL, 10) : 0 };
  memset(writers, 1, sizeof writers); /* resident before anything is measured */
  for (int i = 0; i < THREADS; i++) writers[i].events = writers[i].noted = 0;
  uint64_t before = resident_bytes();
  int error = ta_emit_start(&where, NULL);
  if (error != TA_OK) fail("start", error);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&writers[i].thread, NULL, write_all, &writers[i]) != 0) return 3;
  struct timespec span = { .tv_sec = (time_t)seconds };
  nanosleep(&span, NULL);
  atomic_store(&over, true);
  for (int i = 0; i < THREADS; i++) pthread_join(writers[i].thread, NULL);
  uint64_t after = resident_bytes();
  if (where.record_ms != 0 && (error = ta_emit_snap(0)) != TA_OK) fail("snap", error);
  print_pace(seconds, after > before ? after - before : 0);
  return end_session();
}
