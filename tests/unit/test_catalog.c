/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/catalog_write.h"

static char dir[] = "/tmp/tc-catalog-XXXXXX";
static int fd;
static struct tc_catalog *catalog;
static struct tb_diag diag;

static void open_catalog(void) {
  cr_assert_not_null(mkdtemp(dir));
  fd = open(dir, O_RDONLY | O_DIRECTORY);
  cr_assert_eq(tc_catalog_open(fd, true, &diag, &catalog), TB_OK, "%s", diag.text);
}

static void remove_catalog(void) {
  static const char *const names[] = { "catalog.sqlite", "catalog.sqlite-wal",
                                       "catalog.sqlite-shm" };

  tc_catalog_close(catalog);
  for (int i = 0; i < 3; i++) unlinkat(fd, names[i], 0);
  close(fd);
  rmdir(dir);
}

TestSuite(catalog, .init = open_catalog, .fini = remove_catalog);

/* A segment of generations first..last, each 10 bytes, one second of wall clock a generation. */
static void put(unsigned stream, uint64_t first, uint64_t last, unsigned verdict, bool expired) {
  unsigned char id[16], sha[32] = { 0 };
  Tracecollect__V1__GenerationMeta gens[16];
  Tracecollect__V1__Verdict verdicts[16];
  Tracecollect__V1__GenerationMeta *list[16];
  tc_meta meta;
  char odd[] = "odd", even[] = "even", host[] = "host", agent[] = "tracecollect:agent/a",
       day[] = "2026-01-02";

  memset(id, (int)stream, sizeof id);
  tracecollect__v1__segment_meta__init(&meta);
  for (uint64_t gen = first; gen <= last; gen++) {
    size_t i = gen - first;
    tracecollect__v1__generation_meta__init(&gens[i]);
    tracecollect__v1__verdict__init(&verdicts[i]);
    gens[i].gen = gen;
    gens[i].bytes = 10;
    gens[i].batches = 2;
    gens[i].events = 5;
    gens[i].verdict = &verdicts[i];
    verdicts[i].code = (Tracecollect__V1__VerdictCode)verdict;
    list[i] = &gens[i];
  }
  meta.n_generations = last - first + 1;
  meta.generations = list;
  meta.stream = (ProtobufCBinaryData){ 16, id };
  meta.sha256 = (ProtobufCBinaryData){ 32, sha };
  meta.service = stream % 2 ? odd : even;
  meta.instance = host;
  meta.identity = agent;
  meta.day = day;
  meta.bytes = 10 * meta.n_generations;
  meta.first_wall_ns = first * 1000;
  meta.last_wall_ns = last * 1000 + 999;
  meta.expired = expired;
  cr_assert_eq(tc_catalog_put(catalog, &meta, &diag), TB_OK, "%s", diag.text);
}

struct found {
  uint64_t ids[64], first[64];
  unsigned n;
};

static tb_rc collect(void *self, const struct tc_segment_row *row) {
  struct found *found = self;

  found->ids[found->n] = row->id;
  found->first[found->n++] = row->first_gen;
  return TB_OK;
}

static struct found select_segments(struct tc_select select) {
  struct found found = { 0 };

  cr_assert_eq(tc_catalog_segments(catalog, &select, collect, &found, &diag), TB_OK, "%s",
               diag.text);
  return found;
}

static void put_ten(void) {
  for (uint64_t gen = 1; gen <= 10; gen++) put(1, gen, gen, 1, false);
  for (uint64_t gen = 1; gen <= 3; gen++) put(2, gen, gen, 1, false);
}

Test(catalog, no_restriction_selects_all_by_stream_and_generation) {
  put_ten();
  struct found all = select_segments((struct tc_select){ 0 });
  cr_assert_eq(all.n, 13);
  for (unsigned i = 0; i < 10; i++) cr_assert_eq(all.first[i], i + 1);
  cr_assert_eq(all.first[10], 1);
}

