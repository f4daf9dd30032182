/* SPDX-License-Identifier: Apache-2.0 */
/* The API over a real store: its answers are what the catalog and the files say. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "proto/archive.pb-c.h"
#include "proto/report.pb-c.h"
#include "support/archive_host.h"
#include "support/http_server.h"

static struct tt_host host;
static struct tt_http *server;
static char answer[TT_HTTP_ANSWER_BYTES];
static size_t answer_len;

static void open_all(void) {
  tt_host_open(&host, 1);
  server = tt_http_start("127.0.0.1:0", NULL, host.query);
}

static void close_all(void) {
  tt_http_stop(server);
  tt_host_close(&host);
}

TestSuite(http_api, .init = open_all, .fini = close_all);

/* fields: more lines of the head, each with its CR LF. */
static const char *get(const char *path, const char *fields) {
  char text[600];

  snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, fields);
  answer_len = tt_http_ask(server, text, 1000, answer);
  return answer;
}

#define EXPECT(path, fields, part)                                                                 \
  cr_assert_not_null(strstr(get(path, fields), part), "%s: %s is not in\n%s", path, part, answer)

/* Archives three generations of the stream host-1. */
static struct tt_writer three_generations(void) {
  struct tt_writer w = tt_host_writer(&host, 1, 1);

  tt_header(&w);
  for (uint64_t gen = 1; gen <= 3; gen++) tt_generation(&w, gen, 40, 10000);
  tt_barrier(&host.store);
  return w;
}

Test(http_api, streams_and_segments_are_those_of_the_catalog) {
  three_generations();
  EXPECT("/api/v1/streams", "", "\"instance\":\"host-1\"");
  cr_assert_not_null(strstr(answer, "\"version\":\"9.9.9\""), "%s", answer);
  cr_assert_not_null(strstr(answer, "\"generations\":3,"), "%s", answer);
  cr_assert_not_null(strstr(answer, "Content-Type: application/json\r\n"), "%s", answer);

  EXPECT("/api/v1/segments?instance=host-1", "", "\"first_gen\":3,");
  EXPECT("/api/v1/segments?limit=2", "", "\"more\":true");
  cr_assert_null(strstr(answer, "\"first_gen\":3,"), "%s", answer);
  EXPECT("/api/v1/segments?limit=2&after=2", "", "\"more\":false");
  EXPECT("/api/v1/segments?instance=other", "", "{\"segments\":[],\"more\":false");
  EXPECT("/api/v1/segments?arrived_since=-1h&arrived_until=now", "", "\"first_gen\":1,");
  EXPECT("/api/v1/segments?arrived_until=-1h", "", "{\"segments\":[]");
  EXPECT("/api/v1/segments?until=-1h", "", "\"first_gen\":1,"); /* selected by their ends */
  EXPECT("/api/v1/segments?since=-1h", "", "{\"segments\":[]");
  EXPECT("/api/v1/segments?arrived_since=yesterday", "", "HTTP/1.1 400");
  EXPECT("/api/v1/segments?since=yesterday", "", "HTTP/1.1 400");
  cr_assert_not_null(strstr(answer, "since: \\\"yesterday\\\" is not a time"), "%s", answer);
  EXPECT("/api/v1/segments?limit=0", "", "HTTP/1.1 400");
  EXPECT("/api/v1/segments?limit=10001", "", "HTTP/1.1 400");
}

/* Returns the generations of the list in the last answer, as "1 3 ". */
static const char *listed(void) {
  static char gens[80];

  gens[0] = '\0';
  for (const char *at = answer; (at = strstr(at, "\"first_gen\":")) != NULL; at++) {
    size_t n = strlen(gens);
    snprintf(gens + n, sizeof gens - n, "%lu ", strtoul(at + 12, NULL, 10));
  }
  return gens;
}

