/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog's way to its rows: by an index, whatever is asked for, and to the same rows by
 * each index; pages stay whole while rows come and go. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/catalog/private.h"
#include "archive/catalog/write.h"

static char dir[] = "/tmp/tc-select-XXXXXX";
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

TestSuite(catalog_select, .init = open_catalog, .fini = remove_catalog);

/* Adds a run of a stream: generations first..last, traced from `began` for `length`, arrived
 * `later` after that. */
static void put(unsigned stream, uint64_t first, uint64_t last, uint64_t began, uint64_t length,
                uint64_t later, bool open) {
  const struct tc_content_hash sha = { .kind = TC_HASH_SHA256 };
  Tracecollect__V1__ContentHash hash;
  unsigned char id[16];
  Tracecollect__V1__GenerationMeta gens[2];
  Tracecollect__V1__GenerationMeta *list[] = { &gens[0], &gens[1] };
  char odd[] = "odd", even[] = "even", here[] = "here", there[] = "there", agent[] = "a",
       day[] = "2026-01-02";
  tc_meta meta;

  memset(id, (int)stream, sizeof id);
  tracecollect__v1__segment_meta__init(&meta);
  for (size_t i = 0; i < 2; i++) {
    tracecollect__v1__generation_meta__init(&gens[i]);
    gens[i].gen = i == 0 ? first : last;
    gens[i].first_ns = gens[i].clock_ns = 1;
    gens[i].last_ns = 1;
    gens[i].clock_wall_ns = i == 0 ? began : began + length;
    gens[i].end_wall_ns = gens[i].clock_wall_ns;
  }
  meta.n_generations = 2;
  meta.generations = list;
  meta.stream = (ProtobufCBinaryData){ 16, id };
  meta.hash = tc_hash_put(&sha, &hash);
  meta.service = stream % 2 ? odd : even;
  meta.instance = stream % 3 ? here : there;
  meta.identity = agent;
  meta.day = day;
  meta.bytes = 10;
  meta.first_wall_ns = began + later;
  meta.last_wall_ns = began + length + later;
  struct tc_open_run run = { .path = "open/x", .rest = &meta };
  cr_assert_eq(open ? tc_catalog_put_open(catalog, &run, &diag)
                    : tc_catalog_put(catalog, &meta, &diag),
               TB_OK, "%s", diag.text);
}

/* ---- plans */

static const char *plan_of(const char *sql) {
  static char plan[2000];
  char explain[4000];
  sqlite3_stmt *stmt;

  snprintf(explain, sizeof explain, "EXPLAIN QUERY PLAN %s", sql);
  cr_assert_eq(sqlite3_prepare_v2(catalog->db, explain, -1, &stmt, NULL), SQLITE_OK, "%s: %s",
               sqlite3_errmsg(catalog->db), sql);
  plan[0] = '\0';
  while (sqlite3_step(stmt) == SQLITE_ROW) {
    strcat(plan, (const char *)sqlite3_column_text(stmt, 3));
    strcat(plan, "; ");
  }
  sqlite3_finalize(stmt);
  return plan;
}

static const unsigned char stream_id[16] = { 7 };

#define PLACE .place = { stream_id, 3, 4 }

