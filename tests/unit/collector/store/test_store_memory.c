/* SPDX-License-Identifier: Apache-2.0 */
/* Durability and replies of the store when an allocation fails at the worst place: faults that
 * simulated lives found (docs/RELIABILITY.md, row 4), each reproduced in a real store. A scene
 * selects the allocation by its size. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/grow.h"
#include "collector/commit/stream_table.h"
#include "collector/sealer/private.h"
#include "support/patience.h"
#include "support/store_calls.h"
#include "support/store_fixture.h"

enum { LOG_FILE_BYTES = 1 << 20, STREAM = 7, OTHER = 8 };

static atomic_size_t fail_bytes;
static atomic_int fail_times;

void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_reallocarray(void *old, size_t n, size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_reallocarray(void *old, size_t n, size_t bytes);

static bool fails(size_t bytes) {
  if (bytes != fail_bytes || fail_times == 0) return false;
  return atomic_fetch_sub(&fail_times, 1) > 0;
}

void *__wrap_calloc(size_t n, size_t bytes) {
  return fails(n * bytes) ? NULL : __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes) {
  return fails(bytes) ? NULL : __real_realloc(old, bytes);
}

void *__wrap_reallocarray(void *old, size_t n, size_t bytes) {
  return fails(n * bytes) ? NULL : __real_reallocarray(old, n, bytes);
}

tb_rc __real_tb_grow(void *array, size_t *room, size_t wanted, size_t item_bytes);
tb_rc __wrap_tb_grow(void *array, size_t *room, size_t wanted, size_t item_bytes);

enum {
  SEALER_POINTERS = 1
}; /* instead of a size: the sealer's arrays of pointers, on the sealer's thread */

static bool is_sealer(void) {
  char name[16];

  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
         strcmp(name, "tc-sealer") == 0;
}

tb_rc __wrap_tb_grow(void *array, size_t *room, size_t wanted, size_t item_bytes) {
  bool named = wanted > *room && item_bytes == sizeof(void *) && is_sealer();

  if (named && fails(SEALER_POINTERS)) return TB_NOMEM;
  return __real_tb_grow(array, room, wanted, item_bytes);
}

/* Makes the next `times` allocations of this size fail. */
static void be_short_of(size_t bytes, int times) {
  fail_bytes = bytes;
  fail_times = times;
}

#define EXPECT_SHORTAGE_OVER() cr_assert_leq(fail_times, 0, "the store did not ask for it")

static void configure(struct tc_config *config) {
  config->log_file_bytes = LOG_FILE_BYTES;
  config->log_group_bytes = 64 << 10;
}

static void open_store(void) {
  tt_fixture_open(configure);
}

static void remove_store(void) {
  be_short_of(0, 0);
  tt_calls_watch(NULL);
  tt_fixture_remove();
}

TestSuite(store_memory, .init = open_store, .fini = remove_store);

static struct tt_writer begin(void) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  tt_header(&w);
  tt_generation(&w, 1, 3, 1000);
  tt_barrier(&tt);
  return w;
}

static void batches(struct tt_writer *w, uint64_t gen, unsigned first, unsigned last) {
  unsigned char bytes[1000];

  for (unsigned i = first; i <= last; i++) {
    tt_fill(bytes, sizeof bytes, gen, i);
    tt_batch(w, gen, bytes, sizeof bytes);
  }
}

/* ---- replies that somebody waits for ---- */

Test(store_memory, who_is_refused_is_told_once_there_is_memory) {
  struct tt_writer w = begin();

  tt_calls_watch(&tt);
  tt_calls_fail("sync wal/*", EIO, 1);
  be_short_of(tc_reply_bytes(TC_REPLY_REFUSED), 3);
  batches(&w, 2, 0, 0);
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_REFUSED, 0), "its agent would wait for ever");
  EXPECT_SHORTAGE_OVER();
  w = tt_attach_as(&tt, 2, STREAM);
  tt_generation(&w, 2, 3, 1000);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 2);
  tt_expect_proven(&tt);
}

/* The superseded connection may be the younger one, if its HELLO was faster. */
Test(store_memory, who_is_superseded_is_told_once_there_is_memory) {
  struct tt_writer w = begin();

  be_short_of(tc_reply_bytes(TC_REPLY_SUPERSEDED), 2);
  struct tt_writer again = tt_attach_as(&tt, 2, STREAM);
  cr_assert_eq(again.seq, w.seq);
  EXPECT_SHORTAGE_OVER();
  cr_assert_eq(tt_count(&tt, TC_REPLY_SUPERSEDED), 1, "%s", tt.notes);
  tt_expect_proven(&tt);
}

Test(store_memory, that_the_disk_is_broken_is_told_once_there_is_memory) {
  struct tt_writer w = begin();

  tt_calls_watch(&tt);
  tt_calls_fail("sync wal/*", EIO, 3);
  for (unsigned i = 0; i < 3; i++) {
    if (i > 0) w = tt_attach_as(&tt, 1 + i, STREAM);
    if (i == 2) be_short_of(tc_reply_bytes(TC_REPLY_FAILED), 4);
    batches(&w, 2, 0, 0);
    cr_assert_not_null(tt_wait(&tt, TC_REPLY_REFUSED, i), "%s", tt.notes);
  }
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_FAILED, 0), "the program would go on for ever");
  EXPECT_SHORTAGE_OVER();
}