Test(http_api, a_list_is_narrowed_by_each_of_its_parameters) {
  static const struct {
    const char *query, *gens;
  } lists[] = {
    { "limit=10000", "1 2 3 " },  { "newest=1", "3 2 1 " }, { "segment=2", "2 " },
    { "first_gen=2", "2 3 " },    { "last_gen=2", "1 2 " }, { "first_gen=2&last_gen=2", "2 " },
    { "last=1ns", "2 3 " },       { "last=10m", "1 2 3 " }, { "instance=host-1", "1 2 3 " },
    { "settle=1&limit=1", "1 " }, { "segment=77", "" },
  };
  char path[200], id[33];
  three_generations();
  EXPECT("/api/v1/streams", "", "\"stream\":\"");
  cr_assert_eq(sscanf(strstr(answer, "\"stream\":\""), "\"stream\":\"%32[0-9a-f]", id), 1);
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    snprintf(path, sizeof path, "/api/v1/segments?%s", lists[i].query);
    EXPECT(path, "", "HTTP/1.1 200 OK");
    cr_expect_str_eq(listed(), lists[i].gens, "%s: %s", path, listed());
  }
  snprintf(path, sizeof path, "/api/v1/segments?stream=%s", id);
  EXPECT(path, "", "\"streams\":[{");
  cr_expect_str_eq(listed(), "1 2 3 ");
  id[0] = id[0] == '0' ? '1' : '0';
  snprintf(path, sizeof path, "/api/v1/segments?stream=%s", id);
  EXPECT(path, "", "{\"segments\":[]");
  EXPECT("/api/v1/segments?limit=1&after=1", "", "\"streams\":[]");
}

/* The same request, answered in both forms. test_http_jobs and tracectl's tests read the message itself. */
Test(http_api, who_accepts_protobuf_gets_messages_and_errors_in_json) {
  three_generations();
  for (const char *const *p =
           (const char *const[]){ "/api/v1/streams", "/api/v1/segments", "/api/v1/firings",
                                  "/api/v1/history/all", NULL };
       *p != NULL; p++) {
    if (strstr(get(*p, ""), "HTTP/1.1 200") == NULL)
      continue; /* this host keeps no reports and has no rules */
    cr_assert_not_null(strstr(answer, "Vary: Accept\r\n"), "%s", answer);
    EXPECT(*p, "Accept: text/html, application/protobuf;q=0.9\r\n",
           "Content-Type: application/protobuf; proto=tracecollect.v1.");
    cr_assert_not_null(strstr(answer, "Vary: Accept\r\n"), "%s", answer);
  }
  EXPECT("/api/v1/segments", "Accept: application/protobuf\r\n", "v1.ListReply\r\n");
  const char *body = strstr(answer, "\r\n\r\n") + 4;
  Tracecollect__V1__ListReply *list = tracecollect__v1__list_reply__unpack(
      NULL, answer_len - (size_t)(body - answer), (const uint8_t *)body);
  cr_assert_not_null(list);
  cr_expect(list->n_segments == 3 && list->n_streams == 1 && !list->more);
  tracecollect__v1__list_reply__free_unpacked(list, NULL);

  EXPECT("/api/v1/segments/99", "Accept: application/protobuf\r\n",
         "{\"status\":404,\"code\":\"NOTFOUND\",\"error\":\"no segment 99");
  EXPECT("/api/v1/segments?limit=x", "Accept: application/protobuf\r\n",
         "{\"status\":400,\"code\":\"PROTOCOL\",\"error\":\"limit=x is not");
}