static const struct shape {
  const char *words;
  struct tc_select select;
  enum tc__way way;
  bool newest;
  const char *plan; /* the begin of the query plan */
} shapes[] = {
  { "one", { .segment = 3 }, TC__BY_ID, false, "SEARCH g USING INTEGER PRIMARY KEY (rowid=?)" },
  { "open ones",
    { .only_open = true },
    TC__BY_OPEN,
    false,
    "SEARCH g USING INDEX segments_open (open=?)" },
  { "all",
    { 0 },
    TC__BY_STREAM,
    false,
    "SCAN s USING COVERING INDEX sqlite_autoindex_streams_1; "
    "SEARCH g USING INDEX sqlite_autoindex_segments_1 (stream=?); " },
  { "all, on",
    { PLACE },
    TC__BY_STREAM,
    false,
    "SEARCH s USING COVERING INDEX sqlite_autoindex_streams_1 (stream>?); "
    "SEARCH g USING INDEX sqlite_autoindex_segments_1 (stream=?" },
  { "service",
    { .service = "a" },
    TC__BY_STREAM,
    false,
    "SEARCH s USING COVERING INDEX streams_service (service=?); "
    "SEARCH g USING INDEX sqlite_autoindex_segments_1 (stream=?); " },
  { "service, long span",
    { .service = "a", .since_wall_ns = 1, .until_wall_ns = 2 },
    TC__BY_STREAM,
    false,
    "SEARCH s USING INDEX streams_service (service=?); "
    "SEARCH g USING INDEX segments_span (stream=? AND last_wall>? AND last_wall<?)" },
  { "service, short span",
    { .service = "a", .since_wall_ns = 1, .until_wall_ns = 2 },
    TC__BY_SERVICE_WALL,
    false,
    "SEARCH g USING INDEX segments_service_time (service=? AND first_wall>? AND first_wall<?)" },
  { "service, newest",
    { .service = "a" },
    TC__BY_SERVICE_WALL,
    true,
    "SEARCH g USING INDEX segments_service_time (service=?)" },
  { "service, newest, on",
    { .service = "a", PLACE },
    TC__BY_SERVICE_WALL,
    true,
    "SEARCH g USING INDEX segments_service_time (service=? AND first_wall<?)" },
  { "newest", { 0 }, TC__BY_WALL, true, "SCAN g USING INDEX segments_time" },
  { "newest, on",
    { PLACE },
    TC__BY_WALL,
    true,
    "SEARCH g USING INDEX segments_time (first_wall<?)" },
  { "span",
    { .since_wall_ns = 1, .until_wall_ns = 2 },
    TC__BY_WALL,
    false,
    "SEARCH g USING INDEX segments_time (first_wall>? AND first_wall<?)" },
  { "instance",
    { .instance = "a" },
    TC__BY_STREAM,
    false,
    "SEARCH s USING COVERING INDEX streams_instance (instance=?); "
    "SEARCH g USING INDEX sqlite_autoindex_segments_1 (stream=?); " },
  { "last",
    { .last_ns = 1 },
    TC__BY_STREAM,
    false,
    "SCAN s USING COVERING INDEX sqlite_autoindex_streams_1; "
    "SEARCH g USING INDEX segments_span (stream=? AND last_wall>?)" },
  { "arrived",
    { .since_arrival_ns = 1, .until_arrival_ns = 2 },
    TC__BY_ARRIVAL,
    false,
    "SEARCH g USING INDEX segments_arrival (last_arrival>? AND last_arrival<?)" },
  { "stream, a moment",
    { .stream = stream_id, .since_wall_ns = 1, .until_wall_ns = 1 },
    TC__BY_STREAM,
    false,
    "SEARCH s USING INDEX sqlite_autoindex_streams_1 (stream=?); "
    "SEARCH g USING INDEX segments_span (stream=? AND last_wall>? AND last_wall<?)" },
  { "stream, a generation",
    { .stream = stream_id, .first_gen = 1, .last_gen = 1 },
    TC__BY_STREAM,
    false,
    "SEARCH s USING INDEX sqlite_autoindex_streams_1 (stream=?); "
    "SEARCH g USING INDEX sqlite_autoindex_segments_1 (stream=? AND first_gen>? AND first_gen<?)" },
};

Test(catalog_select, segments_are_found_by_an_index) {
  struct tc__sql sql;

  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const struct shape *shape = &shapes[i];
    tc__write_segments(&shape->select, shape->way, shape->newest, &sql);
    const char *plan = plan_of(sql.text);
    cr_expect_eq(strncmp(plan, shape->plan, strlen(shape->plan)), 0, "%s: %s", shape->words, plan);
    /* If read stream by stream, a page is sorted at most within a stream. */
    if (shape->way == TC__BY_STREAM && !shape->newest)
      cr_expect_null(strstr(plan, "USE TEMP B-TREE FOR ORDER BY"), "%s: %s", shape->words, plan);
  }
}

Test(catalog_select, streams_are_found_by_an_index) {
  struct tc__sql sql;

  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const struct shape *shape = &shapes[i];
    if (shape->newest || shape->select.place.stream != NULL) continue;
    tc__write_streams(&shape->select, shape->way, &sql);
    const char *plan = plan_of(sql.text);
    cr_expect_null(strstr(plan, "SCAN g"), "%s: %s", shape->words, plan);
    cr_expect_null(strstr(plan, "SCAN n"), "%s: %s", shape->words, plan);
    cr_expect_null(strstr(plan, "ORDER BY"), "%s: %s", shape->words, plan);
  }
}

static tb_rc ignore_row(void *self, const struct tc_segment_row *row) {
  (void)self, (void)row;
  return TB_OK;
}

static tb_rc ignore_service(void *self, const char *service, uint64_t bytes) {
  (void)self, (void)service, (void)bytes;
  return TB_OK;
}

