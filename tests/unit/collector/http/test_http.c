/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as the server implements it. For the API's answers see test_http_api.c, for hostile
 * peers test_http_hostile.c. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/http_server.h"
#include "support/peer.h"

static char answer[TT_HTTP_ANSWER_BYTES];

static void expect(const struct tt_http *s, const char *text, const char *status,
                   const char *body) {
  tt_http_ask(s, text, 100000, answer);
  cr_expect_eq(strncmp(answer, status, strlen(status)), 0, "%s\n%s", text, answer);
  cr_expect_not_null(strstr(answer, body), "%s\n%s", text, answer);
}

static unsigned count(const char *text, const char *what) {
  unsigned n = 0;

  for (const char *at = text; (at = strstr(at, what)) != NULL; at++) n++;
  return n;
}

Test(http, metrics_and_health_are_served) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);

  expect(s, "GET /metrics HTTP/1.1\r\nHost: localhost:7073\r\n\r\n", "HTTP/1.1 200 OK",
         "\r\n\r\ntracecollect_up 1\n");
  expect(s, "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n", "HTTP/1.1 200 OK", "\r\n\r\nok\n");
  expect(s, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK",
         "{\"name\":\"tls\",\"ok\":true,\"stops\":false,\"state\":\"the server's certificate is "
         "valid for");
  s->unhealthy = "disk full";
  expect(s, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 503", "disk full\n");
  expect(s, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 503", "\"ready\":false");
  tt_http_ask(s, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 100, answer);
  cr_assert_not_null(strstr(answer, "Content-Length: 18"), "%s", answer);
  cr_assert_null(strstr(answer, "tracecollect_up"));
  tt_http_ask(s, "GET /metrics HTTP/1.1\r\nAccept: */*\r\nHost: localhost\r\n\r\n", 1, answer);
  cr_assert_not_null(strstr(answer, "tracecollect_up 1"), "byte by byte: %s", answer);
  tt_http_stop(s);
}

Test(http, what_is_not_served_is_said) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  static char big[20000];

  expect(s, "GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404",
         "{\"status\":404,\"code\":\"NOTFOUND\",\"error\":\"no such path; there are /, "
         "/healthz, /readyz, ");
  expect(s, "DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405",
         "Allow: GET, HEAD\r\n");
  expect(s, "OPTIONS /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 405",
         "Allow: GET, HEAD\r\n");
  expect(s, "BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 501", "error");
  expect(s, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 421", "another name");
  expect(s, "GET /metrics HTTP/1.1\r\nHost: [::1].evil.com\r\n\r\n", "HTTP/1.1 421", "name");
  expect(s, "GET /metrics HTTP/1.1\r\nHost: localhost:7.evil.com\r\n\r\n", "HTTP/1.1 421", "name");
  expect(s, "GET /metrics HTTP/1.1\r\nHost: [::1]:7073\r\n\r\n", "HTTP/1.1 200", "");
  expect(s, "GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 421",
         "another name");
  expect(s, "GET http://localhost:1/metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 200",
         "tracecollect_up");
  expect(s, "GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "Host is missing");
  expect(s, "GET /metrics HTTP/2.0\r\nHost: localhost\r\n\r\n", "HTTP/1.1 505",
         "1.1 are supported");
  expect(s, "\x16\x03\x01 this is not HTTP\r\n\r\n", "HTTP/1.1 501", "error");
  snprintf(big, sizeof big, "GET /%04000d HTTP/1.1\r\nHost: localhost\r\n\r\n", 0);
  expect(s, big, "HTTP/1.1 414", "URL is too long");
  snprintf(big, sizeof big, "GET / HTTP/1.1\r\nX: %012000d", 0);
  expect(s, big, "HTTP/1.1 431", "head of the request is too long");
  snprintf(big, sizeof big, "GET / HTTP/1.1\r\nRange: %0500d", 0);
  expect(s, big, "HTTP/1.1 431", "value is too long");
  tt_http_stop(s);
}

Test(http, a_connection_stays_for_the_next_request) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  int fd = tt_http_dial(s);

  for (int i = 0; i < 3; i++) {
    const char *ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

    tt_http_say(fd, ask, strlen(ask));
    tt_http_hear(fd, answer, "_up 1\n");
    cr_assert_not_null(strstr(answer, "tracecollect_up 1\n"), "%s", answer);
    cr_assert_null(strstr(answer, "Connection:"), "%s", answer);
  }
  const char *last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  tt_http_say(fd, last, strlen(last));
  tt_http_hear(fd, answer, NULL); /* reads until the server closes */
  cr_assert_not_null(strstr(answer, "Connection: close\r\n"), "%s", answer);
  close(fd);

  expect(s, "GET /healthz HTTP/1.0\r\n\r\n", "HTTP/1.1 200", "Connection: close\r\n");
  expect(s, "GET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "HTTP/1.1 200",
         "Connection: keep-alive\r\n");
  tt_http_stop(s);
}

