/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/catalog/private.h"
#include "archive/catalog/write.h"

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

static uint64_t second_ns = 1000; /* generation N is traced from second N to just before N + 1 */
static uint64_t set_back_from = UINT64_MAX,
                set_back_by; /* the program's clock, as of this generation */
static bool says_no_time;    /* as before Go 1.25 */

static void set_clock(Tracecollect__V1__GenerationMeta *gen) {
  uint64_t began = gen->gen * second_ns - (gen->gen >= set_back_from ? set_back_by : 0);

  gen->first_ns = 1;
  gen->last_ns = (int64_t)second_ns;
  gen->clock_ns = says_no_time ? 0 : 1;
  gen->clock_wall_ns = says_no_time ? 0 : began;
  gen->end_wall_ns = began + second_ns - 1;
}

/* Puts a segment of generations first..last, of 10 bytes each, which arrived at arrival_ns. */
static uint64_t arrival_ns = 1000000;

static void put(unsigned stream, uint64_t first, uint64_t last, unsigned verdict, bool expired) {
  const struct tc_content_hash sha = { .kind = TC_HASH_SHA256 };
  Tracecollect__V1__ContentHash hash;
  unsigned char id[16];
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
    set_clock(&gens[i]);
    verdicts[i].code = (Tracecollect__V1__VerdictCode)verdict;
    list[i] = &gens[i];
  }
  meta.n_generations = last - first + 1;
  meta.generations = list;
  meta.stream = (ProtobufCBinaryData){ 16, id };
  meta.hash = tc_hash_put(&sha, &hash);
  meta.service = stream % 2 ? odd : even;
  meta.instance = host;
  meta.identity = agent;
  meta.day = day;
  meta.bytes = 10 * meta.n_generations;
  meta.first_wall_ns = meta.last_wall_ns = arrival_ns;
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
  cr_assert_eq(some.n, 3); /* 3 reaches into the span, 4 is inside, 5 begins at its end */
  cr_assert_eq(some.first[0], 3);
  /* Each stream has its own newest segment: stream 2 ended long before stream 1. */
  struct found newest = select_segments((struct tc_select){ .last_ns = 1000 });
  cr_assert_eq(newest.n, 4);
  cr_assert_eq(newest.first[0], 9);
  cr_assert_eq(newest.first[2], 2);
}

/* All arrived at the same time, long after; this must not matter. */
Test(catalog, both_ends_of_the_asked_span_belong_to_it) {
  put(1, 5, 5, 1, false); /* traced from 5000 to 5999 */
  static const struct {
    uint64_t since, until;
    unsigned n;
  } spans[] = { { 5999, 0, 1 },    { 6000, 0, 0 },    { 0, 5000, 1 },    { 0, 4999, 0 },
                { 5999, 5999, 1 }, { 5000, 5000, 1 }, { 5100, 5200, 1 }, { 4000, 7000, 1 },
                { 1, 4999, 0 },    { 6000, 9000, 0 } };
  for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
    struct tc_select select = { .since_wall_ns = spans[i].since, .until_wall_ns = spans[i].until };
    cr_expect_eq(select_segments(select).n, spans[i].n, "%zu", i);
  }
  cr_assert_eq(select_segments((struct tc_select){ .since_arrival_ns = arrival_ns }).n, 1);
  cr_assert_eq(select_segments((struct tc_select){ .since_arrival_ns = arrival_ns + 1 }).n, 0);
  cr_assert_eq(select_segments((struct tc_select){ .until_arrival_ns = arrival_ns }).n, 1);
  cr_assert_eq(select_segments((struct tc_select){ .until_arrival_ns = arrival_ns - 1 }).n, 0);
}

static struct tc_segment_row one_row;

static tb_rc keep_row(void *self, const struct tc_segment_row *row) {
  (void)self;
  one_row = *row;
  return TB_OK;
}

Test(catalog, a_row_has_both_times) {
  put(1, 5, 6, 1, false);
  cr_assert_eq(tc_catalog_segments(catalog, &(struct tc_select){ 0 }, keep_row, NULL, &diag),
               TB_OK);
  cr_assert_eq(one_row.first_wall_ns, 5000);
  cr_assert_eq(one_row.last_wall_ns, 6999);
  cr_assert_eq(one_row.first_arrival_ns, arrival_ns);
  cr_assert(!one_row.wall_estimated);
  says_no_time = true;
  put(1, 5, 6, 1, false);
  cr_assert_eq(tc_catalog_segments(catalog, &(struct tc_select){ 0 }, keep_row, NULL, &diag),
               TB_OK);
  cr_assert_eq(one_row.first_wall_ns, 5000);
  cr_assert_eq(one_row.last_wall_ns, 6999);
  cr_assert(one_row.wall_estimated);
}

/* According to generations 6 to 10, they were traced from 3000 to 7999. */
Test(catalog, a_clock_that_was_set_back_selects_by_what_each_generation_says) {
  set_back_from = 6;
  set_back_by = 3000;
  put_ten();
  struct found some = select_segments(
      (struct tc_select){ .service = "odd", .since_wall_ns = 3000, .until_wall_ns = 3999 });
  cr_assert_eq(some.n, 2);
  cr_assert_eq(some.first[0], 3);
  cr_assert_eq(some.first[1], 6);
  /* The newest segment is the last one of the stream, although generation 5 was traced in the same second as 8. */
  struct found newest = select_segments((struct tc_select){ .service = "odd", .last_ns = 1 });
  cr_assert_eq(newest.n, 1);
  cr_assert_eq(newest.first[0], 10);
  newest = select_segments((struct tc_select){ .service = "odd", .last_ns = 2500 });
  cr_assert_eq(newest.n, 4, "%u", newest.n);
  cr_assert_eq(newest.first[0], 5);
  cr_assert_eq(newest.first[3], 10);
}

Test(catalog, the_newest_come_first_page_by_page) {
  struct tc_select select = { .limit = 4 };
  struct found page = { 0 };
  uint64_t last_first = UINT64_MAX;
  unsigned seen = 0;

  put_ten();
  do {
    page.n = 0;
    cr_assert_eq(tc_catalog_newest(catalog, &select, collect, &page, &diag), TB_OK, "%s",
                 diag.text);
    for (unsigned i = 0; i < page.n; i++) {
      cr_assert_leq(page.first[i], last_first);
      last_first = page.first[i];
    }
    seen += page.n;
    select.after = page.n > 0 ? page.ids[page.n - 1] : 0;
  } while (page.n > 0);
  cr_assert_eq(seen, 13);
}

Test(catalog, one_of_an_earlier_schema_is_refused_so_that_it_is_made_anew) {
  struct tc_catalog *other = NULL;

  cr_assert_eq(sqlite3_exec(catalog->db, "PRAGMA user_version=3", NULL, NULL, NULL), SQLITE_OK);
  cr_assert_eq(tc_catalog_open(fd, true, &diag, &other), TB_CORRUPT);
  cr_assert_not_null(strstr(diag.text, "has schema 3"), "%s", diag.text);
  tb_diag_clear(&diag);
  cr_assert_eq(tc_catalog_open(fd, false, &diag, &other), TB_CORRUPT);
  cr_assert_not_null(strstr(diag.text, "has schema 3"), "%s", diag.text);
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
  put(1, 1, 2, 2, false); /* its verdict has arrived */
  put(1, 3, 3, 1, true);  /* retention deleted it */
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
