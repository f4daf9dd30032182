/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile peers: their own connection is ended, and others are still served. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/http_server.h"
#include "support/patience.h"

static char answer[TT_HTTP_ANSWER_BYTES];

static void expect_served(const struct tt_http *s) {
  tt_http_ask(s, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 1000, answer);
  cr_assert_not_null(strstr(answer, "\r\n\r\nok\n"), "%s", answer);
}

/* Returns whether the server has closed the connection; it resets it if it had not read everything. */
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
  tt_http_hear(empty_lines, answer, NULL); /* empty lines begin no request */
  close(empty_lines);
  tt_http_stop(s);
}

Test(http_hostile, silent_peers_shut_nobody_out) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  int silent[100];

  for (size_t i = 0; i < 100; i++) { /* there is room for 16 */
    silent[i] = tt_http_dial(s);
    if (i % 2 == 0) tt_http_say(silent[i], "GET / HT", 8);
  }
  for (int i = 0; i < 20; i++) expect_served(s);
  cr_assert(has_ended(silent[0]), "the one that has been silent the longest has given way");
  cr_expect_geq(atomic_load(&s->metrics.http_gave_way_total), 84);
  for (size_t i = 0; i < 100; i++) close(silent[i]);
  tt_http_stop(s);
}

/* All clients connect within one turn of the loop, the silent ones to two listeners. */
Test(http_hostile, one_whose_request_has_come_does_not_give_way_before_it_was_read) {
  enum { ASK = 4, SILENT = 40 };
  static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  int asking[ASK], silent[SILENT], first = tt_http_dial(s);

  s->loop_waits = true;
  tt_http_say(first, ask, sizeof ask - 1);
  TT_WAIT_UNTIL(s->health_asked == 1);
  for (int i = 0; i < ASK; i++) {
    asking[i] = i % 2 == 0 ? tt_http_dial(s) : tt_http_dial_path(s);
    tt_http_say(asking[i], ask, sizeof ask - 1);
  }
  for (int i = 0; i < SILENT; i++) silent[i] = i % 2 == 0 ? tt_http_dial(s) : tt_http_dial_path(s);
  s->loop_waits = false;
  for (int i = 0; i < ASK; i++) {
    tt_http_hear(asking[i], answer, "ok\n");
    cr_expect_not_null(strstr(answer, "\r\n\r\nok\n"), "%d: %s", i, answer);
    close(asking[i]);
  }
  for (int i = 0; i < SILENT; i++) close(silent[i]);
  close(first);
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
  /* 100 MB of answers, if all requests were answered */
  send(fd, asks, sizeof asks, MSG_NOSIGNAL | MSG_DONTWAIT);
  expect_served(s);
  ssize_t n;
  size_t heard = 0;
  while (send(fd, "G", 1, MSG_NOSIGNAL) == 1) usleep(10000); /* until the server ends it */
  while ((n = recv(fd, answer, sizeof answer, 0)) > 0) heard += (size_t)n;
  cr_assert_lt(heard, 20 << 20, "%zu bytes", heard);
  close(fd);
  expect_served(s);
  tt_http_stop(s);
}

static const char live[] = "GET /api/v1/live?kinds=none HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char scrape[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char large[] = "GET /uPlot.iife.min.js HTTP/1.1\r\nHost: localhost\r\n\r\n";
static const char page[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

static int begin_live(const struct tt_http *s, uint32_t from) {
  int fd = tt_http_dial_from(s, from);

  tt_http_say(fd, live, sizeof live - 1);
  tt_http_hear(fd, answer, "\n\n");
  return fd;
}

Test(http_hostile, health_has_places_that_nobody_can_take) {
  struct tc_http_limits limits = tt_http_limits();
  int readers[4], silent[100];

  limits.connections_max = 4;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, NULL);
  for (size_t i = 0; i < 4; i++) readers[i] = begin_live(s, INADDR_LOOPBACK);
  for (size_t i = 0; i < 100; i++) silent[i] = tt_http_dial(s);
  for (int i = 0; i < 20; i++) {
    expect_served(s);
    tt_http_ask(s, scrape, 1000, answer);
    cr_assert_not_null(strstr(answer, "tracecollect_up 1"), "%s", answer);
  }
  tt_http_ask(s, page, 1000, answer);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 503"), "%s", answer);
  cr_assert_not_null(strstr(answer, "http.requests_max"), "%s", answer);
  close(readers[0]);
  do tt_http_ask(s, page, 1000, answer);
  while (strstr(answer, "HTTP/1.1 503") != NULL);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 200"), "%s", answer);
  for (size_t i = 1; i < 4; i++) close(readers[i]);
  for (size_t i = 0; i < 100; i++) close(silent[i]);
  tt_http_stop(s);
}

