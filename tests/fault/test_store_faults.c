/* SPDX-License-Identifier: Apache-2.0 */
/* Disks that fail, fill up or lie, and folders that were damaged while the store was down.
 *
 * Replaces the system calls of the store that a disk can fail by functions of the same name. A crash is a copy of the
 * state folder taken while the store runs: the state that a process killed then would leave. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "archive/catalog/catalog.h"
#include "collector/wal/scanner.h"
#include "proto/frame.pb-c.h"
#include "proto/meta.pb-c.h"
#include "support/patience.h"
#include "support/store_fixture.h"

static atomic_int failing_syncs; /* number of the log's next fdatasync calls to fail with EIO */
static atomic_int parts_errno;   /* errno of writes below open/; 0: they succeed */
static atomic_int parts_failed;  /* failed writes */
static atomic_int names_errno;   /* errno of renames from open/; 0: they succeed */
static atomic_int names_failed;  /* failed renames */
static _Atomic uint64_t disk_free = UINT64_C(1) << 40;

static bool is_below(int fd, const char *folder) {
  char link[64], path[512];

  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = '\0';
  return strstr(path, folder) != NULL;
}

int fdatasync(int fd) {
  if (failing_syncs > 0 && is_below(fd, "/wal/")) {
    failing_syncs--;
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwritev(int fd, const struct iovec *iov, int n, off_t offset) {
  if (parts_errno != 0 && is_below(fd, "/open/")) {
    parts_failed++;
    errno = parts_errno;
    return -1;
  }
  return syscall(SYS_pwritev, fd, iov, n, offset, 0L);
}

int renameat2(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
  if (names_errno != 0 && is_below(from_fd, "/open")) {
    names_failed++;
    errno = names_errno;
    return -1;
  }
  return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}

int fstatvfs(int fd, struct statvfs *out) {
  (void)fd;
  *out = (struct statvfs){ .f_bsize = 4096, .f_frsize = 4096, .f_bavail = disk_free / 4096 };
  return 0;
}

static struct tt_store copy;

static void open_store(void) {
  tt_fixture_open(NULL);
  tt_store_make(&copy);
}

static void remove_store(void) {
  tt_fixture_remove();
  tt_store_remove(&copy);
}

TestSuite(store_faults, .init = open_store, .fini = remove_store);

/* Flips a byte of the n-th record of that kind and generation in the copy's log (gen 0: any). */
static void damage_record(unsigned kind, uint64_t gen, unsigned n) {
  struct tc_wal_scan scan;
  struct tb_diag diag = { 0 };
  char path[300], name[64];

  snprintf(path, sizeof path, "%s/wal", copy.dir);
  int wal = open(path, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_wal_scan(wal, &diag, &scan), TB_OK, "%s", diag.text);
  uint64_t lsn = UINT64_MAX;
  for (size_t i = 0; i < scan.nentries && lsn == UINT64_MAX; i++)
    if (scan.entries[i].head.kind == kind && (gen == 0 || scan.entries[i].head.gen == gen) &&
        n-- == 0)
      lsn = scan.entries[i].head.lsn;
  cr_assert_neq(lsn, UINT64_MAX);
  for (size_t i = 0; i < scan.nfiles; i++)
    if (lsn >= scan.files[i].start && lsn < scan.files[i].start + scan.files[i].bytes) {
      snprintf(name, sizeof name, "wal/%016lx.wal", scan.files[i].start);
      tt_flip(&copy, name, lsn - scan.files[i].start + 50);
    }
  tc_wal_scan_free(&scan);
  close(wal);
}

/* Returns whether the log has a record of that kind up to a sequence number. */
static bool log_reaches(const struct tt_store *t, unsigned kind, uint64_t seq) {
  struct tc_wal_scan scan;
  struct tb_diag diag = { 0 };
  char path[300];
  bool found = false;

  snprintf(path, sizeof path, "%s/wal", t->dir);
  int wal = open(path, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_wal_scan(wal, &diag, &scan), TB_OK);
  for (size_t i = 0; i < scan.nentries; i++)
    found |= scan.entries[i].head.kind == kind && scan.entries[i].head.seq >= seq;
  tc_wal_scan_free(&scan);
  close(wal);
  return found;
}

static bool has_log_record(const struct tt_store *t, unsigned kind) {
  return log_reaches(t, kind, 0);
}

static bool health_begins(const char *with) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return strncmp(stats.health, with, strlen(with)) == 0;
}

static bool a_generation_is_broken(void) {
  struct tc_store_stats stats;

  tc_store_stats(tt.store, &stats);
  return stats.generations_broken > 0;
}

Test(store_faults, a_failed_sync_acks_nothing_and_the_agent_sends_again) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  uint64_t durable = w.seq;
  failing_syncs = 1;
  tt_generation(&w, 2, 3, 1000);
  struct tc_reply *refused = tt_wait(&tt, TC_REPLY_REFUSED, 0);
  cr_assert_not_null(refused);
  cr_assert_eq(refused->code, TRACECOLLECT__V1__REFUSE_CODE__REFUSE_STORAGE);
  struct tt_writer again = tt_attach_as(&tt, 2, 7);
  cr_assert_geq(again.seq, durable);
  cr_assert_lt(again.seq, w.seq);
  /* The part of generation 2 that was acked before the failure counts in its sums. */
  unsigned char batch[1000];
  for (uint64_t seq = durable + 1; seq <= durable + 3; seq++) {
    tt_fill(batch, sizeof batch, 2, (unsigned)(seq - durable - 1));
    uint64_t keep = again.seq;
    bool known = seq <= again.seq;
    if (known) again.seq = seq - 1; /* sent again all the same: acked, not stored twice */
    tt_batch(&again, 2, batch, sizeof batch);
    if (known) again.seq = keep;
  }
  tt_end(&again, 2);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 2);
  tt_crash_into(&tt, copy.dir); /* the poisoned file lies there as well */
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  struct tt_writer after = tt_attach_as(&copy, 1, 7);
  cr_assert_eq(after.seq, again.seq);
  tt_expect_proven(&copy);
}