/* Each statement that stays prepared. */
Test(catalog_select, the_sealer_and_retention_scan_nothing) {
  struct tc_stream_row live = { .service = "s" };
  struct tc_segment_row after = { .id = 1 };
  struct tc_catalog_totals totals;
  char day[TC_DAY_BYTES];
  uint64_t gen;
  unsigned n = 0;

  put(1, 1, 2, 10, 5, 0, false);
  put(1, 3, 4, 20, 5, 0, true);
  cr_assert_eq(tc_catalog_drop_open(catalog, stream_id, 1, &diag), TB_OK);
  cr_assert_eq(tc_catalog_put_live(catalog, &live, &diag), TB_OK);
  cr_assert_eq(tc_catalog_totals(catalog, &diag, &totals), TB_OK);
  cr_assert_eq(tc_catalog_note(catalog, stream_id, &diag, day, &gen), TB_NOTFOUND);
  cr_assert_eq(tc_catalog_pending(catalog, ignore_row, NULL, &diag), TB_OK);
  cr_assert_eq(tc_catalog_heavy(catalog, 1, ignore_service, NULL, &diag), TB_OK);
  for (int i = 0; i < 2; i++)
    cr_assert_eq(
        tc_catalog_oldest(catalog, i == 0 ? NULL : "odd", &after, 64, ignore_row, NULL, &diag),
        TB_OK, "%s", diag.text);
  for (size_t i = 0; i < TC__STATEMENTS; i++) {
    if (catalog->stmt[i] == NULL || i == TC__BEGIN || i == TC__COMMIT) continue;
    const char *plan = plan_of(sqlite3_sql(catalog->stmt[i]));
    /* The index of pending rows holds nothing else; services are few. */
    bool is_walk = i == TC__PENDING || i == TC__HEAVY || i == TC__TOTALS;
    cr_expect(is_walk || strstr(plan, "SCAN ") == NULL, "%s: %s", sqlite3_sql(catalog->stmt[i]),
              plan);
    if (i == TC__PENDING)
      cr_expect_not_null(strstr(plan, "USING INDEX segments_pending"), "%s", plan);
    n++;
  }
  cr_assert_geq(n, 9);
}

/* A row changes so many indexes that a statement's undo journal would be larger than what SQLite
 * by itself keeps in memory. */
Test(catalog_select, no_temporary_file_is_needed) {
  struct tc_catalog *reader;
  struct tc_catalog *both[2] = { catalog };

  cr_assert_eq(tc_catalog_open(fd, false, &diag, &reader), TB_OK, "%s", diag.text);
  both[1] = reader;
  for (int i = 0; i < 2; i++) {
    sqlite3_stmt *stmt;
    cr_assert_eq(sqlite3_prepare_v2(both[i]->db, "PRAGMA temp_store", -1, &stmt, NULL), SQLITE_OK);
    cr_assert_eq(sqlite3_step(stmt), SQLITE_ROW);
    cr_assert_eq(sqlite3_column_int(stmt, 0), 2, "in memory");
    sqlite3_finalize(stmt);
  }
  tc_catalog_close(reader);
}

/* ---- what is found */

struct found {
  struct {
    unsigned stream;
    uint64_t first_gen;
  } rows[512];
  size_t n;
  struct tc_segment_row last;
};

static tb_rc collect(void *self, const struct tc_segment_row *row) {
  struct found *found = self;

  found->rows[found->n].stream = row->stream[0];
  found->rows[found->n++].first_gen = row->first_gen;
  found->last = *row;
  return TB_OK;
}

static uint64_t chance(void) {
  static uint64_t state = 1;

  state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return state >> 33;
}

/* Runs of any length, clocks that are set back, some runs that arrive late. */
static void put_many(void) {
  for (unsigned stream = 1; stream <= 12; stream++) {
    uint64_t gen = 1;
    for (unsigned i = 0; i < 20; i++) {
      uint64_t n = 2 + chance() % 9, began = 1 + chance() % 1000;
      put(stream, gen, gen + n - 1, began, chance() % (i == 7 ? 500 : 40), chance() % 90, i == 19);
      gen += n;
    }
  }
}

static struct found walk(const struct tc_select *select, enum tc__way way, bool newest) {
  static struct found found;

  found.n = 0;
  cr_assert_eq(tc__walk_segments(catalog, select, way, newest, collect, &found, &diag), TB_OK, "%s",
               diag.text);
  return found;
}

static void expect_same(const struct found *a, const struct found *b, unsigned turn) {
  cr_assert_eq(a->n, b->n, "%u: %zu and %zu", turn, a->n, b->n);
  cr_assert_eq(memcmp(a->rows, b->rows, a->n * sizeof *a->rows), 0, "%u", turn);
}

