/* SPDX-License-Identifier: Apache-2.0 */
/* A generation that lasts long while other streams write: the log is released nevertheless, and nothing of the generation is
 * lost, even if the collector restarts or is killed. */
#include <criterion/criterion.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "archive/state_dir.h"
#include "base/crc32c.h"
#include "collector/wal/files.h"
#include "collector/wal/scanner.h"
#include "support/patience.h"
#include "support/store_fixture.h"

enum {
  LOG_FILE_BYTES = 1 << 20,
  CHECKPOINT_BYTES = 2 << 20,
  HELD_BYTES = 1 << 30,
  WRITTEN_BYTES = 6 * CHECKPOINT_BYTES,
  SLOW = 7,
};

static void configure(struct tc_config *config) {
  config->log_file_bytes = LOG_FILE_BYTES;
  config->log_group_bytes =
      LOG_FILE_BYTES / 4; /* larger groups would let a file grow on a slow disk */
  config->log_checkpoint_bytes = CHECKPOINT_BYTES;
  config->log_held_bytes_max = HELD_BYTES;
}

static void open_store(void) {
  tt_fixture_open(configure);
}

TestSuite(store_checkpoint, .init = open_store, .fini = tt_fixture_remove);

static bool log_is_short(void) {
  return tt_count_files(&tt, "wal", ".wal") <= CHECKPOINT_BYTES / LOG_FILE_BYTES + 2;
}

/* Writes until the log has released the slow stream's earlier records: a checkpoint is requested
 * once a second, so few records arrive until then. */
static void others_write(struct tt_writer *other, uint64_t first_gen) {
  const struct timespec pause = { .tv_nsec = 10000000 };
  uint64_t upto = first_gen + WRITTEN_BYTES / (1 << 20), gen = first_gen;

  for (; gen < upto || !log_is_short(); gen++) {
    tt_generation(other, gen, gen < upto ? 17 : 1, gen < upto ? 60000 : 1000);
    tt_barrier(&tt);
    /* a slow disk publishes segments later than it writes logs */
    if (gen >= upto) nanosleep(&pause, NULL);
    cr_assert_lt(gen, first_gen + 4000, "the log does not get shorter: %u files; %s",
                 tt_count_files(&tt, "wal", ".wal"), tt.notes);
  }
}

/* Writes batches first..last of generation gen, as tt_generation() would. */
static void batches(struct tt_writer *w, uint64_t gen, unsigned first, unsigned last) {
  unsigned char bytes[1000];

  for (unsigned i = first; i <= last; i++) {
    tt_fill(bytes, sizeof bytes, gen, i);
    tt_batch(w, gen, bytes, sizeof bytes);
  }
}

static void expect_bytes(struct tt_store *t, const struct tc_reply *stored, unsigned n) {
  size_t len;
  unsigned char want[1000];
  char *got = tt_read_file(t, stored->final_path, &len);

  cr_assert_not_null(got, "%s", stored->final_path);
  cr_assert_eq(len, 16 + n * sizeof want);
  for (unsigned i = 0; i < n; i++) {
    tt_fill(want, sizeof want, stored->gen, i);
    cr_assert_eq(memcmp(got + 16 + i * sizeof want, want, sizeof want), 0, "batch %u", i);
  }
  free(got);
}

static struct tc_reply *stored_of(struct tt_store *t, uint32_t stream, uint64_t gen) {
  for (unsigned i = 0; i < tt_count(t, TC_REPLY_STORED); i++) {
    struct tc_reply *reply = tt_wait(t, TC_REPLY_STORED, i);
    if (reply->stream == stream && reply->gen == gen) return reply;
  }
  cr_assert_fail("generation %lu was not stored: %s", gen, t->notes);
  return NULL;
}

Test(store_checkpoint, a_slow_generation_does_not_hold_the_log_and_becomes_whole) {
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  tt_generation(&w, 1, 2, 100);
  batches(&w, 2, 0, 4);
  others_write(&other, 1);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ""), 0, "%s", tt.notes);
  batches(&w, 2, 5, 6);
  tt_end(&w, 2);
  tt_generation(&w, 3, 3, 1000);
  tt_barrier(&tt);
  expect_bytes(&tt, stored_of(&tt, w.stream, 2), 7);
  tt_expect_proven(&tt);
}

