/* SPDX-License-Identifier: Apache-2.0 */
/* A run shared by several processes: each handles the jobs of its number. */
#ifndef SIM_JOBS_H
#define SIM_JOBS_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* Forks the other processes, each the child of the one before; each exits with the worst status of itself and its
 * descendants. Returns the child's pid, 0 in the last process; *job is the number of each process, 0 in the first. */
static inline pid_t sim_split(uint64_t *job, uint64_t jobs) {
  for (; *job + 1 < jobs; ++*job) {
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid > 0) return pid;
  }
  return 0;
}

#endif
