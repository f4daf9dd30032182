/* SPDX-License-Identifier: Apache-2.0 */
/* Each parameter of each path with invalid values: the answer is a client's error and names the parameter. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/archive_host.h"
#include "support/http_server.h"

#define STREAM "07070707070707070707070707070707"

enum { LONG = 600 };

static struct tt_host host;
static struct tt_http *server;
static char answer[TT_HTTP_ANSWER_BYTES];

static void open_all(void) {
  tt_host_open(&host, 1);
  struct tc_http_limits limits = tt_http_limits();
  limits.timeline_bytes = 64 << 20;
  server = tt_http_start("127.0.0.1:0", &limits, host.query);
}

static void close_all(void) {
  tt_http_stop(server);
  tt_host_close(&host);
}

TestSuite(http_parameters, .init = open_all, .fini = close_all);

/* A stream whose header has a version that no Go writes. */
static void write_unknown_version(void) {
  struct tt_writer w = tt_host_writer(&host, 1, 7);

  tt_record(&w, TP_HEADER, 0, "go 1.99 trace\0\0\0", 16);
  for (uint64_t gen = 1; gen <= 2; gen++) tt_generation(&w, gen, 3, 1000);
  tt_barrier(&host.store);
}

static int status_of(const char *path) {
  char text[2 * LONG];
  int status = 0;

  snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
  tt_http_ask(server, text, sizeof text, answer);
  cr_assert_eq(sscanf(answer, "HTTP/1.1 %d", &status), 1, "%s: %s", path, answer);
  return status;
}

static const struct path {
  const char *path, *whole; /* whole: a valid query */
  const char *params[12];
} paths[] = {
  { "/api/v1/segments",
    "limit=1",
    { "since", "until", "limit", "after", "arrived_since", "arrived_until", "newest" } },
  { "/api/v1/report/sched", "window=all", { "stream", "window", "top" } },
  { "/api/v1/history/sched",
    "",
    { "stream", "since", "until", "figures", "top", "after", "after_ns" } },
  { "/api/v1/firings", "", { "after", "newest", "newest_of_rule" } },
  { "/api/v1/findings", "", { "since", "open" } },
  { "/api/v1/spans",
    "stream=" STREAM,
    { "stream", "from", "to", "px", "lanes", "goroutines", "after", "limit", "format" } },
  { "/api/v1/span",
    "stream=" STREAM "&gen=1&ns=1&goroutine=1",
    { "stream", "gen", "ns", "goroutine", "proc", "thread" } },
  { "/api/v1/state", "stream=" STREAM "&gen=1&ns=1", { "stream", "gen", "ns" } },
  { "/api/v1/stretch/sched", "stream=" STREAM, { "stream", "from", "to", "top" } },
  { "/api/v1/why",
    "stream=" STREAM "&task=1",
    { "stream", "from", "to", "task", "goroutine", "ns" } },
};

static const char *const values[] = {
  "x",        "-x",    "18446744073709551616", "18446744073709551619", "%zz", "%00", "1e3",
  "%1b%5b2J", "%C3%28"
};

/* Writes a request that is valid except for one parameter. */
static void put_wrong(char *out, size_t bytes, const struct path *path, const char *param,
                      const char *value) {
  char whole[200], *rest = whole;
  size_t name = strlen(param);
  int n = snprintf(out, bytes, "%s?%s=%s", path->path, param, value);

  snprintf(whole, sizeof whole, "%s", path->whole);
  for (const char *one; (one = strsep(&rest, "&")) != NULL;)
    if (strncmp(one, param, name) != 0 || one[name] != '=')
      n += snprintf(out + n, bytes - (size_t)n, "&%s", one);
}

Test(http_parameters, what_is_wrong_is_named_and_is_no_fault_of_ours) {
  char asked[2 * LONG], longest[LONG];

  memset(longest, '9', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  for (size_t p = 0; p < sizeof paths / sizeof *paths; p++)
    for (const char *const *param = paths[p].params; *param != NULL; param++)
      for (size_t v = 0; v <= sizeof values / sizeof *values; v++) {
        bool is_last = v == sizeof values / sizeof *values;
        put_wrong(asked, sizeof asked, &paths[p], *param, is_last ? longest : values[v]);
        cr_expect_eq(status_of(asked), 400, "%s: %s", asked, answer);
        cr_expect_not_null(strstr(answer, *param), "%s: %s", asked, answer);
      }
}

Test(http_parameters, a_version_that_no_one_knows_is_no_fault_of_ours) {
  write_unknown_version();
  for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
    char asked[300];
    snprintf(asked, sizeof asked, "%s?%s", paths[p].path, paths[p].whole);
    int status = status_of(asked);
    cr_expect(status == 200 || (status >= 400 && status < 500), "%s: %s", asked, answer);
  }
  cr_assert_eq(status_of("/api/v1/state?stream=" STREAM "&gen=1&ns=1"), 422, "%s", answer);
  cr_assert_not_null(strstr(answer, "version"));
}