Test(http, pipelined_requests_are_answered_in_order) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  static char asks[100000];
  size_t len = 0;

  /* A worker answers one of the requests, and the loop answers the others at once. The answers must still be in order. */
  for (int i = 0; i < 200; i++)
    len += (size_t)snprintf(asks + len, sizeof asks - len,
                            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
                            "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
                            "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
                            "GET /nothing-%d HTTP/1.1\r\nHost: localhost\r\n\r\n",
                            i);
  /* In the last request: the connection stays open until that is answered. */
  strcpy(asks + len - 2, "Connection: close\r\n\r\n");
  for (size_t piece = 7; piece < 100000; piece *= 37) {
    const char *at = answer;

    int fd = tt_http_dial(s);
    tt_http_say_in_pieces(fd, asks, piece);
    tt_http_hear(fd, answer, NULL);
    close(fd);
    cr_assert_eq(count(answer, "HTTP/1.1 200 OK"), 600, "pieces of %zu: %u", piece,
                 count(answer, "HTTP/1.1 200 OK"));
    cr_assert_eq(count(answer, "HTTP/1.1 404"), 200);
    for (int i = 0; i < 200; i++) {
      static const char *const order[] = { "\r\n\r\nok\n", "\r\n\r\ntracecollect_up 1\n",
                                           "Content-Length: 18\r\n", "HTTP/1.1 404" };

      for (size_t k = 0; k < 4; k++) {
        const char *found = strstr(at, order[k]);
        cr_assert_not_null(found, "request %d.%zu", i, k);
        at = found + 1;
      }
    }
  }
  tt_http_stop(s);
}

Test(http, the_page_is_whole_and_may_load_nothing_from_elsewhere) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  char tag[128] = "", ask[400];

  expect(s, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200 OK",
         "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
         "connect-src 'self'");
  cr_assert_not_null(strstr(answer, "<!doctype html>"));
  cr_assert_null(strstr(answer, "unsafe-inline"));
  const char *body = strstr(answer, "\r\n\r\n");
  cr_assert_null(strstr(body, "://"), "a link to elsewhere");
  cr_assert_null(strstr(body, "style="), "an inline style");
  cr_assert_null(strstr(body, "onclick"), "an inline script");
  cr_assert_eq(sscanf(strstr(answer, "ETag: "), "ETag: %127s", tag), 1);
  snprintf(ask, sizeof ask, "GET / HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: %s\r\n\r\n", tag);
  expect(s, ask, "HTTP/1.1 304", tag);
  cr_assert_null(strstr(answer, "<!doctype"));
  cr_assert_null(strstr(answer, "Content-Length"));
  expect(s, "GET /uPlot.iife.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200",
         "text/javascript");
  expect(s, "GET /uPlot.LICENSE HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200",
         "The MIT License");
  tt_http_stop(s);
}

static void ask_tls(const struct tt_http *s, const char *name, const char *alpn, const char *text) {
  char address[64];
  struct tt_peer_terms terms = {
    .address = address, .ca_dir = s->host.dir, .name = name, .alpn = alpn
  };
  struct tt_peer peer;
  size_t len = 0, n;

  snprintf(address, sizeof address, "127.0.0.1:%u", s->port);
  cr_assert(tt_peer_open(&peer, &terms), "%s", peer.why);
  cr_assert(tt_peer_send(&peer, text, strlen(text)), "%s", peer.why);
  while (SSL_read_ex(peer.ssl, answer + len, sizeof answer - 1 - len, &n) == 1) len += n;
  answer[len] = '\0';
  tt_peer_close(&peer);
}

static void open_tls(const struct tt_http *s, const char *name, struct tt_peer *out) {
  char address[64];
  struct tt_peer_terms terms = { .address = address, .ca_dir = s->host.dir, .name = name };

  snprintf(address, sizeof address, "127.0.0.1:%u", s->port);
  cr_assert(tt_peer_open(out, &terms), "%s", out->why);
}

