/* SPDX-License-Identifier: Apache-2.0 */
/* Measures fork() with a child that exits at once.
 *
 * bench_fork DESCRIPTORS COUNT MIB: sets the limit of open files, writes to so many MiB, and prints the median of so
 * many forks in us, from the call until the child's end is seen. Does not use the agent. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COUNT_MAX = 10000, SETTLE_MS = 700 };

static uint64_t now_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void must(int done, const char *what) {
  if (done) return;
  perror(what);
  exit(1);
}

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  static uint64_t took[COUNT_MAX];
  int count = argc == 4 ? atoi(argv[2]) : 0;
  struct rlimit limit;

  if (count < 1 || count > COUNT_MAX) return 2;
  /* A session that begins late in a program's life sees the limit of that time. */
  must(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = (rlim_t)atoi(argv[1]);
  if (limit.rlim_max < limit.rlim_cur) limit.rlim_max = limit.rlim_cur;
  must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
  size_t bytes = (size_t)atoi(argv[3]) << 20;
  char *memory = malloc(bytes + 1);
  must(memory != NULL, "malloc");
  memset(memory, 1, bytes + 1);
  nanosleep(&(struct timespec){ .tv_nsec = SETTLE_MS * 1000000 }, NULL);

  for (int i = 0; i < count; i++) {
    uint64_t began = now_ns();
    pid_t child = fork();
    if (child == 0) _exit(0);
    must(child > 0 && waitpid(child, NULL, 0) == child, "fork");
    took[i] = now_ns() - began;
  }
  qsort(took, (size_t)count, sizeof *took, by_size);
  printf("%.1f\n", (double)took[count / 2] / 1000);
  return 0;
}
