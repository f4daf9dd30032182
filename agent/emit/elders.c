/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/emit/elders.h"

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/emit/emit.h"

static pid_t elders[TA_THREADS_MAX];
static size_t count;

void ta_elders_note(void) {
  DIR *threads = opendir("/proc/self/task");
  const struct dirent *entry;

  elders[0] = gettid();
  count = 1;
  if (threads == NULL) return;
  while (count < TA_THREADS_MAX && (entry = readdir(threads)) != NULL)
    if (entry->d_name[0] != '.') elders[count++] = (pid_t)strtol(entry->d_name, NULL, 10);
  closedir(threads);
}

bool ta_elders_has(pid_t thread) {
  for (size_t i = 0; i < count; i++)
    if (elders[i] == thread) return true;
  return false;
}
