/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collector/wal/scanner.h"
#include "collector/wal/writer.h"
#include "proto/frame.h"
#include "support/patience.h"

enum { GROUPS = 6, RECORDS = 5 };

static char dir[] = "/tmp/tc-log-XXXXXX";
static int wal;
static struct tc_wal *logs;
static struct tb_diag diag;
static int sync_fails;

static int fake_sync(int fd) {
  (void)fd;
  if (sync_fails == 0) return 0;
  errno = EIO;
  return -1;
}

/* Replaces the fsync() with which the log syncs its folder. */
static bool folder_sync_fails;

int fsync(int fd) {
  if (!folder_sync_fails) return (int)syscall(SYS_fsync, fd);
  errno = EIO;
  return -1;
}

/* A disk with unreadable sectors: reads of the first log file in this range fail. */
static uint64_t unreadable_from = UINT64_MAX, unreadable_end;

static unsigned reads_left = UINT_MAX; /* after these, reads fail with ENOMEM */

ssize_t pread(int fd, void *to, size_t n, off_t offset) {
  uint64_t at = (uint64_t)offset;

  if (reads_left == 0) {
    errno = ENOMEM;
    return -1;
  }
  if (reads_left < UINT_MAX) reads_left--;
  if (at < unreadable_end && at + n > unreadable_from) {
    errno = EIO;
    return -1;
  }
  return syscall(SYS_pread64, fd, to, n, offset);
}

static bool memory_is_short; /* for writes */

void *aligned_alloc(size_t alignment, size_t n) {
  void *block;

  return !memory_is_short && posix_memalign(&block, alignment, n) == 0 ? block : NULL;
}

static tb_rc no_streams(void *self, Tracecollect__V1__LogSnapshot *out) {
  (void)self;
  out->next_ref = 1;
  return TB_OK;
}

static void start_log(uint64_t next_lsn, uint64_t previous_end) {
  struct tc_wal_options options = { .wal_fd = wal,
                                    .file_bytes = 64 << 10,
                                    .group_bytes = 4 << 10,
                                    .durable = true,
                                    .next_lsn = next_lsn,
                                    .previous_end = previous_end,
                                    .snapshot = { NULL, no_streams },
                                    .sync = fake_sync };

  cr_assert_eq(tc_wal_new(&options, &diag, &logs), TB_OK);
}

static void open_log(void) {
  cr_assert_not_null(mkdtemp(dir));
  wal = open(dir, O_RDONLY | O_DIRECTORY);
  start_log(0, 0);
}

static void remove_log(void) {
  char command[64];

  tc_wal_free(logs);
  close(wal);
  snprintf(command, sizeof command, "rm -r %s", dir);
  cr_assert_eq(system(command), 0);
}

TestSuite(log, .init = open_log, .fini = remove_log);

static uint64_t group_at[64]; /* offset of each group */
static uint64_t record_at[64][RECORDS];
static unsigned char payload[300];

/* Writes a group of RECORDS records, whose payload bytes and seq follow from its number. */
static tb_rc write_group(unsigned group) {
  cr_assert_eq(tc_wal_begin(logs, 1000 + group, &diag), TB_OK, "%s", diag.text);
  group_at[group] = tc_wal_durable_lsn(logs);
  for (unsigned i = 0; i < RECORDS; i++) {
    struct tc_wal_head head = {
      .kind = TP_BATCH, .ref = 1, .seq = group * RECORDS + i + 1, .gen = 1, .len = 100 + i
    };
    memset(payload, (int)(group + 1), sizeof payload);
    cr_assert_eq(tc_wal_stage(logs, &head, payload, tb_crc32c(0, payload, head.len)), TB_OK);
    record_at[group][i] = head.lsn;
  }
  return tc_wal_commit(logs, &diag);
}

static void write_groups(unsigned n) {
  for (unsigned i = 0; i < n; i++) cr_assert_eq(write_group(i), TB_OK, "%s", diag.text);
}

