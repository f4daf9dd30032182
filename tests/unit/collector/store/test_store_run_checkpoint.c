/* SPDX-License-Identifier: Apache-2.0 */
/* A run that stays open while other streams write: the log is released nevertheless, the run is not cut for that, and nothing
 * of the run is lost when the collector is killed. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/patience.h"
#include "support/store_fixture.h"

enum {
  LOG_FILE_BYTES =
      1
      << 20, /* really 2.6 MB: a file has room for two groups, and the longest record after each */
  CHECKPOINT_BYTES = 2 << 20,
  QUIET = 7,
  BUSY = 8,
  BATCHES = 3,
  BATCH_BYTES = 1000,
  HEADER_BYTES = 16,
  FILES_OF_THE_OPEN = 3, /* of the log, at most: where open data begins, and the files after it */
};

static void configure(struct tc_config *config) {
  config->segment_generations_max = 1000;
  config->segment_bytes_max = UINT64_C(1) << 30;
  config->log_file_bytes = LOG_FILE_BYTES;
  config->log_group_bytes =
      LOG_FILE_BYTES / 4; /* larger groups would let a file grow on a slow disk */
  config->log_checkpoint_bytes = CHECKPOINT_BYTES;
}

static struct tt_store copy;

static void open_store(void) {
  tt_fixture_open(configure);
  tt_store_make(&copy);
  configure(&copy.config);
}

static void remove_stores(void) {
  tt_store_remove(&copy);
  tt_fixture_remove();
}

TestSuite(store_run_checkpoint, .init = open_store, .fini = remove_stores);

static void write_generations(struct tt_writer *w, uint64_t first, uint64_t last) {
  for (uint64_t gen = first; gen <= last; gen++) tt_generation(w, gen, BATCHES, BATCH_BYTES);
}

static bool log_is_short(void) {
  return tt_count_files(&tt, "wal", ".wal") <= CHECKPOINT_BYTES / LOG_FILE_BYTES + 2;
}

/* Writes to the busy stream until the log has released the quiet stream's earlier records. A checkpoint is requested only
 * once a second: so after the first generations it writes slowly, and few records arrive before the checkpoint. */
static void others_write(struct tt_writer *busy) {
  const struct timespec pause = { .tv_nsec = 10000000 };
  uint64_t first = busy->gen + 1, upto = first + 6 * CHECKPOINT_BYTES / (1 << 20);

  for (uint64_t gen = first; gen < upto || !log_is_short(); gen++) {
    busy->gen = gen;
    tt_generation(busy, gen, gen < upto ? 17 : 1, gen < upto ? 60000 : 1000);
    tt_barrier(&tt);
    if (gen >= upto) nanosleep(&pause, NULL);
    cr_assert_lt(gen, first + 4000, "the log does not get shorter: %s", tt.notes);
  }
}

/* Writes the quiet stream's first generations, then the other streams' until the log has
 * released the quiet stream's. */
static void write_both(struct tt_writer *quiet, struct tt_writer *busy, uint64_t generations) {
  tt_header(busy);
  tt_header(quiet);
  write_generations(quiet, 1, generations);
  others_write(busy);
}

static void kill_and_start(void) {
  tt_crash_into(&tt, copy.dir);
  cr_assert_eq(tt_store_start(&copy), TB_OK, "%s", copy.notes);
}

/* Counts the stream's archived traces, and reads the size of the first. */
static unsigned archived(struct tt_store *t, size_t *out_bytes) {
  char command[300], path[300] = "";
  unsigned n = 0;

  snprintf(command, sizeof command, "ls -d %s/archive/*/%.8s*/*.trace 2>/dev/null", t->dir,
           "07070707");
  FILE *ls = popen(command, "r");
  cr_assert_not_null(ls);
  *out_bytes = 0;
  for (; fgets(path, sizeof path, ls) != NULL; n++) {
    path[strcspn(path, "\n")] = '\0';
    if (n > 0) continue;
    free(tt_read_file(t, path + strlen(t->dir) + 1, out_bytes));
  }
  pclose(ls);
  return n;
}

