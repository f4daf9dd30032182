/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's view of a shortage in the store: one line with the true reason when it begins,
 * one line when it is over, the same reason in the health and in the counters. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "collector/model/shortage.h"
#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { EVER = 1 << 30, MARK_BYTES = 1 << 20 };

static _Atomic uint64_t disk_free, inodes_free, disk_blocks, root_blocks;

int fstatvfs(int fd, struct statvfs *out) {
  (void)fd;
  *out = (struct statvfs){ .f_bsize = 4096,
                           .f_frsize = 4096,
                           .f_blocks = disk_blocks,
                           .f_bfree = disk_free / 4096 + root_blocks,
                           .f_bavail = disk_free / 4096,
                           .f_files = 1000,
                           .f_favail = inodes_free };
  return 0;
}

static void configure(struct tc_config *config) {
  config->disk_free_min = MARK_BYTES;
}

static void open_store(void) {
  disk_free = UINT64_C(1) << 40;
  inodes_free = 500;
  tt_fixture_open(configure);
}

static void remove_store(void) {
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(store_shortage, .init = open_store, .fini = remove_store);

static unsigned lines_with(const char *words) {
  unsigned n = 0;

  pthread_mutex_lock(&tt.lock);
  for (const char *at = tt.notes; (at = strstr(at, words)) != NULL; at++) n++;
  pthread_mutex_unlock(&tt.lock);
  return n;
}

static bool is_health(const char *health) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return strcmp(stats.health, health) == 0;
}

struct scene {
  int error;
  bool no_inodes;
  const char *reason, *health;
};

static void play(const struct scene *scene, const char *call, const char *part, const char *again) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  char health[160];

  snprintf(health, sizeof health, "%s: %s (%s)", scene->health, scene->reason, part);
  inodes_free = scene->no_inodes ? 0 : 500;
  tt_calls_watch(&tt);
  tt_calls_fail(call, scene->error, EVER);
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  TT_WAIT_UNTIL(tt_calls_failed() >= 3);
  cr_assert(is_health(health), "%s, not %s", tt.notes, health);
  cr_assert_eq(lines_with(scene->reason), 1, "%s", tt.notes);
  cr_assert_eq(lines_with(strerror(scene->error)), 1, "%s", tt.notes);
  cr_assert_eq(lines_with("again"), 0, "%s", tt.notes);
  tt_calls_fail("", 0, 0);
  inodes_free = 500;
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq), "%s", tt.notes);
  tt_barrier(&tt);
  TT_WAIT_UNTIL(is_health("ok"));
  cr_assert_eq(lines_with(again), 1, "%s", tt.notes);
  cr_assert_eq(lines_with("\n"), 2, "one when it began, one when it was over: %s", tt.notes);
  tt_expect_proven(&tt);
}

/* Under a sanitizer the log and the archive are half as large. */
#ifdef TC_SANITIZED
#define IN_TURN(mine)                                                                              \
  if (!(mine) && !tt_full()) cr_skip_test("the other one has it")
#else
#define IN_TURN(mine) (void)(mine)
#endif

/* Each case waits for more than a second, so these are separate tests, which can run at the same time. */
#define NAMED_ONCE(what, of_log, ...)                                                              \
  Test(store_shortage, the_log_names_##what##_once) {                                              \
    IN_TURN(of_log);                                                                               \
    play(&(struct scene){ __VA_ARGS__ }, "create wal/*", "log", "log: is written again after ");   \
  }                                                                                                \
  Test(store_shortage, the_archive_names_##what##_once) {                                          \
    IN_TURN(!(of_log));                                                                            \
    play(&(struct scene){ __VA_ARGS__ }, "create open/*", "archive",                               \
         "archive: is written again after ");                                                      \
  }