/* Returns the seqs that a scan finds, one bit each. */
static uint64_t scan(struct tc_wal_scan *out) {
  uint64_t seqs = 0;

  cr_assert_eq(tc_wal_scan(wal, &diag, out), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < out->nentries; i++)
    if (out->entries[i].head.kind == TP_BATCH) {
      uint64_t bit = UINT64_C(1) << out->entries[i].head.seq;
      cr_assert_eq(seqs & bit, 0, "record %" PRIu64 " comes twice", out->entries[i].head.seq);
      seqs |= bit;
    }
  return seqs;
}

static uint64_t up_to(unsigned n) {
  return ((UINT64_C(1) << n) - 1) << 1;
}

static void change(uint64_t offset, bool cut) {
  char path[64];
  unsigned char byte;

  snprintf(path, sizeof path, "%s/0000000000000000.wal", dir);
  int fd = open(path, O_RDWR);
  if (cut) {
    cr_assert_eq(ftruncate(fd, (off_t)offset), 0);
  } else {
    cr_assert_eq(pread(fd, &byte, 1, (off_t)offset), 1);
    byte = (unsigned char)(byte ^ 1u << offset % 8);
    cr_assert_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
  }
  close(fd);
}

Test(log, what_was_committed_is_read_back_in_order) {
  struct tc_wal_scan out;

  write_groups(GROUPS);
  cr_assert_eq(scan(&out), up_to(GROUPS * RECORDS));
  cr_assert_eq(out.corrupt, 0);
  cr_assert_eq(out.torn_bytes, 0);
  cr_assert_eq(out.previous_end, tc_wal_durable_lsn(logs));
  for (size_t i = 1, seq = 0; i < out.nentries; i++) {
    if (out.entries[i].head.kind != TP_BATCH) continue;
    cr_assert_eq(out.entries[i].head.seq, ++seq);
    const unsigned char *bytes;
    cr_assert_eq(tc_wal_scan_payload(&out, &out.entries[i], &diag, &bytes), TB_OK);
    cr_assert_eq(bytes[0], (seq - 1) / RECORDS + 1);
  }
  tc_wal_scan_free(&out);
}

Test(log, a_flipped_bit_costs_the_record_it_hits_and_no_other) {
  struct tc_wal_scan out;

  write_groups(GROUPS);
  for (unsigned group = 0; group + 1 < GROUPS; group++)
    for (unsigned i = 0; i < RECORDS; i++)
      for (unsigned at = 0; at < TC_WAL_HEAD_BYTES + 104 + i; at += TT_LESS(13, 53)) {
        change(record_at[group][i] + at, false);
        uint64_t lost = UINT64_C(1) << (group * RECORDS + i + 1);
        cr_assert_eq(scan(&out), up_to(GROUPS * RECORDS) & ~lost, "group %u record %u byte %u",
                     group, i, at);
        cr_assert_eq(out.corrupt, 1);
        cr_assert_eq(out.torn_bytes, 0);
        tc_wal_scan_free(&out);
        change(record_at[group][i] + at, false);
      }
}

Test(log, a_flip_in_the_last_group_is_a_torn_tail) {
  struct tc_wal_scan out;

  write_groups(GROUPS);
  change(record_at[GROUPS - 1][2] + 50, false);
  cr_assert_eq(scan(&out), up_to((GROUPS - 1) * RECORDS + 2));
  cr_assert_eq(out.corrupt, 0);
  cr_assert_gt(out.torn_bytes, 0);
  cr_assert_eq(out.previous_end, record_at[GROUPS - 1][2]);
  tc_wal_scan_free(&out);
}

Test(log, a_cut_anywhere_keeps_every_whole_record_before_it) {
  struct tc_wal_scan out;
  uint64_t end;

  write_groups(GROUPS);
  end = tc_wal_durable_lsn(logs);
  for (uint64_t cut = end - 1; cut > group_at[0]; cut -= TT_LESS(11, 47)) {
    unsigned whole = 0;
    for (unsigned n = 0; n < GROUPS * RECORDS; n++)
      whole +=
          record_at[n / RECORDS][n % RECORDS] + tc_wal_record_bytes(100 + n % RECORDS) <= cut + 7;
    change(cut, true);
    uint64_t seqs = scan(&out);
    /* The last record may be whole except for its padding. */
    cr_assert(seqs == up_to(whole) || seqs == up_to(whole == 0 ? 0 : whole - 1), "cut at %" PRIu64,
              cut);
    cr_assert_eq(out.corrupt, 0);
    tc_wal_scan_free(&out);
  }
}

