/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the catalog of a day of a fleet: STREAMS streams, each with a run of 300 generations every 300 s, RUNS runs
 * in all (577,000 are 173 million generations). Prints the time of the queries of a start, of readers, the sealer and
 * retention, and the size of the tables and indexes.
 *
 * bench_catalog [RUNS] [STREAMS] [FOLDER] */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "archive/catalog/write.h"
#include "proto/frame.pb-c.h"

enum { GENERATIONS = 300, SERVICES = 20, OPEN_PAGE = 1001, TRIES = 5 };

static const uint64_t SECOND = 1000000000, BEGAN = UINT64_C(1790000000000000000);

static Tracecollect__V1__GenerationMeta gens[GENERATIONS];
static Tracecollect__V1__Verdict verdicts[GENERATIONS];
static Tracecollect__V1__GenerationMeta *list[GENERATIONS];
static struct tb_diag diag;
static unsigned streams = 2000;
static uint64_t runs = 577000;
static struct tc_catalog *catalog;

static double now_ms(void) {
  struct timespec ts;

  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void must(tb_rc rc) {
  if (rc == TB_OK) return;
  fprintf(stderr, "bench_catalog: %s\n", diag.text);
  exit(1);
}

static void id_of(unsigned stream, unsigned char id[16]) {
  uint64_t mixed[2] = { (stream + 1) * UINT64_C(0x9e3779b97f4a7c15),
                        (stream + 1) * UINT64_C(0xd1342543de82ef95) };

  memcpy(id, mixed, 16);
}

static void service_of(unsigned stream, char out[65]) {
  snprintf(out, 65, "service-%02u", stream % SERVICES);
}

/* Fills in run n of all: stream after stream, within the 300 s of the same turn. */
static void fill(uint64_t n, tc_meta *meta, unsigned char id[16], char service[65],
                 char instance[65], char day[11]) {
  static Tracecollect__V1__ContentHash hash;
  static struct tc_content_hash sha = { .kind = TC_HASH_SHA256 };
  static char identity[] = "tracecollect:agent/bench";
  unsigned stream = (unsigned)(n % streams);
  uint64_t turn = n / streams,
           began = BEGAN + turn * GENERATIONS * SECOND + stream * (GENERATIONS * SECOND / streams);

  tracecollect__v1__segment_meta__init(meta);
  id_of(stream, id);
  service_of(stream, service);
  snprintf(instance, 65, "host-%05u", stream);
  tc_day(began, day);
  for (size_t i = 0; i < GENERATIONS; i++) {
    gens[i].gen = turn * GENERATIONS + i + 1;
    gens[i].clock_wall_ns = began + i * SECOND;
    gens[i].end_wall_ns = began + (i + 1) * SECOND - 1;
    gens[i].last_seq = 4 * gens[i].gen;
  }
  meta->n_generations = GENERATIONS;
  meta->generations = list;
  meta->stream = (ProtobufCBinaryData){ 16, id };
  memcpy(sha.bytes, &n, sizeof n);
  meta->hash = tc_hash_put(&sha, &hash);
  meta->service = service;
  meta->instance = instance;
  meta->identity = identity;
  meta->day = day;
  meta->bytes = UINT64_C(50000) * GENERATIONS;
  meta->first_wall_ns = began;
  meta->last_wall_ns = began + GENERATIONS * SECOND;
}

static void put(uint64_t n) {
  unsigned char id[16];
  char service[65], instance[65], day[TC_DAY_BYTES];
  tc_meta meta;

  fill(n, &meta, id, service, instance, day);
  must(tc_catalog_put(catalog, &meta, &diag));
}

static void put_open(uint64_t n) {
  unsigned char id[16];
  char service[65], instance[65], day[TC_DAY_BYTES];
  tc_meta meta;

  fill(n, &meta, id, service, instance, day);
  meta.hash = NULL;
  meta.n_generations = 30;
  struct tc_open_run run = { .path = "open/00112233445566778899aabbccddeeff-0000000000000001.part",
                             .rest = &meta };
  must(tc_catalog_put_open(catalog, &run, &diag));
}

static void put_live(unsigned stream, uint64_t seq) {
  struct tc_stream_row row = { .acked_seq = seq, .go_version = 26 };

  id_of(stream, row.stream);
  service_of(stream, row.service);
  snprintf(row.instance, sizeof row.instance, "host-%05u", stream);
  strcpy(row.identity, "tracecollect:agent/bench");
  strcpy(row.state, "live");
  must(tc_catalog_put_live(catalog, &row, &diag));
}

static void build(void) {
  for (size_t i = 0; i < GENERATIONS; i++) {
    tracecollect__v1__generation_meta__init(&gens[i]);
    tracecollect__v1__verdict__init(&verdicts[i]);
    verdicts[i].code = TRACECOLLECT__V1__VERDICT_CODE__VERDICT_OK;
    gens[i].verdict = &verdicts[i];
    gens[i].bytes = 50000;
    gens[i].batches = 2;
    gens[i].events = 8000;
    gens[i].first_ns = 1;
    gens[i].last_ns = (int64_t)SECOND - 1;
    gens[i].clock_ns = 1;
    list[i] = &gens[i];
  }
}

static unsigned nrows;
static struct tc_segment_row last;

static tb_rc count(void *self, const struct tc_segment_row *row) {
  (void)self;
  nrows++;
  last = *row;
  return TB_OK;
}

static tb_rc count_stream(void *self, const struct tc_stream_row *row) {
  (void)self;
  (void)row;
  nrows++;
  return TB_OK;
}

static tb_rc count_service(void *self, const char *service, uint64_t bytes) {
  (void)self;
  (void)service;
  (void)bytes;
  nrows++;
  return TB_OK;
}

/* ---- measurements: each is repeated TRIES times, the slowest counts */

static unsigned char some_stream[16];
static const char *some_service = "service-07";
static uint64_t noon;

static void list_service(void) {
  struct tc_select s = { .service = some_service,
                         .since_wall_ns = noon,
                         .until_wall_ns = noon + 3600 * SECOND,
                         .limit = OPEN_PAGE };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void list_service_newest(void) {
  struct tc_select s = { .service = some_service,
                         .since_wall_ns = noon,
                         .until_wall_ns = noon + 3600 * SECOND,
                         .limit = OPEN_PAGE };
  must(tc_catalog_newest(catalog, &s, count, NULL, &diag));
}

static void list_minute(void) {
  struct tc_select s = { .since_wall_ns = noon,
                         .until_wall_ns = noon + 60 * SECOND,
                         .limit = OPEN_PAGE };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void list_last_page(void) {
  struct tc_select s = { .service = some_service, .limit = OPEN_PAGE };

  do {
    nrows = 0;
    must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
    s.after = last.id;
  } while (nrows == OPEN_PAGE);
}

static void list_all_newest(void) {
  struct tc_select s = { .limit = OPEN_PAGE };
  must(tc_catalog_newest(catalog, &s, count, NULL, &diag));
}

static void list_last(void) {
  struct tc_select s = { .service = some_service, .last_ns = 600 * SECOND, .limit = OPEN_PAGE };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void list_instance(void) {
  struct tc_select s = { .instance = "host-00007", .limit = OPEN_PAGE };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void list_arrived(void) {
  struct tc_select s = { .since_arrival_ns = noon,
                         .until_arrival_ns = noon + 60 * SECOND,
                         .limit = OPEN_PAGE };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void fetch_at(void) {
  struct tc_select s = {
    .stream = some_stream, .since_wall_ns = noon, .until_wall_ns = noon, .limit = OPEN_PAGE
  };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void fetch_generation(void) {
  struct tc_select s = {
    .stream = some_stream, .first_gen = 40000, .last_gen = 40000, .limit = OPEN_PAGE
  };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void fetch_service_at(void) {
  struct tc_select s = {
    .service = some_service, .since_wall_ns = noon, .until_wall_ns = noon, .limit = OPEN_PAGE
  };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void read_segment(void) {
  struct tc_select s = { .segment = runs / 2, .limit = 1 };
  must(tc_catalog_segments(catalog, &s, count, NULL, &diag));
}

static void status_streams(void) {
  struct tc_select all = { 0 };
  must(tc_catalog_streams(catalog, &all, count_stream, NULL, &diag));
}

static void streams_of_hour(void) {
  struct tc_select s = { .service = some_service,
                         .since_wall_ns = noon,
                         .until_wall_ns = noon + 3600 * SECOND,
                         .limit = 1000 };
  must(tc_catalog_streams(catalog, &s, count_stream, NULL, &diag));
}

static void streams_of_minute(void) {
  struct tc_select s = { .since_wall_ns = noon,
                         .until_wall_ns = noon + 60 * SECOND,
                         .limit = 1000 };
  must(tc_catalog_streams(catalog, &s, count_stream, NULL, &diag));
}

static void streams_of_segment(void) {
  struct tc_select s = { .segment = runs / 2, .limit = 1000 };
  must(tc_catalog_streams(catalog, &s, count_stream, NULL, &diag));
}

static void totals(void) {
  struct tc_catalog_totals t;
  must(tc_catalog_totals(catalog, &diag, &t));
}

static void oldest(void) {
  must(tc_catalog_oldest(catalog, NULL, NULL, 64, count, NULL, &diag));
}

static void oldest_of_service(void) {
  must(tc_catalog_oldest(catalog, some_service, NULL, 64, count, NULL, &diag));
}

static void heavy(void) {
  must(tc_catalog_heavy(catalog, 1, count_service, NULL, &diag));
}

static void pending(void) {
  must(tc_catalog_pending(catalog, count, NULL, &diag));
}

static void put_second(void) {
  must(tc_catalog_begin(catalog, &diag));
  for (unsigned i = 0; i < streams / GENERATIONS + 1; i++) put(runs++);
  must(tc_catalog_commit(catalog, &diag));
}

static void put_second_again(void) { /* as verdicts and retention do */
  must(tc_catalog_begin(catalog, &diag));
  for (unsigned i = 0; i < streams / GENERATIONS + 1; i++) put(runs / 2 + i);
  must(tc_catalog_commit(catalog, &diag));
}

static void put_live_all(void) {
  static uint64_t seq;

  must(tc_catalog_begin(catalog, &diag));
  for (unsigned i = 0; i < streams; i++) put_live(i, ++seq);
  must(tc_catalog_commit(catalog, &diag));
}

static void show_hundred(void) {
  must(tc_catalog_begin(catalog, &diag));
  for (unsigned i = 0; i < 100; i++) put_open(runs + streams + i);
  must(tc_catalog_commit(catalog, &diag));
}

static void run_all(void) {
  static const struct {
    const char *words;
    void (*run)(void);
    double goal_ms;
  } all[] = {
    { "list: a service, an hour, first page", list_service, 100 },
    { "list: the same, newest first", list_service_newest, 100 },
    { "list: a minute of all", list_minute, 100 },
    { "list: all, newest first", list_all_newest, 100 },
    { "list: a service, all its pages", list_last_page, 0 },
    { "list: a service, the last 10 minutes", list_last, 100 },
    { "list: an instance", list_instance, 100 },
    { "list: what arrived in a minute", list_arrived, 100 },
    { "fetch: of a stream, what has a moment", fetch_at, 100 },
    { "fetch: of a stream, a generation", fetch_generation, 100 },
    { "fetch: of a service, what has a moment", fetch_service_at, 100 },
    { "read: a segment by its number", read_segment, 1 },
    { "status: all streams", status_streams, 100 },
    { "list: streams of a service, an hour", streams_of_hour, 100 },
    { "list: streams of a minute of all", streams_of_minute, 100 },
    { "list: the stream of a segment", streams_of_segment, 100 },
    { "totals", totals, 1 },
    { "retention: the oldest 64", oldest, 20 },
    { "retention: the oldest 64 of a service", oldest_of_service, 20 },
    { "retention: services above their share", heavy, 20 },
    { "put: a second's runs", put_second, 20 },
    { "put: a second's runs again", put_second_again, 20 },
    { "put: all live streams", put_live_all, 20 },
    { "put: 100 open runs", show_hundred, 20 },
  };

  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    double slowest = 0;
    for (unsigned n = 0; n < TRIES; n++) {
      nrows = 0;
      double began = now_ms();
      all[i].run();
      double took = now_ms() - began;
      if (took > slowest) slowest = took;
    }
    printf("%s\t%.2f\tms\t%.0f\t%u\n", all[i].words, slowest, all[i].goal_ms, nrows);
    fflush(stdout);
  }
}

static void sizes(const char *dir) {
  char path[300];
  sqlite3 *db;
  sqlite3_stmt *stmt;

  snprintf(path, sizeof path, "%s/catalog.sqlite", dir);
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) exit(1);
  if (sqlite3_prepare_v2(db, "SELECT name, sum(pgsize) FROM dbstat GROUP BY name", -1, &stmt,
                         NULL) == SQLITE_OK)
    while (sqlite3_step(stmt) == SQLITE_ROW)
      printf("size: %s\t%.1f\tMiB\t0\t0\n", (const char *)sqlite3_column_text(stmt, 0),
             (double)sqlite3_column_int64(stmt, 1) / (1 << 20));
  sqlite3_finalize(stmt);
  sqlite3_close(db);
}

int main(int argc, char **argv) {
  char dir[256];

  if (argc > 1) runs = strtoull(argv[1], NULL, 10);
  if (argc > 2) streams = (unsigned)strtoul(argv[2], NULL, 10);
  if (runs < 1000 || streams < SERVICES) {
    fprintf(stderr, "usage: bench_catalog [RUNS] [STREAMS] [FOLDER]\n");
    return 2;
  }
  snprintf(dir, sizeof dir, "%s/bench-catalog-XXXXXX", argc > 3 ? argv[3] : "/tmp");
  if (mkdtemp(dir) == NULL) return 1;
  int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  build();
  id_of(7, some_stream);
  noon = BEGAN + runs / streams / 2 * GENERATIONS * SECOND;
  must(tc_catalog_open(fd, true, &diag, &catalog));
  double began = now_ms();
  for (uint64_t n = 0; n < runs; n++) {
    if (n % 10000 == 0) must(tc_catalog_begin(catalog, &diag));
    put(n);
    if (n % 10000 == 9999 || n + 1 == runs) must(tc_catalog_commit(catalog, &diag));
  }
  printf("built\t%.0f\tms\t0\t%llu\n", now_ms() - began, (unsigned long long)runs);
  tc_catalog_close(catalog);
  began = now_ms();
  must(tc_catalog_open(fd, true, &diag, &catalog));
  must(tc_catalog_forget_live(catalog, &diag));
  totals();
  pending();
  printf("start: open, forget, totals, pending\t%.1f\tms\t1000\t%u\n", now_ms() - began, nrows);
  run_all();
  tc_catalog_close(catalog);
  sizes(dir);
  char command[300];
  snprintf(command, sizeof command, "rm -r %s", dir);
  return system(command) == 0 ? 0 : 1;
}