Test(catalog_select, every_way_finds_the_same_rows) {
  static struct found by_stream, by_wall, other;
  size_t seen = 0;

  put_many();
  for (unsigned turn = 0; turn < 300; turn++) {
    uint64_t since = 1 + chance() % 1000;
    struct tc_select s = { .since_wall_ns = since, .until_wall_ns = since + chance() % 200 };
    s.service = turn % 2 ? "odd" : NULL;
    s.instance = turn % 3 ? NULL : "here";
    s.last_ns = turn % 5 ? 0 : 1 + chance() % 300;
    s.first_gen = turn % 7 ? 0 : 1 + chance() % 100;
    s.last_gen = s.first_gen == 0 ? 0 : s.first_gen + chance() % 10;
    for (int newest = 0; newest < 2; newest++) {
      by_stream = walk(&s, TC__BY_STREAM, newest);
      by_wall = walk(&s, TC__BY_WALL, newest);
      expect_same(&by_stream, &by_wall, turn);
      if (s.service != NULL) {
        other = walk(&s, TC__BY_SERVICE_WALL, newest);
        expect_same(&by_stream, &other, turn);
      }
      seen += by_stream.n;
    }
    struct tc_select arrived = { .since_arrival_ns = since, .until_arrival_ns = since + 50 };
    by_stream = walk(&arrived, TC__BY_STREAM, false);
    other = walk(&arrived, TC__BY_ARRIVAL, false);
    expect_same(&by_stream, &other, turn);
  }
  cr_assert_gt(seen, 1000);
}

/* After the page's boundary a row is removed, and others are added on both sides of it. */
static void pages(bool newest) {
  tb_rc (*ask)(struct tc_catalog *, const struct tc_select *, tc_segment_row_fn *, void *,
               struct tb_diag *) = newest ? tc_catalog_newest : tc_catalog_segments;
  struct tc_select select = { .limit = 7 };
  static struct found page;
  unsigned times[13][300] = { 0 }, n = 0;
  unsigned char stream[16];

  put_many();
  do {
    page.n = 0;
    cr_assert_eq(ask(catalog, &select, collect, &page, &diag), TB_OK, "%s", diag.text);
    for (size_t i = 0; i < page.n; i++) times[page.rows[i].stream][page.rows[i].first_gen]++, n++;
    if (page.n == 0) break;
    memcpy(stream, page.last.stream, 16);
    select.place.stream = stream;
    select.place.first_gen = page.last.first_gen;
    select.place.first_wall_ns = page.last.first_wall_ns;
    if (page.last.open)
      cr_assert_eq(tc_catalog_drop_open(catalog, stream, page.last.first_gen, &diag), TB_OK);
    put(12, 290 + n % 10, 291 + n % 10, 1 + n % 1000, 1, 0, false);
  } while (true);
  for (unsigned s = 1; s <= 12; s++)
    for (unsigned gen = 0; gen < 290; gen++) cr_assert_leq(times[s][gen], 1, "%u %u", s, gen);
  unsigned once = 0;
  for (unsigned s = 1; s <= 12; s++)
    for (unsigned gen = 0; gen < 290; gen++) once += times[s][gen];
  cr_assert_eq(once, 12 * 20);
}

Test(catalog_select, pages_stay_whole_while_rows_come_and_go) {
  pages(false);
}

Test(catalog_select, pages_of_the_newest_stay_whole_while_rows_come_and_go) {
  pages(true);
}

Test(catalog_select, a_walk_behind_a_row_that_has_gone_says_so) {
  put(1, 1, 2, 10, 5, 0, false);
  struct found none = { 0 };
  struct tc_select select = { .after = 99 };
  cr_assert_eq(tc_catalog_segments(catalog, &select, collect, &none, &diag), TB_NOTFOUND);
  cr_assert_not_null(
      strstr(diag.text, "segment 99, after which the list should continue, was removed"), "%s",
      diag.text);
}

struct heavy {
  char service[65];
  uint64_t bytes;
  unsigned n;
};

static tb_rc keep_heavy(void *self, const char *service, uint64_t bytes) {
  struct heavy *heavy = self;

  snprintf(heavy->service, sizeof heavy->service, "%s", service);
  heavy->bytes = bytes;
  heavy->n++;
  return TB_OK;
}

/* Stored, not summed on request: an open segment does not count until it is sealed. */
Test(catalog_select, a_service_has_the_bytes_of_its_segments) {
  struct heavy heavy = { 0 };

  put(1, 1, 2, 10, 5, 0, false);
  put(3, 1, 2, 10, 5, 0, false);
  put(3, 3, 4, 20, 5, 0, true);
  put(2, 1, 2, 10, 5, 0, false);
  cr_assert_eq(tc_catalog_heavy(catalog, 10, keep_heavy, &heavy, &diag), TB_OK);
  cr_assert_eq(heavy.n, 1);
  cr_assert_str_eq(heavy.service, "odd");
  cr_assert_eq(heavy.bytes, 20);
  put(3, 3, 4, 20, 5, 0, false);
  cr_assert_eq(tc_catalog_heavy(catalog, 10, keep_heavy, &heavy, &diag), TB_OK);
  cr_assert_eq(heavy.bytes, 30);
}
