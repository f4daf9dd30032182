/* SPDX-License-Identifier: Apache-2.0 */
/* bench_malloc: prints ns of the thread's CPU for a malloc() and its free(), whatever library is preloaded; the median
 * of rounds.
 *
 * Sleeps between rounds, so that an agent that records each of them can send its data. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BURST = 10000, ROUNDS = 40, BLOCKS = 16 };

static double cpu_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void burst(void) {
  static void *volatile block[BLOCKS];

  for (unsigned i = 0; i < BURST; i++) {
    free(block[i % BLOCKS]);
    block[i % BLOCKS] = malloc(16 + 16 * (i % 8));
  }
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

int main(void) {
  double ns[ROUNDS];

  for (int round = 0; round < ROUNDS; round++) {
    burst(); /* warm up */
    nanosleep(&(struct timespec){ .tv_nsec = 12000000 }, NULL);
    double began = cpu_ns();
    burst();
    ns[round] = (cpu_ns() - began) / BURST;
  }
  qsort(ns, ROUNDS, sizeof *ns, by_size);
  printf("%.2f\n", ns[ROUNDS / 2]);
  return 0;
}
