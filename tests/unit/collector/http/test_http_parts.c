/* SPDX-License-Identifier: Apache-2.0 */
/* Heads in pieces of any size, queries, ranges, tags, and the ring of live events: no sockets. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collector/http/health.h"
#include "collector/http/live.h"
#include "collector/http/request/range.h"
#include "collector/http/request/request.h"

/* --- heads ------------------------------------------------------------------------------------- */

static struct tc_http_head head;

/* Feeds each byte in its own buffer, so that a sanitizer sees a read past its end. */
static tb_rc feed_pieces(const char *text, size_t n, size_t cut, size_t *out_used) {
  tb_rc rc = TB_OK;

  *out_used = 0;
  if (cut > n) cut = n;
  tc_http_head_init(&head, 8 << 10);
  for (size_t at = 0; at < n && rc == TB_OK;) {
    size_t len = at < cut ? cut - at : n - at, used;
    unsigned char *piece = malloc(len);

    memcpy(piece, text + at, len);
    rc = tc_http_head_feed(&head, piece, len, &used);
    free(piece);
    at += len;
    *out_used += used;
  }
  return rc;
}

Test(http_parts, a_head_may_be_cut_anywhere) {
  static const char text[] = "GET /a%20b?service=x%26y HTTP/1.1\r\nHost: localhost:7\r\n"
                             "Range: bytes=1-2\r\nIf-None-Match: \"q\"\r\nLast-Event-ID: 5-6\r\n"
                             "Accept: */*\r\n\r\nGET /next";
  size_t whole = (size_t)(strstr(text, "GET /next") - text), used;

  for (size_t cut = 1; cut < whole; cut++) {
    cr_assert_eq(feed_pieces(text, sizeof text - 1, cut, &used), TB_END, "cut at %zu", cut);
    cr_assert_eq(used, whole, "cut at %zu: the next request is not touched", cut);
    cr_assert_str_eq(head.request.path, "/a b");
    cr_assert_str_eq(head.request.query, "service=x%26y");
    cr_assert_str_eq(head.request.host, "localhost:7");
    cr_assert_str_eq(head.request.range, "bytes=1-2");
    cr_assert_str_eq(head.request.if_none_match, "\"q\"");
    cr_assert_str_eq(head.request.last_event_id, "5-6");
    cr_assert(head.request.keep && !head.request.is_head);
    cr_assert_eq(feed_pieces(text, cut, cut / 2 + 1, &used), TB_OK, "up to %zu", cut);
  }
}

Test(http_parts, a_body_begins_where_the_head_ends) {
  static const char text[] = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                             "Origin: http://a\r\nSec-Fetch-Site: same-origin\r\n"
                             "Expect: 100-Continue\r\nContent-Length: 5\r\n\r\nGET /";
  size_t whole = (size_t)(strstr(text, "GET /") - text), used;

  for (size_t cut = 1; cut < sizeof text; cut++) {
    cr_assert_eq(feed_pieces(text, sizeof text - 1, cut, &used), TB_END, "cut at %zu", cut);
    cr_assert_eq(used, whole, "cut at %zu: the body is not touched", cut);
    cr_assert_eq(head.request.method, HTTP_POST);
    cr_assert_eq(head.request.body_bytes, 5);
    cr_assert_str_eq(head.request.content_type, "application/json");
    cr_assert_str_eq(head.request.origin, "http://a");
    cr_assert_str_eq(head.request.sec_fetch_site, "same-origin");
    cr_assert(head.request.keep && !head.request.is_head);
  }
  cr_assert_eq(feed_pieces("PUT /a HTTP/1.1\r\nHost: a\r\n\r\n", 29, 7, &used), TB_END);
  cr_assert_eq(head.request.body_bytes, 0, "none was announced");
}

Test(http_parts, a_flipped_byte_is_an_error_or_another_request_and_nothing_worse) {
  static const char text[] = "GET /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
  char copy[sizeof text];
  size_t used;

  for (size_t at = 0; at < sizeof text - 1; at++)
    for (int byte = 0; byte < 256; byte++) {
      memcpy(copy, text, sizeof text);
      copy[at] = (char)byte;
      tb_rc rc = feed_pieces(copy, sizeof text - 1, at + 1, &used);
      cr_assert(rc == TB_OK || rc == TB_END || (rc == TB_PROTOCOL && head.status >= 400), "%zu %d",
                at, byte);
      if (rc == TB_END) cr_assert_eq(head.request.path[0], '/');
    }
}

