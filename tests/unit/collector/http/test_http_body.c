/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of requests, by the first route that has one: rules of triggers are added and removed. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/archive.pb-c.h"
#include "support/archive_host.h"
#include "support/http_server.h"

#define RULE         "slow WHEN finding leak DO keep"
#define HEAD(fields) "POST /api/v1/triggers HTTP/1.1\r\nHost: localhost\r\n" fields
#define JSON         "Content-Type: application/json\r\n"

static struct tt_host host;
static struct tt_http *server;
static char answer[TT_HTTP_ANSWER_BYTES], text[2 << 20];

static void open_with(const struct tc_http_limits *limits) {
  tt_host_open(&host, 1);
  server = tt_http_start("127.0.0.1:0", limits, host.query);
}

static void open_all(void) {
  open_with(NULL);
}

static void close_all(void) {
  tt_http_stop(server);
  tt_host_close(&host);
}

TestSuite(http_body, .init = open_all, .fini = close_all);

static const char *say(const char *whole, size_t piece) {
  tt_http_ask_at(tt_http_dial_path(server), whole, piece, answer);
  return answer;
}

static const char *post(const char *type, const void *body, size_t n) {
  int at = sprintf(
      text, HEAD("Connection: close\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n"), type, n);
  int fd = tt_http_dial_path(server);

  memcpy(text + at, body, n);
  tt_http_say(fd, text, (size_t)at + n);
  tt_http_hear(fd, answer, NULL);
  close(fd);
  return answer;
}

static tb_rc count_rule(void *self, const struct tc_trigger_status *status, const char *rule) {
  (void)status;
  (void)rule;
  ++*(unsigned *)self;
  return TB_OK;
}

static unsigned rules(void) {
  unsigned n = 0;

  cr_assert_eq(tc_triggers_each(host.triggers, &n, count_rule), TB_OK);
  return n;
}

#define EXPECT(said, part) cr_expect_not_null(strstr(said, part), "%s\n%s", part, answer)

static const char add[] =
    HEAD(JSON) "Connection: close\r\nContent-Length: 40\r\n\r\n{\"add\":\"" RULE "\"}";
static const char remove_it[] =
    "DELETE /api/v1/triggers/slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

Test(http_body, rules_are_added_and_removed) {
  EXPECT(say(add, 1000), "HTTP/1.1 201 Created");
  EXPECT(answer, "\"text\":\"" RULE "\"");
  cr_expect_eq(rules(), 1);
  EXPECT(say(add, 1000), "HTTP/1.1 409 Conflict");
  EXPECT(answer, "\"code\":\"BROKEN\",\"error\":\"there is a rule \\\"slow\\\" already");
  EXPECT(say(remove_it, 1000), "HTTP/1.1 200 OK");
  cr_expect_eq(rules(), 0);
  EXPECT(say(remove_it, 1000), "HTTP/1.1 404");
}

Test(http_body, a_body_may_be_protobuf) {
  Tracecollect__V1__TriggerRequest ask = TRACECOLLECT__V1__TRIGGER_REQUEST__INIT;
  unsigned char packed[200];
  size_t n;

  ask.add = (char *)(uintptr_t)RULE;
  n = tracecollect__v1__trigger_request__pack(&ask, packed);
  EXPECT(post("application/protobuf", packed, n), "HTTP/1.1 201");
  cr_expect_eq(rules(), 1);
  for (size_t cut = 1; cut < n; cut++) {
    post("application/x-protobuf", packed, cut);
    cr_expect_eq(strncmp(answer, "HTTP/1.1 400", 12), 0, "%zu: %s", cut, answer);
  }
  cr_expect_eq(rules(), 1);
}