Test(store_faults, three_failed_files_in_a_minute_stop_intake) {
  uint64_t conn = 1;

  for (int i = 0; i < 3; i++) {
    struct tt_writer w = tt_attach_as(&tt, conn++, 7);
    failing_syncs = 1;
    if (w.seq == 0)
      tt_header(&w);
    else
      tt_batch(&w, 1, "x", 1);
    cr_assert_not_null(tt_wait(&tt, TC_REPLY_REFUSED, (unsigned)i));
  }
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_FAILED, 0));
  struct tc_store_stats stats;
  tc_store_stats(tt.store, &stats);
  cr_assert(stats.failed);
  cr_assert_str_eq(stats.health, "disk: the log cannot be written");
}

Test(store_faults, with_a_full_disk_nothing_is_acked_until_there_is_space) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_store_stop(&tt);
  tt.config.disk_free_min = 1 << 20;
  disk_free = 1 << 19;
  cr_assert_eq(tt_store_start(&tt), TB_OK);
  w = tt_attach_as(&tt, 1, 7);
  TT_WAIT_UNTIL(health_begins("full"));
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt); /* the store still answers */
  cr_assert_eq(tt_count(&tt, TC_REPLY_ACKED), 0);
  disk_free = (1 << 20) + 4096; /* above the mark, not above the hysteresis */
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_ACKED), 0);
  disk_free = 1 << 22;
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_STORED, 0));
}

Test(store_faults, a_full_archive_holds_work_back_and_drops_none) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  parts_errno = ENOSPC;
  for (uint64_t gen = 2; gen <= 5; gen++) tt_generation(&w, gen, 3, 1000);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq)); /* the log has them */
  TT_WAIT_UNTIL(health_begins("full: no space left on the disk (archive)"));
  parts_errno = 0;
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 5);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ""), 0);
  tt_expect_proven(&tt);
}

static bool has_reserve(void) {
  char path[300];

  snprintf(path, sizeof path, "%s/reserve", tt.dir);
  return access(path, F_OK) == 0;
}