Test(http_parts, two_readings_of_one_head_are_refused) {
  static const struct {
    const char *text;
    int status;
  } heads[] = {
    { "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", 413 },
    { "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: "
      "chunked\r\n\r\n0\r\n\r\n",
      413 },
    { "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: "
      "0\r\n\r\n0\r\n\r\n",
      413 },
    { "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 413 },
    { "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 413 },
    { "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 7\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0, 7\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 0\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\nRange: bytes=2-3\r\n\r\n", 400 },
    { "GET / HTTP/1.1\r\nHost: a\r\nX\x01: y\r\n\r\n", 400 },
    { "GET nothing HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
    { "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
    { "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
    { "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505 },
    { "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 413 },
    { "DELETE / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 413 },
    { "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", 411 },
    { "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: identity\r\n\r\nx",
      411 },
    { "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400 },
    { "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\nx", 400 },
    { "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\nx", 400 },
    { "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\nx", 400 },
    { "POST / HTTP/1.1\r\nHost: a\r\nExpect: more\r\n\r\n", 417 },
    { "POST / HTTP/1.1\r\nHost: a\r\nSec-Fetch-Site: a-site-with-a-long-name\r\n\r\n", 431 },
    { "POST / HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nOrigin: null\r\n\r\n", 400 },
    { "POST / HTTP/1.0\r\n\r\n", 400 },
    { "DELETE / HTTP/1.0\r\n\r\n", 400 },
    { "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
    { "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
  };
  size_t used;

  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
    tb_rc rc = feed_pieces(heads[i].text, strlen(heads[i].text), 10000, &used);
    cr_expect_eq(rc, TB_PROTOCOL, "%s", heads[i].text);
    cr_expect_eq(head.status, heads[i].status, "%d %s: %s", head.status, head.why, heads[i].text);
  }
  /* A request to change the protocol is ignored: the request itself is answered. */
  const char *upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
  cr_expect_eq(feed_pieces(upgrade, strlen(upgrade), 10000, &used), TB_END);
}

/* --- ranges ------------------------------------------------------------------------------------ */

static void expect_range(const char *field, uint64_t total, enum tc_http_range_kind kind,
                         uint64_t first, uint64_t bytes) {
  struct tc_http_range r = tc_http_range_of(field, total);

  cr_expect_eq(r.kind, kind, "%s of %llu", field, (unsigned long long)total);
  cr_expect_eq(r.first, first, "%s", field);
  cr_expect_eq(r.bytes, bytes, "%s", field);
}

Test(http_parts, ranges_are_those_of_the_standard) {
  expect_range("", 100, TC_HTTP_WHOLE, 0, 100);
  expect_range("bytes=0-0", 100, TC_HTTP_PART, 0, 1);
  expect_range("bytes=10-", 100, TC_HTTP_PART, 10, 90);
  expect_range("bytes=10-1000", 100, TC_HTTP_PART, 10, 90);
  expect_range("Bytes= 99-99 ", 100, TC_HTTP_PART, 99, 1);
  expect_range("bytes=-1", 100, TC_HTTP_PART, 99, 1);
  expect_range("bytes=-1000", 100, TC_HTTP_PART, 0, 100);
  expect_range("bytes=-0", 100, TC_HTTP_UNSATISFIABLE, 0, 0);
  expect_range("bytes=100-", 100, TC_HTTP_UNSATISFIABLE, 0, 0);
  expect_range("bytes=0-", 0, TC_HTTP_UNSATISFIABLE, 0, 0);
  expect_range("bytes=-5", 0, TC_HTTP_UNSATISFIABLE, 0, 0);
  expect_range("bytes=18446744073709551616-", 100, TC_HTTP_UNSATISFIABLE, 0, 0);
  expect_range("bytes=1-18446744073709551616", 100, TC_HTTP_PART, 1, 99);
  expect_range("bytes=5-4", 100, TC_HTTP_WHOLE, 0, 100);
  expect_range("bytes=0-1,5-6", 100, TC_HTTP_WHOLE, 0, 100);
  expect_range("bytes=a-b", 100, TC_HTTP_WHOLE, 0, 100);
  expect_range("bytes=-", 100, TC_HTTP_WHOLE, 0, 100);
  expect_range("bytes=", 100, TC_HTTP_WHOLE, 0, 100);
  expect_range("lines=1-2", 100, TC_HTTP_WHOLE, 0, 100);
}

Test(http_parts, the_checksum_that_is_wanted_most_is_taken) {
  static const struct {
    const char *field;
    enum tc_http_digest digest;
  } wishes[] = {
    { "", TC_HTTP_NO_DIGEST },
    { "crc32c=1", TC_HTTP_CRC32C },
    { "sha-256=1", TC_HTTP_SHA256 },
    { "sha-256=3 ,\tcrc32c=5", TC_HTTP_CRC32C },
    { "crc32c=3,sha-256=3", TC_HTTP_CRC32C },
    { "sha-256=0, crc32c=0", TC_HTTP_NO_DIGEST },
    { "sha-512=9, unixsum=1", TC_HTTP_NO_DIGEST },
    { "crc32c", TC_HTTP_NO_DIGEST },
    { "crc32c=", TC_HTTP_NO_DIGEST },
    { "crc32c=1;a=2", TC_HTTP_NO_DIGEST },
    { "xcrc32c=1", TC_HTTP_NO_DIGEST },
    { ", ,", TC_HTTP_NO_DIGEST },
  };

  for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++)
    cr_expect_eq(tc_http_digest_of(wishes[i].field), wishes[i].digest, "%s", wishes[i].field);
}

Test(http_parts, who_names_protobuf_gets_it) {
  cr_expect(tc_http_wants_protobuf("application/protobuf"));
  cr_expect(tc_http_wants_protobuf("text/html, Application/X-Protobuf ; q=0.1"));
  cr_expect(tc_http_wants_protobuf("application/json,application/protobuf;q=1"));
  cr_expect_not(tc_http_wants_protobuf(""));
  cr_expect_not(tc_http_wants_protobuf("*/*"));
  cr_expect_not(tc_http_wants_protobuf("application/*"));
  cr_expect_not(tc_http_wants_protobuf("application/protobuf2"));
  cr_expect_not(tc_http_wants_protobuf("application/json; of=application/protobuf"));
}

Test(http_parts, tags_are_found_in_their_list) {
  cr_expect(tc_http_tag_listed("\"a\"", "\"a\"", true));
  cr_expect(tc_http_tag_listed("\"b\", \"a\"", "\"a\"", true));
  cr_expect(tc_http_tag_listed("W/\"a\"", "\"a\"", true));
  cr_expect(tc_http_tag_listed("*", "\"a\"", true));
  cr_expect_not(tc_http_tag_listed("W/\"a\"", "\"a\"", false));
  cr_expect_not(tc_http_tag_listed("*", "\"a\"", false));
  cr_expect_not(tc_http_tag_listed("\"ab\"", "\"a\"", true));
  cr_expect_not(tc_http_tag_listed("\"a\"b", "\"a\"", true));
  cr_expect_not(tc_http_tag_listed("", "\"a\"", true));
}

/* --- live events ------------------------------------------------------------------------------- */

static struct tc_live *live;

static void expect_event(struct tc_live_reader *r, const char *part) {
  const void *text;
  size_t n;
  char copy[400];

  cr_assert(tc_live_next(live, r, &text, &n), "nothing, instead of %s", part);
  cr_assert_lt(n, sizeof copy);
  memcpy(copy, text, n);
  copy[n] = '\0';
  cr_assert_not_null(strstr(copy, part), "%s is not in %s", part, copy);
  cr_assert_str_eq(copy + n - 2, "\n\n");
}

static void expect_nothing(struct tc_live_reader *r) {
  const void *text;
  size_t n;

  cr_assert_not(tc_live_next(live, r, &text, &n));
}

static struct tc_live_reader *join(const char *last_id, const char *kinds) {
  struct tc_live_reader *r;

  cr_assert_eq(tc_live_join(live, last_id, kinds, &r), TB_OK);
  return r;
}

Test(http_parts, a_reader_that_was_away_goes_on_where_it_was) {
  cr_assert_eq(tc_live_new(1000, 0xabc, &live), TB_OK);
  struct tc_live_reader *a = join("", "alert");

  tc_live_publish(live, "alert", "1", 1);
  tc_live_publish(live, "overview", "2", 1);
  tc_live_publish(live, "alert", "3", 1);
  expect_event(a, "id: abc-1\nevent: alert\ndata: 1\n");
  expect_event(a, "data: 3\n");
  expect_nothing(a);
  cr_assert(tc_live_wanted(live, "alert"));
  cr_assert_not(tc_live_wanted(live, "overview"));

  struct tc_live_reader *b = join("abc-1", "overview,alert");
  expect_event(b, "id: abc-2\nevent: overview\ndata: 2\n");
  expect_event(b, "data: 3\n");
  struct tc_live_reader *c = join("999-1", "alert"); /* of an earlier run */
  expect_event(c, "event: gap\ndata: {\"lost\":null");
  expect_nothing(c);
  struct tc_live_reader *d = join("nonsense", "alert");
  expect_nothing(d);
  tc_live_leave(live, a);
  tc_live_leave(live, c);
  tc_live_leave(live, d);
  tc_live_leave(live, b);
  cr_assert_eq(tc_live_readers(live), 0);
  tc_live_free(live);
}

Test(http_parts, a_slow_reader_is_told_of_its_gap_and_costs_nothing) {
  char data[100];

  cr_assert_eq(tc_live_new(1000, 1, &live), TB_OK);
  memset(data, 'x', sizeof data);
  struct tc_live_reader *slow = join("", "a,b");
  for (int i = 0; i < 50; i++) tc_live_publish(live, i % 2 ? "a" : "b", data, sizeof data);
  expect_event(slow, "event: gap\ndata: {\"lost\":43,");
  for (int i = 0; i < 7; i++) expect_event(slow, "data: xxx");
  expect_nothing(slow);

  static char huge[2000]; /* too large for the ring */
  tc_live_publish(live, "a", huge, sizeof huge);
  tc_live_publish(live, "a", "y", 1);
  expect_event(slow, "{\"lost\":1,");
  expect_event(slow, "data: y");
  tc_live_leave(live, slow);
  tc_live_free(live);
}

static double cpu_s(void) {
  struct timespec now;

  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Once, each event walked the ring for each reader: with 64 readers an event took 0.4 s, and 200 may come in a second. */
Test(http_parts, a_full_ring_costs_its_readers_nothing) {
  struct tc_live_reader *readers[64];
  char data[200];

  cr_assert_eq(tc_live_new(16 << 20, 1, &live), TB_OK);
  memset(data, 'x', sizeof data);
  for (int i = 0; i < 100000; i++) tc_live_publish(live, "a", data, sizeof data);
  for (int r = 0; r < 64; r++) readers[r] = join("", "a");
  double began = cpu_s();
  for (int i = 0; i < 1000; i++) {
    tc_live_publish(live, "a", data, sizeof data);
    for (int r = 0; r < 64; r++) {
      expect_event(readers[r], "data: xxx");
      expect_nothing(readers[r]);
    }
  }
  cr_expect_lt(cpu_s() - began, 2.0);
  for (int r = 0; r < 64; r++) tc_live_leave(live, readers[r]);
  tc_live_free(live);
}

Test(http_parts, many_small_events_are_bounded_by_their_number_too) {
  cr_assert_eq(tc_live_new(1280, 1, &live), TB_OK);
  struct tc_live_reader *slow = join("", "a");

  for (int i = 0; i < 30; i++) tc_live_publish(live, "a", "", 0);
  expect_event(slow, "event: gap\ndata: {\"lost\":19,");
  for (int i = 0; i < 11; i++) expect_event(slow, "event: a");
  expect_nothing(slow);
  tc_live_leave(live, slow);
  tc_live_free(live);
}

/* --- readiness --------------------------------------------------------------------------------- */

static const char *readiness_of(const struct tc_store_stats *stats) {
  static char text[2000];
  const struct tc_readiness_facts facts = {
    .now_wall_ns = 1000000000, .store = *stats, .certs = "/nowhere", .running = true
  };
  struct tc_readiness r = { 0 };
  struct tb_mem mem;
  struct tb_buf out;

  tc_readiness_update(&r, &facts);
  tb_mem_init(&mem, tb_mem_libc, NULL, sizeof text);
  tb_buf_init(&out, &mem);
  tc_readiness_write(&r, &out);
  snprintf(text, sizeof text, "%.*s", (int)out.len, (const char *)out.data);
  tb_buf_fini(&out);
  return text;
}

/* A proxy that routes agents by this answer keeps a collector that accepts their data. */
Test(http_parts, what_does_not_stop_the_intake_is_a_warning) {
  const struct tc_store_stats gone = { .health = "ok", .files_missing = 2 },
                              low = { .health = "ok", .retention_at_floor = true },
                              full = { .health = "full: less space free than disk.free_min (log)" };

  cr_assert_not_null(strstr(readiness_of(&gone), "{\"ready\":true,"));
  cr_assert_not_null(strstr(readiness_of(&gone), "\"files\",\"ok\":false,\"stops\":false,"));
  cr_assert_not_null(strstr(readiness_of(&low), "{\"ready\":true,"));
  cr_assert_not_null(strstr(readiness_of(&low), "\"tls\",\"ok\":false,\"stops\":false,"));
  cr_assert_not_null(strstr(readiness_of(&full), "{\"ready\":false,"));
  cr_assert_not_null(strstr(readiness_of(&full), "\"disk\",\"ok\":false,\"stops\":true,"));
}

Test(http_parts, readiness_names_what_is_wrong_with_the_archive) {
  const struct tc_store_stats fine = { .health = "ok" },
                              gone = { .health = "ok", .files_missing = 2 },
                              low = { .health = "ok",
                                      .retention_at_floor = true,
                                      .disk_free_bytes = 8 << 20 };

  cr_assert_not_null(strstr(readiness_of(&fine), "\"files\",\"ok\":true"));
  cr_assert_not_null(strstr(readiness_of(&fine), "\"retention\",\"ok\":true"));
  cr_assert_not_null(strstr(readiness_of(&gone),
                            "\"files\",\"ok\":false,\"stops\":false,\"state\":\"2 were removed"));
  cr_assert_not_null(strstr(readiness_of(&low),
                            "\"retention\",\"ok\":false,\"stops\":false,\"state\":\"8 MiB free"));
}
