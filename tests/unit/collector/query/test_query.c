/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a query session, with a real store behind it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/meta.h"
#include "support/archive_host.h"
#include "support/patience.h"

enum { SESSIONS = 8 };

static struct tt_host host;
static struct tc_query_session *sessions[SESSIONS], *session;
static struct tb_diag diag;
static char none[] = "";

static void init(void) {
  tt_host_open(&host, 1);
  for (int i = 0; i < SESSIONS; i++) sessions[i] = tc_query_session_new(host.query);
  session = sessions[0];
  tb_diag_clear(&diag);
}

static void fini(void) {
  for (int i = 0; i < SESSIONS; i++) tc_query_session_free(sessions[i]);
  tt_host_close(&host);
}

TestSuite(query, .init = init, .fini = fini);

/* Returns a settled list. On a slow disk, rebuilding a catalog takes longer than a session waits, so it may try again. */
static const Tracecollect__V1__ListReply *list_by(struct tc_query_session *s, uint32_t limit,
                                                  char *place) {
  Tracecollect__V1__ListRequest ask = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  Tracecollect__V1__ListReply *reply;
  struct tb_diag why; /* each thread needs its own */
  tb_rc rc = TB_BUSY;

  ask.limit = limit;
  ask.place = place;
  ask.settle = ask.detail = true;
  for (int tries = 0; rc == TB_BUSY && tries < TT_PATIENCE_S / 3; tries++) {
    tb_diag_clear(&why);
    rc = tc_query_list(s, &ask, &why, &reply);
  }
  cr_assert_eq(rc, TB_OK, "%s", why.text);
  return reply;
}

static const Tracecollect__V1__ListReply *list(void) {
  return list_by(session, 0, none);
}

static struct tt_writer write_generations(uint64_t n, unsigned batches, size_t bytes) {
  struct tt_writer w = tt_host_writer(&host, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= n; gen++) tt_generation(&w, gen, batches, bytes);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  return w;
}

/* --- the catalog ------------------------------------------------------------------------------- */

/* Breaks the catalog for its writer, which notices at the next row and rebuilds the catalog
 * while readers use it. */
static void break_catalog(void) {
  char path[160];
  sqlite3 *db;

  snprintf(path, sizeof path, "%s/catalog.sqlite", host.store.dir);
  cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
  cr_assert_eq(sqlite3_exec(db, "DROP TABLE segments", NULL, NULL, NULL), SQLITE_OK);
  sqlite3_close(db);
}

Test(query, a_catalog_that_is_rebuilt_is_the_one_that_is_asked) {
  struct tt_writer w = write_generations(1, 3, 500);

  for (int i = 0; i < SESSIONS; i++) cr_assert_eq(list_by(sessions[i], 0, none)->n_segments, 1);
  for (uint64_t gen = 2; gen <= 4; gen++) {
    break_catalog();
    tt_generation(&w, gen, 3, 500);
    cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
    for (int i = 0; i < SESSIONS; i++) cr_assert_eq(list_by(sessions[i], 0, none)->n_segments, gen);
  }
}

Test(query, status_tells_of_collector_and_streams) {
  Tracecollect__V1__StatusReply *status;
  struct tt_writer w = tt_host_writer(&host, 1, 7);

  tt_header(&w);
  tt_generation(&w, 1, 5, 1000);
  tt_barrier(&host.store);
  cr_assert_eq(tc_query_status(session, &diag, &status), TB_OK, "%s", diag.text);
  cr_assert_str_eq(status->version, "9.9.9");
  cr_assert_str_eq(status->level, "durable");
  cr_assert_str_eq(status->health, "ok");
  cr_assert_eq(status->n_streams, 1);
  cr_assert_str_eq(status->streams[0]->service, "shop");
  cr_assert_str_eq(status->streams[0]->identity, "tracecollect:agent/a");
  cr_assert_eq(status->streams[0]->generations, 1);
  cr_assert_eq(status->streams[0]->bytes, 5000 + 16);
}

/* --- lists ------------------------------------------------------------------------------------- */

Test(query, a_settled_list_sees_everything_acked_before_it) {
  struct tt_writer w = tt_host_writer(&host, 1, 7);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 20; gen++) {
    tt_generation(&w, gen, 3, 500);
    if (gen == 20) tt_close(&w);
    cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
    const Tracecollect__V1__ListReply *got = list();
    cr_assert_eq(got->n_segments, gen, "after generation %lu: %zu segments", gen, got->n_segments);
    cr_assert_eq(got->segments[gen - 1]->last_gen, gen);
    cr_assert_eq(got->n_streams, 1);
  }
}