NAMED_ONCE(a_full_disk, true, ENOSPC, false, "no space left on the disk", "full")
NAMED_ONCE(a_disk_without_inodes, false, ENOSPC, true, "no inodes left on the disk", "full")
NAMED_ONCE(a_quota, true, EDQUOT, false, "a quota or a limit of file sizes is used up", "full")
NAMED_ONCE(a_limit_of_sizes, false, EFBIG, false, "a quota or a limit of file sizes is used up",
           "full")
NAMED_ONCE(its_lack_of_files, true, EMFILE, false, "no file descriptors left", "short")
NAMED_ONCE(the_hosts_lack_of_files, false, ENFILE, false, "no file descriptors left", "short")
NAMED_ONCE(a_lack_of_memory, true, ENOMEM, false, "no memory left", "short")
NAMED_ONCE(what_may_go_at_once, false, EAGAIN, false, "interrupted, or not possible at this moment",
           "short")

/* Heartbeats need no credit, and an archive that waits takes no records. */
Test(store_shortage, heartbeats_do_not_pile_up_while_the_archive_waits) {
  enum { HEARTBEATS = 1000000, HELD_MAX = 48 << 20 };
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

#ifdef TC_SANITIZED
  cr_skip_test("its allocator does not say what is in use");
#endif
  tt_calls_watch(&tt);
  tt_calls_fail("create open/*", ENOSPC, EVER);
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  TT_WAIT_UNTIL(tt_calls_failed() > 0);
  size_t before = mallinfo2().uordblks;
  for (unsigned i = 0; i < HEARTBEATS; i++) tt_heartbeat(&w, i, w.seq, i);
  cr_expect_leq(mallinfo2().uordblks, before + HELD_MAX, "%zu", mallinfo2().uordblks - before);
  tt_calls_fail("", 0, 0);
  tt_barrier(&tt);
  tt_expect_proven(&tt);
}

/* The free space is below the mark, and then between the mark and an eighth more. */
Test(store_shortage, a_disk_around_its_mark_is_one_wait) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  for (int round = 0; round < 3; round++) {
    disk_free = MARK_BYTES - 4096;
    TT_WAIT_UNTIL(is_health("full: less space free than disk.free_min (log)"));
    disk_free = MARK_BYTES + 4096;
    tt_barrier(&tt);
  }
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt); /* shows that the store still answers */
  cr_assert_eq(lines_with("\n"), 1, "%s", tt.notes);
  cr_assert_eq(lines_with("less than disk.free_min (1048576)"), 1, "%s", tt.notes);
  disk_free = 4 * MARK_BYTES;
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  TT_WAIT_UNTIL(is_health("ok"));
  cr_assert_eq(lines_with("log: is written again after "), 1, "%s", tt.notes);
  cr_assert_eq(lines_with("\n"), 2, "%s", tt.notes);
}

/* ---- the wait alone, with its clock turned by hand ---- */

static const uint64_t MS = 1000000, S = 1000000000;

Test(wait, it_is_over_after_a_write_and_a_second_without_a_failure) {
  struct tc_wait wait = { 0 };
  uint64_t took;

  cr_assert(tc_wait_failed(&wait, TC_SHORT_FILES, 10 * S));
  cr_assert(tc_wait_is_pausing(&wait, 10 * S + 99 * MS));
  cr_assert_not(tc_wait_is_pausing(&wait, 10 * S + 100 * MS));
  cr_assert_not(tc_wait_failed(&wait, TC_SHORT_FILES, 10 * S + 100 * MS));
  cr_assert(tc_wait_is_pausing(&wait, 10 * S + 299 * MS), "it asks less often");
  cr_assert_not(tc_wait_is_over(&wait, 20 * S, &took), "nothing was written");
  tc_wait_wrote(&wait);
  cr_assert_not(tc_wait_is_pausing(&wait, 10 * S + 101 * MS), "what waited is written at once");
  cr_assert_not(tc_wait_is_over(&wait, 11 * S, &took));
  cr_assert(tc_wait_is_over(&wait, 11 * S + 100 * MS, &took));
  cr_assert_eq(took, S + 100 * MS);
  cr_assert_not(tc_wait_is_over(&wait, 30 * S, &took), "once");
}