Test(catalog, a_span_of_generations_selects_what_it_touches) {
  put(1, 1, 4, 1, false);
  put(1, 5, 8, 1, false);
  put(1, 9, 9, 1, false);
  struct found some = select_segments((struct tc_select){ .first_gen = 4, .last_gen = 5 });
  cr_assert_eq(some.n, 2);
  cr_assert_eq(some.first[0], 1);
  cr_assert_eq(some.first[1], 5);
  cr_assert_eq(select_segments((struct tc_select){ .first_gen = 9 }).n, 1);
}

Test(catalog, since_until_and_last_go_by_the_wall_clock) {
  put_ten();
  struct found some = select_segments(
      (struct tc_select){ .service = "odd", .since_wall_ns = 3500, .until_wall_ns = 5000 });
  cr_assert_eq(some.n, 3); /* 3 reaches into it, 4 is inside, 5 begins at its end */
  cr_assert_eq(some.first[0], 3);
  /* Of each stream its own newest: stream 2 ended long before stream 1. */
  struct found newest = select_segments((struct tc_select){ .last_ns = 1000 });
  cr_assert_eq(newest.n, 4);
  cr_assert_eq(newest.first[0], 9);
  cr_assert_eq(newest.first[2], 2);
}

Test(catalog, a_walk_goes_on_after_the_last_segment_it_gave) {
  put_ten();
  struct found part = select_segments((struct tc_select){ .limit = 4 });
  unsigned seen = part.n;
  while (part.n > 0) {
    part = select_segments((struct tc_select){ .limit = 4, .after = part.ids[part.n - 1] });
    seen += part.n;
  }
  cr_assert_eq(seen, 13);
}

static tb_rc one_stream(void *self, const struct tc_stream_row *row) {
  *(struct tc_stream_row *)self = *row;
  return TB_OK;
}

Test(catalog, totals_follow_each_change_of_a_row) {
  struct tc_stream_row row = { 0 };
  struct tc_catalog_totals totals;

  put(1, 1, 2, 0, false);
  put(1, 3, 3, 0, false);
  put(1, 1, 2, 2, false); /* the verdict came */
  put(1, 3, 3, 1, true);  /* retention took it */
  cr_assert_eq(tc_catalog_streams(catalog, &(struct tc_select){ 0 }, one_stream, &row, &diag),
               TB_OK);
  cr_assert_eq(row.generations, 3);
  cr_assert_eq(row.broken, 2);
  cr_assert_eq(row.batches, 6);
  cr_assert_eq(row.bytes, 30);
  cr_assert_str_eq(row.state, "waiting");
  cr_assert_eq(tc_catalog_totals(catalog, &diag, &totals), TB_OK);
  cr_assert_eq(totals.bytes, 20);
  cr_assert_eq(totals.segments, 1);
  cr_assert_eq(totals.expired, 1);
}

Test(catalog, an_id_stays_with_its_segment) {
  put_ten();
  uint64_t id = select_segments((struct tc_select){ .first_gen = 7 }).ids[0];
  put(1, 7, 7, 2, false);
  struct found one = select_segments((struct tc_select){ .segment = id });
  cr_assert_eq(one.n, 1);
  cr_assert_eq(one.first[0], 7);
}

Test(catalog, a_reader_sees_what_was_committed_while_the_writer_is_open) {
  struct tc_catalog *reader;
  struct found found = { 0 };

  put_ten();
  cr_assert_eq(tc_catalog_open(fd, false, &diag, &reader), TB_OK, "%s", diag.text);
  cr_assert_eq(tc_catalog_begin(catalog, &diag), TB_OK);
  put(1, 11, 11, 1, false);
  cr_assert_eq(tc_catalog_segments(reader, &(struct tc_select){ 0 }, collect, &found, &diag), TB_OK,
               "%s", diag.text);
  cr_assert_eq(found.n, 13);
  cr_assert_eq(tc_catalog_commit(catalog, &diag), TB_OK);
  found.n = 0;
  cr_assert_eq(tc_catalog_segments(reader, &(struct tc_select){ 0 }, collect, &found, &diag),
               TB_OK);
  cr_assert_eq(found.n, 14);
  tc_catalog_close(reader);
}