Test(log, a_failed_sync_gives_the_file_up_and_its_group_never_counts) {
  struct tc_wal_scan out;

  write_groups(2);
  sync_fails = 1;
  cr_assert_eq(write_group(2), TB_IO);
  sync_fails = 0;
  /* The agent sends the same records again; the first copy is whole in the poisoned file. */
  cr_assert_eq(write_group(2), TB_OK);
  cr_assert_eq(tc_wal_file_count(logs), 2);
  cr_assert_eq(scan(&out), up_to(3 * RECORDS)); /* each once: scan() fails on doubles */
  cr_assert_eq(out.corrupt, 0);
  tc_wal_scan_free(&out);
}

Test(log, a_group_that_there_is_no_memory_for_is_not_begun_and_one_behind_it_is) {
  struct tc_wal_scan out;

  memory_is_short = true;
  cr_assert_eq(tc_wal_begin(logs, 1000, &diag), TB_NOMEM);
  memory_is_short = false;
  write_groups(1);
  cr_assert_eq(scan(&out), up_to(RECORDS));
  tc_wal_scan_free(&out);
}

Test(log, bytes_of_another_file_never_validate) {
  struct tc_wal_scan out;
  char old_path[64], path[64];
  unsigned char bytes[4096];

  write_groups(2);
  uint64_t end = tc_wal_durable_lsn(logs);
  /* Puts the same records at the same place in a file with another salt. */
  snprintf(path, sizeof path, "%s/0000000000000000.wal", dir);
  snprintf(old_path, sizeof old_path, "%s/old", dir);
  cr_assert_eq(rename(path, old_path), 0);
  tc_wal_free(logs);
  start_log(0, 0);
  write_groups(1);
  int from = open(old_path, O_RDONLY), to = open(path, O_RDWR);
  size_t n = (size_t)(end - group_at[1]);
  cr_assert_leq(n, sizeof bytes);
  cr_assert_eq(pread(from, bytes, n, (off_t)group_at[1]), (ssize_t)n);
  cr_assert_eq(pwrite(to, bytes, n, (off_t)group_at[1]), (ssize_t)n);
  close(from);
  close(to);
  cr_assert_eq(scan(&out), up_to(RECORDS));
  tc_wal_scan_free(&out);
}

Test(log, files_below_what_is_held_are_deleted_oldest_first) {
  struct tc_wal_scan out;
  unsigned group = 0;

  while (tc_wal_file_count(logs) < 4) cr_assert_eq(write_group(group++ % 8), TB_OK);
  uint64_t held = record_at[(group - 1) % 8][0];
  cr_assert_eq(tc_wal_scan(wal, &diag, &out), TB_OK);
  uint64_t second = out.files[1].start;
  tc_wal_scan_free(&out);
  tc_wal_trim(logs, second - 8);
  cr_assert_eq(tc_wal_file_count(logs), 4);
  tc_wal_trim(logs, second + 8);
  cr_assert_eq(tc_wal_file_count(logs), 3);
  tc_wal_trim(logs, held);
  cr_assert_eq(tc_wal_file_count(logs), 1);
  tc_wal_trim(logs, UINT64_MAX);
  cr_assert_eq(tc_wal_file_count(logs), 1); /* the current file stays */
  cr_assert_eq(tc_wal_scan(wal, &diag, &out), TB_OK);
  cr_assert_eq(out.nfiles, 1);
  cr_assert_eq(out.entries[0].head.kind, TC_WAL_SNAPSHOT);
  tc_wal_scan_free(&out);
}

static bool has_file(const char *name) {
  return faccessat(wal, name, F_OK, 0) == 0;
}

