/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/catalog/catalog.h"
#include "collector/segment/retention.h"
#include "support/patience.h"
#include "support/store_driver.h"

static const uint64_t S = 1000000000, HOUR = UINT64_C(3600) * 1000000000,
                      WALL = UINT64_C(1700000000) * 1000000000;

Test(retention, age_is_told_by_the_wall_clock) {
  struct tc_retention r;
  struct tc_retention_rules rules = { .age_ns = 10 * S };

  tc_retention_init(&r, WALL, S);
  tc_retention_round(&r, WALL + 20 * S, 21 * S, 1000);
  cr_assert(tc_retention_takes(&r, &rules, 1000, UINT64_MAX, WALL + 9 * S));
  cr_assert_not(tc_retention_takes(&r, &rules, 1000, UINT64_MAX, WALL + 11 * S));
  cr_assert_not(
      tc_retention_takes(&r, &rules, 1000, UINT64_MAX, WALL + 90 * S)); /* an end in the future */
}

Test(retention, the_floor_is_of_a_collector_that_has_at_most_half_of_the_disk) {
  const struct tc_retention_rules rules = { .floor_ns = HOUR };

  cr_assert(tc_retention_has_floor(&rules, 400, 800));
  cr_assert_not(tc_retention_has_floor(&rules, 401, 800));
  cr_assert_not(tc_retention_has_floor(&(struct tc_retention_rules){ 0 }, 400, 800));
}

Test(retention, a_clock_that_jumps_suspends_age_for_an_hour_and_nothing_else) {
  struct tc_retention r;
  struct tc_retention_rules age = { .age_ns = 10 * S }, bytes = { .bytes = 500 };

  tc_retention_init(&r, WALL, S);
  tc_retention_round(&r, WALL + 24 * HOUR, 2 * S, 1000);
  cr_assert(r.clock_jumped);
  cr_assert_not(tc_retention_takes(&r, &age, 1000, UINT64_MAX, WALL));
  cr_assert(tc_retention_takes(&r, &bytes, 1000, UINT64_MAX, WALL));
  tc_retention_round(&r, WALL + 24 * HOUR + HOUR / 2, 2 * S + HOUR / 2, 1000);
  cr_assert_not(r.clock_jumped);
  cr_assert_not(tc_retention_takes(&r, &age, 1000, UINT64_MAX, WALL));
  tc_retention_round(&r, WALL + 25 * HOUR, 2 * S + HOUR, 1000);
  cr_assert(tc_retention_takes(&r, &age, 1000, UINT64_MAX, WALL));
}

Test(retention, a_jump_back_suspends_as_well) {
  struct tc_retention r;

  tc_retention_init(&r, WALL, S);
  tc_retention_round(&r, WALL - 2 * HOUR, 2 * S, 1000);
  cr_assert(r.clock_jumped);
}

Test(retention, a_minute_takes_a_tenth_at_most) {
  struct tc_retention r;
  uint64_t taken = 0;

  tc_retention_init(&r, WALL, 100 * S);
  tc_retention_round(&r, WALL, 100 * S, 10000);
  while (tc_retention_allows(&r, 90)) {
    tc_retention_took(&r, 90);
    taken += 90;
  }
  cr_assert_leq(taken, 1000);
  cr_assert_gt(taken, 900);
  tc_retention_round(&r, WALL + 30 * S, 130 * S, 9000);
  cr_assert_not(tc_retention_allows(&r, 90));
  tc_retention_round(&r, WALL + 61 * S, 161 * S, 9000);
  cr_assert(tc_retention_allows(&r, 90));
}

Test(retention, the_oldest_goes_its_meta_stays_and_the_catalog_says_so) {
  static struct tt_store t;

  tt_store_make(&t);
  t.config.retention_every = 10000000;
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  struct tt_writer w = { .t = &t, .conn = 1 };
  tt_attach(&t, 1, 1, "tracecollect:agent/a");
  w.stream = tt_attached(&t, 1, &w.seq);
  tt_header(&w);
  for (uint64_t gen = 1; gen <= 20; gen++) tt_generation(&w, gen, 3, 1000);
  tt_batch(&w, 21, "unpublished", 11);
  tt_barrier(&t);
  cr_assert_eq(tt_count_files(&t, "archive", ".trace"), 20);
  tt_store_stop(&t);
  t.config.retention_bytes = 20 * 3016 - 1; /* one too many; a minute may delete two of twenty */
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  struct tc_store_stats stats;
  do tc_store_stats(t.store, &stats);
  while (stats.expired_segments == 0);
  tt_barrier(&t);
  tc_store_stats(t.store, &stats);
  tt_store_stop(&t);
  cr_assert_eq(tt_count_files(&t, "archive", ".trace"), 19);
  cr_assert_eq(tt_count_files(&t, "archive", ".meta"), 20);
  cr_assert_eq(stats.archive_bytes, 19 * 3016);
  tt_store_remove(&t);
}