Test(store_checkpoint, a_restart_goes_on_in_the_file_that_was_put_down) {
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  tt_generation(&w, 1, 2, 100);
  batches(&w, 2, 0, 4);
  others_write(&other, 1);
  batches(&w, 2, 5, 5); /* these batches are in the log only */
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  for (unsigned i = 0; i < 3; i++) { /* each start finds the same state */
    tt_store_stop(&tt);
    cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  }
  struct tt_writer again = tt_go_on(&tt, 3, SLOW, &w);
  batches(&again, 2, 6, 6);
  tt_end(&again, 2);
  tt_barrier(&tt);
  cr_assert(stored_of(&tt, again.stream, 2)->new_run || tt_count(&tt, TC_REPLY_STORED) > 1);
  expect_bytes(&tt, stored_of(&tt, again.stream, 2), 7);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ""), 0, "%s", tt.notes);
  tt_expect_proven(&tt);
}

Test(store_checkpoint, a_checkpoint_follows_the_other) {
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  for (unsigned round = 0; round < 3; round++) {
    batches(&w, 1, 2 * round, 2 * round + 1);
    others_write(&other, 1 + 5000 * round);
  }
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_go_on(&tt, 3, SLOW, &w);
  tt_end(&again, 1);
  tt_barrier(&tt);
  expect_bytes(&tt, stored_of(&tt, again.stream, 1), 6);
  tt_expect_proven(&tt);
}

static struct tt_store copy;

static void crash(void) {
  tt_store_make(&copy);
  configure(&copy.config);
  tt_crash_into(&tt, copy.dir);
}

static void part_name(struct tt_store *t, char out[300]) {
  char command[200];

  snprintf(command, sizeof command, "ls %s/open/", t->dir);
  FILE *ls = popen(command, "r");
  char name[100] = "";
  cr_assert_not_null(fgets(name, sizeof name, ls));
  pclose(ls);
  name[strcspn(name, "\n")] = '\0';
  snprintf(out, 300, "open/%s", name);
}

Test(store_checkpoint, after_a_kill_what_was_put_down_is_taken_up) {
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  batches(&w, 1, 0, 4);
  others_write(&other, 1);
  batches(&w, 1, 5, 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_barrier(&tt); /* the batch is also in the file, after the checkpoint's bytes */
  crash();
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  struct tt_writer again = tt_go_on(&copy, 1, SLOW, &w);
  tt_end(&again, 1);
  tt_barrier(&copy);
  expect_bytes(&copy, stored_of(&copy, again.stream, 1), 6);
  tt_expect_proven(&copy);
  tt_store_remove(&copy);
}

/* Expects the six batches of the checkpoint's generation to be lost. The writer continues with generation 2. */
static void expect_six_lost(struct tt_writer *w) {
  tt_end(w, 1);
  tt_generation(w, 2, 3, 1000);
  tt_barrier(&copy);
  struct tc_stream_row row = tt_stream_row(&copy, SLOW);
  cr_assert_eq(row.lost_batches, 6);
  cr_assert_eq(row.lost_bytes, 6 * 1000);
  cr_assert_eq(row.generations, 1);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ".part"), 1);
  tt_expect_proven(&copy);
  tt_store_remove(&copy);
}

Test(store_checkpoint, a_damaged_file_costs_its_generation_and_every_batch_is_counted) {
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);
  char part[300];

  tt_header(&other);
  tt_header(&w);
  batches(&w, 1, 0, 4);
  others_write(&other, 1);
  batches(&w, 1, 5, 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  crash();
  part_name(&copy, part);
  tt_flip(&copy, part, 2000);
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  cr_assert_not_null(strstr(copy.notes, "checksum is wrong"), "%s", copy.notes);
  struct tt_writer again = tt_go_on(&copy, 1, SLOW, &w);
  expect_six_lost(&again);
}

/* ---- checkpoints with a right checksum and wrong content ---- */