Test(http_body, what_is_wrong_in_a_body_is_said) {
  static const struct {
    const char *body, *words;
  } rows[] = {
    { "", "add: a rule is needed" },
    { "{}", "add: a rule is needed" },
    { "{\"rule\":\"x\"}", "no field \\\"rule\\\" in a TriggerRequest" },
    { "{\"add\":7}", "add: must be a string" },
    { "{\"add\":\"x\",\"add\":\"y\"}", "duplicate object key" },
    { "{\"add\":\"slow\"}", "\"status\":400" },
    { "{\"remove\":\"slow\"}", "no field \\\"remove\\\" in a TriggerRequest" },
    { "{\"add\":\"x\"", "not JSON" },
  };

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    post("application/json; charset=utf-8", rows[i].body, strlen(rows[i].body));
    cr_expect_eq(strncmp(answer, "HTTP/1.1 400", 12), 0, "%s: %s", rows[i].body, answer);
    EXPECT(answer, rows[i].words);
  }
  EXPECT(say(HEAD(JSON) "Connection: close\r\n\r\n", 1000), "add: a rule is needed");
  EXPECT(say("POST /api/v1/triggers?add=x HTTP/1.1\r\nHost: localhost\r\n" JSON
             "Connection: close\r\nContent-Length: 2\r\n\r\n{}",
             1000),
         "only what is asked with GET has parameters");
  cr_expect_eq(rules(), 0);
}

Test(http_body, a_request_with_a_body_may_be_cut_anywhere) {
  for (size_t cut = 1; cut < sizeof add - 1; cut++) {
    int fd = tt_http_dial_path(server);

    tt_http_say(fd, add, cut);
    close(fd);
  }
  cr_expect_eq(rules(), 0, "none was whole");
  for (size_t piece = 1; piece < sizeof add; piece += 3) {
    EXPECT(say(add, piece), "HTTP/1.1 201");
    EXPECT(say(remove_it, piece), "HTTP/1.1 200");
  }
}

Test(http_body, the_next_request_follows_the_body) {
  char *at = text;
  unsigned n = 0;

  for (int i = 0; i < 50; i++) {
    char body[100];
    int len = sprintf(body, "{\"add\":\"r%d WHEN finding leak DO keep\"}", i);

    at += sprintf(at, HEAD(JSON "Content-Length: %d\r\n\r\n%s"), len, body);
    at += sprintf(at, "DELETE /api/v1/triggers/r%d HTTP/1.1\r\nHost: localhost\r\n%s\r\n", i,
                  i == 49 ? "Connection: close\r\n" : "");
  }
  for (size_t piece = 7; piece < 100000; piece *= 37) {
    /* a client that closes its side after the first answer counts as gone */
    int fd = tt_http_dial_path(server);

    tt_http_say_in_pieces(fd, text, piece);
    tt_http_hear(fd, answer, NULL);
    close(fd);
    n = 0;
    for (const char *found = answer; (found = strstr(found, "HTTP/1.1 20")) != NULL; found++) n++;
    cr_expect_eq(n, 100, "%u\n%s", n, answer);
    cr_expect_eq(rules(), 0);
  }
}

Test(http_body, one_who_waits_for_100_continue_hears_it) {
  static const char head[] =
      HEAD(JSON) "Expect: 100-continue\r\nConnection: close\r\nContent-Length: 40\r\n\r\n";
  int fd = tt_http_dial_path(server);

  tt_http_say(fd, head, sizeof head - 1);
  tt_http_hear(fd, answer, "\r\n\r\n");
  cr_expect_str_eq(answer, "HTTP/1.1 100 Continue\r\n\r\n");
  tt_http_say(fd, strstr(add, "{\"add"), 40);
  tt_http_hear(fd, answer, NULL);
  EXPECT(answer, "HTTP/1.1 201");
  close(fd);

  /* A client without the right is refused instead. */
  fd = tt_http_dial(server);
  tt_http_say(fd, head, sizeof head - 1);
  tt_http_hear(fd, answer, NULL);
  cr_expect_eq(strncmp(answer, "HTTP/1.1 403", 12), 0, "%s", answer);
  close(fd);
}

