/* SPDX-License-Identifier: Apache-2.0 */
/* Limits how long retention holds the sealer's thread. Only that thread's calls advance the
 * clock: 15 ms each sync, 1 us each reading. No slice is longer than 20 ms. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "support/patience.h"
#include "support/store_fixture.h"

enum { STREAMS = 12, SEGMENTS = 3, SYNC_NS = 15000000, LOOK_NS = 1000, SLICE_NS = 20000000 };

static atomic_ullong sealer_ns;
static atomic_uint syncs;
static atomic_bool slow;

int __real_clock_gettime(clockid_t id, struct timespec *out);
int __real_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_clock_gettime(clockid_t id, struct timespec *out);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

static bool is_sealer(void) {
  char name[16] = "";

  return slow && pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
         strcmp(name, "tc-sealer") == 0;
}

int __wrap_clock_gettime(clockid_t id, struct timespec *out) {
  if (id != CLOCK_MONOTONIC || !is_sealer()) return __real_clock_gettime(id, out);
  uint64_t now = atomic_fetch_add(&sealer_ns, LOOK_NS) + LOOK_NS;
  out->tv_sec = (time_t)(now / 1000000000);
  out->tv_nsec = (long)(now % 1000000000);
  return 0;
}

static void take_long(void) {
  if (!is_sealer()) return;
  sealer_ns += SYNC_NS;
  syncs++;
}

int __wrap_fsync(int fd) {
  take_long();
  return __real_fsync(fd);
}

int __wrap_fdatasync(int fd) {
  take_long();
  return __real_fdatasync(fd);
}

static void no_retention(struct tc_config *config) {
  config->retention_every = 0;
}

static void open_store(void) {
  tt_fixture_open(no_retention);
}

static void remove_store(void) {
  slow = false;
  tt_fixture_remove();
}

TestSuite(store_slices, .init = open_store, .fini = remove_store);

static struct tc_store_stats stats_now(void) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return stats;
}

static void write_segments(void) {
  for (unsigned i = 1; i <= STREAMS; i++) {
    struct tt_writer w = tt_attach_as(&tt, i, i);
    tt_header(&w);
    for (uint64_t gen = 1; gen <= SEGMENTS; gen++) tt_generation(&w, gen, 3, 1000);
  }
  tt_barrier(&tt);
}

/* Changes the thread's clock while retention has nothing to do. */
static void begin_slowly(void) {
  struct timespec now;

  __real_clock_gettime(CLOCK_MONOTONIC, &now);
  sealer_ns = ((uint64_t)now.tv_sec + 1) * 1000000000;
  slow = true;
  tt.config.retention_bytes = 1;
  tt.config.retention_every = UINT64_C(3600000000000);
}

Test(store_slices, retention_on_a_slow_disk_holds_no_work_longer_than_a_slice) {
  write_segments();
  begin_slowly();
  TT_WAIT_UNTIL(stats_now().expired_segments == STREAMS * SEGMENTS);
  struct tc_store_stats stats = stats_now();
  cr_assert_geq(syncs, STREAMS * SEGMENTS * 3, "%u: a mark, and its folder twice", syncs);
  cr_assert_leq(stats.retention_ns_max, SLICE_NS, "%lu", stats.retention_ns_max);
  cr_assert_geq(stats.retention_slices, syncs, "of one sync each");
  slow = false;
  tt_expect_proven(&tt);
}

/* Half-deleted segments are deleted completely before the store ends: the next start need not
 * rebuild the catalog. */
Test(store_slices, an_end_in_the_middle_of_a_round_leaves_nothing_half_gone) {
  write_segments();
  begin_slowly();
  TT_WAIT_UNTIL(syncs >= 4);
  tt_store_stop(&tt);
  slow = false;
  cr_assert_eq(tt_count_files(&tt, ".", "catalog.stale"), 0);
  tt.config.retention_bytes = 0;
  tt.notes[0] = '\0';
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  cr_assert_null(strstr(tt.notes, "catalog.sqlite is rebuilt"), "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* Each folder is synced when it is read, so a slice covers one folder. Segments that arrive meanwhile are in the new catalog. */
Test(store_slices, a_catalog_is_made_again_between_other_work) {
  struct tt_writer w;

  write_segments();
  w = tt_attach_as(&tt, STREAMS + 1, STREAMS + 1);
  tt_header(&w);
  begin_slowly();
  tt.config.retention_bytes = 0;
  uint64_t turns = stats_now().sealer_turns;
  tc_store_rebuild_catalog(tt.store);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  TT_WAIT_UNTIL(!tc_store_catalog_is_stale(tt.store));
  cr_assert_geq(stats_now().sealer_turns - turns, STREAMS);
  slow = false;
  tt_generation(&w, 2, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, STREAMS + 1).generations, 2);
  cr_assert_eq(stats_now().archive_segments, STREAMS * SEGMENTS + 2);
  cr_assert_eq(tt_count_files(&tt, ".", "catalog.stale"), 0);
  tt_expect_proven(&tt);
}