static void *list_often(void *self) {
  for (int i = 0; i < 20; i++)
    if (list_by(self, 0, none)->n_segments != 1) return self;
  return NULL;
}

Test(query, sessions_wait_for_barriers_of_their_own_side_by_side) {
  pthread_t threads[SESSIONS];
  void *wrong;

  write_generations(1, 10, 1000);
  for (int i = 0; i < SESSIONS; i++)
    cr_assert_eq(pthread_create(&threads[i], NULL, list_often, sessions[i]), 0);
  for (int i = 0; i < SESSIONS; i++) {
    pthread_join(threads[i], &wrong);
    cr_expect_null(wrong);
  }
}

Test(query, pages_go_on_where_the_last_one_ended) {
  struct tt_writer a = tt_host_writer(&host, 1, 7), b = tt_host_writer(&host, 2, 8);
  char place[80] = "";
  uint64_t seen = 0;

  tt_header(&a);
  tt_header(&b);
  for (uint64_t gen = 1; gen <= 5; gen++) {
    tt_generation(&a, gen, 1, 100);
    tt_generation(&b, gen, 1, 100);
  }
  for (bool more = true; more;) {
    const Tracecollect__V1__ListReply *got = list_by(session, 3, place);
    cr_assert_leq(got->n_segments, 3);
    cr_assert_gt(got->n_segments, 0);
    for (size_t i = 0; i < got->n_segments; i++, seen++)
      cr_assert_eq(got->segments[i]->first_gen, seen % 5 + 1);
    snprintf(place, sizeof place, "%s", got->next);
    more = got->more;
  }
  cr_assert_eq(seen, 10);
}

Test(query, detail_names_generations_and_losses) {
  struct tt_writer w = tt_host_writer(&host, 1, 7);
  size_t losses = 0;

  tt_header(&w);
  tt_generation(&w, 1, 1, 100);
  tt_loss(&w, 2, 4, 30, 3000);
  tt_generation(&w, 5, 1, 100);
  cr_assert(tt_wait_acked(&host.store, w.stream, w.seq));
  const Tracecollect__V1__ListReply *got = list();
  cr_assert_eq(got->n_segments, 2);
  for (size_t i = 0; i < got->n_segments; i++)
    for (size_t k = 0; k < got->segments[i]->n_losses; k++, losses++) {
      cr_assert_eq(got->segments[i]->losses[k]->first_gen, 2);
      cr_assert_eq(got->segments[i]->losses[k]->last_gen, 4);
    }
  cr_assert_eq(losses, 1);
}

/* --- files ------------------------------------------------------------------------------------- */

static tb_rc open_segment(uint64_t id) {
  struct tc_segment_row row;
  int fd;

  tb_diag_clear(&diag);
  tb_rc rc = tc_query_session_open(session, id, &diag, &row, &fd);
  if (rc == TB_OK) close(fd);
  return rc;
}

/* The segment's row shows the expiry only after a whole round of retention. */
Test(query, a_segment_that_retention_takes_at_this_moment_has_expired) {
  int state_fd = tc_store_dirfd(host.store.store), fd;
  unsigned char *bytes;
  char name[300];
  tc_meta *meta;
  size_t n;

  write_generations(2, 1, 4000); /* one generation a file */
  tt_barrier(&host.store);
  const Tracecollect__V1__SegmentInfo *first = list()->segments[0];
  uint64_t id = first->id;
  cr_assert_not(first->open);
  snprintf(name, sizeof name, "%s", first->path);
  cr_assert_eq(open_segment(id), TB_OK, "%s", diag.text);
  cr_assert_eq(open_segment(4711), TB_NOTFOUND);
  cr_assert_str_eq(diag.text, "no segment 4711");
  cr_assert_eq(unlinkat(state_fd, name, 0), 0, "%s", name);
  cr_assert_eq(open_segment(id), TB_NOTFOUND);
  cr_assert_not_null(strstr(diag.text, "No such file"), "%s", diag.text);

  strcpy(strrchr(name, '.'), ".meta");
  tb_diag_clear(&diag);
  cr_assert_eq(tc_meta_read(state_fd, name, &diag, &meta), TB_OK, "%s", diag.text);
  meta->expired = true;
  cr_assert_eq(tc_meta_pack(meta, NULL, &bytes, &n), TB_OK);
  fd = openat(state_fd, name, O_WRONLY | O_TRUNC);
  cr_assert_eq(write(fd, bytes, n), n);
  close(fd);
  free(bytes);
  tc_meta_free(meta);
  cr_assert_eq(open_segment(id), TB_NOTFOUND);
  cr_assert_not_null(strstr(diag.text, " has expired"), "%s", diag.text);
}