static void expect_metrics(struct tt_peer *peer) {
  static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  size_t len = 0, n;

  cr_assert(tt_peer_send(peer, ask, sizeof ask - 1), "%s", peer->why);
  do {
    cr_assert_eq(SSL_read_ex(peer->ssl, answer + len, sizeof answer - 1 - len, &n), 1);
    answer[len += n] = '\0';
  } while (strstr(answer, "tracecollect_up 1") == NULL);
}

/* They shut out neither a connected reader, nor a new one, nor the handshake of another address. */
Test(http, handshakes_that_never_end_shut_no_reader_out) {
  struct tt_http *s = tt_http_start("0.0.0.0:0", NULL, NULL); /* 16 places */
  struct tt_peer in, comes;
  int silent[40], other;
  char byte;

  open_tls(s, "reader", &in);
  expect_metrics(&in);
  other = tt_http_dial_from(s, INADDR_LOOPBACK + 1);
  for (int i = 0; i < 40; i++) silent[i] = tt_http_dial(s);
  open_tls(s, "reader", &comes);
  expect_metrics(&comes);
  expect_metrics(&in);
  for (int i = 0; i < 36; i++) cr_assert_leq(recv(silent[i], &byte, 1, 0), 0);
  cr_assert_lt(recv(other, &byte, 1, MSG_DONTWAIT), 0);
  cr_assert_eq(errno, EAGAIN, "many of one address push out no other");
  for (int i = 0; i < 40; i++) close(silent[i]);
  close(other);
  tt_peer_close(&in);
  tt_peer_close(&comes);
  tt_http_stop(s);
}

#define ASK(path) "GET " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

Test(http, the_unix_socket_answers_as_loopback_does) {
  struct tt_http *s = tt_http_start("0.0.0.0:0", NULL, NULL),
                 *alone = tt_http_start("", NULL, NULL);
  const char *ask = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

  for (const struct tt_http *each = s;; each = alone) {
    int fd = tt_http_dial_path(each);

    tt_http_say(fd, ask, strlen(ask));
    tt_http_hear(fd, answer, NULL);
    cr_expect_not_null(strstr(answer, "tracecollect_up 1\n"), "%s", answer);
    close(fd);
    if (each == alone) break;
  }
  cr_expect_str_eq(alone->address, "");
  tt_http_stop(alone);
  tt_http_stop(s);
}

Test(http, off_loopback_all_but_health_wants_a_readers_certificate) {
  struct tt_http *s = tt_http_start("0.0.0.0:0", NULL, NULL);

  ask_tls(s, "reader", NULL, ASK("/metrics"));
  cr_assert_not_null(strstr(answer, "tracecollect_up 1"), "%s", answer);
  ask_tls(s, "reader", "http/1.1", ASK("/"));
  cr_assert_not_null(strstr(answer, "<!doctype html>"), "%s", answer);
  ask_tls(s, "agent", "http/1.1", ASK("/metrics"));
  cr_assert_not_null(strstr(answer, "HTTP/1.1 403"), "%s", answer);
  cr_assert_not_null(
      strstr(
          answer,
          "a reader's certificate is needed, or http.metrics: open; here: tracecollect:agent/test"),
      "%s", answer);
  ask_tls(s, NULL, NULL, ASK("/api/v1/streams"));
  cr_assert_not_null(strstr(answer, "no certificate"), "%s", answer);
  ask_tls(s, NULL, NULL, ASK("/healthz"));
  cr_assert_not_null(strstr(answer, "HTTP/1.1 200 OK"), "%s", answer);
  tt_http_stop(s);
}

Test(http, who_offers_only_another_protocol_is_told_so) {
  struct tt_http *s = tt_http_start("0.0.0.0:0", NULL, NULL);
  char address[64];
  struct tt_peer_terms terms = {
    .address = address, .ca_dir = s->host.dir, .name = "reader", .alpn = "h2"
  };
  struct tt_peer peer;

  snprintf(address, sizeof address, "127.0.0.1:%u", s->port);
  cr_assert_not(tt_peer_open(&peer, &terms));
  cr_assert_not_null(strstr(peer.why, "no application protocol"), "%s", peer.why);
  tt_peer_close(&peer);
  tt_http_stop(s);
}
