/* SPDX-License-Identifier: Apache-2.0 */
/* A run shared by several processes: each handles the jobs of its number. */
#ifndef SIM_JOBS_H
#define SIM_JOBS_H

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* The other processes, one below the other; each ends with the worst it or those below it came to. Answers who is below
 * this one, 0 in the last; *job is each one's own number, 0 here. */
static inline pid_t sim_split(uint64_t *job, uint64_t jobs) {
  for (; *job + 1 < jobs; ++*job) {
    pid_t pid = fork();
    if (pid < 0) abort();
    if (pid > 0) return pid;
  }
  return 0;
}

#endif