static void rewrite(int wal, const struct tc_wal_scan *scan, const struct tc_wal_entry *entry,
                    const unsigned char *payload) {
  const struct tc_wal_scan_file *file = &scan->files[entry->file];
  unsigned char head[TC_WAL_HEAD_BYTES];
  off_t at = (off_t)(entry->head.lsn - file->start);
  char name[TC_WAL_NAME_BYTES];

  tc_wal_file_name(file->start, name);
  int fd = openat(wal, name, O_RDWR);
  cr_assert_eq(pread(fd, head, sizeof head, at), sizeof head);
  uint32_t crc = htole32(tb_crc32c_join(tb_crc32c(file->salt, head, sizeof head),
                                        tb_crc32c(0, payload, entry->head.len), entry->head.len));
  at += (off_t)sizeof head;
  cr_assert_eq(pwrite(fd, payload, entry->head.len, at), entry->head.len);
  cr_assert_eq(pwrite(fd, &crc, sizeof crc, at + (off_t)entry->head.len), sizeof crc);
  close(fd);
}

/* Changes the records of the stream with this ref; 0: of any stream. */
static void change_records(const struct tt_store *t, unsigned kind, uint32_t ref,
                           void (*change)(unsigned char *payload, size_t len)) {
  struct tc_wal_scan scan;
  struct tb_diag diag = { 0 };
  const unsigned char *payload;
  unsigned char changed[4096];
  char path[300];
  unsigned n = 0;

  snprintf(path, sizeof path, "%s/wal", t->dir);
  int wal = open(path, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_wal_scan(wal, &diag, &scan), TB_OK, "%s", diag.text);
  for (size_t i = 0; i < scan.nentries; i++) {
    const struct tc_wal_entry *entry = &scan.entries[i];
    if (entry->head.kind != kind || (ref != 0 && entry->head.ref != ref)) continue;
    cr_assert_leq(entry->head.len, sizeof changed);
    cr_assert_eq(tc_wal_scan_payload(&scan, entry, &diag, &payload), TB_OK);
    memcpy(changed, payload, entry->head.len);
    change(changed, entry->head.len);
    rewrite(wal, &scan, entry, changed);
    n++;
  }
  cr_assert_gt(n, 0);
  tc_wal_scan_free(&scan);
  close(wal);
}

static void make_nonsense(unsigned char *payload, size_t len) {
  memset(payload, 0xff, len);
}

static void spoil_the_day(unsigned char *payload, size_t len) {
  char day[TC_DAY_BYTES];
  struct timespec now;

  clock_gettime(CLOCK_REALTIME, &now);
  tc_day((uint64_t)now.tv_sec * 1000000000, day);
  unsigned char *at = memmem(payload, len, day, 8);
  cr_assert_not_null(at, "a checkpoint without a part");
  at[4] = '/';
}

/* Kills the store while a generation has a checkpoint and a part of it is no longer in the log. Changes the checkpoints, starts
 * the copy, and returns the writer there. */
static struct tt_writer start_with_wrong_checkpoints(void (*change)(unsigned char *, size_t),
                                                     const char *words) {
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  batches(&w, 1, 0, 4);
  others_write(&other, 1);
  batches(&w, 1, 5, 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  crash();
  change_records(&copy, TC_WAL_CHECKPOINT, w.stream, change);
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
  cr_assert_not_null(strstr(copy.notes, words), "%s", copy.notes);
  return tt_go_on(&copy, 1, SLOW, &w);
}

Test(store_checkpoint,
     one_that_contradicts_itself_costs_its_generation_and_every_batch_is_counted) {
  struct tt_writer w = start_with_wrong_checkpoints(spoil_the_day, "contradicts itself");

  expect_six_lost(&w);
}

Test(store_checkpoint, one_that_does_not_parse_is_a_gap_that_is_recorded) {
  struct tt_writer w = start_with_wrong_checkpoints(make_nonsense, "does not parse");

  cr_assert_not_null(strstr(copy.notes, "these records are damaged in the log"), "%s", copy.notes);
  tt_end(&w, 1);
  tt_generation(&w, 2, 3, 1000);
  tt_close_with(&w, 9, 9000);
  tt_barrier(&copy);
  cr_assert_eq(tt_stream_row(&copy, SLOW).generations, 1);
  cr_assert_geq(tt_count_files(&copy, "quarantine", ".part"), 1);
  tt_expect_proven(&copy); /* the accounting knows the gap, or it would not add up */
  tt_store_remove(&copy);
}

/* Only this record makes a stream known. A start without it would silently skip the stream's records. */
Test(store_checkpoint, a_stream_record_that_does_not_parse_is_no_start) {
  struct tt_writer first = tt_attach_as(&tt, 2, 8);

  tt_header(&first);
  cr_assert(
      tt_wait_acked(&tt, first.stream, first.seq)); /* the log's snapshot is before the other one */
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW);
  tt_header(&w);
  batches(&w, 1, 0, 4);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  crash();
  change_records(&copy, TC_WAL_STREAM, 0, make_nonsense);
  cr_assert_eq(tt_store_start(&copy), TB_CORRUPT, "%s", copy.notes);
  cr_assert_not_null(strstr(copy.notes, "does not parse"), "%s", copy.notes);
  cr_assert_not_null(strstr(copy.notes, "at lsn "), "%s", copy.notes);
  tt_store_remove(&copy);
}