/* --- reports ----------------------------------------------------------------------------------- */

static const Tracecollect__V1__ReportReply *report(const char *kind, const char *service) {
  Tracecollect__V1__ReportRequest ask = TRACECOLLECT__V1__REPORT_REQUEST__INIT;
  Tracecollect__V1__ReportReply *reply;
  char window[] = "10s";

  ask.kind = (char *)(uintptr_t)kind;
  ask.service = (char *)(uintptr_t)service;
  ask.window = window;
  cr_assert_eq(tc_query_report(session, &ask, &diag, &reply), TB_OK, "%s", diag.text);
  return reply;
}

Test(query, reports_of_live_streams_are_found_by_name) {
  Tracecollect__V1__StreamReport one = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  char shop[] = "shop", kind[] = "stw", window[] = "10s";
  unsigned char bytes[256];

  one.service = shop;
  one.kind = kind;
  one.window = window;
  one.events = 4711;
  struct tc_report row = { .stream = (const unsigned char *)"0123456789abcdef",
                           .service = "shop",
                           .instance = "i",
                           .kind = "stw",
                           .window = "10s",
                           .bytes = bytes,
                           .len = tracecollect__v1__stream_report__pack(&one, bytes) };
  cr_assert_eq(tc_reports_publish(host.reports, &row), TB_OK);
  cr_assert_eq(report("stw", "shop")->n_reports, 1);
  cr_assert_eq(report("stw", "shop")->reports[0]->events, 4711);
  cr_assert_eq(report("syscall", "shop")->n_reports, 0);
  cr_assert_eq(report("stw", "other")->n_reports, 0);
}

static const Tracecollect__V1__SummaryReply *summary(const char *service, const char *instance) {
  Tracecollect__V1__SummaryRequest ask = TRACECOLLECT__V1__SUMMARY_REQUEST__INIT;
  Tracecollect__V1__SummaryReply *reply;

  ask.service = (char *)(uintptr_t)service;
  ask.instance = (char *)(uintptr_t)instance;
  cr_assert_eq(tc_query_summary(session, &ask, &diag, &reply), TB_OK, "%s", diag.text);
  cr_assert_eq(reply->n_sentences, 1);
  cr_assert_str_eq(reply->sentences[0]->kind, "nothing");
  return reply;
}

/* A report of another version may lack anything. */
static void publish_empty(const char *stream, const char *service, const char *kind) {
  Tracecollect__V1__StreamReport empty = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  unsigned char bytes[256];

  empty.service = (char *)(uintptr_t)service;
  empty.kind = (char *)(uintptr_t)kind;
  empty.events = 100;
  struct tc_report row = { .stream = (const unsigned char *)stream,
                           .service = service,
                           .instance = "i",
                           .kind = kind,
                           .window = "1m",
                           .bytes = bytes,
                           .len = tracecollect__v1__stream_report__pack(&empty, bytes) };
  cr_assert_eq(tc_reports_publish(host.reports, &row), TB_OK);
}

Test(query, a_summary_is_of_a_service_or_of_all) {
  cr_assert_eq(summary(none, none)->streams, 0);
  for (unsigned k = 0; k < TO_ANALYSIS_KINDS; k++) {
    publish_empty("0123456789abcdef", "shop", to_analysis_name((enum to_analysis_kind)k));
    publish_empty("0123456789abcdeg", "till", to_analysis_name((enum to_analysis_kind)k));
  }
  cr_assert_eq(summary(none, none)->streams, 2);
  cr_assert_eq(summary(none, none)->events, 200);
  cr_assert_eq(summary("shop", none)->events, 100);
  cr_assert_eq(summary("shop", "i")->streams, 1);
  cr_assert_eq(summary("shop", "j")->streams, 0);
  cr_assert_str_eq(summary("nope", none)->sentences[0]->text, "Nothing to look at: no events.");
  cr_assert_str_eq(summary(none, none)->window, "1m");
}

