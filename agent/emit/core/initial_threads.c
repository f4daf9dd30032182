/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/core/initial_threads.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/emit/core/emit.h"

static pid_t initial[TA_THREADS_MAX];
static size_t count;

static int by_number(const void *a, const void *b) {
  pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

  return (x > y) - (x < y);
}

void ta_initial_threads_note(void) {
  DIR *threads = opendir("/proc/self/task");
  const struct dirent *entry;

  initial[0] = gettid();
  count = 1;
  if (threads == NULL) return;
  while (count < TA_THREADS_MAX && (entry = readdir(threads)) != NULL)
    if (entry->d_name[0] != '.') initial[count++] = (pid_t)strtol(entry->d_name, NULL, 10);
  closedir(threads);
  qsort(initial, count, sizeof *initial, by_number);
}

bool ta_initial_threads_has(pid_t thread) {
  return bsearch(&thread, initial, count, sizeof *initial, by_number) != NULL;
}