static tb_rc keep_kind(void *self, const struct tc_segment_row *row) {
  *(enum tc_hash_kind *)self = row->hash.kind;
  return TB_OK;
}

/* Returns the kind of hash of the quiet stream's last segment. */
static enum tc_hash_kind kind_of_quiet(void) {
  enum tc_hash_kind kind = TC_HASH_NONE;
  struct tc_catalog *catalog;
  struct tb_diag diag = { 0 };
  unsigned char id[16];
  int fd = open(copy.dir, O_RDONLY | O_DIRECTORY);

  memset(id, QUIET, sizeof id);
  cr_assert_eq(tc_catalog_open(fd, false, &diag, &catalog), TB_OK, "%s", diag.text);
  struct tc_select select = { .stream = id };
  cr_assert_eq(tc_catalog_segments(catalog, &select, keep_kind, &kind, &diag), TB_OK, "%s",
               diag.text);
  tc_catalog_close(catalog);
  close(fd);
  return kind;
}

static size_t bytes_of(unsigned ngens) {
  return HEADER_BYTES + (size_t)ngens * BATCHES * BATCH_BYTES;
}

/* Kills the store while one generation is open; the next start continues the run under another kind of hash, or the
 * same. */
static void go_on_as(const char *before, const char *after, enum tc_hash_kind kind) {
  struct tb_diag diag = { 0 };

  tt_store_stop(&tt);
  cr_assert_eq(tc_config_set(&tt.config, before, &diag), TB_OK);
  cr_assert_eq(tc_config_set(&copy.config, after, &diag), TB_OK);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);
  write_both(&w, &busy, 6);
  tt_batch(&w, 7, "begun", 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_barrier(&tt);
  kill_and_start();
  struct tt_writer again = tt_go_on(&copy, 1, QUIET, &w);
  tt_batch(&again, 7, "ended", 5);
  tt_end(&again, 7);
  tt_close(&again);
  tt_barrier(&copy);
  size_t bytes;
  unsigned files = archived(&copy, &bytes);
  cr_assert_eq(files, 1, "%u: %s", files, copy.notes);
  cr_assert_eq(bytes, bytes_of(6) + 10);
  cr_assert_eq(kind_of_quiet(), kind);
  tt_expect_proven(&copy);
}

Test(store_run_checkpoint, a_run_goes_on_by_xxh3) {
  go_on_as("archive.hash=xxh3", "archive.hash=xxh3", TC_HASH_XXH3);
}

Test(store_run_checkpoint, a_run_goes_on_by_sha256) {
  go_on_as("archive.hash=sha256", "archive.hash=sha256", TC_HASH_SHA256);
}

Test(store_run_checkpoint, a_run_of_sha256_goes_on_by_xxh3) {
  go_on_as("archive.hash=sha256", "archive.hash=xxh3", TC_HASH_XXH3);
}

Test(store_run_checkpoint, a_run_of_xxh3_goes_on_by_sha256) {
  go_on_as("archive.hash=xxh3", "archive.hash=sha256", TC_HASH_SHA256);
}

/* One checkpoint is enough for all records before the open generation, although the last checkpoint was made before the kill.
 * The open generation, with the part of a log file that the start leaves, holds less of the log than allowed; else the run
 * would be cut. */