Test(log, a_file_stays_until_the_older_ones_are_gone_on_the_disk_too) {
  struct tc_wal_scan out;
  char second[TC_WAL_NAME_BYTES];
  unsigned group = 0;

  while (tc_wal_file_count(logs) < 4) cr_assert_eq(write_group(group++ % 8), TB_OK);
  cr_assert_eq(tc_wal_scan(wal, &diag, &out), TB_OK);
  tc_wal_file_name(out.files[1].start, second);
  tc_wal_scan_free(&out);
  folder_sync_fails = true;
  tc_wal_trim(logs, UINT64_MAX);
  tc_wal_trim(logs, UINT64_MAX);
  cr_assert_not(has_file("0000000000000000.wal"));
  cr_assert(has_file(second));
  cr_assert_eq(tc_wal_file_count(logs), 3);
  folder_sync_fails = false;
  tc_wal_trim(logs, UINT64_MAX);
  cr_assert_eq(tc_wal_file_count(logs), 1);
}

Test(log, groups_begin_at_a_multiple_of_a_block) {
  for (unsigned i = 0; i < GROUPS; i++) {
    cr_assert_eq(write_group(i), TB_OK);
    cr_assert_eq(group_at[i] % TC_WAL_BLOCK, 0);
    cr_assert_eq(tc_wal_durable_lsn(logs) % TC_WAL_BLOCK, 0);
  }
  /* Makes a file whose records end so that a PAD does not fit into the block. */
  for (uint32_t len = TC_WAL_BLOCK - 180; len < TC_WAL_BLOCK - 80; len += 8) {
    struct tc_wal_head head = { .kind = TP_BATCH, .ref = 1, .len = len };
    static unsigned char bytes[TC_WAL_BLOCK];
    cr_assert_eq(tc_wal_begin(logs, 1, &diag), TB_OK);
    cr_assert_eq(tc_wal_stage(logs, &head, bytes, tb_crc32c(0, bytes, len)), TB_OK);
    cr_assert_eq(tc_wal_commit(logs, &diag), TB_OK);
    cr_assert_eq(tc_wal_durable_lsn(logs) % TC_WAL_BLOCK, 0);
  }
  struct tc_wal_scan out;
  cr_assert_eq(tc_wal_scan(wal, &diag, &out), TB_OK);
  cr_assert_eq(out.corrupt, 0);
  cr_assert_eq(out.torn_bytes, 0);
  cr_assert_eq(out.previous_end, tc_wal_durable_lsn(logs));
  tc_wal_scan_free(&out);
}

Test(log, a_file_that_is_not_needed_becomes_the_next_one_and_what_it_said_counts_no_more) {
  struct tc_wal_scan out;
  unsigned group = 0;

  while (tc_wal_file_count(logs) < 2) cr_assert_eq(write_group(group++ % 8), TB_OK);
  cr_assert_not(has_file("spare"));
  tc_wal_trim(logs, UINT64_MAX);
  cr_assert_eq(tc_wal_file_count(logs), 1);
  cr_assert(has_file("spare"));
  while (tc_wal_file_count(logs) < 2) cr_assert_eq(write_group(group++ % 8), TB_OK);
  cr_assert_not(has_file("spare"), "it is the second file now");
  tc_wal_trim(logs, UINT64_MAX);
  cr_assert_eq(tc_wal_scan(wal, &diag, &out), TB_OK);
  cr_assert_eq(out.nfiles, 1);
  size_t batches = 0;
  for (size_t i = 0; i < out.nentries; i++) batches += out.entries[i].head.kind == TP_BATCH;
  cr_assert_eq(batches, RECORDS, "the one group that was written to it since, not the many before");
  cr_assert_eq(out.corrupt, 0);
  cr_assert_eq(out.torn_bytes, 0);
  cr_assert_eq(out.previous_end, tc_wal_durable_lsn(logs));
  tc_wal_scan_free(&out);
}

Test(log, a_file_that_was_given_up_is_not_written_again) {
  write_groups(1);
  sync_fails = 1;
  cr_assert_eq(write_group(1), TB_IO);
  sync_fails = 0;
  cr_assert_eq(write_group(1), TB_OK);
  cr_assert_eq(tc_wal_file_count(logs), 2);
  tc_wal_trim(logs, UINT64_MAX);
  cr_assert_eq(tc_wal_file_count(logs), 1);
  cr_assert_not(has_file("spare"));
}