Test(http_hostile, a_live_reader_that_never_reads_is_ended) {
  struct tc_http_limits limits = tt_http_limits();
  int small = 2048;

  limits.stall_ms = 300;
  limits.heartbeat_ms = 1;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, NULL);
  int deaf = tt_http_dial(s), reads = tt_http_dial(s);

  setsockopt(deaf, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  for (int i = 0; i < 4; i++) tt_http_say(deaf, large, sizeof large - 1); /* so it is full sooner */
  tt_http_say(deaf, live, sizeof live - 1);
  tt_http_say(reads, live, sizeof live - 1);
  while (atomic_load(&s->metrics.http_timeouts_total) == 0)
    cr_assert_gt(recv(reads, answer, sizeof answer, 0), 0, "one who reads stays");
  tt_http_hear(reads, answer, ": alive");
  TT_WAIT_UNTIL(atomic_load(&s->metrics.http_connections) == 1); /* the time-out is counted first */
  close(deaf);
  close(reads);
  tt_http_stop(s);
}

Test(http_hostile, one_owner_has_a_share_of_the_live_readers) {
  struct tc_http_limits limits = tt_http_limits();

  limits.owner_live_max = 1;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, NULL);
  int first = begin_live(s, INADDR_LOOPBACK), other = begin_live(s, INADDR_LOOPBACK + 1);

  cr_assert_not_null(strstr(answer, "text/event-stream"), "%s", answer);
  tt_http_ask(s, live, 1000, answer);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 503"), "%s", answer);
  cr_assert_not_null(strstr(answer, "http.owner_live_max"), "%s", answer);
  close(first);
  close(other);
  tt_http_stop(s);
}

/* Such a client cannot be told apart from one that has closed. */
Test(http_hostile, one_who_ends_its_side_before_its_answer_begins_has_left) {
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  int fds[] = { tt_http_dial(s), tt_http_dial_path(s) };

  s->metrics_wait = true;
  for (unsigned i = 0; i < 2; i++) {
    tt_http_say(fds[i], scrape, sizeof scrape - 1);
    TT_WAIT_UNTIL(atomic_load(&s->metrics.http_connections) == 2 - i);
    shutdown(fds[i], SHUT_WR);
    TT_WAIT_UNTIL(atomic_load(&s->metrics.http_connections) == 1 - i);
  }
  s->metrics_wait = false;
  for (unsigned i = 0; i < 2; i++) {
    cr_expect_eq(tt_http_hear(fds[i], answer, NULL), 0, "%s", answer);
    close(fds[i]);
  }
  tt_http_stop(s);
}

Test(http_hostile, the_question_of_one_who_has_gone_is_not_worked_on) {
  enum { GONE = 10 };
  struct tt_http *s = tt_http_start("127.0.0.1:0", NULL, NULL);
  const struct linger reset = { .l_onoff = 1 };
  int gone[GONE], first = tt_http_dial(s);

  s->metrics_wait = true;
  tt_http_say(first, scrape, sizeof scrape - 1);
  TT_WAIT_UNTIL(s->scrapes == 1);
  for (int i = 0; i < GONE; i++) {
    gone[i] = tt_http_dial(s);
    tt_http_say(gone[i], scrape, sizeof scrape - 1);
    tt_http_say(gone[i], scrape, sizeof scrape - 1); /* waiting bytes do not hide the close */
    if (i % 2 == 0) setsockopt(gone[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  TT_WAIT_UNTIL(atomic_load(&s->metrics.http_connections) == 1 + GONE);
  for (int i = 0; i < GONE; i++) close(gone[i]);
  TT_WAIT_UNTIL(atomic_load(&s->metrics.http_connections) == 1);
  s->metrics_wait = false;
  tt_http_hear(first, answer, "_up 1\n");
  tt_http_ask(s, scrape, 1000, answer);
  cr_assert_eq(s->scrapes, 2, "%u", s->scrapes);
  close(first);
  tt_http_stop(s);
}

Test(http_hostile, one_who_is_slow_to_take_an_answer_gives_way) {
  struct tc_http_limits limits = tt_http_limits();
  int small = 4096;

  limits.connections_max = 1;
  struct tt_http *s = tt_http_start("127.0.0.1:0", &limits, NULL);
  int slow = tt_http_dial(s);
  setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  for (int i = 0; i < 500; i++)
    if (send(slow, large, sizeof large - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
  TT_WAIT_UNTIL(atomic_load(&s->metrics.http_requests_total) > 0);
  do tt_http_ask(s, page, 1000, answer);
  while (strstr(answer, "HTTP/1.1 503") != NULL);
  cr_assert_not_null(strstr(answer, "HTTP/1.1 200"), "%s", answer);
  close(slow);
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
