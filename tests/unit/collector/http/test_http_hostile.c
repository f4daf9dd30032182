/* SPDX-License-Identifier: Apache-2.0 */
/* Peers that mean ill: what they send ends at them, others are served on. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/http_server.h"

static char answer[TT_HTTP_ANSWER_BYTES];

static void expect_served(const struct tt_http *s) {
  tt_http_ask(s, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000, answer);
  cr_assert_not_null(strstr(answer, "\r\n\r\nok\n"), "%s", answer);
}

/* Closed; with a reset where the server had not read all that it was told. */
static bool has_ended(int fd) {
  char byte;
  ssize_t n = recv(fd, &byte, 1, 0);

  return n == 0 || (n < 0 && errno == ECONNRESET);
}

Test(http_hostile, a_slow_head_is_ended_in_time) {
  struct tc_http_limits limits = tt_http_limits();

  limits.request_ms = 100;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, NULL);
  int fd = tt_http_dial(s);

  tt_http_say(fd, "GET / HTTP/1.1\r\nX: ", 19);
  tt_http_hear(fd, answer, NULL);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 408"), "%s", answer);
  cr_expect_eq(atomic_load(&s->metrics.http_timeouts_total), 1);
  cr_expect_eq(atomic_load(&s->metrics.http_requests_total), 1);
  close(fd);

  limits.request_ms = 30000;
  expect_served(s);
  tt_http_stop(s);
}

Test(http_hostile, a_connection_without_a_request_is_ended_in_time) {
  struct tc_http_limits limits = tt_http_limits();

  limits.idle_ms = 50;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, NULL);
  int fd = tt_http_dial(s), empty_lines = tt_http_dial(s);

  cr_assert(has_ended(fd));
  close(fd);
  tt_http_say(empty_lines, "\r\n\r\n", 4);
  tt_http_hear(empty_lines, answer, NULL); /* which begin no request */
  close(empty_lines);
  tt_http_stop(s);
}

Test(http_hostile, silent_peers_shut_nobody_out) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  int silent[100];

  for (size_t i = 0; i < 100; i++) { /* where 16 find room */
    silent[i] = tt_http_dial(s);
    if (i % 2 == 0) tt_http_say(silent[i], "GET / HT", 8);
  }
  for (int i = 0; i < 20; i++) expect_served(s);
  cr_assert(has_ended(silent[0]), "the one that has been silent the longest has given way");
  cr_expect_geq(atomic_load(&s->metrics.http_gave_way_total), 84);
  for (size_t i = 0; i < 100; i++) close(silent[i]);
  tt_http_stop(s);
}

Test(http_hostile, one_who_does_not_read_is_ended_and_holds_nobody_up) {
  struct tc_http_limits limits = tt_http_limits();
  static const char ask[] = "GET /uPlot.iife.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
  static char asks[(sizeof ask - 1) * 2000];
  int small = 4096;

  limits.stall_ms = 200;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, NULL);
  int fd = tt_http_dial(s);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  for (size_t i = 0; i < 2000; i++) memcpy(asks + i * (sizeof ask - 1), ask, sizeof ask - 1);
  send(fd, asks, sizeof asks, MSG_NOSIGNAL | MSG_DONTWAIT); /* 100 MB, if all were answered */
  expect_served(s);
  ssize_t n;
  size_t heard = 0;
  while (send(fd, "G", 1, MSG_NOSIGNAL) == 1) usleep(10000); /* until it has been ended */
  while ((n = recv(fd, answer, sizeof answer, 0)) > 0) heard += (size_t)n;
  cr_assert_lt(heard, 20 << 20, "%zu bytes", heard);
  close(fd);
  expect_served(s);
  tt_http_stop(s);
}

Test(http_hostile, nothing_behind_a_refused_head_is_read_as_a_request) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  static const char *const heads[] = {
    "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 44\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nTransfer-Encoding: "
    "chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: "
    "x\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length : 3\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n",
  };
  char text[1000];

  for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
    snprintf(text, sizeof text, "%sGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", heads[i]);
    for (size_t piece = 1; piece < 2000; piece = piece * 2 + 1) {
      tt_http_ask(s, text, piece, answer);
      cr_assert_eq(strncmp(answer, "HTTP/1.1 4", 10), 0, "%s\n%s", text, answer);
      cr_assert_not_null(strstr(answer, "Connection: close"), "%s", answer);
      cr_assert_null(strstr(answer, "tracecollect_up"), "%s\n%s", text, answer);
    }
  }
  tt_http_stop(s);
}

Test(http_hostile, no_path_leads_out) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  static const char *const paths[] = {
    "/../../etc/passwd",
    "/..%2f..%2fetc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "//etc/passwd",
    "/vendor/../index.html",
    "/./index.html",
    "/api/v1/segments/../../../catalog.db",
    "/api/v1/segments/1/..",
    "/api/v1/segments/%2e%2e%2f1",
    "/api/v1/segments/-1",
    "/api/v1/segments/1%00",
    "/api/v1/segments/",
    "/healthz/",
    "/HEALTHZ",
    "/page/index.html",
  };
  char text[300];

  for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", paths[i]);
    tt_http_ask(s, text, 1000, answer);
    cr_expect(strncmp(answer, "HTTP/1.1 404", 12) == 0 || strncmp(answer, "HTTP/1.1 400", 12) == 0,
              "%s: %s", paths[i], answer);
    cr_expect_null(strstr(answer, "root:"));
  }
  tt_http_stop(s);
}

Test(http_hostile, every_cut_and_every_noise_leaves_a_server_that_answers) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  static const char text[] =
      "GET /metrics?a=b HTTP/1.1\r\nHost: localhost\r\nRange: bytes=0-1\r\n\r\n";
  char noise[64];
  unsigned seed = 7;

  for (size_t cut = 1; cut < sizeof text; cut++) {
    int fd = tt_http_dial(s);
    tt_http_say(fd, text, cut);
    close(fd);
  }
  for (int i = 0; i < 300; i++) {
    int fd = tt_http_dial(s);
    for (size_t k = 0; k < sizeof noise; k++) noise[k] = (char)rand_r(&seed);
    if (i % 3 == 0) memcpy(noise, "GET /", 5);
    tt_http_say(fd, noise, sizeof noise);
    close(fd);
  }
  expect_served(s);
  tt_http_stop(s);
}