Test(http_api, a_segment_is_downloaded_whole_and_in_parts) {
  size_t len;
  three_generations();
  get("/api/v1/segments?limit=1", "");
  char *path = strstr(answer, "\"path\":\"") + 8;
  *strchr(path, '"') = '\0';
  char *file = tt_read_file(&host.store, path, &len);
  cr_assert_not_null(file);

  EXPECT("/api/v1/segments/1", "", "HTTP/1.1 200 OK");
  const char *body = strstr(answer, "\r\n\r\n") + 4;
  cr_assert_eq(answer_len - (size_t)(body - answer), len);
  cr_assert_arr_eq(body, file, len);
  cr_assert_not_null(strstr(answer, "Content-Disposition: attachment; filename=\""));
  char tag[100], field[150];
  cr_assert_eq(sscanf(strstr(answer, "ETag: "), "ETag: %99s", tag), 1);
  cr_assert_eq(strlen(tag), 34, "the segment's XXH3-128: %s", tag);

  for (size_t first = 0; first < len; first += 77777) {
    size_t last = first + 300000 < len ? first + 300000 : len - 1;
    snprintf(field, sizeof field, "Range: bytes=%zu-%zu\r\n", first, last);
    EXPECT("/api/v1/segments/1", field, "HTTP/1.1 206");
    body = strstr(answer, "\r\n\r\n") + 4;
    cr_assert_eq(answer_len - (size_t)(body - answer), last - first + 1);
    cr_assert_arr_eq(body, file + first, last - first + 1);
  }
  EXPECT("/api/v1/segments/1", "Range: bytes=-3\r\n", "HTTP/1.1 206");
  snprintf(field, sizeof field, "Content-Range: bytes %zu-%zu/%zu\r\n", len - 3, len - 1, len);
  cr_assert_not_null(strstr(answer, field), "%s", answer);
  EXPECT("/api/v1/segments/1", "Range: bytes=99999999-\r\n", "HTTP/1.1 416");
  cr_assert_eq(atomic_load(&server->metrics.http_client_errors_total), 1);
  snprintf(field, sizeof field, "Content-Range: bytes */%zu\r\n", len);
  cr_assert_not_null(strstr(answer, field), "%s", answer);

  snprintf(field, sizeof field, "If-None-Match: %s\r\n", tag);
  EXPECT("/api/v1/segments/1", field, "HTTP/1.1 304");
  snprintf(field, sizeof field, "Range: bytes=0-0\r\nIf-Range: %s\r\n", tag);
  EXPECT("/api/v1/segments/1", field, "HTTP/1.1 206");
  EXPECT("/api/v1/segments/1", "Range: bytes=0-0\r\nIf-Range: \"other\"\r\n", "HTTP/1.1 200");
  EXPECT("/api/v1/segments/77", "", "HTTP/1.1 404");
  EXPECT("/api/v1/segments/1?x=1", "", "HTTP/1.1 400");
  free(file);
}

/* Removes the segment's file from the page cache, if the system allows this. */
static void evict(const char *path) {
  char whole[400];

  snprintf(whole, sizeof whole, "%s/%s", host.store.dir, path);
  int fd = open(whole, O_RDONLY | O_CLOEXEC);
  cr_assert_geq(fd, 0, "%s", whole);
  cr_assert_eq(fdatasync(fd), 0);
  cr_assert_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  close(fd);
}

Test(http_api, a_file_that_is_in_no_cache_is_sent_as_well) {
  size_t len;
  three_generations();
  get("/api/v1/segments?limit=1", "");
  char *path = strstr(answer, "\"path\":\"") + 8;
  *strchr(path, '"') = '\0';
  path = strdup(path);
  char *file = tt_read_file(&host.store, path, &len);

  for (int i = 0; i < 3; i++) {
    evict(path);
    EXPECT("/api/v1/segments/1", "", "HTTP/1.1 200 OK");
    const char *body = strstr(answer, "\r\n\r\n") + 4;
    cr_assert_eq(answer_len - (size_t)(body - answer), len);
    cr_assert_arr_eq(body, file, len);
  }
  free(file);
  free(path);
}

static void expect_digest(const char *kind, const char *head, const unsigned char *sum, int n) {
  char text[100], field[200];

  EVP_EncodeBlock((unsigned char *)text, sum, n);
  snprintf(field, sizeof field, "%s: %s=:%s:\r\n", head, kind, text);
  cr_assert_not_null(strstr(answer, field), "%s is not in %.600s", field, answer);
}

