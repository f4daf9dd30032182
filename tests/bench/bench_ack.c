/* SPDX-License-Identifier: Apache-2.0 */
/* bench_ack SERVER CERTS TRACE FOLDER MB/S SECONDS: measures how long a program that writes at a steady rate waits for
 * the ack of each batch: from before its call of ta_forward_write() to the end of ta_forward_sync(). (While no thread
 * waits, the agent checks for acks 25 times a second.)
 *
 * Between two batches the same bytes are written to a file in FOLDER and synced, to measure one fdatasync beside the
 * same work. Prints "ACKS<TAB>P50<TAB>P99<TAB>SYNC P50<TAB>SYNC P99", times in ms. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

enum { SAMPLES_MAX = 100000 };

struct samples {
  double ms[SAMPLES_MAX];
  size_t n;
};

static uint64_t mono_ns(void) {
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void add(struct samples *samples, uint64_t began_ns) {
  if (samples->n == SAMPLES_MAX) session_fail("samples", "too many");
  samples->ms[samples->n++] = (double)(mono_ns() - began_ns) / 1e6;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

/* The samples must be sorted. */
static double quantile(const struct samples *samples, unsigned percent) {
  return samples->ms[(samples->n - 1) * percent / 100];
}

static void write_and_wait(struct session *s, const struct tw_item *item) {
  int error = ta_forward_write(s->forward, item->bytes, item->len);

  if (error != TA_OK) session_fail("write", ta_strerror(error));
  error = ta_forward_sync(s->forward, SESSION_WAIT_MS);
  if (error != TA_OK) session_fail("waiting for acks", ta_strerror(error));
}

/* Returns the time at which the sync began. */
static uint64_t write_plain(int fd, const struct tw_item *item) {
  if (pwrite(fd, item->bytes, item->len, 0) != (ssize_t)item->len) session_fail("pwrite", "failed");
  uint64_t began = mono_ns();
  if (fdatasync(fd) != 0) session_fail("fdatasync", "failed");
  return began;
}

static int open_plain(const char *folder) {
  int fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);

  if (fd < 0) session_fail(folder, "no file can be made in it");
  return fd;
}

int main(int argc, char **argv) {
  static struct samples acks, syncs;
  struct session s;
  struct tw_item item;
  uint64_t sent = 0;

  if (argc != 7) session_fail("usage", "bench_ack SERVER CERTS TRACE FOLDER MB/S SECONDS");
  double bytes_per_ns = atof(argv[5]) / 1e3, seconds = atof(argv[6]);
  int plain = open_plain(argv[4]);
  prctl(PR_SET_TIMERSLACK, 1);
  session_open(&s, argv[1], argv[2], argv[3]);
  uint64_t began = mono_ns();
  while (session_next(&s, &item) && (double)(mono_ns() - began) < seconds * 1e9) {
    uint64_t due = began + (uint64_t)((double)sent / bytes_per_ns);
    struct timespec at = { .tv_sec = (time_t)(due / 1000000000),
                           .tv_nsec = (long)(due % 1000000000) };

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    uint64_t written = mono_ns();
    write_and_wait(&s, &item);
    add(&acks, written);
    add(&syncs, write_plain(plain, &item));
    sent += item.len;
  }
  if (acks.n == 0) session_fail(argv[3], "has no batches");
  qsort(acks.ms, acks.n, sizeof *acks.ms, ascending);
  qsort(syncs.ms, syncs.n, sizeof *syncs.ms, ascending);
  printf("%zu\t%.3f\t%.3f\t%.3f\t%.3f\n", acks.n, quantile(&acks, 50), quantile(&acks, 99),
         quantile(&syncs, 50), quantile(&syncs, 99));
  close(plain);
  session_close(&s);
  return 0;
}