Test(wait, it_asks_at_least_once_a_second) {
  struct tc_wait wait = { 0 };

  for (uint64_t now = S; now < 100 * S; now = wait.retry_ns) {
    tc_wait_failed(&wait, TC_SHORT_SPACE, now);
    cr_assert_leq(wait.retry_ns - now, S);
  }
}

Test(wait, another_reason_is_logged_but_not_more_often_than_every_ten_seconds) {
  struct tc_wait wait = { 0 };

  cr_assert(tc_wait_failed(&wait, TC_SHORT_FILES, 10 * S));
  cr_assert_not(tc_wait_failed(&wait, TC_SHORT_MEMORY, 11 * S));
  cr_assert_eq(wait.why, TC_SHORT_MEMORY);
  cr_assert(tc_wait_failed(&wait, TC_SHORT_MEMORY, 20 * S));
  cr_assert_not(tc_wait_failed(&wait, TC_SHORT_FILES, 21 * S));
  cr_assert_not(tc_wait_failed(&wait, TC_SHORT_MEMORY, 40 * S));
}

/* The same call fails and works in turns, for an hour. */
Test(wait, one_that_comes_back_soon_is_over_later_and_later) {
  struct tc_wait wait = { 0 };
  uint64_t took;
  unsigned lines = 0;

  for (uint64_t now = S; now < 3600 * S; now += 100 * MS) {
    if (now % (3 * S) == 0)
      lines += tc_wait_failed(&wait, TC_SHORT_FILES, now);
    else
      tc_wait_wrote(&wait);
    lines += tc_wait_is_over(&wait, now, &took);
  }
  cr_assert_leq(lines, 5);
  for (uint64_t now = 3600 * S; now < 3700 * S; now += 100 * MS)
    lines += tc_wait_is_over(&wait, now, &took);
  cr_assert_leq(lines, 6);
  cr_assert_eq(wait.why, TC_SHORT_NONE);
}

/* ---- somebody else fills the disk ---- */

enum { SEGMENTS = 5 };

static struct tc_store_stats stats_now(void) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return stats;
}

static tb_rc take_row(void *self, const struct tc_segment_row *row) {
  *(struct tc_segment_row *)self = *row;
  return TB_OK;
}

/* A trigger keeps the first segment. The other segments, except for the last one, are older than the floor. */
static void keep_the_first(void) {
  struct tc_segment_row row = { 0 };
  struct tc_select select = { .first_gen = 1, .last_gen = 1 };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);

  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_segments(catalog, &select, take_row, &row, &diag), TB_OK);
  tc_catalog_close(catalog);
  close(fd);
  struct tc_keep keep = { .from_ns = row.first_wall_ns,
                          .until_ns = row.last_wall_ns,
                          .noted_ns = tc_wall_ns(),
                          .rule = "slow",
                          .of_stream = true };
  memcpy(keep.stream, row.stream, sizeof keep.stream);
  cr_assert_eq(tc_keeps_add(tc_store_keeps(tt.store), &keep), TB_OK);
  cr_assert_eq(tc_keeps_save(tc_store_keeps(tt.store), &diag), TB_OK, "%s", diag.text);
}

static void fill_the_disk(uint64_t floor_ns) {
  tt_store_stop(&tt);
  tt.config.disk_free_min = 0;
  tt.config.retention_free_bytes = 64 << 20;
  tt.config.retention_floor = floor_ns;
  tt.config.retention_every = 1;
  disk_free = 8 << 20;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
}

static void write_some_and_fill_the_disk(uint64_t floor_ns) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= SEGMENTS; gen++) {
    tt_generation(&w, gen, 3, 1000);
    tt_barrier(&tt); /* the segments have different times of arrival */
  }
  keep_the_first();
  fill_the_disk(floor_ns);
}