/* 256 KiB and more are sent in several turns of the loop, and the next request waits for them. */
Test(http_api, a_part_comes_with_its_checksum_where_that_is_wanted) {
  static const char behind[] =
      "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  unsigned char sum[32];
  char text[400];
  size_t len;
  three_generations();
  get("/api/v1/segments?limit=1", "");
  char *path = strstr(answer, "\"path\":\"") + 8;
  *strchr(path, '"') = '\0';
  char *file = tt_read_file(&host.store, path, &len);
  cr_assert_gt(len, 300000u);

  EXPECT("/api/v1/segments/1", "Want-Content-Digest: crc32c=1\r\nRange: bytes=5-99\r\n",
         "HTTP/1.1 206");
  for (uint32_t i = 0, crc = tb_crc32c(0, file + 5, 95); i < 4; i++)
    sum[i] = (unsigned char)(crc >> (24 - 8 * i));
  expect_digest("crc32c", "Content-Digest", sum, 4);
  cr_assert_arr_eq(strstr(answer, "\r\n\r\n") + 4, file + 5, 95);

  snprintf(text, sizeof text,
           "HEAD /api/v1/segments/1 HTTP/1.1\r\nHost: localhost\r\n"
           "Want-Content-Digest: sha-256=9\r\n\r\n%s",
           behind);
  answer_len = tt_http_ask(server, text, 1000, answer);
  cr_assert_eq(EVP_Digest(file, len, sum, NULL, EVP_sha256(), NULL), 1);
  expect_digest("sha-256", "Content-Digest", sum, 32);
  snprintf(text, sizeof text, "Content-Length: %zu\r\n", len);
  cr_assert_not_null(strstr(answer, text), "%.600s", answer);
  cr_assert_eq(strncmp(strstr(answer, "\r\n\r\n") + 4, "HTTP/1.1 200 OK", 15), 0, "no body: %.900s",
               answer);

  snprintf(text, sizeof text,
           "GET /api/v1/segments/1 HTTP/1.1\r\nHost: localhost\r\n"
           "Want-Content-Digest: crc32c=2, sha-256=9\r\n\r\n%s",
           behind);
  answer_len = tt_http_ask(server, text, 1000, answer);
  cr_assert_eq(EVP_Digest(file, len, sum, NULL, EVP_sha256(), NULL), 1);
  expect_digest("sha-256", "Content-Digest", sum, 32);
  const char *body = strstr(answer, "\r\n\r\n") + 4;
  cr_assert_arr_eq(body, file, len);
  cr_assert_eq(strncmp(body + len, "HTTP/1.1 200 OK", 15), 0);

  EXPECT("/api/v1/segments/1", "Range: bytes=5-99\r\n", "HTTP/1.1 206");
  cr_assert_null(strstr(answer, "Content-Digest"), "%.600s", answer);
  EXPECT("/api/v1/segments/1", "Want-Content-Digest: crc32c=1\r\nRange: bytes=99999999-\r\n",
         "HTTP/1.1 416");
  cr_assert_null(strstr(answer, "Content-Digest"), "%.600s", answer);
  free(file);
}

Test(http_api, a_download_that_is_left_in_the_middle_costs_nothing) {
  static const char ask[] = "GET /api/v1/segments/1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  three_generations();
  for (int i = 0; i < 50; i++) {
    int fd = tt_http_dial(server);
    char some[1000];

    tt_http_say(fd, ask, sizeof ask - 1);
    if (i % 2 == 0) cr_assert_gt(read(fd, some, sizeof some), 0);
    close(fd);
  }
  EXPECT("/api/v1/segments/1", "", "HTTP/1.1 200 OK");
}

static void publish_report(char *kind, char *service, uint64_t events) {
  static char one[] = "one", all[] = "all";
  Tracecollect__V1__StreamReport r = TRACECOLLECT__V1__STREAM_REPORT__INIT;
  unsigned char packed[500], stream[16] = { (unsigned char)service[0] };

  r.kind = kind;
  r.service = service;
  r.instance = one;
  r.window = all;
  r.events = events;
  struct tc_report report = { .stream = stream,
                              .service = service,
                              .instance = "one",
                              .kind = kind,
                              .window = "all",
                              .bytes = packed,
                              .len = tracecollect__v1__stream_report__pack(&r, packed) };
  cr_assert_eq(tc_reports_publish(host.reports, &report), TB_OK);
}