Test(store_faults, the_reserve_goes_when_the_archive_finds_no_space_and_comes_back_with_it) {
  tt_store_stop(&tt);
  tt.config.disk_reserve_bytes = 1 << 20;
  tt.config.disk_free_min = 1 << 20;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  tt_header(&w);
  TT_WAIT_UNTIL(has_reserve());
  disk_free = (2 << 20) + 4096; /* with the reserve again it would be near the mark */
  parts_errno = ENOSPC;
  tt_generation(&w, 1, 3, 1000);
  TT_WAIT_UNTIL(!has_reserve());
  parts_errno = 0;
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1, "%s", tt.notes);
  for (uint64_t gen = 2; gen <= 4; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  cr_assert_not(has_reserve());
  disk_free = UINT64_C(1) << 40;
  TT_WAIT_UNTIL(has_reserve());
  tt_store_stop(&tt);
  cr_assert(has_reserve());
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_expect_proven(&tt);
}

Test(store_faults, a_shortage_is_waited_for_and_other_errors_are_told) {
  static const int shortages[] = { ENOMEM, EMFILE, ENFILE, EAGAIN };
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  uint64_t gen = 1;

  tt_header(&w);
  for (size_t i = 0; i < sizeof shortages / sizeof *shortages; i++) {
    parts_failed = 0;
    parts_errno = shortages[i];
    tt_generation(&w, gen++, 3, 1000);
    cr_assert(tt_wait_acked(&tt, w.stream, w.seq)); /* the log has it */
    TT_WAIT_UNTIL(parts_failed >= 3);
    parts_errno = 0;
    tt_barrier(&tt);
    cr_assert_eq(tt_count(&tt, TC_REPLY_FAILED), 0, "%s: %s", strerror(shortages[i]), tt.notes);
    cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), gen - 1);
  }
  parts_errno = EIO;
  tt_generation(&w, gen, 3, 1000);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_FAILED, 0), "a broken disk is told at once");
  parts_errno = 0;
  tt_barrier(&tt);
  tt_expect_proven(&tt);
}

Test(store_faults, damage_in_the_log_costs_the_generation_it_hits) {
  struct tt_writer a = tt_attach_as(&tt, 1, 1), b = tt_attach_as(&tt, 2, 2);

  /* No generation ends, so nothing is sealed and all of it is only in the log. */
  tt_header(&a);
  tt_header(&b);
  parts_errno = ENOSPC;
  for (uint64_t gen = 1; gen <= 4; gen++) {
    tt_generation(&a, gen, 3, 1000);
    tt_generation(&b, gen, 3, 1000);
    cr_assert(tt_wait_acked(&tt, a.stream, a.seq));
    cr_assert(tt_wait_acked(&tt, b.stream, b.seq));
  }
  tt_crash_into(&tt, copy.dir);
  parts_errno = 0;
  damage_record(TP_BATCH, 2, 1); /* of a or b, whichever came first */
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  cr_assert_not_null(strstr(copy.notes, "damaged in the log"), "%s", copy.notes);
  tt_barrier(&copy);
  struct tt_writer again = tt_attach_as(&copy, 1, 1);
  cr_assert_eq(again.seq, a.seq);
  tt_barrier(&copy);
  cr_assert_eq(tt_count_files(&copy, "archive", ".trace"), 7);
  cr_assert_geq(tt_count_files(&copy, "quarantine", ".part"), 1);
  tt_expect_proven(&copy);
}

/* The damaged file will be deleted some day, and with it the only record of its content. */
Test(store_faults, a_gap_is_written_down_and_the_books_still_add_up) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  parts_errno = ENOSPC;
  for (uint64_t gen = 2; gen <= 3; gen++) { /* what is in the last group would be a torn tail */
    tt_generation(&w, gen, 3, 1000);
    cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  }
  tt_crash_into(&tt, copy.dir);
  parts_errno = 0;
  damage_record(TP_BATCH, 2, 1);
  for (int start = 0; start < 3; start++) {
    cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
    tt_barrier(&copy);
    tt_store_stop(&copy);
    cr_assert(has_log_record(&copy, TC_WAL_CHECKPOINT), "%s", copy.notes);
  }
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  struct tt_writer again = tt_attach_as(&copy, 1, 7);
  cr_assert_eq(again.seq, w.seq);
  tt_generation(&again, 4, 3, 1000);
  tt_close_with(&again, 12, 12000);
  tt_barrier(&copy);
  struct tc_stream_row row = tt_stream_row(&copy, 7);
  cr_assert_eq(row.generations, 3);
  cr_assert_eq(row.lost_batches, 2, "the third is one of those nobody knows");
  tt_expect_proven(&copy);
}