Test(store_run_checkpoint, a_run_is_not_cut_when_the_log_is_long_at_a_start) {
  const struct timespec pause = { .tv_nsec = 10000000 };
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);
  size_t bytes, more = 0;

  write_both(&w, &busy, 6);
  copy.config.log_checkpoint_bytes = UINT64_C(1) << 40; /* the store asks for no checkpoint */
  kill_and_start();
  w = tt_go_on(&copy, 1, QUIET, &w), busy = tt_go_on(&copy, 2, BUSY, &busy);
  for (unsigned i = 0; i < 6; i++) tt_generation(&busy, ++busy.gen, 17, 60000);
  tt_barrier(&copy);
  tt_batch(&w, 7, "begun", 5);
  cr_assert(tt_wait_acked(&copy, w.stream, w.seq));
  tt_barrier(&copy);
  tt_store_stop(&tt);
  tt_crash_into(&copy, tt.dir);
  tt.config.log_checkpoint_bytes = 4 << 20;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  cr_assert_gt(tt_count_files(&tt, "wal", ".wal"), FILES_OF_THE_OPEN, "it is long");
  struct tt_writer again = tt_go_on(&tt, 1, QUIET, &w);
  for (; tt_count_files(&tt, "wal", ".wal") > FILES_OF_THE_OPEN; more += 4) {
    tt_batch(&again, 7, "more", 4);
    tt_barrier(&tt);
    nanosleep(&pause, NULL);
    cr_assert_lt(more, 16000, "the log does not get shorter: %s", tt.notes);
  }
  cr_assert_eq(archived(&tt, &bytes), 0, "%s", tt.notes);
  tt_end(&again, 7);
  tt_close(&again);
  tt_barrier(&tt);
  cr_assert_eq(archived(&tt, &bytes), 1, "%s", tt.notes);
  cr_assert_eq(bytes, bytes_of(6) + 5 + more);
  tt_expect_proven(&tt);
}

Test(store_run_checkpoint, the_log_goes_and_the_run_goes_on_after_a_kill) {
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);
  size_t bytes;

  write_both(&w, &busy, 10);
  cr_assert_eq(archived(&tt, &bytes), 0, "it was not cut for the log");
  write_generations(&w, 11, 12);
  tt_batch(&w, 13, "begun", 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_barrier(&tt);
  kill_and_start();
  struct tt_writer again = tt_go_on(&copy, 1, QUIET, &w);
  cr_assert_eq(again.seq, w.seq);
  tt_batch(&again, 13, "ended", 5);
  tt_end(&again, 13);
  write_generations(&again, 14, 14);
  tt_close(&again);
  tt_barrier(&copy);
  unsigned files = archived(&copy, &bytes);
  cr_assert_eq(files, 1, "%u: %s", files, copy.notes);
  cr_assert_eq(bytes, bytes_of(13) + 10);
  struct tc_stream_row row = tt_stream_row(&copy, QUIET);
  cr_assert_eq(row.generations, 14);
  cr_assert_eq(row.lost_batches, 0);
  tt_expect_proven(&copy);
}

/* Each generation without a verdict is offered again, in order; the first one is offered as the beginning of a run. */
Test(store_run_checkpoint, what_has_no_verdict_is_offered_again) {
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);
  unsigned offered = 0;

  write_both(&w, &busy, 4);
  kill_and_start();
  struct tt_writer again = tt_go_on(&copy, 1, QUIET, &w);
  write_generations(&again, 5, 5);
  tt_barrier(&copy);
  for (unsigned i = 0; i < tt_count(&copy, TC_REPLY_STORED); i++) {
    struct tc_reply *stored = tt_wait(&copy, TC_REPLY_STORED, i);
    if (stored->stream != again.stream) continue;
    cr_assert_eq(stored->gen, ++offered, "%" PRIu64 " instead of %u", stored->gen, offered);
    cr_assert_eq(stored->new_run, offered == 1);
    cr_assert_eq(stored->offset, bytes_of(offered - 1));
    cr_assert_eq(stored->len, BATCHES * BATCH_BYTES);
  }
  cr_assert_eq(offered, 5);
}