Test(http_api, reports_are_a_line_a_stream) {
  static char stw[] = "stw", shop[] = "shop", till[] = "till";

  EXPECT("/api/v1/report/stw", "", "HTTP/1.1 404");
  publish_report(stw, shop, 7);
  publish_report(stw, till, 8);
  EXPECT("/api/v1/report/stw?service=shop&window=all", "", "HTTP/1.1 200");
  cr_assert_not_null(strstr(answer, "\"events\":7,"), "%s", answer);
  cr_assert_null(strstr(answer, "till"));
  get("/api/v1/report/stw", "");
  cr_assert_not_null(strstr(answer, "}\n{"), "%s", answer);
  EXPECT("/api/v1/report/stw?window=1h", "", "not one of all, 10s, 1m, 5m");
  EXPECT("/api/v1/report/weather", "", "no report \\\"weather\\\"; there are syscall");
  EXPECT("/api/v1/report/stw/x", "", "HTTP/1.1 404");
  get("/api/v1/report/all?service=till", "");
  cr_assert_not_null(strstr(answer, "\"kind\":\"stw\""), "%s", answer);
  EXPECT("/api/v1/report/stw?stream=74000000000000000000000000000000", "", "\"service\":\"till\"");
  EXPECT("/api/v1/report/stw?stream=75000000000000000000000000000000", "", "HTTP/1.1 404");
  EXPECT("/api/v1/report/stw?stream=740", "", "not an id of 32 hexadecimal digits");
}

Test(http_api, reports_are_listed_with_their_schemas) {
  EXPECT("/api/v1/reports", "", "{\"windows\":[\"10s\",\"1m\",\"5m\",\"all\"],\"reports\":[{");
  cr_assert_not_null(strstr(answer, "\"name\":\"by_stack\""), "%s", answer);
  EXPECT("/api/v1/reports?x=1", "", "HTTP/1.1 400");
}

Test(http_api, an_overview_comes_at_once_and_names_every_stream) {
  static const char ask[] = "GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
  three_generations();
  int fd = tt_http_dial(server);

  tt_http_say(fd, ask, sizeof ask - 1);
  tt_http_hear(fd, answer, "}\n\n");
  cr_assert_not_null(strstr(answer, "event: overview\ndata: {\"wall_ns\":"), "%s", answer);
  cr_assert_not_null(strstr(answer, "\"instance\":\"host-1\",\"state\":\"live\""), "%s", answer);
  cr_assert_not_null(strstr(answer, "\"streams_total\":1,\"blocked\":[],\"blocked_total\":0}"),
                     "%s", answer);
  close(fd);
}

Test(http_api, live_events_come_with_a_heartbeat_and_few_may_read_them) {
  struct tc_http_limits limits = tt_http_limits();
  const char *ask = "GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
  int fds[4];

  limits.heartbeat_ms = 20;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, host.query);
  for (size_t i = 0; i < 4; i++) {
    fds[i] = tt_http_dial(s);
    tt_http_say(fds[i], ask, strlen(ask));
    tt_http_hear(fds[i], answer, ": alive\n\n");
    cr_assert_not_null(strstr(answer, "Content-Type: text/event-stream"), "%s", answer);
    cr_assert_not_null(strstr(answer, "retry: "), "%s", answer);
  }
  tt_http_ask(s, ask, 1000, answer);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 503"), "%s", answer);
  cr_assert_not_null(strstr(answer, "http.live_max"), "%s", answer);
  for (size_t i = 0; i < 4; i++) close(fds[i]);
  tt_http_stop(s);
}

Test(http_api, live_events_are_asked_for_by_kind) {
  EXPECT("/api/v1/live?colour=red", "", "HTTP/1.1 400");
  tt_http_ask(server, "HEAD /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000, answer);
  cr_assert_not_null(strstr(answer, "Content-Type: text/event-stream"), "%s", answer);
}

Test(http_api, who_talks_into_live_events_is_ended) {
  int fd = tt_http_dial(server);
  static char talk[20000];

  tt_http_say(fd, "GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n", 46);
  memset(talk, 'x', sizeof talk);
  tt_http_say(fd, talk, sizeof talk);
  tt_http_hear(fd, answer, NULL);
  cr_assert_not_null(strstr(answer, "text/event-stream"), "%s", answer);
  close(fd);
}