/* Packs a report with one figure, and returns its size. */
static size_t pack_report(const Tracecollect__V1__StreamReport *like, int64_t number,
                          unsigned char *out) {
  Tracecollect__V1__FieldSchema field = TRACECOLLECT__V1__FIELD_SCHEMA__INIT, *fields = &field;
  Tracecollect__V1__ReportSchema schema = TRACECOLLECT__V1__REPORT_SCHEMA__INIT;
  Tracecollect__V1__Value value = TRACECOLLECT__V1__VALUE__INIT, *values = &value;
  Tracecollect__V1__Report figures = TRACECOLLECT__V1__REPORT__INIT;
  Tracecollect__V1__StreamReport one = *like;
  char shop[] = "shop", kind[] = "stw", alive[] = "alive";

  field.name = alive;
  field.type = TRACECOLLECT__V1__VALUE_TYPE__VALUE_COUNT;
  schema.n_figures = figures.n_figures = 1;
  schema.figures = &fields;
  value.is_case = TRACECOLLECT__V1__VALUE__IS_NUMBER;
  value.number = number;
  figures.figures = &values;
  figures.schema = &schema;
  one.service = shop;
  one.kind = kind;
  one.events = 1;
  one.report = &figures;
  return tracecollect__v1__stream_report__pack(&one, out);
}

/* Publishes the report of an instance's goroutines; until_wall_ns 0: its time is unknown. */
static void publish_until(const unsigned char *id, unsigned instance, int64_t goroutines,
                          uint64_t until_wall_ns) {
  Tracecollect__V1__StreamReport one = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  char shop[] = "shop", kind[] = "stw", window[] = "10s", name[16];
  unsigned char bytes[256];

  snprintf(name, sizeof name, "host:%u", instance);
  one.instance = name;
  one.window = window;
  one.until_wall_ns = until_wall_ns;
  struct tc_report row = { .stream = id,
                           .service = shop,
                           .instance = name,
                           .kind = kind,
                           .window = window,
                           .bytes = bytes,
                           .len = pack_report(&one, goroutines, bytes) };
  cr_assert_eq(tc_reports_publish(host.reports, &row), TB_OK);
}

static void publish(unsigned instance, int64_t goroutines) {
  unsigned char id[TC_REPORT_STREAM_BYTES] = { 0 };

  memcpy(id, &instance, sizeof instance);
  publish_until(id, instance, goroutines, 0);
}

static tb_rc ask_sum(const char *how, const char *instance, Tracecollect__V1__ReportReply **reply) {
  Tracecollect__V1__ReportRequest ask = TRACECOLLECT__V1__REPORT_REQUEST__INIT;
  char kind[] = "stw", shop[] = "shop", window[] = "10s";

  ask.kind = kind;
  ask.service = shop;
  ask.window = window;
  ask.instance = (char *)(uintptr_t)instance;
  ask.sum = (char *)(uintptr_t)how;
  tb_diag_clear(&diag);
  return tc_query_report(session, &ask, &diag, reply);
}

static int64_t alive(const Tracecollect__V1__StreamReport *report) {
  return report->report->figures[0]->number;
}

Test(query, a_service_has_the_sum_of_its_live_streams) {
  Tracecollect__V1__ReportReply *reply;
  unsigned char second[TC_REPORT_STREAM_BYTES] = { 2 };

  publish(1, 10);
  cr_assert_eq(ask_sum("first", "", &reply), TB_OK);
  cr_assert_eq(reply->n_reports, 1, "one stream has no sum");
  cr_assert_eq(ask_sum("only", "", &reply), TB_OK);
  cr_assert_eq(reply->n_reports, 1);
  cr_expect_str_eq(reply->reports[0]->instance, "host:1", "or is its own");
  publish(2, 100);
  publish(3, 1000);
  cr_assert_eq(ask_sum("first", "", &reply), TB_OK);
  cr_assert_eq(reply->n_reports, 4);
  cr_expect_eq(reply->reports[0]->instances, 3);
  cr_expect_eq(alive(reply->reports[0]), 1110);
  cr_expect_eq(alive(reply->reports[1]), 10);
  cr_assert_eq(ask_sum("none", "", &reply), TB_OK);
  cr_assert_eq(reply->n_reports, 3);
  cr_assert_eq(ask_sum("first", "host:2", &reply), TB_OK);
  cr_assert_eq(reply->n_reports, 1);
  cr_assert_eq(ask_sum("only", "host:2", &reply), TB_OK);
  cr_assert_eq(reply->n_reports, 1, "an instance with one stream is its own sum");
  cr_expect_eq(alive(reply->reports[0]), 100);
  tc_reports_close(host.reports, second);
  cr_assert_eq(ask_sum("only", "", &reply), TB_OK);
  cr_expect_eq(alive(reply->reports[0]), 1010, "of those that run");
  for (unsigned i = 1; i <= 3; i += 2) {
    memcpy(second, &i, sizeof i);
    tc_reports_close(host.reports, second);
  }
  cr_assert_eq(ask_sum("only", "", &reply), TB_OK);
  cr_expect_eq(alive(reply->reports[0]), 1110, "none runs");
}

