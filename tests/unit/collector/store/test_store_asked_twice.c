/* SPDX-License-Identifier: Apache-2.0 */
/* The disk is so slow that a stream is asked for a second checkpoint while the first is still
 * being written: the first one answers both requests, and the stream's run is not cut for the
 * second. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "support/patience.h"
#include "support/store_fixture.h"

enum { LOG_FILE_BYTES = 1 << 20, CHECKPOINT_BYTES = 2 << 20, QUIET = 7, BUSY = 8, NEXT_ASK_S = 2 };

static atomic_bool disk_waits, sealer_waits;
static atomic_uint ahead_s; /* how far the clock is set ahead */

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __real_fdatasync(int fd);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_fdatasync(int fd);

int __wrap_clock_gettime(clockid_t id, struct timespec *out) {
  int rc = __real_clock_gettime(id, out);

  if (id == CLOCK_MONOTONIC) out->tv_sec += ahead_s;
  return rc;
}

static bool is_sealer(void) {
  char name[16] = "";

  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
         strcmp(name, "tc-sealer") == 0;
}

int __wrap_fdatasync(int fd) {
  const struct timespec pause = { .tv_nsec = 1000000 };

  while (disk_waits && is_sealer()) {
    sealer_waits = true;
    nanosleep(&pause, NULL);
  }
  return __real_fdatasync(fd);
}

static void configure(struct tc_config *config) {
  config->segment_generations_max = 1000;
  config->segment_bytes_max = UINT64_C(1) << 30;
  config->log_file_bytes = LOG_FILE_BYTES;
  config->log_checkpoint_bytes = CHECKPOINT_BYTES;
}

static void open_store(void) {
  tt_fixture_open(configure);
}

static void remove_store(void) {
  disk_waits = false;
  tt_fixture_remove();
}

TestSuite(store_asked_twice, .init = open_store, .fini = remove_store);

/* Writes a generation that never ends. */
static void write_busy(struct tt_writer *busy) {
  unsigned char bytes[60000];

  tt_fill(bytes, sizeof bytes, 1, 0);
  tt_batch(busy, 1, bytes, sizeof bytes);
  cr_assert(tt_wait_acked(&tt, busy->stream, busy->seq));
}

Test(store_asked_twice, a_run_is_not_cut_for_it) {
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);

  tt_header(&busy);
  tt_header(&w);
  for (uint64_t gen = 1; gen <= 6; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  disk_waits = true;
  for (unsigned i = 0; !sealer_waits; i++) {
    write_busy(&busy);
    cr_assert_lt(i, 10000, "no checkpoint is written: %s", tt.notes);
  }
  tt_batch(&w, 7, "begun", 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  ahead_s = NEXT_ASK_S;
  for (unsigned i = 0; i < 3; i++) write_busy(&busy); /* each checks which streams to ask */
  disk_waits = false;
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 0, "the run was cut: %s", tt.notes);
  tt_batch(&w, 7, "ended", 5);
  tt_end(&w, 7);
  tt_close(&w);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1);
  cr_assert_eq(tt_stream_row(&tt, QUIET).generations, 7);
  tt_expect_proven(&tt);
}