/* After a start the map of connections is empty; the other maps are not. */
Test(store_memory, a_stream_that_cannot_be_connected_does_not_count_as_live) {
  enum { MAP_BYTES = 16 * (2 * sizeof(uint64_t) + 1) };
  struct tc_store_stats stats;

  begin();
  tt_store_stop(&tt);
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  be_short_of(MAP_BYTES, 1);
  tt_attach(&tt, 1, STREAM, "tracecollect:agent/a");
  cr_assert_not_null(tt_wait(&tt, TC_REPLY_REFUSED, 0));
  EXPECT_SHORTAGE_OVER();
  tt_barrier(&tt);
  tc_store_stats(tt.store, &stats);
  cr_assert_eq(stats.streams_live, 0);
  tt_attach_as(&tt, 2, STREAM);
  tt_barrier(&tt);
  tc_store_stats(tt.store, &stats);
  cr_assert_eq(stats.streams_live, 1);
  tt_detach(&tt, 2);
  tt_barrier(&tt);
  tc_store_stats(tt.store, &stats);
  cr_assert_eq(stats.streams_live, 0);
  tt_expect_proven(&tt);
}

/* ---- what is durable */

/* The store must remember a record's place in the log without an allocation. Else the record's file would be deleted. */
Test(store_memory, a_record_that_is_acked_stays_in_the_log) {
  struct tt_writer w = begin(), other = tt_attach_as(&tt, 2, OTHER);
  char command[200];

  tt_header(&other);
  tt_barrier(&tt);
  be_short_of(sizeof(struct tc_unit), 1);
  batches(&w, 2, 0, 0);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  EXPECT_SHORTAGE_OVER();
  for (uint64_t gen = 1; gen <= 30; gen++) { /* many files of the log */
    tt_generation(&other, gen, 5, 60000);
    tt_barrier(&tt);
    if (gen == 8) batches(&w, 2, 1, 1);
  }
  snprintf(command, sizeof command, "test -e %s/wal/0000000000000000.wal", tt.dir);
  cr_assert_eq(system(command), 0, "the file that has it is gone");
  tt_end(&w, 2);
  tt_barrier(&tt);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 2);
  tt_expect_proven(&tt);
}

Test(store_memory, a_generation_that_its_stream_never_ended_is_told_as_lost) {
  struct tt_writer w = begin();

  batches(&w, 2, 0, 1);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  be_short_of(4 * sizeof(struct tc__loss), 1);
  tt_close_with(&w, 5, 5000);
  tt_barrier(&tt);
  EXPECT_SHORTAGE_OVER();
  cr_assert_eq(tt_stream_row(&tt, STREAM).lost_batches, 2, "%s", tt.notes);
  tt_expect_proven(&tt);
}

Test(store_memory, a_loss_is_settled_when_its_meta_has_it_and_not_before) {
  struct tt_writer w = begin();

  tt_loss(&w, 2, 2, 9, 9000);
  cr_assert(tt_wait_acked(&tt, w.stream, w.seq));
  be_short_of(2 * sizeof(void *), 1); /* the meta's losses, with one more */
  tt_close_with(&w, 12, 12000);
  tt_barrier(&tt);
  EXPECT_SHORTAGE_OVER();
  cr_assert_eq(tt_stream_row(&tt, STREAM).lost_batches, 9, "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* When the batch is tried again, its file exists already, but has no generation yet. */
Test(store_memory, a_batch_that_begins_a_file_is_tried_again) {
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);

  be_short_of(SEALER_POINTERS, 1); /* the list of dirty files */
  tt_header(&w);
  tt_generation(&w, 5, 3, 1000);
  tt_barrier(&tt);
  EXPECT_SHORTAGE_OVER();
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 1, "%s", tt.notes);
  tt_expect_proven(&tt);
}

/* The segment's row is in the catalog, but its publication is not complete: the retry reports
 * what was there before. */
Test(store_memory, what_is_being_published_does_not_expire) {
  enum { TRIES = 1 << 20 };

  tt_store_stop(&tt);
  tt.config.retention_age = 1;
  tt.config.retention_every = 10000000;
  cr_assert_eq(tt_store_start(&tt), TB_OK, "%s", tt.notes);
  struct tt_writer w = tt_attach_as(&tt, 1, STREAM);
  tt_header(&w);
  batches(&w, 1, 0, 2);
  tt_barrier(&tt);
  be_short_of(SEALER_POINTERS, TRIES); /* list of what is to be settled */
  tt_end(&w, 1);
  /* There is a try each tenth of a second, and after each try a round of retention. */
  for (int ms = 0; fail_times > TRIES - 5 && ms < TT_PATIENCE_MS; ms++) usleep(1000);
  cr_assert_leq(fail_times, TRIES - 5, "it is tried again");
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 1, "%s", tt.notes);
  be_short_of(0, 0);
  for (int ms = 0; tt_count_files(&tt, "archive", ".trace") > 0 && ms < TT_PATIENCE_MS; ms++)
    usleep(1000);
  cr_assert_eq(tt_stream_row(&tt, STREAM).generations, 1);
  cr_assert_eq(tt_count_files(&tt, "archive", ".trace"), 0);
  tt_expect_proven(&tt);
}