/* The run is sealed after a checkpoint. The start takes the sealed run as it is, although the log still tells of it as open. */
Test(store_run_checkpoint, a_run_that_is_sealed_later_is_taken_from_the_archive) {
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);
  size_t bytes;

  write_both(&w, &busy, 6);
  tt_copy_log(&tt, "unsaid");
  tt_close(&w);
  tt_barrier(&tt);
  cr_assert_eq(archived(&tt, &bytes), 1);
  tt_store_stop(&tt);
  tt_shell(&tt, "rm -r wal && mv unsaid wal");
  kill_and_start();
  tt_barrier(&copy);
  cr_assert_eq(archived(&copy, &bytes), 1);
  cr_assert_eq(bytes, bytes_of(6));
  cr_assert_eq(tt_stream_row(&copy, QUIET).generations, 6);
  tt_expect_proven(&copy);
}

/* Damages a byte far from the last generation, so that a start does not notice it. */
static void damage_the_run(void) {
  tt_shell(
      &tt,
      "cd open && mv 07*.part x && printf Z | dd of=x bs=1 seek=2000 conv=notrunc 2>/dev/null && "
      "mv x 07070707070707070707070707070707-0000000000000001.part");
}

Test(store_run_checkpoint, a_damaged_file_costs_its_run_and_every_batch_is_counted) {
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);

  write_both(&w, &busy, 10);
  damage_the_run();
  kill_and_start();
  tt_barrier(&copy);
  cr_assert_not_null(strstr(copy.notes,
                            "checksum is wrong; the log relied on it: generations 1 to 10 "
                            "are lost"),
                     "%s", copy.notes);
  struct tt_writer again = tt_go_on(&copy, 1, QUIET, &w);
  write_generations(&again, 11, 12);
  tt_close(&again);
  tt_barrier(&copy);
  struct tc_stream_row row = tt_stream_row(&copy, QUIET);
  cr_assert_eq(row.lost_batches, 10 * BATCHES);
  cr_assert_eq(row.lost_bytes, 10 * BATCHES * BATCH_BYTES);
  cr_assert_eq(row.lost_generations, 10);
  cr_assert_eq(row.generations, 2);
  tt_expect_proven(&copy);
}

/* When the start finds the damage, it has already appended the records that the log still had. */
Test(store_run_checkpoint, what_came_behind_a_damaged_run_has_a_file_of_its_own) {
  struct tt_writer w = tt_attach_as(&tt, 1, QUIET), busy = tt_attach_as(&tt, 2, BUSY);
  unsigned offered = 10;
  size_t bytes;

  write_both(&w, &busy, 10);
  damage_the_run();
  write_generations(&w, 11, 12);
  tt_batch(&w, 13, "begun", 5);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  tt_barrier(&tt);
  kill_and_start();
  struct tt_writer again = tt_go_on(&copy, 1, QUIET, &w);
  tt_batch(&again, 13, "ended", 5);
  tt_end(&again, 13);
  tt_barrier(&copy);
  for (unsigned i = 0; i < tt_count(&copy, TC_REPLY_STORED); i++) {
    struct tc_reply *stored = tt_wait(&copy, TC_REPLY_STORED, i);
    if (stored->stream != again.stream) continue;
    cr_assert_eq(stored->gen, ++offered, "%" PRIu64 " instead of %u", stored->gen, offered);
    cr_assert_eq(stored->new_run, offered == 11);
    cr_assert_eq(stored->offset, bytes_of(offered - 11));
  }
  cr_assert_eq(offered, 13);
  tt_close(&again);
  tt_barrier(&copy);
  unsigned files = archived(&copy, &bytes);
  cr_assert_eq(files, 1, "%u: %s", files, copy.notes);
  cr_assert_eq(bytes, bytes_of(2) + 10);
  struct tc_stream_row row = tt_stream_row(&copy, QUIET);
  cr_assert_eq(row.generations, 3);
  cr_assert_eq(row.lost_generations, 10);
  cr_assert_eq(row.lost_batches, 10 * BATCHES);
  cr_assert_eq(row.lost_bytes, 10 * BATCHES * BATCH_BYTES);
  cr_assert_eq(tt_count_files(&copy, "quarantine", ".part"), 1);
  tt_expect_proven(&copy);
}