/* Publishes three generations, and waits until the log knows. The record about an earlier one may share a group with
 * the third generation: if it were damaged, that group would be a torn tail. */
static struct tt_writer publish_three(void) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 3; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  TT_WAIT_UNTIL(log_reaches(&tt, TC_WAL_SETTLED, w.seq));
  return w;
}

/* Continues the stream in the copy with a fourth generation. */
static void publish_fourth(const struct tt_writer *w) {
  struct tt_writer again = tt_attach_as(&copy, 1, 7);
  cr_assert_eq(again.seq, w->seq);
  tt_generation(&again, 4, 3, 1000);
  tt_barrier(&copy);
  cr_assert_eq(tt_count_files(&copy, "archive", ".trace"), 4);
}

Test(store_faults, a_segment_published_without_the_log_knowing_is_taken_as_it_is) {
  struct tt_writer w = publish_three();

  tt_crash_into(&tt, copy.dir);
  damage_record(TC_WAL_SETTLED, 0, 0);
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  publish_fourth(&w);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ""), 0);
  tt_expect_proven(&copy);
}

/* The store is killed twice: the second run kept the segment as it was, but died before it could
 * log that. */
Test(store_faults, what_the_chain_goes_on_from_is_known_after_a_second_crash) {
  struct tt_writer w = publish_three();

  tt_crash_into(&tt, copy.dir);
  for (int crash = 0; crash < 2; crash++) {
    while (has_log_record(&copy, TC_WAL_SETTLED)) damage_record(TC_WAL_SETTLED, 0, 0);
    cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
    tt_barrier(&copy);
    if (crash == 0) tt_store_stop(&copy);
  }
  publish_fourth(&w);
  tt_expect_proven(&copy);
}

Test(store_faults, half_a_publication_is_made_anew_from_the_log) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  char command[400];

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  TT_WAIT_UNTIL(has_log_record(&tt, TC_WAL_SETTLED));
  tt_crash_into(&tt, copy.dir);
  damage_record(TC_WAL_SETTLED, 0, 0);
  snprintf(command, sizeof command,
           "find %s/archive -name '*.meta' -delete; rm -f %s/catalog.sqlite*", copy.dir, copy.dir);
  cr_assert_eq(system(command), 0);
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  tt_barrier(&copy);
  tt_store_stop(&copy);
  cr_assert_eq(tt_count_files(&copy, "archive", ".meta"), 1);
  tt_expect_proven(&copy);
}

Test(store_faults, what_has_no_verdict_is_offered_again_and_what_has_one_is_not) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 4; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  for (uint64_t gen = 1; gen <= 2; gen++) {
    struct tc_submit *msg = tc_submit_new(TC_SUBMIT_VERDICT);
    msg->verdict =
        (struct tc_verdict){ .stream = w.stream,
                             .gen = gen,
                             .events = 10 * gen,
                             .thread = TB_NO_THREAD,
                             .code = gen == 1 ? TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK
                                              : TRACECOLLECT__V1__VERDICT_CODE__VERDICT_BROKEN,
                             .reason = "goroutine 5 started twice" };
    tt_submit(&tt, msg);
  }
  tt_close(&w);
  tt_barrier(&tt);
  tt_expect_proven(&tt); /* the catalog says of the verdicts what the metas say */
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 2);
  cr_assert_eq(tt_wait(&tt, TC_REPLY_STORED, 0)->gen, 3);
  cr_assert(tt_wait(&tt, TC_REPLY_STORED, 0)->new_run);
  cr_assert_eq(tt_wait(&tt, TC_REPLY_STORED, 1)->gen, 4);
  cr_assert_not(tt_wait(&tt, TC_REPLY_STORED, 1)->new_run);
}

static void keep_catalog(const char *from, const char *to) {
  char command[400];

  snprintf(command, sizeof command, "cp %s/%s %s/%s", tt.dir, from, tt.dir, to);
  cr_assert_eq(system(command), 0);
}