Test(http_body, one_that_is_too_large_is_refused_before_it_is_read) {
  EXPECT(say(HEAD(JSON) "Content-Length: 65537\r\n\r\n", 1000), "HTTP/1.1 413");
  EXPECT(answer, "larger than http.body_bytes_max");
  EXPECT(answer, "Connection: close");
  EXPECT(say(HEAD(JSON) "Content-Length: 18446744073709551604\r\n\r\n", 1000), "HTTP/1.1 413");
  /* The largest body that is allowed: it is read, and is then not valid JSON. */
  int at = sprintf(text, HEAD(JSON "Connection: close\r\nContent-Length: 65536\r\n\r\n"));
  memset(text + at, '[', 65536);
  text[at + 65536] = '\0';
  EXPECT(say(text, 4096), "HTTP/1.1 400");
  EXPECT(answer, "not JSON");
  cr_expect_eq(atomic_load(&server->metrics.http_client_errors_total), 3);
}

/* In one head, and in as many heads: a clear answer, although the peer is still sending. */
Test(http_body, a_megabyte_of_heads_is_refused) {
  static const char *const begins[] = {
    "GET / HTTP/1.1\r\nHost: localhost\r\n",
    HEAD(JSON),
    HEAD(JSON "Content-Length: 40\r\n"),
  };
  int at;

  for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
    at = sprintf(text, "%s", begins[i]);
    while (at < 1 << 20) at += sprintf(text + at, "X-%d: %0100d\r\n", at, 0);
    EXPECT(say(text, 1 << 20), "HTTP/1.1 431");
    EXPECT(answer, "the head of the request is too long");
    tt_http_ask(server, text, 1 << 20, answer);
    EXPECT(answer, "HTTP/1.1 431");
    tt_http_ask(server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000, answer);
    EXPECT(answer, "HTTP/1.1 200");
  }
  for (at = 0; at < 1 << 20;) at += sprintf(text + at, "GET / HTTP/1.1\r\nX: %0100d\r\n", 0);
  EXPECT(say(text, 1 << 20), "HTTP/1.1 400");
  cr_expect_eq(atomic_load(&server->metrics.http_client_errors_total), 7);
  cr_expect_eq(rules(), 0);
}

Test(http_body, what_follows_a_refused_body_is_not_a_request) {
  static const char *const heads[] = {
    HEAD("Content-Type: text/plain\r\n"),
    HEAD(JSON "Origin: http://evil.example\r\n"),
    "POST /api/v1/triggers HTTP/1.1\r\nHost: evil.example\r\n" JSON,
    "PUT /api/v1/triggers HTTP/1.1\r\nHost: localhost\r\n" JSON,
    "POST /metrics HTTP/1.1\r\nHost: localhost\r\n" JSON,
    "PATCH /metrics HTTP/1.1\r\nHost: localhost\r\n" JSON,
  };
  static const char inside[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
    for (size_t piece = 1; piece < 2000; piece = piece * 2 + 1) {
      sprintf(text, "%sContent-Length: %zu\r\n\r\n%s%s", heads[i], sizeof inside - 1, inside,
              inside);
      say(text, piece);
      cr_assert_eq(strncmp(answer, "HTTP/1.1 4", 10), 0, "%s\n%s", text, answer);
      cr_assert_not_null(strstr(answer, "Connection: close"), "%s", answer);
      cr_assert_null(strstr(answer, "tracecollect_up"), "%s\n%s", text, answer);
    }
}

Test(http_body, a_slow_body_is_ended_in_time) {
  struct tc_http_limits limits = tt_http_limits();

  limits.request_ms = 100;
  close_all();
  open_with(&limits);
  int fd = tt_http_dial_path(server);
  tt_http_say(fd, add, sizeof add - 2);
  tt_http_hear(fd, answer, NULL);
  EXPECT(answer, "HTTP/1.1 408");
  cr_expect_eq(atomic_load(&server->metrics.http_timeouts_total), 1);
  cr_expect_eq(rules(), 0);
  close(fd);
}