/* The kept segment and the newest one stay, and the log tells the operator. When there is room again, the log says so, too. */
Test(store_shortage, the_floor_stays_when_others_fill_the_disk) {
  disk_blocks = (UINT64_C(1) << 30) / 4096;
  write_some_and_fill_the_disk(1);
  TT_WAIT_UNTIL(stats_now().retention_at_floor);
  cr_assert_eq(stats_now().expired_segments, SEGMENTS - 2, "%s", tt.notes);
  cr_assert(is_health("ok"));
  cr_assert_not_null(strstr(stats_now().finding, "retention.floor"));
  cr_assert_eq(lines_with("8 MiB free on the disk, less than retention.free_bytes"), 1);
  disk_free = UINT64_C(1) << 30;
  TT_WAIT_UNTIL(!stats_now().retention_at_floor);
  cr_assert_str_eq(stats_now().finding, "ok");
  cr_assert_eq(stats_now().expired_segments, SEGMENTS - 2);
  tt_expect_proven(&tt);
}

Test(store_shortage, all_of_the_newest_hour_is_in_the_floor) {
  disk_blocks = (UINT64_C(1) << 30) / 4096;
  write_some_and_fill_the_disk(UINT64_C(3600000000000));
  TT_WAIT_UNTIL(stats_now().retention_at_floor);
  cr_assert_eq(stats_now().expired_segments, 0, "%s", tt.notes);
}

/* The archive itself fills the disk, so retention continues. */
Test(store_shortage, an_archive_of_most_of_the_disk_has_no_floor) {
  disk_blocks = 1;
  write_some_and_fill_the_disk(UINT64_C(3600000000000));
  TT_WAIT_UNTIL(stats_now().expired_segments >= SEGMENTS - 1);
  tt_expect_proven(&tt);
}

/* ---- everything of the collector's own counts: each part alone is more than half of the disk
 * ---- */

enum { HEAVY_BYTES = 32 << 20 };

static void put_by_a_reserve(void) {
  tt_store_stop(&tt);
  tt.config.disk_reserve_bytes = HEAVY_BYTES;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  TT_WAIT_UNTIL(tt_count_files(&tt, ".", "reserve") == 1);
}

static void leave_something_in_quarantine(void) {
  tt_shell(&tt,
           "truncate -s 32M quarantine/00000000000000000000000000000009-0000000000000001.part");
  tt_calls_watch(&tt);
  tt_calls_fail("unlink quarantine/*", EACCES, EVER);
}

static void begin_a_large_generation(void) {
  struct tt_writer w = tt_attach_as(&tt, 9, 9);
  static unsigned char batch[512 << 10];

  tt_header(&w);
  for (unsigned i = 0; i < HEAVY_BYTES / sizeof batch; i++) tt_batch(&w, 1, batch, sizeof batch);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_barrier(&tt);
}

static void expect_no_floor(uint64_t disk_bytes) {
  disk_blocks = disk_bytes / 4096;
  write_some_and_fill_the_disk(UINT64_C(3600000000000));
  TT_WAIT_UNTIL(stats_now().expired_segments >= SEGMENTS - 1);
}

Test(store_shortage, a_log_of_most_of_the_disk_leaves_no_floor) {
  expect_no_floor(tt.config.log_file_bytes);
}

Test(store_shortage, a_reserve_of_most_of_the_disk_leaves_no_floor) {
  put_by_a_reserve();
  expect_no_floor(HEAVY_BYTES / 2 * 3);
}

Test(store_shortage, a_quarantine_of_most_of_the_disk_leaves_no_floor) {
  leave_something_in_quarantine();
  expect_no_floor(HEAVY_BYTES / 2 * 3);
}

Test(store_shortage, open_generations_of_most_of_the_disk_leave_no_floor) {
  begin_a_large_generation();
  expect_no_floor(2 * stats_now().log_bytes + HEAVY_BYTES);
}

Test(store_shortage, what_only_root_may_take_is_not_of_the_disk) {
  root_blocks = (UINT64_C(1) << 30) / 4096;
  expect_no_floor((UINT64_C(1) << 30) + tt.config.log_file_bytes);
}
