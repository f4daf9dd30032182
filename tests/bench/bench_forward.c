/* SPDX-License-Identifier: Apache-2.0 */
/* bench_forward SERVER CERTS TRACE [MS]: the agent's CPU for a trace that goes to a running collector.
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

#include "base/mem.h"
#include "traceagent.h"
#include "wire/split.h"

enum {
  SPOOL_BYTES = 16 << 20,
  CREDIT_BYTES = 4 << 20, /* the collector's */
  WAIT_MS = 60000,
  BUFFERS = 4,
  BATCH_BYTES_MAX = (64 << 10) + 64,
};

struct trace {
  unsigned char *bytes;
  size_t n;
};

_Noreturn static void fail(const char *what, const char *why) {
  fprintf(stderr, "bench_forward: %s: %s\n", what, why);
  exit(1);
}

/* Into memory of our own, so that no write pays for a page of the file. */
static struct trace read_trace(const char *path) {
  struct trace t = { 0 };
  FILE *file = fopen(path, "rb");

  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path, "cannot be read");
  t.n = (size_t)ftell(file);
  rewind(file);
  t.bytes = malloc(t.n);
  if (t.bytes == NULL || fread(t.bytes, 1, t.n, file) != t.n) fail(path, "cannot be read");
  fclose(file);
  return t;
}

static uint64_t cpu_ns(clockid_t clock) {
  struct timespec now;

  if (clock_gettime(clock, &now) != 0) fail("clock", "the agent's thread is gone");
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The CPU clock of the one thread called "traceagent": its number made a clock as Linux has it
 * (clock_getres(2)), for its pthread_t is the agent's own. */
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
  if (found == 0) fail("traceagent", "no thread of that name");
  return (clockid_t)(~(unsigned)found << 3 | 6);
}

/* Waits, without asking the agent to wake anybody, until no more than the bytes are in the spool. */
static void wait_for_room(ta_forward *f, uint64_t bytes) {
  struct ta_forward_status status = { .size = sizeof status };

  for (int ms = 0; ms < WAIT_MS; ms++) {
    if (ta_forward_status(f, &status) != TA_OK) fail("status", "off");
    if (status.lost_bytes > 0) fail("nothing is measured", "the spool dropped some");
    if (status.spool_bytes <= bytes) return;
    poll(NULL, 0, 1);
  }
  fail("waiting for acks", status.last_error);
}

/* A few batches, in buffers that are used again and again, as the runtime's are. */
struct buffers {
  unsigned char bytes[BUFFERS][BATCH_BYTES_MAX];
  size_t len[BUFFERS];
};

static size_t fill(struct buffers *b, size_t max, struct tw_split *split, const struct trace *t,
                   size_t *at) {
  struct tw_item item;
  size_t n = 0, used;

  for (; n < max && tw_split_feed(split, t->bytes + *at, t->n - *at, &used, &item) == TB_OK; n++) {
    if (item.kind == TW_ITEM_RAW) fail("the trace", split->fault.text);
    *at += used;
    memcpy(b->bytes[n], item.bytes, item.len);
    b->len[n] = item.len;
  }
  return n;
}

static uint64_t write_buffers(ta_forward *f, const struct buffers *b, size_t n) {
  uint64_t began = cpu_ns(CLOCK_THREAD_CPUTIME_ID);

  for (size_t i = 0; i < n; i++) {
    int error = ta_forward_write(f, b->bytes[i], b->len[i]);
    if (error != TA_OK) fail("write", ta_strerror(error));
  }
  return cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

/* Answers the CPU spent in writing. */
static uint64_t write_trace(ta_forward *f, const struct trace *t, int gap_ms) {
  static struct buffers buffers;
  struct tw_split split;
  struct tb_mem mem;
  uint64_t spent = 0;
  size_t at = 0, n;

  tb_mem_init(&mem, tb_mem_libc, NULL, 1 << 20);
  tw_split_init(&split, &mem);
  while ((n = fill(&buffers, gap_ms > 0 ? 1 : BUFFERS, &split, t, &at)) > 0) {
    spent += write_buffers(f, &buffers, n);
    wait_for_room(f, CREDIT_BYTES); /* here: the runtime hands on what it has just filled */
    if (gap_ms > 0) poll(NULL, 0, gap_ms);
  }
  tw_split_fini(&split);
  return spent;
}

/* Polled: there is nothing to wait for before the first record. */
static void wait_for_stream(ta_forward *f) {
  struct ta_forward_status status = { .size = sizeof status };

  for (int i = 0; i < WAIT_MS && status.state != TA_STATE_STREAMING; i++) {
    poll(NULL, 0, 1);
    if (ta_forward_status(f, &status) != TA_OK) fail("status", "off");
  }
  if (status.state != TA_STATE_STREAMING) fail("connecting", status.last_error);
}

static void measure(ta_forward *f, const struct trace *t, int gap_ms) {
  wait_for_stream(f); /* the handshake is paid once a program, not by the MB */
  clockid_t agent = agent_clock();
  uint64_t began = cpu_ns(agent), writer = write_trace(f, t, gap_ms);
  wait_for_room(f, 0);
  uint64_t sender = cpu_ns(agent) - began;
  printf("%.4f\t%.4f\n", (double)writer / (double)t->n, (double)sender / (double)t->n);
}

int main(int argc, char **argv) {
  struct ta_forward_config config = { .size = sizeof config,
                                      .service = "bench",
                                      .spool_bytes = SPOOL_BYTES };
  ta_forward *f;

  if (argc < 4) fail("usage", "bench_forward SERVER CERTS TRACE [MS]");
  struct trace t = read_trace(argv[3]);
  config.server = argv[1];
  config.certs = argv[2];
  int error = ta_forward_open(&config, &f);
  if (error != TA_OK) fail("open", ta_strerror(error));
  measure(f, &t, argc > 4 ? atoi(argv[4]) : 0);
  error = ta_forward_close(f, WAIT_MS);
  if (error != TA_OK) fail("close", ta_strerror(error));
  free(t.bytes);
  return 0;
}