/* Nobody has told the collector that the first program is dead: its stream waits for it. */
Test(query, what_was_before_the_window_is_not_in_a_sum) {
  static const uint64_t second = 1000000000, now = UINT64_C(1700000000) * second;
  const unsigned char dead[TC_REPORT_STREAM_BYTES] = { 1 }, closed[] = "closed with newer",
                      recent[] = "a recent one....";
  Tracecollect__V1__ReportReply *reply;
  unsigned char quiet[TC_REPORT_STREAM_BYTES]; /* but connected */

  write_generations(1, 1, 500);
  tt_barrier(&host.store);
  memcpy(quiet, list()->streams[0]->stream.data, sizeof quiet);
  publish_until(dead, 1, 1, now - 11 * second);
  publish_until(closed, 2, 10, now);
  tc_reports_close(host.reports, closed);
  cr_assert_eq(ask_sum("only", "", &reply), TB_OK, "%s", diag.text);
  cr_assert_eq(reply->n_reports, 1);
  cr_expect_eq(alive(reply->reports[0]), 10, "the newest, though it has ended");
  cr_assert_eq(reply->reports[0]->report->n_notes, 1);
  cr_expect_not_null(
      strstr(reply->reports[0]->report->notes[0], "1 stream is not in it: host:1 (nothing since "),
      "%s", reply->reports[0]->report->notes[0]);
  publish_until(recent, 3, 100, now - 10 * second);
  publish_until(quiet, 4, 1000, now - 60 * second);
  cr_assert_eq(ask_sum("only", "", &reply), TB_OK, "%s", diag.text);
  cr_expect_eq(alive(reply->reports[0]), 1100, "of live ones in the window or connected");
  cr_assert_eq(ask_sum("none", "", &reply), TB_OK, "%s", diag.text);
  cr_expect_eq(reply->n_reports, 4);
}

static void wake_nobody(void *self) {
  (void)self;
}

/* The loop of one stream does not answer. */
Test(query, a_sum_says_what_is_not_in_it) {
  static const unsigned char silent[TC_REPORT_STREAM_BYTES] = { 9 };
  Tracecollect__V1__ReportReply *reply;
  struct tc_report_maker *maker;

  publish(1, 10);
  publish(2, 100);
  cr_assert_eq(tc_report_maker_new(host.reports, wake_nobody, NULL, &maker), TB_OK);
  cr_assert_eq(tc_reports_outdate(maker, silent, "shop", "host:9", 9), TB_OK);
  tc_reports_missed(host.reports, silent, TO_ANALYSIS_STW, TO_WINDOW_10S);
  cr_assert_eq(ask_sum("only", "", &reply), TB_OK);
  cr_expect_eq(alive(reply->reports[0]), 110);
  cr_assert_eq(reply->reports[0]->report->n_notes, 1);
  cr_expect_str_eq(reply->reports[0]->report->notes[0], "1 of 3 streams are not in it: ask again.");
  tc_report_maker_free(maker);
}

Test(query, a_sum_of_thousands_of_streams_takes_the_memory_of_some) {
  enum { STREAMS = 5000 };
  Tracecollect__V1__ReportReply *reply;

  for (unsigned i = 0; i < STREAMS; i++) publish(i, 1);
  cr_assert_eq(ask_sum("only", "", &reply), TB_OK, "%s", diag.text);
  cr_assert_eq(reply->n_reports, 1);
  cr_expect_eq(reply->reports[0]->instances, STREAMS);
  cr_expect_eq(alive(reply->reports[0]), STREAMS);
  cr_expect_eq(reply->reports[0]->events, STREAMS);
}

/* --- kept reports ------------------------------------------------------------------------------ */

enum { STRETCHES = 4500, FIRST_S = 1000000000, EVERY_S = 300 };