/* Generations 1..n are begun and abandoned, a megabyte each. */
static void give_up(struct tt_writer *w, uint64_t from, uint64_t upto) {
  static const unsigned char bytes[1 << 20];

  for (uint64_t gen = from; gen <= upto; gen++) {
    tt_batch(w, gen, bytes, sizeof bytes);
    tt_loss(w, gen, gen, 1, sizeof bytes);
  }
  tt_barrier(w->t);
}

static bool has_part(struct tt_store *t, uint64_t gen) {
  char path[256];

  snprintf(path, sizeof path, "%s/quarantine/01010101010101010101010101010101-%016lx.part", t->dir,
           gen);
  return access(path, F_OK) == 0;
}

Test(retention, quarantine_keeps_its_size_and_the_youngest) {
  static struct tt_store t;
  struct tc_store_stats stats = { 0 };

  tt_store_make(&t);
  t.config.retention_every = 10000000;
  t.config.retention_quarantine_bytes = (7 << 20) / 2;
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  struct tt_writer w = { .t = &t, .conn = 1 };
  tt_attach(&t, 1, 1, "tracecollect:agent/a");
  w.stream = tt_attached(&t, 1, &w.seq);
  tt_header(&w);
  give_up(&w, 1, 8);
  TT_WAIT_UNTIL((tc_store_stats(t.store, &stats), stats.quarantine_expired >= 5));
  cr_assert_eq(stats.quarantine_files, 3);
  cr_assert_eq(stats.quarantine_expired, 5);
  cr_assert_eq(stats.quarantine_bytes, 3 * ((1 << 20) + 16));
  cr_assert_eq(tt_count_files(&t, "quarantine", ".part"), 3);
  cr_assert(has_part(&t, 8) && has_part(&t, 7) && has_part(&t, 6));
  tt_store_remove(&t);
}

/* Many parts at once, in an order that is not their order of age. */
Test(retention, of_many_in_quarantine_the_youngest_stay) {
  enum { PARTS = 3000, STAY = 100 };
  static struct tt_store t;
  struct tc_store_stats stats = { 0 };
  char path[256];

  tt_store_make(&t);
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  tt_store_stop(&t);
  for (unsigned i = 0; i < PARTS; i++) {
    unsigned age = i * 1777 % PARTS; /* each once */
    struct timespec at[2] = { { .tv_sec = 1800000000 - age }, { .tv_sec = 1800000000 - age } };
    snprintf(path, sizeof path, "%s/quarantine/01010101010101010101010101010101-%016x.part", t.dir,
             age + 1);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0640);
    cr_assert_geq(fd, 0);
    cr_assert_eq(futimens(fd, at), 0);
    close(fd);
  }
  t.config.retention_every = 10000000;
  t.config.retention_age = 0;
  t.config.retention_quarantine_bytes = STAY * 4096;
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  TT_WAIT_UNTIL((tc_store_stats(t.store, &stats), stats.quarantine_expired >= PARTS - STAY));
  cr_expect_eq(stats.quarantine_files, STAY);
  cr_expect_eq(tt_count_files(&t, "quarantine", ".part"), STAY);
  for (unsigned age = 0; age < STAY; age++) cr_expect(has_part(&t, age + 1));
  tt_store_remove(&t);
}

Test(retention, quarantine_goes_by_age_also_what_an_earlier_run_left) {
  static struct tt_store t;
  struct timespec old[2] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };
  char path[256];

  tt_store_make(&t);
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  struct tt_writer w = { .t = &t, .conn = 1 };
  tt_attach(&t, 1, 1, "tracecollect:agent/a");
  w.stream = tt_attached(&t, 1, &w.seq);
  tt_header(&w);
  give_up(&w, 1, 2);
  tt_generation(&w, 3, 1, 100); /* settles all before it, so that none of it is replayed */
  tt_barrier(&t);
  tt_store_stop(&t);
  snprintf(path, sizeof path, "%s/quarantine/01010101010101010101010101010101-%016x.part", t.dir,
           1u);
  cr_assert_eq(utimensat(AT_FDCWD, path, old, 0), 0);
  t.config.retention_every = 10000000;
  t.config.retention_age = UINT64_C(3600000000000);
  cr_assert_eq(tt_store_start(&t), TB_OK, "%s", t.notes);
  TT_WAIT_UNTIL(!has_part(&t, 1));
  cr_assert(has_part(&t, 2));
  tt_store_remove(&t);
}
