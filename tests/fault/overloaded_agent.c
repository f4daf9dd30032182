/* SPDX-License-Identifier: Apache-2.0 */
/* Row 17: a program that writes faster than its data is sent.
 *
 *     overloaded_agent ADDRESS CERTS SECONDS MB_S
 *
 * Eight threads with a stream each write generations of a seed, SECONDS times MB_S megabytes together, 16 KiB a call,
 * and no faster than that. When all is written it prints one line of JSON: how long a call took, by the wall and by the
 * thread's CPU, and by how much the memory in use grew. Then the streams are closed, and another line reports what
 * became of the data. */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "seeded_trace.h"
#include "support/patience.h"
#include "traceagent.h"

enum {
  THREADS = 8,
  SPOOL_BYTES = 2 << 20,
  CALL_BYTES = 16 << 10,
  GENERATION_BYTES = 500000,
  CALLS_MAX = 1 << 20,
};

struct calls {
  uint32_t *ns;
  size_t n;
};

struct writer {
  ta_forward *f;
  unsigned seed;
  uint64_t bytes;
  double bytes_ns;
  struct calls wall, cpu;
};

static uint64_t now_ns(clockid_t clock) {
  struct timespec ts;

  clock_gettime(clock, &ts);
  return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void note(struct calls *c, uint64_t ns) {
  if (c->n < CALLS_MAX) c->ns[c->n++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

static void write_timed(struct writer *w, const unsigned char *bytes, size_t n) {
  for (size_t here; n > 0; bytes += here, n -= here) {
    here = n < CALL_BYTES ? n : CALL_BYTES;
    uint64_t wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    ta_forward_write(w->f, bytes, here);
    note(&w->cpu, now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
    note(&w->wall, now_ns(CLOCK_MONOTONIC) - wall);
  }
}

static void *write_all(void *self) {
  struct writer *w = self;
  struct tt_seeded trace = { .seed = w->seed, .generation_bytes = GENERATION_BYTES };
  unsigned char *bytes = malloc(tt_seeded_room(&trace)), header[16];
  uint64_t start = now_ns(CLOCK_MONOTONIC), written = 0, batches;

  if (bytes == NULL) exit(3);
  ta_forward_write(w->f, header, tt_seeded_header(header));
  for (uint64_t gen = 1; written < w->bytes; gen++) {
    size_t n = tt_seeded_generation(&trace, gen, bytes, &batches);
    write_timed(w, bytes, n);
    written += n;
    uint64_t due = start + (uint64_t)((double)written / w->bytes_ns);
    struct timespec ts = { .tv_sec = (time_t)(due / 1000000000),
                           .tv_nsec = (long)(due % 1000000000) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
  }
  free(bytes);
  return NULL;
}

static uint64_t resident_bytes(void) {
  unsigned long all, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");

  if (file == NULL || fscanf(file, "%lu %lu", &all, &resident) != 2) exit(3);
  fclose(file);
  return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int by_size(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

  return (x > y) - (x < y);
}

/* Returns the quantile over the calls of all threads. */
static uint32_t quantile(const struct writer *w, bool cpu, double q) {
  static uint32_t all[THREADS * CALLS_MAX / 8];
  size_t n = 0;

  for (int i = 0; i < THREADS; i++) {
    const struct calls *c = cpu ? &w[i].cpu : &w[i].wall;
    size_t take = c->n < CALLS_MAX / 8 ? c->n : CALLS_MAX / 8;
    memcpy(all + n, c->ns, take * sizeof *all);
    n += take;
  }
  qsort(all, n, sizeof *all, by_size);
  return n == 0 ? 0 : all[(size_t)((double)(n - 1) * q)];
}

static void make_room(struct calls *c) {
  c->ns = malloc(CALLS_MAX * sizeof *c->ns);
  if (c->ns == NULL) exit(3);
  memset(c->ns, 1, CALLS_MAX * sizeof *c->ns); /* resident before anything is measured */
}

static void open_streams(char **argv, struct writer *w) {
  char instance[16];

  for (unsigned i = 0; i < THREADS; i++) {
    struct ta_forward_config config = { .size = sizeof config,
                                        .server = argv[1],
                                        .certs = argv[2],
                                        .service = "fault",
                                        .instance = instance,
                                        .spool_bytes = SPOOL_BYTES };
    snprintf(instance, sizeof instance, "i%u", i + 1);
    w[i].seed = i + 1;
    w[i].bytes_ns = strtod(argv[4], NULL) / 1000 / THREADS;
    w[i].bytes = (uint64_t)(strtod(argv[3], NULL) * 1e9 * w[i].bytes_ns);
    int error = ta_forward_open(&config, &w[i].f);
    if (error == TA_OK) continue;
    fprintf(stderr, "%s\n", ta_strerror(error));
    exit(3);
  }
}

static int close_streams(struct writer *w) {
  uint64_t produced = 0, acked = 0, lost = 0;
  int rc = 0;

  for (int i = 0; i < THREADS; i++) ta_forward_finish(w[i].f);
  for (int i = 0; i < THREADS; i++) {
    struct ta_forward_status s = { .size = sizeof s };
    if (ta_forward_sync(w[i].f, TT_PATIENCE_MS) != TA_OK) rc = 1;
    ta_forward_status(w[i].f, &s);
    produced += s.produced_bytes;
    acked += s.acked_bytes;
    lost += s.lost_bytes;
    ta_forward_close(w[i].f, 0);
  }
  printf("{\"produced_bytes\":%" PRIu64 ",\"acked_bytes\":%" PRIu64 ",\"lost_bytes\":%" PRIu64
         "}\n",
         produced, acked, lost);
  return rc;
}

int main(int argc, char **argv) {
  static struct writer w[THREADS];
  pthread_t thread[THREADS];

  if (argc != 5) {
    fprintf(stderr, "usage: overloaded_agent ADDRESS CERTS SECONDS MB_S\n");
    return 2;
  }
  for (int i = 0; i < THREADS; i++) {
    make_room(&w[i].wall);
    make_room(&w[i].cpu);
  }
  uint64_t before = resident_bytes();
  open_streams(argv, w);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&thread[i], NULL, write_all, &w[i]) != 0) return 3;
  for (int i = 0; i < THREADS; i++) pthread_join(thread[i], NULL);
  uint64_t after = resident_bytes();
  size_t calls = 0;
  for (int i = 0; i < THREADS; i++) calls += w[i].wall.n;
  printf("{\"calls\":%zu,\"wall_p50\":%u,\"wall_p9999\":%u,\"cpu_p50\":%u,\"cpu_p9999\":%u,"
         "\"memory\":%" PRIu64 ",\"spools\":%" PRIu64 "}\n",
         calls, quantile(w, false, 0.5), quantile(w, false, 0.9999), quantile(w, true, 0.5),
         quantile(w, true, 0.9999), after > before ? after - before : 0,
         (uint64_t)THREADS * SPOOL_BYTES);
  fflush(stdout);
  int rc = close_streams(w);
  for (int i = 0; i < THREADS; i++) {
    free(w[i].wall.ns);
    free(w[i].cpu.ns);
  }
  return rc;
}
