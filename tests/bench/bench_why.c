/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the critical path over 10,000 spans: goroutines in a row of requests, each of which waits for a worker that
 * waits for a system call of another.
 *
 *   bench_why   prints, tab-separated: spans, pieces of the path, then in milliseconds of CPU, the median of ROUNDS:
 *               timeline and path together */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "online/explain/critical_path.h"

enum { ROUNDS = 51, REQUESTS = 1000, REQUEST_NS = 1000 };

static void fail(const char *what) {
  fprintf(stderr, "bench_why: %s\n", what);
  exit(1);
}

static double cpu_ms(void) {
  struct timespec ts;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void add(struct to_timeline *t, unsigned state, uint64_t life, to_ns from, to_ns until,
                uint64_t by) {
  struct to_span span = { .kind = TO_SPAN_GOROUTINE,
                          .state = (uint8_t)state,
                          .life = life,
                          .id = (int64_t)life,
                          .from = from,
                          .until = until,
                          .until_known = true,
                          .by_life = by };

  if (to_timeline_add(t, &span, 1, 2) != TB_OK) fail("no memory");
}

/* Adds ten spans: 1 asks 2 and waits; 2 waits for 3, which is in a call. */
static void add_request(struct to_timeline *t, to_ns at) {
  add(t, TO_GO_SYSCALL, 3, at, at + 700, 3);
  add(t, TO_GO_RUNNING, 3, at + 700, at + 720, 3);
  add(t, TO_GO_WAITING, 3, at + 720, at + REQUEST_NS, 1);
  add(t, TO_GO_RUNNING, 2, at, at + 50, 2);
  add(t, TO_GO_WAITING, 2, at + 50, at + 710, 3);
  add(t, TO_GO_RUNNABLE, 2, at + 710, at + 750, 3);
  add(t, TO_GO_RUNNING, 2, at + 750, at + REQUEST_NS, 2);
  add(t, TO_GO_RUNNING, 1, at, at + 40, 1);
  add(t, TO_GO_WAITING, 1, at + 40, at + 800, 2);
  add(t, TO_GO_RUNNING, 1, at + 800, at + REQUEST_NS, 1);
}

static double one_round(struct tb_mem *mem, size_t *out_spans, size_t *out_pieces) {
  double start = cpu_ms();
  struct to_timeline t;
  struct to_path path;

  to_timeline_init(&t, mem, 0, (to_ns)REQUESTS * REQUEST_NS);
  for (int i = 0; i < REQUESTS; i++) add_request(&t, (to_ns)i * REQUEST_NS);
  if (to_critical_path(&t, 1, 0, (to_ns)REQUESTS * REQUEST_NS, mem, &path) != TB_OK)
    fail("no path");
  *out_spans = t.spans;
  *out_pieces = path.n;
  to_path_fini(&path);
  to_timeline_fini(&t);
  return cpu_ms() - start;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(void) {
  size_t spans = 0, pieces = 0;
  double took[ROUNDS];
  struct tb_mem mem;

  tb_mem_init(&mem, tb_mem_libc, NULL, SIZE_MAX);
  for (int i = 0; i < ROUNDS; i++) took[i] = one_round(&mem, &spans, &pieces);
  qsort(took, ROUNDS, sizeof took[0], by_size);
  printf("%zu\t%zu\t%.3f\n", spans, pieces, took[ROUNDS / 2]);
  return 0;
}