/* kill -9 between a meta with its verdict and the catalog's row. */
Test(store_faults, a_row_that_lags_behind_its_meta_is_mended_at_the_next_start) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 2; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  keep_catalog("catalog.sqlite", "before");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  w = tt_attach_as(&tt, 1, 7);
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_VERDICT);
  msg->verdict = (struct tc_verdict){ .stream = w.stream,
                                      .gen = 1,
                                      .events = 10,
                                      .thread = TB_NO_THREAD,
                                      .code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK };
  tt_submit(&tt, msg);
  tt_barrier(&tt);
  tt_store_stop(&tt);
  keep_catalog("before", "catalog.sqlite");
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 1, "the first has its verdict");
  cr_assert_eq(tt_wait(&tt, TC_REPLY_STORED, 0)->gen, 2);
  tt_expect_proven(&tt);
}

/* The verdict is on a file in open/ that has its meta but not yet its final name. */
Test(store_faults, a_verdict_is_kept_that_comes_while_the_disk_fails) {
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  struct tc_submit *msg = tc_submit_new(TC_SUBMIT_VERDICT);

  names_errno = ENOSPC;
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_STORED, 0));
  TT_WAIT_UNTIL(names_failed >= 1);
  msg->verdict = (struct tc_verdict){ .stream = w.stream,
                                      .gen = 1,
                                      .events = 10,
                                      .thread = TB_NO_THREAD,
                                      .code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK };
  tt_submit(&tt, msg);
  int failed = names_failed;
  TT_WAIT_UNTIL(names_failed >= failed + 3);
  names_errno = 0;
  tt_close(&w);
  tt_barrier(&tt);
  tt_expect_proven(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  tt_barrier(&tt);
  cr_assert_eq(tt_count(&tt, TC_REPLY_STORED), 0, "its verdict is in the archive");
}

static tb_rc one_stream(void *self, const struct tc_stream_row *row) {
  *(struct tc_stream_row *)self = *row;
  return TB_OK;
}

Test(store_faults, a_stream_nobody_comes_back_to_ends_unclean) {
  struct tc_stream_row row = { 0 };
  struct tb_diag diag = { 0 };
  struct tc_catalog *catalog;

  tt_store_stop(&tt);
  tt.config.agents_abandon_after = 1000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK);
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_batch(&w, 2, "half", 4);
  tt_barrier(&tt);
  tt_detach(&tt, 1);
  TT_WAIT_UNTIL(a_generation_is_broken());
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1);
  tt_store_stop(&tt);
  int fd = open(tt.dir, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK);
  cr_assert_eq(tc_catalog_streams(catalog, &(struct tc_select){ 0 }, one_stream, &row, &diag),
               TB_OK);
  cr_assert_str_eq(row.state, "unclean");
  cr_assert_eq(row.lost_generations, 1);
  cr_assert_eq(row.lost_batches, 1);
  tc_catalog_close(catalog);
  close(fd);
  tt_expect_proven(&tt);
}

Test(store_faults, a_generation_that_is_archived_already_is_never_overwritten) {
  struct tc_store_stats stats;
  size_t len;

  tt_store_stop(&tt);
  tt.config.agents_abandon_after = 1000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK);
  struct tt_writer w = tt_attach_as(&tt, 1, 7);
  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_close(&w);
  tt_barrier(&tt);
  char *before = tt_read_file(&tt, tt_wait(&tt, TC_REPLY_STORED, 0)->final_path, &len);
  tt_detach(&tt, 1);
  /* A closed stream is forgotten after a while; then its id is free, its files are not. */
  uint64_t conn = 2;
  struct tt_writer again;
  /* To ask is to keep it known: between two questions it must be idle for agents.abandon_after. */
  do {
    cr_assert_lt(conn, 1500, "half a minute, and the closed stream is still known");
    again = tt_attach_as(&tt, conn++, 7);
  } while (again.seq != 0 && (tt_detach(&tt, conn - 1), usleep(20000) == 0));
  tt_header(&again);
  tt_generation(&again, 1, 5, 500);
  tt_generation(&again, 2, 3, 1000);
  tt_barrier(&tt);
  tc_store_stats(tt.store, &stats);
  cr_assert_eq(stats.generations_broken, 1);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 2);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1);
  char *after = tt_read_file(&tt, tt_wait(&tt, TC_REPLY_STORED, 0)->final_path, &len);
  cr_assert_eq(memcmp(before, after, len), 0);
  free(before);
  free(after);
}