Test(store_checkpoint, told_losses_are_kept_without_the_log) {
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);

  tt_header(&other);
  tt_header(&w);
  tt_loss(&w, 1, 3, 30, 3000);
  batches(&w, 4, 0, 1);
  others_write(&other, 1);
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_go_on(&tt, 3, SLOW, &w);
  tt_end(&again, 4);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, SLOW);
  cr_assert_eq(row.lost_batches, 30);
  cr_assert_eq(row.generations, 1);
  tt_expect_proven(&tt);
}

Test(store_checkpoint, a_generation_that_only_grows_is_given_up) {
  static unsigned char bytes[60000];

  tt_store_stop(&tt);
  tt.config.log_checkpoint_bytes = 1 << 20;
  tt.config.log_held_bytes_max = 8 << 20;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);
  tt_header(&other);
  tt_generation(&other, 1, 1, 1000);
  tt_barrier(&tt);
  tt_header(&w);
  for (unsigned i = 0; i < 150; i++) tt_batch(&w, 1, bytes, sizeof bytes);
  tt_barrier(&tt);
  others_write(&other, 2);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1, "%s", tt.notes);
  /* On a slow disk the generation is abandoned in the middle: the rest is lost, too, and is
   * counted at the end. */
  tt_close_with(&w, 150, 150 * sizeof bytes);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, SLOW).lost_batches, 150);
  tt_expect_proven(&tt);
}

/* The agent gave the generation up. A meta reports this loss, but the log does not, and retention has deleted the generation's
 * part from quarantine. */
Test(store_checkpoint, a_loss_that_was_told_is_not_told_again_of_the_part) {
  uint64_t patience = tt.config.agents_abandon_after;

  tt_store_stop(&tt);
  tt.config.agents_abandon_after = 1000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, SLOW), other = tt_attach_as(&tt, 2, 8);
  tt_header(&other);
  tt_header(&w);
  tt_generation(&w, 1, 2, 1000);
  batches(&w, 2, 0, 4);
  others_write(&other, 1);
  batches(&w, 2, 5, 5);
  tt_loss(&w, 2, 2, 9, 9000);
  tt_barrier(&tt);
  cr_assert_eq(tt_count_files(&tt, "quarantine", ".part"), 1, "%s", tt.notes);
  tt_copy_log(&tt, "unsaid");
  tt_detach(&tt, w.conn);
  TT_WAIT_UNTIL(tt_stream_row(&tt, SLOW).lost_batches == 9);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm -r wal quarantine/*.part && mv unsaid wal");
  tt.config.agents_abandon_after = patience;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer again = tt_attach_as(&tt, 3, SLOW);
  cr_assert_eq(again.seq, w.seq);
  tt_generation(&again, 3, 3, 1000);
  tt_close_with(&again, 14, 14000);
  tt_barrier(&tt);
  struct tc_stream_row row = tt_stream_row(&tt, SLOW);
  cr_assert_eq(row.lost_batches, 9, "%s", tt.notes);
  cr_assert_eq(row.generations, 2);
  tt_expect_proven(&tt);
}