Test(log, a_spare_file_of_another_size_is_replaced) {
  int fd = openat(wal, "spare", O_WRONLY | O_CREAT, 0600);
  struct stat st;

  cr_assert_eq(write(fd, "odd", 3), 3);
  close(fd);
  write_groups(1);
  cr_assert_not(has_file("spare"));
  cr_assert_eq(fstatat(wal, "0000000000000000.wal", &st, 0), 0);
  cr_assert_gt(st.st_size, 64 << 10);
}

Test(log, an_unknown_critical_record_stops_the_reader) {
  struct tc_wal_scan out;

  cr_assert_eq(tc_wal_begin(logs, 1, &diag), TB_OK);
  struct tc_wal_head head = { .kind = 99, .len = 0 };
  cr_assert_eq(tc_wal_stage(logs, &head, NULL, 0), TB_OK);
  cr_assert_eq(tc_wal_commit(logs, &diag), TB_OK);
  cr_assert_eq(tc_wal_scan(wal, &diag, &out), TB_OK);
  tc_wal_scan_free(&out);
  cr_assert_eq(tc_wal_begin(logs, 1, &diag), TB_OK);
  head.flags = TP_CRITICAL;
  cr_assert_eq(tc_wal_stage(logs, &head, NULL, 0), TB_OK);
  cr_assert_eq(tc_wal_commit(logs, &diag), TB_OK);
  cr_assert_eq(tc_wal_scan(wal, &diag, &out), TB_UNSUPPORTED);
  tc_wal_scan_free(&out);
}

/* If the file was mapped, each of these reads would be a SIGBUS. */
Test(log, an_unreadable_sector_costs_the_records_in_it_and_no_other) {
  struct tc_wal_scan out;

  write_groups(3);
  unreadable_from = record_at[1][1] & ~UINT64_C(511);
  unreadable_end = unreadable_from + 512;
  uint64_t seqs = scan(&out);
  cr_assert_eq(out.corrupt, 1);
  cr_assert_gt(out.unreadable, 0);
  cr_assert_neq(seqs & UINT64_C(1) << (RECORDS + 2), UINT64_C(1) << (RECORDS + 2));
  cr_assert_eq(seqs & up_to(RECORDS), up_to(RECORDS), "the group before it is whole");
  uint64_t last = up_to(3 * RECORDS) & ~up_to(2 * RECORDS);
  cr_assert_eq(seqs & last, last, "the group after it is whole");
  tc_wal_scan_free(&out);
  unreadable_end = 0;
}

/* The records are on the disk, and the next attempt may read them. */
Test(log, what_cannot_be_read_for_the_moment_is_no_end_of_the_log) {
  struct tc_wal_scan out;
  unsigned groups = 0, reads = 0, batches = 0;
  tb_rc rc;

  while (tc_wal_file_count(logs) < 3) cr_assert_eq(write_group(groups++ % GROUPS), TB_OK);
  do {
    reads_left = ++reads;
    rc = tc_wal_scan(wal, &diag, &out);
    for (size_t i = 0; rc == TB_OK && i < out.nentries; i++)
      batches += out.entries[i].head.kind == TP_BATCH;
    tc_wal_scan_free(&out);
  } while (rc == TB_NOMEM);
  cr_assert_eq(rc, TB_OK, "%s", diag.text);
  cr_assert_eq(batches, groups * RECORDS, "after %u reads", reads);
  reads_left = UINT_MAX;
}

Test(log, a_file_cut_under_the_reader_is_a_damaged_record) {
  struct tc_wal_scan out;
  const unsigned char *bytes;

  write_groups(3);
  scan(&out);
  change(record_at[1][1], true);
  cr_assert_eq(tc_wal_scan_payload(&out, &out.entries[1], &diag, &bytes), TB_OK);
  out.window.len = 0; /* so that the block is read again */
  cr_assert_eq(tc_wal_scan_payload(&out, &out.entries[out.nentries - 2], &diag, &bytes),
               TB_CORRUPT);
  tc_wal_scan_free(&out);
}