/* Keeps the reports of two weeks. */
static void keep_reports(const ProtobufCBinaryData *stream) {
  Tracecollect__V1__StreamReport one = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  char window[] = "stretch";
  unsigned char bytes[256], reply[300];

  one.stream = *stream;
  one.window = window;
  cr_assert_eq(tc_history_start(host.history), TB_OK);
  for (uint64_t i = 0; i < STRETCHES; i++) {
    one.until_wall_ns = (FIRST_S + (i + 1) * EVERY_S) * UINT64_C(1000000000);
    one.from_wall_ns = one.until_wall_ns - EVERY_S * UINT64_C(1000000000) + 1;
    size_t n = pack_report(&one, (int64_t)i, bytes);
    reply[0] = 1 << 3 | 2; /* ReportReply.reports */
    reply[1] = (unsigned char)(n & 127) | 128;
    reply[2] = (unsigned char)(n >> 7);
    memcpy(reply + 3, bytes, n);
    const struct tc_report_record record = { one.from_wall_ns, one.until_wall_ns, reply, n + 3 };
    cr_assert_eq(tc_history_add(host.history, stream->data, &record), TB_OK);
  }
  tc_history_stop(host.history);
}

static const Tracecollect__V1__HistoryReply *
ask_history(const Tracecollect__V1__HistoryRequest *ask) {
  Tracecollect__V1__HistoryReply *reply;

  tb_diag_clear(&diag);
  cr_assert_eq(tc_query_history(session, ask, &diag, &reply), TB_OK, "%s", diag.text);
  return reply;
}

/* An answer adds up so many records, and the next one continues. */
Test(query, kept_reports_are_added_up_some_at_a_time) {
  Tracecollect__V1__HistoryRequest ask = TRACECOLLECT__V1__HISTORY_REQUEST__INIT;
  Tracecollect__V1__Selector which = TRACECOLLECT__V1__SELECTOR__INIT;
  unsigned char stream[TC_STREAM_BYTES], after[TC_STREAM_BYTES];
  const Tracecollect__V1__HistoryReply *reply;
  Tracecollect__V1__HistoryReply *refused;
  uint64_t events = 0, next_ns = FIRST_S * UINT64_C(1000000000) + 1;
  int64_t sum = 0;
  unsigned answers = 0;

  write_generations(1, 1, 4000);
  tt_barrier(&host.store);
  memcpy(stream, list()->streams[0]->stream.data, sizeof stream);
  keep_reports(&(ProtobufCBinaryData){ sizeof stream, stream });
  ask.selector = &which;
  ask.sum = true;
  do {
    reply = ask_history(&ask);
    cr_assert_eq(reply->n_reports, 1);
    cr_expect_eq(reply->reports[0]->from_wall_ns, next_ns);
    next_ns = reply->reports[0]->until_wall_ns + 1;
    events += reply->reports[0]->events;
    sum += alive(reply->reports[0]);
    answers++;
    if (!reply->more) break;
    memcpy(after, reply->after_stream.data, sizeof after);
    ask.after_stream = (ProtobufCBinaryData){ sizeof after, after };
    ask.after_ns = reply->after_ns;
  } while (answers < 10);
  cr_expect_eq(answers, 3);
  cr_expect_eq(events, STRETCHES);
  cr_expect_eq(sum, (int64_t)STRETCHES * (STRETCHES - 1) / 2);
  ask.after_stream.len = 0;
  which.since_wall_ns = UINT64_C(1000000000) * (FIRST_S + 100 * EVERY_S) + 1;
  which.until_wall_ns = UINT64_C(1000000000) * (FIRST_S + 110 * EVERY_S);
  reply = ask_history(&ask);
  cr_assert_eq(reply->n_reports, 1);
  cr_expect_eq(reply->reports[0]->events, 10);
  which.since_wall_ns = which.until_wall_ns + 1;
  tb_diag_clear(&diag);
  cr_expect_eq(tc_query_history(session, &ask, &diag, &refused), TB_PROTOCOL);
  cr_expect_str_eq(diag.text, "since is after until");
}

/* --- the end ----------------------------------------------------------------------------------- */

Test(query, who_asks_when_the_room_stops_is_told) {
  Tracecollect__V1__ListRequest ask = TRACECOLLECT__V1__LIST_REQUEST__INIT;
  Tracecollect__V1__ListReply *reply;

  ask.settle = true;
  tc_query_stop(host.query);
  cr_assert_eq(tc_query_list(session, &ask, &diag, &reply), TB_IO);
  cr_assert_str_eq(diag.text, "the collector is shutting down");
}
