/* SPDX-License-Identifier: Apache-2.0 */
/* bench_forward SERVER CERTS TRACE [MS]: measures the agent's CPU for a trace that is sent to a running collector.
 *
 * Prints "WRITER<TAB>SENDER" in ms per MB of trace: the calling thread's CPU inside ta_forward_write(),
 * handed one batch a call as Go's runtime does, and all CPU of the agent's own thread, by the kernel's
 * account of each thread, system calls included (on loopback the receiver's half of TCP, too). The writer
 * waits, uncounted, while more is unacked than the collector gives credit for: a sender that keeps up has no
 * more in its spool, and what a full spool drops would cost nothing. With MS it writes one batch and then
 * waits so long, like a program that takes its time to fill it. */
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "session.h"

enum { BUFFERS = 4, BATCH_BYTES_MAX = (64 << 10) + 64 };

static uint64_t cpu_ns(clockid_t clock) {
  struct timespec now;

  if (clock_gettime(clock, &now) != 0) session_fail("clock", "the agent's thread is gone");
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Returns the CPU clock of the only thread called "traceagent". The clock is made of the thread's
 * number as Linux does (clock_getres(2)), since only the agent has its pthread_t. */
static clockid_t agent_clock(void) {
  char path[300], name[32];
  long found = 0;
  DIR *tasks = opendir("/proc/self/task");

  for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue;
    if (fgets(name, sizeof name, file) != NULL && strcmp(name, "traceagent\n") == 0)
      found = strtol(task->d_name, NULL, 10);
    fclose(file);
  }
  if (tasks != NULL) closedir(tasks);
  if (found == 0) session_fail("traceagent", "no thread of that name");
  return (clockid_t)(~(unsigned)found << 3 | 6);
}

/* A few batches, in buffers that are reused, as the runtime's are. */
struct buffers {
  unsigned char bytes[BUFFERS][BATCH_BYTES_MAX];
  size_t len[BUFFERS];
};

static size_t fill(struct buffers *b, size_t max, struct session *s) {
  struct tw_item item;
  size_t n = 0;

  for (; n < max && session_next(s, &item); n++) {
    memcpy(b->bytes[n], item.bytes, item.len);
    b->len[n] = item.len;
  }
  return n;
}

static uint64_t write_buffers(ta_forward *f, const struct buffers *b, size_t n) {
  uint64_t began = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

  for (size_t i = 0; i < n; i++) {
    int error = ta_forward_write(f, b->bytes[i], b->len[i]);
    if (error != TA_OK) session_fail("write", ta_strerror(error));
  }
  return cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

/* Returns the CPU time spent in writing. */
static uint64_t write_trace(struct session *s, int gap_ms) {
  static struct buffers buffers;
  uint64_t spent = 0;
  size_t n;

  while ((n = fill(&buffers, gap_ms > 0 ? 1 : BUFFERS, s)) > 0) {
    spent += write_buffers(s->forward, &buffers, n);
    /* Waits at the point where the runtime hands on a filled buffer. */
    session_wait_for_room(s, SESSION_CREDIT_BYTES);
    if (gap_ms > 0) poll(NULL, 0, gap_ms);
  }
  return spent;
}

int main(int argc, char **argv) {
  struct session s;

  if (argc < 4) session_fail("usage", "bench_forward SERVER CERTS TRACE [MS]");
  session_open(&s, argv[1], argv[2], argv[3]);
  clockid_t agent = agent_clock();
  uint64_t began = cpu_ns(agent), writer = write_trace(&s, argc > 4 ? atoi(argv[4]) : 0);
  session_wait_for_room(&s, 0);
  uint64_t sender = cpu_ns(agent) - began;
  printf("%.4f\t%.4f\n", (double)writer / (double)s.n, (double)sender / (double)s.n);
  session_close(&s);
  return 0;
}
